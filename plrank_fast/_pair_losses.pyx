"""Losses over pairs of documents with unequal labels: pairwise logistic, LambdaRank, LambdaLoss.

Sorted by label, the documents that one document should precede are a contiguous row, and so no pair of equal labels is
looked at. Ranked by score, the pairs that can change DCG@K are the rows of the first K documents: O(D K), of which
pairs of equal gains take part with weight 0.
"""

from libc.string cimport memset

from plrank_fast._losses cimport Loss, LossQuery
from plrank_fast._metrics cimport rank_all, rank_query
from plrank_fast._selection cimport sort_pairs
from plrank_fast._simd cimport simd_level
from plrank_fast._typedefs cimport int32_t, intp_t

cdef extern from "pair_losses.h" nogil:
    ctypedef struct ranked_documents:
        const double *scores
        const double *gains
        const double *discounts
        const double *distance
    ctypedef struct pair_kernels:
        double (*precede)(double score, const double *scores, double *gradient, double *own, size_t n) noexcept nogil
        double (*ranked)(
            const ranked_documents *documents, size_t first, size_t n, double *gradient) noexcept nogil
    const pair_kernels *pair_kernels_at(int level)

cdef const pair_kernels *kernels = pair_kernels_at(simd_level())

cdef struct Pairs:
    double *keys                 # (n_items,) scratch of the sorts
    double *scores               # (n_items,) times the slope, in the order of the rows
    double *gains                # (n_items,) in that order; for LambdaRank over the ideal DCG
    double *gradient             # (n_items,) in that order
    double *discounts            # (n_items,) 1 / log2(rank + 1), 0 past the cutoff
    double *distance             # (n_items,) of LambdaLoss
    int32_t *items
    intp_t *row_end              # (n_items,) where the documents of lower label begin


# ---------------------------------------------------------------------------------------------------------------------
# Shared
# ---------------------------------------------------------------------------------------------------------------------

cdef inline size_t state_bytes() noexcept nogil:
    return (sizeof(Pairs) + 63) // 64 * 64


cdef size_t workspace(intp_t n_items, intp_t cutoff) noexcept nogil:
    return state_bytes() + <size_t>n_items * (6 * sizeof(double) + sizeof(intp_t) + sizeof(int32_t))


cdef Pairs *carve(LossQuery *query, char *memory) noexcept nogil:
    cdef Pairs *state = <Pairs *>memory
    query.state = state
    state.keys = <double *>(memory + state_bytes())
    state.scores = state.keys + query.n_items
    state.gains = state.scores + query.n_items
    state.gradient = state.gains + query.n_items
    state.discounts = state.gradient + query.n_items
    state.distance = state.discounts + query.n_items
    state.row_end = <intp_t *>(state.distance + query.n_items)
    state.items = <int32_t *>(state.row_end + query.n_items)
    memset(state.gradient, 0, query.n_items * sizeof(double))
    return state


cdef inline void gather(LossQuery *query, Pairs *state) noexcept nogil:
    cdef intp_t i
    for i in range(query.n_items):
        state.scores[i] = query.scale * query.scores[state.items[i]]
        state.gains[i] = query.labels[state.items[i]]


cdef void finish(LossQuery *query) noexcept nogil:
    """The gradient back in the order of the documents."""
    cdef Pairs *state = <Pairs *>query.state
    cdef intp_t i
    for i in range(query.n_items):
        query.gradient[state.items[i]] = query.scale * state.gradient[i]


# ---------------------------------------------------------------------------------------------------------------------
# Pairwise logistic
# ---------------------------------------------------------------------------------------------------------------------

cdef void begin_pairwise(LossQuery *query, char *memory) noexcept nogil:
    cdef Pairs *state = carve(query, memory)
    cdef intp_t i
    query.n_rows = query.n_items
    for i in range(query.n_items):
        state.keys[i] = -query.labels[i]
        state.items[i] = <int32_t>i
    sort_pairs(state.keys, state.items, query.n_items)
    gather(query, state)
    for i in range(query.n_items - 1, -1, -1):
        if i == query.n_items - 1 or state.gains[i] != state.gains[i + 1]:
            state.row_end[i] = i + 1
        else:
            state.row_end[i] = state.row_end[i + 1]


cdef void pairwise_rows(LossQuery *query, intp_t first, intp_t last) noexcept nogil:
    cdef Pairs *state = <Pairs *>query.state
    cdef intp_t i, end
    for i in range(first, last):
        end = state.row_end[i]
        if end < query.n_items:
            query.value[0] += kernels.precede(
                state.scores[i], state.scores + end, state.gradient + end, &state.gradient[i], query.n_items - end)


cdef double pairwise_row_ns(intp_t n_items, intp_t cutoff) noexcept nogil:
    return 3.0 * n_items


cdef Loss pairwise_logistic() noexcept nogil:
    cdef Loss loss
    loss.workspace = workspace
    loss.begin = begin_pairwise
    loss.rows = pairwise_rows
    loss.finish = finish
    loss.ns_per_item = 40.0
    loss.row_ns = pairwise_row_ns
    loss.rows_are_ranks = False
    return loss


# ---------------------------------------------------------------------------------------------------------------------
# LambdaRank and LambdaLoss
# ---------------------------------------------------------------------------------------------------------------------

cdef void begin_lambda(LossQuery *query, char *memory) noexcept nogil:
    cdef Pairs *state = carve(query, memory)
    cdef intp_t n_items = query.n_items, cutoff = query.cutoff, k, d
    cdef double ideal = 0.0
    query.n_rows = 0
    for k in range(cutoff):
        state.discounts[k] = query.discounts[k]
    rank_query(query.labels, n_items, cutoff, state.keys, state.items)
    for k in range(cutoff):
        ideal += state.discounts[k] * query.labels[state.items[k]]
    # distances between documents past the cutoff count for LambdaLoss, which needs all ranks
    rank_all(query.scores, n_items, n_items if query.distance_weight > 0.0 else cutoff, state.keys, state.items)
    if ideal == 0.0:
        return
    query.n_rows = cutoff
    gather(query, state)
    for d in range(n_items):
        state.gains[d] /= ideal
    for k in range(cutoff, n_items):
        state.discounts[k] = 0.0
    if query.distance_weight > 0.0:
        state.distance[0] = 0.0
        for k in range(1, n_items):
            state.distance[k] = query.distance_weight * (query.discounts[k - 1] - query.discounts[k])


cdef void lambda_rows(LossQuery *query, intp_t first, intp_t last) noexcept nogil:
    cdef Pairs *state = <Pairs *>query.state
    cdef ranked_documents documents
    cdef intp_t k
    documents.scores = state.scores
    documents.gains = state.gains
    documents.discounts = state.discounts
    documents.distance = state.distance if query.distance_weight > 0.0 else NULL
    for k in range(first, last):
        query.value[0] += kernels.ranked(&documents, k, query.n_items, state.gradient)


cdef double ranked_row_ns(intp_t n_items, intp_t cutoff) noexcept nogil:
    return 4.0 * n_items


cdef Loss lambda_loss() noexcept nogil:
    """LambdaRank where ``distance_weight`` is 0."""
    cdef Loss loss
    loss.workspace = workspace
    loss.begin = begin_lambda
    loss.rows = lambda_rows
    loss.finish = finish
    loss.ns_per_item = 40.0
    loss.row_ns = ranked_row_ns
    loss.rows_are_ranks = True
    return loss
