"""The information of rankings about strengths, as links between items, and the inverse of such a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from plrank_fast._shared.memory import require_bytes
from plrank_fast.bucket_order import negative_log_likelihood
from plrank_fast.strengths.observed import Observed
from plrank_fast.validation import FloatArray

STEP = 1e-3  # gradients of tied rankings are differenced over it
LINKS_AT_ONCE = 1 << 22
BLOCK = 256  # matrices up to this size are inverted by one call of NumPy, which Ctrl-C does not interrupt
MULTIPLICATIONS_AT_ONCE = 5e8
MATRICES_AT_ONCE = 8  # of items by items, that a fit holds at its peak
OF_NUMPY = 1 << 27  # bytes that NumPy's linear algebra takes at its first call, or ends the process


def require_memory(n_items: int) -> None:
    """Raise MemoryError if the matrices of a fit would not find room."""
    needed = 8 * MATRICES_AT_ONCE * n_items**2 + OF_NUMPY
    require_bytes(needed, f"a fit of {n_items:,} strengths with their covariance")


def plain_rankings(observed: Observed) -> NDArray[np.bool_]:
    """Return whether each ranking has all its ties, if any, in its last place."""
    ranking, places, limits = observed.ranking, observed.places, observed.limits
    last = places[np.maximum(limits[1:] - 1, 0)] if places.size else np.zeros(0)
    again = (np.diff(places) == 0) & (np.diff(ranking) == 0) & (places[1:] < last[ranking[1:]])
    return np.bincount(ranking[1:][again], minlength=limits.size - 1) == 0


def links_of_orders(observed: Observed, strengths: FloatArray) -> FloatArray:
    """Compute minus the mixed second derivatives of the log-likelihood of rankings whose ties are in the last place.

    Each stage chooses one of the items that remain, with chances p, and links each two of them by the product of their
    chances. The diagonal of the result has no meaning. It takes sum_r L_r**2 steps, L_r the lengths of the rankings.
    """
    n_items, lengths = strengths.size, np.diff(observed.limits)
    links = np.zeros(n_items**2)
    for length in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        at_once = max(LINKS_AT_ONCE // length**2, 1)
        first = np.minimum.outer(np.arange(length), np.arange(length))
        for part in (rows[i : i + at_once] for i in range(0, rows.size, at_once)):
            index = observed.limits[part][:, np.newaxis] + np.arange(length)
            entries, places = observed.entries[index], observed.places[index]
            scores = strengths[entries]
            remaining = np.logaddexp.accumulate(scores[:, ::-1], axis=1)[:, ::-1]
            stages = np.where(places < places[:, -1:], -2.0 * remaining, -np.inf)
            until = np.logaddexp.accumulate(stages, axis=1)[:, first]  # all stages in which both items remain
            values = np.exp(scores[:, :, np.newaxis] + scores[:, np.newaxis] + until)
            values *= observed.counts[part][:, np.newaxis, np.newaxis]
            pairs = entries[:, :, np.newaxis] * n_items + entries[:, np.newaxis]
            links += np.bincount(pairs.reshape(-1), values.reshape(-1), n_items**2)
    return links.reshape(n_items, n_items)


def links_of_ties(observed: Observed, strengths: FloatArray, n_threads: int | None) -> FloatArray:
    """Compute the same for any rankings, by a difference of two gradients for each place in the longest."""
    entries, limits, ranking, n_items = observed.entries, observed.limits, observed.ranking, strengths.size
    scores, place = strengths[entries], np.arange(entries.size) - limits[ranking]
    links = np.zeros(n_items**2)
    for moved in (place == k for k in range(int(place.max(initial=-1)) + 1)):
        ends = (scores + STEP * moved, scores - STEP * moved)
        up, down = (negative_log_likelihood(end, observed.places, limits, n_threads, 1)[1] for end in ends)
        column = np.zeros(limits.size - 1, dtype=np.int64)
        column[ranking[moved]] = entries[moved]
        change = observed.counts[ranking] * (down - up) / (2.0 * STEP)
        links += np.bincount(entries * n_items + column[ranking], change, n_items**2)
    square = links.reshape(n_items, n_items)
    return 0.5 * (square + square.T)


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
