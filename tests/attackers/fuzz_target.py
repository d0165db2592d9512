"""What a fuzzer attacks, and the generator of its cases."""

from __future__ import annotations

import abc
import collections
import random
from pathlib import Path


class Target(abc.ABC):
    """Something to attack, in a folder that it has for itself; ``tally`` counts what the cases came to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tally: collections.Counter[str] = collections.Counter()

    @abc.abstractmethod
    def attack(self, rng: random.Random) -> None:
        """Make a case from nothing but the generator, and raise an error if it is not taken or refused as it should."""


def generator(target: str, seed: int, number: int) -> random.Random:
    """The generator of a case."""
    return random.Random(f"{target} {seed} {number}")
