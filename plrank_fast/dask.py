"""Dask collections for boosted trees on several machines: partitions that hold whole queries, and their groups.

``lightgbm.DaskLGBMRanker`` and ``xgboost.dask.train`` call a custom objective on each worker with the partitions that
it holds. A query that is split between two workers is then two queries, each of which ranks a part of the documents,
and neither library reports it. `whole_queries` moves the ends of partitions so that no query is split, `group_sizes`
turns query identifiers into the group sizes of LightGBM, and `query_numbers` into numbers for XGBoost, which keeps 32
bits of an identifier::

    qid, X, y = whole_queries(qid, X, y)
    DaskLGBMRanker(objective=plrank_fast.lightgbm.Objective()).fit(X, y, group=group_sizes(qid))
    matrix = DaskDMatrix(client, X, y, qid=query_numbers(qid))
    xgboost.dask.train(client, {}, matrix, obj=plrank_fast.xgboost.Objective())
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plrank_fast import validation
from plrank_fast._shared.extras import import_extra
from plrank_fast.validation import IntArray

__all__ = ["group_sizes", "query_numbers", "whole_queries"]


def __dir__() -> list[str]:
    return __all__


EXTRA = "dask"

Queries = tuple[NDArray[Any], IntArray]  # a partition's identifiers in order, and how many rows each has


def whole_queries(qid: Any, *collections: Any) -> tuple[Any, ...]:
    """Move the ends of partitions so that each partition holds whole queries.

    A query that continues in the next partition is moved to the one in which it begins. This computes the identifiers,
    and the lengths of partitions where they are not known; everything else stays lazy.

    Parameters
    ----------
    qid : dask Array of shape (n_docs,), or dask Series
        Query of each document; the documents of a query follow one another.
    *collections : dask Arrays, DataFrames or Series of n_docs rows
        Other columns of the documents: features, labels, weights. They must have the partitions of ``qid``, by rows
        only.

    Returns
    -------
    tuple
        ``qid`` and the collections; the same objects if no query is split, but for sparse arrays: they become sparse
        matrices, which alone LightGBM and XGBoost take on Dask.

    Examples
    --------
    >>> import dask.array as da, numpy as np
    >>> from plrank_fast.dask import whole_queries
    >>> qid = da.from_array(np.array([7, 7, 8, 8, 8, 9]), chunks=3)
    >>> qid, rows = whole_queries(qid, da.arange(6, chunks=3))
    >>> rows.chunks
    ((5, 1),)
    """
    dask = import_extra("dask", EXTRA)
    names = ("qid", *(f"collections[{index}]" for index in range(len(collections))))
    given = tuple(_matrices(_by_rows(each, name)) for each, name in zip((qid, *collections), names, strict=True))
    queries, lengths = dask.compute(
        [dask.delayed(_queries_of)(part) for part in _parts(given[0])], [_lengths(each) for each in given[1:]]
    )
    rows = np.array([int(sizes.sum()) for _, sizes in queries])
    for name, found in zip(names[1:], lengths, strict=True):
        got = np.asarray(found, dtype=np.int64)
        validation.require(got.size == rows.size, f"{name} must have the partitions of qid, got {got.size} of them")
        validation.each(got == rows, got, name, "have the rows of qid in each partition")
    before = np.concatenate([[0], np.cumsum(rows)])
    after = _moved_ends(queries, before)
    return given if np.array_equal(before, after) else tuple(_recut(each, before, after) for each in given)


def group_sizes(qid: Any) -> Any:
    """Count the documents of each query, for ``DaskLGBMRanker.fit(group=...)``.

    Parameters
    ----------
    qid : dask Array of shape (n_docs,), or dask Series
        Query of each document, in the partitions that `whole_queries` makes.

    Returns
    -------
    dask Array of int64, shape (n_queries,)
        Numbers of documents, in the partitions of ``qid``.

    Examples
    --------
    >>> import dask.array as da, numpy as np
    >>> from plrank_fast.dask import group_sizes
    >>> group_sizes(da.from_array(np.array([7, 7, 8, 8, 8, 9]), chunks=((5, 1),))).compute()
    array([2, 3, 1])
    """
    dask = import_extra("dask", EXTRA)
    (queries,) = dask.compute([dask.delayed(_queries_of)(part) for part in _parts(_by_rows(qid, "qid"))])
    before = np.cumsum([0, *(int(sizes.sum()) for _, sizes in queries)])
    (cut,) = np.nonzero(before != _moved_ends(queries, before))
    parts = " and ".join(map(str, (cut[0] - 1, cut[0]) if cut.size else ()))
    remedy = "call plrank_fast.dask.whole_queries first"
    validation.require(not parts, f"qid has a query that is split between partitions {parts}: {remedy}")
    sizes = np.concatenate([np.zeros(0, dtype=np.int64), *(sizes for _, sizes in queries)])
    chunks = tuple(of_partition.size for _, of_partition in queries)
    return import_extra("dask.array", EXTRA).from_array(sizes, chunks=(chunks,))


def query_numbers(qid: Any) -> Any:
    """Number the queries 0, 1, ..., for ``DaskDMatrix(qid=...)``.

    XGBoost takes identifiers modulo 2**32 and without fractions, so that neighbours may become one query, and sorts by
    them; it takes no texts.

    Parameters
    ----------
    qid : dask Array of shape (n_docs,), or dask Series
        Query of each document, in the partitions that `whole_queries` makes.

    Returns
    -------
    dask Array of int64, shape (n_docs,)
        Number of each document's query, in the partitions of ``qid``.

    Examples
    --------
    >>> import dask.array as da, numpy as np
    >>> from plrank_fast.dask import query_numbers
    >>> query_numbers(da.from_array(np.array(["b", "b", "a", "a", "a", "c"]), chunks=((5, 1),))).compute()
    array([0, 0, 1, 1, 1, 2])
    """
    array, sizes = import_extra("dask.array", EXTRA), group_sizes(qid)
    documents = sizes.map_blocks(lambda part: part.sum(keepdims=True), chunks=(1,)).compute(scheduler="synchronous")
    numbers = array.from_array(np.arange(sizes.size), chunks=sizes.chunks)
    return array.map_blocks(np.repeat, numbers, sizes, chunks=(tuple(documents.tolist()),), dtype=np.int64)


def _matrices(collection: Any) -> Any:
    """Return sparse arrays as sparse matrices, and other collections as they are."""
    sample = getattr(collection, "_meta", None)
    if not hasattr(sample, "tocsr") or type(sample).__name__.endswith("_matrix"):
        return collection
    matrix = import_extra("scipy.sparse", "sklearn").csr_matrix
    return collection.map_blocks(matrix, dtype=collection.dtype, meta=matrix((0, 0), dtype=collection.dtype))


def _is_array(collection: Any) -> bool:
    return isinstance(collection, import_extra("dask.array", EXTRA).Array)


def _by_rows(collection: Any, name: str) -> Any:
    """Return a collection whose partitions are rows."""
    columns = getattr(collection, "numblocks", ())[1:] if hasattr(collection, "to_delayed") else None
    validation.of_type(columns is not None, name, "a Dask array, data frame or series", type(collection).__name__)
    by_columns = f"got {columns} parts by columns: rechunk it"
    validation.require(all(n == 1 for n in columns or ()), f"{name} must be partitioned by rows only, {by_columns}")
    return collection


def _parts(collection: Any) -> list[Any]:
    """Return the partitions without computing them."""
    return list(np.ravel(collection.to_delayed()))


def _lengths(collection: Any) -> Any:
    """Return the number of rows of each partition, delayed unless it is known."""
    if _is_array(collection) and not np.isnan(collection.chunks[0]).any():
        return list(collection.chunks[0])
    delayed = import_extra("dask", EXTRA).delayed
    return [delayed(len)(part) for part in _parts(collection)]


def _queries_of(qid: Any) -> Queries:
    values = validation.query_identifiers(qid)
    begins = np.ones(values.size, dtype=bool)
    begins[1:] = values[1:] != values[:-1]
    starts = np.flatnonzero(begins)
    return values[starts], np.diff(starts, append=values.size)


def _moved_ends(queries: list[Queries], before: IntArray) -> IntArray:
    """Move the first rows of partitions, and the end of the last, on to the end of their queries."""
    identifiers = np.concatenate([of_partition for of_partition, _ in queries])
    starts = np.cumsum([0, *(size for _, sizes in queries for size in sizes.tolist())])
    begins = np.ones(identifiers.size, dtype=bool)
    begins[1:] = identifiers[1:] != identifiers[:-1]
    first = starts[:-1][begins]
    validation.distinct(identifiers[begins].tolist(), first, "qid must keep each query's documents together")
    ends = np.append(first, before[-1])
    return ends[np.searchsorted(ends, before)]


def _recut(collection: Any, before: IntArray, after: IntArray) -> Any:
    """Cut a collection anew, without empty partitions."""
    after = np.unique(after)
    if _is_array(collection):
        chunks = (tuple(np.diff(before).tolist()), *collection.chunks[1:])
        known = type(collection)(collection.dask, collection.name, chunks, meta=collection._meta)
        return known.rechunk({0: tuple(np.diff(after).tolist())})
    delayed, parts, frames = import_extra("dask", EXTRA).delayed, _parts(collection), []
    for begin, end in pairwise(after.tolist()):
        first = int(np.searchsorted(before, begin, side="right")) - 1
        last = int(np.searchsorted(before, end, side="left"))
        rows = slice(begin - int(before[first]), end - int(before[first]))
        frames.append(delayed(_rows_of)(parts[first:last], rows))
    return import_extra("dask.dataframe", EXTRA).from_delayed(frames, meta=collection._meta, verify_meta=False)


def _rows_of(frames: list[Any], rows: slice) -> Any:
    pandas = import_extra("pandas", EXTRA)
    return (frames[0] if len(frames) == 1 else pandas.concat(frames)).iloc[rows]
