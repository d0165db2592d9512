"""Products of the Hessian of the expected metric with vectors, by differences of exact gradients."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast.gradients import pl_rank_exact
from plrank_fast.validation import FloatArray

STEP = 0.01  # errors of the difference, some STEP**4, and of the gradients, 1e-10 / STEP, are alike


@validation.hinted
def pl_rank_exact_hvp(
    scores: ArrayLike,
    relevance: ArrayLike,
    rank_weights: ArrayLike,
    vector: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    n_threads: int | None = None,
) -> FloatArray:
    """Compute the Hessian of the expected metric times a vector.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights of the documents, all queries one after another; any finite values at any distance.
    relevance : array_like, shape (n_docs,)
        Gain rho of each document (see ``gains``), of any sign.
    rank_weights : array_like, shape (K,) or (n_queries, K)
        Weight theta of each rank (see ``dcg_weights``), one vector for all queries or one row for each. Ranks past the
        end of a query do not count.
    vector : array_like, shape (n_docs,)
        Direction in which the gradient is differentiated.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_threads : int, optional
        None or -1: all available processors; -2: all but one.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Derivative of ``pl_rank_exact`` along the vector. The Hessian is symmetric, so this is also the gradient of the
        inner product of vector and ``pl_rank_exact``.

    Notes
    -----
    Four gradients at ``rtol=1e-10`` give a difference of fourth order. In each query, the norm of the error is below
    1e-7 of the largest entry of the vector times the norm of the gradient, or times max|theta| max|rho| if that is
    larger. ``pl_rank_exact(hessian=True)`` computes the diagonal of the Hessian alone.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.pl_rank_exact_hvp([1.0, 0.0], [1.0, 0.0], [1.0], [1.0, 0.0]).round(6)
    array([-0.090858,  0.090858])
    """
    scores_ = validation.real_array(scores, "scores")
    offsets_ = validation.query_offsets(offsets, scores_.size)
    direction = validation.of_documents(vector, "vector", scores_, offsets_)
    query = np.repeat(np.arange(offsets_.size - 1), np.diff(offsets_))
    largest, highest = np.zeros(offsets_.size - 1), np.full(offsets_.size - 1, -np.inf)
    np.maximum.at(largest, query, np.abs(direction))
    np.maximum.at(highest, query, scores_)
    size = largest[query]
    unit = np.divide(direction, size, out=np.zeros(size.size), where=size > 0.0)
    with np.errstate(over="ignore"):  # beyond the largest double: the item is never placed
        below = np.maximum(scores_ - highest[query], -np.finfo(np.float64).max)
    product = np.zeros(size.size)
    for steps, weight in ((1, 2 / 3), (-1, -2 / 3), (2, -1 / 12), (-2, 1 / 12)):
        gradient = pl_rank_exact(
            below + steps * STEP * unit, relevance, rank_weights, offsets=offsets_, rtol=1e-10, n_threads=n_threads
        )
        assert isinstance(gradient, np.ndarray)
        product += weight / STEP * gradient
    return size * product
