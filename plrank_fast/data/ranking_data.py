"""The container of a ranking data set: the documents of all queries, one query after another."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class RankingData:
    """Documents with features and labels, grouped by query.

    Parameters
    ----------
    features : ndarray of float, shape (n_docs, n_features)
        One row per document, the documents of a query next to each other.
    labels : ndarray of float64, shape (n_docs,)
        Graded relevance, as found in the source.
    offsets : ndarray of int64, shape (n_queries + 1,)
        Query ``q`` owns the rows ``offsets[q]:offsets[q + 1]``.
    query_ids : ndarray of int64 or str, shape (n_queries,)
        Query identifiers of the source; `qids` repeats them for each document.
    name : str
        Source of the data, for messages and reports.

    Raises
    ------
    ValueError
        If the shapes do not fit together.
    """

    features: npt.NDArray[np.floating[Any]]
    labels: npt.NDArray[np.float64]
    offsets: npt.NDArray[np.int64]
    query_ids: npt.NDArray[np.int64] | npt.NDArray[np.str_]
    name: str

    def __post_init__(self) -> None:
        if self.features.ndim != 2:
            raise ValueError(f"features must be 2-d, got shape {self.features.shape}")
        if self.labels.shape != (self.n_docs,):
            raise ValueError(f"labels must have shape ({self.n_docs},) like the features, got {self.labels.shape}")
        offsets = self.offsets
        if offsets.ndim != 1 or len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != self.n_docs:
            raise ValueError(f"offsets must be 1-d and run from 0 to the {self.n_docs} documents")
        if np.any(np.diff(offsets) < 0):
            raise ValueError("offsets must not decrease")
        if self.query_ids.shape != (self.n_queries,):
            raise ValueError(f"query_ids must have shape ({self.n_queries},), got {self.query_ids.shape}")

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
        offsets = np.concatenate([[0], np.cumsum(lengths)])
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

    Raises
    ------
    ValueError
        If there is no part, or the numbers of features differ.
    """
    if not parts:
        raise ValueError("parts must hold at least one data set, got none")
    if len({part.n_features for part in parts}) > 1:
        raise ValueError(f"parts must have the same n_features, got {[part.n_features for part in parts]}")
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(part.n_docs for part in parts)])
    offsets = [part.offsets[:-1] + start for part, start in zip(parts, starts[:-1], strict=True)]
    return RankingData(
        features=np.concatenate([part.features for part in parts]),
        labels=np.concatenate([part.labels for part in parts]),
        offsets=np.concatenate([*offsets, starts[-1:]]).astype(np.int64),
        query_ids=np.concatenate([part.query_ids for part in parts]),
        name=", ".join(part.name for part in parts),
    )
