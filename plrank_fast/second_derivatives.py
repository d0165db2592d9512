"""Products of the Hessian of the expected metric with vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import _estimates, validation
from plrank_fast.validation import FloatArray


def pl_rank_exact_hvp(
    scores: ArrayLike,
    relevance: ArrayLike,
    rank_weights: ArrayLike,
    vector: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    rtol: float = 1e-6,
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
        Direction in which the gradient is differentiated: 0 in a query, or of a largest magnitude from 2**-200 to
        2**200.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    rtol : float
        Relative tolerance, from 1e-10 to below 1, for each query: the norm of the product's error is at most ``rtol``
        times the norm of the product, or times max|vector| max|theta| max|rho| / 1000 if that is larger.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Derivative of ``pl_rank_exact`` along the vector. The Hessian is symmetric, so this is also the gradient of the
        inner product of vector and ``pl_rank_exact``.

    Raises
    ------
    ArithmeticError
        If the error is found to exceed ``rtol``, as it may for up to 1e-7 where relevance has alternating signs; the
        message has the tolerance reached.

    Notes
    -----
    The integrands of ``pl_rank_exact`` are differentiated along the vector at nodes of their own bound.
    ``pl_rank_exact(hessian=True)`` computes the diagonal of the Hessian alone.

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
    largest = np.zeros(offsets_.size - 1)
    np.maximum.at(largest, query, np.abs(direction))
    size = largest[query]
    unit = np.divide(direction, size, out=np.zeros(size.size), where=size > 0.0)
    _, product = _estimates.exact(
        scores_, relevance, rank_weights, offsets_, rtol, n_threads, None, gradient=True, hessian=True, direction=unit
    )
    return size * product
