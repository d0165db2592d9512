"""Rankings of one query that are spread evenly over the distribution: a Latin hypercube over the draws of each rank.

Each ranking is drawn rank by rank, by inverting the distribution function of the items left over at a uniform number.
For every rank the N numbers of N rankings fall into N different strata of [0, 1), in random order, so each ranking for
itself has exactly the Plackett-Luce distribution, but together they cover it evenly. Items stand in order of relevance,
then weight, so that neighbours in [0, 1) matter alike (McKay, Beckman and Conover, 1979, for the design).

A tree of partial sums finds the item and takes it out in O(log D).
"""

from libc.math cimport INFINITY, exp, log2

from plrank_fast._core.random.selection cimport sort_pairs
from plrank_fast._core.random.stream cimport PLR_STREAM_LANES, plr_stream, start_stream, plr_stream_next
from plrank_fast._core.runtime.batch cimport Batch, batch_of, longest_query, parts_per_thread, run_batch, run_tasks
from plrank_fast._core.runtime.layout cimport Layout, layout_at, measure, take
from plrank_fast._core.runtime.queries cimport Queries, Query, queries_of, query_at
from plrank_fast._core.runtime.scalar_types cimport int32_t, int64_t, intp_t, uint64_t
from plrank_fast._core.runtime.threads cimport Workspaces, check_interrupt

cdef double NS_PER_NODE = 0.5      # of a tree that is copied
cdef double NS_PER_LEVEL = 5.0     # of a tree that an item is taken out of
cdef double NS_PER_STRATUM = 10.0

cdef struct Words:
    # a stream, word by word
    plr_stream stream
    uint64_t[8] words
    int used


# ---------------------------------------------------------------------------------------------------------------------
# Per number, per item
# ---------------------------------------------------------------------------------------------------------------------

cdef inline uint64_t next_word(Words *source) noexcept nogil:
    if source.used == PLR_STREAM_LANES:
        plr_stream_next(&source.stream, source.words)
        source.used = 0
    source.used += 1
    return source.words[source.used - 1]


cdef inline double next_uniform(Words *source) noexcept nogil:
    """On the odd multiples of 2^-53 in (0, 1)."""
    return (<double>(next_word(source) >> 12) + 0.5) * 2.220446049250313e-16


cdef inline intp_t take_out(double *tree, intp_t n_leaves, double uniform) noexcept nogil:
    """Find the leaf at this share of the total, and take it out. Rounding never leads to an empty leaf."""
    cdef intp_t node = 1, leaf
    cdef double target = uniform * tree[1], left
    while node < n_leaves:
        left = tree[2 * node]
        node *= 2
        if tree[node + 1] > 0.0 and (target >= left or left == 0.0):
            target -= left
            node += 1
    leaf = node - n_leaves
    tree[node] = 0.0
    while node > 1:
        node //= 2
        tree[node] = tree[2 * node] + tree[2 * node + 1]
    return leaf


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef inline intp_t leaves(intp_t n_items) noexcept nogil:
    cdef intp_t n = 1
    while n < n_items:
        n *= 2
    return n


cdef struct Design:
    # one query, ready to be drawn
    intp_t n_items
    intp_t n_leaves
    intp_t cutoff
    intp_t n_samples
    double *full                # (2 n_leaves,) tree of partial sums over all items
    int32_t *order              # (n_items,) item at each leaf
    double *uniforms            # (cutoff, n_samples)


cdef double *lay_out(
    Design *design, intp_t n_items, intp_t cutoff, intp_t n_samples, Layout *layout
) noexcept nogil:
    """Returns the keys that the items are sorted by."""
    design.full = <double *>take(layout, 2 * <size_t>leaves(n_items) * sizeof(double))
    design.uniforms = <double *>take(layout, <size_t>cutoff * n_samples * sizeof(double))
    design.order = <int32_t *>take(layout, n_items * sizeof(int32_t))
    return <double *>take(layout, n_items * sizeof(double))


cdef size_t design_bytes(intp_t n_items, intp_t cutoff, intp_t n_samples) noexcept nogil:
    cdef Design design
    cdef Layout layout = measure()
    lay_out(&design, n_items, cutoff, n_samples, &layout)
    return layout.next


cdef inline size_t scratch_bytes(intp_t n_items, intp_t n_samples) noexcept nogil:
    """A permutation of the strata, or a tree that items are taken out of."""
    return max(2 * <size_t>leaves(n_items) * sizeof(double), <size_t>n_samples * sizeof(int32_t))


cdef inline double ns_per_ranking(intp_t n_items, intp_t cutoff) noexcept nogil:
    cdef intp_t n_leaves = leaves(n_items)
    return 2.0 * n_leaves * NS_PER_NODE + min(cutoff, n_items) * (1.0 + log2(<double>n_leaves)) * NS_PER_LEVEL


cdef void put_in_order(
    const double *scores, const double *relevance, intp_t n_items, double *keys, int32_t *order
) noexcept nogil:
    """Items by relevance, then by score."""
    cdef intp_t d, first = 0, last
    for d in range(n_items):
        keys[d] = relevance[d]
        order[d] = <int32_t>d
    sort_pairs(keys, order, n_items)
    while first < n_items:
        last = first + 1
        while last < n_items and keys[last] == keys[first]:
            last += 1
        for d in range(first, last):
            keys[d] = scores[order[d]]
        sort_pairs(keys + first, order + first, last - first)
        first = last


cdef void begin_design(
    Design *design, const double *scores, const double *relevance, intp_t n_items, intp_t cutoff, intp_t n_samples,
    char *memory
) noexcept nogil:
    """All but the numbers to invert at. O(D log D)."""
    cdef intp_t n_leaves = leaves(n_items), d
    cdef Layout layout = layout_at(memory)
    cdef double *keys = lay_out(design, n_items, cutoff, n_samples, &layout)
    cdef double highest = -INFINITY
    design.n_items = n_items
    design.n_leaves = n_leaves
    design.cutoff = cutoff
    design.n_samples = n_samples
    put_in_order(scores, relevance, n_items, keys, design.order)
    for d in range(n_items):
        highest = max(highest, scores[d])
    for d in range(n_leaves):
        design.full[n_leaves + d] = exp(scores[design.order[d]] - highest) if d < n_items else 0.0
    for d in range(n_leaves - 1, 0, -1):
        design.full[d] = design.full[2 * d] + design.full[2 * d + 1]


cdef void draw_strata(
    const Design *design, intp_t rank, const uint64_t *key, uint64_t query, int32_t *permutation
) noexcept nogil:
    """uniforms[rank, n]: one number in each of N strata, in random order. A stream per rank."""
    cdef Words source
    cdef intp_t n, other, n_samples = design.n_samples
    cdef int32_t swapped
    start_stream(&source.stream, key, query, rank)
    source.used = PLR_STREAM_LANES
    for n in range(n_samples):
        # Fisher and Yates from the inside out
        other = <intp_t>(next_uniform(&source) * (n + 1))
        swapped = permutation[other] if other < n else <int32_t>n
        permutation[n] = swapped
        permutation[other] = <int32_t>n
    for n in range(n_samples):
        design.uniforms[rank * n_samples + n] = (permutation[n] + next_uniform(&source)) / n_samples


cdef void draw_ranking(const Design *design, intp_t sample, double *tree, int32_t *ranking) noexcept nogil:
    """O(D + K log D)."""
    cdef intp_t d, k
    for d in range(1, 2 * design.n_leaves):
        tree[d] = design.full[d]
    for k in range(design.cutoff):
        ranking[k] = design.order[
            take_out(tree, design.n_leaves, design.uniforms[k * design.n_samples + sample])]


cdef inline void pad_ranking(int32_t *ranking, intp_t first, intp_t stride) noexcept nogil:
    cdef intp_t k
    for k in range(first, stride):
        ranking[k] = -1


# ---------------------------------------------------------------------------------------------------------------------
# Batch
# ---------------------------------------------------------------------------------------------------------------------

cdef struct Call:
    Queries queries
    intp_t n_samples
    intp_t cutoff
    const uint64_t *key
    uint64_t first_query
    int32_t *rankings           # (n_queries, n_samples, cutoff)


cdef inline int32_t *rankings_of(const Call *call, intp_t query) noexcept nogil:
    return call.rankings + query * call.n_samples * call.cutoff


cdef void draw_query(const void *call_, intp_t q, char *workspace) noexcept nogil:
    """All rankings of one query into rows of ``cutoff`` items, filled up with -1. O(D log D + N (D + K log D))."""
    cdef const Call *call = <const Call *>call_
    cdef Query query = query_at(&call.queries, q)
    cdef Design design
    cdef intp_t ranks = min(call.cutoff, query.n_items), k, n
    cdef char *scratch = workspace + design_bytes(query.n_items, ranks, call.n_samples)
    cdef int32_t *rankings = rankings_of(call, q)
    begin_design(&design, query.scores, query.relevance, query.n_items, ranks, call.n_samples, workspace)
    for k in range(ranks):
        draw_strata(&design, k, call.key, call.first_query + q, <int32_t *>scratch)
    for n in range(call.n_samples):
        draw_ranking(&design, n, <double *>scratch, rankings + n * call.cutoff)
        pad_ranking(rankings + n * call.cutoff, ranks, call.cutoff)


# ---------------------------------------------------------------------------------------------------------------------
# A long query: rounds of ranks whose strata are drawn, then rounds of rankings
# ---------------------------------------------------------------------------------------------------------------------

cdef struct LongQuery:
    const Call *call
    Design design
    uint64_t stream
    int32_t *rankings
    intp_t first                # rank or ranking of the round


cdef void strata_task(const void *query_, intp_t task, char *scratch) noexcept nogil:
    cdef const LongQuery *query = <const LongQuery *>query_
    draw_strata(&query.design, query.first + task, query.call.key, query.stream, <int32_t *>scratch)


cdef void ranking_task(const void *query_, intp_t task, char *scratch) noexcept nogil:
    cdef const LongQuery *query = <const LongQuery *>query_
    cdef int32_t *ranking = query.rankings + (query.first + task) * query.call.cutoff
    draw_ranking(&query.design, query.first + task, <double *>scratch, ranking)
    pad_ranking(ranking, query.design.cutoff, query.call.cutoff)


cdef int draw_long_query(const void *call_, intp_t q, int n_threads) except -1:
    cdef const Call *call = <const Call *>call_
    cdef Query query = query_at(&call.queries, q)
    cdef LongQuery long_query
    cdef intp_t ranks = min(call.cutoff, query.n_items), here
    cdef Workspaces memory = Workspaces(1, design_bytes(query.n_items, ranks, call.n_samples))
    cdef Workspaces scratch = Workspaces(n_threads, scratch_bytes(query.n_items, call.n_samples))
    long_query.call = call
    long_query.stream = call.first_query + q
    long_query.rankings = rankings_of(call, q)
    with nogil:
        begin_design(
            &long_query.design, query.scores, query.relevance, query.n_items, ranks, call.n_samples,
            memory.of_thread(0))
    check_interrupt()
    here = n_threads * parts_per_thread(call.n_samples * NS_PER_STRATUM, ranks, n_threads)
    for long_query.first in range(0, ranks, here):
        run_tasks(strata_task, &long_query, min(here, ranks - long_query.first), n_threads, scratch)
    here = n_threads * parts_per_thread(ns_per_ranking(query.n_items, call.cutoff), call.n_samples, n_threads)
    for long_query.first in range(0, call.n_samples, here):
        run_tasks(ranking_task, &long_query, min(here, call.n_samples - long_query.first), n_threads, scratch)
    return 0


# ---------------------------------------------------------------------------------------------------------------------
# Entry point
# ---------------------------------------------------------------------------------------------------------------------

def sample_rankings(
    const double[::1] scores, const double[::1] relevance, const int64_t[::1] offsets, intp_t n_samples, intp_t cutoff,
    const uint64_t[::1] key, uint64_t first_query, int n_threads, int32_t[:, :, ::1] rankings
):
    """Fill ``rankings`` (n_queries, n_samples, cutoff), with -1 past the end of a query.

    The scores of a query must lie within ``LARGEST_SPREAD`` of each other.
    """
    cdef Call call
    cdef Batch batch = batch_of(offsets)
    cdef intp_t longest = longest_query(offsets), q, n
    if rankings.shape[0] == 0 or cutoff == 0:
        return
    for q in range(rankings.shape[0]):
        if offsets[q + 1] == offsets[q]:  # the driver passes over it
            for n in range(n_samples):
                pad_ranking(&rankings[q, n, 0], 0, cutoff)
    if longest == 0:
        return
    call.queries = queries_of(scores, relevance, None, offsets)
    call.n_samples = n_samples
    call.cutoff = cutoff
    call.key = &key[0]
    call.first_query = first_query
    call.rankings = &rankings[0, 0, 0]
    batch.call = &call
    batch.query = draw_query
    batch.long_query = draw_long_query
    batch.workspace = (
        design_bytes(longest, min(cutoff, longest), n_samples) + scratch_bytes(longest, n_samples))
    batch.ns_per_item = n_samples * (ns_per_ranking(longest, cutoff) + NS_PER_STRATUM * cutoff) / longest + 20.0
    run_batch(&batch, n_threads)
