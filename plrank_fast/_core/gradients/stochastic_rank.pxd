"""StochasticRank: the estimate of one query."""

from plrank_fast._core.runtime.scalar_types cimport intp_t
from plrank_fast._core.sampling.samplers cimport Draw

cdef extern from "gradients/stochastic_rank.h" nogil:
    int PLR_GUMBEL
    int PLR_NORMAL

cdef struct Call:
    # the arguments that all queries of a call share
    int noise
    double inverse_sigma
    const double *given         # (n_samples, n_docs) of a single query, or NULL
    Draw draw                   # of the first query

cdef size_t noisy_workspace(intp_t n_items, intp_t cutoff) noexcept nogil
cdef void estimate_noisy_query(
    const Call *call, const double *scores, const double *relevance, intp_t n_items, const double *rank_weights,
    intp_t cutoff, intp_t q, char *workspace, double *gradient
) noexcept nogil
