"""Exposure of each item, from sampled rankings."""

from plrank_fast._core.gradients.estimator cimport Estimator

cdef Estimator exposure_estimator() noexcept nogil
