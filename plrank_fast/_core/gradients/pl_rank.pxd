"""The state and the steps of PL-Rank-3, for the estimators beside it."""

from plrank_fast._core.gradients.estimator cimport Estimate
from plrank_fast._core.ranking.remaining cimport Remaining
from plrank_fast._core.runtime.layout cimport Layout
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t

cdef struct PLRank:
    # the state of one query
    Remaining remaining
    double *active               # (n_items,) weights of the items not placed yet
    double *future_reward        # (cutoff + 1,) PR_k: rank weight times relevance, summed from each rank on
    double *own_terms            # (cutoff,) magnitude of each placed item's own terms
    double *unplaced_direct      # (n_leading,) sums of DR_K and of RI_K over whole rankings,
    double *unplaced_risk        # risk of each first item that these leave over

cdef void lay_out_pl_rank(Layout *layout, intp_t n_items, intp_t cutoff) noexcept nogil
cdef void begin_pl_rank(Estimate *estimate) noexcept nogil
cdef void accumulate_pl_rank_3(
    Estimate *estimate, const int32_t *rankings, intp_t n_rankings, intp_t stride) noexcept nogil
cdef void hand_out_pl_rank_3(Estimate *estimate) noexcept nogil
