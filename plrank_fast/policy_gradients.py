"""Policy gradients of whole rankings: of the expected metric, a baseline for PL-Rank, and of any reward."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import _estimates, validation
from plrank_fast._core.gradients.policy_gradient import LOG_PROB as _LOG_PROB
from plrank_fast._core.gradients.policy_gradient import POLICY_GRADIENT as _POLICY_GRADIENT
from plrank_fast._core.gradients.sampled import log_prob_gradient
from plrank_fast.sampling import sample_rankings
from plrank_fast.validation import FloatArray, RandomState, RankingArray

RANKINGS_PER_CALL = 256  # a reward function gets so many of each query


def policy_gradient(
    scores: ArrayLike,
    relevance: ArrayLike | None = None,
    rank_weights: ArrayLike | None = None,
    *,
    rewards: ArrayLike | None = None,
    reward: Callable[[RankingArray], ArrayLike] | None = None,
    importance_weights: ArrayLike | None = None,
    cutoff: int | None = None,
    baseline: bool | ArrayLike = False,
    offsets: ArrayLike | None = None,
    n_samples: int = 100,
    rankings: ArrayLike | None = None,
    rng: RandomState = None,
    sampler: validation.Sampler = "auto",
    n_threads: int | None = None,
    out: FloatArray | None = None,
) -> FloatArray:
    r"""Estimate the gradient of an expected metric, or of any reward of whole rankings, by REINFORCE.

    In place of ``relevance`` and ``rank_weights`` you may pass one reward for each given ranking: clicks, a purchase, a
    metric that is not a sum over ranks. The rankings may come from a log: ``importance_weights``, pi(y_i) over the
    probability with which y_i was shown, make the estimate unbiased for the policy of ``scores`` too. Or pass a
    function ``reward`` that computes the rewards of rankings drawn here.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights of the documents, all queries one after another; any finite values at any distance.
    relevance : array_like, shape (n_docs,), optional
        Gain rho of each document (see ``gains``), of any sign; not with ``rewards`` or ``reward``.
    rank_weights : array_like, shape (K,) or (n_queries, K), optional
        Weight theta of each rank (see ``dcg_weights``); not with ``rewards`` or ``reward``.
    rewards : array_like, shape (n_rankings,), or (n_queries, n_rankings) with ``offsets``, optional
        Reward of each of ``rankings``; finite, of either sign. All ranks of a ranking count, and it may end early, with
        -1 after its last item.
    reward : callable, optional
        ``reward(rankings)`` maps rankings drawn here, (n, K) of int32, or (n_queries, n, K) with ``offsets``, padded
        with -1 where a query is shorter, to one number for each, (n,) or (n_queries, n). Each call gets at most 256
        rankings of each query, so that memory does not grow with ``n_samples``. The first 256 are the rankings
        of ``sample_rankings`` with the same ``rng``.
    importance_weights : array_like of the shape of rewards, optional
        Weight of each of ``rewards``, at least 0; all 1 by default.
    cutoff : int, optional
        Ranks to draw for ``reward``, K; all of the longest query by default.
    baseline : bool, or with ``rewards`` or ``reward`` an array_like
        True: subtract from each ranking's metric the mean of the others' (with importance weights, their weighted
        mean). This needs at least two rankings. With ``relevance`` and more rankings than a block of random numbers
        holds (128), they are drawn twice. A number, one for each query or, with ``rewards``, one for each ranking is
        subtracted directly; the estimate is unbiased if the number does not depend on the ranking.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_samples : int
        Rankings drawn for each query, N.
    rankings : array_like of int, shape (N, length), or (n_queries, N, length) with ``offsets``, optional
        Rankings to use instead of drawing, each of length K or more, or of all documents.
    rng : None, int, SeedSequence, BitGenerator or Generator
        Source of the random numbers. The same key gives the same bits for any number of threads; a generator is
        advanced by one draw, and None is fresh entropy.
    sampler : {"auto", "introselect", "network", "slot_table", "threshold", "guide_table"}
        Algorithm that draws the rankings; all have the same distribution (see ``sample_rankings``).
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.
    out : ndarray, shape (n_docs,), float64, optional
        Where to write the result; untouched if the call fails or is interrupted.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Gradient of the sum over queries of the expected metric: the direction of ascent.

    Notes
    -----
    .. math:: g = \frac{1}{N} \sum_i (M_i - b_i) \frac{d \ln \pi(y_i)}{df}, \quad M_i = \sum_k \theta_k \rho_{y_{ik}}

    Here pi is the probability of the first K ranks, M_i the metric or reward, and b_i the baseline. The estimator does
    not use the structure of the metric, hence its variance. The cost after sampling is O(N (D + K)). Source: Williams,
    "Simple statistical gradient-following algorithms for connectionist reinforcement learning", Machine Learning 1992;
    for the leave-one-out baseline, Kool, van Hoof and Welling, "Buy 4
    REINFORCE samples, get a baseline for free!", 2019.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.policy_gradient([0.0, 0.0], [0, 1], [1.0], rankings=[[0], [1]])
    array([-0.25,  0.25])

    The second of two rankings of a log has a click; rankings drawn here have the reward 1 if document 1 comes first:

    >>> plr.policy_gradient([0.0, 0.0], rankings=[[0, 1], [1, 0]], rewards=[0, 1], importance_weights=[1.0, 2.0])
    array([-0.5,  0.5])
    >>> plr.policy_gradient([0.0, 0.0], reward=lambda rankings: rankings[:, 0] == 1, rng=0).round(1)
    array([-0.2,  0.2])
    """
    validation.goes_with(importance_weights, "importance_weights", rewards is not None, "rewards")
    validation.goes_with(cutoff, "cutoff", reward is not None, "reward")
    if rewards is None and reward is None:
        validation.given(relevance, "relevance", ", or rewards or reward")
        validation.given(rank_weights, "rank_weights", ", or rewards or reward")
        return _estimates.sampled(
            _POLICY_GRADIENT, scores, relevance, rank_weights, offsets, n_samples,
            rankings, rng, sampler, n_threads, out, False, baseline,
        )  # fmt: skip
    instead, _ = validation.only_one({"rewards": rewards, "reward": reward})
    validation.goes_with(relevance, "relevance", False, f"{instead}=None")
    validation.goes_with(rank_weights, "rank_weights", False, f"{instead}=None")
    validation.goes_with(rankings, "rankings", reward is None, "reward=None")
    scores_ = validation.real_array(scores, "scores", n_threads=n_threads)
    offsets_ = validation.query_offsets(offsets, scores_.size, shown=True)
    threads = validation.threads(n_threads)
    out = validation.output(out, scores_.shape)
    if reward is None:
        shown = validation.given(rankings, "rankings", " for rewards")
        shown = validation.given_rankings(shown, offsets_, None, offsets is not None, True, threads)
        advantages = _advantages(shown.shape[:2], rewards, importance_weights, baseline, offsets is not None, threads)
        return validation.deliver(log_prob_gradient(_LOG_PROB, scores_, offsets_, shown, advantages, threads), out)
    # The mean of the others is only known at the end. Until then log-probabilities are summed both with the rewards and
    # without, so that no ranking is drawn or rewarded twice.
    n_queries, n_samples = offsets_.size - 1, validation.count(n_samples, "n_samples", 1)
    taken_off = validation.reward_baseline(baseline, (n_queries, n_samples), per_ranking=False)
    validation.count(n_samples, "n_samples", 2 if taken_off is None else 1)
    blocks = drawn_blocks(
        scores_, reward, cutoff, offsets=offsets, n_samples=n_samples, rng=rng, sampler=sampler, n_threads=n_threads,
    )  # fmt: skip
    weighted, plain = np.zeros(scores_.size), np.zeros(scores_.size)
    first, total, largest = taken_off, np.zeros(n_queries), np.zeros(n_queries)
    for drawn, worth in blocks:
        largest = np.maximum(largest, np.abs(worth).max(axis=1))
        first = worth[:, :1] if first is None else first
        above = worth - first
        weighted += log_prob_gradient(_LOG_PROB, scores_, offsets_, drawn, above, threads)
        if taken_off is None:
            plain += log_prob_gradient(_LOG_PROB, scores_, offsets_, drawn, np.ones(above.shape), threads)
            total += above.sum(axis=1)
    validation.within_limits(largest[:, np.newaxis], "reward(rankings)")
    if taken_off is not None:
        return validation.deliver(weighted / n_samples, out)
    mean = np.repeat(total / n_samples, np.diff(offsets_))
    return validation.deliver((weighted - mean * plain) / (n_samples - 1), out)


def _advantages(
    shape: tuple[int, int], rewards: Any, importance_weights: ArrayLike | None, baseline: Any, batch: bool,
    n_threads: int | None,
) -> FloatArray:  # fmt: skip
    """Return the factor of each given ranking's log-probability, (n_queries, n_rankings), after checks."""
    rewards_ = validation.like_rankings(rewards, "rewards", shape, batch, n_threads=n_threads)
    weights = np.ones(shape)
    if importance_weights is not None:
        weights = validation.like_rankings(
            importance_weights, "importance_weights", shape, batch, baseline is not True, n_threads
        )
        validation.within(weights.reshape(-1), "importance_weights", 0.0, np.inf)
    taken_off = validation.reward_baseline(baseline, shape, per_ranking=True)
    if taken_off is None:
        validation.count(shape[1], "the number of rankings, with baseline=True,", 2)
    advantage = advantage_over_others(rewards_, weights) if taken_off is None else rewards_ - taken_off
    return advantage * (weights / shape[1])


def advantage_over_others(rewards: FloatArray, weights: FloatArray) -> FloatArray:
    """Return rewards, (n_queries, n_rankings), less the weighted mean of the query's other rankings.

    If the others have no weight, their mean is 0. Rewards are measured from the reward of the heaviest ranking, which
    is part of every mean but its own, so that equal rewards give exactly 0 and no result has more rounding error than
    its terms.
    """
    of_heaviest = np.take_along_axis(rewards, weights.argmax(axis=1, keepdims=True), axis=1)
    above = rewards - of_heaviest
    weight_of_others = _sum_of_others(weights)
    some = weight_of_others > 0.0
    mean = np.divide(_sum_of_others(weights * above), weight_of_others, out=-of_heaviest * ~some, where=some)
    return above - mean


def _sum_of_others(values: FloatArray) -> FloatArray:
    """For each entry, sum the rest of its row from prefix and suffix sums: a large entry is never subtracted."""
    before, after = np.zeros_like(values), np.zeros_like(values)
    np.cumsum(values[:, :-1], axis=1, out=before[:, 1:])
    after[:, :-1] = np.cumsum(values[:, :0:-1], axis=1)[:, ::-1]
    return before + after


def drawn_blocks(
    scores: ArrayLike,
    reward: Callable[[RankingArray], ArrayLike],
    cutoff: int | None,
    *,
    offsets: ArrayLike | None,
    n_samples: int,
    rng: RandomState,
    sampler: validation.Sampler,
    n_threads: int | None,
) -> Iterator[tuple[RankingArray, FloatArray]]:
    """Generate blocks of rankings, (n_queries, n, K), and their rewards; the first has checked all arguments."""
    batch = offsets is not None
    scores_ = validation.real_array(scores, "scores")
    offsets_ = validation.query_offsets(offsets, scores_.size, shown=True)
    validation.require(callable(reward), f"reward must be a function, got {validation.shown(reward)}", TypeError)
    key = validation.DrawnKey(rng)
    later = functools.partial(validation.DrawnKey, first_query=key.first_query)
    for block in range((n_samples + RANKINGS_PER_CALL - 1) // RANKINGS_PER_CALL):
        shape = offsets_.size - 1, min(RANKINGS_PER_CALL, n_samples - block * RANKINGS_PER_CALL)
        rankings = sample_rankings(
            scores_, shape[1], cutoff, offsets=offsets_, sampler=sampler,
            rng=later(np.random.SeedSequence(key.key.tolist(), spawn_key=(block,))) if block else key,
            n_threads=n_threads,
        )  # fmt: skip
        given_away = (rankings if batch else rankings[0]).copy()  # the caller may write to it
        rewards = reward(given_away)  # small ones in one block may be large in the next
        yield rankings, validation.like_rankings(rewards, "reward(rankings)", shape, batch, may_be_small=True)
