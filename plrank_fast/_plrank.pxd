"""The estimators PL-Rank-1, PL-Rank-2 and PL-Rank-3, each as three steps over the rankings of one query."""

from plrank_fast._plrank_pass cimport pl_rank_groups
from plrank_fast._remaining cimport Remaining
from plrank_fast._typedefs cimport int32_t, intp_t

cdef struct Estimate:
    # one query
    intp_t n_items
    intp_t cutoff                    # ranks that count: min(number of rank weights, n_items)
    const double *scores
    const double *relevance
    const double *rank_weights
    const double *baseline           # (n_items,) taken off the reward after each rank (PL-Rank-3), or NULL
    double *gradient                 # (n_items,) OUT
    double *hessian                  # (n_items,) OUT, or NULL
    int passes_to_come               # over the same rankings, after the one at hand
    void *state                      # of estimators that keep more than what follows
    # in lockstep
    int kind                         # of ``_plrank_pass``, PLAIN if none of its passes serves
    pl_rank_groups in_lockstep
    # one ranking after another
    Remaining remaining
    double *active                   # (n_items,) weights of the items not placed yet
    double *reward                   # (cutoff + 1,) rank weight times relevance, summed from each rank on
    double *own_terms                # (cutoff,) absolute terms of each placed item
    double *unplaced_direct          # (n_leading,) sums of theta / S, and of reward / S, over
    double *unplaced_reward          # whole rankings, by the first item these leave over

ctypedef size_t (*workspace_size)(intp_t n_items, intp_t cutoff) noexcept nogil
ctypedef void (*begin_step)(Estimate *estimate, char *workspace) noexcept nogil
ctypedef void (*accumulate_step)(
    Estimate *estimate, const int32_t *rankings, intp_t n_rankings, intp_t stride) noexcept nogil
ctypedef void (*finish_step)(Estimate *estimate, intp_t n_samples) noexcept nogil

cdef struct Estimator:
    workspace_size workspace
    begin_step begin
    accumulate_step accumulate
    finish_step finish
    int passes                       # over the rankings; ``_sampled`` says how many
    bint in_lockstep                 # whether the passes of ``_plrank_pass`` compute the same
    double ns_per_item               # rough cost per sample and item, and per sample, item and rank
    double ns_per_item_and_rank

cdef size_t workspace_of_all(intp_t n_items, intp_t cutoff) noexcept nogil
cdef void begin(Estimate *estimate, char *workspace) noexcept nogil
cdef void finish(Estimate *estimate, intp_t n_samples) noexcept nogil
cdef Estimator pl_rank_estimator(int variant) noexcept nogil


cdef inline void sum_reward(Estimate *estimate, const int32_t *ranking) noexcept nogil:
    """reward[k] = PR_k, from the tail."""
    cdef intp_t k
    cdef double reward = 0.0
    estimate.reward[estimate.cutoff] = 0.0
    for k in range(estimate.cutoff - 1, -1, -1):
        reward += estimate.rank_weights[k] * estimate.relevance[ranking[k]]
        estimate.reward[k] = reward
