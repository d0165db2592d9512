"""The log-likelihood of rankings by strengths of items, coefficients of comparisons and log deltas of draws."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plrank_fast import validation
from plrank_fast.bucket_order import negative_log_likelihood
from plrank_fast.strengths.draws import Stages, sizes_of
from plrank_fast.strengths.information import links_of_orders, links_of_ties, plain_rankings
from plrank_fast.strengths.observed import REST, Observed, merged
from plrank_fast.validation import FloatArray, IntArray

AS_COUNTED: dict[str, FloatArray] = {  # what the results i won, j won and a draw count
    "unknown": np.diag([1.0, 1.0, 0.0]),  # the probability of a draw is 1
    "half": np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]]),
    "davidson": np.eye(3),
}


Chances = tuple[FloatArray, FloatArray, FloatArray]  # log weights of results, log of their sum, and chances


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
        two = np.diff(observed.limits) == 2
        self.battles, _ = battles_of(observed if two.all() else observed.rows(two), n_items, False)
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
        return self.battles._replace(results=results), self.others._replace(counts=counts[n:])

    @functools.cached_property
    def kinds(self) -> IntArray:
        """The count that each ranking is part of, three for each pair and then the others, or -1."""
        two, kinds = np.diff(self.observed.limits) == 2, np.full(self.observed.counts.size, -1)
        kinds[two] = battles_of(self.observed.rows(two), self.n_items, True)[1]
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
        value, gradient, of_draws = self.battles.value_and_gradient(chances)
        deltas = two * of_draws
        if others.counts.size:
            values, slopes, of_sizes = self.slopes(others, parameters)
            slopes = slopes * np.repeat(others.counts, np.diff(others.limits))
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
        links, cross, corner = self.battles.information(chances)
        result[:n, more], result[np.ix_(more, more)] = cross, corner
        for rows, index, pairs, *of_draws in self._links(parameters):
            items, weights = self.others.entries[index], self.others.counts[rows]
            pairs *= weights[:, np.newaxis, np.newaxis]
            at = (items[:, :, np.newaxis] * n + items[:, np.newaxis]).reshape(-1)
            links += np.bincount(at, pairs.reshape(-1), n * n).reshape(n, n)
            if not k and not of_draws:
                continue
            x = self.others.features[index]
            pairs[:, np.arange(index.shape[1]), np.arange(index.shape[1])] = 0.0
            of_entries = pairs.sum(axis=2)[:, :, np.newaxis] * x - pairs @ x
            result[n : n + k, n : n + k] += np.tensordot(x, of_entries, ((0, 1), (0, 1)))
            if of_draws:
                between = of_draws[0] * weights[:, np.newaxis, np.newaxis]
                result[n + k :, n + k :] += np.tensordot(weights, of_draws[1], 1)
                result[n : n + k, n + k :] += np.tensordot(x, between, ((0, 1), (0, 1)))
                of_entries = np.concatenate([of_entries, between], axis=2)
            for column in range(of_entries.shape[2]):
                result[:n, n + column] += np.bincount(items.reshape(-1), of_entries[:, :, column].reshape(-1), n)
        np.fill_diagonal(links, 0.0)
        result[:n, :n] = -links
        result[np.arange(n), np.arange(n)] = links.sum(axis=1)
        result[n:, :n] = result[:n, n:].T
        result[n + k :, n : n + k] = result[n : n + k, n + k :].T
        return result

    def _links(self, parameters: FloatArray) -> Iterator[tuple[Any, ...]]:
        """Yield the links of entries, and with draws the information about these and log deltas."""
        n, k, others = self.n_items, self.n_features, self.others
        scores = self.scores(others, parameters)
        if self.n_draws:
            yield from Stages(others, self.sizes).information(scores, parameters[n + k :])
        elif others.counts.size:
            yield from links_of_orders(others, scores, self.plain)
            yield from links_of_ties(others, scores, self.plain, self.n_threads)


class Battles(NamedTuple):
    """Pairs of items i < j, features of i less those of j, and counts of three results: i won, j won, a draw."""

    n_items: int
    i: IntArray
    j: IntArray
    features: FloatArray
    results: FloatArray

    def chances(self, parameters: FloatArray, log_delta: FloatArray) -> Chances:
        """Return the log weights of the results, the log of their sum, and the chances."""
        n = self.n_items
        half = 0.5 * (parameters[self.i] - parameters[self.j] + self.features @ parameters[n:])
        if not log_delta.size:
            least, higher = np.exp(-2.0 * np.abs(half)), half > 0.0
            chances = np.stack([np.where(higher, 1.0, least), np.where(higher, least, 1.0)]) / (1.0 + least)
            return np.stack([half, -half]), np.abs(half) + np.log1p(least), chances
        logs = np.stack([half, -half, np.full(half.size, log_delta[0])])
        top = logs.max(axis=0)
        chances = np.exp(logs - top)
        total = chances.sum(axis=0)
        return logs, top + np.log(total), chances / total

    def value_and_gradient(self, at: Chances) -> tuple[float, FloatArray, float]:
        """Return the value, and its slopes by strengths and coefficients, and by the log delta of draws."""
        logs, log_z, chances = at
        seen = self.results.T[: len(logs)]
        won, lost, drawn = self.results.T
        above, below = chances[:2]
        slope = won * below - lost * above  # no 1 - p, which would cancel
        of_draws = 0.0
        if len(chances) > 2:
            slope += 0.5 * ((won - lost) * chances[2] - drawn * (above - below))
            of_draws = float((drawn * (above + below) - (won + lost) * chances[2]).sum())
        gradient = np.append(self._of_items(slope), slope @ self.features)
        return float((seen * (logs - log_z)).sum()), gradient, of_draws

    def information(self, at: Chances) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the links of items, the information about each and coefficients or log delta, and about these alone.

        With margin q = p_win - p_loss, the information about the difference is (p_win + p_loss - q^2) / 4.
        """
        n, (_, _, chances) = self.n_items, at
        total = self.results[:, : len(chances)] @ np.ones(len(chances))
        drawn = chances[2] if len(chances) > 2 else np.zeros(total.size)
        margin, of_draws = chances[0] - chances[1], total * drawn * (chances[0] + chances[1])
        decided = total * (chances[0] * chances[1] + 0.25 * drawn * (chances[0] + chances[1]))
        links = np.bincount(self.i * n + self.j, decided, n * n).astype(float, copy=False).reshape(n, n)
        x, k = self.features, self.features.shape[1]
        columns = np.empty((k + len(chances) - 2, total.size))
        columns[:k], columns[k:] = decided * x.T, -0.5 * total * margin * drawn
        cross = np.array([self._of_items(column) for column in columns]).reshape(-1, n).T
        corner = np.full((len(columns), len(columns)), of_draws.sum())
        corner[:, :k] = columns @ x
        corner[:k] = corner[:, :k].T
        return links + links.T, cross, corner

    def _of_items(self, slopes: FloatArray) -> FloatArray:
        """Add slopes by differences up to slopes by strengths."""
        up, down = (np.bincount(items, slopes, self.n_items) for items in (self.i, self.j))
        return np.asarray(up - down, dtype=np.float64)


def battles_of(observed: Observed, n_items: int, numbered: bool) -> tuple[Battles, IntArray]:
    """Count battles by pair, features and result, and return which count each is part of if ``numbered``."""
    one, other = observed.entries[::2], observed.entries[1::2]
    here, there = observed.places[::2], observed.places[1::2]
    result = ((one < other) != (here < there)).astype(np.int64)
    drawn = here == there
    result[drawn] = 2
    i, j = np.minimum(one, other), np.maximum(one, other)
    key, rests = i * n_items + j, drawn & (here == REST)
    counts = np.where(rests, 0.0, observed.counts) if rests.any() else observed.counts
    if not observed.features.shape[1] and n_items**2 <= 8 * key.size + (1 << 20):
        table: FloatArray = (
            np.bincount(3 * key + result, counts, 3 * n_items**2).astype(float, copy=False).reshape(-1, 3)
        )
        pairs = np.flatnonzero(table.any(axis=1))
        battles = Battles(n_items, pairs // n_items, pairs % n_items, np.zeros((pairs.size, 0)), table[pairs])
        if not numbered:
            return battles, pairs[:0]
        numbers = np.full(n_items**2, -1)
        numbers[pairs] = np.arange(pairs.size)
        return battles, np.where(rests | (numbers[key] < 0), -1, 3 * numbers[key] + result)
    x = (observed.features[::2] - observed.features[1::2]) * np.sign(other - one)[:, np.newaxis]
    for column in x.T:
        codes = np.unique(column, return_inverse=True)[1]
        key = np.unique(key * (codes.max(initial=0) + 1) + codes, return_inverse=True)[1]
    cell = np.unique(key, return_inverse=True)[1]
    first = np.empty(int(cell.max(initial=-1)) + 1, dtype=np.int64)
    first[cell] = np.arange(cell.size)
    table = np.bincount(3 * cell + result, counts, 3 * first.size).astype(float).reshape(-1, 3)
    return Battles(n_items, i[first], j[first], x[first], table), np.where(rests, -1, 3 * cell + result)
