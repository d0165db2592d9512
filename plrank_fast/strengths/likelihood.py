"""The log-likelihood of rankings by strengths of items, coefficients of comparisons and log deltas of draws."""

from __future__ import annotations

import numpy as np

from plrank_fast.bucket_order import negative_log_likelihood
from plrank_fast.strengths.draws import Stages, sizes_of
from plrank_fast.strengths.information import links_of_orders, links_of_ties, plain_rankings
from plrank_fast.strengths.observed import REST, Observed, merged
from plrank_fast.validation import FloatArray, IntArray


class Likelihood:
    """Sum of log-probabilities of rankings, by strengths and then log deltas of the sizes of draws.

    Battles, which are rankings of two, are counted by pair and result; equal rankings of more items are merged.
    """

    n_items: int
    davidson: bool
    n_threads: int | None
    battles: Battles
    others: Observed
    sizes: IntArray
    n_draws: int
    unit: float
    stages: Stages | None
    plain: Observed
    tied: Observed

    def __init__(self, observed: Observed, n_items: int, davidson: bool, n_threads: int | None) -> None:
        self.n_items, self.davidson, self.n_threads = n_items, davidson, n_threads
        two = np.diff(observed.limits) == 2
        self.battles = Battles(observed if two.all() else observed.rows(two), n_items)
        others = merged(observed.rows(~two))
        self.sizes = np.ones(1, dtype=np.int64)
        if davidson:
            drawn = [2] if self.battles.results[:, 2].any() else []
            self.sizes = np.union1d(sizes_of(others), np.array(drawn, dtype=np.int64))
        else:
            self.battles.results[:, 2] = 0.0  # of unknown order: the probability is 1
        self.n_draws = self.sizes.size - 1
        self.unit = float(max(self.battles.results.max(initial=0.0), others.counts.max(initial=0.0))) or 1.0
        self.battles.results /= self.unit
        self.others = others._replace(counts=others.counts / self.unit)
        self.stages = Stages(self.others, self.sizes) if self.n_draws else None
        ordered = plain_rankings(self.others)
        self.plain, self.tied = self.others.rows(ordered), self.others.rows(~ordered)

    def value_and_gradient(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return the sum of log-probabilities, and its gradient."""
        n, others = self.n_items, self.others
        strengths, log_deltas = parameters[:n], parameters[n:]
        two = self.sizes[1:] == 2
        value, gradient, of_draws = self.battles.value_and_gradient(strengths, log_deltas[two])
        deltas = two * of_draws
        if others.counts.size:
            scores, weights = strengths[others.entries], others.counts[others.ranking]
            if self.stages is None:
                values, slopes = negative_log_likelihood(scores, others.places, others.limits, self.n_threads, 1)
                values, slopes = -values, -slopes
            else:
                values, slopes, of_sizes = self.stages.slopes(scores, log_deltas)
                deltas = deltas + others.counts @ of_sizes
            value += float(others.counts @ values)
            gradient = gradient + np.bincount(others.entries, weights * slopes, n)
        return value, np.append(gradient, deltas)

    def information(self, parameters: FloatArray) -> FloatArray:
        """Return minus the Hessian of the sum.

        The likelihood does not change if all items of a ranking move by the same amount. So each row of the part of the
        strengths sums to 0, and its diagonal follows from the rest, which keeps the digits of weak links between strong
        groups.
        """
        n, strengths, log_deltas = self.n_items, parameters[: self.n_items], parameters[self.n_items :]
        result = np.zeros((parameters.size, parameters.size))
        two = np.flatnonzero(self.sizes[1:] == 2)
        links, cross, corner = self.battles.information(strengths, log_deltas[two])
        result[:n, n + two], result[n + two, n + two] = cross[:, np.newaxis], corner
        if self.stages is not None:
            entries = self.others.entries
            for rows, index, pairs, between, sizes in self.stages.information(strengths[entries], log_deltas):
                items, weights = entries[index], self.others.counts[rows]
                at = (items[:, :, np.newaxis] * n + items[:, np.newaxis]).reshape(-1)
                links -= np.bincount(at, (pairs * weights[:, None, None]).reshape(-1), n * n).reshape(n, n)
                for k in range(self.n_draws):
                    of_items = (between[:, :, k] * weights[:, None]).reshape(-1)
                    result[:n, n + k] += np.bincount(items.reshape(-1), of_items, n)
                result[n:, n:] += np.tensordot(weights, sizes, 1)
        elif self.others.counts.size:
            links += links_of_orders(self.plain, strengths) + links_of_ties(self.tied, strengths, self.n_threads)
        np.fill_diagonal(links, 0.0)
        result[:n, :n] = -links
        result[np.arange(n), np.arange(n)] = links.sum(axis=1)
        result[n:, :n] = result[:n, n:].T
        return result


class Battles:
    """Pairs of items i < j, and how often each of three results was seen: i won, j won, a draw."""

    n_items: int
    results: FloatArray
    i: IntArray
    j: IntArray

    def __init__(self, observed: Observed, n_items: int) -> None:
        self.n_items = n_items
        one, other = observed.entries[::2], observed.entries[1::2]
        here, there = observed.places[::2], observed.places[1::2]
        won = np.where(one < other, here < there, there < here)
        result = np.where(here == there, 2, 1 - won)
        counts = np.where((here == REST) & (there == REST), 0.0, observed.counts)
        pair = np.minimum(one, other) * n_items + np.maximum(one, other)
        if 3 * n_items**2 <= 8 * pair.size + (1 << 20):
            table = np.bincount(3 * pair + result, counts, 3 * n_items**2).reshape(-1, 3)
            pairs = np.flatnonzero(table.any(axis=1))
            table = table[pairs]
        else:
            pairs, cell = np.unique(pair, return_inverse=True)
            table = np.bincount(3 * cell + result, counts, 3 * pairs.size).reshape(-1, 3)
        self.results = np.asarray(table, dtype=np.float64)
        self.i, self.j = pairs // n_items, pairs % n_items

    def chances(self, strengths: FloatArray, log_delta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the log weights of the results, the log of their sum, and the chances."""
        half = 0.5 * (strengths[self.i] - strengths[self.j])
        logs = np.stack([half, -half, np.full(half.size, log_delta[0])] if log_delta.size else [half, -half])
        top = logs.max(axis=0)
        chances = np.exp(logs - top)
        total = chances.sum(axis=0)
        return logs, top + np.log(total), chances / total

    def value_and_gradient(self, strengths: FloatArray, log_delta: FloatArray) -> tuple[float, FloatArray, float]:
        """Return the value, and its slopes by the strengths and by the log delta of draws."""
        logs, log_z, chances = self.chances(strengths, log_delta)
        seen = self.results.T[: len(logs)]
        won, lost, drawn = self.results.T
        above, below = chances[:2]
        slope = won * below - lost * above  # no 1 - p, which would cancel
        of_draws = 0.0
        if log_delta.size:
            slope += 0.5 * ((won - lost) * chances[2] - drawn * (above - below))
            of_draws = float((drawn * (above + below) - (won + lost) * chances[2]).sum())
        gradient = self._of_items(slope)
        return float((seen * (logs - log_z)).sum()), gradient, of_draws

    def information(self, strengths: FloatArray, log_delta: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Return the links of items, the information about each and the log delta, and about the log delta alone.

        With margin q = p_win - p_loss, the information about the difference is (p_win + p_loss - q^2) / 4.
        """
        n, (_, _, chances) = self.n_items, self.chances(strengths, log_delta)
        total = self.results[:, : len(chances)].sum(axis=1)
        drawn = chances[2] if log_delta.size else np.zeros(total.size)
        margin = chances[0] - chances[1]
        decided = chances[0] * chances[1] + 0.25 * drawn * (chances[0] + chances[1])
        links = np.bincount(self.i * n + self.j, total * decided, n * n).astype(float, copy=False).reshape(n, n)
        cross = -0.5 * total * margin * drawn
        return links + links.T, self._of_items(cross), float((total * drawn * (chances[0] + chances[1])).sum())

    def _of_items(self, slopes: FloatArray) -> FloatArray:
        """Add slopes by differences up to slopes by strengths."""
        up, down = (np.bincount(items, slopes, self.n_items) for items in (self.i, self.j))
        return np.asarray(up - down, dtype=np.float64)
