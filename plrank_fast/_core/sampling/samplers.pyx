"""Samplers of Plackett-Luce rankings, and the rule that chooses one.

All of them draw exactly from the same distribution; they differ in cost.

``introselect``  arrival times of all items, the K that arrive first, a sort: the plain one, O(D + K log K) per ranking,
                 for scores at any distance (``sampling/introselect.pyx``)
``network``      arrival times of all items, in groups of sixteen rankings, a sorting network: up to 1024 items
                 (``network_sampler.c``)
``threshold``    arrival times of the items whose random word lets them arrive early, the same network: a head of up to
                 some 700 ranks of longer lists (``threshold_sampler.c``)
``slot_table``   draws with replacement from a table, repeats skipped: fast for a short head of a policy that is not
                 peaked, O(D) per query and O(K) per ranking (``slot_table.c`` up to 4096 items and some 150 draws,
                 else as ``guide_table``)
``guide_table``  the same with a table that takes half as long to fill, one ranking after another: fast for few
                 rankings, and for long lists (``guide_table.c``)

Sources in C are in ``kernels/sampling/groups``, whose header is the interface of all samplers but introselect.
A sampler that cannot serve a query leaves it to ``introselect``. Each block of samples has its own stream, of which
every sampler consumes the same words at any SIMD level.
"""

import numpy as np

from libc.math cimport INFINITY, log2, sqrt

from plrank_fast._core.random.key cimport draw_key, is_plain_source
from plrank_fast._core.random.stream cimport block_size, plr_mix64, start_stream
from plrank_fast._core.ranking.weights cimport (
    PLR_OCTAVES, Weights, arrivals, effective_items, expected_arrivals, sort_weights, weigh, weigh_by_team,
    weights_workspace,
)
from plrank_fast._core.runtime.arguments cimport CheckedBatch, is_plain_count, is_plain_cutoff
from plrank_fast._core.runtime.batch cimport Batch, new_batch, parts_per_thread, run_batch, run_tasks
from plrank_fast._core.runtime.buffers cimport numbers, written
from plrank_fast._core.runtime.layout cimport Layout, aligned, layout_at, measure, padded, take
from plrank_fast._core.runtime.queries cimport Queries, Query, query_at
from plrank_fast._core.runtime.scalar_types cimport int32_t, int64_t, intp_t, uint64_t
from plrank_fast._core.runtime.simd cimport simd_level
from plrank_fast._core.runtime.teams cimport loop_of_team, run_in_team
from plrank_fast._core.runtime.threads cimport Workspaces, cancellation, cancellation_of, is_cancelled
from plrank_fast._core.sampling.introselect cimport draw_ranking, introselect_workspace, prepare_introselect
from plrank_fast._core.sampling.noise cimport draw_gaps, take_gaps

cdef extern from "sampling/groups/group_samplers.h" nogil:
    ctypedef struct group_kernels:
        size_t (*size)(size_t n_items, size_t cutoff) noexcept nogil
        void (*prepare)(void *sampler, const group_query *query) noexcept nogil
        void (*draw_group)(
            void *sampler, plr_stream *stream, uint64_t salt, uint64_t first_sample, size_t n_lanes, int32_t *columns
        ) noexcept nogil
    ctypedef struct guide_table_kernels:
        group_kernels sampler
        size_t (*own_size)(size_t cutoff) noexcept nogil
        void (*share)(void *sampler, const void *prepared) noexcept nogil
        void (*look_up)(const void *sampler, const uint64_t *words, size_t n, int32_t *items) noexcept nogil
    const group_kernels *network_kernels_at(int level)
    const group_kernels *slot_table_kernels_at(int level)
    const group_kernels *threshold_kernels_at(int level)
    const guide_table_kernels *guide_table_kernels_at(int level)
    const int PLR_NETWORK_ITEMS, PLR_SLOT_ITEMS, PLR_FEW_ROWS, PLR_THRESHOLD_CANDIDATES
    const double PLR_FLOAT_SPREAD
    double plr_mean_candidates(size_t cutoff)
    size_t plr_most_candidates(size_t cutoff)
    size_t plr_guide_draws(size_t cutoff)

cdef const guide_table_kernels *guide = guide_table_kernels_at(simd_level())
cdef const group_kernels *in_groups[N_SAMPLERS]
in_groups[NETWORK] = network_kernels_at(simd_level())
in_groups[TABLE] = slot_table_kernels_at(simd_level())
in_groups[THRESHOLD] = threshold_kernels_at(simd_level())
in_groups[GUIDE] = &guide.sampler

cdef double LOG_2 = 0.6931471805599453
NS_PER_ITEM = 4.0
cdef object INT32 = np.dtype(np.int32), EMPTY = np.empty
cdef dict SAMPLERS = {
    "auto": AUTO, "introselect": INTROSELECT, "network": NETWORK, "slot_table": TABLE,
    "threshold": THRESHOLD, "guide_table": GUIDE,
}
SAMPLER_NAMES = tuple(SAMPLERS)


# ---------------------------------------------------------------------------------------------------------------------
# The rule
# ---------------------------------------------------------------------------------------------------------------------
#
# The cost of a query is a sum of terms, in ns: what ``cost_at`` counts, times its rate. ``asv_benchmarks/
# sampler_costs.py`` measures the rates and prints them as source. They are those of a mean over the SIMD levels, on
# which no choice may depend.

cdef double[6][5] RATES = [
    [351.0, 0.972, 0.0, 0.0, 0.0],       # the spread of the weights, for which the last three samplers ask
    [241.0, 4.04, 44.8, 2.13, 8.5],      # introselect
    [243.0, 4.3, 0.0, 0.271, 0.0413],    # network
    [240.0, 9.37, 2.37, 1.22, 0.0147],   # slot table
    [261.0, 4.5, 0.284, 0.494, 0.0],     # threshold
    [426.0, 3.83, 0.0, 9.81, 2.65],      # guide table
]


cdef inline double cost_at(
    const double *rates, int sampler, intp_t n_items, intp_t cutoff, intp_t n_samples, double rows
) noexcept nogil:
    """Return the cost of a query at the rates of a sampler: of the query, its items, and the work of drawing.

    ``rows`` is the number of draws from a table that a ranking takes. A group costs the same however few of its
    rankings are used: the samplers of groups pay for all of its lanes.
    """
    cdef double lanes = (n_samples + GROUP_SIZE - 1) // GROUP_SIZE * GROUP_SIZE, candidates
    cdef double cost = rates[0] + rates[1] * n_items
    if sampler == INTROSELECT:
        return cost + n_samples * (rates[2] + rates[3] * n_items + rates[4] * cutoff)
    if sampler == NETWORK:  # rows of more than 128 items leave the first-level cache
        return cost + lanes * n_items * (
            rates[2] + log2(max(16.0, cutoff + 1.0)) * (rates[3] + (rates[4] if n_items > 128 else 0.0)))
    if sampler == TABLE:
        return cost + lanes * (rates[2] + rows * (rates[3] + rates[4] * rows))
    if sampler == THRESHOLD:
        candidates = max(25.0, plr_mean_candidates(cutoff))
        return cost + lanes * (rates[2] * n_items + rates[3] * candidates * log2(candidates))
    if sampler == GUIDE:
        return cost + n_samples * (rates[2] + rates[3] * max(8.0, rows) + rates[4] * cutoff)
    return cost


cdef inline double cost_of(
    int sampler, intp_t n_items, intp_t cutoff, intp_t n_samples, double rows=0.0
) noexcept nogil:
    return cost_at(RATES[sampler], sampler, n_items, cutoff, n_samples, rows)


cdef inline bint candidates_suffice(intp_t n_items, intp_t cutoff) noexcept nogil:
    """Return whether the threshold sampler has room for the candidates, and few enough of them to pay."""
    return (
        <intp_t>plr_most_candidates(cutoff) <= PLR_THRESHOLD_CANDIDATES and plr_mean_candidates(cutoff) < 0.8 * n_items)


cdef inline bint few_repeats(intp_t n_items, intp_t cutoff) noexcept nogil:
    """Return whether a table may pay: it does not if every other draw would be a repeat."""
    return 2 * cutoff <= n_items and cutoff <= GROUP_RANKS


cdef inline bint network_serves(const Weights *weights) noexcept nogil:
    """Return whether the arrival times of groups, float32, can represent the weights, and there are few enough."""
    return weights.n_items <= PLR_NETWORK_ITEMS and weights.spread <= PLR_FLOAT_SPREAD


cdef inline bint threshold_serves(const Weights *weights, intp_t cutoff) noexcept nogil:
    """Return whether the octaves hold all weights, and there are few enough candidates."""
    return weights.spread < (PLR_OCTAVES - 2) * LOG_2 and candidates_suffice(weights.n_items, cutoff)


cdef double expect_draws(Sampler *sampler, const Weights *weights, double most) noexcept nogil:
    """Return how many draws with replacement show ``cutoff`` different items in the slowest of sixteen rankings.

    The mean and the deviation go to ``sampler.query``. The result is infinity if the mean is more than ``most``.
    """
    cdef group_query *query = &sampler.query
    cdef arrivals last = expected_arrivals(sampler.octaves, sampler.cutoff, most / weights.total)
    query.mean_draws = last.time * weights.total
    # draws come at the rate of the total weight; part of the variance of the number of different items among them is
    # due to the number of draws
    query.draws_per_item = 1.0
    query.deviation = 0.0
    if last.time < INFINITY:
        query.draws_per_item = weights.total / last.rate
        query.deviation = query.draws_per_item * sqrt(
            max(0.0, last.variance - last.time * last.rate * last.rate / weights.total))
    return query.mean_draws + 2.0 * query.deviation + 1.0


cdef bint asks_for_spread(const Weights *weights, intp_t cutoff, intp_t n_samples, double least) noexcept nogil:
    """Return whether a sampler that uses the spread of the weights may cost less than ``least``.

    The number of draws is that of as many equal weights as have the same chance of a repeat, at first of all items.
    """
    cdef intp_t n_items = weights.n_items
    cdef double rows, ratio = cutoff / <double>n_items
    cdef int attempt
    if candidates_suffice(n_items, cutoff) and cost_of(THRESHOLD, n_items, cutoff, n_samples) < least:
        return True
    if not few_repeats(n_items, cutoff):
        return False
    for attempt in range(2):
        rows = cutoff * (1.0 + ratio * (0.5 + ratio / 3.0)) + 1.0  # nearly n log(n / (n - K)) + 1, for a ratio of K / n
        if (cost_of(GUIDE, n_items, cutoff, n_samples, rows) >= least
                and cost_of(TABLE, n_items, cutoff, n_samples, rows) >= least):
            return False
        if attempt == 0:
            ratio = cutoff / effective_items(weights)
    return True


cdef int fastest_sampler(Sampler *sampler, const Weights *weights, intp_t n_samples) noexcept nogil:
    """Return the sampler of least cost for a query."""
    cdef intp_t n_items = sampler.n_items, cutoff = sampler.cutoff
    cdef int fastest = INTROSELECT
    cdef double least = cost_of(INTROSELECT, n_items, cutoff, n_samples), cost, rows, looking
    if network_serves(weights):
        cost = cost_of(NETWORK, n_items, cutoff, n_samples)
        if cost < least:
            fastest = NETWORK
            least = cost
    looking = cost_of(AUTO, n_items, cutoff, n_samples)
    # a look at the spread, which may be in vain, must promise to save half of what it takes
    if not weights.representable or not asks_for_spread(weights, cutoff, n_samples, least - 0.5 * looking):
        return fastest
    sampler.octaves = sort_weights(weights)
    least += looking  # the rates of the samplers below include it
    if threshold_serves(weights, cutoff):
        cost = cost_of(THRESHOLD, n_items, cutoff, n_samples)
        if cost < least:
            fastest = THRESHOLD
            least = cost
    if few_repeats(n_items, cutoff):
        rows = expect_draws(sampler, weights, least)
        cost = cost_of(GUIDE, n_items, cutoff, n_samples, rows)
        if cost < least and rows <= plr_guide_draws(cutoff):
            fastest = GUIDE
            least = cost
        if n_items <= PLR_SLOT_ITEMS and rows <= PLR_FEW_ROWS:
            if cost_of(TABLE, n_items, cutoff, n_samples, rows) < least:
                fastest = TABLE
    return fastest


cdef int choose_sampler(Sampler *sampler, const Draw *draw, const Weights *weights) noexcept nogil:
    """Return the sampler for one query: the requested one if it can serve the query, the fastest for "auto".

    The choice depends only on the query and the arguments of the call, so the same call draws the same rankings
    everywhere.
    """
    cdef int requested = draw.sampler
    cdef double rows
    if draw.noisy != NULL and not draw.noisy.by_order:
        return INTROSELECT
    if requested == AUTO:
        return fastest_sampler(sampler, weights, draw.n_samples)
    if requested == NETWORK and network_serves(weights):
        return NETWORK
    if requested == INTROSELECT or requested == NETWORK or not weights.representable:
        return INTROSELECT
    sampler.octaves = sort_weights(weights)
    if requested == THRESHOLD:
        return THRESHOLD if threshold_serves(weights, sampler.cutoff) else INTROSELECT
    if sampler.cutoff > GROUP_RANKS:
        return INTROSELECT
    rows = expect_draws(sampler, weights, 1e9)
    if requested == GUIDE or weights.n_items > PLR_SLOT_ITEMS:
        return GUIDE
    return TABLE if rows <= PLR_FEW_ROWS else INTROSELECT


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef size_t group_bytes(intp_t n_items, intp_t cutoff) noexcept nogil:
    """Return the bytes of the columns of a group; deeper rankings are always rows, by introselect."""
    return aligned(min(min(cutoff, n_items), <intp_t>GROUP_RANKS) * GROUP_SIZE * sizeof(int32_t))


cdef void take_output(Sampler *sampler, intp_t n_items, intp_t cutoff, bint noisy, Layout *layout) noexcept nogil:
    """Lay out what a thread draws into: the columns of a group, and gaps between arrivals."""
    sampler.columns = <int32_t *>take(layout, group_bytes(n_items, cutoff))
    if noisy:
        take_gaps(&sampler.gaps, n_items, cutoff, layout)


cdef size_t output_bytes(intp_t n_items, intp_t cutoff, bint noisy) noexcept nogil:
    cdef Sampler sampler
    cdef Layout layout = measure()
    take_output(&sampler, n_items, cutoff, noisy, &layout)
    return layout.next


cdef size_t method_bytes(int method, intp_t n_items, intp_t cutoff) noexcept nogil:
    """Return the bytes of the state of a sampler, for a query of at most ``n_items``."""
    if method == INTROSELECT:
        return introselect_workspace(n_items)
    return in_groups[method].size(n_items, min(min(cutoff, n_items), <intp_t>GROUP_RANKS))


cdef size_t sampler_workspace(intp_t n_items, intp_t cutoff, bint noisy) noexcept nogil:
    """Return the bytes of the largest sampler."""
    cdef size_t size = 0
    cdef int method
    for method in range(INTROSELECT, N_SAMPLERS):
        size = max(size, method_bytes(method, n_items, cutoff))
    return output_bytes(n_items, cutoff, noisy) + size


cdef double ns_per_ranking(const Sampler *sampler) noexcept nogil:
    """Return the rough cost of a ranking."""
    cdef double draws = sampler.query.mean_draws
    if sampler.method == INTROSELECT:  # the rates leave out the logarithm of the sort, most of a long ranking's cost
        return cost_of(INTROSELECT, sampler.n_items, sampler.cutoff, 1) + sampler.cutoff * log2(sampler.cutoff + 1.0)
    if sampler.method == GUIDE and 2.0 * draws < plr_guide_draws(sampler.cutoff):  # or a race may follow
        return 10.0 * draws
    return NS_PER_ITEM * sampler.n_items


cdef void begin_sampler(Sampler *sampler, const Weights *weights, cancellation *stop, char *workspace) noexcept nogil:
    """Prepare the chosen method in a workspace. Once ``stop``, unless NULL, has been requested, nothing is drawn."""
    cdef Layout layout = layout_at(workspace)
    sampler.stop = stop
    if stop != NULL:
        sampler.ns_per_ranking = ns_per_ranking(sampler)
    take_output(sampler, sampler.n_items, sampler.cutoff, sampler.noisy != NULL, &layout)
    sampler.in_groups = <void *>layout.next
    if sampler.method == INTROSELECT:
        prepare_introselect(&sampler.introselect, weights, sampler.cutoff, sampler.noisy, <char *>layout.next)
    else:
        in_groups[sampler.method].prepare(sampler.in_groups, &sampler.query)


cdef void plan_sampler(Sampler *sampler, const Draw *draw, const Weights *weights) noexcept nogil:
    """Choose a sampler to draw the first ranks of one query. O(D)."""
    cdef intp_t n_items = weights.n_items, cutoff = min(draw.cutoff, n_items)
    sampler.n_items = n_items
    sampler.cutoff = cutoff
    sampler.noisy = draw.noisy
    sampler.query.n_items = n_items
    sampler.query.cutoff = cutoff
    sampler.query.weights = weights.relative
    sampler.query.total = weights.total
    sampler.query.loop = loop_of_team(weights.n_threads)
    sampler.method = choose_sampler(sampler, draw, weights)
    if sampler.method == THRESHOLD:
        sampler.query.deadline = expected_arrivals(sampler.octaves, plr_mean_candidates(cutoff), 1e30).time
        if not sampler.query.deadline < INFINITY:  # too many items would be candidates for it to pay
            sampler.method = NETWORK if n_items <= PLR_NETWORK_ITEMS else INTROSELECT


cdef void prepare_sampler(
    Sampler *sampler, const Draw *draw, const Weights *weights, cancellation *stop, char *workspace
) noexcept nogil:
    """Choose a sampler and prepare it to draw the first ranks of one query. O(D); O(D log D) at huge score gaps."""
    plan_sampler(sampler, draw, weights)
    begin_sampler(sampler, weights, stop, workspace)


# ---------------------------------------------------------------------------------------------------------------------
# Per block
# ---------------------------------------------------------------------------------------------------------------------

cdef void start_block(Sampler *sampler, const Draw *draw, uint64_t block) noexcept nogil:
    """Set ``sampler`` to the stream of one block of the draw; noise and gaps have another one."""
    start_stream(&sampler.stream, draw.key, draw.query, draw.first_block + block)
    sampler.salt = plr_mix64(sampler.stream.word[0][0] + sampler.stream.word[1][1])
    sampler.n_drawn = 0
    if sampler.noisy != NULL:
        start_stream(&sampler.gaps.stream, draw.key, draw.query, ~(draw.first_block + block))
        if sampler.noisy.given != NULL:
            sampler.introselect.given = sampler.noisy.given + block * block_size(sampler.n_items) * sampler.n_items


cdef int32_t *draw_group(Sampler *sampler, intp_t n_rankings) noexcept nogil:
    """Draw the next GROUP_SIZE rankings of the block by rank, (cutoff, GROUP_SIZE); ``n_rankings`` are defined."""
    cdef intp_t i
    if sampler.method == INTROSELECT:
        for i in range(n_rankings):
            draw_ranking(&sampler.introselect, &sampler.stream, sampler.columns + i, GROUP_SIZE)
    else:
        in_groups[sampler.method].draw_group(
            sampler.in_groups, &sampler.stream, sampler.salt, sampler.n_drawn, n_rankings, sampler.columns)
    sampler.n_drawn += n_rankings
    return sampler.columns


cdef inline bint drawing_is_stopped(Sampler *sampler, double n_rankings) noexcept nogil:
    return sampler.stop != NULL and is_cancelled(sampler.stop, n_rankings * sampler.ns_per_ranking)


cdef void add_arrivals(Sampler *sampler, int32_t *row) noexcept nogil:
    """Write the arrivals of the ranking just drawn behind it."""
    cdef double *times = arrivals_of(row, sampler.cutoff)
    cdef intp_t k
    if sampler.noisy.by_order:
        draw_gaps(
            &sampler.gaps, sampler.query.weights, sampler.query.total, sampler.n_items, row, sampler.cutoff, times)
        return
    for k in range(padded(sampler.cutoff)):
        times[k] = sampler.introselect.keys[k] if k < sampler.cutoff else 0.0


cdef void transpose(
    const int32_t *columns, intp_t n_lanes, intp_t cutoff, int32_t *rankings, intp_t stride
) noexcept nogil:
    cdef intp_t i, k
    for i in range(n_lanes):
        for k in range(cutoff):
            rankings[i * stride + k] = columns[k * GROUP_SIZE + i]


cdef void draw_rows(Sampler *sampler, intp_t n_rankings, int32_t *rankings, intp_t stride) noexcept nogil:
    """Draw the next ``n_rankings`` of the block into rows: a multiple of GROUP_SIZE, or up to the last."""
    cdef bint singly = sampler.method == INTROSELECT or sampler.method == GUIDE
    cdef intp_t first = 0, i, n_lanes, at_once = 1 if singly else GROUP_SIZE
    cdef bint of_noise = sampler.noisy != NULL and not sampler.noisy.by_order
    cdef int32_t *rows
    while first < n_rankings and not drawing_is_stopped(sampler, at_once):
        n_lanes = min(at_once, n_rankings - first)
        rows = rankings + first * stride
        if sampler.method == INTROSELECT:
            draw_ranking(&sampler.introselect, &sampler.gaps.stream if of_noise else &sampler.stream, rows, 1)
        else:
            transpose(draw_group(sampler, n_lanes), n_lanes, sampler.cutoff, rows, stride)
        if sampler.noisy != NULL:
            for i in range(n_lanes):
                add_arrivals(sampler, rows + i * stride)
        first += n_lanes


cdef void draw_row_blocks(
    Sampler *sampler, const Draw *draw, intp_t first_block, intp_t last_block, int32_t *rankings, intp_t stride
) noexcept nogil:
    """Draw blocks [first_block, last_block) of a query, as far as they exist, into rows."""
    cdef intp_t block, block_length = block_size(sampler.n_items)
    for block in range(first_block, min(last_block, number_of_blocks(draw, sampler.n_items))):
        start_block(sampler, draw, block)
        draw_rows(
            sampler, samples_in_block(draw, sampler.n_items, block),
            rankings + (block - first_block) * block_length * stride, stride)


cdef void draw_query(
    const Draw *draw, const double *scores, intp_t n_items, char *workspace, int32_t *rankings
) noexcept nogil:
    """Draw all rankings of one query, in rows of ``draw.cutoff`` ranks."""
    cdef Weights weights
    cdef Sampler sampler
    workspace = weigh(&weights, scores, n_items, workspace)
    prepare_sampler(&sampler, draw, &weights, NULL, workspace)
    draw_row_blocks(&sampler, draw, 0, draw.n_samples, rankings, draw.cutoff)


# ---------------------------------------------------------------------------------------------------------------------
# Samplers of threads, for the blocks of one long query
# ---------------------------------------------------------------------------------------------------------------------

cdef struct ThreadSampler:
    bint ready                   # whether the sampler has been prepared
    cancellation stop
    Sampler sampler

cdef struct Round:
    const Draw *draw
    const Weights *weights
    Sampler *prepared            # of the calling thread; others have the same method
    intp_t first_block, last_block, blocks_per_task
    int32_t *rankings            # OUT, rows from the first block on


cdef struct Preparing:
    const Draw *draw
    const Weights *weights
    ThreadSampler *own           # NULL: only choose a sampler
    Sampler chosen


cdef void prepare_in_team(void *preparing_) noexcept nogil:
    cdef Preparing *preparing = <Preparing *>preparing_
    cdef ThreadSampler *own = preparing.own
    if own == NULL:
        plan_sampler(&preparing.chosen, preparing.draw, preparing.weights)
    else:
        begin_sampler(&own.sampler, preparing.weights, &own.stop, <char *>own + aligned(sizeof(ThreadSampler)))


cdef Workspaces prepared_sampler(const Draw *draw, const Weights *weights):
    """Return the workspace with the sampler of the calling thread."""
    cdef Preparing preparing
    preparing.draw, preparing.weights, preparing.own = draw, weights, NULL
    run_in_team(prepare_in_team, &preparing, weights.n_threads)
    cdef Workspaces workspace = Workspaces(
        1, aligned(sizeof(ThreadSampler)) + output_bytes(weights.n_items, draw.cutoff, draw.noisy != NULL)
        + method_bytes(preparing.chosen.method, weights.n_items, draw.cutoff))
    preparing.own = <ThreadSampler *>workspace.of_thread(0)
    preparing.own.sampler = preparing.chosen
    preparing.own.stop = cancellation_of(0, NULL)
    run_in_team(prepare_in_team, &preparing, weights.n_threads)
    return workspace


cdef Workspaces thread_samplers(Workspaces prepared, int n_threads):
    """Return workspaces for the samplers of all threads, which prepare them, or share the table of ``prepared``."""
    cdef ThreadSampler *first = <ThreadSampler *>prepared.of_thread(0)
    cdef ThreadSampler *own
    cdef Sampler *sampler = &first.sampler
    cdef size_t size = 0
    cdef int thread
    if sampler.method == GUIDE:
        size = guide.own_size(sampler.cutoff)
    elif n_threads > 1:
        size = method_bytes(sampler.method, sampler.n_items, sampler.cutoff)
    cdef Workspaces workspaces = Workspaces(
        n_threads,
        aligned(sizeof(ThreadSampler)) + output_bytes(sampler.n_items, sampler.cutoff, sampler.noisy != NULL) + size)
    for thread in range(n_threads):
        own = <ThreadSampler *>workspaces.of_thread(thread)
        own.ready = False
        own.stop = cancellation_of(thread, &first.stop)
    return workspaces


cdef Sampler *sampler_of_thread(const Round *drawing, char *workspace) noexcept nogil:
    """Return the sampler in a thread's workspace, which the first use prepares."""
    cdef ThreadSampler *own = <ThreadSampler *>workspace
    cdef Sampler *sampler = &own.sampler
    cdef Layout layout = layout_at(workspace + aligned(sizeof(ThreadSampler)))
    if own.stop.of_caller == NULL:
        return drawing.prepared
    if own.ready:
        return sampler
    own.ready = True
    sampler[0] = drawing.prepared[0]
    if sampler.method != GUIDE:
        begin_sampler(sampler, drawing.weights, &own.stop, <char *>layout.next)
        return sampler
    sampler.stop = &own.stop
    take_output(sampler, sampler.n_items, sampler.cutoff, sampler.noisy != NULL, &layout)
    sampler.in_groups = <void *>layout.next
    guide.share(sampler.in_groups, drawing.prepared.in_groups)
    return sampler


cdef void draw_task(const void *drawing_, intp_t task, char *workspace) noexcept nogil:
    cdef const Round *drawing = <const Round *>drawing_
    cdef intp_t first = task * drawing.blocks_per_task
    cdef intp_t stride = row_length(drawing.draw.cutoff, drawing.draw.noisy != NULL)
    draw_row_blocks(
        sampler_of_thread(drawing, workspace), drawing.draw,
        drawing.first_block + first, min(drawing.first_block + first + drawing.blocks_per_task, drawing.last_block),
        drawing.rankings + first * block_size(drawing.weights.n_items) * stride, stride)


cdef int draw_long(
    const Draw *draw, const Weights *weights, int n_threads, int32_t *rankings, round_function use, void *user,
    int n_passes
) except -1:
    """Draw a query that outlasts a round: tasks are ranges of its blocks, and each round gives every thread one.

    All rankings go to ``rankings``. If that is NULL, each round has the same memory, and ``use`` is called at its end.
    """
    cdef intp_t block_length = block_size(weights.n_items), n_blocks = number_of_blocks(draw, weights.n_items)
    cdef intp_t block_items = block_length * row_length(draw.cutoff, draw.noisy != NULL), n_tasks
    cdef int passed
    cdef Workspaces prepared = prepared_sampler(draw, weights), memory = None
    cdef Workspaces samplers = thread_samplers(prepared, n_threads)
    cdef Round drawing = Round(draw, weights, &(<ThreadSampler *>prepared.of_thread(0)).sampler, 0, 0, 0, rankings)
    cdef double ns_per_block = block_length * drawing.prepared.ns_per_ranking
    drawing.blocks_per_task = parts_per_thread(ns_per_block, n_blocks, n_threads)
    if rankings == NULL:  # at most a megabyte for each thread
        drawing.blocks_per_task = min(
            drawing.blocks_per_task, max(<intp_t>1, <intp_t>((1 << 20) // (block_items * sizeof(int32_t)))))
        memory = Workspaces(1, drawing.blocks_per_task * n_threads * block_items * sizeof(int32_t))
        drawing.rankings = <int32_t *>memory.of_thread(0)
    for passed in range(n_passes):
        for drawing.first_block in range(0, n_blocks, drawing.blocks_per_task * n_threads):
            drawing.last_block = min(drawing.first_block + drawing.blocks_per_task * n_threads, n_blocks)
            n_tasks = (
                drawing.last_block - drawing.first_block + drawing.blocks_per_task - 1) // drawing.blocks_per_task
            if rankings != NULL:
                drawing.rankings = rankings + drawing.first_block * block_items
            run_tasks(draw_task, &drawing, n_tasks, drawing.blocks_per_task * ns_per_block, n_threads, samplers)
            if use != NULL:
                use(user, passed, drawing.rankings,
                    min(drawing.last_block * block_length, draw.n_samples) - drawing.first_block * block_length)
    return 0


# ---------------------------------------------------------------------------------------------------------------------
# Batch
# ---------------------------------------------------------------------------------------------------------------------

cdef struct Call:
    Queries queries
    Draw draw                    # of the first query
    int32_t *rankings            # (n_queries, n_samples, cutoff)


cdef inline int32_t *rankings_of(const Call *call, intp_t query) noexcept nogil:
    return call.rankings + query * call.draw.n_samples * call.draw.cutoff


cdef void pad_rankings(int32_t *rankings, intp_t n_samples, intp_t cutoff, intp_t n_items) noexcept nogil:
    """Pad the rankings with -1 if the query is shorter than the cutoff."""
    cdef intp_t i, k
    if n_items < cutoff:
        for i in range(n_samples):
            for k in range(n_items, cutoff):
                rankings[i * cutoff + k] = -1


cdef void draw_in_batch(const void *call_, intp_t q, char *workspace) noexcept nogil:
    """Draw all rankings of one query of a batch."""
    cdef const Call *call = <const Call *>call_
    cdef Query query = query_at(&call.queries, q)
    cdef Draw draw = draw_of(&call.draw, q, call.draw.cutoff)
    pad_rankings(rankings_of(call, q), draw.n_samples, draw.cutoff, query.n_items)
    draw_query(&draw, query.scores, query.n_items, workspace, rankings_of(call, q))


cdef int draw_long_query(const void *call_, intp_t q, int n_threads) except -1:
    cdef const Call *call = <const Call *>call_
    cdef Query query = query_at(&call.queries, q)
    cdef Draw draw = draw_of(&call.draw, q, call.draw.cutoff)
    # the block that is freed last is the first that the next call takes
    cdef Workspaces shared = Workspaces(1, weights_workspace(query.n_items))
    cdef Weights weights
    pad_rankings(rankings_of(call, q), draw.n_samples, draw.cutoff, query.n_items)
    weigh_by_team(&weights, query.scores, query.n_items, shared.of_thread(0), n_threads)
    return draw_long(&draw, &weights, n_threads, rankings_of(call, q), NULL, NULL, 1)


# ---------------------------------------------------------------------------------------------------------------------
# Entry points
# ---------------------------------------------------------------------------------------------------------------------

def sample_plain(CheckedBatch query, n_samples, cutoff, rng, sampler):
    """Return rankings of a `plain_query`; None if an option is not plain."""
    cdef intp_t number, n_ranks
    if (
        query is None or type(sampler) is not str or sampler not in SAMPLERS
        or not is_plain_count(n_samples, 1, &number) or not is_plain_cutoff(cutoff, &n_ranks)
        or not is_plain_source(rng)
    ):
        return None
    n_ranks = query.longest if n_ranks < 0 else min(n_ranks, query.longest)
    return sample_rankings(query, number, n_ranks, sampler, rng, 0)[0]


cpdef object sample_rankings(
    CheckedBatch checked, intp_t n_samples, intp_t cutoff, str sampler, object rng, uint64_t first_query
):
    """Return rankings (n_queries, n_samples, cutoff); the cutoff is at most the length of the longest query.

    The output of a query is first written when it is drawn: touching gigabytes at once takes longer than a round may.
    """
    cdef Call call
    cdef Batch batch
    cdef uint64_t[2] key
    cdef intp_t q
    rankings = EMPTY((checked.n_queries, n_samples, cutoff), INT32)
    draw_key(rng, key)
    if checked.n_queries == 0 or cutoff == 0:
        return rankings
    call.queries = checked.queries
    call.draw = Draw(SAMPLERS[sampler], cutoff, n_samples, &key[0], first_query, 0, NULL)
    call.rankings = written(rankings)
    for q in range(checked.n_queries):
        if checked.queries.offsets[q + 1] == checked.queries.offsets[q]:  # the driver skips it
            pad_rankings(rankings_of(&call, q), n_samples, cutoff, 0)
    batch = new_batch(checked.queries.offsets, checked.n_queries)
    batch.call = &call
    batch.query = draw_in_batch
    batch.long_query = draw_long_query
    batch.workspace = weights_workspace(checked.longest) + sampler_workspace(checked.longest, cutoff, False)
    batch.ns_per_item = NS_PER_ITEM * n_samples
    run_batch(&batch, checked.n_threads)
    return rankings


def number_among_all(
    int32_t[:, :, ::1] rankings, const int64_t[::1] starts, const int64_t[::1] possible, const int64_t[::1] offsets
):
    """Convert indices among the items of each query that can be drawn to indices among all of them."""
    cdef intp_t q, i, k
    for q in range(rankings.shape[0]):
        for i in range(rankings.shape[1]):
            for k in range(rankings.shape[2]):
                if rankings[q, i, k] >= 0:
                    rankings[q, i, k] = <int32_t>(possible[starts[q] + rankings[q, i, k]] - offsets[q])


# ---------------------------------------------------------------------------------------------------------------------
# For tests
# ---------------------------------------------------------------------------------------------------------------------

cdef struct Table:
    char *memory
    const group_query *query


cdef void prepare_table(void *table_) noexcept nogil:
    cdef Table *table = <Table *>table_
    guide.sampler.prepare(table.memory, table.query)


def items_of_words(const double[::1] scores, const uint64_t[::1] words, int n_threads=1):
    """Return the items that a guide table, which threads prepare together, draws for random words."""
    cdef Weights weights
    cdef group_query query
    cdef intp_t n_items = scores.shape[0]
    cdef Workspaces memory = Workspaces(1, weights_workspace(n_items) + guide.sampler.size(n_items, 1))
    cdef Table table
    cdef int32_t[::1] items = np.empty(words.shape[0], dtype=np.int32)
    table.memory = weigh_by_team(&weights, numbers(scores), n_items, memory.of_thread(0), n_threads)
    query.n_items = n_items
    query.cutoff = 1
    query.weights = weights.relative
    query.total = weights.total
    query.loop = loop_of_team(n_threads)
    table.query = &query
    run_in_team(prepare_table, &table, n_threads)
    guide.look_up(table.memory, &words[0], words.shape[0], &items[0])
    return np.asarray(items)


def terms_of_costs(const double[::1] scores, intp_t cutoff, intp_t n_samples):
    """Return the terms of each row of RATES for a list, and whether "auto" may choose its sampler.

    For the spread, it is whether a sampler that uses it may be faster than introselect.
    """
    cdef Weights weights
    cdef Sampler sampler
    cdef intp_t n_items = scores.shape[0], kind, i
    cdef Workspaces memory = Workspaces(1, weights_workspace(n_items))
    cdef double rows
    cdef double[5] rates
    weigh(&weights, numbers(scores), n_items, memory.of_thread(0))
    sampler.octaves = sort_weights(&weights)
    sampler.cutoff = cutoff
    rows = expect_draws(&sampler, &weights, 1e9)
    asks = asks_for_spread(&weights, cutoff, n_samples, cost_of(INTROSELECT, n_items, cutoff, n_samples))
    serves = [
        asks, True, n_items <= PLR_NETWORK_ITEMS,
        few_repeats(n_items, cutoff) and n_items <= PLR_SLOT_ITEMS and rows <= PLR_FEW_ROWS,
        candidates_suffice(n_items, cutoff), few_repeats(n_items, cutoff) and rows <= plr_guide_draws(cutoff),
    ]
    table = np.empty((N_SAMPLERS, 5))
    for kind in range(N_SAMPLERS):
        for i in range(5):
            rates = [i == 0, i == 1, i == 2, i == 3, i == 4]
            table[kind, i] = cost_at(rates, kind, n_items, cutoff, n_samples, rows)
    return table, serves
