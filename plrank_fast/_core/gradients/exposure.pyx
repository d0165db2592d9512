"""Exposure of each item: the mean over the rankings of the rank weight at its rank. O(K) per ranking.

This is not a gradient, but also an estimate of one number per item; it is the smallest of the estimators.
"""

from plrank_fast._core.gradients.estimator cimport Estimate, Estimator, as_object, new_estimator
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t


cdef void accumulate(Estimate *estimate, const int32_t *rankings, intp_t n_rankings, intp_t stride) noexcept nogil:
    cdef intp_t i, k
    for i in range(n_rankings):
        for k in range(estimate.cutoff):
            estimate.gradient[rankings[i * stride + k]] += estimate.rank_weights[k]


cdef Estimator exposure_estimator() noexcept nogil:
    cdef Estimator estimator = new_estimator(NULL, NULL, accumulate, NULL, 0.0, 2.0, 0.0)
    estimator.fewest_items = 1
    estimator.needs_relevance = False
    return estimator


EXPOSURE = as_object(exposure_estimator)
