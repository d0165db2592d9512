"""PL-Rank-3 over groups of sixteen rankings: the choice of the kernel's pass, and the steps before and after it.

The kernel (``kernels/gradients/pl_rank_groups.c``) takes sixteen rankings at once, one in each SIMD lane: at D = 120
it is 7 times faster than the estimator of ``pl_rank`` with K = 10 and 30 times with K = 100. That estimator remains for
scores and rank weights where the kernel would miss the same tolerance of 1e-12, or take longer.
"""

from libc.math cimport sqrt
from libc.string cimport memcpy, memset

from plrank_fast._core.gradients.estimator cimport Estimate, Estimator, new_estimator
from plrank_fast._core.gradients.pl_rank cimport (
    accumulate_pl_rank_3, begin_pl_rank, hand_out_pl_rank_3, lay_out_pl_rank,
)
from plrank_fast._core.ranking.weights cimport Weights
from plrank_fast._core.runtime.layout cimport Layout, take, take_state
from plrank_fast._core.runtime.scalar_types cimport int8_t, int32_t, intp_t
from plrank_fast._core.runtime.simd cimport simd_level
from plrank_fast._core.sampling.samplers cimport GROUP_RANKS, GROUP_SIZE

cdef extern from "gradients/pl_rank_groups.h" nogil:
    ctypedef struct pl_rank_groups:
        size_t n_items
        size_t cutoff
        const double *rank_weights
        const double *relevance
        const double *weights
        double *gradient
        double *odd
        double total_weight
        double[GROUP_SIZE] total_risk
        double[GROUP_SIZE] total_direct
        double[GROUP_SIZE] first_reward
        int8_t *unplaced
        double *states
    ctypedef struct pl_rank_groups_kernels:
        void (*backward)(pl_rank_groups *groups, const int32_t *columns, size_t n_lanes) noexcept nogil
        void (*forward)(pl_rank_groups *groups, const int32_t *columns, size_t n_lanes) noexcept nogil
        void (*add_common_part)(
            const pl_rank_groups *groups, double direct, double risk, double denominator) noexcept nogil
    const pl_rank_groups_kernels *pl_rank_groups_kernels_at(int level)
    const int PLR_MOST_SAMPLES, PLR_STATE
    size_t plr_marks(size_t n_items)

cdef const pl_rank_groups_kernels *kernels = pl_rank_groups_kernels_at(simd_level())

cdef struct PLRankGroups:
    # the state of one query
    bint backward                # whether the kernel runs its backward pass
    void *plain                  # state of the plain estimator
    double *rank_weights         # (cutoff,) on cache lines
    pl_rank_groups sums
    intp_t flush_after           # rankings after which the part common to all items is added to the gradient
    intp_t since_flush


# ---------------------------------------------------------------------------------------------------------------------
# Accuracy of the backward pass
# ---------------------------------------------------------------------------------------------------------------------
# Its final difference leaves the part of sums over whole rankings up to an item's rank. In every ranking that part is
# at least that of the first rank, [PR_1, theta_1] / S_1, if neither relevance nor rank weights are negative. So the
# totals over that bound the amplification of rounding, but only at the end. The bound that ``most_draws`` gives in
# advance is some ten times larger (it assumes the worst order, and all rank weights and rewards as large as the first).
# So a query below ten times the limit is tried, and repeated by another pass as soon as it exceeds the limit, which
# FLUSH_AFTER rankings show.

cdef double HOPELESS = 10.0
cdef double LARGEST_SPREAD = 300.0  # nats
# The forward pass takes 0.1 to 0.2 ns for each item and ranking, the plain estimator 20 for each rank; with 16,000
# items and 300 ranks, whose marks leave the second-level cache, it gained 7 %.
cdef intp_t ITEMS_PER_RANK = 50
cdef intp_t LONGEST_FORWARD = 4096  # items
cdef intp_t FLUSH_AFTER = 128  # rankings, or as many as place each item four times on average


cdef inline double largest_amplification(double n_rankings) noexcept nogil:
    """Return the amplification that leaves 1e-12 of the sum of absolute terms, measured with a margin of 4.

    Rounding in sums over n rankings grows like sqrt(n) if they differ and like n if all are equal. For a few rankings
    it is that of one: 1.8e-12 at 1e4, in the worst case found.
    """
    return min(3e3, min(1e4 / sqrt(n_rankings), 1e5 / n_rankings))


cdef bint is_exact(const PLRankGroups *state, double total_risk, double total_direct) noexcept nogil:
    """Return whether the backward pass has kept amplification of rounding within the limit since the last flush."""
    cdef double limit = largest_amplification(state.since_flush) / state.sums.total_weight
    return (
        total_direct <= limit * state.since_flush * state.sums.rank_weights[0]
        and total_risk <= limit * sum_of_lanes(state.sums.first_reward))


cdef bint is_not_negative(const Estimate *estimate) noexcept nogil:
    """Return whether no rank weight and no relevance is negative, so that the totals bound the amplification."""
    cdef int negative = 0  # no branches in the loop, which is long
    cdef intp_t d, k
    for k in range(estimate.cutoff):
        if estimate.rank_weights[k] < 0.0:
            return False
    for d in range(estimate.n_items):
        negative |= estimate.relevance[d] < 0.0
    return not negative


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef inline double sum_of_lanes(const double *lanes) noexcept nogil:
    cdef double total = 0.0
    cdef intp_t i
    for i in range(GROUP_SIZE):
        total += lanes[i]
    return total


cdef void lay_out(Layout *layout, intp_t n_items, intp_t cutoff) noexcept nogil:
    """Lay out the state with its arrays; the state of the plain estimator takes their place where that is chosen."""
    cdef PLRankGroups measured
    cdef PLRankGroups *state = <PLRankGroups *>take_state(layout, sizeof(PLRankGroups), &measured)
    cdef Layout plain = layout[0]
    cdef size_t ranks = min(min(cutoff, n_items), <intp_t>GROUP_RANKS)
    lay_out_pl_rank(&plain, n_items, cutoff)
    state.plain = plain.state
    state.rank_weights = <double *>take(layout, ranks * sizeof(double))
    state.sums.states = <double *>take(layout, ranks * PLR_STATE * PLR_MOST_SAMPLES * sizeof(double))
    state.sums.odd = <double *>take(layout, n_items * sizeof(double))
    state.sums.unplaced = <int8_t *>take(layout, GROUP_SIZE * plr_marks(n_items))
    layout.next = max(layout.next, plain.next)


cdef bint choose_pass(Estimate *estimate, PLRankGroups *state) noexcept nogil:
    """Choose the backward or the forward pass; return False if neither applies."""
    cdef const Weights *weights = estimate.weights
    cdef intp_t n_items = estimate.n_items, cutoff = estimate.cutoff
    cdef double limit = HOPELESS * largest_amplification(min(estimate.n_samples, state.flush_after))
    # products of two remaining weights must not leave a double's range
    cdef bint in_range = weights.spread <= LARGEST_SPREAD
    state.backward = estimate.first_attempt and weights.most_draws <= limit and is_not_negative(estimate)
    return state.backward or (
        in_range and n_items // ITEMS_PER_RANK <= cutoff and n_items <= LONGEST_FORWARD)


cdef void begin(Estimate *estimate) noexcept nogil:
    """Choose a pass and prepare its sums, or leave the query to the plain estimator. O(D + K)."""
    cdef PLRankGroups *state = <PLRankGroups *>estimate.state
    cdef intp_t n_items = estimate.n_items, cutoff = estimate.cutoff
    if estimate.weights.representable and cutoff <= GROUP_RANKS:
        state.flush_after = max(FLUSH_AFTER, 4 * n_items // cutoff // FLUSH_AFTER * FLUSH_AFTER)
        if choose_pass(estimate, state):
            estimate.in_groups = True
            memcpy(state.rank_weights, estimate.rank_weights, cutoff * sizeof(double))
            state.sums.rank_weights = state.rank_weights
            state.sums.relevance = estimate.relevance
            state.sums.weights = estimate.weights.relative
            state.sums.n_items = n_items
            state.sums.cutoff = cutoff
            state.sums.total_weight = estimate.weights.total
            state.sums.gradient = estimate.gradient
            memset(state.sums.odd, 0, n_items * sizeof(double))
            clear_totals(state)
            return
    estimate.state = state.plain
    begin_pl_rank(estimate)


cdef void clear_totals(PLRankGroups *state) noexcept nogil:
    memset(state.sums.total_risk, 0, sizeof(state.sums.total_risk))
    memset(state.sums.total_direct, 0, sizeof(state.sums.total_direct))
    memset(state.sums.first_reward, 0, sizeof(state.sums.first_reward))
    state.since_flush = 0


cdef void flush(Estimate *estimate, PLRankGroups *state, intp_t denominator) noexcept nogil:
    """Add the part common to all items of the rankings so far to the gradient, and divide it. O(D)."""
    cdef double risk = sum_of_lanes(state.sums.total_risk)
    cdef double direct = sum_of_lanes(state.sums.total_direct)
    estimate.inexact |= state.backward and not is_exact(state, risk, direct)
    kernels.add_common_part(&state.sums, direct, risk, denominator)
    clear_totals(state)


cdef void accumulate_group(Estimate *estimate, const int32_t *columns, intp_t n_rankings) noexcept nogil:
    cdef PLRankGroups *state = <PLRankGroups *>estimate.state
    if state.backward:
        kernels.backward(&state.sums, columns, n_rankings)
    else:
        kernels.forward(&state.sums, columns, n_rankings)
    state.since_flush += n_rankings
    if state.since_flush >= state.flush_after:
        flush(estimate, state, 1)


cdef void hand_out(Estimate *estimate) noexcept nogil:
    if estimate.in_groups:
        flush(estimate, <PLRankGroups *>estimate.state, estimate.denominator)
        estimate.denominator = 1  # saves a pass over a long list
    else:
        hand_out_pl_rank_3(estimate)


cdef Estimator pl_rank_3_in_groups() noexcept nogil:
    cdef Estimator estimator = new_estimator(lay_out, begin, accumulate_pl_rank_3, hand_out, 0.0, 5.0, 0.0)
    estimator.accumulate_group = accumulate_group
    estimator.asks_for_spread = True
    return estimator
