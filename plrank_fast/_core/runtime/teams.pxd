"""Parallel loops: over the passes of a batch, over items, and within a query."""

from libc.stdint cimport uintptr_t

from plrank_fast._core.runtime.scalar_types cimport intp_t

# Loops within a query, for kernels: the header states their guarantees.
cdef extern from "runtime/parallel_loop.h" nogil:
    # Run pass i; ``thread`` numbers the threads that take part, from 0, the calling one.
    ctypedef void (*loop_body)(void *argument, intp_t i, int thread) noexcept nogil
    ctypedef struct parallel_loop:
        void (*run)(const parallel_loop *loop, loop_body body, void *argument, intp_t n) noexcept nogil
        int n_threads

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
# Work of the calling thread of a team, whose other threads take passes of its loops.
ctypedef void (*team_function)(void *argument) noexcept nogil

# The variables that decide about teams, and what tests ask for and set to 0: the size of the largest team, and the
# number of loops of which no thread did nine tenths.
cdef int TEAMS
cdef team_sizes SIZES
cdef int LARGEST_TEAM
cdef long long SHARED_LOOPS

cdef intp_t ITEMS_PER_RANGE


cdef inline intp_t number_of_ranges(intp_t n_items) noexcept nogil:
    return (n_items + ITEMS_PER_RANGE - 1) // ITEMS_PER_RANGE


# The caller of these holds the GIL, which they release.
cdef int run_loop(const Loop *loop, int n_threads) noexcept
cdef void run_ranges(range_function body, void *call, intp_t n_items, double ns_per_item, int n_threads) noexcept
cdef void run_in_team(team_function body, void *argument, int n_threads) noexcept

# Loops of a body of ``run_in_team``; elsewhere they have one thread.
cdef parallel_loop loop_of_team(int n_threads) noexcept nogil
cdef void share_ranges(range_function body, void *call, intp_t n_items, int n_threads) noexcept nogil

cdef bint pays(uintptr_t kind, double ns) noexcept nogil
cdef int threads_worth(uintptr_t kind, double ns, int n_threads) noexcept nogil
cdef void learn_work(uintptr_t kind, double ns, double taken) noexcept nogil
cdef double saved_by_teams() noexcept nogil
