"""Rankings, and numbers that belong to them or to their ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plrank_fast._core.ranking import rankings as _rankings
from plrank_fast._core.runtime import arguments as _arguments
from plrank_fast._core.runtime import magnitudes as _magnitudes
from plrank_fast.validation.arrays import (
    FloatArray,
    IntArray,
    RankingArray,
    integers,
    real_array,
    within,
    within_limits,
)
from plrank_fast.validation.checks import LARGEST_MAGNITUDE, SMALLEST_MAGNITUDE, each
from plrank_fast.validation.queries import longest_list


def given_rankings(
    rankings: ArrayLike,
    offsets: IntArray,
    cutoff: int | None,
    batch: bool,
    prefixes: bool = False,
    n_threads: int | None = 1,
) -> RankingArray:
    """Return rankings made elsewhere as (n_queries, n_samples, length), with every entry in use checked.

    A ranking must not be shorter than both the cutoff and the query. Ranks past the cutoff and entries past the end of
    a short query are not checked (``sample_rankings`` fills these with -1). With cutoff None all ranks are in use. With
    ``prefixes`` a ranking may end early, and is -1 from there on.
    """
    array = integers(rankings, "rankings", ndim=None)
    shape = array.shape
    n_queries = offsets.size - 1
    if array.ndim == 2 and n_queries == 1:
        array = array[np.newaxis]
    if array.ndim != 3 or array.shape[0] != n_queries or array.shape[1] == 0:
        expected = f"({n_queries}, n_samples, length)" if batch else "(n_samples, length)"
        raise ValueError(f"rankings must have shape {expected}, with at least one sample, got {shape}")
    longest = longest_list(offsets)
    if cutoff is None:
        cutoff = array.shape[2]
    elif array.shape[2] < min(cutoff, longest):
        raise ValueError(f"rankings must reach rank {min(cutoff, longest)}, got rankings of length {array.shape[2]}")
    array = np.require(array, np.int32 if array.dtype == np.int32 else np.int64, ["C", "A"])
    checked, (fault, (query, sample, rank)) = _rankings.checked(array, offsets, cutoff, prefixes, n_threads)
    if fault:
        item = array[query, sample, rank]
        where = f"(query {query}, sample {sample}, rank {rank})" if batch else f"(sample {sample}, rank {rank})"
        no_item = f"hold items 0 to {offsets[query + 1] - offsets[query] - 1}"
        must = (no_item, "not repeat an item", "not go on after -1, which ends them")[fault - 1]
        raise ValueError(f"rankings must {must}, got {item} at {where}")
    return checked


def no_longer_than(shape: tuple[int, ...], cutoff: int, name: str) -> None:
    """Refuse rankings, along the last axis, of more ranks than a distribution has."""
    if shape[-1] > cutoff:
        raise ValueError(f"{name} must have at most {cutoff} ranks, the cutoff, got shape {tuple(shape)}")


def rankings_of_possible(
    rankings: RankingArray, starts: IntArray, possible: IntArray | None, offsets: IntArray
) -> tuple[RankingArray, NDArray[np.bool_]]:
    """Return rankings in the numbers of the items that can be drawn, and which of them hold another item.

    Those are empty, and have probability 0; the other arguments are from `items_that_can_be_drawn`.
    """
    if possible is None:
        return rankings, np.zeros(rankings.shape[:2], dtype=bool)
    numbers = np.full(offsets[-1] + 1, -1, dtype=np.int32)  # the last is for ranks without an item
    numbers[possible] = np.arange(possible.size) - np.repeat(starts[:-1], np.diff(starts))
    holds_item = (rankings >= 0) & (np.arange(rankings.shape[2]) < np.diff(offsets)[:, np.newaxis, np.newaxis])
    among = numbers[np.where(holds_item, rankings + offsets[:-1, np.newaxis, np.newaxis], offsets[-1])]
    impossible: NDArray[np.bool_] = np.any(holds_item & (among < 0), axis=2)
    among[impossible] = -1
    return among, impossible


def like_rankings(
    values: ArrayLike,
    name: str,
    shape: tuple[int, ...],
    batch: bool,
    may_be_small: bool = False,
    n_threads: int | None = 1,
) -> FloatArray:
    """Return numbers of rankings, or of their ranks, in this shape; a single query may lack the first axis.

    ``shape`` is (n_queries, n_rankings), or (n_queries, n_rankings, length) for ranks. The magnitudes are limited, from
    below only unless they ``may_be_small``.
    """
    outside = _magnitudes.TOO_LARGE | (0 if may_be_small else _magnitudes.TOO_SMALL)
    limited = _arguments.plain_copy(values, n_threads, outside)
    array = real_array(values, name, ndim=None) if limited is None else limited
    if array.shape != shape and not (shape[0] == 1 and array.shape == shape[1:]):
        of, expected = "ranking" if len(shape) == 2 else "rank", shape if batch else shape[1:]
        raise ValueError(f"{name} must have one entry per {of}, shape {expected}, got {array.shape}")
    array = array.reshape(shape)
    if limited is not None:
        return array
    return within(array, name, -LARGEST_MAGNITUDE, LARGEST_MAGNITUDE) if may_be_small else within_limits(array, name)


def chances(array: FloatArray, name: str, lowest: float = SMALLEST_MAGNITUDE) -> FloatArray:
    """Return probabilities of observed events, from ``lowest`` to 1 up to rounding."""
    holds = (array >= lowest) & (array <= 1.0 + 1e-9)
    return each(holds, array, name, f"be above 0, {lowest:.2g} or more, and at most 1")


def reward_baseline(values: Any, shape: tuple[int, int], per_ranking: bool) -> FloatArray | None:
    """Return the baseline to subtract, which broadcasts to the shape of the rewards.

    True returns None, which stands for the mean of the other rankings, and False 0. Otherwise ``values`` is one number,
    or has one for each query or, with ``per_ranking``, for each ranking.
    """
    if isinstance(values, (bool, np.bool_)):
        return None if values else np.zeros((1, 1))
    array = real_array(values, "baseline", ndim=None)
    shapes = {(): (1, 1), shape[:1]: (shape[0], 1)}
    if per_ranking:
        shapes |= {shape: shape, shape[shape[0] == 1 :]: shape}
    if array.shape not in shapes:
        choices = f", one of each query, {shape[:1]}" + (f", or one of each ranking, {shape}" if per_ranking else "")
        raise ValueError(f"baseline must be True, False, a number{choices}, got shape {array.shape}")
    return within_limits(array.reshape(shapes[array.shape]), "baseline")
