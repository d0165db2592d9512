"""Parts that fuzzers share: their targets, and damage to the bytes of a file and to values of JSON."""

from __future__ import annotations

import abc
import collections
import json
import random
from pathlib import Path
from typing import Any

ODD_NUMBERS = [
    *(0, 1, -1, 2, 0.0, -0.0, 0.5, 1e-320, 1e308),
    *(2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 10**30, 10**400),
]
ODD_VALUES = [
    *ODD_NUMBERS,
    *(float("nan"), float("inf"), None, True, False, "", "x", "1", "\u0000", "é", [], {}, [0], {"x": 0}),
]


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


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a value of JSON, as the keys and positions that lead there; that of the value itself is first."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, member in inside for place in places(member, (*path, key)))]


def at(value: Any, path: tuple[Any, ...]) -> Any:
    """Return the value that stands at a place."""
    for key in path:
        value = value[key]
    return value


def damaged_json(rng: random.Random, value: Any) -> Any:
    """A copy in which an entry has another value or another name, is gone, doubled, or exchanged with another one."""
    value = json.loads(json.dumps(value))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        inner = places(value)[1:]
        if not inner:
            return rng.choice(ODD_VALUES)
        *path, key = rng.choice(inner)
        parent = at(value, tuple(path))
        kind = rng.randrange(8)
        if kind == 0:
            del parent[key]
        elif kind == 1 and isinstance(parent, dict):
            parent[key + rng.choice(("", "x", "/"))] = parent.pop(key)
        elif kind == 1:
            parent.insert(key, parent[key])
        elif kind == 2:
            parent[key] = json.loads(json.dumps(at(value, rng.choice(inner))))
        elif kind == 3 and isinstance(parent[key], (int, float)):
            parent[key] += rng.choice((-1, 1))
        else:
            parent[key] = rng.choice(ODD_VALUES)
    return value
