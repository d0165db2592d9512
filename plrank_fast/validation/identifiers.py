"""Names of queries and documents."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plrank_fast.validation.arrays import ARRAY_PROTOCOLS, IntArray, as_array, of_dimensions, whole_numbers
from plrank_fast.validation.checks import each, require, shown

KINDS: tuple[tuple[type, ...], ...] = ((str,), (bytes,), (int, np.integer), (float, np.floating))
MISSING = ("NoneType", "NAType", "NaTType", "MaskedConstant")  # types whose values are not real entries


def is_missing(item: Any) -> bool:
    """Return whether an entry stands for a missing one: None, pandas.NA, NaT, NaN of any type, a null of Arrow."""
    if isinstance(item, (str, bytes, int)):
        return False
    if type(item).__name__ in MISSING or getattr(item, "is_valid", True) is False:
        return True
    unequal = item != item
    return isinstance(unequal, (bool, np.bool_)) and bool(unequal)


def none_missing(items: Iterable[Any], name: str) -> None:
    """Refuse entries that stand for missing ones."""
    for index, item in enumerate(items):
        require(not is_missing(item), f"{name} must not be missing, got {item} at index {index}")


def entries(array: NDArray[Any]) -> list[Any]:
    """Return the entries of an array as a list, with None where the array's type has a text for missing ones."""
    items = array.tolist()
    stand_in = getattr(array.dtype, "na_object", None)
    return [None if item == stand_in else item for item in items] if isinstance(stand_in, str) else items


def query_identifiers(qid: Any, name: str = "qid") -> NDArray[Any]:
    """Return a 1-dimensional array of integers, strings or bytes, one kind throughout and none missing.

    Whole numbers in floating point become integers, up to 2**53.
    """
    array = as_array(qid, name)
    of_dimensions(array, name)
    # NumPy makes strings of a list that holds strings and numbers: 1 and "1" would become one query.
    items = entries(array) if array.dtype.kind in "OT" else qid if isinstance(qid, (list, tuple)) else None
    if items is not None:
        _check_kinds(items, name)
        if array.dtype.kind in "US":  # NumPy drops NUL characters at the end, which tell identifiers apart
            array = np.array(items, dtype=object)
        if array.dtype.kind == "O" and items and isinstance(items[0], (float, np.floating)):
            array = array.astype(np.float64)
    if array.dtype.kind == "f":
        each(~np.isnan(array), array, name, "not be missing")
        array = whole_numbers(array.astype(np.result_type(array, np.float64), copy=False), name)
    if array.size and array.dtype.kind not in "iuSUTO":
        raise TypeError(f"{name} must hold integers or strings, got dtype {array.dtype}")
    return array


def _check_kinds(items: Sequence[Any], name: str) -> None:
    """Refuse identifiers that are missing, of a type that cannot name a query, or of another kind than the first."""
    types = set(map(type, items))
    kind = next((kind for kind in KINDS if items and isinstance(items[0], kind)), ())
    others = {each for each in types if each is bool or not issubclass(each, kind)}
    if not others:
        return
    none_missing(items, name)
    for index, item in enumerate(items):
        if type(item) in others:
            after = f", after {items[0]!r}" if index else ""
            raise TypeError(f"{name} must hold integers or strings, of one kind, got {item!r} at index {index}{after}")


def identifier_strings(given: Iterable[Any], name: str, number: int) -> list[str]:
    """Return ``number`` names of queries or documents as strings, from any iterable."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"{name} must be an iterable of names, got {shown(given)}")
    if not isinstance(given, (list, tuple)) and any(hasattr(given, each) for each in ARRAY_PROTOCOLS):
        given = query_identifiers(given, name).tolist()  # the elements of a tensor are tensors
    names = list(given)
    _check_kinds(names, name)
    if names and isinstance(names[0], (float, np.floating)):  # a merge turns a column's integers into floats
        names = query_identifiers(names, name).tolist()
    strings = [_decoded(item, name) if isinstance(item, bytes) else str(item) for item in names]
    if len(strings) != number:
        raise ValueError(f"{name} must have {number} names, got {len(strings)}")
    return strings


def _decoded(item: bytes, name: str) -> str:
    try:
        return item.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} must be UTF-8 if they are bytes, got {item!r}: decode them first") from error


def file_paths(given: Any, name: str) -> list[str]:
    """Return the names of one file or several, at least one."""
    several = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    if not several or not all(isinstance(each, (str, os.PathLike)) for each in several):
        error = TypeError if several else ValueError
        raise error(f"{name} must be the path of a file, or a sequence of at least one, got {shown(given)}")
    return [os.fspath(each) for each in several]


def distinct(identifiers: Sequence[Any], places: Sequence[int] | IntArray, must: str) -> None:
    """Check that no identifier occurs twice; ``places`` are their indices in the argument that ``must`` names."""
    if len(set(identifiers)) < len(identifiers):
        first: dict[Any, int] = {}
        again = next(index for index, each in enumerate(identifiers) if first.setdefault(each, index) != index)
        raise ValueError(f"{must}, got {identifiers[again]!r} again at index {places[again]}")
