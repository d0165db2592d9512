"""Min-max normalisation of features within each query, customary for LETOR data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plrank_fast._shared.memory import require_bytes
from plrank_fast.data.ranking_data import RankingData, finite_features

CHUNK_BYTES = 2**26  # the temporaries of one chunk of queries, not a second copy of the data set


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
    # The width of a range of doubles may overflow; halves do not.
    normalized = np.empty_like(data.features, order="C")
    filled = np.flatnonzero(data.list_lengths)  # reduceat would give an empty query its successor's first row
    starts, lengths = data.offsets[filled], data.list_lengths[filled]
    docs_per_chunk = max(1, CHUNK_BYTES // max(1, data.n_features * data.features.itemsize))
    first = 0
    while first < len(filled):
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + docs_per_chunk)))
        rows = slice(int(starts[first]), int(starts[last - 1] + lengths[last - 1]))
        half = data.features[rows] * 0.5
        local = starts[first:last] - starts[first]
        low = np.minimum.reduceat(half, local, axis=0)
        span = np.maximum.reduceat(half, local, axis=0) - low
        half -= np.repeat(low, lengths[first:last], axis=0)
        span = np.repeat(span, lengths[first:last], axis=0)
        target = normalized[rows]
        target[...] = 0
        np.divide(half, span, out=target, where=span > 0)
        first = last
    return replace(data, features=normalized)
