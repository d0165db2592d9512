"""Columns of data frames: their names, and the numbers in them."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plrank_fast.validation.arrays import as_array
from plrank_fast.validation.checks import of_type, require, shown
from plrank_fast.validation.identifiers import distinct, is_missing

LAZY = ("toPandas", "compute", "collect")  # methods of Spark, Dask and Polars that compute the rows of a frame
DATES = "Mm"  # kinds of NumPy's types of dates and of durations


def column_names(frame: Any, name: str) -> list[Any] | None:
    """Return the names of the columns of a frame of pandas, Polars or Arrow or a structured array, None of others."""
    for method in LAZY:
        remedy = f"{type(frame).__name__}: pass {name}.{method}()"
        of_type(not hasattr(type(frame), method), name, "a data frame that holds its rows", remedy)
    attribute = "column_names" if hasattr(type(frame), "column_names") else "columns"
    names = getattr(frame, attribute, getattr(getattr(frame, "dtype", None), "names", None))
    return None if names is None else list(names)


def columns_of(frame: Any, name: str, wanted: Sequence[Any]) -> list[Any]:
    """Return the columns of these names, each of which the frame must have once."""
    found = column_names(frame, name)
    of_type(found is not None, name, "a data frame", type(frame).__name__)
    names = found or []
    missing = [each for each in wanted if each not in names]
    require(not missing, f"{name} must have the columns {missing}, got {names}")
    places = [place for place, each in enumerate(names) if each in wanted]
    distinct([names[place] for place in places], places, f"{name} must not have two columns of one name")
    return [frame[each] for each in wanted]


def numbers_of_column(column: Any, name: str) -> NDArray[Any]:
    """Return the numbers of a column, NaN for missing ones."""
    array = as_array(column, name)
    if array.dtype.kind in "OT":
        items = [np.nan if is_missing(item) else item for item in array.tolist()]
        wrong = next((index for index, item in enumerate(items) if not isinstance(item, Number)), None)
        got = "" if wrong is None else f"got {shown(items[wrong])} at index {wrong}"
        require(wrong is None, f"{name} must hold numbers, {got}: encode it, or leave it out", TypeError)
        array = np.array(items, dtype=np.float64)
    instead = "pass the days or seconds from a date" if array.dtype.kind in DATES else "encode it"
    holds = array.dtype.kind in "biuf"
    require(holds, f"{name} must hold numbers, got {array.dtype}: {instead}, or leave it out", TypeError)
    return array


def numbers_of_columns(frame: Any, name: str, wanted: Sequence[Any]) -> NDArray[Any]:
    """Return the numbers in the columns of these names, (n_rows, n_columns)."""
    columns = columns_of(frame, name, wanted)
    named = zip(columns, wanted, strict=True)
    return np.column_stack([numbers_of_column(column, f"column {each!r} of {name}") for column, each in named])
