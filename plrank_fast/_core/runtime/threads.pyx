"""Threads of a call, looks for Ctrl-C, and memory for each thread. ``batch`` says who works on what."""

import os
import sys

from cpython.exc cimport PyErr_CheckSignals, PyErr_Occurred
from libc.stdint cimport intptr_t, uint64_t, uintptr_t
from libc.stdlib cimport free

from plrank_fast._core.runtime.scalar_types cimport intp_t

cdef extern from "runtime/openmp.h" nogil:
    int omp_get_max_threads()
    int omp_in_parallel()

cdef extern from "Python.h":
    int check_signals "PyErr_CheckSignals" () noexcept

cdef extern from "runtime/team.h" nogil:
    ctypedef struct plr_loop:
        index_function body
        const void *call
        intptr_t next
        intptr_t stop
        intptr_t chunk
        char *memory
        size_t stride

    ctypedef struct plr_pool:
        int largest_team
        uint64_t workers

    double plr_nanoseconds()
    int plr_run_loop(plr_pool *pool, plr_loop *loop, int size, int whole_team)

cdef extern from *:
    """
    #include "runtime/team.h"
    static plr_pool plr_helpers = PLR_EMPTY_POOL;
    static int plr_forked = 0;
    static void plr_in_child(void) { plr_forked = 1; }
    static int plr_watch_forks(void) { return pthread_atfork(NULL, NULL, plr_in_child); }

    /* Large blocks on huge pages where the system gives them on request: the gradient of one query of a million
     * documents spent a third of its time on page faults, and is twice as fast. */
    #include <stdlib.h>
    #if defined(__linux__)
    #include <sys/mman.h>
    #endif
    static void *plr_allocate(size_t size)
    {
        char *memory = malloc(size);
    #if defined(__linux__) && defined(MADV_HUGEPAGE)
        const size_t page = (size_t)4 << 10;
        if (memory != NULL && size >= (size_t)8 << 20) {
            size_t skipped = (page - (size_t)memory % page) % page;
            madvise(memory + skipped, (size - skipped) / page * page, MADV_HUGEPAGE);
        }
    #endif
        return memory;
    }
    """
    void *plr_allocate(size_t size) nogil
    plr_pool plr_helpers
    int plr_forked
    int plr_watch_forks() nogil

cdef double ROUND_NS = 5e7  # a twentieth of a second: Ctrl-C is promised within half of one
# Estimated work that a further thread is worth waking for; estimates are those of the slowest way to do it, up to ten
# times too high. At 0, for tests, the caller waits until the whole team is there.
cdef double WORTH_NS = 2e6
cdef double LEARNT_FACTOR = 1.0  # on what a round has taken, so that tests can stand for machines of any speed

plr_watch_forks()


def _need_lock():
    """Refuse a free-threaded interpreter that was told to do without the GIL, which it would switch on for this module.

    What calls share between them, such as the spare block below, is touched under the GIL only.
    """
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise ImportError(
            "plrank_fast needs the global interpreter lock: start Python without PYTHON_GIL=0 and -X gil=0")


_need_lock()


def set_costs(*, round_ns=None, worth_ns=None, learnt_factor=None, spare_bytes=None):
    """Set what decides about rounds and threads, and return what was set before, as keywords of this function.

    For tests: which way a query takes depends on estimates and on time, its result must not; nor on what was in the
    memory that is kept for the next call, at most ``spare_bytes``.
    """
    global ROUND_NS, WORTH_NS, LEARNT_FACTOR, LARGEST_SPARE
    before = {
        "round_ns": ROUND_NS, "worth_ns": WORTH_NS, "learnt_factor": LEARNT_FACTOR, "spare_bytes": LARGEST_SPARE,
    }
    if spare_bytes is not None:
        LARGEST_SPARE = spare_bytes
    if round_ns is not None:
        ROUND_NS = round_ns
    if worth_ns is not None:
        WORTH_NS = worth_ns
    if learnt_factor is not None:
        LEARNT_FACTOR = learnt_factor
    return before


def team_that_ran():
    """Size of the largest team, and how many threads have worked, in all loops since this was asked last.

    For tests: without OpenMP and on a single processor everything passes on one thread. Where loops run at the same
    time, threads of the same number count as one.
    """
    answer = plr_helpers.largest_team, bin(plr_helpers.workers).count("1")
    plr_helpers.largest_team = 0
    plr_helpers.workers = 0
    return answer


def available_cpus():
    """Processors this process may use: affinity mask and cgroup quota respected."""
    try:
        cpus = len(os.sched_getaffinity(0))
    except AttributeError:
        cpus = os.cpu_count() or 1
    return max(1, min(cpus, CGROUP_QUOTA) if CGROUP_QUOTA else cpus)


def _cgroup_quota():
    """Whole processors that the cgroup's CPU quota allows, or None where there is none."""
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
        return None if quota == "max" else max(1, -(-int(quota) // int(period)))
    except (OSError, ValueError):
        return None


CGROUP_QUOTA = _cgroup_quota()  # read once: a file is too slow to open in every call


def default_threads():
    """Threads when the caller does not say: the processors available, or fewer if OMP_NUM_THREADS says so."""
    return max(1, min(omp_get_max_threads(), available_cpus()))


def resolve_threads(n_threads):
    """Turn a validated ``n_threads`` (None or a non-zero int) into a positive count, capped by the processors."""
    if n_threads is None:
        return default_threads()
    if n_threads == 1:
        return 1
    cpus = available_cpus()
    if n_threads < 0:
        return max(1, cpus + 1 + n_threads)
    return min(n_threads, cpus)


cdef int most_threads(int n_threads, intp_t n_tasks) noexcept nogil:
    """Threads that any loop of up to ``n_tasks`` may have: as many workspaces are needed.

    One in a forked child and inside somebody else's parallel region.
    """
    if plr_forked or omp_in_parallel() or n_tasks <= 1:
        return 1
    return <int>min(<intp_t>n_threads, n_tasks)


cdef int run_loop(
    index_function body, const void *call, intp_t start, intp_t stop, intp_t chunk, int n_threads,
    Workspaces workspaces
) noexcept nogil:
    """Call ``body`` for all from ``start`` to ``stop``, each with the workspace of its thread; how many threads came.

    A thread takes so many of them in a row as ``chunk`` says. Of ``n_threads``, no more than have workspaces, those
    come that get a processor in time; all of them if a thread is worth having for no work at all.
    """
    cdef plr_loop loop
    loop.body = body
    loop.call = call
    loop.next = start
    loop.stop = stop
    loop.chunk = chunk
    loop.memory = workspaces.of_thread(0)
    loop.stride = workspaces._stride
    return plr_run_loop(&plr_helpers, &loop, n_threads, WORTH_NS <= 0.0)


cdef double monotonic_ns() noexcept nogil:
    """Nanoseconds since some moment."""
    return plr_nanoseconds()


cdef long long LOOKS = 0  # touched under the GIL only


def looks():
    """How often calls have looked for Ctrl-C so far, for tests: seconds between two looks depend on the machine."""
    return LOOKS


cdef int check_interrupt() except -1:
    """Run pending Python signal handlers; raises KeyboardInterrupt after Ctrl-C."""
    global LOOKS
    LOOKS += 1
    return PyErr_CheckSignals()


cdef int signal_came() noexcept nogil:
    """For a kernel to ask in the middle of its work: 1 if it is to stop, and then ``raise_if_stopped`` must follow."""
    global LOOKS
    with gil:
        LOOKS += 1
        return check_signals() != 0


cdef int raise_if_stopped() except -1:
    """Let the exception that ``signal_came`` has met take its course; else look for one."""
    if PyErr_Occurred():
        return -1
    return check_interrupt()


# One freed block is kept for the next call: page faults were 7 % of a call on 64 queries of 316 items, 16 samples each.
# Touched under the GIL only.
cdef size_t LARGEST_SPARE = 16 << 20
cdef char *_spare = NULL
cdef size_t _spare_size = 0


def drop_spare():
    """Give the kept block back, for tests: the next call has to allocate."""
    global _spare, _spare_size
    free(_spare)
    _spare = NULL
    _spare_size = 0


cdef class Workspaces:
    """One block of ``size`` bytes per thread, each on its own cache lines; MemoryError names the figure."""

    def __cinit__(self, int n_threads, size_t size):
        global _spare, _spare_size
        self.n_threads = n_threads
        self._stride = (size + 127) // 128 * 128 + 128
        self._memory = NULL
        if self._stride < size or self._stride > (<size_t>-1) // 2 // <size_t>n_threads:
            raise MemoryError(f"workspace of {n_threads} x {size} bytes cannot be addressed")
        self._size = self._stride * n_threads + 128
        if self._size <= _spare_size:
            self._memory = _spare
            self._size = _spare_size
            _spare = NULL
            _spare_size = 0
        else:
            self._memory = <char *>plr_allocate(self._size)
        if self._memory == NULL:
            raise MemoryError(f"could not allocate a workspace of {self._stride * n_threads} bytes "
                              f"({n_threads} threads x {self._stride})")

    def __dealloc__(self):
        global _spare, _spare_size
        if self._memory != NULL and _spare_size < self._size <= LARGEST_SPARE:
            free(_spare)
            _spare = self._memory
            _spare_size = self._size
        else:
            free(self._memory)

    cdef char *of_thread(self, int thread) noexcept nogil:
        cdef uintptr_t base = (<uintptr_t>self._memory + 127) // 128 * 128
        return <char *>(base + thread * self._stride)
