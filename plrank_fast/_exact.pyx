"""Exact expectations of a batch of queries by quadrature: metric, gradient, Hessian diagonal, rank probabilities.

The kernels are in kernels/exact.c: from scores to nodes (quadrature_plan.h) to integrands (arrival_polynomial.h).
"""

from cython.parallel cimport prange
from libc.stddef cimport size_t
from libc.stdint cimport intptr_t

from plrank_fast._simd cimport simd_level
from plrank_fast._threads cimport (
    Workspaces,
    as_observed,
    check_interrupt,
    clock,
    is_long,
    longest_query,
    most_threads,
    neighbours,
    round_stop,
    threads_worth,
)
from plrank_fast._typedefs cimport int64_t, intp_t

cdef extern from "Python.h":
    # not as Cython declares it: the exception must stay set until the entry point lets it out
    int check_signals "PyErr_CheckSignals" () noexcept

cdef extern from "exact.h" nogil:
    ctypedef struct patience:
        int (*interrupted)() noexcept nogil
        int stopped
        double work

    ctypedef struct exact_query:
        intptr_t D, K
        const double *scores
        const double *relevance
        const double *rank_weights
        double rtol
        double *gradient
        double *hessian
        double *probabilities
        intptr_t columns
        patience patience
        double value

    int PLR_EXACT_GRADIENT
    int PLR_EXACT_PROBABILITIES
    int PLR_EXACT_NORMAL

    ctypedef struct exact_kernels:
        void (*prepare)() noexcept nogil
        size_t (*workspace)(intptr_t D, intptr_t K, int purpose) noexcept nogil
        void (*solve)(exact_query *query, void *workspace) noexcept nogil
        void (*rank_probabilities)(exact_query *query, void *workspace) noexcept nogil
        void (*solve_normal)(exact_query *query, double inverse_sigma, void *workspace) noexcept nogil

    const exact_kernels *exact_kernels_at(int level)

cdef const exact_kernels *kernels = exact_kernels_at(simd_level())
kernels.prepare()

# Nanoseconds per item, and per item and rank, at 1e-6 and std-1 scores; only the length of a round depends on it.
cdef double NS_PER_ITEM = 40.0
cdef double NS_PER_ITEM_AND_RANK = 4.0
cdef double PEAKED = 4.0  # scores of trained models cost several times as much: what a further thread is worth


cdef inline void be_patient(patience *how, bint interruptible) noexcept nogil:
    how.interrupted = NULL
    if interruptible:
        how.interrupted = signal_came
    how.stopped = 0
    how.work = 0.0


cdef int signal_came() noexcept nogil:
    """Run pending Python signal handlers; 1 if one raised, and then its exception is set."""
    with gil:
        return check_signals() != 0


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef size_t exact_workspace(intp_t n_items, intp_t cutoff, bint probabilities) noexcept nogil:
    """Bytes for one query, on cache lines."""
    return kernels.workspace(n_items, cutoff, PLR_EXACT_PROBABILITIES if probabilities else PLR_EXACT_GRADIENT)


cdef int solve(
    const double *scores, const double *relevance, intp_t n_items, const double *rank_weights, intp_t cutoff,
    double rtol, double *gradient, double *hessian, double *value, char *workspace, bint interruptible
) noexcept nogil:
    """Outputs that are NULL are not asked for. Returns -1 if interrupted."""
    return solve_with_noise(
        0.0, scores, relevance, n_items, rank_weights, cutoff, rtol, gradient, hessian, value, workspace, interruptible)


cdef int solve_with_noise(
    double inverse_sigma, const double *scores, const double *relevance, intp_t n_items, const double *rank_weights,
    intp_t cutoff, double rtol, double *gradient, double *hessian, double *value, char *workspace, bint interruptible
) noexcept nogil:
    """As ``solve``, for scores with normal noise if ``inverse_sigma`` is above 0."""
    cdef exact_query task
    be_patient(&task.patience, interruptible)
    task.D = n_items
    task.K = cutoff
    task.scores = scores
    task.relevance = relevance
    task.rank_weights = rank_weights
    task.rtol = rtol
    task.gradient = gradient
    task.hessian = hessian
    task.probabilities = NULL
    if inverse_sigma > 0.0:
        kernels.solve_normal(&task, inverse_sigma, workspace)
    else:
        kernels.solve(&task, workspace)
    if value != NULL:
        value[0] = task.value
    return -1 if task.patience.stopped else 0


cdef int place(
    const double *scores, intp_t n_items, intp_t cutoff, double *probabilities, char *workspace, bint interruptible
) noexcept nogil:
    """Fill ``probabilities`` (n_items, cutoff). Returns -1 if interrupted."""
    cdef exact_query task
    be_patient(&task.patience, interruptible)
    task.D = n_items
    task.scores = scores
    task.columns = cutoff
    task.probabilities = probabilities
    task.gradient = task.hessian = NULL
    kernels.rank_probabilities(&task, workspace)
    return -1 if task.patience.stopped else 0


# ---------------------------------------------------------------------------------------------------------------------
# Batch
# ---------------------------------------------------------------------------------------------------------------------

cdef int solve_query(
    const double[::1] scores, const double[::1] relevance, const double[:, ::1] rank_weights,
    const int64_t[::1] offsets, intp_t query, double rtol, double inverse_sigma, double *gradient, double *hessian,
    double *value, char *workspace, bint interruptible
) noexcept nogil:
    """Outputs that are NULL are not asked for; those of an empty query are left alone. Returns -1 if interrupted."""
    cdef intp_t first = offsets[query], n_items = offsets[query + 1] - first
    if n_items == 0:
        return 0
    return solve_with_noise(
        inverse_sigma, &scores[first], &relevance[first], n_items,
        &rank_weights[query if rank_weights.shape[0] > 1 else 0, 0], rank_weights.shape[1], rtol,
        gradient + first if gradient != NULL else NULL, hessian + first if hessian != NULL else NULL,
        value + query if value != NULL else NULL, workspace, interruptible)


cdef int place_query(
    const double[::1] scores, const int64_t[::1] offsets, intp_t query, double[:, ::1] probabilities, char *workspace,
    bint interruptible
) noexcept nogil:
    """Returns -1 if interrupted."""
    cdef intp_t first = offsets[query], n_items = offsets[query + 1] - first
    if n_items == 0:
        return 0
    return place(&scores[first], n_items, probabilities.shape[1], &probabilities[first, 0], workspace, interruptible)


cdef int raise_if(int fault) except -1:
    """Let the exception of an interrupted kernel, which is set already, take its course."""
    return fault


# ---------------------------------------------------------------------------------------------------------------------
# Entry points
# ---------------------------------------------------------------------------------------------------------------------

def solve_batch(
    const double[::1] scores, const double[::1] relevance, const double[:, ::1] rank_weights,
    const int64_t[::1] offsets, double rtol, int n_threads, double[::1] gradient, double[::1] hessian,
    double[::1] value, double inverse_sigma=0.0
):
    """Fill those of ``gradient``, ``hessian`` (n_docs,) and ``value`` (n_queries,) that are not None.

    They must be zero where queries are empty. Empty arrays and K = 0 are fine. With ``inverse_sigma`` above 0 for the
    ranking of scores with normal noise in place of Plackett-Luce.
    """
    cdef intp_t n_queries = offsets.shape[0] - 1, longest = longest_query(offsets), start = 0, stop, q
    cdef int threads, fault
    if scores.shape[0] == 0 or rank_weights.shape[1] == 0:
        return
    cdef double *to_gradient = NULL if gradient is None else &gradient[0]
    cdef double *to_hessian = NULL if hessian is None else &hessian[0]
    cdef double *to_value = NULL if value is None else &value[0]
    cdef double started, ns_per_item = NS_PER_ITEM + NS_PER_ITEM_AND_RANK * min(rank_weights.shape[1], longest)
    n_threads = most_threads(n_threads, n_queries)
    cdef Workspaces workspaces = Workspaces(n_threads, kernels.workspace(
        longest, rank_weights.shape[1], PLR_EXACT_NORMAL if inverse_sigma > 0.0 else PLR_EXACT_GRADIENT))
    while start < n_queries:
        stop = round_stop(offsets, start, ns_per_item, n_threads)
        threads = threads_worth(n_threads, offsets, start, stop, PEAKED * ns_per_item)
        if is_long(offsets, start, stop, ns_per_item):
            with nogil:
                fault = solve_query(
                    scores, relevance, rank_weights, offsets, start, rtol, inverse_sigma, to_gradient, to_hessian,
                    to_value, workspaces.of_thread(0), True)
            raise_if(fault)
        else:
            started = clock()
            with nogil:
                for q in prange(
                    start, stop, schedule="dynamic", chunksize=neighbours(stop - start, threads), num_threads=threads
                ):
                    solve_query(
                        scores, relevance, rank_weights, offsets, q, rtol, inverse_sigma, to_gradient, to_hessian,
                        to_value, workspaces.of_this_thread(), False)
            check_interrupt()
            ns_per_item = as_observed(ns_per_item, offsets, start, stop, threads, started)
        start = stop


def place_batch(const double[::1] scores, const int64_t[::1] offsets, int n_threads, double[:, ::1] probabilities):
    """Fill ``probabilities`` (n_docs, K): of each item to be at each rank. Empty arrays and K = 0 are fine."""
    cdef intp_t n_queries = offsets.shape[0] - 1, longest = longest_query(offsets), start = 0, stop, q
    cdef int threads, fault
    if scores.shape[0] == 0 or probabilities.shape[1] == 0:
        return
    cdef double started, ns_per_item = NS_PER_ITEM + 2 * NS_PER_ITEM_AND_RANK * min(probabilities.shape[1], longest)
    n_threads = most_threads(n_threads, n_queries)
    cdef Workspaces workspaces = Workspaces(n_threads, exact_workspace(longest, probabilities.shape[1], True))
    while start < n_queries:
        stop = round_stop(offsets, start, ns_per_item, n_threads)
        threads = threads_worth(n_threads, offsets, start, stop, PEAKED * ns_per_item)
        if is_long(offsets, start, stop, ns_per_item):
            with nogil:
                fault = place_query(scores, offsets, start, probabilities, workspaces.of_thread(0), True)
            raise_if(fault)
        else:
            started = clock()
            with nogil:
                for q in prange(
                    start, stop, schedule="dynamic", chunksize=neighbours(stop - start, threads), num_threads=threads
                ):
                    place_query(scores, offsets, q, probabilities, workspaces.of_this_thread(), False)
            check_interrupt()
            ns_per_item = as_observed(ns_per_item, offsets, start, stop, threads, started)
        start = stop
