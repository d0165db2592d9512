"""Arguments of a call: what needs no conversion is read here, and ``validation`` reads everything else."""

from plrank_fast._core.runtime.queries cimport Queries
from plrank_fast._core.runtime.scalar_types cimport int64_t, intp_t

cdef enum:
    LARGEST_PLAIN_COUNT = 1 << 30

cdef object validation               # the package of that name
cdef object NOT_TAKEN                # stands for an array that a function does not take


cdef struct Column:
    # one number for each item
    const char *given
    int kind                         # of ``magnitudes.h``
    double *copy
    int found                        # flags, likewise

cdef void *plain(object array, int *kind, intp_t *n_values, bint writeable=*) noexcept
cdef int threads_of_pass(object n_threads, intp_t n_items) except -1
cdef int copy_column(Column *column, intp_t start, intp_t stop) noexcept nogil


cdef class CheckedBatch:
    cdef readonly const double[::1] scores        # (n_docs,)
    cdef readonly const double[::1] relevance     # (n_docs,), or None
    cdef readonly const double[::1] rank_weights  # (K,), or those of each query one after another, or None
    cdef const int64_t[::1] offsets               # (n_queries + 1,), or not set for one query, which has its own
    cdef int64_t[2] of_one_query
    cdef intp_t n_ranks, next_rank_weights        # K, and K or 0
    cdef readonly intp_t n_items                  # items of all queries
    cdef readonly intp_t n_queries
    cdef readonly intp_t longest                  # items of the longest query; more ranks than that are ignored
    cdef readonly int found_in_scores             # flags of ``magnitudes.h``
    cdef readonly int found_in_relevance
    cdef readonly object n_threads                # of the call
    cdef int threads_of_pass                      # of passes over all items
    cdef Queries queries                          # pointers of these views
    cdef object _result
    cdef double *_values                          # values of the result

    cdef bint read_plain(
        self, object scores, object relevance, object rank_weights, object offsets, object n_threads) except -1
    cdef int take(
        self, object scores, object relevance, object rank_weights, object offsets, object n_threads=*) except -1
    cdef bint measure(self, intp_t n_queries) noexcept
    cdef int warn_if_all_alike(self, str name=*) except -1
    cdef double *result(self, intp_t n_values) except NULL
    cdef object delivered(self, intp_t n_values, object out)
    cdef object offsets_array(self)


cdef CheckedBatch checked_batch(
    object scores, object relevance, object rank_weights, object offsets, object n_threads, str name=*,
    bint limited=*, bint unretrieved=*)
cdef intp_t checked_count(object value, str name, intp_t lowest) except -1
cdef intp_t checked_cutoff(object cutoff, intp_t otherwise) except -1
cdef double checked_real(object value, str name, bint or_nan=*) except? -1.0
cdef double checked_factor(object value, str name) except -1.0
cdef double checked_tolerance(object value) except -1.0
cdef bint checked_flag(object value, str name) except -1
cdef object chosen(object value, str name, dict choices)
cdef object checked_threads(object n_threads)
cdef object zeros(object shape)
cdef object empty(intp_t n_values)
cdef object checked_output(object out, intp_t n_values)
