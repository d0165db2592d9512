"""Policy gradients: the gradient of each ranking's log-probability, weighted by its reward."""

from plrank_fast._core.gradients.estimator cimport Estimator

cdef Estimator policy_gradient_estimator() noexcept nogil
cdef Estimator placement_estimator() noexcept nogil
cdef Estimator log_prob_estimator() noexcept nogil
cdef void subtract_baseline(Estimator *estimator) noexcept nogil
