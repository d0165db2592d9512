"""The arrays of a batch of queries, and the view of one query in them."""

from plrank_fast._core.runtime.scalar_types cimport int64_t, intp_t


cdef struct Queries:
    # the documents of all queries are concatenated in one array, query q at [offsets[q], offsets[q + 1])
    const int64_t *offsets
    const double *scores
    const double *relevance        # or NULL
    const double *rank_weights     # (n_ranks,), or one row per query; or NULL
    intp_t n_ranks
    intp_t next_rank_weights       # stride between queries: 0 if all share them


cdef struct Query:
    intp_t index                   # within the batch
    intp_t first                   # document
    intp_t n_items
    intp_t cutoff                  # ranks that count: min(n_ranks, n_items)
    const double *scores
    const double *relevance
    const double *rank_weights


cdef inline Queries queries_of(
    const double[::1] scores, const double[::1] relevance, const double[:, ::1] rank_weights, const int64_t[::1] offsets
) noexcept:
    """Return the arrays of a batch. ``relevance`` and ``rank_weights`` may be None; no array given may be empty."""
    cdef Queries queries
    queries.offsets = &offsets[0]
    queries.scores = &scores[0]
    queries.relevance = NULL
    queries.rank_weights = NULL
    queries.n_ranks = 0
    queries.next_rank_weights = 0
    if relevance is not None:
        queries.relevance = &relevance[0]
    if rank_weights is not None:
        queries.rank_weights = &rank_weights[0, 0]
        queries.n_ranks = rank_weights.shape[1]
        if rank_weights.shape[0] > 1:
            queries.next_rank_weights = rank_weights.shape[1]
    return queries


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
