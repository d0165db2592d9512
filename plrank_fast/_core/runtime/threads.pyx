"""Threads of a call, checks for interrupts, and memory for each thread. ``batch`` assigns the work."""

import os
from pathlib import Path

from cpython.exc cimport PyErr_CheckSignals, PyErr_Occurred
from libc.stdint cimport uintptr_t

from plrank_fast._core.runtime.scalar_types cimport intp_t

cdef extern from "runtime/openmp.h" nogil:
    int omp_get_max_threads()
    int omp_in_parallel()

cdef extern from "Python.h":
    int check_signals "PyErr_CheckSignals" () noexcept

cdef extern from "runtime/memory.h" nogil:
    size_t *plr_allocate(spare_blocks *spares, size_t size)
    void plr_keep(spare_blocks *spares, size_t *block, size_t most)

cdef extern from "runtime/atomics.h" nogil:
    void plr_count(long long *number)

cdef extern from "runtime/clock.h" nogil:
    double plr_nanoseconds()

cdef extern from "runtime/processors.h" nogil:
    int plr_processors()

cdef extern from "<pthread.h>" nogil:
    int pthread_atfork(void (*before)() noexcept nogil, void (*parent)() noexcept nogil, void (*child)() noexcept nogil)

cdef bint FORKED = False  # whether this process is a child


cdef void note_fork() noexcept nogil:
    global FORKED
    FORKED = True


pthread_atfork(NULL, NULL, note_fork)

cdef double ROUND_NS = 5e7  # a twentieth of a second: calls guarantee to respond to interrupts within half a second
cdef double LEARNT_FACTOR = 1.0  # multiplies the time that a round took, so that tests can imitate other machines


def available_cpus():
    """Return the number of processors that affinity mask and cgroup quota allow this process."""
    cpus = plr_processors() or os.cpu_count() or 1  # in C, as every call asks
    return max(1, min(cpus, CGROUP_QUOTA) if CGROUP_QUOTA else cpus)


def _cgroup_quota(folder="/sys/fs/cgroup"):
    """Return the whole processors that the CPU quota of a cgroup allows, or None if there is no quota."""
    for names in ["cpu.max"], ["cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"]:  # versions 2 and 1
        try:
            quota, period = " ".join(Path(folder, name).read_text() for name in names).split()
            return None if quota in ("max", "-1") else max(1, -(-int(quota) // int(period)))
        except (OSError, ValueError):
            continue
    return None


CGROUP_QUOTA = _cgroup_quota()  # read once: a file is too slow to open in every call


def default_threads():
    """Return the default number of threads: the available processors, or OMP_NUM_THREADS if that is fewer."""
    most = omp_get_max_threads()
    return 1 if most <= 1 else max(1, min(most, available_cpus()))


cpdef int resolve_threads(object n_threads) except -1:
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
    """Return the most threads that a region of up to ``n_tasks`` may have, and so the number of workspaces.

    It is 1 in a forked child and inside a parallel region of the caller.
    """
    if FORKED or omp_in_parallel() or n_tasks <= 1:
        return 1
    return <int>min(<intp_t>n_threads, n_tasks)


cdef double monotonic_ns() noexcept nogil:
    """Return nanoseconds of a monotonic clock."""
    return plr_nanoseconds()


cdef long long LOOKS = 0  # how often calls have checked for interrupts


cdef int check_interrupt() except -1:
    """Run pending Python signal handlers; raises KeyboardInterrupt after Ctrl-C."""
    plr_count(&LOOKS)
    return PyErr_CheckSignals()


cdef int signal_came() noexcept nogil:
    """Return 1 if a kernel that calls this in the middle of its work must stop; ``raise_if_stopped`` must follow."""
    plr_count(&LOOKS)
    with gil:  # a handler must not run while the exception of an earlier one is set
        return 1 if PyErr_Occurred() else check_signals() != 0


cdef int raise_if_stopped() except -1:
    """Raise the exception that ``signal_came`` has met; otherwise check for interrupts."""
    if PyErr_Occurred():
        return -1
    return check_interrupt()


# Freed blocks are kept for the next calls, without which page faults take 7 % of a call on 64 queries of 316 items, 16
# samples each, and two thirds of one on 100,000 documents by sixteen threads: each of these has memory of its own.
# Several, because a long query has some at the same time.
cdef size_t MOST_SPARE = available_cpus() * (<size_t>32 << 20)
cdef spare_blocks SPARES


cdef class Workspaces:
    """One block of ``size`` bytes per thread, each on its own cache lines; MemoryError states the size."""

    def __cinit__(self, int n_threads, size_t size):
        cdef size_t n_bytes
        self.n_threads = n_threads
        self.stride = (size + 127) // 128 * 128 + 128
        if self.stride < size or self.stride > (<size_t>-1) // 2 // <size_t>n_threads:
            raise MemoryError(f"workspace of {n_threads} x {size} bytes cannot be addressed")
        n_bytes = self.stride * n_threads + 256
        self._memory = plr_allocate(&SPARES, n_bytes)
        if self._memory == NULL:
            raise MemoryError(f"could not allocate a workspace of {self.stride * n_threads} bytes "
                              f"({n_threads} threads x {self.stride})")

    def __dealloc__(self):
        if self._memory != NULL:
            plr_keep(&SPARES, self._memory, MOST_SPARE)

    cdef char *of_thread(self, int thread) noexcept nogil:
        cdef uintptr_t base = <uintptr_t>self._memory // 128 * 128 + 128
        return <char *>(base + thread * self.stride)
