"""The one driver of batches: who works on which query, when Ctrl-C is looked for, which query threads share."""

from plrank_fast._core.runtime.scalar_types cimport int64_t, intp_t
from plrank_fast._core.runtime.threads cimport Workspaces

# What is done for one query. ``call`` is whatever the caller of ``run_batch`` describes its call by.
ctypedef void (*query_function)(const void *call, intp_t query, char *workspace) noexcept nogil
# The same for a long one, in parts: between them it looks for Ctrl-C, and ``run_tasks`` shares them among threads.
ctypedef int (*long_query_function)(const void *call, intp_t query, int n_threads) except -1
# One part of a long query.
ctypedef void (*task_function)(const void *call, intp_t task, char *workspace) noexcept nogil
# Estimated nanoseconds of a query of so many items.
ctypedef double (*cost_function)(const void *call, intp_t n_items) noexcept nogil

# Loops within a query, for kernels: the header says what they may count on.
cdef extern from "runtime/parallel_loop.h" nogil:
    ctypedef void (*loop_body)(void *argument, intp_t i, int thread) noexcept nogil
    ctypedef struct parallel_loop:
        void (*run)(loop_body body, void *argument, intp_t n, int n_threads) noexcept nogil
        int n_threads

cdef struct Batch:
    const void *call
    query_function query
    long_query_function long_query   # or NULL: no query is ever cut into parts
    const int64_t *offsets           # (n_queries + 1,)
    intp_t n_queries
    intp_t fewest_items              # shorter queries are passed over: 1, or 2 where a single item has no gradient
    size_t workspace                 # bytes that ``query`` is given
    double ns_per_item               # estimated cost
    cost_function cost               # or NULL: in proportion to the items
    double slowest                   # times the estimate that a query may well take: decides how many threads are woken

cdef Batch new_batch(const int64_t *offsets, intp_t n_queries) noexcept
cdef Batch batch_of(const int64_t[::1] offsets) noexcept
cdef int run_batch(const Batch *batch, int n_threads) except -1
cdef bint is_short(const Batch *batch) noexcept nogil
cdef int run_query(const Batch *batch, char *workspace) except -1
cdef int run_tasks(
    task_function task, const void *call, intp_t n_tasks, int n_threads, Workspaces workspaces) except -1
cdef parallel_loop loop_of_threads(int n_threads) noexcept nogil
cdef intp_t longest_query(const int64_t[::1] offsets) noexcept nogil
cdef intp_t parts_per_thread(double ns_per_part, intp_t n_parts, int n_threads) noexcept nogil
