"""What all targets of the fuzzer share: a case, and how a broken promise is told."""

from __future__ import annotations

import abc
import collections
import json
import random
from pathlib import Path


class BrokenPromiseError(AssertionError):
    """What was promised and did not hold; the message holds what it takes to see it again."""


class Target(abc.ABC):
    """Something to attack, in a folder that it has for itself.

    ``attack`` makes one case from nothing but the generator it is given, and raises for a promise that does not hold.
    Whatever else it raises is a failure as well. ``tally`` counts what the cases came to.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tally: collections.Counter[str] = collections.Counter()

    @abc.abstractmethod
    def attack(self, rng: random.Random) -> None:
        """Make a case and see whether it is taken or refused as it should be."""


def generator(target: str, seed: int, number: int) -> random.Random:
    """The generator of a case."""
    return random.Random(f"{target} {seed} {number}")


def line(target: str, seed: int, number: int) -> str:
    """A case as a line that ``fuzz.py --again`` takes."""
    return json.dumps({"target": target, "seed": seed, "case": number})
