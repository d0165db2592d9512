"""Sampled estimates: the gradient, and the Hessian diagonal, of one query."""

from plrank_fast._core.gradients.estimator cimport Estimate, Estimator
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t, uint64_t

cpdef enum EstimatorKind:
    METRIC                      # the sampled value, one number per query
    PL_RANK_1
    PL_RANK_2
    PL_RANK_3
    CONDITIONAL
    POLICY
    PLACEMENT
    POLICY_WITH_BASELINE
    PLACEMENT_WITH_BASELINE
    EXPOSURE
    LOG_PROB                    # the gradient of log-probabilities of given rankings, summed with their rewards
    PL_RANK_3_PLAIN             # one ranking after another: the reference implementation of PL_RANK_3 in tests

cdef struct Source:
    # the source of a batch's rankings: given, or drawn
    int sampler
    const int32_t *given        # (n_queries, n_samples, length), or NULL
    intp_t length
    intp_t n_samples
    const uint64_t *key
    uint64_t first_query
    uint64_t first_block        # of every query, as in ``Draw``

cdef Estimator estimator_of(int kind, bint with_hessian) noexcept nogil
cdef size_t query_workspace(
    const Estimator *estimator, intp_t n_items, intp_t cutoff, intp_t n_samples, bint drawn) noexcept nogil
cdef void estimate_drawn(
    const Estimator *estimator, Estimate *estimate, const Source *source, intp_t query, char *workspace
) noexcept nogil
cdef void estimate_given(
    const Estimator *estimator, Estimate *estimate, const Source *source, intp_t query, char *workspace
) noexcept nogil
