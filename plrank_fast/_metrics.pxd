"""The deterministic ranking of a query."""

from plrank_fast._typedefs cimport int32_t, intp_t

cdef void rank_query(
    const double *scores, intp_t n_items, intp_t cutoff, double *keys, int32_t *items
) noexcept nogil
cdef void rank_all(const double *scores, intp_t n_items, intp_t cutoff, double *keys, int32_t *items) noexcept nogil
