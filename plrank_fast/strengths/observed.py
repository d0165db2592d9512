"""Rankings as people have them, in lists or arrays, with names, numbers or padding: read, and equal ones merged."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from numbers import Integral, Number
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast.validation import FloatArray, IntArray


class Observed(NamedTuple):
    """Rankings one after another: the items of each, their places, where each starts, and how often it was seen."""

    entries: IntArray
    places: IntArray
    limits: IntArray
    counts: FloatArray

    @property
    def ranking(self) -> IntArray:
        """The ranking of each entry."""
        return np.repeat(np.arange(self.limits.size - 1), np.diff(self.limits))


def read(
    rankings: Any,
    buckets: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    weights: ArrayLike | None = None,
    names: Iterable[Hashable] | None = None,
    unranked: validation.Unranked = "absent",
) -> tuple[Sequence[Any], Observed]:
    """Return the names of all items, and the rankings with the numbers of items in the order of their names."""
    listed: Any = names
    several = isinstance(listed, Iterable) and not isinstance(listed, (str, bytes))
    validation.of_type(several or names is None, "names", "an iterable of names", type(names).__name__)
    known: Sequence[Any] | None = None if names is None else list(names)
    labels, places, limits = rankings, buckets, offsets
    if buckets is not None or offsets is not None:
        limits = validation.given(offsets, "offsets", " with buckets")
        places = validation.given(buckets, "buckets", " with offsets")
    elif isinstance(rankings, Sequence) or not hasattr(rankings, "__array__"):
        labels, places, limits = _of_lists(rankings)
    else:
        labels, places, limits = _of_matrix(rankings)
    known, entries = _numbered(labels, known)
    limits = validation.query_offsets(limits, entries.size)
    places = validation.one_entry_each(validation.real_array(places, "buckets"), "buckets", entries.size, "items")
    places = validation.whole_numbers(places, "buckets")
    counts = np.ones(limits.size - 1)
    if weights is not None:
        counts = validation.weights_of(weights, "weights", limits.size - 1, "rankings")
    observed = Observed(entries, places, limits, counts)
    order, distinct = np.lexsort((entries, observed.ranking)), np.ones(entries.size, dtype=bool)
    distinct[order[1:]] = (np.diff(entries[order]) != 0) | (np.diff(observed.ranking[order]) != 0)
    validation.each(distinct, entries, "items of rankings", "be distinct within a ranking")
    if validation.choice(unranked, "unranked", validation.Unranked) == "last":
        observed = _with_the_rest(observed, len(known))
    return known, observed


def merged(observed: Observed) -> Observed:
    """Return each ranking once, with the sum of its counts; the places of its items count from 0."""
    ranking = observed.ranking
    order = np.lexsort((observed.entries, observed.places, ranking))
    entries, places = observed.entries[order], observed.places[order]
    later = np.append(0, (np.diff(places) != 0) & (np.diff(ranking) == 0))
    code = 2 * entries + later
    lengths, parts = np.diff(observed.limits), []
    for length in np.unique(lengths[(lengths > 1) & (observed.counts > 0)]).tolist():
        rows = np.flatnonzero((lengths == length) & (observed.counts > 0))
        columns = code[observed.limits[rows][:, np.newaxis] + np.arange(length)]
        order = np.lexsort(columns.T[::-1])
        columns, weights = columns[order], observed.counts[rows[order]]
        first = np.flatnonzero(np.append(True, (np.diff(columns, axis=0) != 0).any(axis=1)))
        parts.append((columns[first], np.add.reduceat(weights, first)))
    none = np.zeros(0, dtype=np.int64)
    codes = np.concatenate([none, *(part.reshape(-1) for part, _ in parts)])
    sizes = np.concatenate([none, *(np.full(len(part), part.shape[1]) for part, _ in parts)])
    counts: FloatArray = np.concatenate([np.zeros(0), *(count for _, count in parts)])
    limits = np.append(0, np.cumsum(sizes))
    steps = np.cumsum(codes % 2)
    places = steps - np.repeat(steps[limits[:-1]], sizes) if codes.size else steps
    return Observed(codes // 2, places, limits, counts)


def _of_lists(rankings: Any) -> tuple[list[Any], list[int], list[int]]:
    """Read lists of items, best first, in which a set holds tied items."""
    labels: list[Any] = []
    places: list[int] = []
    limits = [0]
    listed = isinstance(rankings, Iterable) and not isinstance(rankings, (str, bytes))
    validation.of_type(listed, "rankings", "a list of rankings", type(rankings).__name__)
    for number, ranking in enumerate(rankings):
        listed = isinstance(ranking, (Sequence, np.ndarray)) and not isinstance(ranking, (str, bytes))
        remedy = "a list of items (with buckets and offsets, rankings are items one after another)"
        validation.of_type(
            listed, f"each of the rankings must be {remedy}; rankings", "lists", f"{ranking!r} at {number}"
        )
        for place, item in enumerate(ranking):
            tied = item if isinstance(item, (set, frozenset)) else (item,)
            labels.extend(tied)
            places.extend([place] * len(tied))
        limits.append(len(labels))
    return labels, places, limits


def _of_matrix(rankings: Any) -> tuple[Any, IntArray, IntArray]:
    """Read one ranking from each row, which may end early with -1 if it holds numbers, and with None if not."""
    matrix = validation.as_array(rankings, "rankings")
    validation.of_dimensions(matrix, "rankings", (2,))
    if matrix.dtype.kind in "iu":
        matrix = validation.integer_array(rankings, "rankings", (2,))
        present = matrix != -1
    else:
        validation.require(matrix.dtype.kind not in "fb", f"rankings must hold items, got dtype {matrix.dtype}")
        present = np.array([[item is not None for item in row] for row in matrix.tolist()]).reshape(matrix.shape)
    ends = present[:, 1:] <= present[:, :-1]
    validation.require(ends.all(), "rankings must have no item after the end of a row (-1 or None)")
    lengths = present.sum(axis=1)
    return matrix[present], np.nonzero(present)[1], np.append(0, np.cumsum(lengths))


def _numbered(given: Any, names: Sequence[Any] | None) -> tuple[Sequence[Any], IntArray]:
    """Return names, and the number of each item among them; items that are numbers need no names."""
    labels = given if isinstance(given, list) else validation.as_array(given, "items of rankings")
    numeric = (
        labels.dtype.kind in "iufbc" if isinstance(labels, np.ndarray) else all(isinstance(i, Number) for i in labels)
    )
    if numeric and not any(isinstance(name, Integral) for name in names or ()):
        entries = validation.integer_array(labels, "items of rankings")
        validation.each(entries >= 0, entries, "items of rankings", "be at least 0")
        names = range(int(entries.max(initial=-1)) + 1) if names is None else names
        validation.each(
            entries < len(names), entries, "items of rankings", f"be less than the number of names, {len(names)}"
        )
    else:
        labels = labels if isinstance(labels, list) else labels.tolist()
        hashable = all(isinstance(label, Hashable) for label in labels)
        validation.of_type(hashable, "items", "numbers or names, which can be hashed", "others")
        if names is None:
            names = list(dict.fromkeys(labels))
            with suppress(TypeError):  # several types stay in the order in which they come
                names = sorted(names)
        number = {name: i for i, name in enumerate(names)}
        validation.require(len(number) == len(names), "names must be distinct")
        unknown = [label for label in labels if label not in number][:1]
        validation.require(not unknown, f"items of rankings must be among the names, got {unknown}")
        entries = np.array([number[label] for label in labels], dtype=np.int64)
    validation.require(len(names) > 0, "rankings must hold an item, got none")
    return names, entries


def _with_the_rest(observed: Observed, n_items: int) -> Observed:
    """Return rankings of all items: those that a ranking leaves out share its last place."""
    n_rankings = observed.limits.size - 1
    places = np.full((n_rankings, n_items), np.iinfo(np.int64).max)
    places[observed.ranking, observed.entries] = observed.places
    entries = np.tile(np.arange(n_items), n_rankings)
    return Observed(entries, places.reshape(-1), n_items * np.arange(n_rankings + 1), observed.counts)
