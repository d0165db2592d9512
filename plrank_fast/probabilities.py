"""Expectations under a Plackett-Luce policy."""

from __future__ import annotations

from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import _estimates, validation
from plrank_fast._core.gradients import exact as _exact
from plrank_fast._core.gradients.exposure import EXPOSURE as _EXPOSURE
from plrank_fast._core.gradients.pl_rank import METRIC as _METRIC
from plrank_fast.validation import FloatArray, RandomState

RTOL_OF_EXPOSURE = 1e-9


def expected_metric(
    scores: ArrayLike,
    relevance: ArrayLike,
    rank_weights: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    stop_probability: ArrayLike | None = None,
    method: validation.ExpectationMethod = "exact",
    rtol: float = 1e-6,
    noise: validation.Noise = "gumbel",
    sigma: float = 1.0,
    n_samples: int = 100,
    rankings: ArrayLike | None = None,
    rng: RandomState = None,
    sampler: validation.Sampler = "auto",
    n_threads: int | None = None,
    out: FloatArray | None = None,
) -> FloatArray:
    """Compute the expected metric of each query: E[sum_k theta_k rho_{y_k}] over rankings y drawn from the policy.

    With ``stop_probability``, each document counts as often as a reader comes to it (see ``pl_rank_exact``).

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights of the documents, all queries one after another; any finite values at any distance.
    relevance : array_like, shape (n_docs,)
        Gain rho of each document (see ``gains``), of any sign.
    rank_weights : array_like, shape (K,) or (n_queries, K)
        Weight theta of each rank (see ``dcg_weights``), one vector for all queries or one row for each. Ranks past the
        end of a query do not count.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    stop_probability : array_like, shape (n_docs,), optional
        The probability, from 0 to 1, that a reader who reaches a document stops there; None means 0. The metric is then
        a cascade metric, such as the reciprocal rank (MRR), success (hit rate) or ERR.
    method : {"exact", "sample"}
        "exact": quadrature, which takes ``stop_probability``, ``rtol``, ``noise`` and ``sigma``. "sample": the mean
        over rankings, which takes ``n_samples``, ``rankings``, ``rng`` and ``sampler``.
    rtol : float
        The error is at most ``rtol`` times sum|theta| max|rho|; from 1e-10 to below 1.
    noise : {"gumbel", "normal"}
        Noise of the scores. Gumbel noise with ``sigma`` 1 is the Plackett-Luce model, normal noise Thurstone's, Case V.
    sigma : float
        Scale of the noise, positive.
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
    out : ndarray, shape (n_queries,), float64, optional
        Where to write the result.

    Returns
    -------
    ndarray, shape (n_queries,), float64
        0 for an empty query.

    Notes
    -----
    "exact" takes O(Q D K) per query with Q nodes, "sample" O(N K) after sampling.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.expected_metric([0.0, 0.0], [1, 1], [1.0, 0.5])
    array([1.5])
    """
    if type(method) is str and method == "exact" and rankings is None:
        return _estimates.exact(
            scores, relevance, rank_weights, offsets, rtol, n_threads, out, True, False, False, noise, sigma,
            stop_probability,
        )  # fmt: skip
    validation.choice(method, "method", validation.ExpectationMethod)
    validation.goes_with(rankings, "rankings", method == "sample", "method='sample'")
    validation.goes_with(stop_probability, "stop_probability", method == "exact", "method='exact'")
    validation.relative_tolerance(rtol)
    validation.choice(noise, "noise", validation.Noise)
    sigma = validation.factor(sigma, "sigma")
    only = noise == "gumbel" and sigma == 1.0
    validation.require(only, f"noise and sigma can only be set with method='exact', got {noise!r} and {sigma}")
    return _estimates.sampled_after_checks(
        _METRIC, scores, relevance, rank_weights, offsets, n_samples, rankings, rng, sampler, n_threads,
        out, one_per_query=True,
    )  # fmt: skip


@overload
def expected_ap(
    scores: ArrayLike, relevance: ArrayLike, cutoff: int | None = None, *, empty: float = 0.0,
    offsets: ArrayLike | None = None, rtol: float = 1e-6, gradient: Literal[False] = False,
    n_threads: int | None = None,
) -> FloatArray: ...  # fmt: skip
@overload
def expected_ap(
    scores: ArrayLike, relevance: ArrayLike, cutoff: int | None = None, *, empty: float = 0.0,
    offsets: ArrayLike | None = None, rtol: float = 1e-6, gradient: Literal[True], n_threads: int | None = None,
) -> tuple[FloatArray, FloatArray]: ...  # fmt: skip
@overload
def expected_ap(
    scores: ArrayLike, relevance: ArrayLike, cutoff: int | None = None, *, empty: float = 0.0,
    offsets: ArrayLike | None = None, rtol: float = 1e-6, gradient: bool, n_threads: int | None = None,
) -> FloatArray | tuple[FloatArray, FloatArray]: ...  # fmt: skip
def expected_ap(
    scores: ArrayLike,
    relevance: ArrayLike,
    cutoff: int | None = None,
    *,
    empty: float = 0.0,
    offsets: ArrayLike | None = None,
    rtol: float = 1e-6,
    gradient: bool = False,
    n_threads: int | None = None,
) -> FloatArray | tuple[FloatArray, FloatArray]:
    r"""Compute the expected average precision of each query under the policy and, if asked for, its gradient, exactly.

    Average precision is the mean of the precision at the rank of each relevant document, as ``ap`` of a deterministic
    ranking: relevant documents past the cutoff count 0.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights of the documents, all queries one after another; any finite values at any distance.
    relevance : array_like, shape (n_docs,)
        Documents above 0 are relevant.
    cutoff : int, optional
        Ranks that count, K; all of each query by default, which costs O(D) times as much as a few.
    empty : float
        Value of a query without relevant documents.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    rtol : float
        Relative tolerance, from 1e-10 to below 1. With R relevant documents, the error of a value is at most ``rtol``
        times its largest, min(K, R) / R, and the norm of the error of a query's gradient at most ``rtol`` times the
        gradient's norm, or times 1 / (1000 R) if that is larger.
    gradient : bool
        Whether to compute the gradient too.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    ndarray, shape (n_queries,), float64
        Expected average precision; ``empty`` for queries without relevant documents. With ``gradient`` a pair (values,
        gradient), the latter of shape (n_docs,): of the sum of the values, the direction of ascent.

    Raises
    ------
    ArithmeticError
        If the error is found to exceed ``rtol``, as at 1e-10 where all but one of 300 documents are relevant.

    Notes
    -----
    With the arrival times of ``pl_rank_exact`` and :math:`e^2 = 0`, the product of :math:`q_i + p_i z (1 + e \rho_i)`
    over documents counts arrivals by the powers of z and relevant ones by the power of e, so one integral serves as for
    DCG. The cost is O(Q D K) with Q nodes: a relevant document costs up to 2.5 times as much as in the gradient of DCG,
    and an irrelevant one the same.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> values, gradient = plr.expected_ap([0.0, 0.0], [1, 0], gradient=True)
    >>> values.round(6), gradient.round(6)
    (array([0.75]), array([ 0.125, -0.125]))
    """
    with_gradient, of_no_query = validation.flag(gradient, "gradient"), validation.real(empty, "empty", or_nan=True)
    batch = validation.batch(scores, relevance, validation.ABSENT, offsets, n_threads)
    if with_gradient:
        validation.warn_if_nothing_to_learn(batch)
    tolerance, n_ranks = validation.relative_tolerance(rtol), validation.ranks_that_count(cutoff, batch.longest)
    values, slopes, missed = _exact.average_precision(batch, n_ranks, tolerance, of_no_query, with_gradient)
    validation.tolerance_held(missed, tolerance)
    return (values, slopes) if with_gradient else values


def rank_probabilities(
    scores: ArrayLike,
    cutoff: int,
    *,
    offsets: ArrayLike | None = None,
    n_threads: int | None = None,
    out: FloatArray | None = None,
) -> FloatArray:
    r"""Compute the probability that each document stands at each of the first ``cutoff`` ranks of its query.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights of the documents, all queries one after another; any finite values at any distance.
    cutoff : int
        Number of ranks, K.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.
    out : ndarray, shape (n_docs, K), float64, optional
        Where to write the result.

    Returns
    -------
    ndarray, shape (n_docs, K), float64
        Each column of a query sums to one to within 1e-8, and so does each row if K is the number of its documents;
        columns past that number are zero.

    Raises
    ------
    MemoryError
        If O(Q (D + K)) memory per thread cannot be allocated; the message gives the size.

    Notes
    -----
    With the arrival times of ``pl_rank_exact``,

    .. math:: P(\text{rank of } d = k) = \int w_d q_d [z^{k - 1}] \prod_{i \ne d} (q_i + p_i z)\, dt

    The cost is O(Q D K) with Q nodes, about twice as much as ``pl_rank_exact``.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.rank_probabilities([0.0, 0.0], 2)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    batch = validation.batch(scores, validation.ABSENT, validation.ABSENT, offsets, n_threads)
    shape = batch.n_items, validation.count(cutoff, "cutoff", 0)
    validation.output(out, validation.addressable(shape, 8, "cutoff"))
    probabilities, missed = _exact.rank_probabilities(batch, shape[1])
    validation.tolerance_held(missed, 0.0)
    return validation.deliver(probabilities, out)


def exposure(
    scores: ArrayLike,
    rank_weights: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    rankings: ArrayLike | None = None,
    rtol: float = RTOL_OF_EXPOSURE,
    n_threads: int | None = None,
    out: FloatArray | None = None,
) -> FloatArray:
    """Compute the expected exposure of each document: sum_k theta_k P(rank of d = k), theta_k the attention to rank k.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights of the documents, all queries one after another; any finite values at any distance.
    rank_weights : array_like, shape (K,) or (n_queries, K)
        Weight theta of each rank (see ``dcg_weights``), one vector for all queries or one row for each. Ranks past the
        end of a query do not count.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    rankings : array_like of int, shape (N, length), or (n_queries, N, length) with ``offsets``, optional
        Rankings to average over in place of the policy's, each of length K or more, or of all documents.
    rtol : float
        Relative tolerance, from 1e-10 to below 1, for each query: the norm of the error is at most ``rtol`` times the
        norm of the exposures, or times max|theta| / 1000 if that is larger.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.
    out : ndarray, shape (n_docs,), float64, optional
        Where to write the result; untouched if the call fails or is interrupted.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Exposures, which sum to the rank weights that count in each query.

    Raises
    ------
    ArithmeticError
        If the error is found to exceed ``rtol``, as where weights of alternating signs cancel over a thousand ranks.

    Notes
    -----
    The exposure is the derivative of ``expected_metric`` by relevance, and costs as much as ``pl_rank_exact``, or
    O(N K) per query for given rankings. ``pl_rank_exact`` with v as relevance is the
    gradient of sum_d v_d exposure_d.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.exposure([0.0, 0.0], [1.0, 0.5])
    array([0.75, 0.75])
    >>> plr.exposure([0.0, 0.0], [1.0, 0.5], rankings=[[0, 1]])
    array([1. , 0.5])
    """
    if rankings is not None:
        validation.relative_tolerance(rtol)
        return _estimates.sampled(
            _EXPOSURE, scores, validation.ABSENT, rank_weights, offsets, 1, rankings, None, "auto", n_threads, out
        )
    return _estimates.exact(
        scores, validation.ABSENT, rank_weights, offsets, rtol, n_threads, out, gradient=True, exposure=True
    )


def inclusion_probabilities(
    scores: ArrayLike, k: int, *, offsets: ArrayLike | None = None, n_threads: int | None = None
) -> FloatArray:
    """Compute the probability that each document is among the first ``k`` of its query.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights of the documents, all queries one after another; any finite values at any distance.
    k : int
        Number of ranks.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Probabilities to within 1e-9 sqrt(k); 1 in queries of up to k documents. They are the ``exposure`` with k rank
        weights of 1.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.inclusion_probabilities([0.0, 0.0, 0.0], 2).round(4)
    array([0.6667, 0.6667, 0.6667])
    """
    ranks, scores_ = validation.count(k, "k", 0), validation.real_array(scores, "scores")
    return exposure(scores_, np.ones(min(ranks, scores_.size)), offsets=offsets, n_threads=n_threads)
