"""PL-Rank-3 with the Hessian diagonal."""

from plrank_fast._core.gradients.estimator cimport Estimator

cdef Estimator hessian_estimator() noexcept nogil
