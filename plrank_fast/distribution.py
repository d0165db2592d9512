"""The Plackett-Luce distribution as an object, with draws, log-probabilities, marginals, entropy and divergence."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import probabilities, sampling, validation
from plrank_fast._core.ranking.metrics import modes
from plrank_fast.bucket_order import bucket_log_prob, bucket_log_prob_vjp
from plrank_fast.validation import FloatArray, IntArray, RandomState, RankingArray

__all__ = ["PlackettLuce"]


def __dir__() -> list[str]:
    return __all__


ENTRIES_AT_ONCE = 1 << 20  # the array of rankings and items is processed in parts
FEW_RANKINGS, MANY_RANKINGS = 1000, 100_000  # all are summed if there are fewer, or fewer than draws


class SampledValue(NamedTuple):
    """An unbiased estimate for each query, and its standard error.

    Attributes
    ----------
    value : ndarray, shape (n_queries,), float64
        The mean over the rankings drawn.
    standard_error : ndarray, shape (n_queries,), float64
        Standard deviation of the mean, estimated from the same rankings; 0 where the value does not depend on the
        draw.
    """

    value: FloatArray
    standard_error: FloatArray


class PlackettLuce(validation.Unchangeable):
    """The Plackett-Luce distribution over rankings of each query's documents.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights, the documents of all queries one after another; finite, or -inf for weight 0. A document of weight
        0 is treated as if its query did not have it: rankings end, with -1, after the others; a ranking that holds it
        has log-probability -inf; and its marginals are 0. (TensorFlow Probability's distribution of this name takes the
        weights, exp(score).)
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start. By default there is a single query, and rankings have no axis of queries.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Attributes
    ----------
    scores, offsets : ndarray
        Read-only copies of the arguments.

    Examples
    --------
    >>> import numpy as np
    >>> from plrank_fast import PlackettLuce
    >>> policy = PlackettLuce(np.log([1.0, 2.0, 1.0]))
    >>> policy.mode(), np.exp(policy.log_prob([[1, 0, 2], [0, -1, -1]])).round(3)
    (array([1, 0, 2], dtype=int32), array([0.25, 0.25]))
    >>> policy.sample(1000, cutoff=1, rng=0).shape
    (1000, 1)
    >>> policy.entropy(cutoff=1).value.round(4)  # exact: the first rank alone
    array([1.0397])
    """

    _kept = "scores", "offsets", "n_threads", "_finite", "_starts", "_possible", "_as_given"

    def __init__(self, scores: ArrayLike, offsets: ArrayLike | None = None, *, n_threads: int | None = None) -> None:
        self.scores: FloatArray = validation.real_array(scores, "scores", minus_infinity=True)
        self.offsets: IntArray
        self._finite, self._starts, self._possible, self.offsets = validation.items_that_can_be_drawn(
            self.scores, offsets
        )
        self.n_threads: int | None = validation.threads(n_threads)
        self._as_given: IntArray | None = None if offsets is None else self.offsets

    def __repr__(self) -> str:
        """Return a text with the numbers of documents and queries."""
        return f"PlackettLuce(n_docs={self.scores.size}, n_queries={self.n_queries})"

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.offsets.size - 1

    def sample(
        self,
        n_samples: int = 1,
        cutoff: int | None = None,
        *,
        rng: RandomState = None,
        sampler: validation.Sampler = "auto",
    ) -> RankingArray:
        """Draw rankings.

        Parameters
        ----------
        n_samples : int
            Rankings drawn for each query, N.
        cutoff : int, optional
            Ranks, K; all of the longest query by default.
        rng : None, int, SeedSequence, BitGenerator or Generator
            Source of the random numbers. The same key gives the same bits for any number of threads; a generator is
            advanced by one draw, and None is fresh entropy.
        sampler : {"auto", "introselect", "network", "slot_table", "threshold", "guide_table"}
            Algorithm that draws the rankings; all have the same distribution (see ``sample_rankings``).

        Returns
        -------
        ndarray of int32, shape (n_samples, K), or (n_queries, n_samples, K) with ``offsets``
        """
        return sampling.sample_rankings(
            self.scores, n_samples, cutoff, offsets=self._as_given, rng=rng, sampler=sampler, n_threads=self.n_threads,
        )  # fmt: skip

    def log_prob(self, rankings: ArrayLike | None = None, *, buckets: ArrayLike | None = None) -> FloatArray:
        """Compute the log-probability of rankings, of prefixes of them, or of one ranking with ties of each query.

        Parameters
        ----------
        rankings : array_like of int, shape (n_rankings, length), or (n_queries, n_rankings, length) with ``offsets``
            Indices of items within their query, best first. A ranking may end early, with -1 after its last item: a
            prefix of its own length, or the whole of a candidate set smaller than others.
        buckets : array_like of int, shape (n_docs,)
            In place of rankings: documents of a smaller number come first, documents of the same number in any order
            (see ``bucket_log_prob``). A set that comes first has 0 for its members and 1 for the rest.

        Returns
        -------
        ndarray, shape (n_rankings,), or (n_queries, n_rankings) with ``offsets``; (n_queries,) for buckets
        """
        name, given = validation.only_one({"rankings": rankings, "buckets": buckets})
        if name == "buckets":
            return bucket_log_prob(self.scores, given, offsets=self.offsets, n_threads=self.n_threads)
        return sampling.ranking_log_prob(self.scores, given, offsets=self._as_given, n_threads=self.n_threads)

    def log_prob_vjp(
        self, rankings: ArrayLike | None, cotangent: ArrayLike, *, buckets: ArrayLike | None = None
    ) -> FloatArray:
        """Compute the gradient with respect to the scores of a weighted sum of log-probabilities.

        Parameters
        ----------
        rankings : array_like of int, shape (n_rankings, length), or (n_queries, n_rankings, length) with ``offsets``
            Indices of items within their query, best first. A ranking may end early, with -1 after its last item: a
            prefix of its own length, or the whole of a candidate set smaller than others.
        cotangent : array_like, shape (n_rankings,), or (n_queries, n_rankings) with ``offsets``
            Weight of each log-probability, of either sign; (n_queries,) for buckets.
        buckets : array_like of int, shape (n_docs,)
            A ranking with ties of each query, if ``rankings`` is None; see ``log_prob``.

        Returns
        -------
        ndarray, shape (n_docs,), float64
        """
        name, given = validation.only_one({"rankings": rankings, "buckets": buckets})
        if name == "buckets":
            return bucket_log_prob_vjp(self.scores, given, cotangent, offsets=self.offsets, n_threads=self.n_threads)
        return sampling.ranking_log_prob_vjp(
            self.scores, given, cotangent, offsets=self._as_given, n_threads=self.n_threads
        )

    def mode(self, cutoff: int | None = None) -> RankingArray:
        """Return the most probable ranking, by descending score; of equal scores the lower index comes first.

        Parameters
        ----------
        cutoff : int, optional
            Ranks, K; all of the longest query by default.

        Returns
        -------
        ndarray of int32, shape (K,), or (n_queries, K) with ``offsets``
            Padded with -1 where a query is shorter. The mode of a prefix is the prefix of the mode.
        """
        rankings = modes(self.scores, self.offsets, self._ranks(cutoff), self.n_threads)
        return rankings[0] if self._as_given is None else rankings

    def rank_probabilities(self, cutoff: int | None = None) -> FloatArray:
        """Compute the probability that each document stands at each of the first ranks.

        Parameters
        ----------
        cutoff : int, optional
            Ranks, K; all of the longest query by default.

        Returns
        -------
        ndarray, shape (n_docs, K), float64
            Probabilities, exact to within 1e-8.
        """
        ranks = self._ranks(cutoff)
        values = probabilities.rank_probabilities(self._finite, ranks, offsets=self._starts, n_threads=self.n_threads)
        return validation.of_all_items(values, self._possible, self.offsets)

    def exposure(self, rank_weights: ArrayLike) -> FloatArray:
        """Compute the expected exposure of each document.

        Parameters
        ----------
        rank_weights : array_like, shape (K,) or (n_queries, K)
            Weight theta of each rank (see ``dcg_weights``), one vector for all queries or one row for each. Ranks past
            the end of a query do not count.

        Returns
        -------
        ndarray, shape (n_docs,), float64
            Exposure of each document, exact to within 1e-8 of the sum of the absolute rank weights.
        """
        values = probabilities.exposure(self._finite, rank_weights, offsets=self._starts, n_threads=self.n_threads)
        return validation.of_all_items(values, self._possible, self.offsets)

    def entropy(self, cutoff: int | None = None, *, n_samples: int = 1000, rng: RandomState = None) -> SampledValue:
        """Estimate the entropy of the first ``cutoff`` ranks of each query, in nats.

        The entropy of a ranking is the expected sum, over its ranks, of the entropy of the choice among the items left
        over, which is exact. The most probable ranking counts with its own probability, and only rankings that differ
        from it are drawn: the result is exact for a cutoff of 1, and its relative error is smaller for peaked policies.

        Parameters
        ----------
        cutoff : int, optional
            Ranks, K; all of the longest query by default.
        n_samples : int
            Rankings to draw, at least 2.
        rng : None, int, SeedSequence, BitGenerator or Generator
            Source of the random numbers. The same key gives the same bits for any number of threads; a generator is
            advanced by one draw, and None is fresh entropy.

        Returns
        -------
        SampledValue
            (value, standard_error), both (n_queries,). The value has no bias, and an exact one has an error of 0.
            Otherwise the error is hypot(s / sqrt(N), m R): s is the deviation of what the draws estimate, R a range
            that holds the sums of all rankings, and m the probability that no draw has seen, as far as rankings drawn
            once do not explain it, from P / (sqrt(12) N) to 2 P / N for a probability P to differ from the most
            probable ranking. It is mostly too large for N up to 100.

        Notes
        -----
        The cost is O(N D K).
        """
        return self._mean_over_choices(None, cutoff, n_samples, rng)

    def kl(
        self, other: PlackettLuce, cutoff: int | None = None, *, n_samples: int = 1000, rng: RandomState = None
    ) -> SampledValue:
        """Estimate the Kullback-Leibler divergence from ``other`` of the first ``cutoff`` ranks of each query, in nats.

        KL(self || other) = E[log pi(y) - log pi_other(y)] with y drawn from this distribution. It is the expected sum
        of the divergences of the choices at each rank, so that every term is at least 0. The result is exact for a
        cutoff of 1, and wherever the ranks above the last have at most 1000 orders, or ``n_samples`` of them. It is
        infinite where a document of positive weight has weight 0 in ``other``.

        Parameters
        ----------
        other : PlackettLuce
            Distribution over the same queries.
        cutoff : int, optional
            Ranks, K; all of the longest query by default.
        n_samples : int
            Rankings to draw, at least 2.
        rng : None, int, SeedSequence, BitGenerator or Generator
            Source of the random numbers. The same key gives the same bits for any number of threads; a generator is
            advanced by one draw, and None is fresh entropy.

        Returns
        -------
        SampledValue
            (value, standard_error), both (n_queries,). The value has no bias, and an exact one has an error of 0.
            Otherwise the error is hypot(s / sqrt(N), m R): s is the deviation of what the draws estimate, R a range
            that holds the sums of all rankings, and m the probability that no draw has seen, as far as rankings drawn
            once do not explain it, from P / (sqrt(12) N) to 2 P / N for a probability P to differ from the most
            probable ranking. It is mostly too large for N up to 100.
        """
        validation.of_type(isinstance(other, PlackettLuce), "other", "a PlackettLuce", type(other).__name__)
        validation.same_offsets(other.offsets, "other", self.offsets)
        return self._mean_over_choices(other.scores, cutoff, n_samples, rng)

    def _ranks(self, cutoff: int | None) -> int:
        return validation.ranks_that_count(cutoff, validation.longest_list(self._starts))

    @np.errstate(over="ignore", invalid="ignore")  # a result beyond the largest double is refused
    def _mean_over_choices(
        self, other_scores: FloatArray | None, cutoff: int | None, n_samples: int, rng: RandomState
    ) -> SampledValue:
        """Estimate the expected sum over ranks of the entropy of the next item, or of its divergence from the other.

        The mode is counted with its exact probability, and the mean is over rankings that leave it at some rank.
        """
        ranks = self._ranks(cutoff)
        n_samples = validation.count(n_samples, "n_samples", 2)
        few = max(FEW_RANKINGS, min(n_samples, MANY_RANKINGS))
        value, error = np.zeros(self.n_queries), np.zeros(self.n_queries)
        infinite, sampled = np.zeros(self.n_queries, dtype=bool), []
        for query in np.flatnonzero(np.diff(self.offsets) > 1).tolist():
            part = slice(self.offsets[query], self.offsets[query + 1])
            scores, others = self.scores[part], None if other_scores is None else other_scores[part]
            kept = (scores if others is None else others) > -np.inf  # all from which one of the two draws
            n_possible = int(np.count_nonzero(scores > -np.inf))
            n_ranks = min(ranks, n_possible)
            if n_ranks == 0:
                continue
            if (scores[~kept] > -np.inf).any():
                infinite[query] = True
                continue
            scores, others = scores[kept], None if others is None else others[kept]
            mode = np.argsort(-scores, kind="stable")[:n_possible].astype(np.int32)
            if math.lgamma(n_possible + 1) - math.lgamma(n_possible - n_ranks + 2) <= math.log(few) + 1e-9:
                every = np.array(list(itertools.permutations(mode.tolist(), n_ranks - 1)), dtype=np.int32)
                chances = np.exp(sampling.ranking_log_prob(scores, every, n_threads=self.n_threads))
                every, chances = every[chances > 0.0], chances[chances > 0.0]
                value[query] = (chances * _sums_over_choices(scores, others, every, n_ranks)).sum()
                continue
            value[query] = _sums_over_choices(scores, others, mode[np.newaxis, : n_ranks - 1], n_ranks)[0]
            leaving = _chances_to_leave(scores[mode], n_ranks - 1)
            error[query] = _most_sums_differ(scores, others, n_ranks) if leaving.any() else 0.0
            if error[query] != 0.0:
                sampled.append((query, scores, others, n_ranks, mode, leaving))
        validation.representable(np.concatenate([value, value + error]), "scores")
        seeds = validation.seed_sequence(rng).spawn(3)
        for query, scores, others, n_ranks, mode, leaving in sampled:
            drawn = [
                sampling.sample_rankings(
                    scores, n_samples, n_ranks, rng=validation.DrawnKey(seed, query), n_threads=self.n_threads
                )
                for seed in seeds[:2]
            ]
            left = float(leaving.sum())
            uniform = np.random.default_rng([*seeds[2].generate_state(4), query]).random(n_samples)
            rank = np.minimum(np.searchsorted(np.cumsum(leaving) / left, uniform, side="right"), n_ranks - 2)
            rows = _leaving_mode(mode, rank, drawn[0], drawn[1])
            above = _sums_over_choices(scores, others, rows, n_ranks) - value[query]
            most = float(max(error[query], np.abs(above).max()))  # the latter where rounding decides
            mean, error[query] = _mean_of_draws(above / most, rows, scores, left)
            value[query], error[query] = value[query] + most * mean, most * error[query]
        return SampledValue(np.where(infinite, np.inf, value), error)


def _most_sums_differ(scores: FloatArray, others: FloatArray | None, n_ranks: int) -> float:
    """Bound the difference of the sums of two rankings; the entropy of a choice is log(items) less a divergence.

    The divergence of a choice is A / W - log W + log V, where W and V are the weights left over in the two
    distributions and A = sum(w log(w / v)), up to constants: each is between its smallest and its largest terms.
    """
    items = np.arange(scores.size - 1, max(scores.size - n_ranks, 1), -1)  # left over at ranks that depend on the draw
    others = np.zeros(scores.size) if others is None else others
    loosely = np.minimum(np.log(items) + np.ptp(others), np.ptp(scores - others))
    with np.errstate(all="ignore"):  # weights of 0: the other bound is the smaller one
        w, v = np.exp(scores - scores.max()), np.exp(others - others.max())
        ratio = np.where(w > 0.0, scores - others, 0.0)
        terms = np.sort([w, v, w * (ratio - (w * ratio).sum() / w.sum())])
        lows, highs = np.cumsum(terms, axis=1)[:, items - 1], np.cumsum(terms[:, ::-1], axis=1)[:, items - 1]
        mean = highs[2] / np.where(highs[2] > 0.0, lows[0], highs[0])
        mean -= lows[2] / np.where(lows[2] < 0.0, lows[0], highs[0])
        closely = mean + np.log(highs[:2] / lows[:2]).sum(axis=0)
    return float(np.fmin(loosely, closely).sum())


def _sums_over_choices(
    scores: FloatArray, others: FloatArray | None, rankings: RankingArray, n_ranks: int
) -> FloatArray:
    """Sum the entropies of ``n_ranks`` choices, or their divergences, for each ranking of n_ranks - 1 items or more."""
    total, at_once = np.zeros(len(rankings)), max(1, ENTRIES_AT_ONCE // scores.size)
    for part in (slice(i, i + at_once) for i in range(0, len(rankings), at_once)):
        rows = np.arange(len(rankings[part]))
        left = np.ones((rows.size, scores.size), dtype=bool)
        for k in range(n_ranks):
            if k > 0:
                left[rows, rankings[part, k - 1]] = False
            log_p = _log_chances(scores, left)
            p = np.where(left, np.exp(log_p), 0.0)
            log_ratio = -log_p if others is None else log_p - _log_chances(others, left)
            total[part] += np.multiply(p, log_ratio, out=np.zeros_like(p), where=p > 0.0).sum(axis=1)
    return total


def _mean_of_draws(values: FloatArray, rows: RankingArray, scores: FloatArray, total: float) -> tuple[float, float]:
    """Estimate the sum of probability times value over rankings of probability ``total``, and its error, from ``rows``.

    Each half of the draws names rankings that count with their own probability; the draws of the other half estimate
    the rest. Neither half knows the draws that it is corrected by, so the mean of the two estimates has no bias. The
    values differ by at most 1. What no draw has seen is missing from their deviation: it counts with that range, as
    far as rankings that were drawn once do not explain its probability, but at most 2 of N draws of it.
    """
    n_rows = values.size
    order = np.lexsort(rows.T[::-1])
    is_first = np.append(True, (np.diff(rows[order], axis=0) != 0).any(axis=1))
    numbers = np.empty(n_rows, dtype=np.int64)
    numbers[order] = np.cumsum(is_first) - 1
    chances, worth = np.exp(sampling.ranking_log_prob(scores, rows[order[is_first]])), values[order[is_first]]
    halves = np.arange(n_rows) % 2 == np.array([[0], [1]])
    means, rest = [], np.zeros(n_rows)
    for half, others in zip(halves, ~halves, strict=True):
        centre, known = values[half].mean(), np.zeros(worth.size, dtype=bool)
        known[numbers[half]] = True
        rest[others] = np.where(known[numbers[others]], 0.0, values[others] - centre)
        means.append(total * (centre + rest[others].mean()) + (chances * (worth - centre))[known].sum())
    unseen = max(total - float(chances.sum()), 1e-15 * total)
    unexplained = unseen - total * np.count_nonzero(np.bincount(numbers) == 1) / n_rows
    missing = min(unseen, float(np.clip(unexplained, total / n_rows / math.sqrt(12.0), 2.0 * total / n_rows)))
    return float(np.mean(means)), math.hypot(total * float(rest.std(ddof=1)) / math.sqrt(n_rows), missing)


def _chances_to_leave(scores: FloatArray, n_ranks: int) -> FloatArray:
    """Return the probability that a ranking is the mode above rank k and not at k, (n_ranks,); scores descend."""
    with np.errstate(over="ignore"):
        ahead = np.exp(np.diff(scores))  # weight of each item, in units of the one before it
    odds, after = np.zeros(n_ranks), 1.0
    for k in range(scores.size - 2, -1, -1):
        if k < n_ranks:
            odds[k] = ahead[k] * after
        after = 1.0 + ahead[k] * after
    stays = 1.0 / (1.0 + odds)
    chances: FloatArray = np.cumprod(np.concatenate([[1.0], stays[:-1]]))[:n_ranks] * (odds * stays)
    return chances


def _leaving_mode(mode: RankingArray, rank: IntArray, first: RankingArray, rest: RankingArray) -> RankingArray:
    """Return rankings that are the mode above ``rank``, (N,), and not at it, (N, K - 1), from two of K ranks each.

    The order of a subset of items in a Plackett-Luce ranking is a Plackett-Luce ranking of the subset.
    """
    position = np.empty(mode.max() + 1, dtype=np.int64)
    position[mode] = np.arange(mode.size)
    rows, columns, rank = np.arange(rank.size), np.arange(first.shape[1] - 1), rank[:, np.newaxis]
    other = first[rows, np.argmax(position[first] > rank, axis=1)][:, np.newaxis]
    left_over = (position[rest] >= rank) & (rest != other)
    below = np.take_along_axis(rest, np.argsort(~left_over, axis=1, kind="stable"), axis=1)
    below = np.take_along_axis(below, np.maximum(columns - rank - 1, 0), axis=1)
    return np.where(columns < rank, mode[columns], np.where(columns == rank, other, below))


def _log_chances(scores: FloatArray, left: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> FloatArray:
    """Return, for each item left over in a row, the log-probability that it comes next; 0 for the others."""
    highest = np.where(left, scores, -np.inf).argmax(axis=1)[:, np.newaxis]
    with np.errstate(over="ignore"):  # beyond the largest double: the chance is 0 either way
        shifted = np.where(left, scores - scores[highest], -np.inf)
    weights = np.exp(shifted)
    np.put_along_axis(weights, highest, 0.0, axis=1)  # near-certain choices keep their digits so
    return np.where(left, shifted - np.log1p(weights.sum(axis=1, keepdims=True)), 0.0)
