"""Scores whose expected exposures are given numbers, and the loss that trains scores towards them.

For rank weights that do not ascend, the exposures are the gradient of a convex function of the scores: of the expected
exposure-weighted sum of scores with Gumbel noise in descending order,

    Phi(f) = E max_y sum_k theta_k (f + noise)_{y_k},    dPhi / df_d = exposure of d.

So scores with given exposures exist if these lie in the interior of the convex hull of the exposures of single rankings
(any m documents together have less exposure than the first m ranks), and are unique up to a constant.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast.gradients import pl_rank_exact
from plrank_fast.probabilities import expected_metric, exposure
from plrank_fast.validation import FloatArray, IntArray

ACCURACY = 1e-8  # relative to the sum of the rank weights
MOST_STEPS, MOST_ROUNDS = 100, 200  # of Newton's method, and of conjugate gradients in each step
PANEL, NODES = 6.0, 16  # Gauss-Legendre along the path to the scores: end of the first panel, nodes of each


def scores_for_exposure(
    target: ArrayLike, rank_weights: ArrayLike, *, offsets: ArrayLike | None = None, n_threads: int | None = None
) -> FloatArray:
    """Find scores whose expected exposures are the ``target``, with mean 0 in each query.

    Parameters
    ----------
    target : array_like, shape (n_docs,)
        Exposure of each document, above 0. The targets of a query sum to its rank weights, and any m of its documents
        have less than the first m ranks.
    rank_weights : array_like, shape (K,) or (n_queries, K)
        Attention theta of each rank, at least 0 and not ascending.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Scores whose ``exposure`` is the target to within 1e-8 of the sum of the rank weights.

    Raises
    ------
    ValueError
        If no policy has these exposures; the message names the documents that ask for too much.

    Notes
    -----
    Newton's method minimises a convex function (see ``losses.exposure_matching``). Each step solves a linear system by
    conjugate gradients, whose products with the Jacobian of the exposures are gradients by ``pl_rank_exact``.

    Examples
    --------
    >>> import numpy as np, plrank_fast as plr
    >>> merit, attention = np.array([3.0, 2.0, 1.0]), np.array([1.0, 0.5])
    >>> scores = plr.scores_for_exposure(merit / merit.sum() * attention.sum(), attention)
    >>> plr.exposure(scores, attention).round(6)
    array([0.75, 0.5 , 0.25])
    """
    target_ = validation.real_array(target, "target")
    offsets_ = validation.query_offsets(offsets, target_.size)
    theta = _attention(rank_weights, target_, offsets_)
    validation.each(target_ > 0.0, target_, "target", "be above 0")
    for q, (first, last) in enumerate(pairwise(offsets_.tolist())):
        most = np.cumsum(np.sort(target_[first:last])[::-1])[: theta.shape[1]][: max(0, last - first - 1)]
        allowed = np.cumsum(theta[q])[: most.size]
        if last - first <= theta.shape[1] and (theta[q, : last - first] == theta[q, 0]).all():
            allowed *= 1.0 + ACCURACY  # any scores give all documents the exposure of each rank
        if (most >= allowed).any():
            m = int(np.argmax(most >= allowed))
            limit = f"less than {allowed[m]:g}, the weight of {m + 1} ranks"
            validation.require(False, f"target must give any {m + 1} documents of query {q} {limit}, got {most[m]:g}")
    query = np.repeat(np.arange(offsets_.size - 1), np.diff(offsets_))

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(query, values, offsets_.size - 1).astype(np.float64)

    def missing(scores: FloatArray) -> FloatArray:
        return target_ - exposure(scores, theta, offsets=offsets_, n_threads=n_threads)

    def newton_step(scores: FloatArray, rest: FloatArray) -> FloatArray:
        """Solve Jacobian times step = rest by conjugate gradients, preconditioned by the target."""
        step, direction = np.zeros(rest.size), rest / target_
        start = square = total(rest * direction)
        for _ in range(MOST_ROUNDS):
            product = pl_rank_exact(scores, direction, theta, offsets=offsets_, n_threads=n_threads)
            curvature = total(direction * product)
            going = (square > 1e-4 * start) & (curvature > 0.0)
            if not going.any():
                break
            size = np.divide(square, curvature, out=np.zeros(square.size), where=going)[query]
            step, rest = step + size * direction, rest - size * product
            before, square = square, total(rest * rest / target_)
            ratio = np.divide(square, before, out=np.zeros(square.size), where=going)
            direction = rest / target_ + ratio[query] * direction
        return step

    scores = np.log(target_)
    rest = missing(scores)
    for _ in range(MOST_STEPS):
        worst = np.zeros(offsets_.size - 1)
        np.maximum.at(worst, query, np.abs(rest))
        # half of it, as the exposures are computed
        rest = np.where((worst > 0.5 * ACCURACY * theta.sum(axis=1))[query], rest, 0.0)
        if not rest.any():
            break
        scores = scores + newton_step(scores, rest)
        rest = missing(scores)
    validation.require(not rest.any(), "target is too near to a limit: no scores with these exposures were found")
    return scores - (total(scores) / np.maximum(np.diff(offsets_), 1))[query]


def exposure_matching(
    scores: ArrayLike,
    target: ArrayLike,
    rank_weights: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    n_threads: int | None = None,
) -> tuple[FloatArray, FloatArray]:
    r"""Compute the Fenchel-Young loss whose gradient is the expected exposure minus a target.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights of the documents, all queries one after another; any finite values at any distance.
    target : array_like, shape (n_docs,)
        Exposure that each document should have, for instance in proportion to its merit. The targets of a query sum to
        its rank weights.
    rank_weights : array_like, shape (K,) or (n_queries, K)
        Attention theta of each rank, at least 0 and not ascending.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    values : ndarray, shape (n_queries,), float64
        Loss of each query, 0 where all scores are 0; it is lowest at ``scores_for_exposure(target, rank_weights)``.
    gradient : ndarray, shape (n_docs,), float64
        Derivative of the sum of the values by each score, to be descended.

    Notes
    -----
    .. math:: L(f) = \int_0^1 \sum_d f_d \, (E_d(s f) - \text{target}_d) \, ds

    is convex, and exact: perturbed optimisers sample this loss. Each part of the integral is twice as long as the one
    before, so the cost is one ``exposure`` and, where the scores of a query spread over more than 6,
    16 (1 + log2(spread / 6)) times ``expected_metric``.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.losses.exposure_matching([0.0, 0.0], [0.9, 0.6], [1.0, 0.5])
    (array([0.]), array([-0.15,  0.15]))
    """
    scores_ = validation.real_array(scores, "scores")
    offsets_ = validation.query_offsets(offsets, scores_.size)
    target_ = validation.within(validation.of_documents(target, "target", scores_, offsets_), "target", 0.0, np.inf)
    theta = _attention(rank_weights, target_, offsets_)
    batch: dict[str, Any] = {"offsets": offsets_, "n_threads": n_threads}
    lowest, highest = np.full(offsets_.size - 1, np.inf), np.full(offsets_.size - 1, -np.inf)
    query = np.repeat(np.arange(offsets_.size - 1), np.diff(offsets_))
    np.minimum.at(lowest, query, scores_)
    np.maximum.at(highest, query, scores_)
    with np.errstate(over="ignore"):
        spread = np.where(highest > lowest, highest - lowest, 1.0)
        validation.representable(spread, "scores of a query")
        path = (scores_ - lowest[query]) / spread[query]
        values = -np.bincount(query, path * target_, offsets_.size - 1).astype(np.float64)
        nodes, shares = np.polynomial.legendre.leggauss(NODES)
        begin, end = np.zeros(spread.size), np.minimum(spread, PANEL)
        while (begin < end).any():
            for node, share in zip(0.5 + 0.5 * nodes, 0.5 * shares, strict=True):
                scores_there = (begin + node * (end - begin))[query] * path
                metric = expected_metric(scores_there, path, theta, rtol=1e-10, **batch)
                values += share * (end - begin) / spread * metric
            begin, end = end, np.minimum(spread, 2.0 * end)
        values *= spread
    validation.representable(values, "scores and target")
    return values, exposure(scores_, theta, **batch) - target_


def _attention(rank_weights: ArrayLike, target: FloatArray, offsets: IntArray) -> FloatArray:
    """Return the rank weights of each query, (n_queries, K), whose sum equals the sum of its targets."""
    lengths = np.diff(offsets)
    theta = validation.weights_of_ranks(rank_weights, offsets)
    theta = np.where(np.arange(theta.shape[1]) < lengths[:, np.newaxis], theta, 0.0)
    descends = np.diff(theta, axis=1, append=0.0) <= 0.0
    validation.each(descends, theta, "rank_weights", "be at least 0 and not ascend")
    sums, expected = np.bincount(np.repeat(np.arange(lengths.size), lengths), target, lengths.size), theta.sum(axis=1)
    wrong = np.flatnonzero(np.abs(sums - expected) > ACCURACY * expected)
    if wrong.size:
        q = int(wrong[0])
        sums_of_query = f"the sum of rank_weights, {expected[q]:g}, in query {q}, got a sum of {sums[q]:g}"
        validation.require(False, f"target must sum to {sums_of_query}")
    return theta
