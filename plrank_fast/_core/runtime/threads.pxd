"""Threads of a call, checks for interrupts, and memory for each thread."""

from libc.string cimport memset

from plrank_fast._core.runtime.scalar_types cimport intp_t

cdef extern from "runtime/cancellation.h" nogil:
    ctypedef struct cancellation:
        int (*interrupted)() noexcept nogil
        int requested
        const cancellation *of_caller
    bint cancellation_requested(cancellation *state, double work)

cdef extern from "runtime/memory.h" nogil:
    ctypedef struct spare_blocks:
        pass

# The variables that decide about rounds and kept memory, and their record; tests read and set them too.
cdef double ROUND_NS
cdef double LEARNT_FACTOR
cdef long long LOOKS
cdef size_t MOST_SPARE
cdef spare_blocks SPARES

cpdef int resolve_threads(object n_threads) except -1
cdef int most_threads(int n_threads, intp_t n_tasks) noexcept nogil
cdef double monotonic_ns() noexcept nogil
cdef int check_interrupt() except -1
cdef int signal_came() noexcept nogil
cdef int raise_if_stopped() except -1


cdef class Workspaces:
    # One aligned block of memory per thread, allocated at the edge of a call and never inside a parallel region.
    cdef readonly int n_threads
    cdef size_t *_memory
    cdef size_t stride

    cdef char *of_thread(self, int thread) noexcept nogil


cdef inline bint is_cancelled(cancellation *state, double ns) noexcept nogil:
    """Return whether to stop before work of ``ns`` nanoseconds, because the caller has been interrupted."""
    return cancellation_requested(state, 0.1 * ns)


cdef inline cancellation cancellation_of(int thread, cancellation *of_caller) noexcept nogil:
    """Return the state of a thread of a team, of which the calling thread, number 0, checks for interrupts."""
    cdef cancellation state
    memset(&state, 0, sizeof(state))
    if thread == 0:
        state.interrupted = signal_came
    else:
        state.of_caller = of_caller
    return state
