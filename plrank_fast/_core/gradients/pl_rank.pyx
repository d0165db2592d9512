"""The estimators PL-Rank-2 and PL-Rank-3, each as three steps over the rankings of one query.

In both, for one ranking y with K = cutoff ranks that count (symbols of Oosterhuis, SIGIR 2021 and 2022)::

    PR_k = sum of theta_x rho_{y_x} over x >= k     the reward from rank k on          ``future_reward``
    S_k  = sum of w_d over d not placed before k    the weight, w = exp(score), left   ``remaining.sums``
    DR_k = sum of theta_j / S_j over j <= k         w_d rho_d DR_k: the reward that d would have brought itself, had it
                                                    been placed at the ranks up to k   ``direct``
    RI_k = sum of PR_j / S_j over j <= k            w_d RI_k: the reward of what it would have displaced there, the
                                                    risk of placing d                  ``risk``

PL-Rank-2   g_d = PR_rank(d)+1 + sum over k <= rank(d) of  w_d / S_k (theta_k rho_d - PR_k)
PL-Rank-3   the numbers of PL-Rank-2, with the sums over k accumulated once for all items:
            g_d = PR_rank(d)+1 + w_d (rho_d DR_rank(d) - RI_rank(d))

An unplaced item has PR = 0 and takes part in all K ranks. PL-Rank-1 is the policy gradient by placement, without a
baseline (``policy_gradient``).
"""

from libc.math cimport fabs
from libc.string cimport memcpy, memset

from plrank_fast._core.gradients.estimator cimport (
    Estimate,
    Estimator,
    as_object,
    is_stopped,
    new_estimator,
    sum_future_reward,
)
from plrank_fast._core.ranking.remaining cimport (
    Remaining,
    analyse_ranking,
    hand_out_sums,
    prepare_remaining,
    take_remaining,
    unit_ratio,
    weight_in_unit,
)
from plrank_fast._core.runtime.layout cimport Layout, take, take_state
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t
from plrank_fast._core.runtime.simd cimport simd_level

cdef extern from "gradients/rank_pass.h" nogil:
    ctypedef struct rank_pass_kernels:
        void (*direct_and_reward)(
            double *gradient, const double *weights, const double *relevance, double direct, double reward, size_t n
        ) noexcept nogil
    const rank_pass_kernels *rank_pass_kernels_at(int level)

cdef const rank_pass_kernels *rank_pass = rank_pass_kernels_at(simd_level())


# ---------------------------------------------------------------------------------------------------------------------
# Shared by all
# ---------------------------------------------------------------------------------------------------------------------

cdef void lay_out_pl_rank(Layout *layout, intp_t n_items, intp_t cutoff) noexcept nogil:
    cdef PLRank measured
    cdef PLRank *state = <PLRank *>take_state(layout, sizeof(PLRank), &measured)
    cdef size_t ranks = (cutoff + 1) * sizeof(double)
    state.active = <double *>take(layout, n_items * sizeof(double))
    state.future_reward = <double *>take(layout, ranks)
    state.own_terms = <double *>take(layout, ranks)
    state.unplaced_direct = <double *>take(layout, ranks)
    state.unplaced_risk = <double *>take(layout, ranks)
    take_remaining(layout, &state.remaining, n_items, cutoff)


cdef void begin_pl_rank(Estimate *estimate) noexcept nogil:
    """Prepare the query. O(D + K log K)."""
    cdef PLRank *state = <PLRank *>estimate.state
    cdef intp_t cutoff = estimate.cutoff
    prepare_remaining(&state.remaining, estimate.scores, estimate.n_items, cutoff)
    memset(state.unplaced_direct, 0, (cutoff + 1) * sizeof(double))
    memset(state.unplaced_risk, 0, (cutoff + 1) * sizeof(double))


cdef inline void activate(PLRank *state, const int32_t *ranking, intp_t rank) noexcept nogil:
    """Set the weights of the items not placed before ``rank``, in that rank's unit; 0 for placed items."""
    cdef const Remaining *remaining = &state.remaining
    cdef intp_t d, k, unit = remaining.unit_position[rank]
    if not remaining.wide:
        memcpy(state.active, remaining.weights, remaining.n_items * sizeof(double))
    else:
        for d in range(remaining.n_items):
            state.active[d] = weight_in_unit(remaining, d, unit)
    for k in range(rank):
        state.active[ranking[k]] = 0.0


# ---------------------------------------------------------------------------------------------------------------------
# PL-Rank-2: O(D K) per ranking
# ---------------------------------------------------------------------------------------------------------------------

cdef inline bint unit_changes(const Remaining *remaining, intp_t rank) noexcept nogil:
    return rank == 0 or (
        remaining.wide and remaining.unit_position[rank] != remaining.unit_position[rank - 1])


cdef void accumulate_pl_rank_2(
    Estimate *estimate, const int32_t *rankings, intp_t n_rankings, intp_t stride
) noexcept nogil:
    """Add each rank's terms to all items not placed yet."""
    cdef PLRank *state = <PLRank *>estimate.state
    cdef const double *future_reward = state.future_reward
    cdef const int32_t *ranking
    cdef double left_over
    cdef intp_t i, k
    for i in range(n_rankings):
        ranking = rankings + i * stride
        analyse_ranking(&state.remaining, ranking)
        sum_future_reward(estimate, ranking, state.future_reward)
        for k in range(estimate.cutoff):
            if is_stopped(estimate, 0.5 * estimate.n_items):
                return
            if unit_changes(&state.remaining, k):
                activate(state, ranking, k)
            left_over = state.remaining.sums[k]
            rank_pass.direct_and_reward(
                estimate.gradient, state.active, estimate.relevance, estimate.rank_weights[k] / left_over,
                future_reward[k] / left_over, estimate.n_items)
            estimate.gradient[ranking[k]] += future_reward[k + 1]
            state.active[ranking[k]] = 0.0


# ---------------------------------------------------------------------------------------------------------------------
# PL-Rank-3: O(K) per ranking, O(D) per query
# ---------------------------------------------------------------------------------------------------------------------
# Each ranking only updates the items that it places. The contribution to an unplaced item, w_d (rho_d DR_K - RI_K),
# depends on the ranking through two numbers. They are summed over rankings, and ``hand_out`` adds them to all items
# once; a placed item subtracts its share of them. Two rules keep that subtraction from cancelling:
# - There are separate sums for each ``first_unplaced``, the highest-scored item left over. No item that scores above it
#   is unplaced, and for all others w_d / S_K <= 1.
# - If the share nevertheless exceeds the item's own terms by far (a light item placed long before heavy ones), the
#   ranking is added to all items at once, in O(D). Policies hardly ever draw such a ranking. Where ranks have units of
#   their own, the share that is added is not quite the one that is subtracted: its weight errs as much as its
#   exponent, in proportion to the distance of two scores. By so much must it be smaller.

cdef double LARGEST_SHARE = 256.0  # times an item's own terms; costs two digits of the sixteen


cdef void add_to_unplaced(
    Estimate *estimate, PLRank *state, const int32_t *ranking, double direct, double risk
) noexcept nogil:
    """Add its part to every item that one ranking leaves out. O(D)."""
    cdef const Remaining *remaining = &state.remaining
    cdef intp_t d, k
    memset(state.active, 0, estimate.n_items * sizeof(double))
    for k in range(estimate.cutoff):
        state.active[ranking[k]] = 1.0
    for d in range(estimate.n_items):
        if state.active[d] == 0.0:
            estimate.gradient[d] += weight_in_unit(remaining, d, remaining.first_unplaced) * (
                estimate.relevance[d] * direct - risk)


cdef void accumulate_pl_rank_3(
    Estimate *estimate, const int32_t *rankings, intp_t n_rankings, intp_t stride
) noexcept nogil:
    cdef PLRank *state = <PLRank *>estimate.state
    cdef Remaining *remaining = &state.remaining
    cdef const double *future_reward = state.future_reward
    cdef const int32_t *ranking
    cdef intp_t i, k, d, unplaced
    cdef intp_t cutoff = estimate.cutoff
    cdef double direct, risk, shared, ratio, inverse, weight
    cdef bint unbalanced
    for i in range(n_rankings):
        ranking = rankings + i * stride
        analyse_ranking(remaining, ranking)
        sum_future_reward(estimate, ranking, state.future_reward)
        unplaced = remaining.first_unplaced
        direct = 0.0
        risk = 0.0
        for k in range(cutoff):
            d = ranking[k]
            if remaining.wide and k > 0:
                ratio = unit_ratio(remaining, remaining.unit_position[k], remaining.unit_position[k - 1])
                direct *= ratio
                risk *= ratio
            inverse = 1.0 / remaining.sums[k]
            direct += estimate.rank_weights[k] * inverse
            risk += future_reward[k] * inverse
            weight = weight_in_unit(remaining, d, remaining.unit_position[k])
            estimate.gradient[d] += future_reward[k + 1] + weight * (estimate.relevance[d] * direct - risk)
            state.own_terms[k] = fabs(future_reward[k + 1]) + weight * (
                fabs(estimate.relevance[d] * direct) + fabs(risk))
        if unplaced == remaining.n_leading:
            continue  # the ranking places every item
        ratio = unit_ratio(remaining, unplaced, remaining.unit_position[cutoff - 1])
        direct *= ratio
        risk *= ratio
        unbalanced = False
        for k in range(cutoff):
            d = ranking[k]
            if remaining.position[d] > unplaced:
                weight = weight_in_unit(remaining, d, unplaced)
                shared = weight * (fabs(estimate.relevance[d] * direct) + fabs(risk))
                if remaining.wide:
                    shared *= 1.0 + estimate.scores[remaining.leading[unplaced]] - estimate.scores[d]
                unbalanced |= shared > LARGEST_SHARE * state.own_terms[k]
        if unbalanced:
            add_to_unplaced(estimate, state, ranking, direct, risk)
            continue
        state.unplaced_direct[unplaced] += direct
        state.unplaced_risk[unplaced] += risk
        for k in range(cutoff):
            d = ranking[k]
            if remaining.position[d] > unplaced:
                weight = weight_in_unit(remaining, d, unplaced)
                estimate.gradient[d] -= weight * (estimate.relevance[d] * direct - risk)


cdef void hand_out_pl_rank_3(Estimate *estimate) noexcept nogil:
    """Add the sums over the rankings that leave an item unplaced to all items."""
    cdef PLRank *state = <PLRank *>estimate.state
    hand_out_sums(&state.remaining, state.unplaced_direct, estimate.relevance, 1.0, estimate.gradient)
    hand_out_sums(&state.remaining, state.unplaced_risk, NULL, -1.0, estimate.gradient)


# ---------------------------------------------------------------------------------------------------------------------
# The value of the metric
# ---------------------------------------------------------------------------------------------------------------------

cdef void accumulate_metric(
    Estimate *estimate, const int32_t *rankings, intp_t n_rankings, intp_t stride
) noexcept nogil:
    cdef intp_t i, k
    for i in range(n_rankings):
        for k in range(estimate.cutoff):
            estimate.gradient[0] += estimate.rank_weights[k] * estimate.relevance[rankings[i * stride + k]]


# ---------------------------------------------------------------------------------------------------------------------
# Tables of the estimators
# ---------------------------------------------------------------------------------------------------------------------

cdef Estimator metric_estimator() noexcept nogil:
    """Return the estimator of the metric's value: its "gradient" is one number per query."""
    cdef Estimator estimator = new_estimator(NULL, NULL, accumulate_metric, NULL, 0.0, 2.0, 0.0)
    estimator.one_per_query = True
    estimator.fewest_items = 1
    return estimator


cdef Estimator pl_rank_2_estimator() noexcept nogil:
    return new_estimator(lay_out_pl_rank, begin_pl_rank, accumulate_pl_rank_2, NULL, 0.0, 0.0, 0.5)


cdef Estimator pl_rank_3_estimator() noexcept nogil:
    """Return PL-Rank-3 for any scores and rank weights; ``pl_rank_groups`` is faster where it applies."""
    return new_estimator(lay_out_pl_rank, begin_pl_rank, accumulate_pl_rank_3, hand_out_pl_rank_3, 0.0, 5.0, 0.0)


METRIC = as_object(metric_estimator)
PL_RANK_2 = as_object(pl_rank_2_estimator)
PLAIN_PL_RANK_3 = as_object(pl_rank_3_estimator)  # for tests
