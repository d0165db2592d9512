"""Checks of rankings from outside, before a kernel trusts them as indices."""

from plrank_fast._core.runtime.scalar_types cimport int32_t, int64_t, intp_t

cdef int fault_in_query(
    const int32_t *rankings, intp_t n_rankings, intp_t length, intp_t used, intp_t n_items, bint prefixes,
    int64_t *last_seen, int64_t *where
) noexcept nogil
