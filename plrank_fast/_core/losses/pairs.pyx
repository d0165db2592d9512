"""Losses over pairs of documents with unequal labels: pairwise logistic, LambdaRank, LambdaLoss.

Sorted by label, the documents that one document should precede are a contiguous row, so pairs of equal labels are never
visited. Ranked by score, the pairs that can change DCG@K are the rows of the first K documents, each against all that
rank lower. Pairs of equal gains have weight 0, and most documents are irrelevant: their rows only pair with the R
relevant ones that rank lower, which have a separate list. O(D + R D + K R).
"""

from libc.math cimport log
from libc.string cimport memset

from plrank_fast._core.losses.loss cimport Loss, LossQuery, as_object
from plrank_fast._core.random.selection cimport sort_pairs
from plrank_fast._core.ranking.metrics cimport dcg_of_query, rank_all
from plrank_fast._core.runtime.layout cimport Layout, take, take_state
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t
from plrank_fast._core.runtime.simd cimport simd_level

cdef extern from "losses/pair_losses.h" nogil:
    ctypedef struct ranked_documents:
        double *scores
        double *gains
        double *discounts
        double *gradient
    ctypedef struct pair_kernels:
        double (*precede)(double score, const double *scores, double *gradient, double *own, size_t n) noexcept nogil
        double (*ranked)(
            const ranked_documents *all, size_t document, const ranked_documents *lower, size_t first,
            const double *distance, size_t n) noexcept nogil
    const pair_kernels *pair_kernels_at(int level)

cdef const pair_kernels *kernels = pair_kernels_at(simd_level())

cdef intp_t WORTH_LISTING = 4    # pairs of irrelevant documents, for each document, from which on the list pays

cdef struct Pairs:
    double *keys                 # (n_items,) scratch of the sorts
    double *scores               # (n_items,) times the slope, in the order of the rows
    double *labels               # (n_items,) in that order
    double *gradient             # (n_items,) in that order
    int32_t *items
    intp_t *row_end              # (n_items,) where the documents of lower label begin

cdef struct Ranked:
    double *keys                 # (n_items,) scratch of the sorts
    int32_t *items               # (n_items,) by rank
    ranked_documents all         # (n_items,)
    ranked_documents relevant    # those with a gain, if that list is used
    int32_t *rank                # (n_items,) ranks of these
    double *distance             # (n_items,) of LambdaLoss, by difference of ranks
    double *apart                # (n_items,) likewise, for the relevant documents of one row
    bint lists_relevant          # rows of irrelevant documents pair with the relevant ones only
    intp_t n_relevant
    intp_t relevant_seen         # among the rows so far


# ---------------------------------------------------------------------------------------------------------------------
# Pairwise logistic
# ---------------------------------------------------------------------------------------------------------------------

cdef void lay_out_pairs(Layout *layout, intp_t n_items, intp_t cutoff) noexcept nogil:
    cdef Pairs measured
    cdef Pairs *state = <Pairs *>take_state(layout, sizeof(Pairs), &measured)
    cdef size_t doubles = n_items * sizeof(double)
    state.keys = <double *>take(layout, doubles)
    state.scores = <double *>take(layout, doubles)
    state.labels = <double *>take(layout, doubles)
    state.gradient = <double *>take(layout, doubles)
    state.row_end = <intp_t *>take(layout, n_items * sizeof(intp_t))
    state.items = <int32_t *>take(layout, n_items * sizeof(int32_t))


cdef void begin_pairwise(LossQuery *query) noexcept nogil:
    cdef Pairs *state = <Pairs *>query.state
    cdef intp_t i
    memset(state.gradient, 0, query.n_items * sizeof(double))
    query.n_rows = query.n_items
    for i in range(query.n_items):
        state.keys[i] = -query.labels[i]
        state.items[i] = <int32_t>i
    sort_pairs(state.keys, state.items, query.n_items)
    for i in range(query.n_items):
        state.scores[i] = query.options.scale * query.scores[state.items[i]]
        state.labels[i] = query.labels[state.items[i]]
    for i in range(query.n_items - 1, -1, -1):
        if i == query.n_items - 1 or state.labels[i] != state.labels[i + 1]:
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


cdef void finish_pairwise(LossQuery *query) noexcept nogil:
    """Write the gradient in the order of the documents."""
    cdef Pairs *state = <Pairs *>query.state
    cdef intp_t i
    for i in range(query.n_items):
        query.gradient[state.items[i]] = query.options.scale * state.gradient[i]

cdef Loss pairwise_logistic = Loss(lay_out_pairs, begin_pairwise, pairwise_rows, finish_pairwise, 40.0, 3.0, 0.0, False)
PAIRWISE_LOGISTIC = as_object(&pairwise_logistic)


# ---------------------------------------------------------------------------------------------------------------------
# LambdaRank and LambdaLoss
# ---------------------------------------------------------------------------------------------------------------------

cdef void lay_out_documents(ranked_documents *documents, intp_t n_items, Layout *layout) noexcept nogil:
    cdef size_t doubles = n_items * sizeof(double)
    documents.scores = <double *>take(layout, doubles)
    documents.gains = <double *>take(layout, doubles)
    documents.discounts = <double *>take(layout, doubles)
    documents.gradient = <double *>take(layout, doubles)


cdef void lay_out_ranked(Layout *layout, intp_t n_items, intp_t cutoff) noexcept nogil:
    cdef Ranked measured
    cdef Ranked *state = <Ranked *>take_state(layout, sizeof(Ranked), &measured)
    cdef size_t doubles = n_items * sizeof(double)
    state.keys = <double *>take(layout, doubles)
    state.distance = <double *>take(layout, doubles)
    state.apart = <double *>take(layout, doubles)
    lay_out_documents(&state.all, n_items, layout)
    lay_out_documents(&state.relevant, n_items, layout)
    state.items = <int32_t *>take(layout, n_items * sizeof(int32_t))
    state.rank = <int32_t *>take(layout, n_items * sizeof(int32_t))


cdef void gather_documents(LossQuery *query, Ranked *state, double ideal) noexcept nogil:
    """Fill the list of all documents by rank."""
    cdef ranked_documents *documents = &state.all
    cdef intp_t worth = query.n_items if query.options.discounts_past_cutoff else query.cutoff, k
    for k in range(query.n_items):
        documents.scores[k] = query.options.scale * query.scores[state.items[k]]
        documents.gains[k] = query.labels[state.items[k]]
    for k in range(query.n_items):
        documents.gains[k] /= ideal
    for k in range(worth):
        documents.discounts[k] = query.options.discounts[k]
    memset(documents.discounts + worth, 0, (query.n_items - worth) * sizeof(double))


cdef void gather_relevant(Ranked *state, intp_t n_items, intp_t cutoff) noexcept nogil:
    """Copy the relevant documents to a list of their own, if to leave out the pairs of all others pays.

    There is no branch on the gains, which a processor could not predict.
    """
    cdef ranked_documents *documents = &state.all
    cdef ranked_documents *relevant = &state.relevant
    cdef intp_t k, n = 0
    for k in range(n_items):
        n += documents.gains[k] > 0.0
    state.lists_relevant = cutoff * (n_items - n) > WORTH_LISTING * n_items
    state.n_relevant = state.relevant_seen = 0
    if not state.lists_relevant:
        return
    n = 0
    for k in range(n_items):
        # the next document overwrites an irrelevant one
        relevant.scores[n] = documents.scores[k]
        relevant.gains[n] = documents.gains[k]
        relevant.discounts[n] = documents.discounts[k]
        state.rank[n] = <int32_t>k
        n += documents.gains[k] > 0.0
    memset(relevant.gradient, 0, n * sizeof(double))
    state.n_relevant = n


cdef void begin_lambda(LossQuery *query) noexcept nogil:
    cdef Ranked *state = <Ranked *>query.state
    cdef intp_t n_items = query.n_items, cutoff = query.cutoff, k
    cdef const double *discounts = query.options.discounts
    cdef double ideal = dcg_of_query(query.labels, query.labels, discounts, n_items, cutoff, state.keys, state.items)
    # all ranks are needed if those past the cutoff count
    cdef bint in_order = query.options.distance_weight > 0.0 or query.options.discounts_past_cutoff
    query.n_rows = 0
    if ideal == 0.0:
        return
    memset(state.all.gradient, 0, n_items * sizeof(double))
    rank_all(query.scores, n_items, n_items if in_order else cutoff, state.keys, state.items)
    query.n_rows = cutoff
    if query.options.distance_weight > 0.0:
        ideal *= log(2.0)  # LambdaLoss has logarithms to base 2
    gather_documents(query, state, ideal)
    gather_relevant(state, n_items, cutoff)
    if query.options.distance_weight > 0.0:
        state.distance[0] = 0.0
        for k in range(1, n_items):
            state.distance[k] = query.options.distance_weight * (discounts[k - 1] - discounts[k])


cdef void lambda_rows(LossQuery *query, intp_t first, intp_t last) noexcept nogil:
    """Add the pairs of the documents at these ranks with those that rank lower."""
    cdef Ranked *state = <Ranked *>query.state
    cdef bint with_distance = query.options.distance_weight > 0.0
    cdef const double *distance = NULL
    cdef intp_t k, i
    for k in range(first, last):
        if state.all.gains[k] > 0.0 or not state.lists_relevant:
            state.relevant_seen += 1
            if with_distance:
                distance = state.distance + 1
            query.value[0] += kernels.ranked(&state.all, k, &state.all, k + 1, distance, query.n_items - k - 1)
        else:
            if with_distance:
                for i in range(state.relevant_seen, state.n_relevant):
                    state.apart[i] = state.distance[state.rank[i] - k]
                distance = state.apart + state.relevant_seen
            query.value[0] += kernels.ranked(
                &state.all, k, &state.relevant, state.relevant_seen, distance, state.n_relevant - state.relevant_seen)


cdef void finish_lambda(LossQuery *query) noexcept nogil:
    """Add the gradients of both lists, in the order of the documents."""
    cdef Ranked *state = <Ranked *>query.state
    cdef intp_t k
    for k in range(state.n_relevant):
        state.all.gradient[state.rank[k]] += state.relevant.gradient[k]
    for k in range(query.n_items):
        query.gradient[state.items[k]] = query.options.scale * state.all.gradient[k]

# LambdaRank, if ``distance_weight`` is 0
cdef Loss lambda_loss = Loss(lay_out_ranked, begin_lambda, lambda_rows, finish_lambda, 40.0, 4.0, 0.0, True)
LAMBDA_LOSS = as_object(&lambda_loss)
