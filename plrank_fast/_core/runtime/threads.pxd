"""Threads of a call, looks for Ctrl-C, and memory for each thread."""

from plrank_fast._core.runtime.scalar_types cimport intp_t

# What decides about rounds and threads; ``set_costs`` sets it for tests.
cdef double ROUND_NS
cdef double WORTH_NS
cdef double LEARNT_FACTOR

# What is done for an index of a loop.
ctypedef void (*index_function)(const void *call, intp_t index, char *workspace) noexcept nogil

cdef int most_threads(int n_threads, intp_t n_tasks) noexcept nogil
cdef int run_loop(
    index_function body, const void *call, intp_t start, intp_t stop, intp_t chunk, int n_threads,
    Workspaces workspaces) noexcept nogil
cdef double monotonic_ns() noexcept nogil
cdef int check_interrupt() except -1
cdef int signal_came() noexcept nogil
cdef int raise_if_stopped() except -1


cdef class Workspaces:
    # One aligned block of memory per thread, allocated at the edge of a call and never inside a loop.
    cdef readonly int n_threads
    cdef char *_memory
    cdef size_t _stride
    cdef size_t _size

    cdef char *of_thread(self, int thread) noexcept nogil
