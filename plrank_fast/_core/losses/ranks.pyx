"""Losses that make ranks smooth: ApproxNDCG and SoftRank.

Both need the smooth rank of a document only if it has a gain, so the rows are those documents: O(R D) for ApproxNDCG
and O(R D K) for SoftRank with R relevant documents.
"""

from libc.math cimport log2

from plrank_fast._core.losses.loss cimport Loss, LossQuery, as_object
from plrank_fast._core.ranking.metrics cimport dcg_of_query
from plrank_fast._core.runtime.layout cimport Layout, take, take_state
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t
from plrank_fast._core.runtime.simd cimport simd_level
from plrank_fast._core.runtime.threads cimport ROUND_NS

cdef extern from "losses/rank_losses.h" nogil:
    double plr_soft_rank_memory(size_t n, size_t cutoff)
    ctypedef struct soft_rank_task:
        const double *scores
        size_t n
        const double *discounts
        size_t cutoff
        double *value
        double *gradient
        double *memory
        int (*cancellation_requested)() noexcept nogil
        double steps_per_question
    ctypedef struct rank_kernels:
        double (*logistic_rank)(double score, const double *scores, double *slopes, size_t n) noexcept nogil
        double (*add_slopes)(double factor, const double *slopes, double *gradient, size_t n) noexcept nogil
        int (*soft_rank)(
            const soft_rank_task *task, const int32_t *targets, size_t n_targets, const double *factors) noexcept nogil
    const rank_kernels *rank_kernels_at(int level)

cdef const rank_kernels *kernels = rank_kernels_at(simd_level())

cdef double NS_PER_STEP = 5.0  # of SoftRank: an item and a rank of a register of targets
cdef double LOG_2 = 0.693147180559945309

cdef struct SmoothRanks:
    double *scores               # (n_items,) times the scale
    double *factors              # (n_relevant,) gains over the ideal DCG
    double *memory               # scratch of one loss
    int32_t *items               # (n_items,) first the relevant ones, in the order of their numbers


# ---------------------------------------------------------------------------------------------------------------------
# Shared
# ---------------------------------------------------------------------------------------------------------------------

cdef SmoothRanks *take_shared(Layout *layout, intp_t n_items, SmoothRanks *measured) noexcept nogil:
    """Take the state and its arrays, up to the scratch of one loss."""
    cdef SmoothRanks *state = <SmoothRanks *>take_state(layout, sizeof(SmoothRanks), measured)
    state.scores = <double *>take(layout, n_items * sizeof(double))
    state.factors = <double *>take(layout, n_items * sizeof(double))
    state.items = <int32_t *>take(layout, n_items * sizeof(int32_t))
    return state


cdef void begin(LossQuery *query) noexcept nogil:
    cdef SmoothRanks *state = <SmoothRanks *>query.state
    cdef intp_t n_items = query.n_items, n_relevant = 0, d
    cdef double ideal = dcg_of_query(
        query.labels, query.labels, query.options.discounts, n_items, query.cutoff, state.scores, state.items)
    for d in range(n_items):
        state.scores[d] = query.options.scale * query.scores[d]
        if query.labels[d] > 0.0:
            state.items[n_relevant] = <int32_t>d
            state.factors[n_relevant] = query.labels[d] / ideal
            n_relevant += 1
    query.n_rows = n_relevant if ideal > 0.0 and n_items > 1 else 0
    if query.n_rows > 0:
        query.value[0] = 1.0


cdef void finish(LossQuery *query) noexcept nogil:
    cdef intp_t d
    for d in range(query.n_items):
        query.gradient[d] *= query.options.scale


# ---------------------------------------------------------------------------------------------------------------------
# ApproxNDCG
# ---------------------------------------------------------------------------------------------------------------------

cdef void lay_out_approx(Layout *layout, intp_t n_items, intp_t cutoff) noexcept nogil:
    cdef SmoothRanks measured
    cdef SmoothRanks *state = take_shared(layout, n_items, &measured)
    state.memory = <double *>take(layout, n_items * sizeof(double))


cdef void approx_rows(LossQuery *query, intp_t first, intp_t last) noexcept nogil:
    cdef SmoothRanks *state = <SmoothRanks *>query.state
    cdef intp_t row, d
    cdef double after_rank, logarithm, slope
    for row in range(first, last):
        d = state.items[row]
        # the document itself adds 1/2 to the sum: rank + 1 = 1 + 1 + sum - 1/2
        after_rank = 1.5 + kernels.logistic_rank(
            state.scores[d], state.scores, state.memory, query.n_items)
        state.memory[d] = 0.0  # no slope of its own: it would round off the contributions of distant documents
        logarithm = log2(after_rank)
        query.value[0] -= state.factors[row] / logarithm
        slope = state.factors[row] / (LOG_2 * after_rank * logarithm * logarithm)
        slope = kernels.add_slopes(slope, state.memory, query.gradient, query.n_items)
        query.gradient[d] -= slope  # there are two steps, as the first one writes this entry too

cdef Loss approx_ndcg = Loss(lay_out_approx, begin, approx_rows, finish, 20.0, 3.0, 0.0, False)
APPROX_NDCG = as_object(&approx_ndcg)


# ---------------------------------------------------------------------------------------------------------------------
# SoftRank
# ---------------------------------------------------------------------------------------------------------------------

cdef void lay_out_soft_rank(Layout *layout, intp_t n_items, intp_t cutoff) noexcept nogil:
    cdef SmoothRanks measured
    cdef SmoothRanks *state = take_shared(layout, n_items, &measured)
    # a size beyond all memory does not wrap: the error states it
    cdef double doubles = min(plr_soft_rank_memory(n_items, cutoff), 1e17)
    state.memory = <double *>take(layout, <size_t>doubles * sizeof(double))


cdef void soft_rank_rows(LossQuery *query, intp_t first, intp_t last) noexcept nogil:
    """Evaluate targets, which share registers: a call for part of the rows must begin with a whole register of them."""
    cdef SmoothRanks *state = <SmoothRanks *>query.state
    cdef soft_rank_task task = soft_rank_task(
        state.scores, query.n_items, query.options.discounts, query.cutoff, query.value, query.gradient, state.memory,
        query.look, ROUND_NS / NS_PER_STEP)
    kernels.soft_rank(&task, state.items + first, last - first, state.factors + first)

cdef Loss soft_rank = Loss(lay_out_soft_rank, begin, soft_rank_rows, finish, 20.0, 5.0, 2.0, False)
SOFT_RANK = as_object(&soft_rank)
