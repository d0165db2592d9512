"""Min-max normalisation of features within each query, customary for LETOR data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plrank_fast._core.data.normalization import normalize_rows
from plrank_fast._shared.memory import require_bytes
from plrank_fast.data.ranking_data import RankingData, finite_features


def normalize_queries(data: RankingData) -> RankingData:
    """Map every feature of every query onto [0, 1]: ``(x - min) / (max - min)`` over the query's documents.

    A feature that is constant within a query says nothing about its ranking and becomes 0. Empty queries are allowed.
    The time is O(n_docs * n_features), and the memory is one new feature matrix.

    Parameters
    ----------
    data : RankingData
        The data, which are not changed.

    Returns
    -------
    RankingData
        The data with new features, of the same dtype.
    """
    require_bytes(data.features.nbytes, f"another matrix of features, {data.n_docs} x {data.n_features}, normalised,")
    finite_features(data.features)  # they may have been changed
    kind = np.result_type(data.features.dtype, np.float32)  # computed in this type, of native bytes
    normalized = np.array(data.features, kind, order="C")
    normalize_rows(normalized, data.offsets)
    return replace(data, features=normalized.astype(data.features.dtype, copy=False))
