"""Sampled estimates: the gradient, and the Hessian diagonal, of one query."""

from plrank_fast._core.gradients.estimator cimport Estimate, Estimator
from plrank_fast._core.runtime.scalar_types cimport intp_t

cdef size_t query_workspace(const Estimator *estimator, intp_t n_items, intp_t cutoff) noexcept nogil
cdef void estimate_query(const Estimator *estimator, Estimate *estimate, char *workspace) noexcept nogil
