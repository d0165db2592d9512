"""Chunks of whole queries of a batch, for process pools, with the same random numbers as the whole batch."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast.validation import IntArray

__all__ = ["query_chunks", "query_streams"]


def __dir__() -> list[str]:
    return __all__


QUERY_COST = 20  # documents that a query costs besides its own
# Sources of random numbers of these libraries, and traced numbers, are checked by the adapters.
FRAMEWORKS = ("torch", "jax", "jaxlib")


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

    Sampled functions give a chunk the bits that it has in the whole batch if they take the same seed, by
    `query_streams` with the chunk's ``first_query``.

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
    >>> from plrank_fast.chunks import query_chunks, query_streams
    >>> scores, labels, theta = np.arange(7.0), np.arange(7) % 3, plr.dcg_weights(2)
    >>> offsets = [0, 3, 5, 7]
    >>> parts = [
    ...     plr.pl_rank_3(
    ...         scores[c.docs], labels[c.docs], theta, offsets=c.offsets, rng=query_streams(1, c.first_query)
    ...     )
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


def query_streams(rng: Any, first_query: Any) -> np.random.SeedSequence:
    """Number the queries of a call from ``first_query`` on, so that query q draws from stream ``first_query + q``.

    Parameters
    ----------
    rng : None, int, SeedSequence, BitGenerator or Generator
        Source of the random numbers, or a ``generator`` or ``key`` of the losses of PyTorch and JAX. A generator is
        advanced by one draw when the result is first used.
    first_query : int
        Number of the first query in the numbering of random streams; in JAX it may be traced.

    Returns
    -------
    SeedSequence
        The ``rng``, ``generator`` or ``key`` of a call for some of the queries of a batch, which get the bits that they
        have in the whole batch.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> from plrank_fast.chunks import query_streams
    >>> both = plr.sample_rankings([0.0, 1.0, 2.0, 3.0], 5, offsets=[0, 2, 4], rng=1)
    >>> second = plr.sample_rankings([2.0, 3.0], 5, rng=query_streams(1, 1))
    >>> bool((second == both[1]).all())
    True
    """
    if type(rng).__module__.partition(".")[0] not in FRAMEWORKS:
        validation.check_random_state(rng)
    traced = hasattr(first_query, "aval")
    return validation.DrawnKey(rng, first_query if traced else validation.count(first_query, "first_query", 0))
