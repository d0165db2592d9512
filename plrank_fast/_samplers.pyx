"""Samplers of Plackett-Luce rankings, and the rule that picks one.

All of them draw from the same distribution, exactly; they differ in what they cost.

``introselect``  every item's clock, the K that ring first, a sort: the plain one, O(D + K log K) per ranking, for
                 scores at any distance (``_introselect.pyx``)
``network``      every item's clock, sixteen rankings in lockstep, a sorting network: up to 1024 items
                 (``kernels/network_sampler.c``)

A sampler that cannot serve a query leaves it to ``introselect``. Each block of samples has a stream of its own, of
which every sampler consumes the same words at any SIMD level.
"""

from libc.math cimport INFINITY

from plrank_fast._introselect cimport Introselect, draw_ranking, introselect_workspace, prepare_introselect
from plrank_fast._random cimport block_size, plr_mix64, plr_stream_init
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
from plrank_fast._typedefs cimport int32_t, int64_t, intp_t, uint32_t, uint64_t

from cython.parallel cimport prange

cdef extern from "network_sampler.h" nogil:
    ctypedef struct network_kernels:
        void (*prepare)(network_sampler *sampler) noexcept nogil
        void (*draw_group)(
            network_sampler *sampler, plr_stream *stream, uint64_t salt, uint64_t first_sample, int32_t *columns
        ) noexcept nogil
    const network_kernels *network_kernels_at(int level)

cdef extern from "weights.h" nogil:
    ctypedef struct weights_kernels:
        void (*relative)(const double *scores, double highest, double sign, double *out, size_t n) noexcept nogil
    const weights_kernels *weights_kernels_at(int level)

cdef const network_kernels *network = network_kernels_at(simd_level())
cdef const weights_kernels *weights = weights_kernels_at(simd_level())

cdef double FLOAT_SPREAD = 79.0  # nats between the scores up to which mean clocks fit a float32 with room for 2^6
NS_PER_ITEM = 4.0


# ---------------------------------------------------------------------------------------------------------------------
# The rule
# ---------------------------------------------------------------------------------------------------------------------

cdef int choose_sampler(const Draw *draw, double spread) noexcept nogil:
    """The sampler for one query: what was asked for where it can serve, the fastest for "auto".

    It depends on the query and the arguments of the call alone, so the same call draws the same rankings everywhere.
    """
    cdef bint network_serves = draw.n_items <= PLR_NETWORK_ITEMS and spread <= FLOAT_SPREAD
    if draw.sampler == INTROSELECT:
        return INTROSELECT
    return NETWORK if network_serves else INTROSELECT


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef inline size_t aligned(size_t n_bytes) noexcept nogil:
    return (n_bytes + 63) // 64 * 64


cdef inline char *take(char **free_memory, size_t n_bytes) noexcept nogil:
    """Cut a piece off the front of a workspace; pieces start on cache lines."""
    cdef char *piece = free_memory[0]
    free_memory[0] += aligned(n_bytes)
    return piece


cdef inline intp_t network_rows(intp_t n_items) noexcept nogil:
    """Rows of keys: a power of two."""
    cdef intp_t rows = 16
    while rows < n_items:
        rows *= 2
    return rows


cdef intp_t deepest(intp_t n_items, intp_t cutoff) noexcept nogil:
    """Ranks of the longest columns that may be asked for."""
    return max(min(cutoff, n_items), min(n_items, <intp_t>PLR_NETWORK_ITEMS))


cdef size_t sampler_workspace(intp_t n_items, intp_t cutoff) noexcept nogil:
    """Bytes that ``prepare_sampler`` needs for a query of at most ``n_items``."""
    cdef size_t rows = network_rows(min(n_items, <intp_t>PLR_NETWORK_ITEMS))
    cdef size_t network_bytes = rows * (2 * LOCKSTEP * sizeof(int32_t) + 2 * sizeof(double) + 2 * sizeof(float))
    cdef size_t columns_bytes = deepest(n_items, cutoff) * LOCKSTEP * sizeof(int32_t)
    return aligned(columns_bytes) + aligned(max(introselect_workspace(n_items), network_bytes + 6 * 64))


cdef void prepare_sampler(Sampler *sampler, const Draw *draw, char *workspace) noexcept nogil:
    """Ready ``sampler`` to draw the first ranks of one query. O(D); O(D log D) at huge score gaps."""
    cdef intp_t d, n_items = draw.n_items
    cdef double highest = -INFINITY, lowest = INFINITY
    cdef double *means
    for d in range(n_items):
        highest = max(highest, draw.scores[d])
        lowest = min(lowest, draw.scores[d])
    sampler.n_items = n_items
    sampler.depth = min(draw.cutoff, n_items)
    sampler.columns = <int32_t *>take(
        &workspace, deepest(n_items, draw.cutoff) * LOCKSTEP * sizeof(int32_t))
    sampler.method = choose_sampler(draw, highest - lowest)
    if sampler.method == INTROSELECT:
        prepare_introselect(
            &sampler.introselect, draw.scores, n_items, sampler.depth, draw.n_samples, workspace)
    else:
        means = <double *>take(&workspace, n_items * sizeof(double))
        weights.relative(draw.scores, highest, -1.0, means, n_items)
        sampler.network.n_items = n_items
        sampler.network.depth = sampler.depth
        sampler.network.means = means
        sampler.network.rounded_means = <float *>take(&workspace, n_items * sizeof(float))
        sampler.network.exact = <double *>take(&workspace, n_items * sizeof(double))
        sampler.network.order = <int32_t *>take(&workspace, n_items * sizeof(int32_t))
        sampler.network.words = <uint32_t *>take(&workspace, n_items * LOCKSTEP * sizeof(uint32_t))
        sampler.network.keys = <int32_t *>workspace
        network.prepare(&sampler.network)


cdef bint completes_rankings(const Sampler *sampler) noexcept nogil:
    """Whether drawing all ranks costs little more than drawing some."""
    return sampler.method == NETWORK


cdef void complete_rankings(Sampler *sampler) noexcept nogil:
    """Draw all ranks from now on, the first ones as before. Only where ``completes_rankings``."""
    sampler.depth = sampler.n_items
    sampler.network.depth = sampler.n_items
    network.prepare(&sampler.network)


# ---------------------------------------------------------------------------------------------------------------------
# Per block
# ---------------------------------------------------------------------------------------------------------------------

cdef void start_block(Sampler *sampler, const Draw *draw, uint64_t block) noexcept nogil:
    """Turn to the stream of one block."""
    plr_stream_init(&sampler.stream, draw.key, draw.query, block)
    sampler.salt = plr_mix64(sampler.stream.word[0][0] + sampler.stream.word[1][1])
    sampler.n_drawn = 0


cdef void draw_group(Sampler *sampler, intp_t n_rankings, int32_t *columns) noexcept nogil:
    """Draw the next LOCKSTEP rankings of the block rank by rank; only the first ``n_rankings`` are defined."""
    cdef intp_t i
    if sampler.method == INTROSELECT:
        for i in range(n_rankings):
            draw_ranking(&sampler.introselect, &sampler.stream, columns + i, LOCKSTEP)
    else:
        network.draw_group(&sampler.network, &sampler.stream, sampler.salt, sampler.n_drawn, columns)
    sampler.n_drawn += LOCKSTEP


cdef void draw_rows(Sampler *sampler, intp_t n_rankings, int32_t *rankings, intp_t stride) noexcept nogil:
    """Draw the first ``n_rankings`` of the block into rows."""
    cdef intp_t first = 0, i, k, n_lanes
    if sampler.method == INTROSELECT:
        for i in range(n_rankings):
            draw_ranking(&sampler.introselect, &sampler.stream, rankings + i * stride, 1)
        return
    while first < n_rankings:
        n_lanes = min(<intp_t>LOCKSTEP, n_rankings - first)
        draw_group(sampler, n_lanes, sampler.columns)
        for i in range(n_lanes):
            for k in range(sampler.depth):
                rankings[(first + i) * stride + k] = sampler.columns[k * LOCKSTEP + i]
        first += LOCKSTEP


# ---------------------------------------------------------------------------------------------------------------------
# Batch
# ---------------------------------------------------------------------------------------------------------------------

cdef void draw_row_blocks(
    const Draw *draw, intp_t first_block, intp_t last_block, char *workspace, int32_t *rankings
) noexcept nogil:
    """Draw blocks [first_block, last_block) of a query (or as many as there are) into rows of ``cutoff`` items."""
    cdef Sampler sampler
    cdef intp_t block, block_length = block_size(draw.n_items)
    if draw.n_items == 0 or draw.cutoff == 0:
        return
    prepare_sampler(&sampler, draw, workspace)
    for block in range(first_block, min(last_block, (draw.n_samples + block_length - 1) // block_length)):
        start_block(&sampler, draw, block)
        draw_rows(
            &sampler, min(block_length, draw.n_samples - block * block_length),
            rankings + (block - first_block) * block_length * draw.cutoff, draw.cutoff)


cdef inline Draw describe_draw(
    int sampler, const double[::1] scores, const int64_t[::1] offsets, intp_t query, intp_t cutoff, intp_t n_samples,
    const uint64_t[::1] key, uint64_t first_query
) noexcept nogil:
    cdef Draw draw
    draw.sampler = sampler
    draw.scores = &scores[0] + offsets[query]
    draw.n_items = offsets[query + 1] - offsets[query]
    draw.cutoff = cutoff
    draw.n_samples = n_samples
    draw.key = &key[0]
    draw.query = first_query + query
    return draw


cdef void draw_in_batch(
    int sampler, const double[::1] scores, const int64_t[::1] offsets, intp_t query, intp_t cutoff, intp_t n_samples,
    const uint64_t[::1] key, uint64_t first_query, intp_t first_block, intp_t last_block, char *workspace,
    int32_t *rankings
) noexcept nogil:
    cdef Draw draw = describe_draw(sampler, scores, offsets, query, cutoff, n_samples, key, first_query)
    draw_row_blocks(&draw, first_block, last_block, workspace, rankings)


# ---------------------------------------------------------------------------------------------------------------------
# Entry points
# ---------------------------------------------------------------------------------------------------------------------

def sample_rankings(
    int sampler, const double[::1] scores, const int64_t[::1] offsets, intp_t n_samples, intp_t cutoff,
    const uint64_t[::1] key, uint64_t first_query, int n_threads, int32_t[:, :, ::1] rankings
):
    """Fill ``rankings`` (n_queries, n_samples, cutoff), preset to -1."""
    cdef intp_t n_queries = offsets.shape[0] - 1
    cdef intp_t block_length, n_blocks
    cdef intp_t start = 0, stop, q, task, first, last, blocks_per_task
    cdef int threads
    if cutoff == 0:
        return
    cdef Workspaces workspaces = Workspaces(n_threads, sampler_workspace(longest_query(offsets), cutoff))
    while start < n_queries:
        stop = round_stop(offsets, start, NS_PER_ITEM * n_samples, n_threads)
        if not is_long(offsets, start, stop, NS_PER_ITEM * n_samples):
            threads = threads_for(n_threads, stop - start)
            with nogil:
                for q in prange(start, stop, schedule="dynamic", num_threads=threads):
                    draw_in_batch(
                        sampler, scores, offsets, q, cutoff, n_samples, key, first_query, 0, n_samples,
                        workspaces.of_thread(omp_get_thread_num()), &rankings[q, 0, 0])
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
                        draw_in_batch(
                            sampler, scores, offsets, start, cutoff, n_samples, key, first_query,
                            first + task * blocks_per_task,
                            min(first + (task + 1) * blocks_per_task, last),
                            workspaces.of_thread(omp_get_thread_num()),
                            &rankings[start, (first + task * blocks_per_task) * block_length, 0])
                check_interrupt()
        start = stop
