"""Queries of a collection in parts that lie on several machines."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from plrank_fast.validation.array_types import IntArray


def dask_rows(collection: Any, columns: tuple[int, ...] | None, name: str) -> Any:
    """Return a Dask collection in ``columns`` parts by columns (None: it is none) if it is partitioned by rows only."""
    if columns is None:
        raise TypeError(f"{name} must be a Dask array, data frame or series, got {type(collection).__name__}")
    if any(number > 1 for number in columns):
        raise ValueError(f"{name} must be partitioned by rows only, got {columns} parts by columns: rechunk it")
    return collection


def same_partitions(rows: IntArray, expected: IntArray, name: str) -> None:
    """Raise unless the partitions of a collection have as many rows as those of ``qid``."""
    if rows.size != expected.size:
        raise ValueError(f"{name} must have the partitions of qid, got {rows.size} and not {expected.size}")
    if (rows != expected).any():
        place = int(np.argmax(rows != expected))
        raise ValueError(
            f"{name} must have the partitions of qid, got {rows[place]} rows in partition {place} and not "
            f"{expected[place]}"
        )


def queries_in_one_place(identifiers: NDArray[Any]) -> None:
    """Raise if a query, one of these in the order in which they begin, returns after others."""
    known, counts = np.unique(identifiers, return_counts=True)
    if known.size != identifiers.size:
        raise ValueError(
            f"qid {known[counts > 1][0]!s} returns after others; the documents of a query must follow one another: "
            "sort by qid"
        )


def uncut_queries(ends: IntArray, moved: IntArray, remedy: str) -> None:
    """Raise if an end of a partition had to be moved to that of a query."""
    if (ends != moved).any():
        place = int(np.argmax(ends != moved))
        raise ValueError(f"qid has a query that is split between partitions {place - 1} and {place}: {remedy}")
