"""Sampled estimates: the gradient, and the Hessian diagonal, of one query."""

from plrank_fast._core.gradients.estimator cimport Estimate, Estimator
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t, uint64_t

cdef struct Source:
    # the source of a batch's rankings: given, or drawn
    int sampler
    const int32_t *given        # (n_queries, n_samples, length), or NULL
    intp_t length
    intp_t n_samples
    const uint64_t *key
    uint64_t first_query
    uint64_t first_block        # of every query, as in ``Draw``

cdef size_t query_workspace(const Estimator *estimator, intp_t n_items, intp_t cutoff) noexcept nogil
cdef void estimate_query(
    const Estimator *estimator, Estimate *estimate, const Source *source, intp_t query, char *workspace
) noexcept nogil
