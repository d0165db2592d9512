"""A call for one short query whose arguments need no conversion."""

from plrank_fast._core.runtime.batch cimport Batch
from plrank_fast._core.runtime.queries cimport Queries
from plrank_fast._core.runtime.scalar_types cimport int64_t, intp_t
from plrank_fast._core.runtime.threads cimport Workspaces

cdef enum:
    LONGEST_PLAIN_COUNT = 1 << 30

cdef object NOT_TAKEN                # stands for an array that a function does not take


cdef class LoneQuery:
    cdef intp_t n_items, n_ranks     # ranks past the end are ignored
    cdef Queries queries             # of the copies
    cdef char *results
    cdef char *workspace             # of the kernel
    cdef const double *_given[3]     # scores, relevance, rank weights, or NULL
    cdef intp_t _lengths[3]
    cdef size_t _n_bytes             # of the results
    cdef int64_t _offsets[2]
    cdef Workspaces _memory

    cdef bint look_at(self, object scores, object relevance, object rank_weights)
    cdef Batch batch(self) noexcept
    cdef bint copy(self, const Batch *batch, size_t result_bytes) except -1
    cdef int run(self, const Batch *batch) except -1
    cdef object deliver(self, size_t first, size_t n_bytes, object shape, object out, object dtype=*)


cdef intp_t plain_count(object value, intp_t lowest) noexcept
cdef bint plain_real(object value) noexcept
cdef bint plain_threads(object n_threads) noexcept
cdef bint plain_output(object out, intp_t n_values) noexcept
