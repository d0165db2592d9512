"""StochasticRank, an estimator of noisy scores."""

from plrank_fast._core.gradients.estimator cimport Estimator

cdef Estimator stochastic_rank_estimator() noexcept nogil
