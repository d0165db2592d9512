"""The container of a ranking data set: the documents of all queries, one query after another."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from plrank_fast._shared.memory import require_bytes
from plrank_fast.offsets import offsets_from_group, offsets_from_qid
from plrank_fast.validation import one_entry_each, query_offsets, real_array, require


@dataclass(frozen=True, eq=False, init=False)
class RankingData:
    """Documents with features and labels, grouped by query.

    Parameters
    ----------
    features : array_like of float, shape (n_docs, n_features)
        One row per document, the documents of a query next to each other.
    labels : array_like, shape (n_docs,)
        Graded relevance, as found in the source.
    offsets : array_like of int, shape (n_queries + 1,)
        Query ``q`` owns the rows ``offsets[q]:offsets[q + 1]`` (see ``offsets_from_qid``).
    query_ids : array_like of int or str, shape (n_queries,), optional
        Query identifiers of the source, by default 0, 1, ...; `qids` repeats them for each document.
    name : str
        Source of the data, for messages and reports.

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

    def __init__(
        self,
        features: npt.ArrayLike,
        labels: npt.ArrayLike,
        offsets: npt.ArrayLike,
        query_ids: npt.ArrayLike | None = None,
        name: str = "data",
    ) -> None:
        set_field = partial(object.__setattr__, self)  # the fields of a frozen dataclass are set once
        matrix, grades, starts = np.asarray(features), np.asarray(labels), np.asarray(offsets)
        set_field("features", matrix if matrix.dtype.kind == "f" else real_array(matrix, "features", None))
        set_field("labels", grades if grades.dtype == np.float64 else real_array(grades, "labels", None))
        set_field("offsets", starts.astype(np.int64, copy=False) if starts.dtype.kind in "iu" else starts)
        set_field("query_ids", np.arange(len(self.offsets) - 1) if query_ids is None else np.asarray(query_ids))
        set_field("name", name)
        require(self.features.ndim == 2, f"features must be 2-dimensional, got shape {self.features.shape}")
        one_entry_each(self.labels, "labels", self.n_docs, "documents")
        query_offsets(self.offsets, self.n_docs)
        one_entry_each(self.query_ids, "query_ids", self.n_queries, "queries")

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        label: str = "label",
        qid: str = "qid",
        features: Sequence[str] | None = None,
        name: str = "frame",
    ) -> RankingData:
        """Take a data frame of pandas, Polars or another library whose columns have ``to_numpy``.

        Parameters
        ----------
        frame : DataFrame
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
            If a column is missing, or the rows of a query are apart from each other.

        Examples
        --------
        >>> import pandas, plrank_fast as plr
        >>> frame = pandas.DataFrame({"qid": ["a", "b", "b"], "label": [0, 2, 1], "length": [0.1, 0.4, 0.2]})
        >>> plr.data.RankingData.from_frame(frame)
        RankingData('frame', n_queries=2, n_docs=3, n_features=1)
        """
        columns = list(frame.columns)
        used = [each for each in columns if each not in (label, qid)] if features is None else list(features)
        missing = [each for each in (label, qid, *used) if each not in columns]
        require(not missing, f"frame must have the columns {missing}, got {columns}")
        ids = frame[qid].to_numpy()
        offsets = offsets_from_qid(ids)
        query_ids = ids[offsets[:-1]]
        if query_ids.dtype.kind not in "iu":
            query_ids = query_ids.astype(str)
        matrix = np.column_stack([frame[each].to_numpy() for each in used])
        return cls(matrix, frame[label].to_numpy(), offsets, query_ids, name)

    def __getitem__(self, queries: slice | npt.ArrayLike) -> RankingData:
        """Select queries by a slice, their positions, or a mask, in the given order."""
        selected = np.arange(self.n_queries)[queries if isinstance(queries, slice) else np.asarray(queries)]
        rows, offsets = self.rows_of(np.atleast_1d(selected))
        return RankingData(
            self.features[rows], self.labels[rows], offsets, self.query_ids[np.atleast_1d(selected)], self.name
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
    def qids(self) -> npt.NDArray[np.int64] | npt.NDArray[np.str_]:
        """Query identifier of each document, shape (n_docs,), as other libraries take them."""
        return self.query_ids.repeat(self.list_lengths)

    @property
    def list_lengths(self) -> npt.NDArray[np.int64]:
        """Documents per query, shape (n_queries,)."""
        return np.diff(self.offsets)

    def rows_of(self, queries: npt.NDArray[np.integer[Any]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the rows of some queries, in the given order, and the offsets of these queries within them.

        Parameters
        ----------
        queries : ndarray of int, shape (n_selected,)
            Positions of queries, not their identifiers.

        Returns
        -------
        rows : ndarray of int64, shape (n_selected_docs,)
        offsets : ndarray of int64, shape (n_selected + 1,)
        """
        lengths = self.list_lengths[queries]
        offsets = offsets_from_group(lengths)
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[queries] - offsets[:-1], lengths)
        return rows, offsets

    def fingerprint(self) -> str:
        """Hash of everything but the name: equal data give equal fingerprints."""
        digest = hashlib.blake2b(digest_size=16)
        for array in (self.features, self.labels, self.offsets, self.query_ids):
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def concatenate(parts: Sequence[RankingData]) -> RankingData:
    """Concatenate several sets, for data that come in several files.

    Queries stay as they are: the same identifier in two parts means two queries.

    Parameters
    ----------
    parts : sequence of RankingData
        The sets, at least one, all with the same number of features.

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
    n_docs, n_features = sum(part.n_docs for part in parts), parts[0].n_features
    needed = sum(part.features.nbytes for part in parts)
    require_bytes(needed, f"another matrix of features, {n_docs} x {n_features}, of all parts")
    return RankingData(
        features=np.concatenate([part.features for part in parts]),
        labels=np.concatenate([part.labels for part in parts]),
        offsets=offsets_from_group(np.concatenate([part.list_lengths for part in parts])),
        query_ids=np.concatenate([part.query_ids for part in parts]),
        name=", ".join(part.name for part in parts),
    )
