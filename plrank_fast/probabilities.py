"""Expectations under a Plackett-Luce policy."""

from __future__ import annotations

from numpy.typing import ArrayLike

from plrank_fast import _sampled, validation
from plrank_fast.gradients import sampled_estimate
from plrank_fast.validation import FloatArray, RandomState

METHODS = ("sample",)


def expected_metric(
    scores: ArrayLike,
    relevance: ArrayLike,
    rank_weights: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    method: str = "sample",
    n_samples: int = 100,
    rankings: ArrayLike | None = None,
    rng: RandomState = None,
    sampler: str = "auto",
    n_threads: int | None = None,
    out: FloatArray | None = None,
    first_query: int = 0,
) -> FloatArray:
    """Compute the expected metric of each query: E[sum_k theta_k rho_{y_k}] over rankings y drawn from the policy.

    Parameters
    ----------
    scores, relevance, rank_weights, offsets
        As in ``pl_rank_3``.
    method : {"sample"}
        "sample": the mean over ``n_samples`` rankings.
    n_samples, rankings, rng, sampler, n_threads, first_query
        As in ``pl_rank_3``.
    out : ndarray, shape (n_queries,), float64, optional
        Where to write the result.

    Returns
    -------
    ndarray, shape (n_queries,), float64
        0 for an empty query.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.expected_metric([0.0, 0.0], [1, 1], [1.0, 0.5], n_samples=10, rng=0)
    array([1.5])
    """
    validation.choice(method, "method", METHODS)
    return sampled_estimate(
        _sampled.METRIC, scores, relevance, rank_weights, offsets=offsets, n_samples=n_samples, rankings=rankings,
        rng=rng, sampler=sampler, n_threads=n_threads, out=out, first_query=first_query,
    )  # fmt: skip
