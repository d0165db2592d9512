"""Losses that make ranks smooth: ApproxNDCG and SoftRank.

Both need the smooth rank of a document only if it has a gain, so the rows are those documents: O(R D) for ApproxNDCG
and O(R D K) for SoftRank with R relevant documents.
"""

from libc.math cimport log2

from plrank_fast._core.losses.loss cimport Loss, LossQuery
from plrank_fast._core.ranking.metrics cimport rank_query
from plrank_fast._core.runtime.layout cimport Layout, layout_at, measure, take
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t
from plrank_fast._core.runtime.simd cimport simd_level
from plrank_fast._core.runtime.threads cimport ROUND_NS

cdef extern from "losses/rank_losses.h" nogil:
    int PLR_SOFT_RANK_TARGETS
    double plr_soft_rank_memory(size_t n, size_t cutoff)
    ctypedef struct soft_rank_task:
        const double *scores
        size_t n
        const double *discounts
        size_t cutoff
        double *gradient
        double *memory
        int (*cancellation_requested)() noexcept nogil
        double steps_per_question
    ctypedef struct rank_kernels:
        double (*logistic_rank)(double score, const double *scores, double *slopes, size_t n) noexcept nogil
        double (*add_slopes)(double factor, const double *slopes, double *gradient, size_t n) noexcept nogil
        int (*soft_rank)(
            const soft_rank_task *task, const int32_t *targets, size_t n_targets, const double *factors, double *value
        ) noexcept nogil
    const rank_kernels *rank_kernels_at(int level)

cdef const rank_kernels *kernels = rank_kernels_at(simd_level())

cdef double NS_PER_STEP = 5.0  # of SoftRank: an item and a rank of a register of targets
cdef double LOG_2 = 0.693147180559945309

cdef struct SmoothRanks:
    double ideal                 # DCG of the ranking by gain
    double *scores               # (n_items,) times the scale
    double *factors              # (n_relevant,) gains over the ideal DCG
    double *memory               # scratch of one loss
    int32_t *items               # (n_items,) first the relevant ones, in the order of their numbers


# ---------------------------------------------------------------------------------------------------------------------
# Shared
# ---------------------------------------------------------------------------------------------------------------------

cdef void lay_out(SmoothRanks *state, intp_t n_items, Layout *layout) noexcept nogil:
    state.scores = <double *>take(layout, n_items * sizeof(double))
    state.factors = <double *>take(layout, n_items * sizeof(double))
    state.items = <int32_t *>take(layout, n_items * sizeof(int32_t))
    state.memory = <double *>layout.next


cdef size_t shared_bytes(intp_t n_items) noexcept nogil:
    cdef SmoothRanks state
    cdef Layout layout = measure()
    take(&layout, sizeof(SmoothRanks))
    lay_out(&state, n_items, &layout)
    return layout.next


cdef void begin(LossQuery *query, char *memory) noexcept nogil:
    cdef Layout layout = layout_at(memory)
    cdef SmoothRanks *state = <SmoothRanks *>take(&layout, sizeof(SmoothRanks))
    cdef intp_t n_items = query.n_items, cutoff = query.cutoff, n_relevant = 0, d, k
    lay_out(state, n_items, &layout)
    query.state = state
    state.ideal = 0.0
    rank_query(query.labels, n_items, cutoff, state.scores, state.items)
    for k in range(cutoff):
        state.ideal += query.discounts[k] * query.labels[state.items[k]]
    for d in range(n_items):
        state.scores[d] = query.scale * query.scores[d]
        if query.labels[d] > 0.0:
            state.items[n_relevant] = <int32_t>d
            state.factors[n_relevant] = query.labels[d] / state.ideal
            n_relevant += 1
    if state.ideal > 0.0 and n_items > 1:
        query.value[0] = 1.0
        query.n_rows = n_relevant
    else:
        query.n_rows = 0


cdef void finish(LossQuery *query) noexcept nogil:
    cdef intp_t d
    for d in range(query.n_items):
        query.gradient[d] *= query.scale


# ---------------------------------------------------------------------------------------------------------------------
# ApproxNDCG
# ---------------------------------------------------------------------------------------------------------------------

cdef size_t approx_workspace(intp_t n_items, intp_t cutoff) noexcept nogil:
    return shared_bytes(n_items) + <size_t>n_items * sizeof(double)


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
        query.gradient[d] -= slope  # in two steps, as the first one writes this entry too


cdef double approx_row_ns(intp_t n_items, intp_t cutoff) noexcept nogil:
    return 3.0 * n_items


cdef Loss approx_ndcg() noexcept nogil:
    cdef Loss loss
    loss.workspace = approx_workspace
    loss.begin = begin
    loss.rows = approx_rows
    loss.finish = finish
    loss.ns_per_item = 20.0
    loss.row_ns = approx_row_ns
    loss.rows_are_ranks = False
    return loss


# ---------------------------------------------------------------------------------------------------------------------
# SoftRank
# ---------------------------------------------------------------------------------------------------------------------

cdef size_t soft_rank_workspace(intp_t n_items, intp_t cutoff) noexcept nogil:
    # saturates, so that the error for a size beyond all memory states the size, which does not wrap
    cdef double doubles
    if n_items == 0:
        return shared_bytes(0)
    doubles = plr_soft_rank_memory(n_items, cutoff)
    if doubles > 1e17:
        return <size_t>1 << 60
    return shared_bytes(n_items) + <size_t>doubles * sizeof(double)


cdef void soft_rank_rows(LossQuery *query, intp_t first, intp_t last) noexcept nogil:
    """Evaluate groups of targets, which share registers; a call for part of the rows must begin with a group."""
    cdef SmoothRanks *state = <SmoothRanks *>query.state
    cdef soft_rank_task task
    cdef double value
    cdef intp_t row, group
    task.scores = state.scores
    task.n = query.n_items
    task.discounts = query.discounts
    task.cutoff = query.cutoff
    task.gradient = query.gradient
    task.memory = state.memory
    task.cancellation_requested = query.look
    task.steps_per_question = ROUND_NS / NS_PER_STEP
    for group in range((last - first + PLR_SOFT_RANK_TARGETS - 1) // PLR_SOFT_RANK_TARGETS):
        row = first + group * PLR_SOFT_RANK_TARGETS
        if kernels.soft_rank(
            &task, state.items + row, min(last - row, <intp_t>PLR_SOFT_RANK_TARGETS), state.factors + row, &value
        ):
            return
        query.value[0] -= value


cdef double soft_rank_row_ns(intp_t n_items, intp_t cutoff) noexcept nogil:
    return (5.0 + 2.0 * cutoff) * n_items


cdef Loss soft_rank() noexcept nogil:
    cdef Loss loss
    loss.workspace = soft_rank_workspace
    loss.begin = begin
    loss.rows = soft_rank_rows
    loss.finish = finish
    loss.ns_per_item = 20.0
    loss.row_ns = soft_rank_row_ns
    loss.rows_are_ranks = False
    return loss
