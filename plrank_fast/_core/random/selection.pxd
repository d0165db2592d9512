"""Introselect and sort over (key, item) pairs, smallest key first."""

from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t

cdef extern from "random/selection.h" nogil:
    const int PLR_SHORT_LIST  # up to this length sorting costs no more than selecting

cdef intp_t keep_highest(const double *values, intp_t n, intp_t k, double *keys, int32_t *items) noexcept nogil
cdef void sort_short(double *keys, int32_t *items, intp_t n) noexcept nogil
cdef void select_smallest(double *keys, int32_t *items, intp_t n, intp_t k) noexcept nogil
cdef void sort_pairs(double *keys, int32_t *items, intp_t n) noexcept nogil
cdef void sort_smallest(
    const double *keys, intp_t n, intp_t k, double *pivot, double *kept_keys, int32_t *kept_items
) noexcept nogil
