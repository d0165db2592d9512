"""Rankings, and numbers that belong to them or to their ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast._core.ranking import rankings as _rankings
from plrank_fast.validation.arrays import (
    FloatArray,
    IntArray,
    RankingArray,
    integer_array,
    real_array,
    within,
    within_limits,
)
from plrank_fast.validation.checks import each, require
from plrank_fast.validation.queries import longest_list
from plrank_fast.validation.scalars import LARGEST_MAGNITUDE, SMALLEST_MAGNITUDE

LARGEST_NOISE = 700.0  # its exponential is a double; no generator draws a tenth of it
LARGEST_LOG_WEIGHT = float(np.log(LARGEST_MAGNITUDE))


def given_rankings(
    rankings: ArrayLike, offsets: IntArray, cutoff: int | None, batch: bool, prefixes: bool = False
) -> RankingArray:
    """Return rankings made elsewhere as (n_queries, n_samples, length), with every entry in use checked.

    A ranking must not be shorter than both the cutoff and the query. Ranks past the cutoff and entries past the end of
    a short query are not checked (``sample_rankings`` fills these with -1). With cutoff None all ranks are in use. With
    ``prefixes`` a ranking may end early, and is -1 from there on.
    """
    array = integer_array(rankings, "rankings", ndim=None)
    shape = array.shape
    n_queries = offsets.size - 1
    if array.ndim == 2 and n_queries == 1:
        array = array[np.newaxis]
    if array.ndim != 3 or array.shape[0] != n_queries:
        expected = f"({n_queries}, n_samples, length)" if batch else "(n_samples, length)"
        raise ValueError(f"rankings must have shape {expected}, got {shape}")
    if array.shape[1] == 0:
        raise ValueError("rankings must hold at least one ranking, got none")
    longest = longest_list(offsets)
    if cutoff is None:
        cutoff = array.shape[2]
    elif array.shape[2] < min(cutoff, longest):
        raise ValueError(f"rankings must reach rank {min(cutoff, longest)}, got rankings of length {array.shape[2]}")
    narrow = np.clip(array, -2, 2**31 - 1).astype(np.int32)
    fault, (query, sample, rank) = _rankings.find_fault(narrow, offsets, cutoff, prefixes)
    if fault:
        item = array[query, sample, rank]
        where = f"(query {query}, sample {sample}, rank {rank})" if batch else f"(sample {sample}, rank {rank})"
        if fault == _rankings.DUPLICATE:
            raise ValueError(f"rankings must not repeat an item, got {item} a second time at {where}")
        if fault == _rankings.AFTER_THE_END:
            raise ValueError(f"rankings must not go on after -1, which ends them, got {item} at {where}")
        n_items = int(offsets[query + 1] - offsets[query])
        raise ValueError(f"rankings must hold items 0 to {n_items - 1}, got {item} at {where}")
    return narrow


def one_bucket_each(shape: tuple[int, ...], shape_of_scores: tuple[int, ...]) -> None:
    """Refuse buckets, of this shape, that do not have one entry for each item."""
    message = f"buckets must have one entry per item, {shape_of_scores[-1]} in the last axis, got shape {tuple(shape)}"
    require(tuple(shape[-1:]) == tuple(shape_of_scores[-1:]), message)


def like_rankings(
    values: ArrayLike, name: str, shape: tuple[int, ...], batch: bool, may_be_small: bool = False
) -> FloatArray:
    """Return numbers of rankings, or of their ranks, in this shape; a single query may lack the first axis.

    ``shape`` is (n_queries, n_rankings), or (n_queries, n_rankings, length) for ranks. The magnitudes are limited, from
    below only unless they ``may_be_small``.
    """
    array = real_array(values, name, ndim=None)
    if array.shape != shape and not (shape[0] == 1 and array.shape == shape[1:]):
        of, expected = "ranking" if len(shape) == 2 else "rank", shape if batch else shape[1:]
        raise ValueError(f"{name} must have one entry per {of}, shape {expected}, got {array.shape}")
    if may_be_small:
        within(array.reshape(-1), name, -LARGEST_MAGNITUDE, LARGEST_MAGNITUDE)
        return array.reshape(shape)
    return within_limits(array.reshape(shape), name)


def chances(array: FloatArray, name: str, lowest: float = SMALLEST_MAGNITUDE) -> FloatArray:
    """Return probabilities of observed events, from ``lowest`` to 1 but for rounding."""
    holds = (array >= lowest) & (array <= 1.0 + 1e-9)
    return each(holds, array, name, f"be above 0, {lowest:.2g} or more, and at most 1")


def importance_weights(log_ratio: FloatArray, name: str) -> FloatArray:
    """Return exp(log_ratio), the ratio of each ranking's probability to that under argument ``name``."""
    largest = log_ratio.max(initial=-np.inf)
    if largest > LARGEST_LOG_WEIGHT:
        raise ValueError(
            f"{name} must not make a ranking of the log e**{LARGEST_LOG_WEIGHT:.0f} times less probable than scores "
            f"do, got e**{largest:g} times: bound the weights with clip"
        )
    return np.exp(log_ratio)


def possible(log_prob: FloatArray, name: str) -> FloatArray:
    """Return the log-probabilities of rankings that were shown, under the policy of argument ``name``."""
    require(log_prob.min(initial=0.0) > -np.inf, f"{name} must give every ranking of the log a probability above 0")
    return log_prob


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
    choices = f", one of each query, {shape[:1]}" + (f", or one of each ranking, {shape}" if per_ranking else "")
    require(array.shape in shapes, f"baseline must be True, False, a number{choices}, got shape {array.shape}")
    return within_limits(array.reshape(shapes[array.shape]), "baseline")


def values_of_rankings(values: ArrayLike, scores: FloatArray) -> FloatArray:
    """Return noisy scores of a query's documents, (n_samples, n_docs), of at least one ranking."""
    array = real_array(values, "sampled_values", ndim=(2,))
    if array.shape[1] != scores.size or not array.size:
        raise ValueError(f"sampled_values must have shape (N, {scores.size}), got {array.shape}")
    with np.errstate(over="ignore"):
        far = np.abs(array - scores).max()
    if far > LARGEST_NOISE:
        raise ValueError(f"sampled_values must be at most {LARGEST_NOISE:g} from scores, got one at {far:g}")
    return array
