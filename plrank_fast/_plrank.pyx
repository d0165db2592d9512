"""The estimators PL-Rank-1, PL-Rank-2 and PL-Rank-3, each as three steps over the rankings of one query.

In all of them, for one ranking y with K = cutoff ranks that count (symbols of Oosterhuis, SIGIR 2021 and 2022):

    PR_k = sum of theta_x rho_{y_x} over x >= k     the reward from rank k on              ``reward``
    S_k  = sum of w_d over d not placed before k    with w = exp(score)                    ``remaining.sums``

PL-Rank-1   g_d = PR_rank(d)   - sum over k <= rank(d) of  w_d / S_k  PR_k
PL-Rank-2   g_d = PR_rank(d)+1 + sum over k <= rank(d) of  w_d / S_k (theta_k rho_d - PR_k)
PL-Rank-3   the same numbers as PL-Rank-2 with the sums over k accumulated once for all items:
            DR_k = sum over j <= k of theta_j / S_j,  RI_k = sum over j <= k of PR_j / S_j,
            g_d = PR_rank(d)+1 + w_d (rho_d DR_rank(d) - RI_rank(d))

An item that is not placed has PR = 0 and takes part in all K ranks.

With a baseline b, PL-Rank-3 puts PR_{k+1} - b_k for the placed item's PR_{k+1} and PR_k - b_k for PR_k in RI. Given
what is placed before rank k, an item is placed there with probability w_d / S_k: the two changes cancel in
expectation for any b that does not depend on the ranking.
"""

from libc.math cimport fabs
from libc.string cimport memcpy, memset

from plrank_fast._remaining cimport (
    analyse_ranking,
    prepare_remaining,
    remaining_workspace,
    unit_ratio,
    weight_in_unit,
)
from plrank_fast._simd cimport simd_level
from plrank_fast._typedefs cimport int32_t, intp_t

cdef extern from "rank_pass.h" nogil:
    ctypedef struct rank_pass_kernels:
        void (*reward_share)(double *gradient, const double *weights, double reward, size_t n) noexcept nogil
        void (*direct_and_reward)(
            double *gradient, const double *weights, const double *relevance, double direct, double reward, size_t n
        ) noexcept nogil
    const rank_pass_kernels *rank_pass_kernels_at(int level)

cdef const rank_pass_kernels *rank_pass = rank_pass_kernels_at(simd_level())


# ---------------------------------------------------------------------------------------------------------------------
# Shared by all
# ---------------------------------------------------------------------------------------------------------------------

cdef size_t workspace_of_all(intp_t n_items, intp_t cutoff) noexcept nogil:
    """Bytes that any of the estimators needs for one query."""
    return remaining_workspace(n_items, cutoff) + (<size_t>n_items + 4 * (<size_t>cutoff + 2)) * sizeof(double)


cdef void begin(Estimate *estimate, char *workspace) noexcept nogil:
    """Zero the gradient and prepare the query."""
    memset(estimate.gradient, 0, estimate.n_items * sizeof(double))
    workspace = prepare_remaining(
        &estimate.remaining, estimate.scores, estimate.n_items, estimate.cutoff, workspace)
    estimate.active = <double *>workspace
    estimate.reward = estimate.active + estimate.n_items
    estimate.own_terms = estimate.reward + estimate.cutoff + 2
    estimate.unplaced_direct = estimate.own_terms + estimate.cutoff + 2
    estimate.unplaced_reward = estimate.unplaced_direct + estimate.cutoff + 2
    memset(estimate.unplaced_direct, 0, 2 * (estimate.cutoff + 2) * sizeof(double))


cdef inline void activate(Estimate *estimate, const int32_t *ranking, intp_t rank) noexcept nogil:
    """Weights of the items not placed before ``rank``, in that rank's unit; 0 for the placed ones."""
    cdef intp_t d, k, unit = estimate.remaining.unit_position[rank]
    if not estimate.remaining.wide:
        memcpy(estimate.active, estimate.remaining.weights, estimate.n_items * sizeof(double))
    else:
        for d in range(estimate.n_items):
            estimate.active[d] = weight_in_unit(&estimate.remaining, d, unit)
    for k in range(rank):
        estimate.active[ranking[k]] = 0.0


cdef void finish(Estimate *estimate, intp_t n_samples) noexcept nogil:
    """Mean over the samples."""
    cdef intp_t d
    for d in range(estimate.n_items):
        estimate.gradient[d] /= n_samples
    if estimate.hessian != NULL:
        for d in range(estimate.n_items):
            estimate.hessian[d] /= n_samples


# ---------------------------------------------------------------------------------------------------------------------
# PL-Rank-1 and PL-Rank-2: O(D K) per ranking
# ---------------------------------------------------------------------------------------------------------------------

cdef inline bint unit_changes(const Estimate *estimate, intp_t rank) noexcept nogil:
    return rank == 0 or (
        estimate.remaining.wide
        and estimate.remaining.unit_position[rank] != estimate.remaining.unit_position[rank - 1])


cdef void accumulate_1(
    Estimate *estimate, const int32_t *rankings, intp_t n_rankings, intp_t stride
) noexcept nogil:
    cdef const int32_t *ranking
    cdef intp_t i, k
    for i in range(n_rankings):
        ranking = rankings + i * stride
        analyse_ranking(&estimate.remaining, ranking)
        sum_reward(estimate, ranking)
        for k in range(estimate.cutoff):
            if unit_changes(estimate, k):
                activate(estimate, ranking, k)
            rank_pass.reward_share(
                estimate.gradient, estimate.active, estimate.reward[k] / estimate.remaining.sums[k], estimate.n_items)
            estimate.gradient[ranking[k]] += estimate.reward[k]
            estimate.active[ranking[k]] = 0.0


cdef void accumulate_2(
    Estimate *estimate, const int32_t *rankings, intp_t n_rankings, intp_t stride
) noexcept nogil:
    cdef const int32_t *ranking
    cdef intp_t i, k
    for i in range(n_rankings):
        ranking = rankings + i * stride
        analyse_ranking(&estimate.remaining, ranking)
        sum_reward(estimate, ranking)
        for k in range(estimate.cutoff):
            if unit_changes(estimate, k):
                activate(estimate, ranking, k)
            rank_pass.direct_and_reward(
                estimate.gradient, estimate.active, estimate.relevance,
                estimate.rank_weights[k] / estimate.remaining.sums[k],
                estimate.reward[k] / estimate.remaining.sums[k], estimate.n_items)
            estimate.gradient[ranking[k]] += estimate.reward[k + 1]
            estimate.active[ranking[k]] = 0.0


# ---------------------------------------------------------------------------------------------------------------------
# PL-Rank-3: O(K) per ranking, O(D) per query
# ---------------------------------------------------------------------------------------------------------------------
#
# Only placed items are touched per ranking. What an unplaced item receives, w_d (rho_d DR_K - RI_K), depends on the
# ranking through two numbers, which are summed over rankings and handed to all items once, in ``finish_3``; a placed
# item takes back its share of them. Two things keep that subtraction from cancelling:
#
# - The sums are kept apart by ``first_unplaced``, the highest-scored item left over. No item that scores above it can
#   be unplaced, and for all others w_d / S_K <= 1.
# - Where the share outweighs the item's own terms all the same (a light item placed long before heavy ones), the
#   ranking is not summed up but handed out at once, in O(D). Policies hardly ever draw such a ranking.

cdef double LARGEST_SHARE = 256.0  # times an item's own terms; costs two digits of the sixteen


cdef void hand_out(
    Estimate *estimate, const int32_t *ranking, double direct, double reward_share
) noexcept nogil:
    """Give every item that one ranking leaves out its part. O(D)."""
    cdef intp_t d, k
    memset(estimate.active, 0, estimate.n_items * sizeof(double))
    for k in range(estimate.cutoff):
        estimate.active[ranking[k]] = 1.0
    for d in range(estimate.n_items):
        if estimate.active[d] == 0.0:
            estimate.gradient[d] += weight_in_unit(&estimate.remaining, d, estimate.remaining.first_unplaced) * (
                estimate.relevance[d] * direct - reward_share)


cdef void accumulate_3(
    Estimate *estimate, const int32_t *rankings, intp_t n_rankings, intp_t stride
) noexcept nogil:
    cdef Remaining *remaining = &estimate.remaining
    cdef const int32_t *ranking
    cdef intp_t i, k, d, unplaced
    cdef intp_t cutoff = estimate.cutoff
    cdef double direct, reward_share, absolute_direct, absolute_reward, shared, ratio, inverse, weight, baseline
    cdef bint lopsided
    for i in range(n_rankings):
        ranking = rankings + i * stride
        analyse_ranking(remaining, ranking)
        sum_reward(estimate, ranking)
        unplaced = remaining.first_unplaced
        direct = 0.0
        reward_share = 0.0
        absolute_direct = 0.0
        absolute_reward = 0.0
        for k in range(cutoff):
            d = ranking[k]
            if remaining.wide and k > 0:
                ratio = unit_ratio(remaining, remaining.unit_position[k], remaining.unit_position[k - 1])
                direct *= ratio
                reward_share *= ratio
                absolute_direct *= ratio
                absolute_reward *= ratio
            inverse = 1.0 / remaining.sums[k]
            direct += estimate.rank_weights[k] * inverse
            baseline = estimate.baseline[k] if estimate.baseline != NULL else 0.0
            reward_share += (estimate.reward[k] - baseline) * inverse
            absolute_direct += fabs(estimate.rank_weights[k]) * inverse
            absolute_reward += fabs(estimate.reward[k] - baseline) * inverse
            weight = weight_in_unit(remaining, d, remaining.unit_position[k])
            estimate.gradient[d] += (
                estimate.reward[k + 1] - baseline + weight * (estimate.relevance[d] * direct - reward_share))
            estimate.own_terms[k] = fabs(estimate.reward[k + 1] - baseline) + weight * (
                fabs(estimate.relevance[d]) * absolute_direct + absolute_reward)
        if unplaced == remaining.n_leading:
            continue  # the ranking places every item
        ratio = unit_ratio(remaining, unplaced, remaining.unit_position[cutoff - 1])
        direct *= ratio
        reward_share *= ratio
        lopsided = False
        for k in range(cutoff):
            d = ranking[k]
            if remaining.position[d] > unplaced:
                weight = weight_in_unit(remaining, d, unplaced)
                shared = weight * (fabs(estimate.relevance[d] * direct) + fabs(reward_share))
                lopsided |= shared > LARGEST_SHARE * estimate.own_terms[k]
        if lopsided:
            hand_out(estimate, ranking, direct, reward_share)
            continue
        estimate.unplaced_direct[unplaced] += direct
        estimate.unplaced_reward[unplaced] += reward_share
        for k in range(cutoff):
            d = ranking[k]
            if remaining.position[d] > unplaced:
                weight = weight_in_unit(remaining, d, unplaced)
                estimate.gradient[d] -= weight * (estimate.relevance[d] * direct - reward_share)


cdef void finish_3(Estimate *estimate, intp_t n_samples) noexcept nogil:
    """Hand the sums over the rankings that leave an item unplaced to all items, then take the mean."""
    cdef Remaining *remaining = &estimate.remaining
    cdef intp_t d, p
    cdef double direct = 0.0, reward_share = 0.0
    for p in range(remaining.n_leading):
        d = remaining.leading[p]
        direct = direct * remaining.step[p] + estimate.unplaced_direct[p]
        reward_share = reward_share * remaining.step[p] + estimate.unplaced_reward[p]
        estimate.gradient[d] += weight_in_unit(remaining, d, p) * (estimate.relevance[d] * direct - reward_share)
    for d in range(estimate.n_items):
        if remaining.position[d] == remaining.n_leading:
            estimate.gradient[d] += weight_in_unit(remaining, d, remaining.n_leading - 1) * (
                estimate.relevance[d] * direct - reward_share)
    finish(estimate, n_samples)


# ---------------------------------------------------------------------------------------------------------------------
# The value itself
# ---------------------------------------------------------------------------------------------------------------------

cdef void begin_metric(Estimate *estimate, char *workspace) noexcept nogil:
    estimate.gradient[0] = 0.0


cdef void accumulate_metric(
    Estimate *estimate, const int32_t *rankings, intp_t n_rankings, intp_t stride
) noexcept nogil:
    cdef intp_t i, k
    for i in range(n_rankings):
        for k in range(estimate.cutoff):
            estimate.gradient[0] += estimate.rank_weights[k] * estimate.relevance[rankings[i * stride + k]]


cdef void finish_metric(Estimate *estimate, intp_t n_samples) noexcept nogil:
    estimate.gradient[0] /= n_samples


# ---------------------------------------------------------------------------------------------------------------------
# By name
# ---------------------------------------------------------------------------------------------------------------------

cdef Estimator pl_rank_estimator(int variant) noexcept nogil:
    """PL-Rank-1, 2 or 3; 0 is the sampled value of the metric, whose "gradient" is one number per query.

    9 is PL-Rank-3 without its passes in lockstep, the twin that these are tested against.
    """
    cdef Estimator estimator
    estimator.passes = 1
    estimator.in_lockstep = False
    estimator.workspace = workspace_of_all
    estimator.begin = begin
    estimator.finish = finish
    estimator.ns_per_item = 0.0
    estimator.ns_per_item_and_rank = 0.5
    if variant == 1:
        estimator.accumulate = accumulate_1
    elif variant == 2:
        estimator.accumulate = accumulate_2
    elif variant == 3 or variant == 9:
        estimator.accumulate = accumulate_3
        estimator.finish = finish_3
        estimator.ns_per_item_and_rank = 0.1
    else:
        estimator.begin = begin_metric
        estimator.accumulate = accumulate_metric
        estimator.finish = finish_metric
        estimator.ns_per_item_and_rank = 0.1
    return estimator
