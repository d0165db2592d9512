"""The Plackett-Luce distribution as an object: draws, log-probabilities, marginals, entropy, divergence."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import probabilities, sampling, validation
from plrank_fast._core.runtime import threads as _threads
from plrank_fast.validation import FloatArray, IntArray, RandomState, RankingArray

ENTRIES_AT_ONCE = 1 << 20  # of the array of rankings and items that an estimate goes through


class SampledValue(NamedTuple):
    """An unbiased estimate for each query, and its error.

    Attributes
    ----------
    value : ndarray, shape (n_queries,), float64
        The mean over the rankings drawn.
    standard_error : ndarray, shape (n_queries,), float64
        Standard deviation of that mean, estimated from the same rankings; 0 where the value does not depend on the
        draw.
    """

    value: FloatArray
    standard_error: FloatArray


class PlackettLuce:
    """The Plackett-Luce distribution over rankings of each query's documents.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights, the documents of all queries one after another; finite. (TensorFlow Probability's distribution of
        this name takes the weights, exp(score).)
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default, whose rankings then have no axis of queries.
    n_threads : int, optional
        None: all available processors. No result depends on it.

    Attributes
    ----------
    scores, offsets : ndarray
        As given, read-only.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

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

    def __init__(self, scores: ArrayLike, offsets: ArrayLike | None = None, *, n_threads: int | None = None) -> None:
        self.scores = validation.real_array(scores, "scores")
        self.offsets = validation.query_offsets(offsets, self.scores.size)
        self.scores.flags.writeable = self.offsets.flags.writeable = False
        self.n_threads = validation.threads(n_threads)
        self._as_given: IntArray | None = None if offsets is None else self.offsets

    def __repr__(self) -> str:
        """Say what it is over."""
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
        sampler: str = "auto",
        first_query: int = 0,
    ) -> RankingArray:
        """Draw rankings.

        Parameters
        ----------
        n_samples, cutoff, rng, sampler, first_query
            As in ``sample_rankings``, whose rankings these are.

        Returns
        -------
        ndarray of int32, shape (n_samples, K), or (n_queries, n_samples, K) with ``offsets``

        Raises
        ------
        TypeError, ValueError
            If an argument is not as described; the message names it.
        """
        return sampling.sample_rankings(
            self.scores, n_samples, cutoff, offsets=self._as_given, rng=rng, sampler=sampler, n_threads=self.n_threads,
            first_query=first_query,
        )  # fmt: skip

    def log_prob(self, rankings: ArrayLike) -> FloatArray:
        """Compute the log-probability of rankings, or of prefixes of them.

        Parameters
        ----------
        rankings : array_like of int, shape (n_rankings, length), or (n_queries, n_rankings, length) with ``offsets``
            May end early, with -1 after the last item; what follows is left open.

        Returns
        -------
        ndarray, shape (n_rankings,), or (n_queries, n_rankings) with ``offsets``

        Raises
        ------
        TypeError, ValueError
            If an argument is not as described; the message names it.
        """
        return sampling.ranking_log_prob(self.scores, rankings, offsets=self._as_given, n_threads=self.n_threads)

    def log_prob_vjp(self, rankings: ArrayLike, cotangent: ArrayLike) -> FloatArray:
        """Compute the gradient with respect to the scores of a weighted sum of log-probabilities.

        Parameters
        ----------
        rankings, cotangent
            As in ``ranking_log_prob_vjp``.

        Returns
        -------
        ndarray, shape (n_docs,), float64

        Raises
        ------
        TypeError, ValueError
            If an argument is not as described; the message names it.
        """
        return sampling.ranking_log_prob_vjp(
            self.scores, rankings, cotangent, offsets=self._as_given, n_threads=self.n_threads
        )

    def mode(self, cutoff: int | None = None) -> RankingArray:
        """Return the most probable ranking: by descending score, of equal scores the lower number first.

        Parameters
        ----------
        cutoff : int, optional
            Ranks, K; all of the longest query by default.

        Returns
        -------
        ndarray of int32, shape (K,), or (n_queries, K) with ``offsets``
            Padded with -1 where a query is shorter. The mode of a prefix is the prefix of the mode.

        Raises
        ------
        TypeError, ValueError
            If ``cutoff`` is not a non-negative integer.
        """
        ranks = self._ranks(cutoff)
        lengths = np.diff(self.offsets)
        query = np.repeat(np.arange(lengths.size), lengths)
        order = np.lexsort((-self.scores, query)) - self.offsets[query]  # stable: ties stay in the order of numbers
        rank = np.arange(order.size) - self.offsets[query]
        rankings = np.full((lengths.size, ranks), -1, dtype=np.int32)
        kept = rank < ranks
        rankings[query[kept], rank[kept]] = order[kept]
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
            As ``rank_probabilities`` of the scores: exact, to within 1e-8.

        Raises
        ------
        TypeError, ValueError
            If ``cutoff`` is not a non-negative integer.
        """
        ranks = self._ranks(cutoff)
        return probabilities.rank_probabilities(self.scores, ranks, offsets=self.offsets, n_threads=self.n_threads)

    def exposure(self, rank_weights: ArrayLike) -> FloatArray:
        """Compute the expected exposure of each document.

        Parameters
        ----------
        rank_weights : array_like, shape (K,) or (n_queries, K)
            Attention that each rank gets.

        Returns
        -------
        ndarray, shape (n_docs,), float64
            As ``exposure`` of the scores.

        Raises
        ------
        TypeError, ValueError
            If ``rank_weights`` are not as described.
        """
        return probabilities.exposure(self.scores, rank_weights, offsets=self.offsets, n_threads=self.n_threads)

    def entropy(self, cutoff: int | None = None, *, n_samples: int = 1000, rng: RandomState = None) -> SampledValue:
        """Estimate the entropy of the first ``cutoff`` ranks of each query, in nats.

        The entropy of a ranking is the expected sum, over its ranks, of the entropy of the choice among the items left
        over. The entropy of each choice is exact, and the items left over come from rankings that are drawn. So the
        result is exact for a cutoff of 1, and otherwise its error is far below that of the mean of -log pi(y).

        Parameters
        ----------
        cutoff : int, optional
            Ranks; all by default.
        n_samples : int
            Rankings to draw, at least 2.
        rng : None, int, SeedSequence, BitGenerator or Generator
            Source of these.

        Returns
        -------
        SampledValue
            (value, standard_error), both (n_queries,).

        Raises
        ------
        TypeError, ValueError
            If an argument is not as described; the message names it.

        Notes
        -----
        O(N D K).
        """
        return self._mean_over_choices(
            lambda p, log_p, _: -_times(p, log_p).sum(axis=1), self.scores, cutoff, n_samples, rng
        )

    def kl(
        self, other: PlackettLuce, cutoff: int | None = None, *, n_samples: int = 1000, rng: RandomState = None
    ) -> SampledValue:
        """Estimate the Kullback-Leibler divergence from ``other`` of the first ``cutoff`` ranks of each query, in nats.

        KL(self || other) = E[log pi(y) - log pi_other(y)] with y drawn from this distribution; by the choices at each
        rank, as `entropy` is, so that every term is at least 0 and the result is exact for a cutoff of 1.

        Parameters
        ----------
        other : PlackettLuce
            Over the same queries.
        cutoff, n_samples, rng
            As in `entropy`.

        Returns
        -------
        SampledValue
            (value, standard_error), both (n_queries,).

        Raises
        ------
        TypeError, ValueError
            If an argument is not as described; the message names it.
        """
        validation.of_type(isinstance(other, PlackettLuce), "other", "a PlackettLuce", type(other).__name__)
        validation.same_offsets(other.offsets, "other", self.offsets)
        return self._mean_over_choices(
            lambda p, log_p, log_q: _times(p, log_p - log_q).sum(axis=1),
            other.scores,
            cutoff,
            n_samples,
            rng,
        )

    def _ranks(self, cutoff: int | None) -> int:
        return validation.ranks_of_lists(cutoff, validation.longest_list(self.offsets))

    def _mean_over_choices(
        self,
        of_choice: Callable[[FloatArray, FloatArray, FloatArray], FloatArray],
        other_scores: FloatArray,
        cutoff: int | None,
        n_samples: int,
        rng: RandomState,
    ) -> SampledValue:
        """Expected sum over ranks of what ``of_choice`` says of the chances of the items left over, here and there."""
        ranks = self._ranks(cutoff)
        n_samples = validation.count(n_samples, "n_samples", 2)
        stream = validation.seed_sequence(rng)
        value, error = np.zeros(self.n_queries), np.zeros(self.n_queries)
        threads = _threads.resolve_threads(self.n_threads)
        for query in np.flatnonzero(np.diff(self.offsets) > 1).tolist():
            part = slice(self.offsets[query], self.offsets[query + 1])
            scores = self.scores[part]
            drawn = sampling.sample_rankings(
                scores, n_samples, max(ranks - 1, 0), rng=stream, n_threads=threads, first_query=query
            )
            # rankings without a rank leave the same to choose from, and one of them will do
            rows = drawn if drawn.shape[1] else drawn[:1]
            at_once, n_ranks = max(1, ENTRIES_AT_ONCE // scores.size), min(ranks, scores.size)
            sums = np.concatenate([
                _sums_over_choices(of_choice, scores, other_scores[part], rows[i : i + at_once], n_ranks)
                for i in range(0, len(rows), at_once)
            ])  # fmt: skip
            value[query] = sums.mean()
            error[query] = sums.std(ddof=1) / np.sqrt(sums.size) if sums.size > 1 else 0.0
        return SampledValue(value, error)


def _sums_over_choices(
    of_choice: Callable[[FloatArray, FloatArray, FloatArray], FloatArray],
    scores: FloatArray,
    other_scores: FloatArray,
    rankings: RankingArray,
    n_ranks: int,
) -> FloatArray:
    """For each ranking of at least n_ranks - 1 items, the sum over ``n_ranks`` choices."""
    rows = np.arange(len(rankings))
    left = np.ones((len(rankings), scores.size), dtype=bool)
    total = np.zeros(len(rankings))
    for k in range(n_ranks):
        if k > 0:
            left[rows, rankings[:, k - 1]] = False
        log_p, log_q = (_log_chances(f, left) for f in (scores, other_scores))
        p = np.where(left, np.exp(log_p), 0.0)
        total += of_choice(p, log_p, log_q)
    return total


def _times(p: FloatArray, log_q: FloatArray) -> FloatArray:
    """P log q, 0 where p is."""
    return np.multiply(p, log_q, out=np.zeros_like(p), where=p > 0.0)


def _log_chances(scores: FloatArray, left: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> FloatArray:
    """Log of the chance of each item left over in a row to come next; 0 for the others."""
    highest = np.where(left, scores, -np.inf).max(axis=1, keepdims=True)
    with np.errstate(over="ignore"):  # beyond the largest double: the chance is 0 either way
        shifted = np.where(left, scores - highest, -np.inf)
    total = np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return np.where(left, shifted - total, 0.0)
