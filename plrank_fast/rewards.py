"""Rewards of whole rankings that only samples can average, and the expected value of any reward under a policy.

A reward is a callable that takes a block of rankings, (n, K) or (n_queries, n, K), and returns one number for each;
``alpha_ndcg`` makes one. ``expected_reward`` estimates its mean over rankings drawn from a policy, with a standard
error, and ``policy_gradient(scores, reward=..., baseline=True)`` the gradient of the mean. The ``cutoff`` of these two
decides how many ranks count. Reciprocal rank, ERR, success and average precision have exact expectations
(``stop_probability`` of ``expected_metric``, and ``expected_ap``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast._core.ranking import metrics as _metrics
from plrank_fast.distribution import SampledValue
from plrank_fast.policy_gradients import RANKINGS_PER_CALL, drawn_blocks
from plrank_fast.validation import FloatArray, RandomState, RankingArray

__all__ = ["alpha_ndcg", "expected_reward"]


def __dir__() -> list[str]:
    return __all__


class AlphaNDCG(validation.Unchangeable):
    """The reward that ``alpha_ndcg`` makes: call it with rankings.

    Parameters
    ----------
    subtopics : array_like, shape (n_docs, n_subtopics)
        Relevance of each document to each subtopic, at least 0; 1 and 0 in judgements.
    alpha : float
        Discount of redundancy, from 0, where it does no harm, to below 1.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.
    """

    _kept = "subtopics", "alpha", "offsets", "n_threads", "batch"

    @validation.hinted
    def __init__(
        self, subtopics: ArrayLike, alpha: float = 0.5, offsets: ArrayLike | None = None, n_threads: int | None = None
    ) -> None:
        self.subtopics: FloatArray = validation.real_array(subtopics, "subtopics", ndim=(2,))
        validation.within(self.subtopics.reshape(-1), "subtopics", 0.0, np.inf)
        self.alpha: float = validation.real(alpha, "alpha", at_least=0.0, below=1.0)
        self.offsets: validation.IntArray = validation.query_offsets(offsets, len(self.subtopics), shown=True)
        validation.within_limits(self.subtopics, "subtopics", self.offsets)
        self.n_threads: int | None = validation.threads(n_threads)
        self.batch: bool = offsets is not None
        self._ideals: dict[int, FloatArray] = {}

    def __repr__(self) -> str:
        """Return a text with the numbers of documents and queries."""
        return f"AlphaNDCG(n_docs={len(self.subtopics)}, n_queries={self.offsets.size - 1}, alpha={self.alpha})"

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
        checked = validation.given_rankings(rankings, self.offsets, None, self.batch, True, self.n_threads)
        ideal = self._ideals.get(checked.shape[2], np.full(self.offsets.size - 1, np.nan))
        result = _metrics.alpha_ndcg(self.subtopics, self.offsets, 1.0 - self.alpha, checked, ideal, self.n_threads)
        self._ideals[checked.shape[2]] = ideal
        return result if self.batch else result[0]


@validation.hinted
def alpha_ndcg(
    subtopics: ArrayLike, *, alpha: float = 0.5, offsets: ArrayLike | None = None, n_threads: int | None = None
) -> AlphaNDCG:
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
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    callable
        ``reward(rankings)`` of rankings (n, K), or (n_queries, n, K) with ``offsets``, indices of items within their
        query, which may end early, with -1 after the last item: the rewards (n,) or (n_queries, n).

    Notes
    -----
    The rewards of N rankings cost O(N K) for each subtopic, and the ideal O(D K), once for each K.

    Source: Clarke et al., "Novelty and diversity in information retrieval evaluation", SIGIR 2008.

    Examples
    --------
    >>> from plrank_fast import rewards
    >>> rewards.alpha_ndcg([[1, 0], [1, 0], [0, 1]])([[0, 2], [0, 1]]).round(3)
    array([1.   , 0.807])
    """
    return AlphaNDCG(subtopics, alpha, offsets, n_threads)


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
    sampler : {"auto", "introselect", "network", "slot_table", "threshold", "guide_table"}
        Algorithm that draws the rankings; all have the same distribution (see ``sample_rankings``).
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

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
    )  # fmt: skip
    n_seen, value, first = 0, np.zeros(0), np.zeros((1, 1))
    total = squares = error = largest = np.zeros(1)
    for _, rewards in blocks:
        largest = np.maximum(largest, np.abs(rewards).max(axis=1))
        first = rewards.mean(axis=1, keepdims=True) if n_seen == 0 else first
        above = rewards - first  # the squares of these lose no digits
        n_seen += rewards.shape[1]
        total, squares = total + above.sum(axis=1), squares + (above**2).sum(axis=1)
        value = first[:, 0] + total / n_seen
        error = np.sqrt(np.maximum(squares - total**2 / n_seen, 0.0) / (max(n_seen - 1, 1) * n_seen))
        if rtol is not None and n_seen >= RANKINGS_PER_CALL and (error <= rtol * np.abs(value)).all():
            break
    validation.within_limits(largest[:, np.newaxis], "reward(rankings)")
    return SampledValue(value, error)
