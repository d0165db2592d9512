"""The information of rankings about scores, and the inverse of such a matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plrank_fast.bucket_order import negative_log_likelihood
from plrank_fast.strengths.observed import Observed
from plrank_fast.validation import FloatArray, IntArray

STEP = 1e-3  # gradients of tied rankings are differenced over it
LINKS_AT_ONCE = 1 << 22
BLOCK = 256  # matrices up to this size are inverted by one call of NumPy, which Ctrl-C does not interrupt
MULTIPLICATIONS_AT_ONCE = 5e8


def plain_rankings(observed: Observed) -> NDArray[np.bool_]:
    """Return whether each ranking has all its ties, if any, in its last place."""
    ranking, places, limits = observed.ranking, observed.places, observed.limits
    last = places[np.maximum(limits[1:] - 1, 0)] if places.size else np.zeros(0)
    again = (np.diff(places) == 0) & (np.diff(ranking) == 0) & (places[1:] < last[ranking[1:]])
    return np.bincount(ranking[1:][again], minlength=limits.size - 1) == 0


def information_of_orders(
    observed: Observed, scores: FloatArray, plain: NDArray[np.bool_]
) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """Yield rankings whose ties are in the last place, their entries in rows, and the information about their scores.

    Each stage chooses one of the items that remain, and links each two of them by the product of their chances. The
    diagonal has no meaning, since rows sum to 0.
    """
    for rows, index in observed.blocks(LINKS_AT_ONCE, 2, plain):
        own, places, length = scores[index], observed.places[index], index.shape[1]
        remaining = np.logaddexp.accumulate(own[:, ::-1], axis=1)[:, ::-1]
        stages = np.where(places < places[:, -1:], -2.0 * remaining, -np.inf)
        first = np.minimum.outer(np.arange(length), np.arange(length))
        until = np.logaddexp.accumulate(stages, axis=1)[:, first]  # all stages in which both items remain
        yield rows, index, -np.exp(own[:, :, np.newaxis] + own[:, np.newaxis] + until)


def information_of_ties(
    observed: Observed, scores: FloatArray, plain: NDArray[np.bool_], n_threads: int | None
) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """Yield the same for the others, by a difference of two gradients for each place."""
    for rows, index in observed.blocks(LINKS_AT_ONCE, 2, ~plain):
        (count, length), own = index.shape, scores[index]
        places, limits, columns = observed.places[index].reshape(-1), length * np.arange(count + 1), []
        for k in range(length):
            moved = STEP * (np.arange(length) == k)
            ends = ((own + moved).reshape(-1), (own - moved).reshape(-1))
            up, down = (negative_log_likelihood(end, places, limits, n_threads, 1)[1] for end in ends)
            columns.append(((up - down) / (2.0 * STEP)).reshape(count, length))
        parts = np.stack(columns, axis=2)
        yield rows, index, 0.5 * (parts + parts.transpose(0, 2, 1))


def inverse_of_positive(matrix: FloatArray) -> FloatArray:
    """Invert a symmetric positive definite matrix by halves, in steps between which Ctrl-C is heard.

    The result is NaN where no inverse can be computed.
    """
    size = len(matrix)
    if size <= BLOCK:
        try:
            inverse: NDArray[Any] = np.linalg.inv(matrix)
        except np.linalg.LinAlgError:
            return np.full_like(matrix, np.nan)
        return inverse
    half = size // 2
    upper, across = inverse_of_positive(matrix[:half, :half]), matrix[:half, half:]
    explained = _product(upper, across)
    lower = inverse_of_positive(matrix[half:, half:] - _product(across.T, explained))
    corner = _product(explained, lower)
    result = np.empty_like(matrix)
    result[:half, :half] = upper + _product(corner, explained.T)
    result[:half, half:], result[half:, :half], result[half:, half:] = -corner, -corner.T, lower
    return result


def _product(a: FloatArray, b: FloatArray) -> FloatArray:
    """Multiply matrices, some rows at a time."""
    rows = max(int(MULTIPLICATIONS_AT_ONCE / b.size), 1)
    return np.concatenate([a[i : i + rows] @ b for i in range(0, len(a), rows)])
