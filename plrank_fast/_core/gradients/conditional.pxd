"""Conditional Monte Carlo: the gradient of each item given the order of the others."""

from plrank_fast._core.gradients.estimator cimport Estimator

cdef Estimator conditional_estimator() noexcept nogil
