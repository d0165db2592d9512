"""StochasticRank: the gradient of the expected metric under noise on the scores, with a term for each item overtaken.

With noisy scores u = f + noise, phi the density of the noise and k the rank that item i has among all items but j::

    g_j = sum over i != j of phi(u_i - f_j) (theta_k - theta_{k+1}) (rho_j - rho_i)

Only the K + 1 best items matter. With Gumbel noise their order is a Plackett-Luce ranking, which a sampler draws. The
noisy scores then follow from the gaps between arrival times exp(-u), which are independent and exponential at the rate
of the weight not yet placed. With normal noise, u is drawn for all items and the best are selected.

For an item not among the best, the term depends only on its score and its relevance, ``rho_j G1(f_j) - G2(f_j)``, and
G1 and G2 are smooth. They are summed over all samples at Chebyshev nodes in the score, at most 32 for an interval of
5.25 (Gumbel) or 10 (normal noise), and interpolated once per block of samples. The extra contribution to a placed item,
because those below it move up, is a suffix sum over the ranks at the same nodes. So a sample costs O(K) densities per
node, whatever D is. Interpolation errs by less than 1e-7 of the largest density, and the approximate density at nodes
by less than another 1e-7. Where an interval has no more items than nodes, the items themselves are the nodes, with
exact densities.
"""

from libc.math cimport INFINITY, NAN, M_PI, cos, exp, log, sin
from libc.string cimport memset

from plrank_fast._core.gradients.estimator cimport Estimate, Estimator, is_stopped, new_estimator
from plrank_fast._core.random.selection cimport sort_smallest
from plrank_fast._core.random.stream cimport block_size, plr_stream, start_stream
from plrank_fast._core.ranking.weights cimport PLR_LARGEST_SPREAD, Weights, weigh, weights_workspace
from plrank_fast._core.runtime.layout cimport Layout, padded, take, take_state
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t
from plrank_fast._core.runtime.simd cimport simd_level
from plrank_fast._core.sampling.introselect cimport arrival_times, shorten_gaps
from plrank_fast._core.sampling.samplers cimport (
    GROUP_RANKS, GROUP_SIZE, Sampler, draw_rows, group_bytes, prepare_sampler, sampler_workspace,
    samples_in_block, start_block,
)

cdef extern from "gradients/stochastic_rank.h" nogil:
    int PLR_GUMBEL_WIDE
    ctypedef struct noisy_ranking:
        size_t n_ranks
        double *arrivals
        double *relevance
        double *drops
        double *drop_changes
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

NOISES = {"gumbel": PLR_GUMBEL, "normal": PLR_NORMAL}

cdef enum:
    MOST_NODES = 32
    FACTORS = 5  # factors of each rank in the kernels
    NODE_SIZES = 3  # 16, 24, 32: two, three or twice two vectors of eight
    CLEARED_AT_ONCE = 1 << 16  # numbers

# Gaps between neighbours are shortened to this, which no pair can cross and where the density is 0, so that scores such
# as 1e300 do not absorb the noise
cdef double GUMBEL_GAP = 800.0
cdef double NORMAL_GAP = 64.0
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

cdef struct NoisyQuery:
    # the state of a query, with the sums over a block of its samples; arrays are padded to whole steps of the stream
    int noise
    double *levels              # scores over sigma, relative to the highest, with shortened gaps
    double *locations           # location of each item, for the kernels
    double *relevance           # minus the lowest, so that equal relevance gives exact zeros
    int32_t *order              # items by descending score
    # how samples are drawn: by their order, or by the noise of all items
    bint by_order
    Weights weights
    Sampler sampler
    char *sampler_memory        # memory of both
    plr_stream stream           # the noise of this block, or its gaps
    int32_t *rankings           # (rankings_at_once, n_ranks)
    double *inverse_sums        # (n_ranks,) of the weights that remain
    double *arrivals            # arrivals of all items
    double pivot                # pivot of ``sort_smallest``
    int32_t *kept_items
    # one sample
    noisy_ranking ranking       # its K + 1 ranks, or all; ``arrivals`` has room for all items
    const int32_t *ranked_items
    int32_t *rows               # rows of the items in the corrections of an interval, -1 for all others
    intp_t n_intervals
    intp_t n_nodes              # nodes of all intervals
    Interval *intervals
    int32_t *row                # row of each item in its interval
    int32_t *interval_of
    double *node_memory         # scores and locations of all nodes
    double *sum_memory          # sums and corrections of all intervals, one after another,
    intp_t n_sums               # their number


# ---------------------------------------------------------------------------------------------------------------------
# Per item
# ---------------------------------------------------------------------------------------------------------------------

cdef inline intp_t rankings_at_once(intp_t n_ranks) noexcept nogil:
    return GROUP_SIZE if n_ranks <= GROUP_RANKS else 1


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
    cdef size_t item_numbers = n_items * sizeof(int32_t), rank_numbers = (cutoff + 1) * sizeof(int32_t)
    query.levels = <double *>take(layout, items)
    query.locations = <double *>take(layout, items)
    query.relevance = <double *>take(layout, items)
    query.arrivals = <double *>take(layout, items)
    # an interval has more items than nodes, except the last one of items that are the nodes
    query.node_memory = <double *>take(layout, 2 * items + 2 * MOST_NODES * sizeof(double))
    query.sum_memory = <double *>take(layout, (MOST_NODES + 2) * items)
    query.intervals = <Interval *>take(layout, (n_items // 16 + 2) * sizeof(Interval))
    query.kept_items = <int32_t *>take(layout, item_numbers)
    query.order = <int32_t *>take(layout, item_numbers)
    query.row = <int32_t *>take(layout, item_numbers)
    query.interval_of = <int32_t *>take(layout, item_numbers)
    query.rows = <int32_t *>take(layout, rank_numbers)
    query.rankings = <int32_t *>take(layout, max(rank_numbers, group_bytes(n_items, cutoff + 1)))
    query.inverse_sums = <double *>take(layout, ranks)
    query.ranking.arrivals = <double *>take(layout, items)
    # the kernels read whole vectors of these, which ``begin`` clears
    query.ranking.drops = <double *>take(layout, ranks)
    query.ranking.drop_changes = <double *>take(layout, ranks)
    query.ranking.relevance = <double *>take(layout, ranks)
    query.ranking.factors = <double *>take(layout, FACTORS * ranks)
    query.sampler_memory = <char *>take(layout, weights_workspace(n_items) + sampler_workspace(n_items, cutoff + 1))


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


cdef void interpolate_items(NoisyQuery *query, const int32_t *items, intp_t n, double width) noexcept nogil:
    """Add an interval of Chebyshev nodes for items by descending score."""
    cdef intp_t n_nodes = nodes_for(query.noise, width), m
    cdef Interval *interval = add_interval(query, items, n, n_nodes)
    interval.exact = False
    for m in range(n_nodes):
        interval.scores[m] = query.levels[items[0]] - 0.5 * width * (1.0 - node_at[n_nodes // 8 - 2][m])
        interval.locations[m] = location_of(query, interval.scores[m])


cdef void compute_items(NoisyQuery *query, const int32_t *items, intp_t n) noexcept nogil:
    """Add intervals whose nodes are the items, MOST_NODES to an interval."""
    cdef Interval *interval
    cdef intp_t i, size
    while n > 0:
        size = min(n, <intp_t>MOST_NODES)
        interval = add_interval(query, items, size, padded(size))
        interval.exact = True
        for i in range(interval.n_nodes):
            interval.locations[i] = query.locations[items[min(i, size - 1)]]
        items += size
        n -= size


cdef void divide_items(NoisyQuery *query, intp_t n_items) noexcept nogil:
    """Divide the items, from the highest score down, into intervals with more items than nodes, and the others."""
    cdef intp_t first = 0, last, i, n_others = 0
    cdef int32_t *others = query.kept_items  # not yet in use
    cdef double top, width
    query.n_intervals = 0
    query.n_nodes = 0
    query.n_sums = 0
    while first < n_items:
        top = query.levels[query.order[first]]
        last = first
        while last < n_items and top - query.levels[query.order[last]] <= widest(query.noise):
            last += 1
        width = max(0.125, top - query.levels[query.order[last - 1]])  # nodes must differ even if scores do not
        if last - first > nodes_for(query.noise, width):
            interpolate_items(query, query.order + first, last - first, width)
        else:
            for i in range(first, last):
                others[n_others] = query.order[i]
                n_others += 1
        first = last
    compute_items(query, others, n_others)


cdef void begin(Estimate *estimate) noexcept nogil:
    """Set all that samples share. O(D log D)."""
    cdef NoisyQuery *query = <NoisyQuery *>estimate.state
    cdef noisy_ranking *ranking = &query.ranking
    cdef const double *rank_weights = estimate.rank_weights
    cdef intp_t n_items = estimate.n_items, cutoff = estimate.cutoff, n_ranks = min(cutoff + 1, n_items), d, k
    cdef double lowest = INFINITY
    cdef char *rest
    query.noise = estimate.noise.kind
    query.pivot = NAN
    shorten_gaps(
        estimate.scores, n_items, estimate.noise.inverse_sigma, NORMAL_GAP if query.noise == PLR_NORMAL else GUMBEL_GAP,
        ranking.arrivals, query.order, query.levels)
    if query.noise == PLR_GUMBEL and query.levels[query.order[n_items - 1]] < -PLR_LARGEST_SPREAD:
        query.noise = PLR_GUMBEL_WIDE  # exp(f) leaves the range of a double
    for d in range(n_items):
        lowest = min(lowest, estimate.relevance[d])
    for d in range(n_items):
        query.relevance[d] = estimate.relevance[d] - lowest
        query.locations[d] = location_of(query, query.levels[d])
    memset(query.locations + n_items, 0, (padded(n_items) - n_items) * sizeof(double))
    divide_items(query, n_items)
    ranking.n_ranks = n_ranks
    memset(ranking.drops, 0, <size_t>(<char *>ranking.factors - <char *>ranking.drops))
    memset(ranking.factors, 0, FACTORS * padded(cutoff + 1) * sizeof(double))
    for k in range(n_ranks):
        # the last rank has no drop if all items are placed: no item remains below it, and sums always omit its item
        if k < cutoff and k + 1 < n_items:
            ranking.drops[k] = rank_weights[k] - (rank_weights[k + 1] if k + 1 < cutoff else 0.0)
        ranking.drop_changes[k] = ranking.drops[k - 1] - ranking.drops[k] if k > 0 else 0.0
    estimate.draw.cutoff = n_ranks
    query.by_order = query.noise == PLR_GUMBEL and estimate.noise.given == NULL
    if query.by_order:
        rest = weigh(&query.weights, query.levels, n_items, query.sampler_memory)
        prepare_sampler(&query.sampler, &estimate.draw, &query.weights, &estimate.stop, rest)


# ---------------------------------------------------------------------------------------------------------------------
# Per query: samples
# ---------------------------------------------------------------------------------------------------------------------

cdef double weight_left(NoisyQuery *query) noexcept nogil:
    """Return the weight of the items that the ranks leave over, summed directly."""
    cdef double *weights = query.weights.relative
    cdef double *placed = query.ranking.arrivals  # not yet in use
    cdef double left = 0.0
    cdef intp_t d, k, n_ranks = query.ranking.n_ranks
    for k in range(n_ranks):
        placed[k] = weights[query.ranked_items[k]]
        weights[query.ranked_items[k]] = 0.0
    for d in range(query.weights.n_items):
        left += weights[d]
    for k in range(n_ranks):
        weights[query.ranked_items[k]] = placed[k]
    return left


cdef void draw_gaps(NoisyQuery *query) noexcept nogil:
    """Set the arrivals of one ranking: the gap before each rank is exponential at the rate of what remains."""
    cdef double *arrivals = query.ranking.arrivals
    cdef double placed = 0.0, left
    cdef intp_t k, n_ranks = query.ranking.n_ranks
    for k in range(n_ranks):
        placed += query.weights.relative[query.ranked_items[k]]
    left = query.weights.total - placed
    if left < 1e-3 * query.weights.total:  # the difference cancels
        left = weight_left(query)
    for k in range(n_ranks - 1, -1, -1):
        left += query.weights.relative[query.ranked_items[k]]
        query.inverse_sums[k] = 1.0 / left
    arrival_times.linear(&query.stream, query.inverse_sums, arrivals, n_ranks)
    for k in range(1, n_ranks):
        arrivals[k] += arrivals[k - 1]


cdef void draw_noise(NoisyQuery *query, intp_t n_items, const double *given) noexcept nogil:
    """Set the arrivals of all items, from noise drawn or given, and select those that rank first."""
    cdef intp_t d
    if given == NULL and query.noise == PLR_NORMAL:
        arrival_times.normal(&query.stream, query.locations, query.arrivals, n_items)
    elif given == NULL:
        arrival_times.logarithmic(&query.stream, query.locations, query.arrivals, n_items)
    else:
        for d in range(n_items):
            if query.noise == PLR_GUMBEL:
                query.arrivals[d] = given[d] / query.locations[d]
            elif query.noise == PLR_NORMAL:
                query.arrivals[d] = -(query.locations[d] + given[d])
            else:
                query.arrivals[d] = log(given[d]) - query.locations[d]
    sort_smallest(
        query.arrivals, n_items, query.ranking.n_ranks, &query.pivot, query.ranking.arrivals, query.kept_items)
    query.ranked_items = query.kept_items


cdef void add_sample(Estimate *estimate, NoisyQuery *query) noexcept nogil:
    """Add the sample that has been drawn to all nodes."""
    cdef const Interval *interval
    cdef intp_t k, i, item, n_ranks = query.ranking.n_ranks
    for k in range(n_ranks):
        query.ranking.relevance[k] = query.relevance[query.ranked_items[k]]
    for i in range(query.n_intervals):
        interval = &query.intervals[i]
        if is_stopped(estimate, interval.n_nodes * NS_PER_DENSITY * n_ranks):
            return
        for k in range(n_ranks):
            item = query.ranked_items[k]
            query.rows[k] = query.row[item] if query.interval_of[item] == i else -1
        kernels.nodes(
            query.noise, interval.exact, &query.ranking, interval.locations, query.rows, interval.sums,
            interval.corrections, interval.n_nodes)


cdef void clear_sums(Estimate *estimate, NoisyQuery *query) noexcept nogil:
    cdef intp_t first = 0, n
    while first < query.n_sums:
        n = min(query.n_sums - first, <intp_t>CLEARED_AT_ONCE)
        if is_stopped(estimate, 20.0 * n):  # the first time, when the system provides the memory
            return
        memset(query.sum_memory + first, 0, n * sizeof(double))
        first += n


cdef void add_sums(Estimate *estimate, const NoisyQuery *query) noexcept nogil:
    """Add the sums over the block's samples to the gradient, from the highest score down."""
    cdef const Interval *interval
    cdef const double *correction
    cdef intp_t i, d, row
    for i in range(estimate.n_items):
        d = query.order[i]
        if is_stopped(estimate, 100.0):
            return
        interval = &query.intervals[query.interval_of[d]]
        row = query.row[d]
        correction = interval.corrections + row * interval.n_nodes
        if interval.exact:
            estimate.gradient[d] += (
                query.relevance[d] * interval.sums[row] - interval.sums[interval.n_nodes + row] + correction[row])
        else:
            estimate.gradient[d] += kernels.interpolate(
                query.levels[d], query.relevance[d], interval.scores, node_weight[interval.n_nodes // 8 - 2],
                interval.sums, correction, interval.n_nodes)


cdef void accumulate_block(Estimate *estimate, intp_t block) noexcept nogil:
    """Add a block of samples to the gradient."""
    cdef NoisyQuery *query = <NoisyQuery *>estimate.state
    cdef intp_t n_items = estimate.n_items, n_ranks = query.ranking.n_ranks, i
    cdef intp_t n_samples = samples_in_block(&estimate.draw, n_items, block)
    cdef intp_t at_once = rankings_at_once(n_ranks)
    cdef const double *given = estimate.noise.given
    if given != NULL:
        given += block * block_size(n_items) * n_items
    if query.by_order:
        start_block(&query.sampler, &estimate.draw, block)
    # the stream of the sampler's block is another one
    start_stream(&query.stream, estimate.draw.key, estimate.draw.query, ~(estimate.draw.first_block + block))
    clear_sums(estimate, query)
    for i in range(n_samples):
        if is_stopped(estimate, NS_PER_ITEM * n_items + NS_PER_RANK * n_ranks):
            return
        if query.by_order:
            if i % at_once == 0:
                draw_rows(&query.sampler, min(at_once, n_samples - i), query.rankings, n_ranks)
            query.ranked_items = query.rankings + i % at_once * n_ranks
            draw_gaps(query)
        else:
            draw_noise(query, n_items, given + i * n_items if given != NULL else NULL)
        add_sample(estimate, query)
    add_sums(estimate, query)


cdef void scale(Estimate *estimate) noexcept nogil:
    """Take the mean, and differentiate by scores in place of scores over sigma."""
    cdef intp_t d
    for d in range(estimate.n_items):
        estimate.gradient[d] *= estimate.noise.inverse_sigma / estimate.denominator
    estimate.denominator = 1


cdef Estimator stochastic_rank_estimator() noexcept nogil:
    cdef Estimator estimator = new_estimator(lay_out, begin, NULL, scale, NS_PER_ITEM, NS_PER_RANK, NS_PER_DENSITY)
    estimator.accumulate_block = accumulate_block
    return estimator
