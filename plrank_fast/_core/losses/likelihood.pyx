"""Losses that are likelihoods: pointwise, softmax cross-entropy, ListMLE. O(D), the last one O(D + K log K)."""

from plrank_fast._core.losses.loss cimport Loss, LossQuery, as_object
from plrank_fast._core.random.stream cimport plr_stream, start_stream
from plrank_fast._core.ranking.metrics cimport rank_all
from plrank_fast._core.runtime.layout cimport Layout, take, take_state
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t
from plrank_fast._core.runtime.simd cimport simd_level

cdef extern from "losses/likelihood_losses.h" nogil:
    ctypedef struct likelihood_kernels:
        double (*squared)(const double *scores, const double *labels, double *gradient, size_t n) noexcept nogil
        double (*logistic)(const double *scores, const double *labels, double *gradient, size_t n) noexcept nogil
        double (*softmax)(const double *scores, const double *labels, double *gradient, size_t n) noexcept nogil
        double (*exponentials)(const double *x, double shift, double *out, size_t n) noexcept nogil
        double (*sum_of_logarithms)(const double *x, size_t n) noexcept nogil
    const likelihood_kernels *likelihood_kernels_at(int level)

cdef extern from "random/shuffle.h" nogil:
    void plr_shuffle(plr_stream *stream, int32_t *items, size_t n)

cdef const likelihood_kernels *kernels = likelihood_kernels_at(simd_level())


# ---------------------------------------------------------------------------------------------------------------------
# Pointwise: each document by itself
# ---------------------------------------------------------------------------------------------------------------------

cdef void squared_rows(LossQuery *query, intp_t first, intp_t last) noexcept nogil:
    query.value[0] = kernels.squared(query.scores, query.labels, query.gradient, query.n_items)

cdef Loss pointwise_squared = Loss(NULL, NULL, squared_rows, NULL, 2.0, 0.0, 0.0, False)
POINTWISE_SQUARED = as_object(&pointwise_squared)


cdef void logistic_rows(LossQuery *query, intp_t first, intp_t last) noexcept nogil:
    query.value[0] = kernels.logistic(query.scores, query.labels, query.gradient, query.n_items)

cdef Loss pointwise_logistic = Loss(NULL, NULL, logistic_rows, NULL, 6.0, 0.0, 0.0, False)
POINTWISE_LOGISTIC = as_object(&pointwise_logistic)


# ---------------------------------------------------------------------------------------------------------------------
# Softmax cross-entropy
# ---------------------------------------------------------------------------------------------------------------------

cdef void softmax_rows(LossQuery *query, intp_t first, intp_t last) noexcept nogil:
    if query.n_items > 1:
        query.value[0] = kernels.softmax(query.scores, query.labels, query.gradient, query.n_items)

cdef Loss softmax_cross_entropy = Loss(NULL, NULL, softmax_rows, NULL, 5.0, 0.0, 0.0, False)
SOFTMAX_CROSS_ENTROPY = as_object(&softmax_cross_entropy)


# ---------------------------------------------------------------------------------------------------------------------
# ListMLE: the log-probability of the ranking by label, up to the cutoff
# ---------------------------------------------------------------------------------------------------------------------
# The unit of S_k, the weight left over before rank k, is exp(M_k), with M_k the highest score left over, so that
# nothing overflows, underflows or cancels at any gap of the scores:  a_k = exp(f_k - M_k),  b_k = exp(M_{k+1} - M_k),
# S_k = a_k + b_k S_{k+1} value = sum over k of (M_k - f_k) + log S_k gradient of the document at rank k = a_k / S_k A_k
# - 1,  A_k = 1 + A_{k-1} b_{k-1} S_k / S_{k-1}

cdef struct Likelihood:
    double *keys                 # (n_items,) scores in ranking order
    double *highest              # (n_items,) M for each rank
    double *left_over            # (n_items,) S, in exp(M)
    double *own                  # (n_items,) a
    double *step                 # (n_items,) b
    int32_t *items               # items by descending label
    int32_t *shuffled            # (n_items,) the documents in random order, where ties are broken at random


cdef void lay_out(Layout *layout, intp_t n_items, intp_t cutoff) noexcept nogil:
    cdef Likelihood measured
    cdef Likelihood *state = <Likelihood *>take_state(layout, sizeof(Likelihood), &measured)
    cdef size_t doubles = n_items * sizeof(double)
    state.keys = <double *>take(layout, doubles)
    state.highest = <double *>take(layout, doubles)
    state.left_over = <double *>take(layout, doubles)
    state.own = <double *>take(layout, doubles)
    state.step = <double *>take(layout, doubles)
    state.items = <int32_t *>take(layout, n_items * sizeof(int32_t))
    state.shuffled = <int32_t *>take(layout, n_items * sizeof(int32_t))


cdef void rank_by_label(LossQuery *query, Likelihood *state) noexcept nogil:
    """Sort items by descending label; break ties by index, or by the place in a random order of all documents."""
    cdef double *labels = state.highest  # not in use yet
    cdef plr_stream stream
    cdef intp_t k
    if query.options.key == NULL:
        rank_all(query.labels, query.n_items, query.cutoff, state.keys, state.items)
        return
    start_stream(&stream, query.options.key, query.stream, 0)
    plr_shuffle(&stream, state.shuffled, query.n_items)
    for k in range(query.n_items):
        labels[k] = query.labels[state.shuffled[k]]
    rank_all(labels, query.n_items, query.cutoff, state.keys, state.items)
    for k in range(query.n_items):
        state.items[k] = state.shuffled[state.items[k]]


cdef void list_mle_rows(LossQuery *query, intp_t first, intp_t last) noexcept nogil:
    cdef Likelihood *state = <Likelihood *>query.state
    cdef intp_t n_items = query.n_items, cutoff = query.cutoff, n_others = query.n_items - query.cutoff, k
    cdef double others = 0.0, sum_of_gaps = 0.0, repeated = 0.0
    if cutoff == 0:
        return
    rank_by_label(query, state)
    for k in range(n_items):
        state.keys[k] = query.scores[state.items[k]]
    state.highest[n_items - 1] = state.keys[n_items - 1]
    for k in range(n_items - 2, -1, -1):
        state.highest[k] = max(state.keys[k], state.highest[k + 1])
    # the documents past the cutoff, and the last one before it, share a unit
    others = kernels.exponentials(
        state.keys + cutoff, state.highest[cutoff - 1], state.own + cutoff, n_others)
    for k in range(cutoff):
        state.own[k] = state.keys[k] - state.highest[k]
        state.step[k] = state.highest[k + 1] - state.highest[k] if k + 1 < cutoff else 0.0
        sum_of_gaps -= state.own[k]
    kernels.exponentials(state.own, 0.0, state.own, cutoff)
    kernels.exponentials(state.step, 0.0, state.step, cutoff)
    state.left_over[cutoff - 1] = state.own[cutoff - 1] + others
    for k in range(cutoff - 2, -1, -1):
        state.left_over[k] = state.own[k] + state.step[k] * state.left_over[k + 1]
    query.value[0] = sum_of_gaps + kernels.sum_of_logarithms(state.left_over, cutoff)
    for k in range(cutoff):
        if k > 0:
            repeated *= state.step[k - 1] * state.left_over[k] / state.left_over[k - 1]
        repeated += 1.0
        query.gradient[state.items[k]] = state.own[k] / state.left_over[k] * repeated - 1.0
    for k in range(cutoff, n_items):
        query.gradient[state.items[k]] = state.own[k] / state.left_over[cutoff - 1] * repeated

cdef Loss list_mle = Loss(lay_out, NULL, list_mle_rows, NULL, 20.0, 0.0, 0.0, False)
LIST_MLE = as_object(&list_mle)
