"""Exact expected metric, gradient and Hessian diagonal of a batch of queries."""

from cython.parallel cimport prange

from libc.stddef cimport size_t
from libc.stdint cimport intptr_t

from plrank_fast._simd cimport simd_level
from plrank_fast._threads cimport Workspaces, check_interrupt, omp_get_thread_num, round_stop, threads_for
from plrank_fast._typedefs cimport int64_t, intp_t

cdef extern from "exact.h" nogil:
    ctypedef struct exact_query:
        intptr_t D, K
        const double *scores
        const double *relevance
        const double *rank_weights
        double rtol
        double *gradient
        double *hessian
        double value
        int attempts, nodes

    ctypedef struct exact_kernels:
        void (*prepare)() noexcept nogil
        size_t (*workspace)(intptr_t D, intptr_t K) noexcept nogil
        void (*solve)(exact_query *query, void *workspace) noexcept nogil

    const exact_kernels *exact_kernels_at(int level)

cdef const exact_kernels *kernels = exact_kernels_at(simd_level())
kernels.prepare()


# ---------------------------------------------------------------------------------------------------- one query


cdef void solve_query(intp_t query, const double[::1] scores, const double[::1] relevance, const double[:, ::1] rank_weights,
                      const int64_t[::1] offsets, double rtol, double *gradient, double *hessian, double *value,
                      int *nodes, void *memory) noexcept nogil:
    cdef exact_query task
    cdef intp_t start = offsets[query]
    task.D = offsets[query + 1] - start
    task.K = rank_weights.shape[1]
    value[query] = 0.0
    if task.D == 0:
        return
    task.scores = &scores[start]
    task.relevance = &relevance[start]
    task.rank_weights = &rank_weights[query if rank_weights.shape[0] > 1 else 0, 0] if task.K > 0 else NULL
    task.rtol = rtol
    task.gradient = gradient + start if gradient != NULL else NULL
    task.hessian = hessian + start if hessian != NULL else NULL
    kernels.solve(&task, memory)
    value[query] = task.value
    if nodes != NULL:
        nodes[2 * query] = task.nodes
        nodes[2 * query + 1] = task.attempts


# ------------------------------------------------------------------------------------------------------- batches


cdef intp_t longest_list(const int64_t[::1] offsets) noexcept nogil:
    cdef intp_t longest = 0
    cdef intp_t query
    for query in range(offsets.shape[0] - 1):
        longest = max(longest, <intp_t>(offsets[query + 1] - offsets[query]))
    return longest


def solve_batch(const double[::1] scores, const double[::1] relevance, const double[:, ::1] rank_weights,
                const int64_t[::1] offsets, double rtol, int n_threads, double[::1] gradient, double[::1] hessian,
                double[::1] value, int[:, ::1] nodes=None):
    """Fill ``value`` and, unless None, ``gradient`` and ``hessian``; ``nodes`` takes (nodes, attempts) per query."""
    cdef intp_t n_queries = offsets.shape[0] - 1
    cdef intp_t longest = longest_list(offsets)
    cdef intp_t start = 0
    cdef intp_t stop, query
    cdef int threads
    cdef double *to_gradient = &gradient[0] if gradient is not None and gradient.shape[0] > 0 else NULL
    cdef double *to_hessian = &hessian[0] if hessian is not None and hessian.shape[0] > 0 else NULL
    cdef double *to_value = &value[0] if n_queries > 0 else NULL
    cdef int *to_nodes = &nodes[0, 0] if nodes is not None else NULL
    cdef double ns_per_item = 40.0 + 4.0 * min(rank_weights.shape[1], longest)
    cdef Workspaces memory
    n_threads = threads_for(n_threads, n_queries)
    memory = Workspaces(n_threads, kernels.workspace(longest, rank_weights.shape[1]))
    while start < n_queries:
        stop = round_stop(offsets, start, ns_per_item, n_threads)
        threads = threads_for(n_threads, stop - start)
        if threads == 1:
            with nogil:
                for query in range(start, stop):
                    solve_query(query, scores, relevance, rank_weights, offsets, rtol, to_gradient, to_hessian, to_value,
                                to_nodes, memory.of_thread(0))
        else:
            with nogil:
                for query in prange(start, stop, schedule="dynamic", chunksize=1, num_threads=threads):
                    solve_query(query, scores, relevance, rank_weights, offsets, rtol, to_gradient, to_hessian, to_value,
                                to_nodes, memory.of_thread(omp_get_thread_num()))
        start = stop
        check_interrupt()
