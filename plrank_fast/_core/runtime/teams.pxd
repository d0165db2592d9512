"""Parallel loops, and how many threads each of them has."""

from libc.stdint cimport uintptr_t

from plrank_fast._core.runtime.scalar_types cimport intp_t

# Loops within a query, for kernels: the header states their guarantees.
cdef extern from "runtime/parallel_loop.h" nogil:
    # Run pass i; ``thread`` numbers the threads that take part, from 0, the calling one.
    ctypedef void (*loop_body)(void *argument, intp_t i, int thread) noexcept nogil
    ctypedef struct parallel_loop:
        void (*run)(const parallel_loop *loop, loop_body body, void *argument, intp_t n) noexcept nogil
        int n_threads, team

cdef extern from "runtime/thread_team.h" nogil:
    ctypedef struct team_record:
        pass

cdef extern from "runtime/team_size.h" nogil:
    ctypedef struct team_sizes:
        double credit

cdef struct Loop:
    loop_body body
    void *argument
    intp_t start, stop, chunk    # a thread takes ``chunk`` passes at a time
    int seats                    # there is memory for so many threads
    uintptr_t kind               # loops of one kind have estimates that are wrong by the same factor
    double ns                    # estimated time on one thread
    double longest               # ... of the longest pass

# Process items [start, stop).
ctypedef void (*range_function)(void *call, intp_t start, intp_t stop) noexcept nogil

# The variables that decide about teams, and their record; tests read and set them too.
cdef int TEAMS
cdef team_sizes SIZES
cdef team_record RECORD

cdef intp_t ITEMS_PER_RANGE


cdef inline intp_t number_of_ranges(intp_t n_items) noexcept nogil:
    return (n_items + ITEMS_PER_RANGE - 1) // ITEMS_PER_RANGE


cdef int run_loop(const Loop *loop, int n_threads) noexcept nogil
cdef bint pays(uintptr_t kind, double ns) noexcept nogil
cdef int threads_worth(uintptr_t kind, double ns, int n_threads) noexcept nogil
cdef void learn_work(uintptr_t kind, double ns, double taken) noexcept nogil
cdef double saved_by_team() noexcept nogil
cdef parallel_loop loop_of_threads(int n_threads) noexcept nogil
cdef void run_ranges(
    range_function body, void *call, intp_t n_items, double ns_per_item, int n_threads) noexcept nogil
