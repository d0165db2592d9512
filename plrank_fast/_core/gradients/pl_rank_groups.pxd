"""PL-Rank-3 over groups of sixteen rankings, one in each SIMD lane, where that is accurate enough."""

from plrank_fast._core.gradients.estimator cimport Estimator

cdef Estimator pl_rank_3_in_groups() noexcept nogil
