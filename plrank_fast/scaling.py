"""Powers of two, taken off extreme arguments and put back on results, so that what a double can hold does not overflow.

Metrics and gradients are linear in relevance and in rank weights. Where either is so large or so small that products of
them, sums or squares of these would leave the range of a double, the values of each such query are first brought to an
ordinary magnitude by a power of two of its own, and its results are brought back last, in a single rounding. A power of
two changes no digit; arguments of an ordinary magnitude, 2**-200 to 2**200, are not touched at all.

A result that no double can hold raises ValueError: what rounding leaves of a true 0 cannot be told from it.
"""

from __future__ import annotations

import math

import numpy as np

from plrank_fast import validation
from plrank_fast._core.runtime import magnitudes as _magnitudes
from plrank_fast.validation import FloatArray, IntArray

WIDEST_GAP = 1e4  # of neighbouring scores over sigma; the chance to cross it is exp(-1e4) or less


def is_ordinary(number: float) -> bool:
    """Whether a positive number is of an ordinary magnitude."""
    return bool(2.0**-_magnitudes.ORDINARY_EXPONENT <= number <= 2.0**_magnitudes.ORDINARY_EXPONENT)


def moderate(values: FloatArray, offsets: IntArray) -> tuple[FloatArray, IntArray | None]:
    """Bring the largest magnitude of each query into the ordinary range.

    Returns the values, multiplied by 2**-exponent, and the exponent of each query; ``values`` itself and None where all
    are 0.
    """
    if _magnitudes.all_ordinary(values):
        return values, None
    lengths = np.diff(offsets)
    largest = np.zeros(lengths.size)
    largest[lengths > 0] = np.maximum.reduceat(np.abs(values), offsets[:-1][lengths > 0])
    exponents = _beyond_ordinary(largest)
    if exponents is None:
        return values, None
    return np.ldexp(values, -np.repeat(exponents, lengths)), exponents


def moderate_weights(rank_weights: FloatArray, offsets: IntArray) -> tuple[FloatArray, IntArray | None]:
    """Do the same to the weights of the ranks that each query has; where an exponent is not 0, a row for each query."""
    if _magnitudes.all_ordinary(rank_weights.reshape(-1)):
        return rank_weights, None
    n_queries, n_ranks = offsets.size - 1, rank_weights.shape[1]
    used = np.minimum(np.diff(offsets), n_ranks)
    largest = np.zeros(n_queries)
    up_to_rank = np.broadcast_to(np.maximum.accumulate(np.abs(rank_weights), axis=1), (n_queries, n_ranks))
    largest[used > 0] = up_to_rank[np.flatnonzero(used), used[used > 0] - 1]
    exponents = _beyond_ordinary(largest)
    if exponents is None:
        return rank_weights, None
    rows = np.where(np.arange(n_ranks) < used[:, np.newaxis], rank_weights, 0.0)
    return np.ldexp(rows, -exponents[:, np.newaxis]), exponents


def moderate_both(
    relevance: FloatArray, rank_weights: FloatArray, offsets: IntArray
) -> tuple[FloatArray, FloatArray, IntArray | None]:
    """Bring relevance and rank weights into the ordinary range; the exponents are those of their product."""
    relevance, of_relevance = moderate(relevance, offsets)
    rank_weights, of_weights = moderate_weights(rank_weights, offsets)
    return relevance, rank_weights, added(of_relevance, of_weights)


def added(*exponents: IntArray | None) -> IntArray | None:
    """Add the exponents of a product's factors; None stands for zeros."""
    some = [each for each in exponents if each is not None]
    return np.sum(some, axis=0) if some else None


def restore(values: FloatArray, exponents: IntArray | None, offsets: IntArray | None, names: str) -> FloatArray:
    """Multiply results by 2**exponent: one for each document with ``offsets``, one for each query without.

    ``names`` are the arguments that the error names if a result is not representable.
    """
    if exponents is None:
        return values
    if offsets is not None:
        exponents = np.repeat(exponents, np.diff(offsets))
    with np.errstate(over="ignore", under="ignore"):
        restored = np.ldexp(values, exponents)
    return validation.representable(restored, names)


def unit_noise(
    scores: FloatArray, offsets: IntArray, sigma: float, spread: float = 1.0
) -> tuple[FloatArray, float, IntArray | None]:
    """Return scores over ``sigma`` and an ordinary ``spread``, and 1 / (sigma spread) as a factor and exponents.

    The exponents are for ``restore``: None where all are 0.
    """
    if is_ordinary(sigma):
        factor, exponent = 1.0 / (sigma * spread), 0
    else:
        mantissa, exponent = math.frexp(sigma)
        factor = 1.0 / (mantissa * spread)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        scaled = _over_sigma(scores, factor, exponent)
        far = np.flatnonzero(~np.isfinite(scaled))
        for query in np.unique(np.searchsorted(offsets, far, side="right")).tolist():
            # gaps between neighbours are cut to what no pair can cross
            part = slice(offsets[query - 1], offsets[query])
            order = np.argsort(scores[part], kind="stable")
            gaps = np.diff(scores[part][order], prepend=scores[part][order][:1])
            scaled[part][order] = np.cumsum(np.minimum(_over_sigma(gaps, factor, exponent), WIDEST_GAP))
    return scaled, factor, np.full(offsets.size - 1, -exponent) if exponent else None


def _over_sigma(values: FloatArray, factor: float, exponent: int) -> FloatArray:
    return np.ldexp(values * factor, -exponent) if exponent else values * factor


def _beyond_ordinary(largest: FloatArray) -> IntArray | None:
    """By how much each binary exponent is outside the ordinary range; None if none is."""
    exponents = np.frexp(largest)[1].astype(np.int64)
    limit = _magnitudes.ORDINARY_EXPONENT
    beyond = np.where(largest > 0.0, exponents - np.clip(exponents, -limit, limit + 1), 0)
    return beyond if beyond.any() else None
