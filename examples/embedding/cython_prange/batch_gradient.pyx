# cython: language_level=3, boundscheck=False, wraparound=False
# distutils: extra_compile_args=-fopenmp
# distutils: extra_link_args=-fopenmp
"""Exact gradients of a batch of queries in a ``prange`` of one's own."""

from cython.parallel cimport parallel, prange
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from plrank_fast.cython_plrank cimport plrank_pl_rank_exact, plrank_pl_rank_exact_workspace


def batch_gradient(
    const double[::1] scores, const double[::1] relevance, const double[::1] rank_weights, const int64_t[::1] offsets,
    int n_threads, double[::1] gradient, int32_t[::1] status
):
    """Fill ``gradient`` (n_docs,) and ``status`` (n_queries,) from queries that start at ``offsets``."""
    cdef Py_ssize_t n_queries = offsets.shape[0] - 1, q
    cdef int64_t cutoff = rank_weights.shape[0], size = 0
    cdef void *workspace = NULL
    for q in range(n_queries):
        size = max(size, plrank_pl_rank_exact_workspace(offsets[q + 1] - offsets[q], cutoff))
    with nogil, parallel(num_threads=n_threads):
        workspace = malloc(size)  # one for each thread; should it be NULL, every status says so
        for q in prange(n_queries, schedule="dynamic"):
            status[q] = plrank_pl_rank_exact(
                &scores[offsets[q]], &relevance[offsets[q]], offsets[q + 1] - offsets[q], &rank_weights[0], cutoff,
                1e-6, NULL, &gradient[offsets[q]], NULL, workspace, size)
        free(workspace)
