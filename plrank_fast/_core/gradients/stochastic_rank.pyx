"""StochasticRank: the gradient of the expected metric under noise on the scores, with a term for each item overtaken.

With noisy scores u = f + noise, phi the density of the noise and k the rank that item i has among all items but j::

    g_j = sum over i != j of phi(u_i - f_j) (theta_k - theta_{k+1}) (rho_j - rho_i)

Only the K + 1 best items matter. ``sampling/noise.pyx`` explains how they are drawn, with the times exp(-u) or -u at
which they arrive.

For an item not among the best, the term depends only on its score and its relevance, ``rho_j G1(f_j) - G2(f_j)``, and
G1 and G2 are smooth. They are summed over all samples at Chebyshev nodes in the score, at most 32 for an interval of
5.25 (Gumbel) or 10 (normal noise), and interpolated at the end. The extra contribution to a placed item, because those
below it move up, is a suffix sum over the ranks at the same nodes. So a sample costs O(K) densities per node, whatever
D is. Interpolation errs by less than 1e-7 of the largest density, and the approximate density at nodes by less than
another 1e-7. Where an interval has no more items than nodes, the items themselves are the nodes, with exact densities.
"""

from libc.math cimport M_PI, cos, exp, sin
from libc.string cimport memset

from plrank_fast._core.gradients.estimator cimport Estimate, Estimator, as_object, new_estimator
from plrank_fast._core.runtime.layout cimport Layout, padded, take, take_state
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t
from plrank_fast._core.runtime.simd cimport simd_level
from plrank_fast._core.runtime.teams cimport loop_of_team, parallel_loop, share_ranges
from plrank_fast._core.runtime.threads cimport cancellation, cancellation_of, is_cancelled
from plrank_fast._core.sampling.noise cimport PLR_GUMBEL, PLR_NORMAL
from plrank_fast._core.sampling.samplers cimport arrivals_of

cdef extern from "gradients/stochastic_rank.h" nogil:
    ctypedef struct noisy_ranking:
        size_t n_ranks
        const double *arrivals
        double *relevance
        const double *drops
        const double *drop_changes
        double *factors
    ctypedef struct stochastic_rank_kernels:
        void (*nodes)(
            int noise, bint exactly, const noisy_ranking *ranking, const double *locations, const int32_t *rows,
            double *sums, double *corrections, size_t n) noexcept nogil
        double (*interpolate)(
            double at, double relevance, const double *node_scores, const double *node_weights, const double *sums,
            const double *correction, size_t n) noexcept nogil
    const stochastic_rank_kernels *stochastic_rank_kernels_at(int level)

cdef const stochastic_rank_kernels *kernels = stochastic_rank_kernels_at(simd_level())

cdef enum:
    MOST_NODES = 32
    FACTORS = 5  # factors of each rank in the kernels
    NODE_SIZES = 3  # 16, 24, 32: two, three or twice two vectors of eight
    MOST_PARTS = 16  # of the intervals, for the threads of a team

cdef double NS_PER_ITEM = 5.0
cdef double NS_PER_RANK = 100.0  # for a ranking so long that no cache holds its items
cdef double NS_PER_DENSITY = 0.5

# Chebyshev points of the first kind on [-1, 1] and their barycentric weights, for 16, 24 and 32 nodes
cdef double[NODE_SIZES][MOST_NODES] node_at
cdef double[NODE_SIZES][MOST_NODES] node_weight


cdef void set_up_nodes() noexcept nogil:
    cdef int size, m, n
    for size in range(NODE_SIZES):
        n = 16 + 8 * size
        for m in range(n):
            node_at[size][m] = cos(M_PI * (2 * m + 1) / (2.0 * n))
            node_weight[size][m] = sin(M_PI * (2 * m + 1) / (2.0 * n)) * (1.0 if m % 2 == 0 else -1.0)


set_up_nodes()

cdef struct Interval:
    # an interval of scores in which items are interpolated from nodes, or at most MOST_NODES items that are the nodes
    bint exact                  # whether the items are the nodes: the item of row i is node i
    intp_t n_nodes              # a multiple of eight
    double *scores              # (n_nodes,) of the nodes, for interpolation
    double *locations           # (n_nodes,) of the nodes, for the kernels
    double *sums                # (2, n_nodes)
    double *corrections         # (items of the interval, n_nodes), after the sums

cdef struct Part:
    # scratch of a thread for a sample
    noisy_ranking ranking       # its K + 1 ranks, or all
    int32_t *rows               # rows of the items in the corrections of an interval, -1 for all others

cdef struct NoisyQuery:
    # the state of a query, with the sums over its samples; arrays are padded to whole vectors
    int noise
    double *relevance           # minus the lowest, so that equal relevance gives exact zeros
    double *drops               # (n_ranks,)
    double *drop_changes
    intp_t n_intervals
    intp_t n_nodes              # nodes of all intervals
    Interval *intervals
    int32_t *others             # items of the exact intervals
    int32_t *row                # row of each item in its interval
    int32_t *interval_of
    double *node_memory         # scores and locations of all nodes
    double *sum_memory          # sums and corrections of all intervals, one after another,
    intp_t n_sums               # their number
    # the samples to add
    const int32_t *samples
    intp_t n_samples
    intp_t n_parts
    Part[MOST_PARTS] parts


# ---------------------------------------------------------------------------------------------------------------------
# Per item
# ---------------------------------------------------------------------------------------------------------------------

cdef inline intp_t most_intervals(intp_t n_items) noexcept nogil:
    return n_items // 16 + 2


cdef inline double location_of(const NoisyQuery *query, double level) noexcept nogil:
    return exp(level) if query.noise == PLR_GUMBEL else level


cdef inline intp_t nodes_for(int noise, double width) noexcept nogil:
    """Return the number of nodes that interpolate the density to 1e-7 of its maximum over an interval."""
    if noise == PLR_NORMAL:
        return 16 if width <= 4.0 else 24 if width <= 7.0 else 32
    return 16 if width <= 2.25 else 24 if width <= 3.6 else 32


cdef inline double widest(int noise) noexcept nogil:
    return 10.0 if noise == PLR_NORMAL else 5.25


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef void lay_out(Layout *layout, intp_t n_items, intp_t cutoff) noexcept nogil:
    cdef NoisyQuery measured
    cdef NoisyQuery *query = <NoisyQuery *>take_state(layout, sizeof(NoisyQuery), &measured)
    cdef size_t items = padded(n_items) * sizeof(double), ranks = padded(cutoff + 1) * sizeof(double)
    cdef size_t item_numbers = n_items * sizeof(int32_t)
    cdef intp_t part
    query.relevance = <double *>take(layout, items)
    # an interval has more items than nodes, except the last one of items that are the nodes
    query.node_memory = <double *>take(layout, 2 * items + 2 * MOST_NODES * sizeof(double))
    query.sum_memory = <double *>take(layout, (MOST_NODES + 2) * items)
    query.intervals = <Interval *>take(layout, most_intervals(n_items) * sizeof(Interval))
    query.others = <int32_t *>take(layout, item_numbers)
    query.row = <int32_t *>take(layout, item_numbers)
    query.interval_of = <int32_t *>take(layout, item_numbers)
    # the kernels read whole vectors of these
    query.drops = <double *>take(layout, ranks)
    query.drop_changes = <double *>take(layout, ranks)
    for part in range(min(<intp_t>MOST_PARTS, most_intervals(n_items))):
        query.parts[part].ranking.relevance = <double *>take(layout, ranks)
        query.parts[part].ranking.factors = <double *>take(layout, FACTORS * ranks)
        query.parts[part].rows = <int32_t *>take(layout, (cutoff + 1) * sizeof(int32_t))


cdef Interval *add_interval(NoisyQuery *query, const int32_t *items, intp_t n, intp_t n_nodes) noexcept nogil:
    """Add an interval with ``n`` items."""
    cdef Interval *interval = &query.intervals[query.n_intervals]
    cdef intp_t i
    interval.n_nodes = n_nodes
    interval.scores = query.node_memory + 2 * query.n_nodes
    interval.locations = interval.scores + n_nodes
    interval.sums = query.sum_memory + query.n_sums
    interval.corrections = interval.sums + 2 * n_nodes
    query.n_nodes += n_nodes
    query.n_sums += (2 + n) * n_nodes
    for i in range(n):
        query.row[items[i]] = <int32_t>i
        query.interval_of[items[i]] = <int32_t>query.n_intervals
    query.n_intervals += 1
    return interval


cdef void interpolate_items(
    NoisyQuery *query, const int32_t *items, intp_t n, double top, double width
) noexcept nogil:
    """Add an interval of Chebyshev nodes for items by descending score, from ``top`` on."""
    cdef intp_t n_nodes = nodes_for(query.noise, width), m
    cdef Interval *interval = add_interval(query, items, n, n_nodes)
    interval.exact = False
    for m in range(n_nodes):
        interval.scores[m] = top - 0.5 * width * (1.0 - node_at[n_nodes // 8 - 2][m])
        interval.locations[m] = location_of(query, interval.scores[m])


cdef void compute_items(NoisyQuery *query, const double *levels, const int32_t *items, intp_t n) noexcept nogil:
    """Add intervals whose nodes are the items, MOST_NODES to an interval."""
    cdef Interval *interval
    cdef intp_t i, size
    while n > 0:
        size = min(n, <intp_t>MOST_NODES)
        interval = add_interval(query, items, size, padded(size))
        interval.exact = True
        for i in range(interval.n_nodes):
            interval.locations[i] = location_of(query, levels[items[min(i, size - 1)]])
        items += size
        n -= size


cdef void divide_items(NoisyQuery *query, const double *levels, const int32_t *order, intp_t n_items) noexcept nogil:
    """Divide the items, from the highest score down, into intervals with more items than nodes, and the others."""
    cdef intp_t first = 0, last, i, n_others = 0
    cdef double top, width
    query.n_intervals = 0
    query.n_nodes = 0
    query.n_sums = 0
    while first < n_items:
        top = levels[order[first]]
        last = first
        while last < n_items and top - levels[order[last]] <= widest(query.noise):
            last += 1
        width = max(0.125, top - levels[order[last - 1]])  # nodes must differ even if scores do not
        if last - first > nodes_for(query.noise, width):
            interpolate_items(query, order + first, last - first, top, width)
        else:
            for i in range(first, last):
                query.others[n_others] = order[i]
                n_others += 1
        first = last
    compute_items(query, levels, query.others, n_others)


cdef void clear(void *sums, intp_t start, intp_t stop) noexcept nogil:
    memset(<double *>sums + start, 0, (stop - start) * sizeof(double))


cdef void begin(Estimate *estimate) noexcept nogil:
    """Set all that samples share. O(D)."""
    cdef NoisyQuery *query = <NoisyQuery *>estimate.state
    cdef const double *levels = estimate.noisy.levels
    cdef const double *rank_weights = estimate.rank_weights
    cdef intp_t n_items = estimate.n_items, cutoff = estimate.cutoff, n_ranks = estimate.draw.cutoff, d, k
    cdef double lowest = estimate.relevance[0]
    query.noise = estimate.noisy.kind
    for d in range(n_items):
        lowest = min(lowest, estimate.relevance[d])
    for d in range(n_items):
        query.relevance[d] = estimate.relevance[d] - lowest
    divide_items(query, levels, estimate.noisy.order, n_items)
    share_ranges(clear, query.sum_memory, query.n_sums, estimate.n_threads)
    memset(query.drops, 0, padded(cutoff + 1) * sizeof(double))
    memset(query.drop_changes, 0, padded(cutoff + 1) * sizeof(double))
    for k in range(n_ranks):
        # the last rank has no drop if all items are placed: no item remains below it, and sums always omit its item
        if k < cutoff and k + 1 < n_items:
            query.drops[k] = rank_weights[k] - (rank_weights[k + 1] if k + 1 < cutoff else 0.0)
        query.drop_changes[k] = query.drops[k - 1] - query.drops[k] if k > 0 else 0.0
    query.n_parts = 1 if estimate.n_threads == 1 else min(<intp_t>MOST_PARTS, query.n_intervals)
    for k in range(query.n_parts):
        query.parts[k].ranking.n_ranks = n_ranks
        query.parts[k].ranking.drops = query.drops
        query.parts[k].ranking.drop_changes = query.drop_changes
        memset(query.parts[k].ranking.relevance, 0, padded(cutoff + 1) * sizeof(double))
        memset(query.parts[k].ranking.factors, 0, FACTORS * padded(cutoff + 1) * sizeof(double))


# ---------------------------------------------------------------------------------------------------------------------
# Per sample
# ---------------------------------------------------------------------------------------------------------------------

cdef void add_samples(void *estimate_, intp_t number, int thread) noexcept nogil:
    """Add samples to the nodes of a part of the intervals."""
    cdef Estimate *estimate = <Estimate *>estimate_
    cdef NoisyQuery *query = <NoisyQuery *>estimate.state
    cdef Part *part = &query.parts[number]
    cdef cancellation own = cancellation_of(thread, &estimate.stop)
    cdef cancellation *stop = &own if thread > 0 else &estimate.stop
    cdef const Interval *interval
    cdef const int32_t *sample
    cdef intp_t s, k, i, item, n_ranks = part.ranking.n_ranks
    for s in range(query.n_samples):
        sample = query.samples + s * estimate.length
        part.ranking.arrivals = arrivals_of(sample, n_ranks)
        for k in range(n_ranks):
            part.ranking.relevance[k] = query.relevance[sample[k]]
        for i in range(number * query.n_intervals // query.n_parts, (number + 1) * query.n_intervals // query.n_parts):
            interval = &query.intervals[i]
            if is_cancelled(stop, interval.n_nodes * NS_PER_DENSITY * n_ranks):
                return
            for k in range(n_ranks):
                item = sample[k]
                part.rows[k] = query.row[item] if query.interval_of[item] == i else -1
            kernels.nodes(
                query.noise, interval.exact, &part.ranking, interval.locations, part.rows, interval.sums,
                interval.corrections, interval.n_nodes)


cdef void accumulate(Estimate *estimate, const int32_t *rows, intp_t n_rankings, intp_t stride) noexcept nogil:
    cdef NoisyQuery *query = <NoisyQuery *>estimate.state
    cdef parallel_loop team = loop_of_team(estimate.n_threads)
    query.samples, query.n_samples = rows, n_rankings
    if query.n_parts == 1:
        add_samples(estimate, 0, 0)
    else:
        team.run(&team, add_samples, estimate, query.n_parts)


cdef void hand_out_range(void *estimate_, intp_t start, intp_t stop) noexcept nogil:
    """Add the sums to the gradient of items by descending score, differentiated by scores, not scores over sigma."""
    cdef Estimate *estimate = <Estimate *>estimate_
    cdef const NoisyQuery *query = <const NoisyQuery *>estimate.state
    cdef const Interval *interval
    cdef const double *correction
    cdef double value
    cdef intp_t i, d, row
    for i in range(start, stop):
        d = estimate.noisy.order[i]
        interval = &query.intervals[query.interval_of[d]]
        row = query.row[d]
        correction = interval.corrections + row * interval.n_nodes
        if interval.exact:
            value = query.relevance[d] * interval.sums[row] - interval.sums[interval.n_nodes + row] + correction[row]
        else:
            value = kernels.interpolate(
                estimate.noisy.levels[d], query.relevance[d], interval.scores, node_weight[interval.n_nodes // 8 - 2],
                interval.sums, correction, interval.n_nodes)
        estimate.gradient[d] += estimate.noise.inverse_sigma * value


cdef void hand_out(Estimate *estimate) noexcept nogil:
    cdef NoisyQuery *query = <NoisyQuery *>estimate.state
    share_ranges(hand_out_range, estimate, estimate.n_items, estimate.n_threads)
    share_ranges(clear, query.sum_memory, query.n_sums, estimate.n_threads)


cdef Estimator stochastic_rank_estimator() noexcept nogil:
    cdef Estimator estimator = new_estimator(
        lay_out, begin, accumulate, hand_out, NS_PER_ITEM, NS_PER_RANK, NS_PER_DENSITY)
    estimator.needs_noise = True
    return estimator


STOCHASTIC_RANK = as_object(stochastic_rank_estimator)
