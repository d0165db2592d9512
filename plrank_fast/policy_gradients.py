"""Policy gradients of the expected metric: the general estimators that PL-Rank is measured against."""

from __future__ import annotations

from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast._core.gradients.sampled import EstimatorKind
from plrank_fast.gradients import sampled_estimate
from plrank_fast.validation import FloatArray, RandomState


def policy_gradient(
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
    """Estimate the gradient of the expected metric by REINFORCE on whole rankings.

    ::

        g = 1 / N sum_i (M_i - b_i) d log pi(y_i) / df,   M_i = sum_k theta_k rho_{y_ik}

    where pi is the probability of the first K ranks, and b_i is 0 or, with ``baseline``, the mean metric of the other
    N - 1 rankings. Unbiased either way; it uses nothing of what is known about the metric, hence its variance.

    Parameters
    ----------
    baseline : bool
        Take off each ranking's metric the mean of the others'. Needs at least two rankings. With more rankings than a
        block of random numbers holds (128), they are drawn twice.
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
    O(N (D + K)) after sampling. Source: Williams, "Simple statistical gradient-following algorithms for connectionist
    reinforcement learning", Machine Learning 1992; the leave-one-out baseline: Kool, van Hoof and Welling, "Buy 4
    REINFORCE samples, get a baseline for free!", 2019.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.policy_gradient([0.0, 0.0], [0, 1], [1.0], rankings=[[0], [1]])
    array([-0.25,  0.25])
    """
    baseline = validation.flag(baseline, "baseline")
    return sampled_estimate(
        EstimatorKind.POLICY_WITH_BASELINE if baseline else EstimatorKind.POLICY, scores, relevance, rank_weights,
        offsets=offsets, n_samples=n_samples, rankings=rankings, rng=rng, sampler=sampler, n_threads=n_threads,
        out=out, first_query=first_query, fewest_samples=2 if baseline else 1,
    )  # fmt: skip


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
        Take off each reward the mean of the others' at that rank; as in ``policy_gradient``.
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
