"""Policy gradients: of the expected metric, as baselines for PL-Rank, and of any reward of whole rankings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast._core.gradients.sampled import EstimatorKind
from plrank_fast._core.runtime import threads as _threads
from plrank_fast._core.sampling import samplers as _samplers
from plrank_fast.gradients import sampled_estimate
from plrank_fast.sampling import SAMPLERS, log_prob_gradient
from plrank_fast.validation import FloatArray, KeyArray, RandomState, RankingArray

RANKINGS_PER_CALL = 256  # that a reward function gets of each query


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
    sampler: str = "auto",
    n_threads: int | None = None,
    out: FloatArray | None = None,
    first_query: int = 0,
) -> FloatArray:
    """Estimate the gradient of an expected metric, or of any reward of whole rankings, by REINFORCE.

    ::

        g = 1 / N sum_i (M_i - b_i) d log pi(y_i) / df,   M_i = sum_k theta_k rho_{y_ik}

    where pi is the probability of the first K ranks, and b_i is 0 or, with ``baseline``, the mean metric of the other N
    - 1 rankings. It is unbiased either way. It makes no use of the structure of the metric, hence its variance.

    In place of ``relevance`` and ``rank_weights`` you may pass one number for each ranking, M_i = ``rewards[i]``:
    clicks, a purchase, a metric that is not a sum over ranks. The rankings are then given, and may come from a log:
    with ``importance_weights``, pi(y_i) over the probability with which y_i was shown, each term is multiplied by its
    weight, and the mean is unbiased for the policy of ``scores`` too. Or the rankings are drawn here, and ``reward`` is
    a function that computes the rewards of a block of them.

    Parameters
    ----------
    rewards : array_like, shape (n_rankings,), or (n_queries, n_rankings) with ``offsets``, optional
        Reward of each of ``rankings``; finite, of either sign. All ranks of a ranking count; it may end early, with -1
        after its last item, as in ``ranking_log_prob``.
    reward : callable, optional
        ``reward(rankings)`` gives one number per ranking for rankings drawn here: (n, K) of int32 to (n,), or
        (n_queries, n, K) to (n_queries, n) with ``offsets``, padded with -1 where a query is shorter. It is called
        with at most 256 rankings of each query, once with each, so that memory does not grow with ``n_samples``. The
        first 256 are those of ``sample_rankings`` with the same ``rng``.
    importance_weights : array_like of the shape of rewards, optional
        At least 0; all 1 by default. Goes with ``rewards``.
    cutoff : int, optional
        Ranks to draw for ``reward``, K; all of the longest query by default.
    baseline : bool, or with ``rewards`` or ``reward`` an array_like
        True: subtract from each ranking's metric the mean of the others' (with importance weights, their weighted
        mean). This needs at least two rankings. With ``relevance`` and more rankings than a block of random numbers
        holds (128), they are drawn twice. A number, or one for each query, or with ``rewards`` one for each ranking, is
        subtracted as it is: the estimate stays unbiased if the number does not depend on the ranking, for instance if
        it is predicted from the query.
    scores, relevance, rank_weights, offsets, n_samples, rankings, rng, sampler, n_threads, out, first_query
        As in ``pl_rank_3``; ``relevance`` and ``rank_weights`` are left out, or None, with ``rewards`` or ``reward``.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Gradient of the sum over queries of the expected metric, or reward: the direction of ascent.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    O(N (D + K)) after sampling. Source: Williams, "Simple statistical gradient-following algorithms for connectionist
    reinforcement learning", Machine Learning 1992; the leave-one-out baseline: Kool, van Hoof and Welling, "Buy 4
    REINFORCE samples, get a baseline for free!", 2019.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.policy_gradient([0.0, 0.0], [0, 1], [1.0], rankings=[[0], [1]])
    array([-0.25,  0.25])

    Two rankings of a log, the second with a click; then rankings drawn here, worth 1 if document 1 comes first:

    >>> plr.policy_gradient([0.0, 0.0], rankings=[[0, 1], [1, 0]], rewards=[0, 1], importance_weights=[1.0, 2.0])
    array([-0.5,  0.5])
    >>> plr.policy_gradient([0.0, 0.0], reward=lambda rankings: rankings[:, 0] == 1, rng=0).round(1)
    array([-0.2,  0.2])
    """
    validation.only_one({"rewards": rewards, "reward": reward})
    if rewards is not None or reward is not None:
        instead = "rewards" if rewards is not None else "reward"
        why = "which says what a ranking is worth"
        validation.excluded(relevance, "relevance", instead, why)
        validation.excluded(rank_weights, "rank_weights", instead, why)
    validation.goes_with(importance_weights, "importance_weights", rewards is not None, "rewards")
    validation.goes_with(cutoff, "cutoff", reward is not None, "reward")
    if reward is not None:
        validation.excluded(rankings, "rankings", "reward", "for which rankings are drawn")
        return _from_drawn_rankings(
            scores, reward, cutoff, baseline, offsets=offsets, n_samples=n_samples, rng=rng, sampler=sampler,
            n_threads=n_threads, out=out, first_query=first_query,
        )  # fmt: skip
    if rewards is not None:
        return _from_given_rankings(
            scores, validation.given(rankings, "rankings", " for rewards"), rewards, importance_weights, baseline,
            offsets=offsets, n_threads=n_threads, out=out,
        )  # fmt: skip
    relevance = validation.given(relevance, "relevance", ", or rewards or reward")
    rank_weights = validation.given(rank_weights, "rank_weights", ", or rewards or reward")
    baseline = validation.flag(baseline, "baseline")
    return sampled_estimate(
        EstimatorKind.POLICY_WITH_BASELINE if baseline else EstimatorKind.POLICY, scores, relevance, rank_weights,
        offsets=offsets, n_samples=n_samples, rankings=rankings, rng=rng, sampler=sampler, n_threads=n_threads,
        out=out, first_query=first_query, fewest_samples=2 if baseline else 1,
    )  # fmt: skip


def _from_given_rankings(
    scores: ArrayLike,
    rankings: ArrayLike,
    rewards: ArrayLike,
    importance_weights: ArrayLike | None,
    baseline: bool | ArrayLike,
    *,
    offsets: ArrayLike | None,
    n_threads: int | None,
    out: Any,
) -> FloatArray:
    """Check all arguments, then weigh the rankings' log-probabilities with what they are worth."""
    batch = offsets is not None
    scores_ = validation.real_array(scores, "scores")
    offsets_ = validation.query_offsets(offsets, scores_.size)
    rankings_ = validation.given_rankings(rankings, offsets_, None, batch=batch, prefixes=True)
    shape = rankings_.shape[0], rankings_.shape[1]
    rewards_ = validation.like_rankings(rewards, "rewards", shape, batch)
    weights = None
    if importance_weights is not None:
        weights = validation.like_rankings(
            importance_weights, "importance_weights", shape, batch, may_be_small=baseline is not True
        )
        validation.within(weights.reshape(-1), "importance_weights", 0.0, np.inf)
    taken_off = validation.reward_baseline(baseline, shape, per_ranking=True)
    if taken_off is None:
        validation.count(shape[1], "the number of rankings, with baseline=True,", 2)
    threads = _threads.resolve_threads(validation.threads(n_threads))
    out = validation.output(out, scores_.shape)
    advantage = advantage_over_others(rewards_, weights) if taken_off is None else rewards_ - taken_off
    advantage = advantage / shape[1] if weights is None else advantage * (weights / shape[1])
    return validation.deliver(log_prob_gradient(scores_, offsets_, rankings_, advantage, threads), out)


def advantage_over_others(rewards: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Rewards (n_queries, n_rankings) less the mean of the other rankings' of the query, weighted if there are weights.

    Others without any weight have mean 0. Equal rewards leave exactly nothing: they are counted from that of the
    heaviest ranking, which is part of every mean but its own, so that none has more rounding error than its terms.
    """
    n_rankings = rewards.shape[1]
    if weights is None:
        above_first = rewards - rewards[:, :1]
        return (above_first - above_first.mean(axis=1, keepdims=True)) * (n_rankings / (n_rankings - 1))
    of_heaviest = np.take_along_axis(rewards, weights.argmax(axis=1, keepdims=True), axis=1)
    above = rewards - of_heaviest
    weight_of_others = _sum_of_others(weights)
    some = weight_of_others > 0.0
    mean = np.divide(_sum_of_others(weights * above), weight_of_others, out=-of_heaviest * ~some, where=some)
    return above - mean


def _sum_of_others(values: FloatArray) -> FloatArray:
    """Sum of each row but for the entry at hand, by sums from either end: a large entry leaves no rounding error."""
    before, after = np.zeros_like(values), np.zeros_like(values)
    np.cumsum(values[:, :-1], axis=1, out=before[:, 1:])
    after[:, :-1] = np.cumsum(values[:, :0:-1], axis=1)[:, ::-1]
    return before + after


def _from_drawn_rankings(
    scores: ArrayLike,
    reward: Callable[[RankingArray], ArrayLike],
    cutoff: int | None,
    baseline: bool | ArrayLike,
    *,
    offsets: ArrayLike | None,
    n_samples: int,
    rng: RandomState,
    sampler: str,
    n_threads: int | None,
    out: Any,
    first_query: int,
) -> FloatArray:
    """Check all arguments, then draw block after block and weigh the log-probabilities with what the caller says.

    The mean of the others is known at the end only: until then the log-probabilities are summed with the rewards and,
    apart from these, without, so that no ranking is drawn or rewarded twice.
    """
    scores_ = validation.real_array(scores, "scores")
    offsets_ = validation.query_offsets(offsets, scores_.size)
    n_queries = offsets_.size - 1
    n_samples = validation.count(n_samples, "n_samples", 1)
    taken_off = validation.reward_baseline(baseline, (n_queries, n_samples), per_ranking=False)
    validation.count(n_samples, "n_samples", 2 if taken_off is None else 1)
    threads = _threads.resolve_threads(validation.threads(n_threads))
    out = validation.output(out, scores_.shape)
    blocks = drawn_blocks(
        scores_, reward, cutoff, offsets=offsets, n_samples=n_samples, rng=rng, sampler=sampler, n_threads=n_threads,
        first_query=first_query,
    )  # fmt: skip
    weighted, plain = np.zeros(scores_.size), np.zeros(scores_.size)
    first, total, largest = None, np.zeros(n_queries), np.zeros(n_queries)
    for rankings, rewards in blocks:
        largest = np.maximum(largest, np.abs(rewards).max(axis=1))
        if first is None:
            first = rewards[:, :1] if taken_off is None else taken_off
        above = rewards - first
        weighted += log_prob_gradient(scores_, offsets_, rankings, above, threads)
        if taken_off is None:
            plain += log_prob_gradient(scores_, offsets_, rankings, np.ones(above.shape), threads)
            total += above.sum(axis=1)
    validation.queries_within_limits(largest, "reward(rankings)")
    if taken_off is not None:
        return validation.deliver(weighted / n_samples, out)
    mean = np.repeat(total / n_samples, np.diff(offsets_))
    return validation.deliver((weighted - mean * plain) / (n_samples - 1), out)


def drawn_blocks(
    scores: ArrayLike,
    reward: Callable[[RankingArray], ArrayLike],
    cutoff: int | None,
    *,
    offsets: ArrayLike | None,
    n_samples: int,
    rng: RandomState,
    sampler: str,
    n_threads: int | None,
    first_query: int,
) -> Iterator[tuple[RankingArray, FloatArray]]:
    """Check all arguments; then an iterator over blocks of rankings, (n_queries, n, K), and what they are worth."""
    batch = offsets is not None
    scores_ = validation.real_array(scores, "scores")
    offsets_ = validation.query_offsets(offsets, scores_.size)
    n_queries, longest = offsets_.size - 1, validation.longest_list(offsets_)
    ranks = validation.ranks_of_lists(cutoff, longest)
    validation.choice(sampler, "sampler", tuple(SAMPLERS))
    validation.require(callable(reward), f"reward must be a function, got {validation.shown(reward)}", TypeError)
    threads = _threads.resolve_threads(validation.threads(n_threads))
    first_query = validation.count(first_query, "first_query", 0)
    key = validation.stream_key(validation.check_random_state(rng))

    def blocks() -> Iterator[tuple[RankingArray, FloatArray]]:
        for block in range((n_samples + RANKINGS_PER_CALL - 1) // RANKINGS_PER_CALL):
            shape = n_queries, min(RANKINGS_PER_CALL, n_samples - block * RANKINGS_PER_CALL)
            rankings = np.empty((*shape, ranks), dtype=np.int32)
            _samplers.sample_rankings(
                SAMPLERS[sampler], scores_, offsets_, shape[1], ranks, _key_of_block(key, block), first_query, threads,
                rankings,
            )  # fmt: skip
            given_away = (rankings if batch else rankings[0]).copy()  # the caller may write to it
            yield rankings, validation.rewards_of_block(reward(given_away), shape, batch)

    return blocks()


def _key_of_block(key: KeyArray, block: int) -> KeyArray:
    """Key of the random streams of one block: that of the call for the first one."""
    if block == 0:
        return key
    sequence = np.random.SeedSequence([int(word) for word in key], spawn_key=(block,))
    return sequence.generate_state(2, np.uint64).astype(np.uint64)


def placement_policy_gradient(
    scores: ArrayLike,
    relevance: ArrayLike,
    rank_weights: ArrayLike,
    *,
    baseline: bool = False,
    offsets: ArrayLike | None = None,
    n_samples: int = 100,
    rankings: ArrayLike | None = None,
    rng: RandomState = None,
    sampler: str = "auto",
    n_threads: int | None = None,
    out: FloatArray | None = None,
    first_query: int = 0,
) -> FloatArray:
    """Estimate the gradient of the expected metric by REINFORCE on placements.

    Each placement is credited with the reward from its own rank on, as it cannot change what stands above ::

        g = 1 / N sum_i sum_k (PR_ik - b_ik) d log pi(y_ik | y_i1 .. y_i(k-1)) / df,
        PR_ik = sum_{x >= k} theta_x rho_{y_ix}

    with b_ik 0 or, with ``baseline``, the mean PR at rank k of the other N - 1 rankings. Without a baseline these are
    the numbers of ``pl_rank_1``, which is how PL-Rank was derived.

    Parameters
    ----------
    baseline : bool
        Whether to subtract from each reward the mean of the others' at that rank; as in ``policy_gradient``.
    scores, relevance, rank_weights, offsets, n_samples, rankings, rng, sampler, n_threads, out, first_query
        As in ``pl_rank_3``.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Gradient of the sum over queries of the expected metric: the direction of ascent.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    O(N (D + K)) after sampling. Source: Oosterhuis, "Computationally Efficient Optimization of Plackett-Luce Ranking
    Models for Relevance and Fairness", SIGIR 2021.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.placement_policy_gradient([0.0, 0.0], [0, 1], [1.0], rankings=[[0], [1]], baseline=True)
    array([-0.5,  0.5])
    """
    baseline = validation.flag(baseline, "baseline")
    return sampled_estimate(
        EstimatorKind.PLACEMENT_WITH_BASELINE if baseline else EstimatorKind.PLACEMENT, scores, relevance, rank_weights,
        offsets=offsets, n_samples=n_samples, rankings=rankings, rng=rng, sampler=sampler, n_threads=n_threads,
        out=out, first_query=first_query, fewest_samples=2 if baseline else 1,
    )  # fmt: skip
