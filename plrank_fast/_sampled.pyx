"""Sampled estimates over a batch: draw a block of rankings, hand it to an estimator, query by query.

A block is drawn and used up before the next one, so memory is O(D + K) per thread however many samples are asked for.
"""

from cython.parallel cimport prange

from plrank_fast._conditional cimport conditional_estimator
from plrank_fast._hessian cimport hessian_estimator
from plrank_fast._plrank cimport Estimate, Estimator, pl_rank_estimator
from plrank_fast._policy_gradient cimport policy_gradient_estimator
from plrank_fast._random cimport BLOCK, block_size
from plrank_fast._samplers cimport NS_PER_ITEM, Sampler, draw_block, draw_query, prepare_sampler, sampler_workspace
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

METRIC, PL_RANK_1, PL_RANK_2, PL_RANK_3, CONDITIONAL = range(5)
# the last two see every ranking twice, first for their baseline
POLICY, PLACEMENT, POLICY_WITH_BASELINE, PLACEMENT_WITH_BASELINE = range(5, 9)

cdef struct Source:
    # where the rankings of a batch come from: given, or drawn
    const int32_t *given               # (n_queries, n_samples, length), or NULL
    intp_t length
    intp_t n_samples
    const uint64_t *key
    uint64_t first_query


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef inline size_t block_bytes(intp_t cutoff) noexcept nogil:
    return (BLOCK * <size_t>cutoff * sizeof(int32_t) + 63) // 64 * 64


cdef inline Estimator estimator_of(int variant, bint with_hessian) noexcept nogil:
    """Metric (0), PL-Rank-1, 2, 3, conditional Monte Carlo (4), policy gradients (5 to 8)."""
    cdef Estimator estimator
    if variant >= 5:
        estimator = policy_gradient_estimator(reward_to_go=variant == 6 or variant == 8)
    elif variant == 4:
        estimator = conditional_estimator()
    else:
        estimator = hessian_estimator() if variant == 3 and with_hessian else pl_rank_estimator(variant)
    estimator.passes = 2 if variant >= 7 else 1
    return estimator


cdef size_t query_workspace(const Estimator *estimator, intp_t n_items, intp_t cutoff, bint drawn) noexcept nogil:
    """Bytes for one query: the estimator's own, and a sampler and a block of rankings if these are to be drawn."""
    cdef size_t size = (estimator.workspace(n_items, cutoff) + 63) // 64 * 64
    if drawn:
        size += block_bytes(cutoff) + sampler_workspace(n_items)
    return size


cdef void estimate_query(
    const Estimator *estimator, Estimate *estimate, const Source *source, intp_t query, char *workspace
) noexcept nogil:
    """The whole estimate of one query."""
    cdef Sampler sampler
    cdef intp_t block, n_rankings, block_length = block_size(estimate.n_items)
    cdef int32_t *rankings = <int32_t *>workspace
    cdef intp_t cutoff = estimate.cutoff
    cdef int later
    if source.given != NULL:
        estimator.begin(estimate, workspace)
        for later in range(estimator.passes - 1, -1, -1):
            estimate.passes_to_come = later
            estimator.accumulate(
                estimate, source.given + query * source.n_samples * source.length, source.n_samples, source.length)
    else:
        workspace += block_bytes(cutoff)
        prepare_sampler(&sampler, estimate.scores, estimate.n_items, cutoff, source.n_samples, workspace)
        estimator.begin(estimate, workspace + sampler_workspace(estimate.n_items))
        for later in range(estimator.passes - 1, -1, -1):
            estimate.passes_to_come = later
            for block in range((source.n_samples + block_length - 1) // block_length):
                n_rankings = min(block_length, source.n_samples - block * block_length)
                if later == estimator.passes - 1 or source.n_samples > block_length:  # else the block is still there
                    draw_block(&sampler, source.key, source.first_query + query, block, n_rankings, rankings, cutoff)
                estimator.accumulate(estimate, rankings, n_rankings, cutoff)
    estimator.finish(estimate, source.n_samples)


cdef Estimate describe_query(
    const double[::1] scores, const double[::1] relevance, const double[:, ::1] rank_weights,
    const int64_t[::1] offsets, intp_t query, double[::1] out, double[::1] hessian, bint one_per_query
) noexcept nogil:
    """Point at one query of a batch (which must not be empty)."""
    cdef Estimate estimate
    cdef intp_t first = offsets[query]
    estimate.n_items = offsets[query + 1] - first
    estimate.cutoff = min(rank_weights.shape[1], estimate.n_items)
    estimate.scores = &scores[first]
    estimate.relevance = &relevance[first]
    estimate.rank_weights = &rank_weights[query if rank_weights.shape[0] > 1 else 0, 0]
    estimate.gradient = &out[query if one_per_query else first]
    estimate.hessian = &hessian[first] if hessian.shape[0] > 0 else NULL
    return estimate


# ---------------------------------------------------------------------------------------------------------------------
# Batch
# ---------------------------------------------------------------------------------------------------------------------

cdef void estimate_in_batch(
    const Estimator *estimator, const double[::1] scores, const double[::1] relevance,
    const double[:, ::1] rank_weights, const int64_t[::1] offsets, intp_t query, const Source *source, char *workspace,
    double[::1] out, double[::1] hessian, bint one_per_query
) noexcept nogil:
    cdef Estimate estimate
    # a query of one item has no gradient, and rounding must not give it one
    if offsets[query + 1] - offsets[query] > (0 if one_per_query else 1):
        estimate = describe_query(
            scores, relevance, rank_weights, offsets, query, out, hessian, one_per_query)
        estimate_query(estimator, &estimate, source, query, workspace)


cdef int estimate_long_query(
    const Estimator *estimator, Estimate *estimate, const Source *source, intp_t query, int n_threads
) except -1:
    """One query that outlasts a round: its blocks are drawn in parallel and used up in order, the same bits as ever."""
    cdef intp_t n_items = estimate.n_items, cutoff = estimate.cutoff
    cdef intp_t block_length = block_size(n_items)
    cdef intp_t n_blocks = (source.n_samples + block_length - 1) // block_length
    cdef intp_t first, stop, task, tasks, i
    # bounded by the length of a round, and by a megabyte of rankings per thread
    cdef intp_t blocks_per_task = min(
        blocks_per_round(n_items, NS_PER_ITEM, n_blocks, n_threads),
        max(<intp_t>1, <intp_t>((1 << 20) // block_bytes(cutoff))))
    cdef intp_t rankings_per_check = max(
        <intp_t>1, <intp_t>(5e7 / (n_items * cutoff * estimator.ns_per_item_and_rank + 10.0 * cutoff)))
    cdef size_t drawing = 0 if source.given != NULL else sampler_workspace(n_items)
    cdef Workspaces estimating = Workspaces(1, estimator.workspace(n_items, cutoff))
    cdef Workspaces drawers = Workspaces(n_threads, drawing)
    cdef Workspaces rankings = Workspaces(
        1, 0 if source.given != NULL else block_bytes(cutoff) * blocks_per_task * n_threads)
    cdef int32_t *drawn = <int32_t *>rankings.of_thread(0)
    cdef const int32_t *next_ranking
    cdef intp_t n_rankings, stride = cutoff if source.given == NULL else source.length
    cdef int later
    estimator.begin(estimate, estimating.of_thread(0))
    for later in range(estimator.passes - 1, -1, -1):
        estimate.passes_to_come = later
        for first in range(0, n_blocks, blocks_per_task * n_threads):
            stop = min(first + blocks_per_task * n_threads, n_blocks)
            n_rankings = min(stop * block_length, source.n_samples) - first * block_length
            if source.given != NULL:
                next_ranking = source.given + (query * source.n_samples + first * block_length) * source.length
            else:
                next_ranking = drawn
                tasks = (stop - first + blocks_per_task - 1) // blocks_per_task
                with nogil:
                    for task in prange(tasks, schedule="dynamic", num_threads=threads_for(n_threads, tasks)):
                        draw_query(
                            estimate.scores, n_items, cutoff, source.n_samples, source.key, source.first_query + query,
                            first + task * blocks_per_task, min(first + (task + 1) * blocks_per_task, stop),
                            drawers.of_thread(omp_get_thread_num()),
                            drawn + task * blocks_per_task * block_length * cutoff)
                check_interrupt()
            for i in range(0, n_rankings, rankings_per_check):
                with nogil:
                    estimator.accumulate(
                        estimate, next_ranking + i * stride, min(rankings_per_check, n_rankings - i), stride)
                check_interrupt()
    estimator.finish(estimate, source.n_samples)
    return 0


# ---------------------------------------------------------------------------------------------------------------------
# Entry point
# ---------------------------------------------------------------------------------------------------------------------

def sampled_estimate(
    int variant, const double[::1] scores, const double[::1] relevance, const double[:, ::1] rank_weights,
    const int64_t[::1] offsets, intp_t n_samples, const int32_t[:, :, ::1] rankings, const uint64_t[::1] key,
    uint64_t first_query, int n_threads, double[::1] out, double[::1] hessian
):
    """Fill ``out`` with the estimate of ``variant``, and ``hessian`` (empty if not wanted) with its diagonal.

    Variants are METRIC (one value per query), PL_RANK_1, PL_RANK_2, PL_RANK_3, CONDITIONAL, the last two with a Hessian
    diagonal if wanted, and POLICY, PLACEMENT, POLICY_WITH_BASELINE, PLACEMENT_WITH_BASELINE.
    ``rankings`` (n_queries, n_samples, length >= cutoff) are used if given, else drawn from the streams of ``key``.
    ``out`` must be zero where queries are empty.
    """
    cdef Estimator estimator = estimator_of(variant, hessian.shape[0] > 0)
    cdef Estimate estimate
    cdef Source source
    cdef bint one_per_query = variant == 0
    cdef intp_t n_queries = offsets.shape[0] - 1
    cdef intp_t start = 0, stop, q
    cdef intp_t longest = longest_query(offsets)
    cdef intp_t cutoff = min(rank_weights.shape[1], longest)
    cdef int threads
    cdef double ns_per_item
    if cutoff == 0:
        return
    source.n_samples = n_samples
    source.given = NULL
    source.length = 0
    source.key = &key[0]
    source.first_query = first_query
    if rankings is not None:
        source.given = &rankings[0, 0, 0]
        source.length = rankings.shape[2]
    ns_per_item = n_samples * estimator.passes * (NS_PER_ITEM + estimator.ns_per_item_and_rank * cutoff)
    cdef Workspaces workspaces = Workspaces(n_threads, query_workspace(&estimator, longest, cutoff, rankings is None))
    while start < n_queries:
        stop = round_stop(offsets, start, ns_per_item, n_threads)
        if not is_long(offsets, start, stop, ns_per_item):
            threads = threads_for(n_threads, stop - start)
            with nogil:
                for q in prange(start, stop, schedule="dynamic", num_threads=threads):
                    estimate_in_batch(
                        &estimator, scores, relevance, rank_weights, offsets, q, &source,
                        workspaces.of_thread(omp_get_thread_num()), out, hessian, one_per_query)
            check_interrupt()
        else:
            estimate = describe_query(
                scores, relevance, rank_weights, offsets, start, out, hessian, one_per_query)
            estimate_long_query(&estimator, &estimate, &source, start, n_threads)
        start = stop
