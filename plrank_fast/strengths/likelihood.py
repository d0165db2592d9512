"""The log-likelihood of rankings by strengths of items, coefficients of comparisons and log deltas of draws."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plrank_fast import validation
from plrank_fast._core.strengths import battles as core
from plrank_fast._shared.once import cached_property
from plrank_fast.bucket_order import negative_log_likelihood
from plrank_fast.strengths.draws import Stages, sizes_of
from plrank_fast.strengths.information import information_of_orders, information_of_ties, plain_rankings
from plrank_fast.strengths.observed import REST, Observed, merged
from plrank_fast.validation import FloatArray, IntArray

COUNTED = 2  # items of rankings that are counted by pair and result
AS_COUNTED: dict[str, FloatArray] = {  # what the results i won, j won and a draw count
    "unknown": np.diag([1.0, 1.0, 0.0]),  # the probability of a draw is 1
    "half": np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]]),
    "davidson": np.eye(3),
}


Chances = tuple[FloatArray, FloatArray, FloatArray]  # half the differences, log of the sum of weights, and chances


class Likelihood:
    """Sum of log-probabilities of rankings, by strengths, coefficients, and log deltas of the sizes of draws.

    Battles, which are rankings of two, are counted by pair, features and result; equal rankings of more items are
    merged.
    """

    observed: Observed
    n_items: int
    ties: validation.Ties
    n_threads: int | None
    counts: FloatArray
    battles: Battles
    others: Observed
    plain: NDArray[np.bool_]
    sizes: IntArray
    n_features: int
    n_draws: int
    size: int
    unit: float

    def __init__(self, observed: Observed, n_items: int, ties: validation.Ties, n_threads: int | None) -> None:
        self.observed, self.n_items, self.ties, self.n_threads = observed, n_items, ties, n_threads
        self.n_features = observed.features.shape[1]
        two = observed.lengths == COUNTED
        self.battles, self._pairs, self._results = battles_of(observed.rows(two), n_items)
        table = self.battles.results
        self.others, self._of_others = merged(observed.rows(~two))
        self.counts = np.append(table, self.others.counts)
        self.sizes, self.plain = sizes_of(self.others), plain_rankings(self.others)
        half = "ties='half' is for battles, got a tie in a longer ranking: pass ties='davidson' or 'unknown'"
        validation.require(ties != "half" or self.sizes.size == 1, half)
        if ties == "davidson":
            self.sizes = np.union1d(self.sizes, np.array([2] if table[:, 2].any() else [], dtype=np.int64))
        else:
            self.sizes = self.sizes[:1]
        self.n_draws = self.sizes.size - 1
        self.size = n_items + self.n_features + self.n_draws
        self.unit = float((table @ AS_COUNTED[ties]).max(initial=self.others.counts.max(initial=0.0))) or 1.0
        self.battles, self.others = self._counted(self.counts)
        self._at: tuple[FloatArray, Chances] | None = None

    def _counted(self, counts: FloatArray) -> tuple[Battles, Observed]:
        """Return battles and other rankings with these counts, in units of the largest."""
        counts, n = counts / self.unit, self.battles.results.size
        results = counts[:n].reshape(-1, 3) @ AS_COUNTED[self.ties]
        return self.battles._replace(results=results), dataclasses.replace(self.others, counts=counts[n:])

    @cached_property
    def kinds(self) -> IntArray:
        """The count that each ranking is part of, three for each pair and then the others, or -1."""
        kinds, two = np.full(self.observed.counts.size, -1), self.observed.lengths == COUNTED
        results, battles = self._results, self.observed.rows(two)
        if results is None:
            results = core.results_of(battles.entries, battles.places_of_battles, self.n_items, REST)
        pairs, results = np.divmod(results, 3)
        numbers = np.searchsorted(self._pairs, pairs)
        known = np.append(self._pairs, -1)[numbers] == pairs
        kinds[two] = np.where(known, 3 * numbers + results, -1)
        kinds[~two] = np.where(self._of_others < 0, -1, self._of_others + self.battles.results.size)
        return kinds

    def with_counts(self, counts: FloatArray) -> Likelihood:
        """Return the likelihood of the same kinds of rankings, seen as often as ``counts`` says."""
        other = copy.copy(self)
        other.battles, other.others = self._counted(counts)
        return other

    def _chances(self, parameters: FloatArray) -> tuple[Chances, NDArray[np.bool_]]:
        """Return the chances of battles, computed once for each place, and which log delta is that of draws of two."""
        n, two = self.n_items + self.n_features, self.sizes[1:] == 2
        if self._at is None or not np.array_equal(self._at[0], parameters):
            self._at = parameters.copy(), self.battles.chances(parameters[:n], parameters[n:][two])
        return self._at[1], two

    def forget(self) -> None:
        """Free the chances of battles."""
        self._at = None

    def least(self) -> float:
        """Return the smallest count above 0, in units of the largest."""
        counts = np.append(self.battles.results, self.others.counts)
        return float(counts.min(initial=1.0, where=counts > 0.0))

    def scores(self, observed: Observed, parameters: FloatArray) -> FloatArray:
        """Return the scores of entries: strengths, and what features of comparisons add."""
        n, k = self.n_items, self.n_features
        return parameters[:n][observed.entries] + observed.features @ parameters[n : n + k]

    def slopes(self, observed: Observed, parameters: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return log-probabilities of rankings, and their slopes by scores of entries and by log deltas.

        Entries must be in the order of their places if there are draws.
        """
        scores = self.scores(observed, parameters)
        if self.n_draws:
            return Stages(observed, self.sizes).slopes(scores, parameters[self.n_items + self.n_features :])
        values, slopes = negative_log_likelihood(scores, observed.places, observed.limits, self.n_threads, 1)
        return -values, -slopes, np.zeros((values.size, 0))

    def value_and_gradient(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return the sum of log-probabilities, and its gradient."""
        n, others = self.n_items, self.others
        chances, two = self._chances(parameters)
        log_delta = parameters[n + self.n_features :][two]
        value, gradient, of_draws = self.battles.value_and_gradient(chances, log_delta)
        deltas = two * of_draws
        if others.counts.size:
            values, slopes, of_sizes = self.slopes(others, parameters)
            slopes = slopes * np.repeat(others.counts, others.lengths)
            deltas = deltas + others.counts @ of_sizes
            value += float(others.counts @ values)
            gradient = gradient + np.append(np.bincount(others.entries, slopes, n), slopes @ others.features)
        return value, np.append(gradient, deltas)

    def information(self, parameters: FloatArray) -> FloatArray:
        """Return minus the Hessian of the sum.

        The likelihood does not change if all items of a ranking move by the same amount. So each row of the part of the
        strengths sums to 0, and its diagonal follows from the rest, which keeps the digits of weak links between strong
        groups.
        """
        n, k = self.n_items, self.n_features
        result = np.zeros((parameters.size, parameters.size))
        chances, two = self._chances(parameters)
        more = np.append(np.arange(n, n + k), n + k + np.flatnonzero(two))
        links, cross, corner = self.battles.information(chances, bool(two.any()))
        result[:n, more], result[np.ix_(more, more)] = cross, corner
        for rows, index, parts in self._parts(parameters):
            items, length = self.others.entries[index], index.shape[1]
            parts *= self.others.counts[rows, np.newaxis, np.newaxis]
            own = parts[:, :length, :length]
            at = (items[:, :, np.newaxis] * n + items[:, np.newaxis]).reshape(-1)
            links -= np.bincount(at, own.reshape(-1), n * n).reshape(n, n)
            if self.size == n:
                continue
            own[:, np.arange(length), np.arange(length)] = 0.0
            own[:, np.arange(length), np.arange(length)] = -own.sum(axis=2)
            columns = np.zeros((rows.size, parts.shape[1], self.size - n))
            columns[:, :length, :k], columns[:, length:, k:] = self.others.features[index], np.eye(self.n_draws)
            moved = parts @ columns
            result[n:, n:] += np.tensordot(columns, moved, ((0, 1), (0, 1)))
            for column in range(self.size - n):
                result[:n, n + column] += np.bincount(items.reshape(-1), moved[:, :length, column].reshape(-1), n)
        np.fill_diagonal(links, 0.0)
        result[:n, :n] = -links
        result[np.arange(n), np.arange(n)] = links.sum(axis=1)
        result[n:, :n] = result[:n, n:].T
        return result

    def _parts(self, parameters: FloatArray) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
        """Yield rankings, their entries in rows, and the information about the scores of these and log deltas."""
        others, scores = self.others, self.scores(self.others, parameters)
        if self.n_draws:
            yield from Stages(others, self.sizes).information(scores, parameters[self.n_items + self.n_features :])
        elif others.counts.size:
            yield from information_of_orders(others, scores, self.plain)
            yield from information_of_ties(others, scores, self.plain, self.n_threads)


class Battles(NamedTuple):
    """Pairs of items i < j, features of i less those of j, and counts of three results: i won, j won, a draw."""

    n_items: int
    i: IntArray
    j: IntArray
    features: FloatArray
    results: FloatArray

    def chances(self, parameters: FloatArray, log_delta: FloatArray) -> Chances:
        """Return half the differences of scores, the log of the sum of the weights of results, and their chances."""
        half = 0.5 * (parameters[self.i] - parameters[self.j] + self.features @ parameters[self.n_items :])
        size = np.abs(half)
        least, chances = np.exp(-2.0 * size), np.zeros((3, half.size))
        log_z, decided = size + np.log1p(least), 1.0 / (1.0 + least)
        if log_delta.size:
            of_wins, log_z = log_z, np.logaddexp(log_z, log_delta)
            decided *= np.exp(of_wins - log_z)
            chances[2] = np.exp(log_delta - log_z)
        chances[0] = np.exp(half - size) * decided
        chances[1] = np.exp(-half - size) * decided
        return half, log_z, chances

    def value_and_gradient(self, at: Chances, log_delta: FloatArray) -> tuple[float, FloatArray, float]:
        """Return the value, and its slopes by strengths and coefficients, and by the log delta of draws."""
        of_pairs, of_items = np.empty(self.i.size), np.zeros(self.n_items)
        delta = float(log_delta[0]) if log_delta.size else 0.0
        value, of_draws = core.slopes(self.i, self.j, self.results, *at, delta, of_pairs, of_items)
        return value, np.append(of_items, of_pairs @ self.features), of_draws

    def information(self, at: Chances, drawn: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return links of items, the information about each and coefficients or log delta, and about these alone."""
        n, x, links = self.n_items, self.features, np.zeros((self.n_items, self.n_items))
        of_pairs, columns = np.empty(self.i.size), np.empty((x.shape[1] + 1, self.i.size))
        of_draws = core.information(self.i, self.j, self.results, at[2], of_pairs, columns[-1], links)
        columns[:-1] = of_pairs * x.T
        columns = columns if drawn else columns[:-1]
        cross = [np.bincount(self.i, column, n) - np.bincount(self.j, column, n) for column in columns]
        corner = np.full((len(columns), len(columns)), of_draws)
        corner[:, : x.shape[1]] = columns @ x
        corner[: x.shape[1]] = corner[:, : x.shape[1]].T
        return links, np.array(cross).reshape(-1, n).T, corner


def battles_of(observed: Observed, n_items: int) -> tuple[Battles, IntArray, IntArray | None]:
    """Count battles by pair, features and result.

    Also return ascending numbers of these pairs, and the result of each battle: three times such a number, and 0 to 2.
    Battles without a result have another number. None stands for the numbers of `core.results_of`.
    """
    entries, places = observed.entries, observed.places_of_battles
    if not observed.features.shape[1] and n_items**2 <= 8 * observed.counts.size + (1 << 20):
        table = core.table_of(entries, places, n_items, REST, observed.counts)[:-1].reshape(-1, 3)
        pairs = np.flatnonzero(table @ np.ones(3))
        i, j = np.divmod(pairs, n_items)
        return Battles(n_items, i, j, np.zeros((pairs.size, 0)), table[pairs]), pairs, None
    results = core.results_of(entries, places, n_items, REST)
    kept = np.flatnonzero(results < 3 * n_items**2)
    pairs, result = np.divmod(results[kept], 3)
    x = (observed.features[::2] - observed.features[1::2])[kept]
    x[observed.entries[2 * kept] > observed.entries[2 * kept + 1]] *= -1.0
    keys = pairs
    for column in x.T:
        codes = np.unique(column, return_inverse=True)[1]
        keys = np.unique(keys * (codes.max(initial=0) + 1) + codes, return_inverse=True)[1]
    _, first, cell = np.unique(keys, return_index=True, return_inverse=True)
    results[:] = 3 * first.size
    results[kept] = 3 * cell + result
    table = np.bincount(results[kept], observed.counts[kept], 3 * first.size).astype(float).reshape(-1, 3)
    i, j = np.divmod(pairs[first], n_items)
    return Battles(n_items, i, j, x[first], table), np.arange(first.size), results
