"""The arrays of a call: what needs no conversion is copied here, and ``validation`` converts everything else."""

from plrank_fast._core.runtime.queries cimport Queries
from plrank_fast._core.runtime.scalar_types cimport intp_t


cdef struct Column:
    # one number for each item
    const char *given
    int kind                         # of ``magnitudes.h``
    double *copy
    int found                        # flags, likewise

cdef bint is_plain_count(object value, intp_t lowest, intp_t *number) noexcept
cdef bint is_plain_cutoff(object value, intp_t *number) noexcept
cdef bint is_plain_factor(object value) noexcept
cdef const void *plain(object array, int *kind, intp_t *n_values) noexcept
cdef int threads_of_pass(object n_threads, intp_t n_items) except -1
cdef int copy_column(Column *column, intp_t start, intp_t stop) noexcept nogil


cdef class CheckedBatch:
    cdef object copies                            # what holds the memory of these pointers
    cdef const double[::1] discounts              # DCG's rank weights, if a metric takes them
    cdef Queries queries
    cdef readonly intp_t n_ranks                  # K
    cdef readonly intp_t n_items                  # items of all queries
    cdef readonly intp_t n_queries
    cdef readonly intp_t longest                  # items of the longest query; more ranks than that are ignored
    cdef readonly int found_in_scores             # flags of ``magnitudes.h``
    cdef readonly int found_in_relevance
    cdef readonly int found_in_rank_weights
    cdef readonly object n_threads                # of the call

    cdef bint read_plain(
        self, object scores, object relevance, object rank_weights, object offsets, object n_threads) except -1
    cdef bint measure(self, intp_t n_items, intp_t n_queries) noexcept


cdef object zeros(intp_t n_values, double **values)
cdef object empty(intp_t n_values, double **values)
cdef object result_of(const Queries *queries, intp_t n_queries, intp_t n_values, double **values)
