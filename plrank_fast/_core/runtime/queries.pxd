"""The arrays of a batch of queries, and the view of one query in them."""

from plrank_fast._core.runtime.buffers cimport integers, numbers
from plrank_fast._core.runtime.scalar_types cimport int64_t, intp_t


cdef struct Queries:
    # the documents of all queries are concatenated in one array, query q at [offsets[q], offsets[q + 1])
    const int64_t *offsets
    const double *scores
    const double *relevance        # or NULL
    const double *rank_weights     # (n_ranks,), or one row per query; or NULL
    intp_t n_ranks
    intp_t next_rank_weights       # stride between queries: 0 if all share them


cdef inline intp_t longest_query(const int64_t[::1] offsets) noexcept nogil:
    """Return the number of documents of the longest query."""
    cdef intp_t longest = 0, q
    for q in range(offsets.shape[0] - 1):
        longest = max(longest, offsets[q + 1] - offsets[q])
    return longest


cdef inline Queries queries_of(const double[::1] scores, const int64_t[::1] offsets) noexcept nogil:
    """Return the pointers of a batch without relevance and rank weights."""
    return Queries(integers(offsets), numbers(scores), NULL, NULL, 0, 0)


cdef inline bint all_alike(const Queries *queries, intp_t n_queries) noexcept nogil:
    """Return whether no query has documents of different relevance; most batches show one at once."""
    cdef intp_t q, d
    for q in range(n_queries):
        for d in range(queries.offsets[q] + 1, queries.offsets[q + 1]):
            if queries.relevance[d] != queries.relevance[d - 1]:
                return False
    return True


cdef struct Query:
    intp_t index                   # within the batch
    intp_t first                   # document
    intp_t n_items
    intp_t cutoff                  # ranks that count: min(n_ranks, n_items)
    const double *scores
    const double *relevance
    const double *rank_weights


cdef inline Query query_at(const Queries *queries, intp_t index) noexcept nogil:
    cdef Query query
    query.index = index
    query.first = queries.offsets[index]
    query.n_items = queries.offsets[index + 1] - query.first
    query.cutoff = min(queries.n_ranks, query.n_items)
    query.scores = queries.scores + query.first
    query.relevance = NULL
    if queries.relevance != NULL:
        query.relevance = queries.relevance + query.first
    query.rank_weights = queries.rank_weights + index * queries.next_rank_weights
    return query
