"""Davidson-Luce: rankings in which each size of a tied set has a weight of its own, and no set is enumerated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plrank_fast.strengths.observed import REST, Observed
from plrank_fast.validation import FloatArray, IntArray

EMPTY = -1e300  # logarithm of a sum without terms, which stays finite in differences
ENTRIES_AT_ONCE = 1 << 18
TINY = 1e-30  # of a complex step, whose derivatives have no rounding error of a difference


def sizes_of(observed: Observed) -> IntArray:
    """Return 1 and the sizes of tied sets that occur."""
    heads, groups = _sets(observed)
    occur = heads & (observed.counts[observed.ranking] > 0.0)
    return np.union1d([1], groups[occur]).astype(np.int64)


def _sets(observed: Observed) -> tuple[NDArray[np.bool_], IntArray]:
    """Return whether each entry is the first of a chosen set, and the size of its set. Entries are sorted by place."""
    ranking, places = observed.ranking, observed.places
    first = np.append(True, (np.diff(places) != 0) | (np.diff(ranking) != 0))[: places.size]
    group = np.cumsum(first) - 1
    sizes = np.bincount(group)[group] if places.size else np.zeros(0, dtype=np.int64)
    return first & (places != REST), sizes


class Stages:
    """Rankings of one length at a time: log-probabilities, their slopes and information.

    A stage chooses a set S of n of the items that remain with weight delta_n * prod(alpha_i for i in S)**(1 / n), where
    delta_1 = 1. The items that remain are a suffix of the ranking, so one recursion from its last entry to its first
    serves all stages: L_k(i) = logaddexp(L_k(i + 1), s_i / n + L_(k - 1)(i + 1)).
    """

    observed: Observed
    sizes: IntArray
    heads: NDArray[np.bool_]
    groups: IntArray

    def __init__(self, observed: Observed, sizes: IntArray) -> None:
        self.observed, self.sizes = observed, sizes
        self.heads, self.groups = _sets(observed)

    def slopes(self, scores: FloatArray, log_deltas: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the log-probability of each ranking, and its slopes by scores of entries and by log deltas."""
        values = np.zeros(self.observed.counts.size)
        slopes, of_sizes = np.zeros(scores.size), np.zeros((values.size, self.sizes.size - 1))
        for rows, index in self.observed.blocks(ENTRIES_AT_ONCE, 1):
            heads, groups = self.heads[index], self.groups[index]
            log_z, share, number = expectations(scores[index], heads, log_deltas, self.sizes)
            chosen = (self.observed.places[index] != REST) / groups
            seen = np.stack([(heads & (groups == n)).sum(axis=1) for n in self.sizes[1:]] or [heads[:, :0].sum(1)], 1)
            seen = seen[:, : self.sizes.size - 1]
            values[rows] = (chosen * scores[index]).sum(axis=1) + seen @ log_deltas - log_z
            slopes[index], of_sizes[rows] = chosen - share, seen - number
        return values, slopes, of_sizes

    def information(
        self, scores: FloatArray, log_deltas: FloatArray
    ) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
        """Yield rankings, their entries in rows, and the information about the scores of these and log deltas.

        It is the derivative of the expected shares and numbers by a complex step, exact to rounding.
        """
        for rows, index in self.observed.blocks(ENTRIES_AT_ONCE, 1):
            heads, length, parts = self.heads[index], index.shape[1], list[FloatArray]()
            for step in TINY * 1j * np.eye(length + log_deltas.size):
                moved = scores[index] + step[:length], heads, log_deltas + step[length:], self.sizes
                parts.append(np.concatenate(expectations(*moved)[1:], axis=1).imag / TINY)
            yield rows, index, np.stack(parts, axis=2)


def expectations(scores: Any, heads: NDArray[np.bool_], log_deltas: Any, sizes: IntArray) -> tuple[Any, Any, Any]:
    """Return the sum of log normalisers of each row, the expected shares of its entries, and numbers of tied sets."""
    (rows, length), deltas = scores.shape, np.append(0.0, log_deltas)
    logs = []
    for n in sizes.tolist():
        of_size = np.full((length + 1, n + 1, rows), EMPTY, dtype=np.result_type(scores, deltas))
        of_size[:, 0] = 0.0
        for i in range(length - 1, -1, -1):
            of_size[i, 1:] = _log_sum(of_size[i + 1, 1:], scores[:, i] / n + of_size[i + 1, :-1])
        logs.append(of_size)
    tops = [delta + of_size[:-1, n] for delta, of_size, n in zip(deltas, logs, sizes.tolist(), strict=True)]
    log_z = tops[0]
    for top in tops[1:]:
        log_z = _log_sum(log_z, top)
    shares, numbers = np.zeros((length, rows), dtype=log_z.dtype), []
    for n, top, of_size in zip(sizes.tolist(), tops, logs, strict=True):
        mass = np.where(heads.T, np.exp(top - log_z), 0.0)
        numbers.append(mass.sum(axis=0))
        flow = np.zeros((n + 1, rows), dtype=mass.dtype)  # expected sets that still need k entries
        for i in range(length):
            flow[n] += mass[i]
            taken = flow[1:] * np.exp(scores[:, i] / n + of_size[i + 1, :-1] - of_size[i, 1:])
            shares[i] += taken.sum(axis=0) / n
            flow[1:] *= np.exp(of_size[i + 1, 1:] - of_size[i, 1:])
            flow[:-1] += taken
    return np.where(heads.T, log_z, 0.0).sum(axis=0), shares.T, np.array(numbers[1:]).reshape(-1, rows).T


def _log_sum(a: Any, b: Any) -> Any:
    """Return log(exp(a) + exp(b)), also of complex numbers."""
    top = np.maximum(a.real, b.real)
    return top + np.log(np.exp(a - top) + np.exp(b - top))
