"""The deterministic ranking of a query and its metric; log-probabilities of rankings."""

from plrank_fast._core.runtime.queries cimport Query
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t

cdef size_t ranking_workspace(intp_t n_items) noexcept nogil
cdef void rank_query(
    const double *scores, intp_t n_items, intp_t cutoff, double *keys, int32_t *items
) noexcept nogil
cdef void rank_all(const double *scores, intp_t n_items, intp_t cutoff, double *keys, int32_t *items) noexcept nogil
cdef double dcg_of_query(
    const double *scores, const double *relevance, const double *rank_weights, intp_t n_items, intp_t cutoff,
    double *keys, int32_t *items
) noexcept nogil
cdef double ideal_dcg_of_query(
    const Query *query, intp_t cutoff, double *gains, double *weights, int32_t *items
) noexcept nogil
cdef void log_prob_of_query(
    const double *scores, intp_t n_items, intp_t cutoff, const int32_t *rankings, intp_t n_rankings, intp_t stride,
    char *workspace, bint of_prefixes, double *log_prob
) noexcept nogil
cdef const double[::1] discounts_of(intp_t n_ranks)
