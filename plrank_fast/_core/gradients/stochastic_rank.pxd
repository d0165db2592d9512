"""StochasticRank, an estimator that draws its samples itself."""

from plrank_fast._core.gradients.estimator cimport Estimator

cdef extern from "gradients/stochastic_rank.h" nogil:
    int PLR_GUMBEL
    int PLR_NORMAL

cdef dict NOISES                # kinds of noise by name

cdef Estimator stochastic_rank_estimator() noexcept nogil
