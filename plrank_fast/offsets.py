"""Ragged batches: the documents of all queries in one array, and where each query starts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast.validation import IntArray


def offsets_from_qid(qid: ArrayLike) -> IntArray:
    """Offsets of a batch whose documents carry the identifier of their query.

    Parameters
    ----------
    qid : array_like, shape (n_docs,)
        Query of each document: integers or strings, the documents of one query next to each other.

    Returns
    -------
    ndarray, shape (n_queries + 1,), int64
        Documents of query q are those from ``offsets[q]`` up to ``offsets[q + 1]``.

    Raises
    ------
    ValueError
        If a query returns after another one has begun, or ``qid`` is not 1-dimensional.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.offsets_from_qid([7, 7, 3, 3, 3])
    array([0, 2, 5])
    """
    if qid is None:
        raise TypeError("qid must be an array, got None")
    if isinstance(qid, np.ma.MaskedArray):
        raise TypeError("qid must not be a masked array")
    try:
        array = np.asarray(qid)
    except ValueError as error:
        raise ValueError(f"qid cannot be read as an array: {error}") from error
    if array.ndim != 1:
        raise ValueError(f"qid must be 1-dimensional, got shape {array.shape}")
    if array.size == 0:
        return np.zeros(1, dtype=np.int64)
    if array.dtype.kind not in "iuSUT":
        raise TypeError(f"qid must hold integers or strings, got dtype {array.dtype}")
    starts = np.flatnonzero(array[1:] != array[:-1]) + 1
    queries = array[np.concatenate([[0], starts])]
    distinct, first_seen, times = np.unique(queries, return_index=True, return_counts=True)
    if distinct.size < queries.size:
        returning = queries[first_seen[times > 1].min()]
        raise ValueError(f"qid must keep each query's documents together, got query {returning} in separate places")
    return np.concatenate([[0], starts, [array.size]]).astype(np.int64)


def offsets_from_group(sizes: ArrayLike) -> IntArray:
    """Offsets of a batch described by its list lengths (the ``group`` of LightGBM and XGBoost).

    Parameters
    ----------
    sizes : array_like, shape (n_queries,)
        Number of documents of each query; 0 is an empty query.

    Returns
    -------
    ndarray, shape (n_queries + 1,), int64

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.offsets_from_group([2, 0, 3])
    array([0, 2, 2, 5])
    """
    array = validation.integer_array(sizes, "sizes")
    if array.ndim != 1:
        raise ValueError(f"sizes must be 1-dimensional, got shape {array.shape}")
    if array.size and array.min() < 0:
        raise ValueError(f"sizes must not be negative, got {array.min()} at index {int(array.argmin())}")
    if sum(array.tolist()) > validation.LARGEST_COUNT:
        raise ValueError("sizes must add up to at most 2**62 documents")
    return np.concatenate([[0], np.cumsum(array)]).astype(np.int64)
