"""The driver of batches: it assigns queries to threads, checks for interrupts, and shares out long queries."""

from plrank_fast._core.runtime.scalar_types cimport int64_t, intp_t
from plrank_fast._core.runtime.threads cimport Workspaces

# Process one query. ``call`` is the struct by which the caller of ``run_batch`` describes its call.
ctypedef void (*query_function)(const void *call, intp_t query, char *workspace) noexcept nogil
# Process a long query in parts: ``run_tasks`` shares them among threads and checks for interrupts between them.
ctypedef int (*long_query_function)(const void *call, intp_t query, int n_threads) except -1
# Process one part of a long query.
ctypedef void (*task_function)(const void *call, intp_t task, char *workspace) noexcept nogil
# Return the estimated nanoseconds of a query of so many items.
ctypedef double (*cost_function)(const void *call, intp_t n_items) noexcept nogil

cdef struct Batch:
    const void *call
    query_function query
    long_query_function long_query   # or NULL: no query is divided into parts
    const int64_t *offsets           # (n_queries + 1,)
    intp_t n_queries
    intp_t fewest_items              # shorter queries are skipped: 1, or 2 where a single item has no gradient
    size_t workspace                 # bytes that ``query`` is given
    double ns_per_item               # estimated cost
    cost_function cost               # or NULL: in proportion to the items
    const void *kind                 # what estimates depend on: batches of one kind share what is learnt of them

cdef Batch new_batch(const int64_t *offsets, intp_t n_queries) noexcept
cdef int run_batch(const Batch *batch, object n_threads) except -1
cdef int run_tasks(
    task_function task, const void *call, intp_t n_tasks, double ns_per_task, int n_threads, Workspaces workspaces
) except -1
cdef intp_t parts_per_thread(double ns_per_part, intp_t n_parts, int n_threads) noexcept nogil
