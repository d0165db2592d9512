"""Sampled estimates: the gradient, and the Hessian diagonal, of one query."""

from plrank_fast._core.gradients.estimator cimport Estimate, Estimator
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t
from plrank_fast._core.sampling.samplers cimport Draw

cdef struct Source:
    # the source of a batch's rankings: given, or drawn
    const int32_t *given        # (n_queries, n_samples, length), or NULL
    intp_t length
    Draw draw                   # of the first query; its number of samples is also that of given rankings

cdef size_t query_workspace(const Estimator *estimator, intp_t n_items, intp_t cutoff) noexcept nogil
cdef void estimate_query(
    const Estimator *estimator, Estimate *estimate, const Source *source, intp_t query, char *workspace
) noexcept nogil
