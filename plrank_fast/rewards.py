"""Rewards of whole rankings that only samples can average, and the expected value of any reward under a policy.

A reward is a callable that takes a block of rankings, (n, K) or (n_queries, n, K), and returns one number for each;
``alpha_ndcg`` makes one. ``expected_reward`` estimates its mean over rankings drawn from a policy, with a standard
error, and ``policy_gradient(scores, reward=..., baseline=True)`` the gradient of the mean. The ``cutoff`` of these two
decides how many ranks count. Reciprocal rank, ERR, success and average precision have exact expectations (``stop`` of
``expected_metric``, and ``expected_average_precision``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast.distribution import SampledValue
from plrank_fast.policy_gradients import RANKINGS_PER_CALL, drawn_blocks
from plrank_fast.rank_weights import dcg_weights
from plrank_fast.validation import FloatArray, IntArray, RandomState, RankingArray


class RankingReward:
    """Reward of rankings that depends on one row of numbers per document.

    Parameters
    ----------
    of_documents : ndarray, shape (n_docs, n_numbers)
        The numbers of each document.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    worth : callable
        Maps these numbers rank by rank, (n_queries, n, K, n_numbers), 0 past the end of a ranking, to the rewards,
        (n_queries, n).
    """

    @validation.hinted
    def __init__(
        self, of_documents: FloatArray, offsets: ArrayLike | None, worth: Callable[[FloatArray], FloatArray]
    ) -> None:
        self.of_documents = of_documents
        self.offsets = validation.query_offsets(offsets, len(of_documents), shown=True)
        self.batch = offsets is not None
        self.worth = worth

    def __repr__(self) -> str:
        """Return a text with the numbers of documents and queries."""
        return f"RankingReward(n_docs={len(self.of_documents)}, n_queries={self.offsets.size - 1})"

    def __call__(self, rankings: ArrayLike) -> FloatArray:
        """Compute the rewards of rankings.

        Parameters
        ----------
        rankings : array_like of int, shape (n, K), or (n_queries, n, K) with ``offsets``
            Indices of items within their query, best first; a ranking may end early, with -1 after its last item.

        Returns
        -------
        ndarray, shape (n,), or (n_queries, n) with ``offsets``
        """
        checked = validation.given_rankings(rankings, self.offsets, None, batch=self.batch, prefixes=True)
        placed = checked >= 0
        placed &= np.arange(checked.shape[2]) < np.diff(self.offsets)[:, np.newaxis, np.newaxis]
        documents = np.where(placed, self.offsets[:-1, np.newaxis, np.newaxis] + checked, -1)
        rows = np.concatenate([self.of_documents, np.zeros((1, self.of_documents.shape[1]))])  # -1 finds the last one
        result = self.worth(rows[documents])
        return result if self.batch else result[0]


@validation.hinted
def alpha_ndcg(subtopics: ArrayLike, *, alpha: float = 0.5, offsets: ArrayLike | None = None) -> RankingReward:
    """Make a reward for diversity: normalised DCG in which a subtopic that was seen m times counts (1 - alpha)**m.

    The ideal ranking used for normalisation takes the best document at each rank in turn, which is customary; the true
    ideal is NP-hard to find, so a reward may be slightly above 1. A query without any subtopic has reward 0.

    Parameters
    ----------
    subtopics : array_like, shape (n_docs, n_subtopics)
        Relevance of each document to each subtopic, at least 0; 1 and 0 in judgements.
    alpha : float
        Discount of redundancy, from 0, where it does no harm, to below 1.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.

    Returns
    -------
    RankingReward

    Notes
    -----
    Source: Clarke et al., "Novelty and diversity in information retrieval evaluation", SIGIR 2008.

    Examples
    --------
    >>> from plrank_fast import rewards
    >>> rewards.alpha_ndcg([[1, 0], [1, 0], [0, 1]])([[0, 2], [0, 1]]).round(3)
    array([1.   , 0.807])
    """
    judged = validation.real_array(subtopics, "subtopics", ndim=(2,))
    validation.within(judged.reshape(-1), "subtopics", 0.0, np.inf)
    alpha = validation.real(alpha, "alpha", at_least=0.0, below=1.0)
    starts = validation.query_offsets(offsets, len(judged), shown=True)
    validation.within_limits(judged, "subtopics", starts)
    ideals: dict[int, FloatArray] = {}

    def worth(values: FloatArray) -> FloatArray:
        n_ranks = values.shape[2]
        if n_ranks not in ideals:
            ideals[n_ranks] = _ideal_of_greedy_choice(judged, alpha, starts, n_ranks)
        ideal = ideals[n_ranks][:, np.newaxis]
        times_seen: FloatArray = np.cumsum(values > 0.0, axis=2) - (values > 0.0)
        of_ranks = (values * (1.0 - alpha) ** times_seen).sum(axis=3)
        dcg = (of_ranks * dcg_weights(n_ranks)).sum(axis=2)
        return np.divide(dcg, ideal, out=np.zeros_like(dcg), where=ideal > 0.0)

    return RankingReward(judged, offsets, worth)


def _ideal_of_greedy_choice(judged: FloatArray, alpha: float, offsets: IntArray, n_ranks: int) -> FloatArray:
    """Compute the DCG of the ranking that takes, at each rank, the document with the largest gain there."""
    weights, ideal = dcg_weights(n_ranks), np.zeros(offsets.size - 1)
    for query in range(offsets.size - 1):
        left = judged[offsets[query] : offsets[query + 1]].copy()
        counts = np.ones(judged.shape[1])
        for weight in weights[: len(left)]:
            worth = left @ counts
            best = int(worth.argmax())
            ideal[query] += weight * worth[best]
            counts = np.where(left[best] > 0.0, counts * (1.0 - alpha), counts)
            left[best] = 0.0
    return ideal


@validation.hinted
def expected_reward(
    scores: ArrayLike,
    reward: Callable[[RankingArray], ArrayLike],
    *,
    cutoff: int | None = None,
    offsets: ArrayLike | None = None,
    n_samples: int = 1000,
    rtol: float | None = None,
    rng: RandomState = None,
    sampler: validation.Sampler = "auto",
    n_threads: int | None = None,
    first_query: int = 0,
) -> SampledValue:
    """Estimate the expected reward of each query over rankings drawn from the policy, with its standard error.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights of the documents, all queries one after another; any finite values at any distance.
    reward : callable
        Maps a block of rankings to one number for each. ``policy_gradient`` takes the same, for the gradient, and draws
        the same rankings with the same ``rng``.
    cutoff : int, optional
        Ranks to draw; all of the longest query by default.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_samples : int
        Rankings of each query, at least 2.
    rtol : float, optional
        Stop, after a whole number of blocks of 256, once every query's standard error is at most this fraction of its
        value; ``n_samples`` is then the maximum. Stopping that depends on the sample biases the value slightly.
    rng : None, int, SeedSequence, BitGenerator or Generator
        Source of the random numbers. The same key gives the same bits for any number of threads; a generator is
        advanced by one draw, and None is fresh entropy.
    sampler : {"auto", "introselect", "network", "alias", "threshold", "guide"}
        Algorithm that draws the rankings; all have the same distribution (see ``sample_rankings``).
    n_threads : int, optional
        None or -1: all available processors; -2: all but one.
    first_query : int
        Number of the first query in the numbering of random streams. Query q of a call draws from stream
        ``first_query + q``, so a batch that is cut into chunks gives the same numbers as the whole.

    Returns
    -------
    SampledValue
        (value, standard_error), both (n_queries,).

    Notes
    -----
    Drawing the rankings takes O(D + N K log K) per query, and memory for 256 rankings of each.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> reward = plr.rewards.alpha_ndcg([[0], [1], [0]])
    >>> value, error = plr.rewards.expected_reward([0.0, 0.0, 0.0], reward, n_samples=4000, rng=0)
    >>> bool(abs(value[0] - plr.dcg_weights(3).mean()) < 4 * error[0] < 0.02)
    True
    >>> gradient = plr.policy_gradient([0.0, 0.0, 0.0], reward=reward, baseline=True, rng=0)
    >>> bool(gradient[1] > 0)
    True
    """
    if rtol is not None:
        rtol = validation.relative_tolerance(rtol)
    n_samples = validation.count(n_samples, "n_samples", 2)
    blocks = drawn_blocks(
        scores, reward, cutoff, offsets=offsets, n_samples=n_samples, rng=rng, sampler=sampler, n_threads=n_threads,
        first_query=first_query,
    )  # fmt: skip
    n_seen, value, squares = 0, np.zeros(0), np.zeros(0)
    error = largest = np.zeros(1)
    for _, rewards in blocks:
        largest = np.maximum(largest, np.abs(rewards).max(axis=1))
        n_block, mean = rewards.shape[1], rewards.mean(axis=1)
        spread = ((rewards - mean[:, np.newaxis]) ** 2).sum(axis=1)
        if n_seen == 0:
            value, squares = mean, spread
        else:  # combine means and squares of two parts
            change = mean - value
            squares = squares + spread + change**2 * (n_seen * n_block / (n_seen + n_block))
            value = value + change * (n_block / (n_seen + n_block))
        n_seen += n_block
        error = np.sqrt(squares / (max(n_seen - 1, 1) * n_seen))
        if rtol is not None and n_seen >= RANKINGS_PER_CALL and (error <= rtol * np.abs(value)).all():
            break
    validation.within_limits(largest[:, np.newaxis], "reward(rankings)")
    return SampledValue(value, error)
