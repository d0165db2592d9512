"""Parallel loops, and how many threads each of them has: the header ``team_size.h`` has the rule and what it learns.

Both loops that start threads are a ``prange`` of this module, in functions that hold the GIL and release it themselves:
Cython cannot know whether a ``nogil`` function is called with the GIL, and beside a second interpreter its question
ends the process. What is learnt decides about speed alone: no result depends on the number of threads.
"""

from cython.parallel cimport parallel, prange, threadid
from libc.stdint cimport int64_t, uintptr_t
from libc.string cimport memset

from plrank_fast._core.runtime.scalar_types cimport intp_t
from plrank_fast._core.runtime.threads cimport most_threads

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_key_t:
        pass

cdef extern from "simd/denormals.h" nogil:
    unsigned denormals_mode()

cdef extern from "runtime/team.h" nogil:
    ctypedef struct team_times:
        unsigned mode
        bint by_processor
        double started
        int64_t last_begun, busy, busiest
    ctypedef struct team_part:
        pass
    team_part plr_begin_part(team_times *times)
    void plr_end_part(team_times *times, const team_part *part)
    ctypedef struct shared_passes:
        team_times times
        loop_body body
        void *argument
        intp_t next, stop, chunk
    void plr_take_passes(shared_passes *passes, int seat)
    void plr_share_passes(shared_passes *passes, int seats)
    ctypedef struct calling_thread:
        uintptr_t borrowed
        int own, of_lender
        double ended, saved
    int plr_make_callers(pthread_key_t *callers)
    calling_thread *plr_caller(pthread_key_t callers)
    int plr_possible_team(int *latest, int wanted)
    uintptr_t plr_borrow(calling_thread *caller, uintptr_t runtime)
    void plr_run_borrowed(uintptr_t runtime, shared_passes *passes, int size)

cdef extern from "runtime/atomics.h" nogil:
    void plr_count(long long *number)

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

cdef pthread_key_t CALLERS       # the records of threads that call us
if plr_make_callers(&CALLERS) != 0:
    raise ImportError("the system has no room for another key of its threads (pthread_key_create)")

cdef team_sizes SIZES
cdef int TEAMS = 0               # tests set it: 1 if all threads take part in every loop, -1 if one does
cdef int LARGEST_TEAM = 0
cdef long long SHARED_LOOPS = 0
cdef double LEAST_WAKING = 1e3   # threads of no machine begin sooner
cdef double PAYS = 4.0           # a divided query has several loops
cdef intp_t ITEMS_PER_RANGE = 4096


def borrow_teams(uintptr_t runtime):
    """Run the calling thread's loops on teams of another OpenMP runtime, by the address of its ``GOMP_parallel``.

    0 stands for our own runtime. Returns the address that was valid before.
    """
    cdef calling_thread *caller = plr_caller(CALLERS)
    return plr_borrow(caller, runtime) if caller != NULL else 0


# ---------------------------------------------------------------------------------------------------------------------
# How many threads
# ---------------------------------------------------------------------------------------------------------------------

cdef double pause_of(const calling_thread *caller, double now) noexcept nogil:
    """Return for how long the caller's threads have had no work; borrowed ones had some of their own."""
    return now - caller.ended if caller != NULL and caller.borrowed == 0 else 0.0


cdef bint pays(uintptr_t kind, double ns) noexcept nogil:
    """Return whether to divide a query of estimated ``ns`` into loops of parts."""
    cdef expected_loop query
    if ns <= PAYS * LEAST_WAKING or TEAMS != 0:
        return False
    query = plr_expect(&SIZES, kind, ns, 0.0, 1.0, pause_of(plr_caller(CALLERS), plr_nanoseconds()))
    return query.work > PAYS * max(query.waking, LEAST_WAKING)


cdef int threads_worth(uintptr_t kind, double ns, int n_threads) noexcept nogil:
    """Return how many threads should share a query of estimated ``ns``: what serves many costs one thread more time."""
    cdef double now = plr_nanoseconds()
    cdef expected_loop query = plr_expect(&SIZES, kind, ns, 0.0, n_threads, pause_of(plr_caller(CALLERS), now))
    return plr_team_size(&SIZES, &query, n_threads, now) if TEAMS == 0 and n_threads > 1 else n_threads


cdef void learn_work(uintptr_t kind, double ns, double taken) noexcept nogil:
    """Learn how long a query of estimated ``ns`` took on one thread, or would have taken."""
    if ns > 0.0:
        plr_learn(plr_factor_of(&SIZES, kind, ns), taken / ns)


cdef double saved_by_teams() noexcept nogil:
    """Return the time by which all loops of the calling thread would have taken longer without teams, since ever."""
    cdef const calling_thread *caller = plr_caller(CALLERS)
    return 0.0 if caller == NULL else caller.saved


cdef inline void note_team(int size) noexcept:
    global LARGEST_TEAM
    LARGEST_TEAM = max(LARGEST_TEAM, size)


cdef inline void end_team(calling_thread *caller, const team_times *times, double ended) noexcept nogil:
    """Note what a team has done."""
    caller.saved += times.busy - (ended - times.started)
    if times.busiest < 0.9 * times.busy:
        plr_count(&SHARED_LOOPS)


# ---------------------------------------------------------------------------------------------------------------------
# Loops that start threads
# ---------------------------------------------------------------------------------------------------------------------

cdef void run_passes(const Loop *loop, team_times *times, uintptr_t borrowed, int size) noexcept:
    """Run all passes in any order, on ``size`` threads."""
    cdef shared_passes passes
    cdef team_part part
    cdef intp_t i
    if borrowed != 0 or size == 1:
        memset(&passes, 0, sizeof(passes))
        passes.times, passes.body, passes.argument = times[0], loop.body, loop.argument
        passes.next, passes.stop, passes.chunk = loop.start, loop.stop, loop.chunk
        with nogil:
            if size == 1:  # a team of one thread would cost two calls of the system
                plr_take_passes(&passes, 0)
            else:
                plr_run_borrowed(borrowed, &passes, size)
        times[0] = passes.times
        return
    with nogil, parallel(num_threads=size):
        part = plr_begin_part(times)
        for i in prange(loop.start, loop.stop, schedule="dynamic", chunksize=loop.chunk):
            loop.body(loop.argument, i, threadid())
        plr_end_part(times, &part)


cdef int run_loop(const Loop *loop, int n_threads) noexcept:
    """Run all passes in any order by a team of at most ``n_threads``; return how many of it could take part."""
    cdef intp_t n_passes = loop.stop - loop.start
    cdef int size = most_threads(min(n_threads, loop.seats), n_passes)
    cdef calling_thread *caller = plr_caller(CALLERS) if size > 1 and TEAMS >= 0 else NULL
    cdef double ended
    cdef expected_loop expected
    cdef team_times times
    memset(&times, 0, sizeof(times))
    times.mode = denormals_mode()
    if caller == NULL:
        size = 1
    else:
        times.started = plr_nanoseconds()
        expected = plr_expect(
            &SIZES, loop.kind, loop.ns, loop.longest, n_passes, pause_of(caller, times.started))
        if TEAMS == 0:
            size = plr_team_size(&SIZES, &expected, size, times.started)
        size = plr_possible_team(&caller.own if caller.borrowed == 0 else &caller.of_lender, size)
        times.by_processor = expected.work > PLR_TIMED_WORK
    note_team(size)
    run_passes(loop, &times, 0 if caller == NULL else caller.borrowed, size)
    if caller != NULL:
        ended = plr_nanoseconds()
        if size == 1:
            plr_learn_alone(&SIZES, &expected, ended - times.started)
        else:
            plr_learn_team(
                &SIZES, &expected, size, times.started, ended, times.last_begun, times.busy, times.busiest)
            caller.ended = ended
            end_team(caller, &times, ended)
    return size


cdef void run_in_team(team_function body, void *argument, int n_threads) noexcept:
    """Run a function on the calling thread; ``n_threads``, this one included, share its loops.

    The other threads wait at the end of the ``prange``, where they take tasks.
    """
    cdef calling_thread *caller = plr_caller(CALLERS)
    cdef int size = most_threads(n_threads, n_threads), seat
    size = 1 if caller == NULL or TEAMS < 0 else plr_possible_team(&caller.own, size)
    note_team(size)
    with nogil:
        for seat in prange(size, num_threads=size, use_threads_if=size > 1, schedule="static", chunksize=1):
            if seat == 0:
                body(argument)
    if caller != NULL:
        caller.ended = plr_nanoseconds()


# ---------------------------------------------------------------------------------------------------------------------
# Loops within a query
# ---------------------------------------------------------------------------------------------------------------------

cdef void share_loop(const parallel_loop *team, loop_body body, void *argument, intp_t n) noexcept nogil:
    cdef calling_thread *caller = plr_caller(CALLERS)
    cdef shared_passes passes
    memset(&passes, 0, sizeof(passes))
    passes.body, passes.argument, passes.stop, passes.chunk = body, argument, n, 1
    passes.times.mode, passes.times.started = denormals_mode(), plr_nanoseconds()
    plr_share_passes(&passes, <int>min(n, <intp_t>team.n_threads))
    if caller != NULL:
        end_team(caller, &passes.times, plr_nanoseconds())


cdef parallel_loop loop_of_team(int n_threads) noexcept nogil:
    """Return the loop with which a kernel shares its passes among at most ``n_threads`` threads."""
    cdef parallel_loop loop
    loop.run = share_loop
    loop.n_threads = n_threads
    return loop


# ---------------------------------------------------------------------------------------------------------------------
# Loops over items
# ---------------------------------------------------------------------------------------------------------------------

cdef struct Ranges:
    range_function body
    void *call
    intp_t n_items


cdef void run_range(void *ranges_, intp_t i, int thread) noexcept nogil:
    cdef const Ranges *ranges = <const Ranges *>ranges_
    cdef intp_t start = i * ITEMS_PER_RANGE
    ranges.body(ranges.call, start, min(start + ITEMS_PER_RANGE, ranges.n_items))


cdef void run_ranges(range_function body, void *call, intp_t n_items, double ns_per_item, int n_threads) noexcept:
    """Process items in ranges of ``ITEMS_PER_RANGE``, which any number of threads has, in parallel where that pays.

    ``body`` may write what belongs to its items, and combine the rest by atomic operations whose order does not matter.
    ``ns_per_item`` is a rough estimate: what it really takes is learnt.
    """
    cdef Ranges ranges = Ranges(body, call, n_items)
    cdef Loop loop = Loop(
        run_range, &ranges, 0, number_of_ranges(n_items), 1, n_threads, <uintptr_t>body, ns_per_item * n_items, 0.0)
    if loop.stop > 1:
        run_loop(&loop, n_threads)
    elif loop.stop == 1:
        run_range(&ranges, 0, 0)


cdef void share_ranges(range_function body, void *call, intp_t n_items, int n_threads) noexcept nogil:
    """Process items in the same ranges by the threads of the caller's team."""
    cdef Ranges ranges = Ranges(body, call, n_items)
    cdef parallel_loop team = loop_of_team(n_threads)
    cdef intp_t i, n_ranges = number_of_ranges(n_items)
    if n_threads > 1 and n_ranges > 1:
        share_loop(&team, run_range, &ranges, n_ranges)
        return
    for i in range(n_ranges):
        run_range(&ranges, i, 0)
