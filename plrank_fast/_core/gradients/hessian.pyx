"""PL-Rank-3 with the Hessian diagonal of the expected metric.

Write X_d(y) for the gradient that PL-Rank-3 computes from one ranking y. The Hessian diagonal is the derivative of
E[X_d]. Since the policy depends on the scores too, it is E[X_d s_d + dX_d / df_d] with s_d = d log pi(y) / df_d. With
q_j = w_d / S_j, for an item at rank r (r = K, and PR_{r+1} = 0, if it is not placed)::

    X_d         = PR_{r+1} + sum over j <= r of q_j (theta_j rho_d - PR_j)
    s_d         = [d is placed] - sum over j <= r of q_j
    dX_d / df_d = sum over j <= r of q_j (1 - q_j) (theta_j rho_d - PR_j)

All sums over j are w_d or w_d^2 times prefix sums that all items share, so placed items cost O(K) per ranking and
unplaced ones O(D) per ranking, one multiplication each (the gradient alone takes O(D) per query). The estimator is
unbiased, as enumeration shows; its variance is far above the conditional estimator's.
"""

from libc.string cimport memset

from plrank_fast._core.gradients.estimator cimport Estimate, Estimator, new_estimator, sum_future_reward
from plrank_fast._core.gradients.pl_rank cimport PLRank, begin_pl_rank, lay_out_pl_rank
from plrank_fast._core.ranking.remaining cimport Remaining, analyse_ranking, unit_ratio, weight_in_unit
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t

cdef struct Prefix:
    # sums over j <= k of 1 / S_j, theta_j / S_j, PR_j / S_j, theta_j / S_j^2, PR_j / S_j^2, in the unit of a rank
    double chance, direct, risk, direct_squared, risk_squared


# ---------------------------------------------------------------------------------------------------------------------
# Per item
# ---------------------------------------------------------------------------------------------------------------------

cdef inline void add_item_terms(
    Estimate *estimate, intp_t d, double weight, const Prefix *prefix, bint placed, double reward_after
) noexcept nogil:
    cdef double rho = estimate.relevance[d]
    cdef double shared = weight * (rho * prefix.direct - prefix.risk)
    cdef double gradient = reward_after + shared
    estimate.gradient[d] += gradient
    estimate.hessian[d] += (
        gradient * ((1.0 if placed else 0.0) - weight * prefix.chance)
        + shared - weight * weight * (rho * prefix.direct_squared - prefix.risk_squared))


cdef inline void change_unit(Prefix *prefix, double ratio) noexcept nogil:
    prefix.chance *= ratio
    prefix.direct *= ratio
    prefix.risk *= ratio
    prefix.direct_squared *= ratio * ratio
    prefix.risk_squared *= ratio * ratio


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef void accumulate(Estimate *estimate, const int32_t *rankings, intp_t n_rankings, intp_t stride) noexcept nogil:
    cdef PLRank *state = <PLRank *>estimate.state
    cdef Remaining *remaining = &state.remaining
    cdef const double *future_reward = state.future_reward
    cdef const int32_t *ranking
    cdef intp_t i, d, k, unit, cutoff = estimate.cutoff
    cdef double inverse
    cdef Prefix prefix
    for i in range(n_rankings):
        ranking = rankings + i * stride
        analyse_ranking(remaining, ranking)
        sum_future_reward(estimate, ranking, state.future_reward)
        memset(&prefix, 0, sizeof(Prefix))
        memset(state.active, 0, estimate.n_items * sizeof(double))
        for k in range(cutoff):
            d = ranking[k]
            unit = remaining.unit_position[k]
            if remaining.wide and k > 0:
                change_unit(&prefix, unit_ratio(remaining, unit, remaining.unit_position[k - 1]))
            inverse = 1.0 / remaining.sums[k]
            prefix.chance += inverse
            prefix.direct += estimate.rank_weights[k] * inverse
            prefix.risk += future_reward[k] * inverse
            prefix.direct_squared += estimate.rank_weights[k] * inverse * inverse
            prefix.risk_squared += future_reward[k] * inverse * inverse
            add_item_terms(estimate, d, weight_in_unit(remaining, d, unit), &prefix, True, future_reward[k + 1])
            state.active[d] = 1.0  # marks the placed ones
        if remaining.first_unplaced == remaining.n_leading:
            continue
        unit = remaining.first_unplaced
        change_unit(&prefix, unit_ratio(remaining, unit, remaining.unit_position[cutoff - 1]))
        for d in range(estimate.n_items):
            if state.active[d] == 0.0:
                add_item_terms(estimate, d, weight_in_unit(remaining, d, unit), &prefix, False, 0.0)


cdef Estimator hessian_estimator() noexcept nogil:
    return new_estimator(lay_out_pl_rank, begin_pl_rank, accumulate, NULL, 2.0, 0.0, 0.1)
