"""Chunks of whole queries of a batch, for process pools, with the same random numbers as the whole batch."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast.validation import IntArray

__all__ = ["query_chunks"]


def __dir__() -> list[str]:
    return __all__


QUERY_COST = 20  # documents that a query costs besides its own


class QueryChunk(NamedTuple):
    """Consecutive queries of a batch.

    Attributes
    ----------
    docs : slice
        Documents of these queries in the batch: ``scores[chunk.docs]``.
    queries : slice
        The queries: ``rank_weights[chunk.queries]`` if each has a row of its own.
    offsets : ndarray, shape (n_queries_of_chunk + 1,), int64
        Where their documents start in the chunk.
    first_query : int
        Number of the first query in the numbering of random streams.
    """

    docs: slice
    queries: slice
    offsets: IntArray
    first_query: int


def query_chunks(offsets: ArrayLike, n_chunks: int, *, first_query: int = 0) -> list[QueryChunk]:
    """Cut a batch into chunks that take about the same time.

    Sampled functions give a chunk the bits that it has in the whole batch, given its ``first_query`` and the same seed.

    Parameters
    ----------
    offsets : array_like of int, shape (n_queries + 1,)
        Where each query's documents start in the batch.
    n_chunks : int
        Chunks to make; there are fewer if there are fewer queries.
    first_query : int
        Number of the batch's own first query.

    Returns
    -------
    list of QueryChunk
        The chunks in order; concatenated, their documents are the batch. Each has ``docs``, the slice of its documents
        in the batch, ``queries``, the slice of its queries, for a row of rank weights each, ``offsets``, where its
        queries start in it, and ``first_query``, the number of its first query.

    Examples
    --------
    >>> import numpy as np, plrank_fast as plr
    >>> from plrank_fast.chunks import query_chunks
    >>> scores, labels, theta = np.arange(7.0), np.arange(7) % 3, plr.dcg_weights(2)
    >>> offsets = [0, 3, 5, 7]
    >>> parts = [
    ...     plr.pl_rank_3(scores[c.docs], labels[c.docs], theta, offsets=c.offsets, first_query=c.first_query, rng=1)
    ...     for c in query_chunks(offsets, 2)
    ... ]
    >>> bool((np.concatenate(parts) == plr.pl_rank_3(scores, labels, theta, offsets=offsets, rng=1)).all())
    True
    """
    starts = validation.integer_array(offsets, "offsets")
    starts = validation.query_offsets(starts, int(starts[-1]) if starts.size else 0)
    number, base = validation.count(n_chunks, "n_chunks", 1), validation.count(first_query, "first_query", 0)
    n_queries = starts.size - 1
    costs = starts + QUERY_COST * np.arange(starts.size)
    number = min(number, n_queries)
    ends = np.searchsorted(costs, costs[-1] * np.arange(1, number) / number) if number else np.zeros(0, dtype=np.int64)
    # Every chunk has at least one query, and leaves one to each chunk after it.
    ends = np.maximum.accumulate(np.maximum(ends - np.arange(1, number), 0)) + np.arange(1, number)
    ends = np.minimum(ends, n_queries - np.arange(number - 1, 0, -1))
    cuts = [0, *ends.tolist(), n_queries] if number else []
    return [
        QueryChunk(
            docs=slice(int(starts[begin]), int(starts[end])),
            queries=slice(begin, end),
            offsets=starts[begin : end + 1] - starts[begin],
            first_query=base + begin,
        )
        for begin, end in itertools.pairwise(cuts)
    ]
