"""Sampled estimates over a batch: query by query, draw rankings and pass them to an estimator.

Rankings are accumulated before the next ones are drawn, so memory is O(D + K) per thread for any number of samples.
Plain sums over more than some ten thousand rankings would round by more than 1e-12 of their terms. So every few
thousand rankings the sums of an estimator are added to totals, with compensated summation.
"""

from libc.string cimport memset

from plrank_fast._core.gradients.estimator cimport Estimate, Estimator, estimate_of, estimator_in, ns_per_sample
from plrank_fast._core.gradients.scale cimport Scale, scale_gradient, scale_of, scale_workspace
from plrank_fast._core.random.key cimport draw_key, is_plain_source
from plrank_fast._core.random.stream cimport BLOCK, block_size
from plrank_fast._core.ranking.weights cimport weigh, weights_workspace
from plrank_fast._core.runtime.arguments cimport (
    CheckedBatch, is_plain_count, is_plain_factor, result_of, zeros,
)
from plrank_fast._core.runtime.batch cimport Batch, new_batch, run_batch
from plrank_fast._core.runtime.buffers cimport rankings as rankings_at
from plrank_fast._core.runtime.compensated cimport Sum, add, value_of
from plrank_fast._core.runtime.layout cimport Layout, aligned, bytes_of, layout_at
from plrank_fast._core.runtime.queries cimport Queries, Query, longest_query, queries_of, query_at
from plrank_fast._core.runtime.scalar_types cimport int32_t, int64_t, intp_t, uint64_t
from plrank_fast._core.runtime.teams cimport run_in_team, share_ranges
from plrank_fast._core.runtime.threads cimport ROUND_NS, Workspaces, raise_if_stopped, signal_came
from plrank_fast._core.sampling.noise cimport NOISES, Noise, noise_workspace, prepare_noise
from plrank_fast._core.sampling.samplers cimport (
    GROUP_SIZE,
    NS_PER_ITEM,
    SAMPLERS,
    Draw,
    Sampler,
    draw_group,
    draw_long,
    draw_of,
    draw_rows,
    group_bytes,
    number_of_blocks,
    prepare_sampler,
    row_length,
    sampler_workspace,
    samples_in_block,
    start_block,
)

cdef double NS_PER_RANK_READ = 100.0  # for a ranking so long that no cache holds its items


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef inline intp_t ranks_drawn(const Estimator *estimator, intp_t cutoff) noexcept nogil:
    return cutoff + 1 if estimator.needs_noise else cutoff


cdef size_t rows_bytes(const Estimator *estimator, intp_t cutoff) noexcept nogil:
    """Return the bytes of the rows, or of the columns, that are used at once."""
    return aligned(
        GROUP_SIZE * row_length(ranks_drawn(estimator, cutoff), estimator.needs_noise) * sizeof(int32_t))


cdef size_t state_bytes(const Estimator *estimator, intp_t n_items, intp_t cutoff) noexcept nogil:
    """Return the bytes that ``begin_estimate`` takes."""
    return (
        (noise_workspace(n_items) if estimator.needs_noise else 0) + weights_workspace(n_items)
        + bytes_of(estimator.lay_out, n_items, cutoff))


cdef size_t query_workspace(const Estimator *estimator, intp_t n_items, intp_t cutoff) noexcept nogil:
    """Return the bytes for one query."""
    return (
        rows_bytes(estimator, cutoff) + totals_bytes(n_items) + state_bytes(estimator, n_items, cutoff)
        + sampler_workspace(n_items, ranks_drawn(estimator, cutoff), estimator.needs_noise))


cdef inline intp_t rankings_per_total(intp_t n_items) noexcept nogil:
    """Return the number of rankings in plain sums, in whole blocks: more for long lists, whose sums move slowly."""
    return min(max(<intp_t>4096, n_items // 16 // BLOCK * BLOCK), <intp_t>16384)


cdef inline int passes_of(const Estimator *estimator) noexcept nogil:
    """Return the number of passes over the rankings."""
    return 1 if estimator.observe == NULL else 2


cdef inline intp_t results_per_query(const Estimator *estimator, intp_t n_items) noexcept nogil:
    return 1 if estimator.one_per_query else n_items


cdef inline size_t totals_bytes(intp_t n_items) noexcept nogil:
    """Return the bytes of the totals of gradient and Hessian."""
    return aligned(2 * <size_t>n_items * sizeof(Sum))


cdef void move(double *sums, Sum *totals, intp_t n) noexcept nogil:
    """Add sums to totals, and clear them."""
    cdef intp_t i
    for i in range(n):
        add(&totals[i], sums[i])
        sums[i] = 0.0


cdef void move_to_totals(const Estimator *estimator, Estimate *estimate) noexcept nogil:
    cdef intp_t n = results_per_query(estimator, estimate.n_items)
    estimate.denominator = 1
    if estimator.hand_out != NULL:
        estimator.hand_out(estimate)
    if not estimate.in_totals:
        memset(estimate.totals, 0, (1 if estimate.hessian == NULL else 2) * n * sizeof(Sum))
        estimate.in_totals = True
    move(estimate.gradient, estimate.totals, n)
    if estimate.hessian != NULL:
        move(estimate.hessian, estimate.totals + n, n)


cdef inline void note_used(const Estimator *estimator, Estimate *estimate, intp_t n_rankings) noexcept nogil:
    """Count ``n_rankings`` more rankings, at most as many as were left, and move the sums if none are left."""
    estimate.until_moved -= n_rankings
    if estimate.until_moved == 0:
        estimate.until_moved = rankings_per_total(estimate.n_items)
        move_to_totals(estimator, estimate)


cdef void clear(void *sums, intp_t start, intp_t stop) noexcept nogil:
    memset(<double *>sums + start, 0, (stop - start) * sizeof(double))


cdef char *begin_estimate(const Estimator *estimator, Estimate *estimate, char *workspace) noexcept nogil:
    """Weigh the items and begin with no rankings; return the first unused byte of ``workspace``."""
    cdef Layout layout
    cdef intp_t n = results_per_query(estimator, estimate.n_items)
    if estimator.needs_noise:
        workspace = prepare_noise(&estimate.noisy, estimate.noise, estimate.scores, estimate.n_items, workspace)
        estimate.scores = estimate.noisy.levels
        estimate.draw.noisy = &estimate.noisy
    estimate.draw.cutoff = min(ranks_drawn(estimator, estimate.cutoff), estimate.n_items)
    if estimate.given == NULL:
        estimate.length = row_length(estimate.draw.cutoff, estimator.needs_noise)
    layout = layout_at(
        weigh(&estimate.weights, estimate.scores, estimate.n_items, workspace, estimate.n_threads))
    estimate.in_groups = False
    estimate.in_totals = False
    estimate.until_moved = rankings_per_total(estimate.n_items)
    share_ranges(clear, estimate.gradient, n, estimate.n_threads)
    if estimate.hessian != NULL:
        share_ranges(clear, estimate.hessian, n, estimate.n_threads)
    if estimator.lay_out != NULL:
        estimator.lay_out(&layout, estimate.n_items, estimate.cutoff)
    estimate.state = layout.state
    if estimator.begin != NULL:
        estimator.begin(estimate)
    return <char *>layout.next


cdef void take_mean(double *sums, const Sum *totals, intp_t n, intp_t denominator) noexcept nogil:
    cdef intp_t i
    if totals != NULL:
        for i in range(n):
            sums[i] = value_of(&totals[i])
    if denominator > 1:
        for i in range(n):
            sums[i] /= denominator


cdef void finish(const Estimator *estimator, Estimate *estimate) noexcept nogil:
    cdef intp_t n = results_per_query(estimator, estimate.n_items)
    cdef intp_t denominator = 1 if estimator.adds_up else estimate.draw.n_samples + 1 - passes_of(estimator)
    cdef const Sum *totals = NULL
    cdef const Sum *of_hessian = NULL
    if estimate.in_totals:
        move_to_totals(estimator, estimate)
        totals = estimate.totals
        of_hessian = totals + n
    elif estimator.hand_out != NULL:
        estimate.denominator = denominator
        estimator.hand_out(estimate)
        denominator = estimate.denominator
    take_mean(estimate.gradient, totals, n, denominator)
    if estimate.hessian != NULL:
        take_mean(estimate.hessian, of_hessian, n, denominator)
    if estimate.value != NULL:
        estimate.value[0] = value_of(&estimate.metric) / estimate.draw.n_samples


cdef void add_metrics(
    Estimate *estimate, const int32_t *rankings, intp_t n_rankings, intp_t to_next_ranking, intp_t to_next_rank
) noexcept nogil:
    cdef intp_t i, k
    cdef double metric
    for i in range(n_rankings):
        metric = 0.0
        for k in range(estimate.cutoff):
            metric += estimate.rank_weights[k] * estimate.relevance[rankings[i * to_next_ranking + k * to_next_rank]]
        add(&estimate.metric, metric)


cdef void accumulate_some(
    const Estimator *estimator, Estimate *estimate, const int32_t *rows, intp_t n_rankings
) noexcept nogil:
    """Pass rows to the step of this pass, at most as many as are left until sums are moved."""
    if estimate.observing:
        estimator.observe(estimate, rows, n_rankings, estimate.length)
        return
    estimator.accumulate(estimate, rows, n_rankings, estimate.length)
    if estimate.value != NULL:
        add_metrics(estimate, rows, n_rankings, estimate.length, 1)
    note_used(estimator, estimate, n_rankings)


cdef void accumulate_columns(
    const Estimator *estimator, Estimate *estimate, const int32_t *columns, intp_t n_lanes
) noexcept nogil:
    estimator.accumulate_group(estimate, columns, n_lanes)
    if estimate.value != NULL:
        add_metrics(estimate, columns, n_lanes, 1, GROUP_SIZE)
    note_used(estimator, estimate, n_lanes)


cdef void accumulate_rows(
    const Estimator *estimator, Estimate *estimate, const int32_t *rows, intp_t n_rankings, int32_t *columns
) noexcept nogil:
    """Accumulate rankings in rows, from the start of a block or of a group of one."""
    cdef intp_t first = 0, n_rows, n_lanes, i, k, group = min(<intp_t>GROUP_SIZE, block_size(estimate.n_items))
    while not estimate.in_groups and first < n_rankings:
        n_rows = min(n_rankings - first, estimate.until_moved)
        accumulate_some(estimator, estimate, rows + first * estimate.length, n_rows)
        first += n_rows
    while first < n_rankings:
        n_lanes = min(group, n_rankings - first)
        for i in range(n_lanes):
            for k in range(estimate.cutoff):
                columns[k * GROUP_SIZE + i] = rows[(first + i) * estimate.length + k]
        accumulate_columns(estimator, estimate, columns, n_lanes)
        first += n_lanes


cdef void draw_and_accumulate(
    const Estimator *estimator, Estimate *estimate, Sampler *sampler, int32_t *rows
) noexcept nogil:
    """Draw the rankings of one query and accumulate them, sixteen at a time."""
    cdef intp_t block, n_rankings, first, n_lanes
    for block in range(number_of_blocks(&estimate.draw, estimate.n_items)):
        n_rankings = samples_in_block(&estimate.draw, estimate.n_items, block)
        start_block(sampler, &estimate.draw, block)
        first = 0
        while first < n_rankings:
            n_lanes = min(<intp_t>GROUP_SIZE, n_rankings - first)
            if estimate.in_groups:
                accumulate_columns(estimator, estimate, draw_group(sampler, n_lanes), n_lanes)
            else:
                draw_rows(sampler, n_lanes, rows, estimate.length)
                accumulate_some(estimator, estimate, rows, n_lanes)
            first += n_lanes


cdef void estimate_query(const Estimator *estimator, Estimate *estimate, char *workspace) noexcept nogil:
    """Compute the estimate of one query from given rankings, or from samples drawn for it."""
    cdef Sampler sampler
    cdef int32_t *rows = <int32_t *>workspace
    cdef int passed
    workspace += rows_bytes(estimator, estimate.cutoff)
    estimate.totals = <Sum *>workspace
    workspace = begin_estimate(estimator, estimate, workspace + totals_bytes(estimate.n_items))
    if estimate.given == NULL:
        prepare_sampler(&sampler, &estimate.draw, &estimate.weights, NULL, workspace)
    for passed in range(passes_of(estimator)):
        estimate.observing = passed + 1 < passes_of(estimator)
        if estimate.given == NULL:
            draw_and_accumulate(estimator, estimate, &sampler, rows)
        else:
            accumulate_rows(estimator, estimate, estimate.given, estimate.draw.n_samples, rows)
    finish(estimator, estimate)


# ---------------------------------------------------------------------------------------------------------------------
# Batch
# ---------------------------------------------------------------------------------------------------------------------

cdef struct Call:
    Queries queries
    Estimator estimator
    Draw draw                    # of the first query
    const int32_t *given         # (n_queries, n_samples, length) rankings, or NULL
    intp_t length
    Noise noise
    const double *rewards        # (n_queries, n_samples), or NULL
    double *out
    double *hessian              # or NULL
    double *values               # (n_queries,) metrics, or NULL
    const Scale *scale           # of values and gradient, or NULL


cdef Estimate estimate_in(const Call *call, intp_t q) noexcept nogil:
    """Return the estimate of one query of a batch with its outputs."""
    cdef Query query = query_at(&call.queries, q)
    cdef Estimate estimate = estimate_of(
        query.scores, query.relevance, query.n_items, query.rank_weights, query.cutoff, draw_of(&call.draw, q, 0),
        call.out + (q if call.estimator.one_per_query else query.first),
        call.hessian + query.first if call.hessian != NULL else NULL)
    estimate.noise = &call.noise
    estimate.length = call.length  # of drawn rows: as ``begin_estimate`` sets it
    if call.given != NULL:
        estimate.given = call.given + q * call.draw.n_samples * call.length
    if call.rewards != NULL:
        estimate.rewards = call.rewards + q * call.draw.n_samples
    if call.values != NULL:
        estimate.value = call.values + q
    return estimate


cdef size_t scale_bytes(const Call *call, intp_t n_items) noexcept nogil:
    return 0 if call.scale == NULL else scale_workspace(n_items)


cdef void scale_query(const Call *call, intp_t q, char *workspace) noexcept nogil:
    cdef Query query = query_at(&call.queries, q)
    if call.scale != NULL:
        call.values[q] *= scale_gradient(call.scale, &query, call.out + query.first, workspace)


cdef void estimate_in_batch(const void *call_, intp_t q, char *workspace) noexcept nogil:
    cdef const Call *call = <const Call *>call_
    cdef Estimate estimate = estimate_in(call, q)
    estimate_query(&call.estimator, &estimate, workspace)
    scale_query(call, q, workspace)


# ---------------------------------------------------------------------------------------------------------------------
# A long query
# ---------------------------------------------------------------------------------------------------------------------

cdef struct LongQuery:
    const Estimator *estimator
    Estimate estimate
    int32_t *columns
    char *workspace
    const int32_t *rows          # the next ones
    intp_t n_rankings


cdef void begin_in_team(void *query_) noexcept nogil:
    cdef LongQuery *query = <LongQuery *>query_
    begin_estimate(query.estimator, &query.estimate, query.workspace)


cdef void accumulate_in_team(void *query_) noexcept nogil:
    cdef LongQuery *query = <LongQuery *>query_
    accumulate_rows(query.estimator, &query.estimate, query.rows, query.n_rankings, query.columns)


cdef void finish_in_team(void *query_) noexcept nogil:
    cdef LongQuery *query = <LongQuery *>query_
    finish(query.estimator, &query.estimate)


cdef int accumulate_long(void *query_, int passed, const int32_t *rows, intp_t n_rankings) except -1:
    """Accumulate a round of rankings, with a check for interrupts as often as a round should end."""
    cdef LongQuery *query = <LongQuery *>query_
    cdef const Estimator *estimator = query.estimator
    cdef Estimate *estimate = &query.estimate
    cdef intp_t cutoff = estimate.cutoff, i
    cdef double ns_per_ranking = ns_per_sample(estimator, estimate.n_items, cutoff) + NS_PER_RANK_READ * cutoff
    cdef intp_t rankings_per_check = max(<intp_t>1, <intp_t>(ROUND_NS / ns_per_ranking))
    if estimate.in_groups:
        rankings_per_check = (rankings_per_check + BLOCK - 1) // BLOCK * BLOCK  # whole groups
    estimate.observing = passed + 1 < passes_of(estimator)
    for i in range(0, n_rankings, rankings_per_check):
        query.rows, query.n_rankings = rows + i * estimate.length, min(rankings_per_check, n_rankings - i)
        run_in_team(accumulate_in_team, query, estimate.n_threads)
        raise_if_stopped()
    return 0


cdef int estimate_long_query(const void *call_, intp_t q, int n_threads) except -1:
    """Estimate a query that outlasts a round: draw blocks in parallel, accumulate them in order, for the same bits."""
    cdef const Call *call = <const Call *>call_
    cdef LongQuery query
    query.estimator, query.estimate = &call.estimator, estimate_in(call, q)
    cdef Estimate *estimate = &query.estimate
    cdef intp_t n_items = estimate.n_items, cutoff = estimate.cutoff
    cdef size_t columns_bytes = group_bytes(n_items, cutoff)
    cdef Workspaces totals = None, estimating = Workspaces(
        1, max(columns_bytes + state_bytes(&call.estimator, n_items, cutoff), scale_bytes(call, n_items)))
    cdef int passed
    query.columns = <int32_t *>estimating.of_thread(0)
    query.workspace = estimating.of_thread(0) + columns_bytes
    estimate.n_threads = n_threads
    if estimate.draw.n_samples >= rankings_per_total(n_items):
        totals = Workspaces(1, totals_bytes(n_items))
        estimate.totals = <Sum *>totals.of_thread(0)
    estimate.stop.interrupted = signal_came
    run_in_team(begin_in_team, &query, n_threads)
    if estimate.given == NULL:
        draw_long(
            &estimate.draw, &estimate.weights, n_threads, NULL, accumulate_long, &query, passes_of(&call.estimator))
    else:
        for passed in range(passes_of(&call.estimator)):
            accumulate_long(&query, passed, estimate.given, estimate.draw.n_samples)
    run_in_team(finish_in_team, &query, n_threads)
    scale_query(call, q, estimating.of_thread(0))
    return 0


# ---------------------------------------------------------------------------------------------------------------------
# Entry points
# ---------------------------------------------------------------------------------------------------------------------

cdef double cost_of_query(const void *call_, intp_t n_items) noexcept nogil:
    cdef const Call *call = <const Call *>call_
    cdef double ns_per_ranking = 100.0 + NS_PER_ITEM * n_items
    ns_per_ranking += ns_per_sample(&call.estimator, n_items, min(call.queries.n_ranks, n_items))
    return 100.0 + call.draw.n_samples * passes_of(&call.estimator) * ns_per_ranking


cdef int run_estimator(Call *call, intp_t n_queries, intp_t longest, n_threads) except -1:
    """Run the estimator of a call into its outputs, which are 0."""
    cdef Batch batch = new_batch(call.queries.offsets, n_queries)
    if call.queries.n_ranks == 0:
        return 0
    batch.call = call
    batch.query = estimate_in_batch
    batch.long_query = estimate_long_query
    batch.fewest_items = call.estimator.fewest_items
    batch.workspace = max(
        query_workspace(&call.estimator, longest, call.queries.n_ranks), scale_bytes(call, longest))
    batch.cost = cost_of_query
    batch.kind = <const void *>call.estimator.accumulate
    return run_batch(&batch, n_threads)


cdef void evaluate_single_items(Call *call, intp_t n_queries) noexcept:
    """Set the values of queries of one item, which estimators of gradients skip, and their gradients, which are 0."""
    cdef Query query
    cdef double[8] workspace
    cdef intp_t q
    for q in range(n_queries if call.queries.n_ranks > 0 else 0):
        query = query_at(&call.queries, q)
        if query.n_items == 1:
            call.values[q] = query.rank_weights[0] * query.relevance[0]
            scale_query(call, q, <char *>workspace)


def estimate_plain(
    estimator, CheckedBatch query, n_samples, rankings, rng, sampler, out, hessian, baseline, noise, sigma
):
    """Return the estimate of a `plain_query`; None if an option is not plain."""
    cdef intp_t number
    if (
        query is None or rankings is not None or out is not None or hessian is not False or type(sampler) is not str
        or sampler not in SAMPLERS or type(baseline) is not bool or type(noise) is not str or noise not in NOISES
        or not is_plain_factor(sigma) or not is_plain_count(n_samples, 2 if baseline else 1, &number)
        or not is_plain_source(rng)
    ):
        return None
    return estimate(estimator, query, number, sampler, rng, 0, None, False, baseline is True, noise, sigma)[1]


cpdef tuple estimate(
    object estimator, CheckedBatch checked, intp_t n_samples, str sampler="auto", object rng=None,
    uint64_t first_query=0, const int32_t[:, :, ::1] rankings=None, bint hessian=False, bint baseline=False,
    str noise="gumbel", double sigma=1.0, const double[:, ::1] given_noise=None, bint value=False, object factors=None,
    bint over_ideal=False, object scaled=None
):
    """Return the mean metric of each query's rankings, an estimate, and its Hessian diagonal; None if not asked for.

    ``estimator`` is an object of its module, and estimates the gradient by default. Checked ``rankings`` take the place
    of those drawn. ``given_noise`` replaces the noise of a single query: (n_samples, n_docs) standard exponential
    numbers E for Gumbel noise -log E, or standard normal ones. With ``factors`` the values are times these, and the
    gradient times these goes to ``scaled``, as in ``exact.scaled_expectations``.
    """
    cdef Call call
    cdef uint64_t[2] key
    cdef Scale scale
    call.estimator = estimator_in(estimator, hessian, baseline)
    call.queries = checked.queries
    if call.estimator.needs_noise:
        call.noise.kind, call.noise.inverse_sigma = NOISES[noise], 1.0 / sigma
        call.noise.given = &given_noise[0, 0] if given_noise is not None else NULL
    call.draw = Draw(SAMPLERS[sampler], 0, n_samples, &key[0], first_query, 0, NULL)
    call.given, call.length, call.rewards = NULL, 0, NULL
    call.values, call.hessian, call.scale = NULL, NULL, NULL
    if rankings is not None:
        call.given, call.length = rankings_at(rankings), rankings.shape[2]
    else:
        draw_key(rng, key)
    result = result_of(
        &call.queries, checked.n_queries, checked.n_queries if call.estimator.one_per_query else checked.n_items,
        &call.out)
    values = diagonal = None
    if hessian:
        diagonal = zeros(checked.n_items, &call.hessian)
    if factors is not None:
        scale = scale_of(checked.n_items, factors, over_ideal, scaled)
        call.scale = &scale
    if value or factors is not None:
        values = zeros(checked.n_queries, &call.values)
        evaluate_single_items(&call, checked.n_queries)
    run_estimator(&call, checked.n_queries, checked.longest, checked.n_threads)
    if factors is not None and call.queries.n_ranks == 0:
        scaled.fill(0.0)
    return values, result, diagonal


def log_prob_gradient(
    estimator, const double[::1] scores, const int64_t[::1] offsets, const int32_t[:, :, ::1] rankings,
    const double[:, ::1] cotangent, n_threads
):
    """Return the gradient of the log-probabilities of checked rankings, weighted with ``cotangent`` and summed."""
    cdef Call call
    cdef intp_t n_queries = offsets.shape[0] - 1, longest = longest_query(offsets)
    call.queries = queries_of(scores, offsets)
    call.queries.n_ranks = min(rankings.shape[2], longest)
    gradient = result_of(&call.queries, n_queries, scores.shape[0], &call.out)
    if call.queries.n_ranks > 0:
        call.draw = Draw(0, 0, rankings.shape[1], NULL, 0, 0, NULL)
        call.given, call.length, call.rewards = rankings_at(rankings), rankings.shape[2], &cotangent[0, 0]
        call.values, call.hessian, call.scale = NULL, NULL, NULL
        call.estimator = estimator_in(estimator, False, False)
        run_estimator(&call, n_queries, longest, n_threads)
    return gradient
