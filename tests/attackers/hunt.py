"""Search for problems on which an error bound fails: random restarts, then hill climbing on error over bound.

    make hunt HUNT_FLAGS="--minutes 60 --seed 0"
    python tests/attackers/hunt.py --again '{"attack": "exact", "seeds": [1, 2, 3]}'

Prints the worst ratio of every output with the problem as a line that ``--again`` takes, and exits with 1 if one of
them is above 1. Ctrl-C ends the search and prints what it has found.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from adversarial_problem import Problem, changed, random_problem
from measured_errors import ATTACKS, Ratios
from measured_errors_of_long_lists import FINEST_ALWAYS_HELD
from search import Search

STARTS = 12  # random problems of a round, of which the worst is made worse
STALE = 15  # changes in vain after which a climb ends
SUSPICIOUS = 0.8  # a ratio above it is measured again with a finer reference
LEAST_COST, MOST_COST = 1e5, 3e7  # operations of a reference for one problem


@dataclasses.dataclass(frozen=True)
class Case:
    """A problem of an attack, as the seeds that it is made from: one for a random problem, one for each change."""

    attack: str
    seeds: tuple[int, ...]

    def problem(self) -> Problem:
        problem = random_problem(self.seeds[0], ATTACKS[self.attack].most_docs)
        for seed in self.seeds[1:]:
            problem = changed(problem, seed)
        return problem

    def measure(self, *, finer: bool = False) -> Ratios:
        """Error over bound of each output; measured again where the reference itself might be what errs."""
        problem = self.problem()
        if problem.is_trivial:
            return {}
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", message="scores look like grades|relevance looks like|labels look like|.*gains"
            )
            try:
                ratios = ATTACKS[self.attack].measure(problem, finer=finer)
            except ArithmeticError:  # a bound that cannot be kept, as the call says: only where rounding decides
                return {"refused": problem.rtol / FINEST_ALWAYS_HELD}
        if not finer and max(ratios.values(), default=0.0) > SUSPICIOUS:
            return self.measure(finer=True)
        return ratios

    def line(self) -> str:
        return json.dumps({"attack": self.attack, "seeds": list(self.seeds)})


@dataclasses.dataclass
class Worst:
    """The largest ratio of one output so far."""

    ratio: float = -1.0
    case: Case | None = None
    measured: int = 0


class Hunt(Search):
    """Rounds of all attacks, ``rounds`` of each if given; ``worst`` holds what they have found."""

    most_findings = float("inf")
    options: ClassVar = {
        "--rounds": {"type": int, "help": "rounds of each attack, with `--minutes inf` the same search every time"},
        "--attacks": {"nargs": "+", "choices": ATTACKS, "default": list(ATTACKS), "help": "all by default"},
        "--most-cost": {"type": float, "default": MOST_COST, "help": f"of one problem's reference ({MOST_COST:g})"},
    }

    def __init__(
        self,
        seed: int,
        *,
        most_cost: float = MOST_COST,
        attacks: Sequence[str] = tuple(ATTACKS),
        rounds: int | None = None,
    ) -> None:
        super().__init__(seed)
        self.rng = np.random.default_rng(seed)
        self.attacks = attacks
        self.most_cost = most_cost
        self.rounds = rounds
        self.worst: dict[str, Worst] = {}

    def _look(self, case: Case) -> Ratios:
        ratios = case.measure()
        self.tally["problems"] += 1
        for output, ratio in ratios.items():
            worst = self.worst.setdefault(output, Worst())
            worst.measured += 1
            if ratio > worst.ratio:
                if ratio > 1 >= worst.ratio:
                    self.broken(f"{output}, {ratio:.3g} times its bound", attack=case.attack, seeds=case.seeds)
                worst.ratio, worst.case = ratio, case
        return ratios

    def _seed(self) -> int:
        return int(self.rng.integers(2**31))

    def _start(self, attack: str, most_cost: float) -> Case:
        while True:
            case = Case(attack, (self._seed(),))
            if ATTACKS[attack].cost(case.problem()) <= most_cost:
                return case

    def round(self, attack: str) -> Iterator[None]:
        """One restart: look at random problems, choose an output, and make the worst problem for it worse."""
        most_cost = np.exp(self.rng.uniform(np.log(LEAST_COST), np.log(self.most_cost)))
        seen = []
        for _ in range(STARTS):
            case = self._start(attack, most_cost)
            seen.append((case, self._look(case)))
            yield
        outputs = sorted({output for _, ratios in seen for output in ratios})
        if not outputs:
            return
        target = str(self.rng.choice(outputs))
        case, ratios = max(seen, key=lambda pair: pair[1].get(target, -1.0))
        top, stale = ratios[target], 0
        while stale < STALE:
            candidate = dataclasses.replace(case, seeds=(*case.seeds, self._seed()))
            if ATTACKS[attack].cost(candidate.problem()) > 2 * most_cost:
                stale += 1
                continue
            ratio = self._look(candidate).get(target, -1.0)
            yield
            stale += 1
            if ratio > top:
                case, top, stale = candidate, ratio, 0

    def steps(self) -> Iterator[object]:
        """Go round the attacks."""
        for _ in itertools.repeat(None) if self.rounds is None else range(self.rounds):
            for attack in self.attacks:
                yield from self.round(attack)

    def summary(self) -> str:
        output, worst = max(self.worst.items(), key=lambda item: item[1].ratio, default=("none", Worst()))
        return f"{super().summary()}, worst {worst.ratio:.3g} ({output})"

    def report(self) -> str:
        """One line for each output: worst error over its bound, problems, and the case that ``--again`` takes."""
        rows = sorted(self.worst.items(), key=lambda item: -item[1].ratio)
        lines = [f"{worst.ratio:9.3g}  {worst.measured:8}  {output:38} {worst.case and worst.case.line()}"
                 for output, worst in rows]  # fmt: skip
        return "\n".join([super().report(), f"{'ratio':>9}  problems  output", *lines])

    @classmethod
    def again(cls, case: dict[str, Any]) -> bool:
        """Measure one case and show its problem in full."""
        one = Case(case["attack"], tuple(case["seeds"]))
        with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
            print(one.problem())
        ratios = one.measure()
        for output, ratio in ratios.items():
            print(f"{ratio:9.3g}  {output}")
        return max(ratios.values(), default=0.0) > 1


if __name__ == "__main__":
    sys.exit(Hunt.main())
