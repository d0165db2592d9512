"""Expectations under a Plackett-Luce policy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast._core.gradients import exact as _exact
from plrank_fast._core.gradients.sampled import EstimatorKind
from plrank_fast._core.runtime import threads as _threads
from plrank_fast.gradients import NOISES, checked_noise, noise_of_lone_query, pl_rank_exact, sampled_estimate
from plrank_fast.validation import FloatArray, RandomState

METHODS = ("exact", "sample")


def exact_expectation(
    scores: ArrayLike,
    relevance: ArrayLike,
    rank_weights: ArrayLike,
    *,
    offsets: ArrayLike | None,
    rtol: float,
    noise: str,
    sigma: float,
    n_threads: int | None,
    out: Any,
) -> FloatArray:
    """Check all arguments, then integrate the expected metric of each query."""
    if offsets is None and (of_noise := noise_of_lone_query(noise, sigma)) is not None:
        solution: FloatArray | None = _exact.lone_solution(
            scores, relevance, rank_weights, rtol, validation.SMALLEST_TOLERANCE, *of_noise, n_threads, out, False, True
        )  # fmt: skip
        if solution is not None:
            return solution
    scores_ = validation.real_array(scores, "scores")
    offsets_ = validation.query_offsets(offsets, scores_.size)
    relevance_ = validation.of_documents(relevance, "relevance", scores_, offsets_)
    weights = validation.weights_of_ranks(rank_weights, offsets_)
    rtol = validation.relative_tolerance(rtol)
    of_noise = checked_noise(noise, sigma)
    threads = _threads.resolve_threads(validation.threads(n_threads))
    value = np.zeros(offsets_.size - 1)
    out = validation.output(out, value.shape)
    missed = np.zeros(offsets_.size - 1)
    _exact.solve_batch(scores_, relevance_, weights, offsets_, rtol, threads, None, None, value, missed, *of_noise)
    validation.held(missed, rtol)
    return validation.deliver(value, out)


def expected_metric(
    scores: ArrayLike,
    relevance: ArrayLike,
    rank_weights: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    method: str = "exact",
    rtol: float = 1e-6,
    noise: str = "gumbel",
    sigma: float = 1.0,
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
    method : {"exact", "sample"}
        "exact": by quadrature, as ``pl_rank_exact``; "sample": the mean over ``n_samples`` rankings.
    rtol : float
        For "exact": the error is at most ``rtol`` times sum|theta| max|rho|; at least 1e-10 and below 1.
    noise, sigma
        For "exact": as in ``pl_rank_exact``.
    n_samples, rankings, rng, sampler, first_query
        For "sample": as in ``pl_rank_3``.
    n_threads
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

    Notes
    -----
    O(Q D K) per query with Q nodes for "exact"; O(N K) after sampling for "sample".

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.expected_metric([0.0, 0.0], [1, 1], [1.0, 0.5])
    array([1.5])
    """
    validation.choice(method, "method", METHODS)
    validation.goes_with(rankings, "rankings", method == "sample", "method='sample'")
    if method == "exact":
        return exact_expectation(
            scores, relevance, rank_weights, offsets=offsets, rtol=rtol, noise=noise, sigma=sigma, n_threads=n_threads,
            out=out,
        )  # fmt: skip
    validation.relative_tolerance(rtol)
    validation.choice(noise, "noise", NOISES)
    sigma = validation.factor(sigma, "sigma")
    only = noise == "gumbel" and sigma == 1.0
    validation.require(only, f"noise and sigma can only be set with method='exact', got {noise!r} and {sigma}")
    return sampled_estimate(
        EstimatorKind.METRIC, scores, relevance, rank_weights, offsets=offsets, n_samples=n_samples, rankings=rankings,
        rng=rng, sampler=sampler, n_threads=n_threads, out=out, first_query=first_query,
    )  # fmt: skip


def rank_probabilities(
    scores: ArrayLike,
    cutoff: int,
    *,
    offsets: ArrayLike | None = None,
    n_threads: int | None = None,
    out: FloatArray | None = None,
) -> FloatArray:
    """Compute the probability that each document stands at each of the first ``cutoff`` ranks of its query.

    With the arrival times of ``pl_rank_exact``: P(rank of d = k) =
    int w_d q_d [z^{k - 1}] prod_{i != d} (q_i + p_i z) dt.

    Parameters
    ----------
    scores, offsets, n_threads
        As in ``pl_rank_3``.
    cutoff : int
        Number of ranks, K.
    out : ndarray, shape (n_docs, K), float64, optional
        Where to write the result.

    Returns
    -------
    ndarray, shape (n_docs, K), float64
        Each column of a query sums to one to within 1e-8, and so does each row if K is the number of its documents;
        columns past that number are zero.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.
    MemoryError
        If O(Q (D + K)) memory per thread cannot be allocated; the message gives the size.

    Notes
    -----
    O(Q D K) with Q nodes, about twice the time of ``pl_rank_exact``.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.rank_probabilities([0.0, 0.0], 2)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    if offsets is None and out is None:
        probabilities = _exact.lone_rank_probabilities(scores, cutoff, n_threads)
        if probabilities is not None:
            return probabilities
    scores_ = validation.real_array(scores, "scores")
    cutoff = validation.count(cutoff, "cutoff", 0)
    offsets_ = validation.query_offsets(offsets, scores_.size)
    threads = _threads.resolve_threads(validation.threads(n_threads))
    shape = validation.addressable((scores_.size, cutoff), 8, "cutoff")
    out = validation.output(out, shape)
    probabilities = np.zeros(shape)
    _exact.rank_probabilities_batch(scores_, offsets_, threads, probabilities)
    return validation.deliver(probabilities, out)


def exposure(
    scores: ArrayLike,
    rank_weights: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    n_threads: int | None = None,
    out: FloatArray | None = None,
) -> FloatArray:
    """Compute the expected exposure of each document: sum_k theta_k P(rank of d = k).

    Parameters
    ----------
    scores, rank_weights, offsets, n_threads
        As in ``pl_rank_3``; rank weights are the attention that users give to each rank.
    out : ndarray, shape (n_docs,), float64, optional
        Where to write the result.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Sums to sum_k theta_k over the documents of a query with at least K of them, to within 1e-8 of the sum of the
        absolute rank weights.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    From ``rank_probabilities``: O(Q D K) time, O(D K) memory. Its vector-Jacobian product is ``exposure_vjp``.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.exposure([0.0, 0.0], [1.0, 0.5])
    array([0.75, 0.75])
    """
    if offsets is None:
        exposures = _exact.lone_exposure(scores, rank_weights, n_threads, out)
        if exposures is not None:
            return exposures
    scores_ = validation.real_array(scores, "scores")
    offsets_ = validation.query_offsets(offsets, scores_.size)
    weights = validation.weights_of_ranks(rank_weights, offsets_)
    validation.threads(n_threads)
    out = validation.output(out, scores_.shape)
    probabilities = rank_probabilities(scores_, weights.shape[1], offsets=offsets_, n_threads=n_threads)
    result = np.zeros(scores_.size)
    # rank after rank: a product of matrices gives a row other bits in one shape than in another, and so in a batch
    for probability, weight in zip(probabilities.T, weights.T, strict=True):
        result += probability * (weight if weight.size == 1 else np.repeat(weight, np.diff(offsets_)))
    return validation.deliver(result, out)


def exposure_vjp(
    scores: ArrayLike,
    rank_weights: ArrayLike,
    cotangent: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    rtol: float = 1e-6,
    n_threads: int | None = None,
    out: FloatArray | None = None,
) -> FloatArray:
    """Compute the gradient of sum_d v_d exposure_d with respect to the scores, for a given v.

    sum_d v_d exposure_d is the expected metric with v as relevance, so this is ``pl_rank_exact`` by another name, with
    the same promise on ``rtol`` and the same cost; no Jacobian is formed.

    Parameters
    ----------
    scores, rank_weights, offsets, rtol, n_threads, out
        As in ``pl_rank_exact``.
    cotangent : array_like, shape (n_docs,)
        v: derivative of a scalar loss by each document's exposure; finite, of either sign.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Derivative of the loss by each score.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    O(Q D K), as ``pl_rank_exact``.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.exposure_vjp([0.0, 0.0], [1.0], [1.0, 0.0])
    array([ 0.25, -0.25])
    """
    scores_ = validation.real_array(scores, "scores")
    offsets_ = validation.query_offsets(offsets, scores_.size)
    cotangent_ = validation.of_documents(cotangent, "cotangent", scores_, offsets_)
    gradient = pl_rank_exact(
        scores_, cotangent_, rank_weights, offsets=offsets, rtol=rtol, n_threads=n_threads, out=out
    )
    assert isinstance(gradient, np.ndarray)
    return gradient
