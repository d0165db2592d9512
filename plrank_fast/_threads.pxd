"""Threads of a call, the rounds in which a long call looks for Ctrl-C, and memory for each thread."""

from plrank_fast._typedefs cimport int64_t, intp_t

cdef double ROUND_NS

cdef int most_threads(int n_threads, intp_t n_tasks) noexcept nogil
cdef int threads_for(int n_threads, intp_t n_tasks) noexcept nogil
cdef int threads_worth(
    int n_threads, const int64_t[::1] offsets, intp_t start, intp_t stop, double ns_per_item) noexcept nogil
cdef intp_t neighbours(intp_t n_queries, int n_threads) noexcept nogil
cdef intp_t round_stop(const int64_t[::1] offsets, intp_t start, double ns_per_item, int n_threads) noexcept nogil
cdef double clock() noexcept nogil
cdef double as_observed(
    double ns_per_item, const int64_t[::1] offsets, intp_t start, intp_t stop, int n_threads, double started
) noexcept nogil
cdef bint is_long(const int64_t[::1] offsets, intp_t start, intp_t stop, double ns_per_item) noexcept nogil
cdef intp_t blocks_per_round(intp_t n_items, double ns_per_item, intp_t n_blocks, int n_threads) noexcept nogil
cdef intp_t longest_query(const int64_t[::1] offsets) noexcept nogil
cdef int check_interrupt() except -1
cdef int signal_came() noexcept nogil
cdef int raise_if_stopped() except -1


cdef class Workspaces:
    # One aligned block of memory per thread, allocated at the edge of a call and never inside a parallel region.
    cdef char *_memory
    cdef size_t _stride
    cdef size_t _size

    cdef char *of_thread(self, int thread) noexcept nogil
    cdef char *of_this_thread(self) noexcept nogil
    cdef char *of_task(self, int task) noexcept nogil
