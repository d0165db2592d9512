"""Rankings as people have them, in lists or arrays, with names, numbers or padding: read, and equal ones merged."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from numbers import Integral, Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plrank_fast import validation
from plrank_fast._shared.once import cached_property
from plrank_fast.validation import FloatArray, IntArray

BATTLES = "a battle is its winner and then its loser, without a column for the result"
REST = 2**53  # place of items that a ranking leaves out, and which come after the others
WINNERS = {"model_a": 0, "model_b": 1, "tie": 2, "tie (bothbad)": 2, "both_bad": 2, "draw": 2}  # as arenas name them
OF_ARENAS = ["model_a", "model_b", "winner"]


@dataclasses.dataclass(frozen=True, eq=False)
class Observed:
    """Rankings one after another: items and their places, lengths, how often each was seen, and features of entries.

    Without places, items are in order.
    """

    entries: IntArray
    given: IntArray | None
    lengths: IntArray
    counts: FloatArray
    features: FloatArray

    @cached_property
    def limits(self) -> IntArray:
        """Where each ranking starts."""
        return np.append(0, np.cumsum(self.lengths))

    @cached_property
    def places(self) -> IntArray:
        """The place of each entry."""
        return np.arange(self.entries.size) - self.limits[self.ranking] if self.given is None else self.given

    @property
    def places_of_battles(self) -> IntArray:
        """The places of all entries, or those of a winner and a loser."""
        return np.arange(2) if self.given is None else self.given

    @property
    def ranking(self) -> IntArray:
        """The ranking of each entry."""
        return np.repeat(np.arange(self.lengths.size), self.lengths)

    def rows(self, wanted: NDArray[np.bool_]) -> Observed:
        """Return the rankings for which ``wanted`` holds."""
        if wanted.all():
            return self
        kept = np.repeat(wanted, self.lengths) if wanted.any() else slice(0)
        return self.of_entries(kept, self.lengths[wanted], self.counts[wanted])

    def of_entries(self, kept: Any, lengths: IntArray, counts: FloatArray) -> Observed:
        """Return rankings of these entries, which are in the same order if there are no places."""
        places = None if self.given is None else self.given[kept]
        return Observed(self.entries[kept], places, lengths, counts, self.features[kept])

    def blocks(self, most: int, power: int, wanted: Any = True) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield wanted rankings of one length, and their entries in rows; they have length**power up to ``most``."""
        lengths = np.where(wanted, self.lengths, 0)
        for length in np.unique(lengths[lengths > 0]).tolist():
            rows = np.flatnonzero(lengths == length)
            at_once = max(most // length**power, 1)
            for part in (rows[i : i + at_once] for i in range(0, rows.size, at_once)):
                yield part, self.limits[part][:, np.newaxis] + np.arange(length)

    def split(self, groups: IntArray) -> tuple[Observed, IntArray]:
        """Return what each ranking says about the items of each group, and the ranking that says it."""
        ranking, of_entry = self.ranking, groups[self.entries]
        order = np.lexsort((of_entry, ranking))
        new = np.append(True, (np.diff(ranking[order]) != 0) | (np.diff(of_entry[order]) != 0))[: order.size]
        starts = np.flatnonzero(new)
        source = ranking[order[starts]]
        return self.of_entries(order, np.diff(starts, append=order.size), self.counts[source]), source


def read(
    rankings: Any,
    buckets: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    weights: ArrayLike | None = None,
    names: Iterable[Hashable] | None = None,
    unranked: validation.Unranked = "absent",
    features: ArrayLike | None = None,
) -> tuple[Sequence[Any], Observed]:
    """Return the names of all items, and the rankings with the numbers of items in the order of their names."""
    listed = None if names is None else _known(names)
    labels: Any = rankings
    places: Any = None
    lengths: Any = None
    flat = buckets is not None or offsets is not None
    if flat:
        offsets = validation.given(offsets, "offsets", " with buckets")
        places = validation.given(buckets, "buckets", " with offsets")
    elif not isinstance(rankings, Sequence) and "winner" in (validation.column_names(rankings, "rankings") or ()):
        labels, places, lengths = _of_battles(rankings)
    elif isinstance(rankings, Sequence) or not hasattr(rankings, "__array__"):
        labels, places, lengths = _of_lists(rankings)
    else:
        labels, places, lengths = _of_matrix(rankings)

    def at(index: int) -> str:
        return f"at index {index}" if flat else f"in ranking {np.searchsorted(np.cumsum(lengths), index, 'right')}"

    if not flat and isinstance(labels, list) and labels and (lengths == 3).all():
        results = all(isinstance(label, str) and label in WINNERS for label in labels[2::3])
        validation.require(not results, f"items of rankings must be items, got {labels[2]!r} {at(2)}: {BATTLES}")
    known, entries = _numbered(labels, listed, at)
    if flat:
        lengths = np.diff(validation.query_offsets(offsets, entries.size))
        places = validation.one_entry_each(validation.real_array(places, "buckets"), "buckets", entries.size, "items")
        places = validation.whole_numbers(places, "buckets")
    counts = np.broadcast_to(1.0, lengths.size)
    if weights is not None:
        counts = validation.weights_of(weights, "weights", lengths.size, "rankings")
    columns = np.zeros((entries.size, 0))
    if features is not None:
        in_lists = isinstance(rankings, Sequence) and not flat
        unordered = in_lists and any(isinstance(i, (set, frozenset)) for ranking in rankings for i in ranking)
        no_order = "comparison_features must belong to items in order, got rankings with sets: pass buckets"
        validation.require(not unordered, no_order)
        columns = columns_of(features, "comparison_features", entries.size, "items in rankings")
    observed = Observed(entries, places, lengths, counts, columns)
    if (observed.lengths == 2).all():  # battles, maybe millions
        again = 2 * np.flatnonzero(entries[::2] == entries[1::2]) + 1
    else:
        order, ranking = np.lexsort((entries, observed.ranking)), observed.ranking
        again = order[1:][(np.diff(entries[order]) == 0) & (np.diff(ranking) == 0)]
    if again.size:
        first = int(again.min())
        problem = f"be distinct within a ranking, got {known[entries[first]]!r} again {at(first)}"
        remedy = f"leave out battles of an item with itself, and their weights; {BATTLES}"
        validation.require(False, f"items of rankings must {problem}: {remedy}")
    if validation.choice(unranked, "unranked", validation.Unranked) == "last":  # all that is left out has one place
        validation.goes_with(features, "comparison_features", False, "unranked='absent'")
        rest = np.full((lengths.size, len(known)), REST)
        rest[observed.ranking, entries] = observed.places
        entries, lengths = np.tile(np.arange(len(known)), lengths.size), np.broadcast_to(len(known), lengths.size)
        observed = Observed(entries, rest.reshape(-1), lengths, counts, np.zeros((entries.size, 0)))
    return known, observed


def ordered(observed: Observed) -> Observed:
    """Return the entries of each ranking by place."""
    order = np.lexsort((observed.entries, observed.places, observed.ranking))
    return observed.of_entries(order, observed.lengths, observed.counts)


def merged(observed: Observed) -> tuple[Observed, IntArray]:
    """Return each ranking of several items once, with the sum of its counts, and which one each ranking is, or -1."""
    observed = ordered(observed)
    ranking, places, lengths = observed.ranking, observed.places, observed.lengths
    later = np.append(0, (np.diff(places) != 0) & (np.diff(ranking) == 0))[: places.size]
    keys = [4 * observed.entries + 2 * (places == REST) + later]
    keys += [np.unique(column, return_inverse=True)[1] for column in observed.features.T]
    kind, parts = np.full(lengths.size, -1), [np.zeros(0, dtype=np.int64)]
    merged_lengths: list[int] = []
    for length in np.unique(lengths[lengths > 1]).tolist():
        rows = np.flatnonzero(lengths == length)
        index = observed.limits[rows][:, np.newaxis] + np.arange(length)
        columns = np.concatenate([key[index] for key in keys], axis=1)
        order = np.lexsort(columns.T[::-1])
        first = np.append(True, (np.diff(columns[order], axis=0) != 0).any(axis=1))
        kind[rows[order]] = len(merged_lengths) - 1 + np.cumsum(first)
        parts.append(index[order[first]].reshape(-1))
        merged_lengths += [length] * int(np.count_nonzero(first))
    counts = np.bincount(kind[kind >= 0], observed.counts[kind >= 0], len(merged_lengths)).astype(float)
    return observed.of_entries(np.concatenate(parts), np.array(merged_lengths, dtype=np.int64), counts), kind


def number_of(item: Any, names: Sequence[Any], argument: str) -> int:
    """Return the place of an item among the names."""
    try:
        place = {name: number for number, name in enumerate(names)}.get(item)
    except TypeError:  # an array, or other things that cannot be hashed
        place = None
    validation.require(place is not None, f"{argument} must be an item, got {validation.shown(item)}")
    return -1 if place is None else place


def _known(names: Any) -> list[Any]:
    """Return names of items, from any iterable of them."""
    several = isinstance(names, Iterable) and not isinstance(names, (str, bytes))
    validation.of_type(several, "names", "an iterable of names", type(names).__name__)
    if not isinstance(names, Sequence) and hasattr(names, "__array__"):
        array = validation.as_array(names, "names")
        validation.of_dimensions(array, "names")
        names = validation.entries(array)
    known = list(names)
    _require_names(known, "names", "at index {}".format)
    validation.require(len(set(known)) == len(known), "names must be distinct")
    return known


def _require_names(items: list[Any], name: str, at: Callable[[int], str]) -> None:
    """Require that all items can serve as names: hashable, not missing, and not an empty text."""
    distinct, problem = {}, ""
    try:
        distinct = dict.fromkeys(items)
    except TypeError as error:  # some tuples can be hashed, and others cannot
        problem = f"others ({error})"
    validation.of_type(not problem, name, "numbers or names, which can be hashed", problem)
    for item in distinct:
        if _is_none(item):
            index = next(index for index, other in enumerate(items) if other is item)
            validation.require(False, f"{name} must not be missing, got {item!r} {at(index)}")


def _is_none(item: Any) -> bool:
    return item in ("", b"") if isinstance(item, (str, bytes)) else validation.is_missing(item)


def _of_lists(rankings: Any) -> tuple[list[Any], IntArray, IntArray]:
    """Read lists of items, best first, in which a set holds tied items."""
    labels: list[Any] = []
    places: list[int] = []
    lengths: list[int] = []
    listed = isinstance(rankings, Iterable) and not isinstance(rankings, (str, bytes))
    validation.of_type(listed, "rankings", "a list of rankings", type(rankings).__name__)
    for number, ranking in enumerate(rankings):
        listed = isinstance(ranking, (Sequence, np.ndarray)) and not isinstance(ranking, (str, bytes))
        remedy = "a list of items (with buckets and offsets, rankings are items one after another)"
        validation.of_type(
            listed, f"each of the rankings must be {remedy}; rankings", "lists", f"{ranking!r} at {number}"
        )
        before = len(labels)
        for place, item in enumerate(ranking):
            tied = item if isinstance(item, (set, frozenset)) else (item,)
            labels.extend(tied)
            places.extend([place] * len(tied))
        lengths.append(len(labels) - before)
    return labels, np.array(places, dtype=np.int64), np.array(lengths, dtype=np.int64)


def _of_battles(frame: Any) -> tuple[list[Any], IntArray, IntArray]:
    """Read a frame with a battle in each row: two names, and which of them won, or that neither did."""
    columns = (
        validation.as_array(column, "rankings") for column in validation.columns_of(frame, "rankings", OF_ARENAS)
    )
    one, other, winners = (validation.entries(column) for column in columns)
    places = np.zeros((len(one), 2), dtype=np.int64)
    for row, (a, b, winner) in enumerate(zip(one, other, winners, strict=True)):
        known = isinstance(winner, str) and winner in WINNERS
        result = (
            WINNERS[winner] if known else -1 if _is_none(winner) else 0 if winner == a else 1 if winner == b else -1
        )
        usual = f"'model_a', 'model_b', 'tie' or the name of one of both, got {winner!r} in row {row}"
        validation.require(result >= 0, f"winner must be {usual}")
        places[row] = (0, 0) if result == 2 else (result, 1 - result)
    labels = [name for pair in zip(one, other, strict=True) for name in pair]
    return labels, places.reshape(-1), np.broadcast_to(2, len(one))


def _of_matrix(rankings: Any) -> tuple[Any, IntArray | None, IntArray]:
    """Read one ranking from each row, which may end early: with -1 if it holds numbers, and where a name is missing."""
    matrix = validation.as_array(rankings, "rankings")
    validation.of_dimensions(matrix, "rankings", (2,))
    if matrix.dtype.kind in "iu":
        matrix = validation.integers(matrix, "rankings", (2,))
        rows, width = matrix.shape
        if matrix.min(initial=0) >= 0:
            return matrix.reshape(-1), None, np.broadcast_to(width, rows)
        present = matrix != -1
        labels: Any = matrix[present]
    else:
        validation.require(matrix.dtype.kind not in "fb", f"rankings must hold items, got dtype {matrix.dtype}")
        items = validation.entries(matrix.reshape(-1))
        present = np.array([not _is_none(item) for item in items]).reshape(matrix.shape)
        labels = [item for item, is_there in zip(items, present.flat, strict=True) if is_there]
    ends = present[:, 1:] <= present[:, :-1]
    validation.require(ends.all(), "rankings must have no item after the end of a row (-1, None, NaN or an empty text)")
    return labels, np.flatnonzero(present) % present.shape[1], present.sum(axis=1)


def _numbered(given: Any, names: Sequence[Any] | None, at: Callable[[int], str]) -> tuple[Sequence[Any], IntArray]:
    """Return names, and the number of each item among them; items that are numbers need no names."""
    labels = given if isinstance(given, list) else validation.as_array(given, "items of rankings")
    numeric = (
        labels.dtype.kind in "iufbc" if isinstance(labels, np.ndarray) else all(isinstance(i, Number) for i in labels)
    )
    if numeric and not any(isinstance(name, Integral) for name in names or ()):
        entries = validation.integer_array(labels, "items of rankings")
        names = range(int(entries.max(initial=-1)) + 1) if names is None else names
        if entries.min(initial=0) < 0 or entries.max(initial=-1) >= len(names):
            validation.each(entries >= 0, entries, "items of rankings", "be at least 0")
            below = f"be less than the number of names, {len(names)}"
            validation.each(entries < len(names), entries, "items of rankings", below)
    else:
        labels = labels if isinstance(labels, list) else validation.entries(labels)
        _require_names(labels, "items of rankings", at)
        if names is None:
            names = list(dict.fromkeys(labels))
            with suppress(TypeError):  # several types stay in the order in which they come
                names = sorted(names)
        number = {name: i for i, name in enumerate(names)}
        unknown = next((i for i, label in enumerate(labels) if label not in number), None)
        if unknown is not None:
            problem = f"items of rankings must be among the names, got {labels[unknown]!r} {at(unknown)}"
            validation.require(False, problem)
        entries = np.array([number[label] for label in labels], dtype=np.int64)
    validation.require(len(names) > 0, "rankings must hold an item, got none")
    return names, entries


def columns_of(features: ArrayLike, name: str, rows: int, of: str) -> FloatArray:
    """Return features as columns."""
    given = validation.real_array(features, name, ndim=(1, 2))
    columns = given if given.ndim == 2 else given[:, np.newaxis]
    validation.require(
        len(columns) == rows, f"{name} must have one row for each of the {rows} {of}, got shape {given.shape}"
    )
    return validation.within_limits(columns, name).astype(float)
