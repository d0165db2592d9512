"""Fuzz files that come from outside: LETOR files.

    make fuzz FUZZ_FLAGS="--minutes 60 --seed 0"
    python tests/attackers/fuzz.py --again '{"target": "letor", "seed": 0, "case": 17}'

Cases are made from (target, seed, number) and nothing else. One that takes two minutes of the processor is a finding
like any other. Every finding is printed with a line that ``--again`` takes, and the exit status is 1 if there was one.
Ctrl-C ends the search and prints the tally.
"""

from __future__ import annotations

import itertools
import random
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from fuzz_letor import LetorFuzz, LongLetorFuzz
from search import Search, ViolationError, wrong_with

TARGETS = {"letor": LetorFuzz, "long_letor": LongLetorFuzz}
SECONDS_OF_A_CASE = 120.0  # of the processor; longer, and it counts as hanging
CASES_OF_A_TURN = {"letor": 100, "long_letor": 1}  # of one target, before the next has its turn


class Fuzz(Search):
    """Turns of some targets, until the time is over."""

    options: ClassVar = {
        "--targets": {"nargs": "+", "choices": TARGETS, "default": list(TARGETS), "help": "all by default"}
    }

    def __init__(self, seed: int, targets: Sequence[str] = tuple(TARGETS)) -> None:
        super().__init__(seed)
        self.targets = targets

    def steps(self) -> Iterator[object]:
        with tempfile.TemporaryDirectory() as folder:
            targets = {name: TARGETS[name](Path(folder)) for name in self.targets}
            for turn in itertools.count():
                for name, target in targets.items():
                    cases = CASES_OF_A_TURN[name]
                    for number in range(turn * cases, (turn + 1) * cases):
                        if wrong := attack(target, name, self.seed, number):
                            self.broken(wrong, target=name, seed=self.seed, case=number)
                        self.tally.update({f"{name}, {what}": count for what, count in target.tally.items()})
                        target.tally.clear()
                        yield

    @classmethod
    def again(cls, case: dict[str, Any]) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            wrong = attack(TARGETS[case["target"]](Path(folder)), case["target"], case["seed"], case["case"])
        print(wrong or "held")
        return wrong is not None


def too_long(*_: object) -> None:
    raise ViolationError(f"it takes more than {SECONDS_OF_A_CASE} s")


def attack(target: LetorFuzz, name: str, seed: int, number: int) -> str | None:
    """Return the fault of one case, or None."""
    before = signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, SECONDS_OF_A_CASE)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return wrong_with(target.attack, random.Random(f"{name} {seed} {number}"))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


if __name__ == "__main__":
    sys.exit(Fuzz.main())
