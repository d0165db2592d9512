"""Ragged batches: the documents of all queries are concatenated in one array, and offsets mark each query's start."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast.validation import IntArray


def offsets_from_qid(qid: ArrayLike) -> IntArray:
    """Return the offsets of a batch whose documents carry the identifier of their query.

    Parameters
    ----------
    qid : array_like, shape (n_docs,)
        Query of each document: integers, strings or bytes, in arrays of any kind (object arrays, pandas, polars and
        Arrow columns, categorical ones too), or whole numbers up to 2**53 in floating point, into which a merge turns
        integers. The documents of a query must follow one another.

    Returns
    -------
    ndarray, shape (n_queries + 1,), int64
        Documents of query q are those from ``offsets[q]`` up to ``offsets[q + 1]``.

    Notes
    -----
    Neighbours are compared in O(n_docs) time. The check that no query returns takes O(n_queries) memory and no sorting.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.offsets_from_qid([7, 7, 3, 3, 3])
    array([0, 2, 5])
    >>> plr.offsets_from_qid(["shoes", "shoes", "red socks"])
    array([0, 2, 3])
    """
    array = validation.query_identifiers(qid)
    starts = np.flatnonzero(array[1:] != array[:-1]) + 1
    first = np.concatenate([np.zeros(min(array.size, 1), dtype=np.int64), starts])
    validation.distinct(array[first].tolist(), first, "qid must keep each query's documents together")
    return np.append(first, array.size).astype(np.int64)


def offsets_from_group(sizes: ArrayLike) -> IntArray:
    """Return the offsets of a batch described by its list lengths (the ``group`` of LightGBM and XGBoost).

    Parameters
    ----------
    sizes : array_like, shape (n_queries,)
        Number of documents of each query; 0 is an empty query.

    Returns
    -------
    ndarray, shape (n_queries + 1,), int64
        Documents of query q are those from ``offsets[q]`` up to ``offsets[q + 1]``.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.offsets_from_group([2, 0, 3])
    array([0, 2, 2, 5])
    """
    array = validation.list_lengths(sizes, "sizes")
    offsets = np.zeros(array.size + 1, dtype=np.int64)
    np.add.accumulate(array, out=offsets[1:])
    return offsets
