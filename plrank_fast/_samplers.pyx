"""Samplers of Plackett-Luce rankings.

``introselect``: every item gets an exponential clock of rate w = exp(score); the order in which the clocks ring is a
Plackett-Luce ranking (with -log of the clocks this is the Gumbel top-K trick). Introselect finds the K that ring first,
a sort puts them in order: O(D + K log K) per ranking.
"""

from libc.float cimport DBL_MAX
from libc.math cimport INFINITY, exp, sqrt

from plrank_fast._random cimport PLR_STREAM_LANES, block_size, plr_stream, plr_stream_init
from plrank_fast._selection cimport keep_below, select_smallest, sort_pairs
from plrank_fast._simd cimport simd_level
from plrank_fast._threads cimport (
    Workspaces,
    blocks_per_round,
    check_interrupt,
    is_long,
    longest_query,
    omp_get_thread_num,
    round_stop,
    threads_for,
)
from plrank_fast._typedefs cimport int32_t, int64_t, intp_t, uint64_t

import numpy as np

from cython.parallel cimport prange

cdef extern from "clocks.h" nogil:
    ctypedef struct clocks_kernels:
        void (*linear)(plr_stream *stream, const double *inverse_weights, double *clocks, size_t n) noexcept nogil
        void (*logarithmic)(plr_stream *stream, const double *scores, double *clocks, size_t n) noexcept nogil
        void (*log)(const double *x, double *out, size_t n) noexcept nogil
    const clocks_kernels *clocks_kernels_at(int level)

cdef const clocks_kernels *clocks = clocks_kernels_at(simd_level())

cdef double LINEAR_SPREAD = 600.0  # nats between the scores up to which weights and clocks fit a double
cdef double UNCROSSABLE_GAP = 64.0  # nats: log E lies between -36.8 and 3.7 for the uniforms in use
NS_PER_ITEM = 4.0
cdef intp_t FIRST_PIVOT_SAMPLES = 16  # fewer samples do not repay the search for the first pivot


# ---------------------------------------------------------------------------------------------------------------------
# Per item
# ---------------------------------------------------------------------------------------------------------------------

cdef inline intp_t padded(intp_t n_items) noexcept nogil:
    return (n_items + PLR_STREAM_LANES - 1) // PLR_STREAM_LANES * PLR_STREAM_LANES


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef size_t sampler_workspace(intp_t n_items) noexcept nogil:
    """Bytes that ``prepare_sampler`` needs."""
    return <size_t>padded(n_items) * (3 * sizeof(double) + sizeof(int32_t))


cdef void prepare_sampler(
    Sampler *sampler, const double *scores, intp_t n_items, intp_t cutoff, intp_t n_samples, char *workspace
) noexcept nogil:
    """Ready ``sampler`` to draw the first ``cutoff`` ranks of one query. O(D); O(D log D) at huge score gaps."""
    cdef intp_t length = padded(n_items)
    cdef double highest = -INFINITY, lowest = INFINITY
    cdef intp_t d
    for d in range(n_items):
        highest = max(highest, scores[d])
        lowest = min(lowest, scores[d])
    sampler.n_items = n_items
    sampler.cutoff = cutoff
    sampler.rates = <double *>workspace
    sampler.clocks = sampler.rates + length
    sampler.keys = sampler.clocks + length
    sampler.items = <int32_t *>(sampler.keys + length)
    sampler.logarithmic = not (highest - lowest <= LINEAR_SPREAD)
    sampler.first_pivot = 0.0
    if sampler.logarithmic:
        compress_gaps(sampler, scores)
        for d in range(n_items, length):
            sampler.rates[d] = -DBL_MAX
        return
    for d in range(n_items):
        sampler.rates[d] = exp(highest - scores[d])
    for d in range(n_items, length):
        sampler.rates[d] = INFINITY
    if n_samples >= FIRST_PIVOT_SAMPLES:
        sampler.first_pivot = time_of_arrivals(sampler, <double>cutoff + 3.0 * sqrt(<double>cutoff) + 1.0)


cdef void compress_gaps(Sampler *sampler, const double *scores) noexcept nogil:
    """Scores with every gap between neighbours cut to one that no pair of clocks can cross.

    The rankings are those of the scores themselves, and adding noise no longer rounds it away at scores such as 1e300.
    """
    cdef intp_t d
    cdef double level = 0.0, previous, gap
    for d in range(sampler.n_items):
        sampler.keys[d] = -scores[d]
        sampler.items[d] = <int32_t>d
    sort_pairs(sampler.keys, sampler.items, sampler.n_items)
    previous = sampler.keys[0]
    for d in range(sampler.n_items):
        gap = sampler.keys[d] - previous
        previous = sampler.keys[d]
        level -= min(gap, UNCROSSABLE_GAP)
        sampler.rates[sampler.items[d]] = level


cdef double time_of_arrivals(Sampler *sampler, double arrivals) noexcept nogil:
    """The time before which this many clocks are expected to ring; 0 when that is most of them.

    Newton's method on the concave sum of 1 - exp(-w t), which approaches the root from below.
    """
    cdef double time = 0.0, arrived, rate, still_silent
    cdef intp_t d, _
    if arrivals > 0.6 * sampler.n_items:
        return 0.0
    for _ in range(12):
        arrived = 0.0
        rate = 0.0
        for d in range(sampler.n_items):
            still_silent = exp(-time / sampler.rates[d])
            arrived += 1.0 - still_silent
            rate += still_silent / sampler.rates[d]
        if arrived > 0.95 * arrivals:
            return time
        time += (arrivals - arrived) / rate
        if not time < 1e300:
            return 0.0
    return 0.0


cdef void draw_ranking(Sampler *sampler, plr_stream *stream, int32_t *ranking) noexcept nogil:
    """The first ``cutoff`` items to ring."""
    cdef intp_t kept = 0, k
    if sampler.logarithmic:
        clocks.logarithmic(stream, sampler.rates, sampler.clocks, sampler.n_items)
    else:
        clocks.linear(stream, sampler.rates, sampler.clocks, sampler.n_items)
    if sampler.first_pivot > 0.0:
        kept = keep_below(sampler.clocks, sampler.n_items, sampler.first_pivot, sampler.keys, sampler.items)
    if kept < sampler.cutoff:
        kept = keep_below(sampler.clocks, sampler.n_items, INFINITY, sampler.keys, sampler.items)
    select_smallest(sampler.keys, sampler.items, kept, sampler.cutoff)
    sort_pairs(sampler.keys, sampler.items, sampler.cutoff)
    for k in range(sampler.cutoff):
        ranking[k] = sampler.items[k]


cdef void draw_block(
    Sampler *sampler, const uint64_t *key, uint64_t query, uint64_t block, intp_t n_rankings,
    int32_t *rankings, intp_t stride
) noexcept nogil:
    """Draw rankings of one block (the first ``n_rankings`` of it) into rows of ``rankings``."""
    cdef plr_stream stream
    cdef intp_t i
    plr_stream_init(&stream, key, query, block)
    for i in range(n_rankings):
        draw_ranking(sampler, &stream, rankings + i * stride)


# ---------------------------------------------------------------------------------------------------------------------
# Batch
# ---------------------------------------------------------------------------------------------------------------------

cdef void draw_query(
    const double *scores, intp_t n_items, intp_t cutoff, intp_t n_samples, const uint64_t *key, uint64_t query,
    intp_t first_block, intp_t last_block, char *workspace, int32_t *rankings
) noexcept nogil:
    """Draw blocks [first_block, last_block) of a query (or as many as there are) into rows of ``cutoff`` items."""
    cdef Sampler sampler
    cdef intp_t block, block_length = block_size(n_items)
    if n_items == 0 or cutoff == 0:
        return
    prepare_sampler(&sampler, scores, n_items, min(cutoff, n_items), n_samples, workspace)
    for block in range(first_block, min(last_block, (n_samples + block_length - 1) // block_length)):
        draw_block(
            &sampler, key, query, block, min(block_length, n_samples - block * block_length),
            rankings + (block - first_block) * block_length * cutoff, cutoff)


# ---------------------------------------------------------------------------------------------------------------------
# Entry points
# ---------------------------------------------------------------------------------------------------------------------

def sample_rankings(
    const double[::1] scores, const int64_t[::1] offsets, intp_t n_samples, intp_t cutoff, const uint64_t[::1] key,
    uint64_t first_query, int n_threads, int32_t[:, :, ::1] rankings
):
    """Fill ``rankings`` (n_queries, n_samples, cutoff), preset to -1."""
    cdef intp_t n_queries = offsets.shape[0] - 1
    cdef intp_t block_length, n_blocks
    cdef intp_t start = 0, stop, q, task, first, last, blocks_per_task
    cdef int threads
    if cutoff == 0:
        return
    cdef Workspaces workspaces = Workspaces(n_threads, sampler_workspace(longest_query(offsets)))
    while start < n_queries:
        stop = round_stop(offsets, start, NS_PER_ITEM * n_samples, n_threads)
        if not is_long(offsets, start, stop, NS_PER_ITEM * n_samples):
            threads = threads_for(n_threads, stop - start)
            with nogil:
                for q in prange(start, stop, schedule="dynamic", num_threads=threads):
                    draw_query(
                        &scores[0] + offsets[q], offsets[q + 1] - offsets[q], cutoff, n_samples, &key[0],
                        first_query + q, 0, n_samples, workspaces.of_thread(omp_get_thread_num()), &rankings[q, 0, 0])
            check_interrupt()
        else:
            block_length = block_size(offsets[stop] - offsets[start])
            n_blocks = (n_samples + block_length - 1) // block_length
            # one long query: ranges of its blocks are the tasks, and each round gives every thread one
            blocks_per_task = blocks_per_round(offsets[stop] - offsets[start], NS_PER_ITEM, n_blocks, n_threads)
            for first in range(0, n_blocks, blocks_per_task * n_threads):
                last = min(first + blocks_per_task * n_threads, n_blocks)
                threads = threads_for(n_threads, (last - first + blocks_per_task - 1) // blocks_per_task)
                with nogil:
                    for task in prange(
                        (last - first + blocks_per_task - 1) // blocks_per_task, schedule="dynamic",
                        num_threads=threads,
                    ):
                        draw_query(
                            &scores[0] + offsets[start], offsets[stop] - offsets[start], cutoff, n_samples, &key[0],
                            first_query + start, first + task * blocks_per_task,
                            min(first + (task + 1) * blocks_per_task, last),
                            workspaces.of_thread(omp_get_thread_num()),
                            &rankings[start, (first + task * blocks_per_task) * block_length, 0])
                check_interrupt()
        start = stop


def vector_log(const double[::1] x):
    """log(x) as the kernels compute it, for tests; the length must be a multiple of 8."""
    out = np.empty(x.shape[0])
    cdef double[::1] view = out
    clocks.log(&x[0], &view[0], x.shape[0])
    return out
