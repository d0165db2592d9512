"""StochasticRank: the gradient of the expected metric under noise on the scores, with a term for each item overtaken.

With noisy scores u = f + noise, phi the density of the noise and k the rank that item i has among all items but j::

    g_j = sum over i != j of phi(u_i - f_j) (theta_k - theta_{k+1}) (rho_j - rho_i)

Only the K + 1 best items matter. For an item not among them, the term depends only on its score and its relevance,
``rho_j G1(f_j) - G2(f_j)``, and G1 and G2 are smooth. They are summed over all samples at Chebyshev nodes in the score,
at most 32 for a stretch of 5.25 (Gumbel) or 10 (normal noise), and interpolated once per block of samples. The extra
contribution to a placed item, because those below it move up, is a suffix sum over the ranks at the same nodes. So a
sample costs O(D) to draw and O(K) densities per node, whatever D is. Interpolation errs by less than 1e-7 of the
largest density, and the approximate density at nodes by less than another 1e-7. Stretches with no more items than nodes
are computed item by item.
"""

from libc.float cimport DBL_MAX
from libc.math cimport INFINITY, M_PI, cos, exp, log, sin
from libc.string cimport memset

from plrank_fast._core.random.selection cimport select_smallest, sort_pairs
from plrank_fast._core.random.key cimport draw_key
from plrank_fast._core.random.stream cimport block_size, plr_stream, start_stream
from plrank_fast._core.ranking.weights cimport PLR_LARGEST_SPREAD
from plrank_fast._core.runtime.batch cimport Batch, batch_of, longest_query, run_batch, run_tasks
from plrank_fast._core.runtime.layout cimport Layout, aligned, layout_at, measure, take
from plrank_fast._core.runtime.lone_query cimport LoneQuery, plain_count, plain_output, plain_threads
from plrank_fast._core.runtime.queries cimport Queries, Query, queries_of, query_at
from plrank_fast._core.runtime.scalar_types cimport int32_t, int64_t, intp_t, uint64_t
from plrank_fast._core.runtime.simd cimport simd_level
from plrank_fast._core.runtime.threads cimport ROUND_NS, Workspaces, check_interrupt

cdef extern from "gradients/stochastic_rank.h" nogil:
    int PLR_GUMBEL_WIDE
    int PLR_LISTS
    ctypedef struct noisy_ranking:
        size_t n_ranks
        const double *arrivals
        const double *relevance
        const double *drops
        const double *drop_changes
        double *factors
    ctypedef struct stochastic_rank_kernels:
        void (*arrivals)(int noise, plr_stream *stream, const double *places, double *arrivals, size_t n) noexcept nogil
        size_t (*keep_before)(
            const double *arrivals, size_t n, double pivot, double *kept, int32_t *items) noexcept nogil
        void (*early_words)(const double *places, size_t n, double pivot, uint64_t *thresholds) noexcept nogil
        size_t (*early_arrivals)(
            plr_stream *stream, const double *places, const uint64_t *thresholds, size_t n, double pivot,
            double *kept, int32_t *items) noexcept nogil
        void (*items)(
            int noise, const noisy_ranking *ranking, const double *places, const double *relevance,
            const double *own_ranks, double *gradient, size_t n) noexcept nogil
        void (*nodes)(
            int noise, const noisy_ranking *ranking, const double *places, const int32_t *rows, double *sums,
            double *corrections, size_t n) noexcept nogil
        double (*interpolate)(
            double at, double relevance, const double *node_places, const double *node_weights, const double *sums,
            const double *correction, size_t n) noexcept nogil
        void (*sort_together)(
            const double *const *lists, size_t n, uint64_t position_bits, double *keys) noexcept nogil
    const stochastic_rank_kernels *stochastic_rank_kernels_at(int level)

cdef const stochastic_rank_kernels *kernels = stochastic_rank_kernels_at(simd_level())

GUMBEL = PLR_GUMBEL
NORMAL = PLR_NORMAL

cdef enum:
    MOST_NODES = 32
    FACTORS = 5  # factors of each rank in the kernels
    NODE_SIZES = 3  # 16, 24, 32: two, three or twice two vectors of eight
    TOGETHER = 8  # samples sorted side by side, PLR_LISTS of the kernels
    RECENT = 8    # groups of samples whose latest arrival is the next pivot, which 1 sample in 65 exceeds

# Gaps between neighbours are shortened to this, which no pair can cross and where the density is 0, so that scores such
# as 1e300 do not absorb the noise
cdef double GUMBEL_GAP = 800.0
cdef double NORMAL_GAP = 64.0
cdef intp_t LONGEST_TOGETHER = 4096  # beyond this, the O(n log^2 n) of a sorting network is too slow
cdef double NS_PER_ITEM = 5.0
cdef double NS_PER_RANK = 30.0
# costs of the parts of a block, rather high
cdef double NS_PER_NUMBER_CLEARED = 20.0  # for the first time, when the system provides the memory
cdef double NS_PER_DENSITY = 2.0
cdef double NS_PER_ITEM_READ = 100.0
cdef double NS_PER_ITEM_WITHOUT_PIVOT = 80.0

cdef enum:  # stages of a block
    CLEARING
    DRAWING
    ADDING
    READING
    DONE

# Chebyshev points of the first kind on [-1, 1] and their barycentric weights, for 16 and 32 nodes
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

cdef struct Stretch:
    # a stretch of scores that is interpolated from nodes
    intp_t n_nodes
    intp_t size                 # index into node_weight
    double *scores              # (n_nodes,) positions of the nodes, for interpolation
    double *places              # (n_nodes,) these in the representation of the kernels
    double *sums                # (2, n_nodes)
    double *corrections         # (items of the stretch, n_nodes), after the sums
    intp_t first                # items order[first..last)
    intp_t last

cdef struct Problem:
    # one query; arrays over items are padded to whole steps of the random stream
    intp_t n_items
    intp_t n_ranks              # K + 1, or all items
    int noise
    double inverse_sigma
    double *levels              # scores over sigma, relative to the highest, with shortened gaps
    double *places              # of each item, in the representation of ``arrivals``
    double *arrivals            # of one sample
    double *relevance           # minus the lowest, so that equal relevance gives exact zeros
    # eight samples, sorted side by side: the items of each that arrive before a pivot
    double *kept                # (PLR_LISTS, n_items)
    int32_t *kept_items         # (PLR_LISTS, n_items)
    double *keys                # (n_items, PLR_LISTS)
    double pivot                # initially infinite
    double recent[RECENT]       # latest arrivals that counted in these groups
    double latest               # in all groups, initially infinite
    intp_t n_groups
    intp_t[TOGETHER] n_kept     # of each sample drawn in this group
    intp_t longest_kept
    uint64_t position_bits      # of the keys
    double latest_of_group
    plr_stream stream           # of this block
    uint64_t *thresholds        # of random words, for the pivot
    # the first n_ranks of one of them
    double *ranked
    int32_t *ranked_items
    int32_t *order              # items by descending score
    int32_t *row                # of each item in its stretch, -1 if it is single
    int32_t *stretch_of
    # ranks
    double *drops
    double *drop_changes
    double *ranked_relevance
    double *factors             # (FACTORS, n_ranks)
    int32_t *rows
    # single items, which are not interpolated
    intp_t n_single
    int32_t *single             # their numbers
    int32_t *single_of          # of each item, its position among them
    double *single_places
    double *single_relevance
    double *single_ranks
    double *single_gradient
    double *block_gradient
    intp_t n_stretches
    Stretch *stretches
    double *node_memory         # scores and places of all stretches, one after another
    double *sum_memory          # likewise sums and corrections,
    intp_t n_sums               # their length
    # progress of the current block
    int stage
    intp_t sample               # of the block: the next to be drawn, or to be added
    intp_t part                 # of the stage: numbers cleared, items and stretches added to, items interpolated


# ---------------------------------------------------------------------------------------------------------------------
# Per item
# ---------------------------------------------------------------------------------------------------------------------

cdef inline intp_t padded(intp_t n) noexcept nogil:
    return (n + 7) // 8 * 8


cdef inline double place_of(const Problem *problem, double level) noexcept nogil:
    return exp(level) if problem.noise == PLR_GUMBEL else level


cdef inline intp_t nodes_for(int noise, double width) noexcept nogil:
    """Return the number of nodes that interpolate the density to 1e-7 of its maximum over a stretch."""
    if noise == PLR_NORMAL:
        return 16 if width <= 4.0 else 24 if width <= 7.0 else 32
    return 16 if width <= 2.25 else 24 if width <= 3.6 else 32


cdef inline double widest(int noise) noexcept nogil:
    return 10.0 if noise == PLR_NORMAL else 5.25


# ---------------------------------------------------------------------------------------------------------------------
# Per query: layout
# ---------------------------------------------------------------------------------------------------------------------

cdef void lay_out(Problem *problem, intp_t n_items, intp_t cutoff, Layout *layout) noexcept nogil:
    cdef size_t items = padded(n_items) * sizeof(double), ranks = padded(cutoff + 1) * sizeof(double)
    cdef size_t item_numbers = padded(n_items) * sizeof(int32_t), rank_numbers = padded(cutoff + 1) * sizeof(int32_t)
    problem.levels = <double *>take(layout, items)
    problem.places = <double *>take(layout, items)
    problem.relevance = <double *>take(layout, items)
    problem.arrivals = <double *>take(layout, items)
    problem.single_places = <double *>take(layout, items)
    problem.single_relevance = <double *>take(layout, items)
    problem.single_ranks = <double *>take(layout, items)
    problem.single_gradient = <double *>take(layout, items)
    problem.block_gradient = <double *>take(layout, items)
    problem.thresholds = <uint64_t *>take(layout, items)
    problem.kept = <double *>take(layout, PLR_LISTS * items)
    problem.keys = <double *>take(layout, PLR_LISTS * items)
    problem.drops = <double *>take(layout, ranks)
    problem.drop_changes = <double *>take(layout, ranks)
    problem.ranked_relevance = <double *>take(layout, ranks)
    problem.ranked = <double *>take(layout, ranks)
    problem.factors = <double *>take(layout, FACTORS * ranks)
    # a stretch has more items than nodes
    problem.node_memory = <double *>take(layout, 2 * items)
    problem.sum_memory = <double *>take(layout, (MOST_NODES + 2) * items)
    problem.kept_items = <int32_t *>take(layout, PLR_LISTS * item_numbers)
    problem.order = <int32_t *>take(layout, item_numbers)
    problem.row = <int32_t *>take(layout, item_numbers)
    problem.stretch_of = <int32_t *>take(layout, item_numbers)
    problem.single = <int32_t *>take(layout, item_numbers)
    problem.single_of = <int32_t *>take(layout, item_numbers)
    problem.rows = <int32_t *>take(layout, rank_numbers)
    problem.ranked_items = <int32_t *>take(layout, rank_numbers)
    problem.stretches = <Stretch *>take(layout, (n_items // 16 + 1) * sizeof(Stretch))


cdef size_t workspace_size(intp_t n_items, intp_t cutoff) noexcept nogil:
    cdef Problem problem
    cdef Layout layout = measure()
    lay_out(&problem, n_items, cutoff, &layout)
    return layout.next


cdef void set_levels(Problem *problem, const double *scores) noexcept nogil:
    """Sort the items and shorten the gaps between their scores; choose between exp(f) and f for Gumbel noise."""
    cdef intp_t i, d, n_items = problem.n_items
    cdef double level = 0.0, gap, widest_gap
    for d in range(n_items):
        problem.kept[d] = -scores[d]
        problem.order[d] = <int32_t>d
    sort_pairs(problem.kept, problem.order, n_items)
    gap = (problem.kept[n_items - 1] - problem.kept[0]) * problem.inverse_sigma
    if problem.noise == PLR_GUMBEL and not (gap <= PLR_LARGEST_SPREAD):
        problem.noise = PLR_GUMBEL_WIDE
    widest_gap = NORMAL_GAP if problem.noise == PLR_NORMAL else GUMBEL_GAP
    problem.levels[problem.order[0]] = 0.0
    for i in range(1, n_items):
        gap = (problem.kept[i] - problem.kept[i - 1]) * problem.inverse_sigma
        level -= min(gap, widest_gap)
        problem.levels[problem.order[i]] = level


cdef void place_sums(Problem *problem, Stretch *stretch) noexcept nogil:
    """Lay out the sums of a stretch after those of earlier stretches."""
    stretch.sums = problem.sum_memory + problem.n_sums
    stretch.corrections = stretch.sums + 2 * stretch.n_nodes
    problem.n_sums += (2 + stretch.last - stretch.first) * stretch.n_nodes


cdef void set_stretches(Problem *problem) noexcept nogil:
    """Divide the items, from the highest score down, into stretches with more items than nodes and single items."""
    cdef intp_t first = 0, last, i, m, n_nodes
    cdef double top, width
    cdef double *nodes = problem.node_memory
    cdef Stretch *stretch
    problem.n_stretches = 0
    problem.n_sums = 0
    problem.n_single = 0
    while first < problem.n_items:
        top = problem.levels[problem.order[first]]
        last = first
        while last < problem.n_items and top - problem.levels[problem.order[last]] <= widest(problem.noise):
            last += 1
        width = max(0.125, top - problem.levels[problem.order[last - 1]])  # nodes must differ even if scores do not
        n_nodes = nodes_for(problem.noise, width)
        if last - first <= n_nodes:
            for i in range(first, last):
                problem.row[problem.order[i]] = -1
                problem.single_of[problem.order[i]] = <int32_t>problem.n_single
                problem.single[problem.n_single] = problem.order[i]
                problem.n_single += 1
        else:
            stretch = &problem.stretches[problem.n_stretches]
            stretch.n_nodes = n_nodes
            stretch.size = n_nodes // 8 - 2
            stretch.first = first
            stretch.last = last
            stretch.scores = nodes
            stretch.places = nodes + n_nodes
            nodes += 2 * n_nodes
            place_sums(problem, stretch)
            for m in range(n_nodes):
                stretch.scores[m] = top - 0.5 * width * (1.0 - node_at[stretch.size][m])
                stretch.places[m] = place_of(problem, stretch.scores[m])
            for i in range(first, last):
                problem.row[problem.order[i]] = <int32_t>(i - first)
                problem.stretch_of[problem.order[i]] = <int32_t>problem.n_stretches
            problem.n_stretches += 1
        first = last


cdef void begin_problem(
    Problem *problem, intp_t n_items, intp_t cutoff, int noise, double inverse_sigma, char *workspace
) noexcept nogil:
    """Lay out the memory, before any item is set. O(K)."""
    cdef Layout layout = layout_at(workspace)
    cdef size_t ranks = padded(cutoff + 1) * sizeof(double)
    cdef intp_t k
    lay_out(problem, n_items, cutoff, &layout)
    problem.n_items = n_items
    problem.n_ranks = min(cutoff + 1, n_items)
    problem.noise = noise
    problem.inverse_sigma = inverse_sigma
    # the kernels read whole vectors of these
    memset(problem.drops, 0, ranks)
    memset(problem.drop_changes, 0, ranks)
    memset(problem.ranked_relevance, 0, ranks)
    memset(problem.ranked, 0, ranks)
    memset(problem.factors, 0, FACTORS * ranks)
    problem.pivot = problem.latest = INFINITY
    problem.n_groups = 0
    for k in range(RECENT):
        problem.recent[k] = -INFINITY


cdef void complete_problem(
    Problem *problem, const double *relevance, const double *rank_weights, intp_t cutoff
) noexcept nogil:
    """Set the members that follow from the levels of the items. O(D)."""
    cdef intp_t n_items = problem.n_items, items = padded(problem.n_items), d, k, s
    cdef double lowest = INFINITY
    set_stretches(problem)
    for d in range(n_items):
        lowest = min(lowest, relevance[d])
    for d in range(items):
        problem.places[d] = 0.0
    for d in range(n_items):
        problem.relevance[d] = relevance[d] - lowest
        problem.places[d] = problem.levels[d] if problem.noise != PLR_GUMBEL else exp(-problem.levels[d])
    for s in range(padded(problem.n_single)):
        d = problem.single[s] if s < problem.n_single else problem.order[0]
        problem.single_places[s] = place_of(problem, problem.levels[d])
        problem.single_relevance[s] = problem.relevance[d]
        problem.single_ranks[s] = -1.0
    for k in range(problem.n_ranks):
        # the last rank has no drop if all items are placed: no item remains below it, and sums always omit its item
        problem.drops[k] = 0.0
        if k < cutoff and k + 1 < n_items:
            problem.drops[k] = rank_weights[k] - (rank_weights[k + 1] if k + 1 < cutoff else 0.0)
        problem.drop_changes[k] = problem.drops[k - 1] - problem.drops[k] if k > 0 else 0.0


cdef void share_problem(Problem *problem, const Problem *complete) noexcept nogil:
    """Share with a problem that has begun the members of a complete one that samples do not change."""
    cdef intp_t s
    problem.noise = complete.noise
    problem.levels = complete.levels
    problem.places = complete.places
    problem.relevance = complete.relevance
    problem.order = complete.order
    problem.row = complete.row
    problem.stretch_of = complete.stretch_of
    problem.drops = complete.drops
    problem.drop_changes = complete.drop_changes
    problem.n_single = complete.n_single
    problem.single = complete.single
    problem.single_of = complete.single_of
    problem.single_places = complete.single_places
    problem.single_relevance = complete.single_relevance
    for s in range(padded(problem.n_single)):
        problem.single_ranks[s] = -1.0
    problem.n_stretches = complete.n_stretches
    problem.n_sums = 0
    for s in range(problem.n_stretches):
        problem.stretches[s] = complete.stretches[s]
        place_sums(problem, &problem.stretches[s])


# ---------------------------------------------------------------------------------------------------------------------
# Per query: samples
# ---------------------------------------------------------------------------------------------------------------------

cdef void draw_arrivals(
    const Problem *problem, plr_stream *stream, const double *given, double *arrivals
) noexcept nogil:
    """Set the arrivals of one sample of the noise, drawn or given."""
    cdef intp_t d
    if given == NULL:
        kernels.arrivals(problem.noise, stream, problem.places, arrivals, padded(problem.n_items))
        return
    for d in range(problem.n_items):
        if problem.noise == PLR_GUMBEL:
            arrivals[d] = given[d] * problem.places[d]
        elif problem.noise == PLR_NORMAL:
            arrivals[d] = -(problem.places[d] + given[d])
        else:
            arrivals[d] = log(given[d]) - problem.places[d]


cdef void set_pivot(Problem *problem, double latest) noexcept nogil:
    """Set the pivot for the next samples, after a group in which ``latest`` was the last arrival that counted."""
    cdef intp_t i
    cdef double pivot = -INFINITY
    problem.latest = latest if problem.n_groups == 0 else max(problem.latest, latest)
    problem.recent[problem.n_groups % RECENT] = latest
    problem.n_groups += 1
    for i in range(RECENT):
        pivot = max(pivot, problem.recent[i])
    if pivot != problem.pivot:
        problem.pivot = pivot
        if problem.noise == PLR_GUMBEL:
            kernels.early_words(problem.places, problem.n_items, pivot, problem.thresholds)


cdef intp_t keep_best(
    Problem *problem, plr_stream *stream, const double *given, double *kept, int32_t *kept_items
) noexcept nogil:
    """Draw a sample; keep the arrivals before the pivot, or more if they are fewer than ranks; return their number.

    If a random word alone shows that an item comes after the pivot, its logarithm is not computed; this pays if few
    items are kept.
    """
    cdef intp_t n_kept = 0, k
    cdef double latest = -INFINITY
    cdef plr_stream before = stream[0]
    if (
        given == NULL and problem.noise == PLR_GUMBEL and problem.pivot < INFINITY
        and 2 * problem.n_ranks < problem.n_items
    ):
        n_kept = kernels.early_arrivals(
            stream, problem.places, problem.thresholds, problem.n_items, problem.pivot, kept, kept_items)
        if n_kept >= problem.n_ranks:
            return n_kept
        draw_arrivals(problem, &before, given, problem.arrivals)
    else:
        draw_arrivals(problem, stream, given, problem.arrivals)
        n_kept = kernels.keep_before(problem.arrivals, problem.n_items, problem.pivot, kept, kept_items)
    if n_kept < problem.n_ranks and problem.latest < INFINITY:
        n_kept = kernels.keep_before(problem.arrivals, problem.n_items, problem.latest, kept, kept_items)
    if n_kept < problem.n_ranks:
        n_kept = kernels.keep_before(problem.arrivals, problem.n_items, INFINITY, kept, kept_items)
    if n_kept > 3 * problem.n_ranks + 32:
        select_smallest(kept, kept_items, n_kept, problem.n_ranks)
        n_kept = problem.n_ranks
        if problem.pivot == INFINITY and given == NULL:  # for the rest of the first group
            for k in range(n_kept):
                latest = max(latest, kept[k])
            set_pivot(problem, latest)
    return n_kept


cdef void read_sorted(
    Problem *problem, intp_t which, intp_t n_kept, uint64_t position_bits
) noexcept nogil:
    """Take the best arrivals of one of the lists sorted together, in exact order where rounded keys were tied."""
    cdef const double *kept = problem.kept + which * padded(problem.n_items)
    cdef const int32_t *items = problem.kept_items + which * padded(problem.n_items)
    cdef const uint64_t *keys = <const uint64_t *>problem.keys + which
    cdef intp_t n_ranks = problem.n_ranks, k, j, position
    for k in range(n_kept):
        if k >= n_ranks and (keys[k * PLR_LISTS] ^ keys[(n_ranks - 1) * PLR_LISTS]) & ~position_bits:
            break
        position = keys[k * PLR_LISTS] & position_bits
        j = k
        if k >= n_ranks:
            if kept[position] >= problem.ranked[n_ranks - 1]:
                continue
            j = n_ranks - 1
        while j > 0 and problem.ranked[j - 1] > kept[position]:
            problem.ranked[j] = problem.ranked[j - 1]
            problem.ranked_items[j] = problem.ranked_items[j - 1]
            j -= 1
        problem.ranked[j] = kept[position]
        problem.ranked_items[j] = items[position]


cdef void read_alone(Problem *problem, intp_t which, intp_t n_kept) noexcept nogil:
    """Sort the best arrivals of a list that is too long for the network."""
    cdef double *kept = problem.kept + which * padded(problem.n_items)
    cdef int32_t *items = problem.kept_items + which * padded(problem.n_items)
    cdef intp_t k
    sort_pairs(kept, items, n_kept)
    for k in range(problem.n_ranks):
        problem.ranked[k] = kept[k]
        problem.ranked_items[k] = items[k]


cdef void rank_sample(Problem *problem, intp_t which) noexcept nogil:
    """Set the noisy ranking of one sample of the group, and the ranks that the next sums need."""
    cdef intp_t k, item, n_kept = problem.n_kept[which]
    if problem.longest_kept <= LONGEST_TOGETHER:
        read_sorted(problem, which, n_kept, problem.position_bits)
    else:
        read_alone(problem, which, n_kept)
    for k in range(problem.n_ranks):
        item = problem.ranked_items[k]
        problem.ranked_relevance[k] = problem.relevance[item]
        problem.rows[k] = problem.row[item]
        if problem.row[item] < 0:
            problem.single_ranks[problem.single_of[item]] = <double>k


cdef double add_to_singles(
    Problem *problem, const noisy_ranking *ranking, intp_t first, double budget
) noexcept nogil:
    """Add the sample to single items from ``first`` on, as many as the budget allows; return the cost."""
    cdef double ns_per_item = problem.n_ranks * NS_PER_DENSITY
    cdef intp_t n = min(problem.n_single - first, padded(<intp_t>min(budget / ns_per_item, 1e9) + 1))
    kernels.items(
        problem.noise, ranking, problem.single_places + first, problem.single_relevance + first,
        problem.single_ranks + first, problem.single_gradient + first, n)
    problem.part += n
    return n * ns_per_item


cdef double add_to_nodes(Problem *problem, const noisy_ranking *ranking, intp_t s) noexcept nogil:
    """Add the sample to the nodes of one stretch; return the cost."""
    cdef Stretch *stretch = &problem.stretches[s]
    cdef intp_t k, item
    if problem.n_stretches > 1:
        for k in range(problem.n_ranks):
            item = problem.ranked_items[k]
            problem.rows[k] = (
                problem.row[item] if problem.row[item] >= 0 and problem.stretch_of[item] == s else -1)
    kernels.nodes(
        problem.noise, ranking, stretch.places, problem.rows, stretch.sums, stretch.corrections, stretch.n_nodes)
    problem.part += 1
    return problem.n_ranks * (stretch.n_nodes * NS_PER_DENSITY + 1.0)


cdef double add_sample(Problem *problem, double budget) noexcept nogil:
    """Continue to add the current sample to single items, then to nodes; return the cost of this part."""
    cdef noisy_ranking ranking
    cdef intp_t k, item
    cdef double cost = 1.0
    if problem.part == 0:
        rank_sample(problem, problem.sample % TOGETHER)
    ranking.n_ranks = problem.n_ranks
    ranking.arrivals = problem.ranked
    ranking.relevance = problem.ranked_relevance
    ranking.drops = problem.drops
    ranking.drop_changes = problem.drop_changes
    ranking.factors = problem.factors
    if problem.part < problem.n_single:
        cost = add_to_singles(problem, &ranking, problem.part, budget)
    elif problem.part < problem.n_single + problem.n_stretches:
        cost = add_to_nodes(problem, &ranking, problem.part - problem.n_single)
    if problem.part < problem.n_single + problem.n_stretches:
        return cost
    for k in range(problem.n_ranks):
        item = problem.ranked_items[k]
        if problem.row[item] < 0:
            problem.single_ranks[problem.single_of[item]] = -1.0
    problem.latest_of_group = max(problem.latest_of_group, problem.ranked[problem.n_ranks - 1])
    problem.part = 0
    problem.sample += 1
    return cost


cdef void sort_group(Problem *problem, intp_t n_samples) noexcept nogil:
    """Sort the samples of a group side by side, unless they are too long for that."""
    cdef const double *lists[TOGETHER]
    cdef intp_t i, j, longest = 0, stride = padded(problem.n_items)
    for i in range(n_samples):
        longest = max(longest, problem.n_kept[i])
    problem.longest_kept = longest
    problem.latest_of_group = -INFINITY
    if longest > LONGEST_TOGETHER:
        return
    problem.position_bits = 1
    while problem.position_bits < <uint64_t>longest:
        problem.position_bits = 2 * problem.position_bits + 1
    for i in range(TOGETHER):
        # lists past the last sample repeat the first and are not read
        lists[i] = problem.kept + (i if i < n_samples else 0) * stride
    for i in range(n_samples):
        for j in range(problem.n_kept[i], longest):
            problem.kept[i * stride + j] = DBL_MAX
    kernels.sort_together(lists, longest, problem.position_bits, problem.keys)


cdef double clear_sums(Problem *problem, double budget) noexcept nogil:
    cdef intp_t n = min(problem.n_sums - problem.part, <intp_t>min(budget / NS_PER_NUMBER_CLEARED, 1e15) + 1)
    if problem.part == 0:
        memset(problem.single_gradient, 0, padded(problem.n_single) * sizeof(double))
    memset(problem.sum_memory + problem.part, 0, n * sizeof(double))
    problem.part += n
    return n * NS_PER_NUMBER_CLEARED


cdef double draw_sample(Problem *problem, const double *given) noexcept nogil:
    """Draw the next sample of the group, or take it from ``given``, the noise of the block."""
    cdef intp_t slot = problem.sample % TOGETHER, stride = padded(problem.n_items)
    if given != NULL:
        given += problem.sample * problem.n_items
    problem.n_kept[slot] = keep_best(
        problem, &problem.stream, given, problem.kept + slot * stride, problem.kept_items + slot * stride)
    problem.sample += 1
    return problem.n_items * (NS_PER_ITEM if problem.n_groups > 0 else NS_PER_ITEM_WITHOUT_PIVOT)


cdef double read_off(Problem *problem, double budget, double *total) noexcept nogil:
    """Add the sums of the block's samples to each item, from the highest score down."""
    cdef const Stretch *stretch
    cdef intp_t n = min(problem.n_items - problem.part, <intp_t>min(budget / NS_PER_ITEM_READ, 1e9) + 1), i, d
    for i in range(problem.part, problem.part + n):
        d = problem.order[i]
        if problem.row[d] < 0:
            total[d] = problem.single_gradient[problem.single_of[d]]
        else:
            stretch = &problem.stretches[problem.stretch_of[d]]
            total[d] = kernels.interpolate(
                problem.levels[d], problem.relevance[d], stretch.scores, node_weight[stretch.size], stretch.sums,
                stretch.corrections + problem.row[d] * stretch.n_nodes, stretch.n_nodes)
    problem.part += n
    return n * NS_PER_ITEM_READ


cdef inline void go_on_to(Problem *problem, int stage) noexcept nogil:
    problem.stage = stage
    problem.part = 0


cdef void begin_block(Problem *problem, const Call *call, intp_t q, intp_t block) noexcept nogil:
    go_on_to(problem, CLEARING)
    problem.sample = 0
    start_stream(&problem.stream, call.key, call.first_query + q, call.first_block + block)


cdef void work_on_block(
    Problem *problem, const Call *call, intp_t block, double budget, double *total
) noexcept nogil:
    """Continue a block for about ``budget`` nanoseconds, by at least one part; its sum goes to ``total`` (n_items,).

    Noise is drawn, or given (n_samples, n_items). The samples of a group are drawn one after another, then added.
    """
    cdef intp_t n_items = problem.n_items, length = block_size(n_items)
    cdef intp_t n_samples = min(length, call.n_samples - block * length)
    cdef const double *given = NULL
    cdef bint group_ends
    if call.given != NULL:
        given = call.given + block * length * n_items
    while problem.stage != DONE:
        if problem.stage == CLEARING:
            budget -= clear_sums(problem, budget)
            if problem.part == problem.n_sums:
                go_on_to(problem, DRAWING)
        elif problem.stage == READING:
            budget -= read_off(problem, budget, total)
            if problem.part == n_items:
                go_on_to(problem, DONE)
        else:
            budget -= draw_sample(problem, given) if problem.stage == DRAWING else add_sample(problem, budget)
            group_ends = problem.part == 0 and (problem.sample % TOGETHER == 0 or problem.sample == n_samples)
            if group_ends and problem.stage == DRAWING:
                problem.sample = (problem.sample - 1) // TOGETHER * TOGETHER
                sort_group(problem, min(<intp_t>TOGETHER, n_samples - problem.sample))
                go_on_to(problem, ADDING)
            elif group_ends:
                # the pivot only saves work: the same arrivals are ranked for any pivot
                set_pivot(problem, problem.latest_of_group)
                go_on_to(problem, DRAWING if problem.sample < n_samples else READING)
        if budget <= 0.0:
            return


cdef void add_blocks(Problem *problem, const Call *call, intp_t q, intp_t n_blocks, double *gradient) noexcept nogil:
    """Add the blocks of a query, each of which is summed by itself, in order."""
    cdef intp_t n_items = problem.n_items, block, d
    for block in range(n_blocks):
        begin_block(problem, call, q, block)
        work_on_block(problem, call, block, INFINITY, problem.block_gradient)
        for d in range(n_items):
            gradient[d] += problem.block_gradient[d]


cdef inline void finish(const Call *call, double *gradient, intp_t n_items) noexcept nogil:
    cdef intp_t d
    for d in range(n_items):
        gradient[d] *= call.inverse_sigma / call.n_samples


cdef inline double ns_per_item_and_sample(intp_t cutoff) noexcept nogil:
    """Return the rough cost of an item in a sample: ranks cost time per node and not per item, so at most ten count."""
    return NS_PER_ITEM + NS_PER_RANK * min(<double>cutoff, 10.0)


cdef inline intp_t number_of_blocks(const Call *call, intp_t n_items) noexcept nogil:
    return (call.n_samples + block_size(n_items) - 1) // block_size(n_items)


cdef void estimate_query(
    const Call *call, const double *scores, const double *relevance, intp_t n_items, const double *rank_weights,
    intp_t cutoff, intp_t q, char *workspace, double *gradient
) noexcept nogil:
    """Add the estimate of one query to ``gradient``, which must be zero; that of a single item stays so."""
    cdef Problem problem
    cdef intp_t ranks = min(cutoff, n_items)
    if n_items > 1:
        begin_problem(&problem, n_items, ranks, call.noise, call.inverse_sigma, workspace)
        set_levels(&problem, scores)
        complete_problem(&problem, relevance, rank_weights, ranks)
        add_blocks(&problem, call, q, number_of_blocks(call, n_items), gradient)
        finish(call, gradient, n_items)


# ---------------------------------------------------------------------------------------------------------------------
# Batch
# ---------------------------------------------------------------------------------------------------------------------

cdef struct BatchCall:
    Queries queries
    Call call
    double *out


cdef void estimate_in_batch(const void *call_, intp_t q, char *workspace) noexcept nogil:
    cdef const BatchCall *call = <const BatchCall *>call_
    cdef Query query = query_at(&call.queries, q)
    estimate_query(
        &call.call, query.scores, query.relevance, query.n_items, query.rank_weights, query.cutoff, q, workspace,
        call.out + query.first)


# ---------------------------------------------------------------------------------------------------------------------
# A long query: each thread has a block of samples, and a round processes a part of it; blocks are added in order
# ---------------------------------------------------------------------------------------------------------------------

cdef struct LongQuery:
    const Call *call
    Query query
    intp_t first_block           # of these rounds: task i has the block i after it
    char *memory                 # of the first task: a ``Problem``, then the sum of its block, then its workspace
    size_t next_memory           # distance to that of the next task


cdef inline Problem *problem_of(const LongQuery *query, intp_t task) noexcept nogil:
    return <Problem *>(query.memory + task * query.next_memory)


cdef inline double *sum_of(const LongQuery *query, intp_t task) noexcept nogil:
    return <double *>(query.memory + task * query.next_memory + aligned(sizeof(Problem)))


cdef void begin_task(const LongQuery *self, intp_t task) noexcept nogil:
    cdef const Query *query = &self.query
    begin_problem(
        problem_of(self, task), query.n_items, min(query.cutoff, query.n_items), self.call.noise,
        self.call.inverse_sigma, <char *>sum_of(self, task) + aligned(query.n_items * sizeof(double)))


cdef int prepare_tasks(const LongQuery *self, intp_t tasks) except -1:
    """Lay out the query once, for all tasks."""
    cdef const Query *query = &self.query
    cdef intp_t task
    with nogil:
        begin_task(self, 0)
        set_levels(problem_of(self, 0), query.scores)
    check_interrupt()
    with nogil:
        complete_problem(
            problem_of(self, 0), query.relevance, query.rank_weights, min(query.cutoff, query.n_items))
        for task in range(1, tasks):
            begin_task(self, task)
            share_problem(problem_of(self, task), problem_of(self, 0))
    return check_interrupt()


cdef void block_task(const void *query_, intp_t task, char *unused) noexcept nogil:
    cdef const LongQuery *self = <const LongQuery *>query_
    work_on_block(problem_of(self, task), self.call, self.first_block + task, ROUND_NS, sum_of(self, task))


cdef bint all_done(const LongQuery *self, intp_t tasks) noexcept nogil:
    cdef intp_t task
    for task in range(tasks):
        if problem_of(self, task).stage != DONE:
            return False
    return True


cdef int estimate_long_query(const void *call_, intp_t q, int n_threads) except -1:
    cdef const BatchCall *call = <const BatchCall *>call_
    cdef LongQuery query
    cdef intp_t n_blocks, task, tasks, d
    cdef double *gradient
    query.call = &call.call
    query.query = query_at(&call.queries, q)
    n_blocks = number_of_blocks(query.call, query.query.n_items)
    tasks = min(<intp_t>n_threads, n_blocks)
    query.next_memory = (
        aligned(sizeof(Problem)) + aligned(query.query.n_items * sizeof(double))
        + aligned(workspace_size(query.query.n_items, query.query.cutoff)))
    cdef Workspaces memory = Workspaces(1, query.next_memory * tasks)
    cdef Workspaces threads = Workspaces(n_threads, 0)  # tasks have their own memory
    query.memory = memory.of_thread(0)
    gradient = call.out + query.query.first
    prepare_tasks(&query, tasks)
    for query.first_block in range(0, n_blocks, tasks):
        tasks = min(tasks, n_blocks - query.first_block)
        for task in range(tasks):
            begin_block(problem_of(&query, task), query.call, query.query.index, query.first_block + task)
        while not all_done(&query, tasks):
            run_tasks(block_task, &query, tasks, n_threads, threads)
        for task in range(tasks):
            for d in range(query.query.n_items):
                gradient[d] += sum_of(&query, task)[d]
    finish(query.call, gradient, query.query.n_items)
    return 0


# ---------------------------------------------------------------------------------------------------------------------
# Entry points
# ---------------------------------------------------------------------------------------------------------------------

cdef void describe_batch(Batch *batch, const BatchCall *call, intp_t longest, intp_t cutoff) noexcept:
    """Set the functions and the costs of a batch."""
    batch.call = call
    batch.query = estimate_in_batch
    batch.long_query = estimate_long_query
    batch.fewest_items = 2  # a query of a single item has no gradient
    batch.workspace = workspace_size(longest, cutoff)
    batch.ns_per_item = call.call.n_samples * ns_per_item_and_sample(cutoff)


def stochastic_rank(
    int noise, double inverse_sigma, const double[::1] scores, const double[::1] relevance,
    const double[:, ::1] rank_weights, const int64_t[::1] offsets, intp_t n_samples, const double[:, ::1] given,
    const uint64_t[::1] key, uint64_t first_query, int n_threads, double[::1] out
):
    """Fill ``out`` (n_docs,), preset to 0, with the mean over samples.

    ``given`` replaces the noise of a single query, for tests: (n_samples, n_docs) standard exponential numbers E for
    Gumbel noise -log E, or standard normal ones.
    """
    cdef BatchCall call
    cdef Batch batch = batch_of(offsets)
    cdef intp_t longest = longest_query(offsets)
    cdef intp_t cutoff = min(rank_weights.shape[1], longest)
    if cutoff == 0:
        return
    call.queries = queries_of(scores, relevance, rank_weights, offsets)
    call.call.noise = noise
    call.call.inverse_sigma = inverse_sigma
    call.call.n_samples = n_samples
    call.call.given = NULL
    if given is not None:
        call.call.given = &given[0, 0]
    call.call.key = &key[0]
    call.call.first_query = first_query
    call.call.first_block = 0
    call.out = &out[0]
    describe_batch(&batch, &call, longest, cutoff)
    run_batch(&batch, n_threads)


def lone_stochastic_rank(
    int noise, double inverse_sigma, scores, relevance, rank_weights, n_samples, rng, n_threads, out, first_query
):
    """Return the estimate of one short query with plain arguments, or None. See ``runtime/lone_query``."""
    cdef BatchCall call
    cdef Batch batch
    cdef uint64_t key[2]
    cdef LoneQuery query = LoneQuery.__new__(LoneQuery)
    cdef intp_t stream = plain_count(first_query, 0)
    call.call.n_samples = plain_count(n_samples, 1)
    if (
        call.call.n_samples < 0 or stream < 0 or not plain_threads(n_threads)
        or not query.look_at(scores, relevance, rank_weights)
    ):
        return None
    call.call.noise = noise
    call.call.inverse_sigma = inverse_sigma
    call.call.given = NULL
    call.call.key = key
    call.call.first_query = stream
    call.call.first_block = 0
    batch = query.batch()
    describe_batch(&batch, &call, query.n_items, query.n_ranks)
    if (
        not plain_output(out, query.n_items) or not query.copy(&batch, query.n_items * sizeof(double))
        or not draw_key(rng, key)
    ):
        return None
    call.queries = query.queries
    call.out = <double *>query.results
    query.run(&batch)
    return query.deliver(0, query.n_items * sizeof(double), query.n_items, out)
