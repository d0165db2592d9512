"""Search for problems on which a promise is broken: random restarts, then hill climbing on error over promise.

    make hunt HUNT_FLAGS="--minutes 60 --seed 0"
    python tests/attackers/hunt.py --again '{"attack": "exact", "seeds": [1, 2, 3]}'

Prints the worst ratio of every output with the problem as a line that ``--again`` takes, and exits with 1 if one of
them is above 1. Ctrl-C ends the search and prints what it has found.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from adversarial_problem import Problem, changed, random_problem
from promises import ATTACKS, Ratios
from promises_of_long_lists import FINEST_ALWAYS_HELD

STARTS = 12  # random problems of a round, of which the worst is made worse
STALE = 15  # changes in vain after which a climb ends
SUSPICIOUS = 0.8  # a ratio above it is measured again with a finer oracle
LEAST_COST, MOST_COST = 1e5, 3e7  # operations of an oracle for one problem
SECONDS_BETWEEN_LINES = 10.0


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
        """Error over promise of each output; measured again where the oracle itself might be what errs."""
        problem = self.problem()
        if problem.is_trivial:
            return {}
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", message="scores look like grades|relevance looks like|labels look like|.*gains"
            )
            try:
                ratios = ATTACKS[self.attack].measure(problem, finer=finer)
            except ArithmeticError:  # a promise that cannot be held, as the call says: only where rounding decides
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


class Hunt:
    """A search: ``worst`` holds what it has found, ``problems`` how many it has looked at."""

    def __init__(self, seed: int, *, most_cost: float = MOST_COST, attacks: Sequence[str] = tuple(ATTACKS)) -> None:
        self.rng = np.random.default_rng(seed)
        self.attacks = attacks
        self.most_cost = most_cost
        self.worst: dict[str, Worst] = {}
        self.problems = 0

    @property
    def violations(self) -> list[str]:
        return [output for output, worst in self.worst.items() if worst.ratio > 1]

    def _look(self, case: Case) -> Ratios:
        ratios = case.measure()
        self.problems += 1
        for output, ratio in ratios.items():
            worst = self.worst.setdefault(output, Worst())
            worst.measured += 1
            if ratio > worst.ratio:
                if ratio > 1 >= worst.ratio:
                    print(f"BROKEN: {output}, {ratio:.3g} times what is promised\n    {case.line()}", flush=True)
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

    def run(self, *, minutes: float | None = None, rounds: int | None = None) -> None:
        """Go round the attacks for so long, or for so many rounds of each, which is the same search every time."""
        start = shown = time.monotonic()
        number = 0
        while rounds is None or number < rounds * len(self.attacks):
            for _ in self.round(self.attacks[number % len(self.attacks)]):
                now = time.monotonic()
                if minutes is not None and now - start > 60 * minutes:
                    return
                if now - shown > SECONDS_BETWEEN_LINES:
                    shown = now
                    print(f"{(now - start) / 60:.1f} min: {self.problems} problems, {self.summary()}", flush=True)
            number += 1

    def summary(self) -> str:
        """The worst ratio of all, in words."""
        output, worst = max(self.worst.items(), key=lambda item: item[1].ratio)
        return f"worst {worst.ratio:.3g} ({output})"

    def table(self) -> str:
        """One line for each output: worst ratio, problems, and the case that ``--again`` takes."""
        rows = sorted(self.worst.items(), key=lambda item: -item[1].ratio)
        lines = [f"{worst.ratio:9.3g}  {worst.measured:7}  {output:38} {worst.case and worst.case.line()}"
                 for output, worst in rows]  # fmt: skip
        return "\n".join([f"{'ratio':>9}  {'problems':>7}  output", *lines])


def again(line: str) -> int:
    """Measure one case and show its problem in full."""
    fields = json.loads(line)
    case = Case(fields["attack"], tuple(fields["seeds"]))
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        print(case.problem())
    ratios = case.measure()
    for output, ratio in ratios.items():
        print(f"{ratio:9.3g}  {output}")
    return int(max(ratios.values(), default=0.0) > 1)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="hunt", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long to search (1)")
    parser.add_argument("--rounds", type=int, help="rounds of each attack instead, the same search every time")
    parser.add_argument("--seed", type=int, default=0, help="another seed is another search (0)")
    parser.add_argument("--attacks", nargs="+", choices=list(ATTACKS), default=list(ATTACKS), help="all by default")
    parser.add_argument("--most-cost", type=float, default=MOST_COST, help=f"of one problem's oracle ({MOST_COST:g})")
    parser.add_argument("--again", metavar="CASE", help="measure one case of an earlier search, and show it")
    options = parser.parse_args(arguments)
    if options.again:
        return again(options.again)
    hunt = Hunt(options.seed, most_cost=options.most_cost, attacks=options.attacks)
    try:
        hunt.run(minutes=None if options.rounds else options.minutes, rounds=options.rounds)
    except KeyboardInterrupt:
        print("interrupted")
    print(f"seed {options.seed}, {hunt.problems} problems; error over promise, the worst of each output:")
    print(hunt.table())
    return int(bool(hunt.violations))


if __name__ == "__main__":
    sys.exit(main())
