"""Parts that fuzzers share: their targets, and damage to the bytes of a file."""

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


def damaged_bytes(rng: random.Random, content: bytes, other: bytes = b"") -> bytes:
    """One to three times a bit turned, a byte replaced, a part lost, doubled, moved, or taken from ``other``."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        start = rng.randrange(len(changed) + 1)
        end = min(len(changed), start + int(2 ** rng.uniform(0, 12)))
        kind = rng.randrange(8)
        if kind < 2 and changed:
            changed[min(start, len(changed) - 1)] ^= 1 << rng.randrange(8)
        elif kind == 2 and changed:
            changed[min(start, len(changed) - 1)] = rng.randrange(256)
        elif kind == 3:
            del changed[start:]
        elif kind == 4:
            del changed[start:end]
        elif kind == 5:
            changed[end:end] = changed[start:end]
        elif kind == 6:
            part = changed[start:end]
            del changed[start:end]
            where = rng.randrange(len(changed) + 1)
            changed[where:where] = part
        else:
            changed[start:end] = other[start:end]
    return bytes(changed)
