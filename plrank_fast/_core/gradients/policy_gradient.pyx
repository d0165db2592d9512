"""Policy gradients: the gradient of each ranking's log-probability, weighted by its reward.

With S_k the weight not placed before rank k, one ranking y contributes to item d::

    g_d = a_rank(d) - sum over k <= rank(d) of a_k w_d / S_k

(without the first term, and over all K ranks, if d is not placed). The advantage a_k is the reward of the whole
ranking, sum_x theta_x rho_{y_x}, or only the reward from rank k on, since a choice at rank k changes nothing above it;
the latter is PL-Rank-1 (Oosterhuis, SIGIR 2021).

Subtracting a baseline that does not depend on the ranking from a_k leaves the mean unbiased. The mean reward of the
other N - 1 rankings is one: a_k - (sum - a_k) / (N - 1) = N / (N - 1) (a_k - mean). A first pass over the rankings
computes that mean, and drawing them again costs less than storing them would.

If each ranking comes with a number, that number is a_k at every rank, the estimate is the sum over the rankings, and a
ranking may end before the cutoff: it contributes the ranks that it has.

The contribution to an unplaced item, w_d times the sum of a_k / S_k, depends on a ranking through that one sum.
The sums are added up over rankings and applied once, at the end: O(D + N K) in place of O(N D). A placed item subtracts
its part, which costs no accuracy: there are separate sums for each highest-scored item left over, no item that scores
above it is unplaced, and for all others w_d / S_k <= 1, so that the part is at most the sum of |a_k|.
"""

from libc.string cimport memset

from plrank_fast._core.gradients.estimator cimport (
    Estimate, Estimator, as_object, new_estimator, sum_future_reward,
)
from plrank_fast._core.ranking.remaining cimport (
    Remaining,
    analyse_ranking,
    hand_out_sums,
    prepare_remaining,
    ranks_placed,
    take_remaining,
    unit_ratio,
    weight_in_unit,
)
from plrank_fast._core.runtime.layout cimport Layout, take, take_state
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t

cdef struct PolicyGradient:
    # the state of one query
    Remaining remaining
    bint reward_to_go
    double *unplaced_share     # (n_leading,) a sum for each highest-scored item left over, in its unit
    intp_t n_observed          # rankings, 0 without a baseline
    intp_t n_seen              # rankings with a number of their own
    double *future_reward      # (cutoff + 1,) of one ranking
    double *baseline           # (cutoff,) mean of a_k


# ---------------------------------------------------------------------------------------------------------------------
# Per ranking
# ---------------------------------------------------------------------------------------------------------------------

cdef inline double reward_at(const PolicyGradient *state, intp_t k) noexcept nogil:
    return state.future_reward[k if state.reward_to_go else 0]


cdef void add_ranking(Estimate *estimate, PolicyGradient *state, const int32_t *ranking) noexcept nogil:
    cdef Remaining *remaining = &state.remaining
    cdef intp_t cutoff = remaining.cutoff, d, k, unit = remaining.first_unplaced
    cdef double share = 0.0, advantage
    for k in range(cutoff):
        if k > 0:
            share *= unit_ratio(remaining, remaining.unit_position[k], remaining.unit_position[k - 1])
        advantage = reward_at(state, k) - state.baseline[k]
        share += advantage / remaining.sums[k]
        d = ranking[k]
        estimate.gradient[d] += advantage - weight_in_unit(remaining, d, remaining.unit_position[k]) * share
    if unit == remaining.n_leading:
        return  # the ranking places every item
    share *= unit_ratio(remaining, unit, remaining.unit_position[cutoff - 1])
    state.unplaced_share[unit] += share
    for k in range(cutoff):
        d = ranking[k]
        if remaining.position[d] > unit:  # no item that scores above the unit is unplaced
            estimate.gradient[d] += weight_in_unit(remaining, d, unit) * share


cdef void hand_out_shares(Estimate *estimate) noexcept nogil:
    """Add to all items the sums over the rankings that leave them out. O(D)."""
    cdef PolicyGradient *state = <PolicyGradient *>estimate.state
    hand_out_sums(&state.remaining, state.unplaced_share, NULL, -1.0, estimate.gradient)


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef void lay_out(Layout *layout, intp_t n_items, intp_t cutoff) noexcept nogil:
    cdef PolicyGradient measured
    cdef PolicyGradient *state = <PolicyGradient *>take_state(layout, sizeof(PolicyGradient), &measured)
    state.future_reward = <double *>take(layout, (cutoff + 1) * sizeof(double))
    state.baseline = <double *>take(layout, cutoff * sizeof(double))
    state.unplaced_share = <double *>take(layout, (cutoff + 1) * sizeof(double))
    take_remaining(layout, &state.remaining, n_items, cutoff)


cdef void begin(Estimate *estimate) noexcept nogil:
    cdef PolicyGradient *state = <PolicyGradient *>estimate.state
    prepare_remaining(&state.remaining, estimate.scores, estimate.n_items, estimate.cutoff)
    state.reward_to_go = False
    memset(state.unplaced_share, 0, (estimate.cutoff + 1) * sizeof(double))
    state.n_observed = 0
    state.n_seen = 0
    memset(state.baseline, 0, estimate.cutoff * sizeof(double))


cdef void begin_to_go(Estimate *estimate) noexcept nogil:
    begin(estimate)
    (<PolicyGradient *>estimate.state).reward_to_go = True


cdef void observe_mean(Estimate *estimate, const int32_t *rankings, intp_t n_rankings, intp_t stride) noexcept nogil:
    """Update the running mean of the rewards."""
    cdef PolicyGradient *state = <PolicyGradient *>estimate.state
    cdef intp_t i, k
    for i in range(n_rankings):
        sum_future_reward(estimate, rankings + i * stride, state.future_reward)
        state.n_observed += 1
        for k in range(estimate.cutoff):
            state.baseline[k] += (reward_at(state, k) - state.baseline[k]) / state.n_observed


cdef void accumulate(Estimate *estimate, const int32_t *rankings, intp_t n_rankings, intp_t stride) noexcept nogil:
    cdef PolicyGradient *state = <PolicyGradient *>estimate.state
    cdef intp_t i
    for i in range(n_rankings):
        sum_future_reward(estimate, rankings + i * stride, state.future_reward)
        analyse_ranking(&state.remaining, rankings + i * stride)
        add_ranking(estimate, state, rankings + i * stride)


cdef void accumulate_log_prob(
    Estimate *estimate, const int32_t *rankings, intp_t n_rankings, intp_t stride
) noexcept nogil:
    """Add rankings whose rewards the caller gives, and which may end early."""
    cdef PolicyGradient *state = <PolicyGradient *>estimate.state
    cdef const int32_t *ranking
    cdef intp_t i
    for i in range(n_rankings):
        ranking = rankings + i * stride
        state.future_reward[0] = estimate.rewards[state.n_seen]
        state.n_seen += 1
        state.remaining.cutoff = ranks_placed(ranking, estimate.cutoff)
        if state.remaining.cutoff > 0 and state.future_reward[0] != 0.0:
            analyse_ranking(&state.remaining, ranking)
            add_ranking(estimate, state, ranking)


cdef Estimator log_prob_estimator() noexcept nogil:
    """Return the gradient of the rankings' log-probabilities, weighted by a number for each and summed."""
    cdef Estimator estimator = new_estimator(lay_out, begin, accumulate_log_prob, hand_out_shares, 0.5, 0.0, 0.1)
    estimator.adds_up = True
    estimator.needs_relevance = False
    return estimator


cdef Estimator policy_gradient_estimator() noexcept nogil:
    cdef Estimator estimator = new_estimator(lay_out, begin, accumulate, hand_out_shares, 0.5, 0.0, 0.1)
    estimator.baseline = observe_mean
    return estimator


cdef Estimator placement_estimator() noexcept nogil:
    cdef Estimator estimator = policy_gradient_estimator()
    estimator.begin = begin_to_go
    return estimator


LOG_PROB = as_object(log_prob_estimator)
POLICY_GRADIENT = as_object(policy_gradient_estimator)
PLACEMENT = as_object(placement_estimator)
