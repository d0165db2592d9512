"""Policy gradients: the log-probability of each ranking, weighted by what the ranking is worth."""

from plrank_fast._core.gradients.estimator cimport Estimator

cdef Estimator policy_gradient_estimator(bint reward_to_go, bint with_baseline) noexcept nogil
cdef Estimator log_prob_estimator() noexcept nogil
