"""Sources of random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plrank_fast._core.random import key as _key
from plrank_fast._shared.once import cached_property
from plrank_fast.validation.arrays import KeyArray, RandomState
from plrank_fast.validation.checks import integer, shown


def check_random_state(rng: Any) -> RandomState:
    """Check ``rng`` without drawing from it, so that a later error leaves its stream where it was."""
    if rng is None or isinstance(rng, (np.random.SeedSequence, np.random.BitGenerator, np.random.Generator)):
        return rng
    seed = integer(rng, "rng", "None, an int, a SeedSequence, a BitGenerator or a Generator")
    if seed < 0:
        raise ValueError(f"rng must not be negative, got {shown(seed)}")
    return seed


class DrawnKey(np.random.SeedSequence):
    """One key for several calls with the same random streams, drawn by the first of them once it has no errors.

    A function in place of ``rng`` is called then, and returns a seed. The first query of a call draws from the stream
    ``first_query``, by default as with ``rng``.
    """

    def __init__(self, rng: RandomState | Callable[[], int], first_query: int | None = None) -> None:
        super().__init__(0)
        self.rng = rng
        self.first_query: int = first_query_of(rng) if first_query is None else first_query

    @cached_property
    def key(self) -> KeyArray:
        """The key, in two words."""
        return stream_key(int(self.rng()) if callable(self.rng) else self.rng)

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> KeyArray:
        """Return the key, for ``stream_key``."""
        return self.key


def first_query_of(rng: Any) -> Any:
    """Return the number of the first query, 0 unless ``chunks.query_streams`` has set it."""
    return getattr(rng, "first_query", 0)


def numbered_source(rng: Any) -> tuple[Any, Any]:
    """Return the source of random numbers and the number of the first query."""
    return rng.rng if isinstance(rng, DrawnKey) else rng, first_query_of(rng)


def source_of_keys(rng: Any) -> Any:
    """Return a source from which compiled code draws the key of a call, once all arguments are checked, or its key.

    Ask for it last: the key of other sources than generators, seeds below 2**128 and None is drawn here.
    """
    return rng if _key.is_plain_source(rng) else stream_key(rng)


def stream_key(rng: RandomState) -> KeyArray:
    """Check ``rng`` and return the 128-bit key of one call's random streams, drawn from a generator under its lock."""
    key = _key.stream_key(rng)
    if key is not None:
        return key
    seed: Any = check_random_state(rng)
    if isinstance(seed, np.random.Generator):
        words = np.asarray(seed.integers(0, 2**64, size=2, dtype=np.uint64))
    else:
        sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        words = np.asarray(sequence.generate_state(2, np.uint64))
    if words.shape != (2,) or words.dtype.kind not in "ui":  # a subclass may have others
        raise ValueError(
            f"rng must give two words of uint64 when asked for them, {type(rng).__name__} gave {words.dtype} of shape "
            f"{words.shape}"
        )
    return words.astype(np.uint64)


def seed_sequence(rng: Any) -> np.random.SeedSequence:
    """Return the seeds of the draws that a call leaves to NumPy, made from ``stream_key``."""
    return np.random.SeedSequence(stream_key(rng).tolist())
