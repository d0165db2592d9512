"""Rankings of one query that are spread evenly over the distribution: a Latin hypercube over the draws of each rank.

Each ranking is drawn rank by rank, by inverting the distribution function of the items left over at a uniform number.
For every rank the N numbers of N rankings fall into N different strata of [0, 1), in random order, so each ranking for
itself has exactly the Plackett-Luce distribution, but together they cover it evenly. Items stand in order of relevance,
then weight, so that neighbours in [0, 1) matter alike (McKay, Beckman and Conover, 1979, for the design).

A tree of partial sums finds the item and takes it out in O(log D).
"""

from cython.parallel cimport prange
from libc.math cimport INFINITY, exp, log2

from plrank_fast._random cimport PLR_STREAM_LANES, plr_stream, plr_stream_init, plr_stream_next
from plrank_fast._selection cimport sort_pairs
from plrank_fast._threads cimport (
    ROUND_NS,
    Workspaces,
    as_observed,
    check_interrupt,
    clock,
    is_long,
    longest_query,
    most_threads,
    neighbours,
    round_stop,
    threads_for,
)
from plrank_fast._typedefs cimport int32_t, int64_t, intp_t, uint64_t

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


cdef inline size_t design_bytes(intp_t n_items, intp_t cutoff, intp_t n_samples) noexcept nogil:
    return (
        (2 * <size_t>leaves(n_items) + n_items + <size_t>cutoff * n_samples) * sizeof(double)
        + (<size_t>n_items * sizeof(int32_t) + 63) // 64 * 64)


cdef inline size_t scratch_bytes(intp_t n_items, intp_t n_samples) noexcept nogil:
    """A permutation of the strata, or a tree that items are taken out of."""
    return max(2 * <size_t>leaves(n_items) * sizeof(double), <size_t>n_samples * sizeof(int32_t))


cdef inline double ns_per_ranking(intp_t n_items, intp_t cutoff) noexcept nogil:
    cdef intp_t n_leaves = leaves(n_items)
    return 2.0 * n_leaves * NS_PER_NODE + min(cutoff, n_items) * (1.0 + log2(<double>n_leaves)) * NS_PER_LEVEL


cdef inline intp_t per_round(double ns, int n_threads) noexcept nogil:
    """Pieces of work of so long that all threads together do in a round."""
    return max(<intp_t>n_threads, <intp_t>min(1e15, ROUND_NS * n_threads / ns))


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
    cdef double *keys
    cdef double highest = -INFINITY
    design.n_items = n_items
    design.n_leaves = n_leaves
    design.cutoff = cutoff
    design.n_samples = n_samples
    design.full = <double *>memory
    design.uniforms = design.full + 2 * n_leaves
    keys = design.uniforms + cutoff * n_samples
    design.order = <int32_t *>(keys + n_items)
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
    plr_stream_init(&source.stream, key, query, rank)
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


cdef void draw_query(
    const double *scores, const double *relevance, intp_t n_items, intp_t cutoff, intp_t n_samples,
    const uint64_t *key, uint64_t query, char *workspace, int32_t *rankings
) noexcept nogil:
    """All rankings of one query into rows of ``cutoff`` items, filled up with -1. O(D log D + N (D + K log D))."""
    cdef Design design
    cdef intp_t ranks = min(cutoff, n_items), k, n
    cdef char *scratch = workspace + design_bytes(n_items, ranks, n_samples)
    if n_items > 0:
        begin_design(&design, scores, relevance, n_items, ranks, n_samples, workspace)
        for k in range(ranks):
            draw_strata(&design, k, key, query, <int32_t *>scratch)
    for n in range(n_samples):
        if n_items > 0:
            draw_ranking(&design, n, <double *>scratch, rankings + n * cutoff)
        pad_ranking(rankings + n * cutoff, ranks, cutoff)


# ---------------------------------------------------------------------------------------------------------------------
# Batch
# ---------------------------------------------------------------------------------------------------------------------

cdef int draw_long_query(
    const double *scores, const double *relevance, intp_t n_items, intp_t cutoff, intp_t n_samples,
    const uint64_t *key, uint64_t query, int n_threads, char *memory, Workspaces scratch, int32_t *rankings
) except -1:
    """One query that outlasts a round: rounds of ranks whose strata are drawn, then rounds of rankings."""
    cdef Design design
    cdef intp_t ranks = min(cutoff, n_items), i, first, last, here
    with nogil:
        begin_design(&design, scores, relevance, n_items, ranks, n_samples, memory)
    check_interrupt()
    here = per_round(n_samples * NS_PER_STRATUM, n_threads)
    for first in range(0, ranks, here):
        last = min(first + here, ranks)
        with nogil:
            for i in prange(first, last, schedule="dynamic", num_threads=threads_for(n_threads, last - first)):
                draw_strata(&design, i, key, query, <int32_t *>scratch.of_this_thread())
        check_interrupt()
    here = per_round(ns_per_ranking(n_items, cutoff), n_threads)
    for first in range(0, n_samples, here):
        last = min(first + here, n_samples)
        with nogil:
            for i in prange(first, last, schedule="dynamic", num_threads=threads_for(n_threads, last - first)):
                draw_ranking(
                    &design, i, <double *>scratch.of_this_thread(), rankings + i * cutoff)
                pad_ranking(rankings + i * cutoff, ranks, cutoff)
        check_interrupt()
    return 0


# ---------------------------------------------------------------------------------------------------------------------
# Entry point
# ---------------------------------------------------------------------------------------------------------------------

def sample_rankings(
    const double[::1] scores, const double[::1] relevance, const int64_t[::1] offsets, intp_t n_samples, intp_t cutoff,
    const uint64_t[::1] key, uint64_t first_query, int n_threads, int32_t[:, :, ::1] rankings
):
    """Fill ``rankings`` (n_queries, n_samples, cutoff), with -1 past the end of a query.

    The scores of a query must lie within 600 of each other.
    """
    cdef intp_t n_queries = offsets.shape[0] - 1
    cdef intp_t start = 0, stop, q, longest = longest_query(offsets)
    cdef int threads
    cdef double started, ns_per_item
    cdef size_t size = design_bytes(longest, min(cutoff, longest), n_samples)
    if cutoff == 0:
        return
    ns_per_item = n_samples * (ns_per_ranking(longest, cutoff) + NS_PER_STRATUM * cutoff) / longest + 20.0
    cdef Workspaces designs = Workspaces(most_threads(n_threads, n_queries), size + scratch_bytes(longest, n_samples))
    cdef Workspaces scratch = Workspaces(n_threads, scratch_bytes(longest, n_samples))
    while start < n_queries:
        stop = round_stop(offsets, start, ns_per_item, n_threads)
        if is_long(offsets, start, stop, ns_per_item):
            draw_long_query(
                &scores[0] + offsets[start], &relevance[0] + offsets[start], offsets[stop] - offsets[start], cutoff,
                n_samples, &key[0], first_query + start, n_threads, designs.of_thread(0), scratch,
                &rankings[start, 0, 0])
        else:
            threads = threads_for(n_threads, stop - start)
            started = clock()
            with nogil:
                for q in prange(
                    start, stop, schedule="dynamic", chunksize=neighbours(stop - start, threads), num_threads=threads
                ):
                    draw_query(
                        &scores[0] + offsets[q], &relevance[0] + offsets[q], offsets[q + 1] - offsets[q], cutoff,
                        n_samples, &key[0], first_query + q, designs.of_this_thread(),
                        &rankings[q, 0, 0])
            check_interrupt()
            ns_per_item = as_observed(ns_per_item, offsets, start, stop, threads, started)
        start = stop
