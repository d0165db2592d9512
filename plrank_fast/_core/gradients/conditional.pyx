"""Conditional Monte Carlo: the gradient of each item given the order of the others.

The order of all items except d does not depend on the score of d, so d's own position can be integrated out exactly,
and the mean given the items placed so far can replace every later label. One ranking then has the precision of
thousands for PL-Rank-3. Let S_j and R_j be the sums of w and w rho over the items not in the first j places, c_j =
theta_j - theta_{j+1}, F_j the probability that d comes after place j, and q_j = w_d / S_j the probability that it is
next::

    g_d = sum over j of c_j F_{j-1} A_j (rho_d - R_j / S_j),   A_j = q_1 + ... + q_j

(for an item that the ranking places at rank r, the others are one place further up from r on, and the sums include d).
The estimator is unbiased for any rank weights and takes O(D K) per ranking, in vector registers
(``kernels/gradients/conditional.c``). The Hessian diagonal is the derivative of F A under the sum and comes with it.
"""

from libc.string cimport memset

from plrank_fast._core.gradients.estimator cimport Estimate, Estimator, as_object, is_stopped, new_estimator
from plrank_fast._core.ranking.remaining cimport (
    Remaining,
    analyse_ranking,
    prepare_remaining,
    take_remaining,
    unit_ratio,
    weight_in_unit,
)
from plrank_fast._core.runtime.layout cimport Layout, padded, take, take_state
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t
from plrank_fast._core.runtime.simd cimport simd_level
from plrank_fast._core.runtime.teams cimport (
    ITEMS_PER_RANGE, loop_of_team, number_of_ranges, parallel_loop, share_ranges,
)
from plrank_fast._core.runtime.threads cimport cancellation, cancellation_of

cdef extern from "gradients/conditional.h" nogil:
    ctypedef struct conditional_ranking:
        size_t cutoff
        double *sums
        double *inverse_sums
        double *gains
        double *means
        double *drops
        cancellation *stop
    ctypedef struct conditional_series:
        pass
    ctypedef struct conditional_sums:
        double weight, gain, heaviest
    ctypedef struct conditional_kernels:
        bint (*interpolate)(
            const conditional_ranking *ranking, double heaviest, bint with_hessian, conditional_series *series
        ) noexcept nogil
        void (*add_unplaced)(
            const conditional_ranking *ranking, const conditional_series *series, const double *weights,
            const double *relevance, size_t n, double *gradient, double *hessian) noexcept nogil
        void (*placed)(
            const conditional_ranking *ranking, const double *weights, const double *relevance, double *gradient,
            double *hessian) noexcept nogil
        conditional_sums (*sum)(const double *weights, const double *relevance, size_t n) noexcept nogil
    const conditional_kernels *conditional_kernels_at(int level)

cdef const conditional_kernels *kernels = conditional_kernels_at(simd_level())

# An interpolation takes longer to set up than it saves below these.
cdef intp_t FEWEST_INTERPOLATED = 512, FEWEST_RANKS_INTERPOLATED = 48


cdef struct Conditional:
    # the state of one query; arrays over items or ranks are padded to whole vectors
    bint wide                    # weights exceed the range of a double: each rank has its own unit, in ``remaining``
    Remaining remaining
    intp_t *rank                 # of each item where it is wide; the cutoff for items that are not placed
    double *weights              # of the estimate, changed while a ranking is processed
    conditional_sums *of_ranges  # sums over the unplaced items of each range
    conditional_ranking ranking
    conditional_series series
    bint by_series               # whether unplaced items are interpolated
    double *placed_weights
    double *placed_relevance
    double *placed_gradient
    double *placed_hessian


# ---------------------------------------------------------------------------------------------------------------------
# Per item, if the weights exceed the range of a double: the recurrence of the kernel with a unit for every rank
# ---------------------------------------------------------------------------------------------------------------------

cdef inline void add_item_in_units(Estimate *estimate, const Conditional *state, intp_t d) noexcept nogil:
    """Add what one ranking gives to item d."""
    cdef const Remaining *remaining = &state.remaining
    cdef const double *means = state.ranking.means
    cdef double not_yet = 1.0, chances = 0.0, spread = 0.0, gradient = 0.0, hessian = 0.0
    cdef double q, mean, share, weight, total, rho = estimate.relevance[d]
    cdef intp_t j, unit
    for j in range(estimate.cutoff):
        if j < state.rank[d]:
            q = weight_in_unit(remaining, d, remaining.unit_position[j]) / remaining.sums[j]
            mean = means[j]
        else:
            unit = remaining.unit_position[j + 1]
            if unit == remaining.n_leading or remaining.position[d] < unit:
                # the item outweighs the rest: use its own weight as the unit
                total = 1.0
                if unit < remaining.n_leading:
                    total += remaining.sums[j + 1] * unit_ratio(remaining, unit, remaining.position[d])
                q = 1.0 / total
            else:
                weight = weight_in_unit(remaining, d, unit)
                q = weight / (remaining.sums[j + 1] + weight)
            mean = q * rho + (1.0 - q) * (means[j + 1] if unit < remaining.n_leading else 0.0)
        chances += q
        share = state.ranking.drops[j] * not_yet * (rho - mean)
        gradient += share * chances
        spread += q - q * q
        hessian += share * (spread - chances * chances)
        not_yet -= not_yet * q
    estimate.gradient[d] += gradient
    if estimate.hessian != NULL:
        estimate.hessian[d] += hessian


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef void lay_out(Layout *layout, intp_t n_items, intp_t cutoff) noexcept nogil:
    cdef Conditional measured
    cdef Conditional *state = <Conditional *>take_state(layout, sizeof(Conditional), &measured)
    cdef size_t ranks = (cutoff + 1) * sizeof(double)
    state.rank = <intp_t *>take(layout, n_items * sizeof(intp_t))
    state.of_ranges = <conditional_sums *>take(layout, number_of_ranges(n_items) * sizeof(conditional_sums))
    state.ranking.sums = <double *>take(layout, ranks)
    state.ranking.inverse_sums = <double *>take(layout, ranks)
    state.ranking.gains = <double *>take(layout, ranks)
    state.ranking.means = <double *>take(layout, ranks)
    state.ranking.drops = <double *>take(layout, ranks)
    state.placed_weights = <double *>take(layout, ranks)
    state.placed_relevance = <double *>take(layout, ranks)
    state.placed_gradient = <double *>take(layout, ranks)
    state.placed_hessian = <double *>take(layout, ranks)
    take_remaining(layout, &state.remaining, n_items, cutoff)


cdef void begin(Estimate *estimate) noexcept nogil:
    cdef Conditional *state = <Conditional *>estimate.state
    cdef conditional_ranking *ranking = &state.ranking
    cdef intp_t n_items = estimate.n_items, cutoff = estimate.cutoff, d, k
    state.wide = not estimate.weights.representable
    state.weights = estimate.weights.relative
    ranking.cutoff, ranking.stop = cutoff, &estimate.stop
    if state.wide:
        prepare_remaining(&state.remaining, estimate.scores, n_items, cutoff)
        for d in range(n_items):
            state.rank[d] = cutoff
    # the kernels read whole vectors of these nine contiguous arrays
    memset(ranking.sums, 0, <size_t>(<char *>state.placed_hessian - <char *>ranking.sums))
    memset(state.placed_hessian, 0, padded(cutoff + 1) * sizeof(double))
    for k in range(cutoff):
        ranking.drops[k] = estimate.rank_weights[k]
        if k + 1 < cutoff:
            ranking.drops[k] -= estimate.rank_weights[k + 1]


cdef void sum_range(void *estimate_, intp_t start, intp_t stop) noexcept nogil:
    cdef const Estimate *estimate = <const Estimate *>estimate_
    cdef const Conditional *state = <const Conditional *>estimate.state
    state.of_ranges[start // ITEMS_PER_RANGE] = kernels.sum(
        state.weights + start, estimate.relevance + start, stop - start)


cdef double sum_what_is_left(Estimate *estimate, Conditional *state, const int32_t *ranking) noexcept nogil:
    """Set sums[j] = S_j, gains[j] = R_j and the quotients, from the tail, in one unit. O(D + K).

    Returns the weight of the heaviest unplaced item.
    """
    cdef intp_t cutoff = estimate.cutoff, n_items = estimate.n_items, k
    cdef conditional_sums *left = state.of_ranges
    cdef conditional_ranking *sums = &state.ranking
    for k in range(cutoff):
        state.placed_weights[k] = state.weights[ranking[k]]
        state.placed_relevance[k] = estimate.relevance[ranking[k]]
    memset(left, 0, sizeof(conditional_sums))
    if cutoff < n_items:
        # sum without subtracting: the weight left over may be a tiny part of the total
        for k in range(cutoff):
            state.weights[ranking[k]] = 0.0
        share_ranges(sum_range, estimate, n_items, estimate.n_threads)
        for k in range(1, number_of_ranges(n_items)):
            left.weight += left[k].weight
            left.gain += left[k].gain
            left.heaviest = max(left.heaviest, left[k].heaviest)
        for k in range(cutoff):
            state.weights[ranking[k]] = state.placed_weights[k]
    sums.sums[cutoff] = left.weight
    sums.gains[cutoff] = left.gain
    for k in range(cutoff - 1, -1, -1):
        left.weight += state.placed_weights[k]
        left.gain += state.placed_weights[k] * state.placed_relevance[k]
        sums.sums[k] = left.weight
        sums.gains[k] = left.gain
        sums.inverse_sums[k] = 1.0 / left.weight
        sums.means[k] = left.gain * sums.inverse_sums[k]
    return left.heaviest


cdef void sum_what_is_left_in_units(Estimate *estimate, Conditional *state, const int32_t *ranking) noexcept nogil:
    """Set means[j] = R_j / S_j, each sum in the unit of its rank. O(D + K)."""
    cdef Remaining *remaining = &state.remaining
    cdef double *means = state.ranking.means
    cdef intp_t cutoff = estimate.cutoff, d, k, unit
    cdef double gain = 0.0
    analyse_ranking(remaining, ranking)
    unit = remaining.first_unplaced
    means[cutoff] = 0.0
    if unit < remaining.n_leading:
        for d in range(estimate.n_items):
            if state.rank[d] == cutoff:
                gain += weight_in_unit(remaining, d, unit) * estimate.relevance[d]
        means[cutoff] = gain / remaining.sums[cutoff]
    for k in range(cutoff - 1, -1, -1):
        if remaining.unit_position[k + 1] < remaining.n_leading:
            gain *= unit_ratio(remaining, remaining.unit_position[k + 1], remaining.unit_position[k])
        gain += weight_in_unit(remaining, ranking[k], remaining.unit_position[k]) * estimate.relevance[ranking[k]]
        means[k] = gain / remaining.sums[k]


cdef void add_range(void *estimate_, intp_t i, int thread) noexcept nogil:
    """Add one ranking to the items of a range as if it placed none of them."""
    cdef Estimate *estimate = <Estimate *>estimate_
    cdef const Conditional *state = <const Conditional *>estimate.state
    cdef conditional_ranking ranking = state.ranking
    cdef cancellation own = cancellation_of(thread, &estimate.stop)
    cdef intp_t start = i * ITEMS_PER_RANGE
    if thread > 0:
        ranking.stop = &own
    kernels.add_unplaced(
        &ranking, &state.series if state.by_series else NULL, estimate.weights.relative + start,
        estimate.relevance + start, min(ITEMS_PER_RANGE, estimate.n_items - start), estimate.gradient + start,
        estimate.hessian + start if estimate.hessian != NULL else NULL)


cdef void add_ranking(Estimate *estimate, Conditional *state, const int32_t *ranking) noexcept nogil:
    """Add one ranking to gradient and Hessian, in one unit. Those of placed items are computed and added apart."""
    cdef intp_t cutoff = estimate.cutoff, n_items = estimate.n_items, n_ranges = number_of_ranges(n_items), k
    cdef double heaviest = sum_what_is_left(estimate, state, ranking)
    cdef bint with_hessian = estimate.hessian != NULL
    cdef parallel_loop team = loop_of_team(estimate.n_threads)
    kernels.placed(
        &state.ranking, state.placed_weights, state.placed_relevance, state.placed_gradient,
        state.placed_hessian if with_hessian else NULL)
    for k in range(cutoff):
        state.placed_gradient[k] += estimate.gradient[ranking[k]]
        if with_hessian:
            state.placed_hessian[k] += estimate.hessian[ranking[k]]
    if cutoff < n_items:
        state.by_series = (
            n_items >= FEWEST_INTERPOLATED and cutoff >= FEWEST_RANKS_INTERPOLATED and heaviest > 0.0
            and kernels.interpolate(&state.ranking, heaviest, with_hessian, &state.series))
        if n_ranges == 1 or estimate.n_threads == 1:
            for k in range(n_ranges):
                add_range(estimate, k, 0)
        else:
            team.run(&team, add_range, estimate, n_ranges)
    for k in range(cutoff):
        estimate.gradient[ranking[k]] = state.placed_gradient[k]
        if with_hessian:
            estimate.hessian[ranking[k]] = state.placed_hessian[k]


cdef void add_ranking_in_units(Estimate *estimate, Conditional *state, const int32_t *ranking) noexcept nogil:
    """Add one ranking to gradient and Hessian, with a unit for every rank."""
    cdef intp_t d, k
    for k in range(estimate.cutoff):
        state.rank[ranking[k]] = k
    sum_what_is_left_in_units(estimate, state, ranking)
    for d in range(estimate.n_items):
        if is_stopped(estimate, 10.0 * estimate.cutoff):
            return
        add_item_in_units(estimate, state, d)
    for k in range(estimate.cutoff):
        state.rank[ranking[k]] = estimate.cutoff


cdef void accumulate(Estimate *estimate, const int32_t *rankings, intp_t n_rankings, intp_t stride) noexcept nogil:
    cdef Conditional *state = <Conditional *>estimate.state
    cdef intp_t i
    for i in range(n_rankings):
        if state.wide:
            add_ranking_in_units(estimate, state, rankings + i * stride)
        else:
            add_ranking(estimate, state, rankings + i * stride)


cdef Estimator conditional_estimator() noexcept nogil:
    return new_estimator(lay_out, begin, accumulate, NULL, 2.0, 0.0, 0.5)


CONDITIONAL = as_object(conditional_estimator)
