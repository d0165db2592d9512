"""The driver of batches: it assigns queries to threads, checks for interrupts, and shares out long queries.

The driver processes a batch in rounds of about a twentieth of a second, each a parallel loop over its queries. Between
two rounds the calling thread asks Python for pending signals, so kernels never take the GIL. The time that a round took
determines the length of the next. A query that would fill a round by itself is *long*: its own function divides it into
parts, for whose rounds ``run_tasks`` is the parallel loop. Results depend on none of this.

Every module that works on batches describes its call by its own struct and provides two functions, one for a query and
one for a long query. Neither is called for queries that need no work.
"""

from cython.parallel cimport prange

from plrank_fast._core.runtime.scalar_types cimport int64_t, intp_t
from plrank_fast._core.runtime.threads cimport (
    LEARNT_FACTOR,
    ROUND_NS,
    SHORT_NS,
    WORTH_NS,
    Workspaces,
    check_interrupt,
    monotonic_ns,
    most_threads,
    note_lateness,
    raise_if_stopped,
    resolve_threads,
    this_thread,
    threads_for,
    threads_in_time,
)

cdef double OVERHEAD_ITEMS = 25.0  # the cost of a query besides that of its items, in items
cdef double LONG_ROUNDS = 0.04     # share of a round from which on threads share a query


# ---------------------------------------------------------------------------------------------------------------------
# Costs of queries
# ---------------------------------------------------------------------------------------------------------------------

cdef inline intp_t items_of(const Batch *batch, intp_t query) noexcept nogil:
    return batch.offsets[query + 1] - batch.offsets[query]


cdef double cost_of(const Batch *batch, intp_t query) noexcept nogil:
    """Return the estimated nanoseconds of a query; a skipped one costs nothing, and so never fills a round."""
    cdef intp_t n_items = items_of(batch, query)
    if n_items < batch.fewest_items:
        return 0.0
    if batch.cost != NULL:
        return batch.cost(batch.call, n_items)
    return (n_items + OVERHEAD_ITEMS) * batch.ns_per_item


cdef double cost_of_round(const Batch *batch, intp_t start, intp_t stop) noexcept nogil:
    cdef double cost = 0.0
    cdef intp_t q
    for q in range(start, stop):
        cost += cost_of(batch, q)
    return cost


cdef intp_t round_stop(const Batch *batch, intp_t start, double learnt, int n_threads) noexcept nogil:
    """Return the first query after ``start`` that does not fit into this round.

    A query that fills a round begins one, because only a round of a single query can be long.
    """
    cdef intp_t stop = start
    cdef double budget = ROUND_NS * n_threads / learnt, work = 0.0, cost
    while stop < batch.n_queries:
        cost = cost_of(batch, stop)
        if cost > budget and stop > start:
            break
        work += cost
        stop += 1
        if work > budget:
            break
    return stop


cdef bint is_long(const Batch *batch, intp_t start, intp_t stop, double learnt) noexcept nogil:
    """Return whether the round is a single query that is worth dividing into parts."""
    return (
        batch.long_query != NULL and stop - start == 1 and learnt * cost_of(batch, start) > LONG_ROUNDS * ROUND_NS)


cdef double learn(double learnt, double estimate, double taken) noexcept nogil:
    """Return the factor by which to correct estimates for the length of the next round.

    Estimates are up to twenty times too high, and every round ends with threads that wait for the last one. The factor
    falls at most to a quarter in a round, because the next queries may be of another kind.
    """
    if estimate == 0.0:
        return learnt
    return max(LEARNT_FACTOR * taken / estimate, learnt / 4.0)


# ---------------------------------------------------------------------------------------------------------------------
# Threads
# ---------------------------------------------------------------------------------------------------------------------

cdef int threads_worth(double work, intp_t n_queries, int n_threads) noexcept nogil:
    """Return the number of threads for a round: as many as have enough work and can be created."""
    cdef double worth = n_threads if WORTH_NS <= 0.0 else 1.0 + work / WORTH_NS
    return threads_for(<int>min(<double>n_threads, worth), n_queries)


cdef intp_t queries_per_chunk(intp_t n_queries, int n_threads) noexcept nogil:
    """Return how many consecutive queries a thread takes at a time: some thirty turns each, so that none waits long.

    Gradients of neighbouring queries meet in a cache line. If threads took queries one by one, two would write to it at
    once: where each ranking is added to the gradient, two threads would only be 1.57 times as fast as one.
    """
    return max(<intp_t>1, min(<intp_t>16, n_queries // (32 * n_threads)))


# ---------------------------------------------------------------------------------------------------------------------
# The driver
# ---------------------------------------------------------------------------------------------------------------------

cdef Batch new_batch(const int64_t *offsets, intp_t n_queries) noexcept:
    """Return a batch of which the caller still has to set functions and costs."""
    cdef Batch batch
    batch.call = NULL
    batch.query = NULL
    batch.long_query = NULL
    batch.offsets = offsets
    batch.n_queries = n_queries
    batch.fewest_items = 1
    batch.workspace = 0
    batch.ns_per_item = 1.0
    batch.cost = NULL
    batch.slowest = 1.0
    return batch


cdef int run_batch(const Batch *batch, object n_threads) except -1:
    """Process all queries on at most ``n_threads`` threads, None or an int that has been checked.

    Raises what a signal handler raises, and MemoryError.
    """
    if batch.n_queries == 1 and cost_of(batch, 0) <= LONG_ROUNDS * ROUND_NS:
        return run_short_query(batch)
    return run_rounds(batch, resolve_threads(n_threads))


cdef int run_short_query(const Batch *batch) except -1:
    """Process a batch of one short query on the calling thread: rounds and a team take longer than ten documents."""
    cdef Workspaces workspace
    if items_of(batch, 0) >= batch.fewest_items:
        workspace = Workspaces(1, batch.workspace)
        with nogil:
            batch.query(batch.call, 0, workspace.of_thread(0))
    return check_interrupt()


cdef int run_rounds(const Batch *batch, int n_threads) except -1:
    cdef intp_t start = 0, stop, q
    cdef int threads
    cdef double learnt = 1.0, estimate, started
    cdef Workspaces workspaces = None
    while start < batch.n_queries:
        stop = round_stop(batch, start, learnt, n_threads)
        if is_long(batch, start, stop, learnt):
            batch.long_query(batch.call, start, n_threads)
        else:
            if workspaces is None:  # a single long query does not use them
                workspaces = Workspaces(most_threads(n_threads, batch.n_queries), batch.workspace)
            estimate = cost_of_round(batch, start, stop)
            threads = threads_worth(batch.slowest * learnt * estimate, stop - start, workspaces.n_threads)
            threads = threads_in_time(batch.slowest * learnt * estimate, threads)
            started = monotonic_ns()
            with nogil:
                for q in prange(
                    start, stop, schedule="dynamic", chunksize=queries_per_chunk(stop - start, threads),
                    num_threads=threads
                ):
                    if items_of(batch, q) >= batch.fewest_items:
                        batch.query(batch.call, q, workspaces.of_this_thread())
            note_lateness(started, threads)
            check_interrupt()
            learnt = learn(learnt, estimate, (monotonic_ns() - started) * threads)
        start = stop
    return 0


cdef int run_tasks(
    task_function task, const void *call, intp_t n_tasks, int n_threads, Workspaces workspaces
) except -1:
    """Run one round of a long query: tasks in parallel, each in its thread's workspace, then a check for interrupts.
    """
    cdef intp_t i
    cdef int threads = threads_for(min(n_threads, workspaces.n_threads), n_tasks)
    with nogil:
        for i in prange(n_tasks, schedule="dynamic", num_threads=threads):
            task(call, i, workspaces.of_this_thread())
    return raise_if_stopped()


cdef void run_parallel_loop(loop_body body, void *argument, intp_t n, int n_threads) noexcept nogil:
    cdef intp_t i
    cdef int threads = threads_in_time(0.0, threads_for(n_threads, n))
    cdef double started = monotonic_ns()
    for i in prange(n, schedule="dynamic", num_threads=threads):
        body(argument, i, this_thread())
    if monotonic_ns() < started + SHORT_NS:  # a late team hardly matters to a longer loop
        note_lateness(started, threads)


cdef parallel_loop loop_of_threads(int n_threads) noexcept nogil:
    """Return the loop with which a kernel shares its passes among at most ``n_threads`` threads."""
    cdef parallel_loop loop
    loop.run = run_parallel_loop
    loop.n_threads = n_threads
    return loop


cdef intp_t parts_per_thread(double ns_per_part, intp_t n_parts, int n_threads) noexcept nogil:
    """Return how many parts of a long query a thread processes in a round: at most its share, and at least one."""
    cdef double fitting = ROUND_NS / ns_per_part
    cdef intp_t fair_share = (n_parts + n_threads - 1) // n_threads
    return max(<intp_t>1, min(fair_share, <intp_t>min(fitting, 1e9)))
