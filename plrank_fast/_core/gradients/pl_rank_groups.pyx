"""PL-Rank-3 over groups of sixteen rankings, or one by one where scores are wide.

The kernel (``kernels/gradients/pl_rank_groups.c``) takes several rankings at once, one in each SIMD lane: at D = 120 it
is 7 times faster than the estimator of ``pl_rank`` with K = 10 and 30 times with K = 100. Its sums cancel for items
much heavier than the weight left at rank K, and rankings for which they would miss a tolerance of 1e-12 take a pass of
O(D + K). Where such passes take too long, or weights leave the range that they need, the weights must prove that no
ranking misses it. If they do not, ``pl_rank`` estimates the whole query, as it does scores that span more than a double
and rankings of more than ``GROUP_RANKS`` ranks.
"""

import numpy as np

from libc.math cimport INFINITY, fabs, ldexp, sqrt
from libc.string cimport memset

from plrank_fast._core.gradients.estimator cimport Estimate, Estimator, as_object, new_estimator
from plrank_fast._core.gradients.hessian cimport hessian_estimator
from plrank_fast._core.gradients.pl_rank cimport (
    accumulate_pl_rank_3, begin_pl_rank, hand_out_pl_rank_3, lay_out_pl_rank,
)
from plrank_fast._core.ranking.weights cimport (
    Weights, sort_weights, weigh, weight_octaves, weights_workspace,
)
from plrank_fast._core.runtime.buffers cimport numbers
from plrank_fast._core.runtime.layout cimport Layout, take, take_state
from plrank_fast._core.runtime.magnitudes cimport PLR_NEGATIVE, any_negative, found_by_team
from plrank_fast._core.runtime.scalar_types cimport int8_t, int32_t, intp_t
from plrank_fast._core.runtime.simd cimport simd_level
from plrank_fast._core.runtime.teams cimport share_ranges
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
        double limit
        bint may_be_peaked
        bint is_peaked
        bint is_signed
        double[GROUP_SIZE] total_risk
        double[GROUP_SIZE] total_direct
        double risk
        double direct
        double denominator
        int8_t *unplaced
        double *states
    ctypedef struct pl_rank_groups_kernels:
        void (*add_group)(pl_rank_groups *groups, const int32_t *columns, size_t n_lanes) noexcept nogil
        void (*add_common_part)(const pl_rank_groups *groups, size_t start, size_t stop) noexcept nogil
    const pl_rank_groups_kernels *pl_rank_groups_kernels_at(int level)
    const int PLR_MOST_SAMPLES, PLR_STATE, PLR_ODD_ITEMS
    size_t plr_marks(size_t n_items)

cdef const pl_rank_groups_kernels *kernels = pl_rank_groups_kernels_at(simd_level())

cdef struct PLRankGroups:
    # the state of one query
    pl_rank_groups sums
    intp_t flush_after           # rankings after which the part common to all items is added to the gradient
    intp_t since_flush
    void *plain                  # state of the plain estimator, which replaces this one in queries that it serves

# A pass forward takes 0.3 ns for each item of a ranking, the plain estimator 20 for each rank.
cdef intp_t ITEMS_PER_RANK = 100
cdef double LARGEST_SPREAD = 300.0  # nats: the products of two remaining weights stay within a double's range
cdef intp_t FLUSH_AFTER = 128  # rankings, or as many as place each item four times on average


cdef inline double largest_amplification(double n_rankings) noexcept nogil:
    """Return the amplification that leaves 1e-12 of the sum of absolute terms, measured with a margin of 4.

    Rounding in sums over n rankings grows like sqrt(n) if they differ and like n if all are equal. For a few rankings
    it is that of one: 1.8e-12 at 1e4, in the worst case found.
    """
    return min(3e3, min(1e4 / sqrt(n_rankings), 1e5 / n_rankings))


cdef double worst_amplification(
    const Weights *weights, const weight_octaves *octaves, const double *rank_weights, intp_t cutoff
) noexcept nogil:
    """Return a bound on the amplification in any ranking; infinity if one may leave a thousandth of the weight. O(K).

    S_k is at least what the k - 1 heaviest items leave. PR_k falls with k, so RI_K <= PR_1 sum of 1 / S_k, and
    DR_K = sum of theta_k / S_k. Without ``octaves`` all items count as the heaviest one, of weight 1; with them, those
    of an octave as its upper end, but together as no more than its mass.
    """
    cdef double total = weights.total, placed = 0.0, risk = 0.0, direct = 0.0
    cdef double heavier = 0.0, taken = 0.0, heaviest = 1.0, mass = INFINITY if octaves == NULL else octaves.mass[0]
    cdef size_t octave = 0
    cdef intp_t k
    for k in range(cutoff):
        if not total - placed >= 1e-3 * total:
            return INFINITY
        risk += total / (total - placed)
        direct += fabs(rank_weights[k]) * total / (total - placed)
        while octaves != NULL and taken >= octaves.count[octave] and octave + 1 < octaves.n:
            heavier += mass
            taken = 0.0
            octave += 1
            mass = octaves.mass[octave]
            heaviest = ldexp(1.0, 1 - <int>octave)
        taken += 1.0
        placed = heavier + min(taken * heaviest, mass)
    if not total - placed >= 1e-3 * total or not direct <= 1e4 * fabs(rank_weights[0]):
        return INFINITY
    return max(risk, direct / fabs(rank_weights[0])) if direct > 0.0 else risk


cdef intp_t rankings_per_flush(double amplification, intp_t n_rankings, intp_t at_best) noexcept nogil:
    """Return the rankings, at most ``at_best``, in whose sums rounding may be amplified so much; 0 if they are too few.
    """
    cdef intp_t most
    if amplification <= largest_amplification(min(n_rankings, at_best)):
        return at_best
    most = <intp_t>min(1e8 / (amplification * amplification), 1e5 / amplification) // FLUSH_AFTER * FLUSH_AFTER
    return min(most, at_best)


cdef intp_t flush_without_checks(Estimate *estimate, intp_t at_best) noexcept nogil:
    """Return how often to flush if no ranking needs a check; 0 if one may. O(K), and O(D) for few heavy items."""
    cdef const Weights *weights = &estimate.weights
    cdef intp_t cutoff = estimate.cutoff, n_rankings = estimate.draw.n_samples, flush_after
    flush_after = rankings_per_flush(
        worst_amplification(weights, NULL, estimate.rank_weights, cutoff), n_rankings, at_best)
    if flush_after < at_best:
        flush_after = rankings_per_flush(
            worst_amplification(weights, sort_weights(weights), estimate.rank_weights, cutoff), n_rankings, at_best)
    return flush_after


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef void lay_out(Layout *layout, intp_t n_items, intp_t cutoff) noexcept nogil:
    cdef PLRankGroups measured
    cdef PLRankGroups *state = <PLRankGroups *>take_state(layout, sizeof(PLRankGroups), &measured)
    cdef size_t ranks = min(min(cutoff, n_items), <intp_t>GROUP_RANKS)
    cdef Layout plain
    state.sums.states = <double *>take(layout, ranks * PLR_STATE * PLR_MOST_SAMPLES * sizeof(double))
    state.sums.odd = <double *>take(layout, min(n_items, <intp_t>PLR_ODD_ITEMS) * sizeof(double))
    state.sums.unplaced = <int8_t *>take(
        layout, PLR_MOST_SAMPLES * plr_marks(min(n_items, ITEMS_PER_RANK * (cutoff + 1))))
    plain = layout[0]
    lay_out_pl_rank(&plain, n_items, cutoff)
    state.plain = plain.state
    layout.next = plain.next


cdef void begin(Estimate *estimate) noexcept nogil:
    """Prepare the sums, or leave the query to the plain estimator. O(D + K)."""
    cdef PLRankGroups *state = <PLRankGroups *>estimate.state
    cdef intp_t n_items = estimate.n_items, cutoff = estimate.cutoff
    estimate.in_groups = estimate.weights.representable and cutoff <= GROUP_RANKS
    if estimate.in_groups:
        state.flush_after = max(FLUSH_AFTER, 4 * n_items // cutoff // FLUSH_AFTER * FLUSH_AFTER)
        state.sums.may_be_peaked = n_items // ITEMS_PER_RANK <= cutoff and estimate.weights.spread <= LARGEST_SPREAD
        if not state.sums.may_be_peaked:
            state.flush_after = flush_without_checks(estimate, state.flush_after)
            estimate.in_groups = state.flush_after > 0
    if not estimate.in_groups:
        estimate.state = state.plain
        begin_pl_rank(estimate)
        return
    state.sums.rank_weights = estimate.rank_weights
    state.sums.relevance = estimate.relevance
    state.sums.weights = estimate.weights.relative
    state.sums.n_items = n_items
    state.sums.cutoff = cutoff
    state.sums.total_weight = estimate.weights.total
    state.sums.gradient = estimate.gradient
    state.sums.is_signed = state.sums.may_be_peaked and (
        any_negative(estimate.rank_weights, cutoff)
        or found_by_team(estimate.relevance, n_items, estimate.n_threads) & PLR_NEGATIVE != 0)
    state.sums.limit = largest_amplification(min(estimate.draw.n_samples, state.flush_after)) / estimate.weights.total
    if n_items <= PLR_ODD_ITEMS:
        memset(state.sums.odd, 0, n_items * sizeof(double))
    clear_totals(state)


cdef void clear_totals(PLRankGroups *state) noexcept nogil:
    memset(state.sums.total_risk, 0, sizeof(state.sums.total_risk))
    memset(state.sums.total_direct, 0, sizeof(state.sums.total_direct))
    state.sums.is_peaked = False
    state.since_flush = 0


cdef inline double sum_of_lanes(const double *lanes) noexcept nogil:
    cdef double total = 0.0
    cdef intp_t i
    for i in range(GROUP_SIZE):
        total += lanes[i]
    return total


cdef void flush_range(void *sums, intp_t start, intp_t stop) noexcept nogil:
    kernels.add_common_part(<const pl_rank_groups *>sums, start, stop)


cdef void flush(PLRankGroups *state, intp_t denominator, int n_threads) noexcept nogil:
    """Add the part common to all items of the rankings so far to the gradient, and divide it. O(D)."""
    state.sums.direct = sum_of_lanes(state.sums.total_direct)
    state.sums.risk = sum_of_lanes(state.sums.total_risk)
    state.sums.denominator = denominator
    share_ranges(flush_range, &state.sums, state.sums.n_items, n_threads)
    clear_totals(state)


cdef void accumulate_group(Estimate *estimate, const int32_t *columns, intp_t n_rankings) noexcept nogil:
    cdef PLRankGroups *state = <PLRankGroups *>estimate.state
    kernels.add_group(&state.sums, columns, n_rankings)
    state.since_flush += n_rankings
    if state.since_flush >= state.flush_after:
        flush(state, 1, estimate.n_threads)


cdef void hand_out(Estimate *estimate) noexcept nogil:
    cdef PLRankGroups *state = <PLRankGroups *>estimate.state
    if not estimate.in_groups:
        hand_out_pl_rank_3(estimate)
        return
    flush(state, estimate.denominator, estimate.n_threads)
    estimate.denominator = 1  # saves a pass over a long list


cdef Estimator pl_rank_3_in_groups() noexcept nogil:
    cdef Estimator estimator = new_estimator(lay_out, begin, accumulate_pl_rank_3, hand_out, 0.0, 5.0, 0.0)
    estimator.accumulate_group = accumulate_group
    estimator.with_hessian = hessian_estimator
    return estimator


PL_RANK_3 = as_object(pl_rank_3_in_groups)


# ---------------------------------------------------------------------------------------------------------------------
# For tests
# ---------------------------------------------------------------------------------------------------------------------

def amplification(const double[::1] scores, const double[::1] rank_weights):
    """Return the bounds on the amplification in rankings of a query, without and with octaves of its weights."""
    cdef Weights weights
    cdef const double *theta = numbers(rank_weights)
    cdef double[::1] memory = np.empty(weights_workspace(scores.shape[0]) // 8)
    weigh(&weights, numbers(scores), scores.shape[0], <char *>&memory[0])
    return (
        worst_amplification(&weights, NULL, theta, rank_weights.shape[0]),
        worst_amplification(&weights, sort_weights(&weights), theta, rank_weights.shape[0]))
