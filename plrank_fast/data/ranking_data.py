"""The container of a ranking data set: the documents of all queries, one query after another."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from plrank_fast._shared.memory import require_bytes
from plrank_fast.offsets import offsets_from_group, offsets_from_qid
from plrank_fast.validation import (
    as_array,
    column_names,
    columns_of,
    distinct,
    each,
    identifier_strings,
    numbers_of_column,
    numbers_of_columns,
    of_dimensions,
    one_entry_each,
    query_identifiers,
    query_offsets,
    read_only,
    real_array,
    require,
)

ROWS_PER_CHECK = 4096  # bounds the temporaries of a check


@dataclass(frozen=True, eq=False, init=False)
class RankingData:
    """Documents with features and labels, grouped by query.

    Parameters
    ----------
    features : array_like of float, shape (n_docs, n_features)
        One row per document, the documents of a query next to each other. Missing features are refused: fill them.
    labels : array_like, shape (n_docs,)
        Graded relevance, as found in the source.
    offsets : array_like of int, shape (n_queries + 1,)
        Query ``q`` owns the rows ``offsets[q]:offsets[q + 1]`` (see ``offsets_from_qid``).
    query_ids : array_like of int or str, shape (n_queries,), optional
        Query identifiers of the source, by default 0, 1, ...; `qid` repeats them for each document.
    name : str
        Source of the data, for messages and reports.
    feature_names : sequence of str, optional
        Name of each column of ``features``. Where data sets meet whose features are named, columns are found by name.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> data = plr.data.RankingData([[0.1], [0.4], [0.2]], [0, 2, 1], offsets=[0, 1, 3])
    >>> data[1:], data[[1, 0]].labels
    (RankingData('data', n_queries=1, n_docs=2, n_features=1), array([2., 1., 0.]))
    """

    features: npt.NDArray[np.floating[Any]]
    labels: npt.NDArray[np.float64]
    offsets: npt.NDArray[np.int64]
    query_ids: npt.NDArray[np.int64] | npt.NDArray[np.str_]
    name: str
    feature_names: tuple[str, ...] | None

    def __init__(
        self,
        features: npt.ArrayLike,
        labels: npt.ArrayLike,
        offsets: npt.ArrayLike,
        query_ids: npt.ArrayLike | None = None,
        name: str = "data",
        feature_names: Sequence[str] | None = None,
    ) -> None:
        set_field = partial(object.__setattr__, self)  # the fields of a frozen dataclass are set once
        matrix, grades = as_array(features, "features"), as_array(labels, "labels")
        set_field("features", matrix if matrix.dtype.kind == "f" else real_array(matrix, "features", None))
        set_field("labels", grades if grades.dtype == np.float64 else real_array(grades, "labels", None))
        require(self.features.ndim == 2, f"features must be 2-dimensional, got shape {self.features.shape}")
        finite_features(self.features, feature_names)
        each(np.isfinite(self.labels), self.labels, "labels", "be finite")
        set_field("offsets", read_only(query_offsets(offsets, self.n_docs)))
        ids = np.arange(self.n_queries) if query_ids is None else query_identifiers(query_ids, "query_ids")
        names = ids if ids.dtype.kind in "iuU" else np.array(identifier_strings(ids, "query_ids", ids.size), np.str_)
        set_field("query_ids", names)
        set_field("name", name)
        set_field("feature_names", None if feature_names is None else tuple(feature_names))
        one_entry_each(self.labels, "labels", self.n_docs, "documents")
        one_entry_each(self.query_ids, "query_ids", self.n_queries, "queries")
        if self.feature_names is not None:
            columns = identifier_strings(self.feature_names, "feature_names", self.n_features)
            distinct(columns, range(self.n_features), "feature_names must be distinct")

    def __setstate__(self, state: dict[str, Any]) -> None:
        RankingData.__init__(self, **state)  # what was pickled is checked

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        label: str = "label",
        qid: str = "qid",
        features: Sequence[str] | None = None,
        name: str = "frame",
    ) -> RankingData:
        """Take a data frame of pandas or Polars, or a table of Arrow.

        Parameters
        ----------
        frame : DataFrame or Table
            A row for each document, the rows of a query next to each other.
        label, qid : str
            Names of the columns of grades and of query identifiers.
        features : sequence of str, optional
            Names of the columns of features, by default all others.
        name : str
            Source of the data, for messages and reports.

        Returns
        -------
        RankingData

        Raises
        ------
        ValueError
            If a column is missing or there twice, or the rows of a query are apart from each other.
        TypeError
            If a column of features or labels holds anything but numbers, such as text or dates.

        Examples
        --------
        >>> import pandas, plrank_fast as plr
        >>> frame = pandas.DataFrame({"qid": ["a", "b", "b"], "label": [0, 2, 1], "length": [0.1, 0.4, 0.2]})
        >>> plr.data.RankingData.from_frame(frame)
        RankingData('frame', n_queries=2, n_docs=3, n_features=1)
        """
        used = features
        if used is None:
            used = [each for each in column_names(frame, "frame") or [] if each not in (label, qid)]
        grades, ids, *_ = columns_of(frame, "frame", [label, qid, *used])
        require(used, f"frame must have columns of features beside {label!r} and {qid!r}, got none")
        offsets = offsets_from_qid(ids)
        labels = numbers_of_column(grades, f"column {label!r} of frame")
        matrix = numbers_of_columns(frame, "frame", used)
        return cls(matrix, labels, offsets, np.asarray(ids)[offsets[:-1]], name, [str(each) for each in used])

    def __getitem__(self, queries: slice | npt.ArrayLike) -> RankingData:
        """Select queries by a slice, their positions, or a mask, in the given order."""
        selected = self._positions(queries)
        rows, offsets = self.rows_of(selected)
        return RankingData(
            self.features[rows], self.labels[rows], offsets, self.query_ids[selected], self.name, self.feature_names
        )

    def __len__(self) -> int:
        """Return the number of queries."""
        return self.n_queries

    def __repr__(self) -> str:
        size = f"n_queries={self.n_queries}, n_docs={self.n_docs}, n_features={self.n_features}"
        return f"RankingData({self.name!r}, {size})"

    @property
    def n_docs(self) -> int:
        """Number of documents."""
        return int(self.features.shape[0])

    @property
    def n_features(self) -> int:
        """Number of feature columns."""
        return int(self.features.shape[1])

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.offsets) - 1

    @property
    def qid(self) -> npt.NDArray[np.int64] | npt.NDArray[np.str_]:
        """Query identifier of each document, shape (n_docs,), as other libraries take them."""
        return self.query_ids.repeat(self.list_lengths)

    @property
    def list_lengths(self) -> npt.NDArray[np.int64]:
        """Documents per query, shape (n_queries,)."""
        return np.diff(self.offsets)

    def rows_of(
        self, queries: npt.NDArray[np.integer[Any]] | list[int]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the rows of some queries, in the given order, and the offsets of these queries within them.

        Parameters
        ----------
        queries : ndarray or list of int, shape (n_selected,)
            Positions of queries, not their identifiers.

        Returns
        -------
        rows : ndarray of int64, shape (n_selected_docs,)
        offsets : ndarray of int64, shape (n_selected + 1,)
        """
        selected = self._positions(queries)
        lengths = self.list_lengths[selected]
        offsets = offsets_from_group(lengths)
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[selected] - offsets[:-1], lengths)
        return rows, offsets

    def _positions(self, queries: slice | npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return positions of queries, counted from the front and 1-dimensional."""
        if not isinstance(queries, slice):
            queries = np.atleast_1d(as_array(queries, "queries"))
            of_dimensions(queries, "queries")
            queries = queries if queries.size else np.zeros(0, dtype=np.int64)
        return np.arange(self.n_queries)[queries]

    def fingerprint(self) -> str:
        """Hash of everything but the name: equal data give equal fingerprints."""
        digest = hashlib.blake2b(digest_size=16)
        for array in (self.features, self.labels, self.offsets, self.query_ids):
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        digest.update("".join(map(repr, self.feature_names or ())).encode())
        return digest.hexdigest()


def concatenate(parts: Sequence[RankingData]) -> RankingData:
    """Concatenate several sets, for data that come in several files.

    Queries stay as they are: the same identifier in two parts means two queries.

    Parameters
    ----------
    parts : sequence of RankingData
        The sets, at least one, all with the same number of features. Features that are named may be in another order in
        each of them.

    Returns
    -------
    RankingData
    """
    if not parts:
        raise ValueError("parts must hold at least one data set, got none")
    if len({part.n_features for part in parts}) > 1:
        raise ValueError(f"parts must have the same n_features, got {[part.n_features for part in parts]}")
    if len(parts) == 1:
        return parts[0]
    names = next((part.feature_names for part in parts if part.feature_names is not None), None)
    parts = [in_order_of(names, part, f"parts[{index}]") for index, part in enumerate(parts)]
    n_docs, n_features = sum(part.n_docs for part in parts), parts[0].n_features
    needed = sum(part.features.nbytes for part in parts)
    require_bytes(needed, f"another matrix of features, {n_docs} x {n_features}, of all parts")
    return RankingData(
        features=np.concatenate([part.features for part in parts]),
        labels=np.concatenate([part.labels for part in parts]),
        offsets=offsets_from_group(np.concatenate([part.list_lengths for part in parts])),
        query_ids=np.concatenate([part.query_ids for part in parts]),
        name=", ".join(part.name for part in parts),
        feature_names=names,
    )


def finite_features(features: npt.NDArray[Any], names: Sequence[str] | None = None) -> npt.NDArray[Any]:
    """Return a matrix of finite numbers: any other number would spoil its feature for the whole query."""
    for first in range(0, len(features), ROWS_PER_CHECK):
        finite = np.isfinite(features[first : first + ROWS_PER_CHECK])
        if not finite.all():
            row, column = (int(index) for index in np.argwhere(~finite)[0])
            of_column = "" if names is None else f" of column {names[column]!r}"
            where = f"{features[first + row, column]} at index {(first + row, column)}{of_column}"
            require(False, f"features must be finite, got {where}: fill missing features, or leave their documents out")
    return features


def in_order_of(names: tuple[str, ...] | None, data: RankingData, argument: str) -> RankingData:
    """Return ``data``, an argument of this name, with its features in the order of ``names`` if both are named."""
    if names is None or data.feature_names is None or data.feature_names == names:
        return data
    places = {each: place for place, each in enumerate(data.feature_names)}
    missing, others = [each for each in names if each not in places], [each for each in places if each not in names]
    require(not (missing or others), f"{argument} must have the features {missing}, and not {others}")
    return replace(data, features=data.features[:, [places[each] for each in names]], feature_names=names)
