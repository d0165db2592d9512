"""Rankings of one query that are spread evenly over the distribution: a Latin hypercube over the draws of each rank.

Each ranking is drawn rank by rank, by inverting the distribution function of the items left over at a uniform number.
For every rank the N numbers of N rankings fall into N different strata of [0, 1), in random order, so each ranking for
itself has exactly the Plackett-Luce distribution, but together they cover it evenly. Items stand in order of relevance,
then weight, so that neighbours in [0, 1) matter alike (McKay, Beckman and Conover, 1979, for the design).

A tree of partial sums finds the item and takes it out in O(log D).
"""

from cython.parallel cimport prange
from libc.math cimport INFINITY, exp

from plrank_fast._random cimport PLR_STREAM_LANES, plr_stream, plr_stream_init, plr_stream_next
from plrank_fast._selection cimport sort_pairs
from plrank_fast._threads cimport (
    Workspaces,
    check_interrupt,
    longest_query,
    neighbours,
    omp_get_thread_num,
    round_stop,
    threads_for,
)
from plrank_fast._typedefs cimport int32_t, int64_t, intp_t, uint64_t

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


cdef size_t workspace_bytes(intp_t n_items, intp_t cutoff, intp_t n_samples) noexcept nogil:
    return (
        (4 * <size_t>leaves(n_items) + <size_t>n_items + <size_t>cutoff * n_samples) * sizeof(double)
        + (<size_t>n_items + n_samples) * sizeof(int32_t))


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


cdef void draw_strata(
    double *uniforms, int32_t *permutation, intp_t cutoff, intp_t n_samples, const uint64_t *key, uint64_t query
) noexcept nogil:
    """uniforms[k, n] for each rank k: one number in each of N strata, in random order. A stream per rank."""
    cdef Words source
    cdef intp_t k, n, other
    cdef int32_t swapped
    for k in range(cutoff):
        plr_stream_init(&source.stream, key, query, k)
        source.used = PLR_STREAM_LANES
        for n in range(n_samples):
            # Fisher and Yates from the inside out
            other = <intp_t>(next_uniform(&source) * (n + 1))
            swapped = permutation[other] if other < n else <int32_t>n
            permutation[n] = swapped
            permutation[other] = <int32_t>n
        for n in range(n_samples):
            uniforms[k * n_samples + n] = (permutation[n] + next_uniform(&source)) / n_samples


cdef void draw_query(
    const double *scores, const double *relevance, intp_t n_items, intp_t cutoff, intp_t n_samples,
    const uint64_t *key, uint64_t query, char *workspace, int32_t *rankings, intp_t stride
) noexcept nogil:
    """All rankings of one query into rows of ``stride`` items. O(D log D + N (D + K log D))."""
    cdef intp_t n_leaves = leaves(n_items), d, k, n
    cdef double *full = <double *>workspace
    cdef double *tree = full + 2 * n_leaves
    cdef double *keys = tree + 2 * n_leaves
    cdef double *uniforms = keys + n_items
    cdef int32_t *order = <int32_t *>(uniforms + cutoff * n_samples)
    cdef int32_t *permutation = order + n_items
    cdef double highest = -INFINITY
    put_in_order(scores, relevance, n_items, keys, order)
    draw_strata(uniforms, permutation, cutoff, n_samples, key, query)
    for d in range(n_items):
        highest = max(highest, scores[d])
    for d in range(n_leaves):
        full[n_leaves + d] = exp(scores[order[d]] - highest) if d < n_items else 0.0
    for d in range(n_leaves - 1, 0, -1):
        full[d] = full[2 * d] + full[2 * d + 1]
    for n in range(n_samples):
        for d in range(1, 2 * n_leaves):
            tree[d] = full[d]
        for k in range(cutoff):
            rankings[n * stride + k] = order[take_out(tree, n_leaves, uniforms[k * n_samples + n])]


# ---------------------------------------------------------------------------------------------------------------------
# Entry point
# ---------------------------------------------------------------------------------------------------------------------

def sample_rankings(
    const double[::1] scores, const double[::1] relevance, const int64_t[::1] offsets, intp_t n_samples, intp_t cutoff,
    const uint64_t[::1] key, uint64_t first_query, int n_threads, int32_t[:, :, ::1] rankings
):
    """Fill ``rankings`` (n_queries, n_samples, cutoff), preset to -1; scores of a query within 600 of each other."""
    cdef intp_t n_queries = offsets.shape[0] - 1
    cdef intp_t start = 0, stop, q
    cdef int threads
    if cutoff == 0:
        return
    cdef Workspaces workspaces = Workspaces(n_threads, workspace_bytes(longest_query(offsets), cutoff, n_samples))
    while start < n_queries:
        stop = round_stop(offsets, start, 2.0 * n_samples + 20.0, n_threads)
        threads = threads_for(n_threads, stop - start)
        with nogil:
            for q in prange(
                start, stop, schedule="dynamic", chunksize=neighbours(stop - start, threads), num_threads=threads
            ):
                if offsets[q + 1] > offsets[q]:
                    draw_query(
                        &scores[0] + offsets[q], &relevance[0] + offsets[q], offsets[q + 1] - offsets[q],
                        min(cutoff, offsets[q + 1] - offsets[q]), n_samples, &key[0], first_query + q,
                        workspaces.of_thread(omp_get_thread_num()), &rankings[q, 0, 0], cutoff)
        check_interrupt()
        start = stop
