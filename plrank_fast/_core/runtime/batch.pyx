"""The driver of batches: it assigns queries to threads, checks for interrupts, and shares out long queries.

The driver processes a batch in rounds of about a twentieth of a second, each a parallel loop over its queries. Between
two rounds the calling thread asks Python for pending signals, so kernels never take the GIL. The time that a round took
determines the length of the next. A query that would fill a round by itself is *long*: its own function divides it into
parts, for whose rounds ``run_tasks`` is the parallel loop. Results depend on none of this.

Every module that works on batches describes its call by its own struct and provides two functions, one for a query and
one for a long query. Neither is called for queries that need no work.
"""

from libc.stdint cimport uintptr_t
from libc.string cimport memset

from plrank_fast._core.runtime.scalar_types cimport int64_t, intp_t
from plrank_fast._core.runtime.teams cimport Loop, learn_work, pays, run_loop, saved_by_teams, threads_worth
from plrank_fast._core.runtime.threads cimport (
    LEARNT_FACTOR,
    ROUND_NS,
    Workspaces,
    check_interrupt,
    monotonic_ns,
    most_threads,
    raise_if_stopped,
    resolve_threads,
)

cdef double OVERHEAD_ITEMS = 25.0  # the fixed cost of a query, in items
cdef double LONG_ROUNDS = 0.04     # share of a round from which on a query is divided, whether that pays or not


# ---------------------------------------------------------------------------------------------------------------------
# Costs of queries
# ---------------------------------------------------------------------------------------------------------------------

cdef inline intp_t items_of(const Batch *batch, intp_t query) noexcept nogil:
    return batch.offsets[query + 1] - batch.offsets[query]


cdef double cost_of(const Batch *batch, intp_t n_items) noexcept nogil:
    """Return the estimated nanoseconds of a query; a skipped one costs nothing, and so never fills a round."""
    if n_items < batch.fewest_items:
        return 0.0
    if batch.cost != NULL:
        return batch.cost(batch.call, n_items)
    return (n_items + OVERHEAD_ITEMS) * batch.ns_per_item


cdef struct Share:
    # the queries of a round
    intp_t stop
    double ns, longest           # estimated time of all of them on one thread, and of the longest


cdef Share share_of_round(const Batch *batch, intp_t start, double learnt, int n_threads) noexcept nogil:
    """Return the queries from ``start`` on that fit into a round.

    A query that fills a round begins one, because only a round of a single query can be long. All this is serial, so
    the cost of a length is kept.
    """
    cdef Share share = Share(start, 0.0, 0.0)
    cdef double budget = ROUND_NS * n_threads / learnt
    cdef intp_t n_items, last = -1, slot
    cdef double cost = 0.0
    cdef intp_t[64] lengths
    cdef double[64] costs
    memset(lengths, -1, sizeof(lengths))
    while share.stop < batch.n_queries and share.ns <= budget:
        n_items = items_of(batch, share.stop)
        if n_items != last:
            last, slot = n_items, n_items & 63
            if lengths[slot] != n_items:
                lengths[slot], costs[slot] = n_items, cost_of(batch, n_items)
            cost = costs[slot]
            if cost > budget and share.stop > start:
                break
            share.longest = max(share.longest, cost)
        share.ns += cost
        share.stop += 1
    return share


cdef uintptr_t kind_of(const Batch *batch) noexcept nogil:
    return <uintptr_t>(batch.kind if batch.kind != NULL else <const void *>batch.query)


cdef bint is_long(const Batch *batch, double ns, int n_threads) noexcept nogil:
    """Return whether to divide a query of a round of its own, of estimated ``ns``, into parts.

    One thread divides it only for the sake of interrupts.
    """
    return batch.long_query != NULL and (
        ns > LONG_ROUNDS * ROUND_NS or n_threads > 1 and pays(kind_of(batch), ns))


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

cdef double WORTH_LEARNING = 4e3   # a query of so many estimated ns is not worth a look at the clock


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
    batch.kind = NULL
    return batch


cdef int run_batch(const Batch *batch, object n_threads) except -1:
    """Process all queries on at most ``n_threads`` threads, None or an int that has been checked.

    Raises what a signal handler raises, and MemoryError.
    """
    cdef int several = 2 if n_threads is None else n_threads
    if batch.n_queries == 1 and not is_long(batch, cost_of(batch, items_of(batch, 0)), several):
        return run_short_query(batch)
    return run_rounds(batch, resolve_threads(n_threads))


cdef int run_short_query(const Batch *batch) except -1:
    """Process a batch of one short query on the calling thread: rounds and a team take longer than ten documents."""
    cdef Workspaces workspace
    cdef double started = 0.0, ns = cost_of(batch, items_of(batch, 0))
    if items_of(batch, 0) >= batch.fewest_items:
        workspace = Workspaces(1, batch.workspace)
        with nogil:
            if ns > WORTH_LEARNING:
                started = monotonic_ns()
            batch.query(batch.call, 0, workspace.of_thread(0))
            if ns > WORTH_LEARNING:
                learn_work(kind_of(batch), ns, monotonic_ns() - started)
    return check_interrupt()


cdef struct Round:
    const Batch *batch
    char *workspaces
    size_t stride


cdef void process_query(void *round_, intp_t q, int thread) noexcept nogil:
    cdef const Round *of_round = <const Round *>round_
    if items_of(of_round.batch, q) >= of_round.batch.fewest_items:
        of_round.batch.query(of_round.batch.call, q, of_round.workspaces + thread * of_round.stride)


cdef int run_long_query(const Batch *batch, intp_t query, double ns, int n_threads) except -1:
    cdef double started = monotonic_ns(), saved = saved_by_teams()
    batch.long_query(batch.call, query, threads_worth(kind_of(batch), ns, n_threads))
    learn_work(kind_of(batch), ns, monotonic_ns() - started + saved_by_teams() - saved)
    return 0


cdef int run_rounds(const Batch *batch, int n_threads) except -1:
    cdef intp_t start = 0, n_queries
    cdef int threads
    cdef double learnt = 1.0, started
    cdef Workspaces workspaces = None
    cdef Round of_round
    cdef Share share
    cdef Loop loop
    of_round.batch = batch
    while start < batch.n_queries:
        share = share_of_round(batch, start, learnt, n_threads)
        n_queries = share.stop - start
        if n_queries == 1 and is_long(batch, learnt * share.ns, n_threads):
            run_long_query(batch, start, share.ns, n_threads)
        else:
            if workspaces is None:  # a single long query does not use them
                workspaces = Workspaces(most_threads(n_threads, batch.n_queries), batch.workspace)
                of_round.workspaces, of_round.stride = workspaces.of_thread(0), workspaces.stride
            started = monotonic_ns()
            loop = Loop(
                process_query, &of_round, start, share.stop, queries_per_chunk(n_queries, workspaces.n_threads),
                workspaces.n_threads, kind_of(batch), share.ns, share.longest)
            threads = run_loop(&loop, n_threads)
            check_interrupt()
            learnt = learn(learnt, share.ns, (monotonic_ns() - started) * threads)
        start = share.stop
    return 0


cdef struct Tasks:
    task_function task
    const void *call
    char *workspaces
    size_t stride


cdef void run_task(void *tasks_, intp_t i, int thread) noexcept nogil:
    cdef const Tasks *tasks = <const Tasks *>tasks_
    tasks.task(tasks.call, i, tasks.workspaces + thread * tasks.stride)


cdef int run_tasks(
    task_function task, const void *call, intp_t n_tasks, double ns_per_task, int n_threads, Workspaces workspaces
) except -1:
    """Run one round of a long query: tasks in parallel, each in its thread's workspace, then a check for interrupts.
    """
    cdef Tasks tasks = Tasks(task, call, workspaces.of_thread(0), workspaces.stride)
    cdef Loop loop = Loop(
        run_task, &tasks, 0, n_tasks, 1, workspaces.n_threads, <uintptr_t>task, n_tasks * ns_per_task, 0.0)
    run_loop(&loop, n_threads)
    return raise_if_stopped()


cdef intp_t parts_per_thread(double ns_per_part, intp_t n_parts, int n_threads) noexcept nogil:
    """Return how many parts of a long query a thread processes in a round: at most its share, and at least one."""
    cdef double fitting = ROUND_NS / ns_per_part
    cdef intp_t fair_share = (n_parts + n_threads - 1) // n_threads
    return max(<intp_t>1, min(fair_share, <intp_t>min(fitting, 1e9)))
