"""Queries of a data set as a network takes them: features are made when they are asked for, and not kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plrank_fast._core.data.normalization import normalize_rows
from plrank_fast.data import RankingData


@dataclass(frozen=True)
class Part:
    """Some queries of ``data``.

    ``documents`` are theirs, perhaps without features, and ``rows`` their places in ``data``, or None if they are all
    of it. Features are in single precision if they are normalised within each query.
    """

    data: RankingData
    documents: RankingData
    rows: npt.NDArray[np.int64] | None = None
    normalized: bool = False

    @classmethod
    def of(cls, data: RankingData | Part) -> Part:
        """Return all queries of a data set, with the features that it has."""
        return data if isinstance(data, Part) else cls(data, data)

    @classmethod
    def selected(cls, data: RankingData, queries: npt.NDArray[np.int64], *, normalized: bool) -> Part:
        """Return queries by their positions in a data set."""
        rows, offsets = data.rows_of(queries)
        nothing, ids = np.empty((len(rows), 0), np.float32), data.query_ids[queries]
        return cls(data, RankingData(nothing, data.labels[rows], offsets, ids, data.name), rows, normalized)

    def features_of(
        self, docs: slice | npt.NDArray[np.int64], offsets: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.floating[Any]]:
        """Return the features of the documents of whole queries, which begin at ``offsets`` among these."""
        places = docs if self.rows is None else self.rows[docs]
        features = self.data.features[places]
        if self.normalized:
            features = features.astype(np.float32, order="C", copy=isinstance(places, slice))
            normalize_rows(features, offsets)
        return features
