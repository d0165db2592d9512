"""Parallel loops, and how many threads each of them has: the header ``team_size.h`` has the rule and what it learns.

All parallel loops are those of this module, and its header ``thread_pool.h`` has the threads. What is learnt decides
about speed alone: no result depends on the number of threads.
"""

from libc.stdint cimport int64_t, uintptr_t
from libc.string cimport memset

from plrank_fast._core.runtime.scalar_types cimport intp_t
from plrank_fast._core.runtime.threads cimport most_threads

cdef extern from "simd/denormals.h" nogil:
    unsigned denormals_mode()

cdef extern from "runtime/thread_team.h" nogil:
    ctypedef struct team_loop:
        loop_body body
        void *argument
        intp_t next, stop, chunk
        int taken
        unsigned mode
        double started
        bint by_processor
        int64_t last_begun, busy, busiest
        team_record *record
    void plr_note_size(team_record *record, int size)
    void plr_take_passes(team_loop *loop, int seat)

cdef extern from "runtime/thread_pool.h" nogil:
    ctypedef struct thread_pool:
        double ended, waking
    void plr_make_pool(thread_pool *pool)
    int plr_possible_team(thread_pool *pool, int wanted)
    void plr_run_team(thread_pool *pool, team_loop *loop, int size, bint together)
    ctypedef struct borrowed_threads:
        pass
    uintptr_t plr_borrow(borrowed_threads *threads, uintptr_t parallel)
    uintptr_t plr_borrowed(const borrowed_threads *threads)
    void plr_run_borrowed_team(uintptr_t parallel, team_loop *loop, int size)

cdef extern from "runtime/atomics.h" nogil:
    double plr_get(const double *number)
    void plr_set(double *number, double value)

cdef extern from "runtime/clock.h" nogil:
    double plr_nanoseconds()

cdef extern from "runtime/team_size.h" nogil:
    ctypedef struct expected_loop:
        double work, waking
    const double PLR_TIMED_WORK
    void plr_learn(double *learnt, double measured)
    double *plr_factor_of(team_sizes *sizes, uintptr_t kind, double ns_per_pass)
    expected_loop plr_expect(
        team_sizes *sizes, uintptr_t kind, double ns, double longest, double n_passes, double pause)
    int plr_team_size(const team_sizes *sizes, const expected_loop *loop, int most, double now)
    void plr_learn_alone(team_sizes *sizes, const expected_loop *loop, double taken)
    void plr_learn_team(
        team_sizes *sizes, expected_loop *loop, int n_threads, double started, double ended, double waking, double busy,
        double busiest)

cdef thread_pool POOL
plr_make_pool(&POOL)
cdef borrowed_threads BORROWED
cdef double SAVED = 0.0          # the time by which all loops together would have taken longer on one thread
cdef team_sizes SIZES
cdef team_record RECORD
cdef int TEAMS = 0               # tests set it: 1 if all threads take part in every loop, -1 if one does
cdef double LEAST_WAKING = 1e3   # threads of no machine begin sooner
cdef double PAYS = 4.0           # a divided query has several loops, whose threads are woken anew
cdef intp_t ITEMS_PER_RANGE = 4096


cdef inline double pause_until(double now) noexcept nogil:
    """Return for how long the threads have had no work; borrowed ones had some of their own."""
    return now - plr_get(&POOL.ended) if plr_borrowed(&BORROWED) == 0 else 0.0


def borrow_team(uintptr_t parallel):
    """Run the caller's loops on the threads of another OpenMP runtime, by the address of its ``GOMP_parallel``.

    0 stands for our own threads. Returns the address that was valid before.
    """
    return plr_borrow(&BORROWED, parallel)


cdef bint pays(uintptr_t kind, double ns) noexcept nogil:
    """Return whether to divide a query of estimated ``ns`` into loops of parts."""
    cdef expected_loop query
    if ns <= PAYS * LEAST_WAKING or TEAMS != 0:
        return False
    query = plr_expect(&SIZES, kind, ns, 0.0, 1.0, pause_until(plr_nanoseconds()))
    return query.work > PAYS * max(query.waking, LEAST_WAKING)


cdef int threads_worth(uintptr_t kind, double ns, int n_threads) noexcept nogil:
    """Return how many threads should share a query of estimated ``ns``: what serves many costs one thread more time."""
    cdef double now = plr_nanoseconds()
    cdef expected_loop query = plr_expect(&SIZES, kind, ns, 0.0, n_threads, pause_until(now))
    return plr_team_size(&SIZES, &query, n_threads, now) if TEAMS == 0 and n_threads > 1 else n_threads


cdef void learn_work(uintptr_t kind, double ns, double taken) noexcept nogil:
    """Learn how long a query of estimated ``ns`` took on one thread, or would have taken."""
    if ns > 0.0:
        plr_learn(plr_factor_of(&SIZES, kind, ns), taken / ns)


cdef double saved_by_team() noexcept nogil:
    """Return the time by which all loops together would have taken longer on one thread, since ever."""
    return plr_get(&SAVED)


cdef int run_loop(const Loop *loop, int n_threads) noexcept nogil:
    """Run all passes in any order by a team of at most ``n_threads``; return how many of it could take part."""
    cdef intp_t n_passes = loop.stop - loop.start
    cdef int size = most_threads(min(n_threads, loop.seats), n_passes)
    cdef bint may_have_team = size > 1 and TEAMS >= 0
    cdef uintptr_t borrowed = plr_borrowed(&BORROWED)
    cdef double started = 0.0, ended, waking
    cdef expected_loop expected
    cdef team_loop shared
    memset(&shared, 0, sizeof(shared))
    shared.body, shared.argument, shared.chunk = loop.body, loop.argument, loop.chunk
    shared.next, shared.stop, shared.mode, shared.record = loop.start, loop.stop, denormals_mode(), &RECORD
    if may_have_team:
        started = shared.started = plr_nanoseconds()
        expected = plr_expect(&SIZES, loop.kind, loop.ns, loop.longest, n_passes, pause_until(started))
        if TEAMS == 0:
            size = plr_team_size(&SIZES, &expected, size, started)
        if borrowed == 0:
            size = plr_possible_team(&POOL, size)
    else:
        size = 1
    plr_note_size(&RECORD, size)
    if size == 1:
        plr_take_passes(&shared, 0)
        if may_have_team:
            plr_learn_alone(&SIZES, &expected, plr_nanoseconds() - started)
    else:
        shared.by_processor = expected.work > PLR_TIMED_WORK
        if borrowed != 0:
            plr_run_borrowed_team(borrowed, &shared, size)
        else:
            plr_run_team(&POOL, &shared, size, TEAMS > 0)
        ended = plr_nanoseconds()
        waking = shared.last_begun
        if shared.taken < size - 1:  # some would have begun even later
            waking = max(ended - started, plr_get(&POOL.waking) if shared.taken == 0 else waking)
        plr_learn_team(&SIZES, &expected, size, started, ended, waking, shared.busy, shared.busiest)
        plr_set(&SAVED, plr_get(&SAVED) + shared.busy - (ended - started))
    return size


# ---------------------------------------------------------------------------------------------------------------------
# Loops of kernels and over items
# ---------------------------------------------------------------------------------------------------------------------

cdef void run_parallel_loop(const parallel_loop *of_kernel, loop_body body, void *argument, intp_t n) noexcept nogil:
    """Run a loop of which there is no estimate: what a pass takes is learnt by its function and the number of passes.
    """
    cdef Loop loop = Loop(
        body, argument, 0, n, 1, of_kernel.n_threads, <uintptr_t>body + 64 * n, n * LEAST_WAKING, 0.0)
    run_loop(&loop, of_kernel.team)


cdef parallel_loop loop_of_threads(int n_threads) noexcept nogil:
    """Return the loop with which a kernel shares its passes among at most ``n_threads`` threads."""
    cdef parallel_loop loop
    loop.run = run_parallel_loop
    loop.n_threads = loop.team = n_threads
    return loop


cdef struct Ranges:
    range_function body
    void *call
    intp_t n_items


cdef void run_range(void *ranges_, intp_t i, int thread) noexcept nogil:
    cdef const Ranges *ranges = <const Ranges *>ranges_
    cdef intp_t start = i * ITEMS_PER_RANGE
    ranges.body(ranges.call, start, min(start + ITEMS_PER_RANGE, ranges.n_items))


cdef void run_ranges(range_function body, void *call, intp_t n_items, double ns_per_item, int n_threads) noexcept nogil:
    """Process items in ranges of ``ITEMS_PER_RANGE``, which any number of threads has, in parallel where that pays.

    ``body`` may write what belongs to its items, and combine the rest by atomic operations whose order does not matter.
    ``ns_per_item`` is a rough estimate: what it really takes is learnt.
    """
    cdef Ranges ranges = Ranges(body, call, n_items)
    cdef Loop loop
    cdef intp_t i, n_ranges = number_of_ranges(n_items)
    if n_ranges == 1 or n_threads == 1:
        for i in range(n_ranges):
            run_range(&ranges, i, 0)
        return
    loop = Loop(run_range, &ranges, 0, n_ranges, 1, n_threads, <uintptr_t>body, ns_per_item * n_items, 0.0)
    run_loop(&loop, n_threads)
