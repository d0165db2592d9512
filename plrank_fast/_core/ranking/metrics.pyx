"""Metrics of given scores and rankings: the deterministic ranking of each query, its DCG, log-probabilities."""

import numpy as np

from libc.math cimport INFINITY, isinf, isnan, log
from libc.stdint cimport uintptr_t
from libc.string cimport memcpy, memset

from plrank_fast._core.random.selection cimport PLR_SHORT_LIST, keep_highest, select_smallest, sort_pairs, sort_short
from plrank_fast._core.ranking.remaining cimport (
    Remaining, analyse_ranking, lay_out_remaining, prepare_remaining, ranks_placed, sum_remaining, unit_ratio,
    weight_in_unit,
)
from plrank_fast._core.runtime.arguments cimport (
    CheckedBatch,
    Column,
    copy_column,
    empty as new_array,
    is_plain_cutoff,
    plain,
    threads_of_pass,
)
from plrank_fast._core.runtime.batch cimport Batch, new_batch, query_function, run_batch
from plrank_fast._core.runtime.buffers cimport integers, numbers, rankings as rankings_at, results
from plrank_fast._core.runtime.compensated cimport Sum, add, value_of
from plrank_fast._core.runtime.layout cimport bytes_of, state_at
from plrank_fast._core.runtime.magnitudes cimport (
    PLR_KINDS, PLR_NEGATIVE, PLR_NOT_FINITE, PLR_NO_WHOLE_GRADE, plr_add_flags,
)
from plrank_fast._core.runtime.queries cimport Queries, Query, longest_query, queries_of, query_at
from plrank_fast._core.runtime.scalar_types cimport int32_t, int64_t, intp_t
from plrank_fast._core.runtime.simd cimport simd_level
from plrank_fast._core.runtime.teams cimport run_ranges

cdef extern from "ranking/highest_values.h" nogil:
    ctypedef struct highest_values_kernels:
        double (*highest_relevant)(const double *scores, const double *relevance, size_t n) noexcept nogil
        size_t (*count_above)(const double *scores, double score, size_t n, size_t *n_tied) noexcept nogil
        double (*next_lower)(const double *values, double bound, size_t n, size_t *n_equal) noexcept nogil
    const highest_values_kernels *highest_values_kernels_at(int level)

cdef extern from "ranking/grades.h" nogil:
    ctypedef struct grades_kernels:
        int (*to_gains)(double *grades, size_t n) noexcept nogil
    const grades_kernels *grades_kernels_at(int level)

cdef const highest_values_kernels *kernels = highest_values_kernels_at(simd_level())
cdef const grades_kernels *of_grades = grades_kernels_at(simd_level())

# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef inline void order_ties_by_item(double *keys, int32_t *items, intp_t n) noexcept nogil:
    """Sort the items within runs of equal keys, in pairs sorted by key. Overwrites the keys of the runs."""
    cdef intp_t first = 0, last, i
    while first < n:
        last = first + 1
        while last < n and keys[last] == keys[first]:
            last += 1
        if last - first > 1:
            for i in range(first, last):
                keys[i] = <double>items[i]
            sort_pairs(keys + first, items + first, last - first)
        first = last


cdef void take_first_of_tied(
    const double *scores, intp_t cutoff, double *keys, int32_t *items, intp_t n
) noexcept nogil:
    """Select, among the items that tie with the last of ``cutoff`` selected ones of ``n``, those of the lowest numbers.
    """
    cdef intp_t d, before = 0, n_tied = 0
    cdef double last = -INFINITY
    for d in range(cutoff):
        last = max(last, keys[d])
    for d in range(cutoff, n):
        n_tied += keys[d] == last
    if n_tied == 0:
        return
    for d in range(cutoff):
        if keys[d] < last:
            keys[before], items[before] = keys[d], items[d]
            before += 1
    d = 0
    while before < cutoff:
        if -scores[d] == last:
            keys[before], items[before] = last, <int32_t>d
            before += 1
        d += 1


cdef void rank_query(
    const double *scores, intp_t n_items, intp_t cutoff, double *keys, int32_t *items
) noexcept nogil:
    """Write the first ``cutoff`` items by descending score to ``items``; of equal scores the lower item comes first."""
    cdef intp_t kept = keep_highest(scores, n_items, cutoff, keys, items)
    if kept <= PLR_SHORT_LIST:
        sort_short(keys, items, kept)
        return
    select_smallest(keys, items, kept, cutoff)
    take_first_of_tied(scores, cutoff, keys, items, kept)
    sort_pairs(keys, items, cutoff)
    order_ties_by_item(keys, items, cutoff)


cdef void rank_all(const double *scores, intp_t n_items, intp_t cutoff, double *keys, int32_t *items) noexcept nogil:
    """Rank like ``rank_query``, then append all other items in the order of their numbers."""
    cdef intp_t d, last_item, next_place = cutoff
    cdef double last
    rank_query(scores, n_items, cutoff, keys, items)
    if cutoff == n_items:
        return
    last = scores[items[cutoff - 1]] if cutoff > 0 else INFINITY
    last_item = items[cutoff - 1] if cutoff > 0 else n_items
    for d in range(n_items):
        if scores[d] < last or (scores[d] == last and d > last_item):
            items[next_place] = <int32_t>d
            next_place += 1


cdef double dcg_of_query(
    const double *scores, const double *relevance, const double *rank_weights, intp_t n_items, intp_t cutoff,
    double *keys, int32_t *items
) noexcept nogil:
    cdef double total = 0.0
    cdef intp_t k
    rank_query(scores, n_items, cutoff, keys, items)
    for k in range(cutoff):
        total += rank_weights[k] * relevance[items[k]]
    return total


cdef intp_t MOST_GAINS = 8       # different ones among the first ranks: finding one takes a pass over the list
cdef intp_t LONG_LIST = 4096


cdef bint rank_few_gains(const double *relevance, intp_t n_items, intp_t cutoff, double *gains) noexcept nogil:
    """Write the first ``cutoff`` gains, descending and negated, and return whether few enough differ."""
    cdef double gain = INFINITY
    cdef double lower
    cdef size_t n_equal
    cdef intp_t found, stop, k = 0
    for found in range(MOST_GAINS + 1):
        lower = kernels.next_lower(relevance, gain, n_items, &n_equal)
        stop = min(cutoff, k + <intp_t>n_equal)
        for k in range(k, stop):
            gains[k] = -gain
        k = stop
        if k == cutoff:
            return True
        if k == found and found >= (1 if n_items > LONG_LIST else 3):  # gains hardly repeat
            return False
        gain = lower
    return False


cdef double ideal_dcg_of_query(
    const Query *query, intp_t cutoff, double *gains, double *weights, int32_t *items
) noexcept nogil:
    """Return the DCG of the best ranking: the highest gain at the rank of the highest weight; none is negative."""
    cdef double total = 0.0
    cdef bint descending = True
    cdef intp_t kept, k
    if not rank_few_gains(query.relevance, query.n_items, cutoff, gains):
        kept = keep_highest(query.relevance, query.n_items, cutoff, gains, items)
        if kept <= PLR_SHORT_LIST:
            sort_short(gains, items, kept)
        else:
            select_smallest(gains, items, kept, cutoff)
            sort_pairs(gains, items, cutoff)
    for k in range(cutoff):
        weights[k] = -query.rank_weights[k]
        items[k] = <int32_t>k
        descending = descending and (k == 0 or weights[k] >= weights[k - 1])
    if not descending:
        sort_pairs(weights, items, cutoff)
    for k in range(cutoff):
        total += weights[k] * gains[k]
    return total


cdef struct Ranked:
    # a query of which the first items by score are known
    Query of
    const int32_t *items         # (cutoff,)
    intp_t cutoff
    intp_t wanted                # ranks to read: more than the cutoff only if fewer items were retrieved
    double parameter
    double empty                 # the value of a query without relevant items among these

ctypedef double (*ranked_metric)(const Ranked *query) noexcept nogil


cdef inline bint is_relevant(const Ranked *query, intp_t rank) noexcept nogil:
    return query.of.relevance[query.items[rank]] > 0.0


cdef intp_t n_found(const Ranked *query) noexcept nogil:
    """Return the number of relevant items up to the cutoff."""
    cdef intp_t k, found = 0
    for k in range(query.cutoff):
        found += is_relevant(query, k)
    return found


cdef intp_t n_relevant(const Query *query) noexcept nogil:
    cdef intp_t d, there_are = 0
    for d in range(query.n_items):
        there_are += query.relevance[d] > 0.0
    return there_are


cdef double precision(const Ranked *query) noexcept nogil:
    return n_found(query) / <double>query.wanted if query.wanted > 0 else 0.0


cdef double recall(const Ranked *query) noexcept nogil:
    cdef double found = n_found(query)
    return found / n_relevant(&query.of) if found > 0.0 else 0.0


cdef double average_precision(const Ranked *query) noexcept nogil:
    cdef intp_t k, found = 0
    cdef double total = 0.0
    for k in range(query.cutoff):
        if is_relevant(query, k):
            found += 1
            total += found / <double>(k + 1)
    return total / n_relevant(&query.of) if found > 0 else 0.0


cdef double reciprocal_rank(const Ranked *query) noexcept nogil:
    """Return 1 over the rank of the first relevant document; the query need not be ranked."""
    cdef const double *scores = query.of.scores
    cdef double best = kernels.highest_relevant(scores, query.of.relevance, query.of.n_items)
    cdef size_t n_tied
    cdef intp_t before, d = 0
    if best == -INFINITY:
        return 0.0
    before = kernels.count_above(scores, best, query.of.n_items, &n_tied)
    while n_tied > 1 and not (scores[d] == best and query.of.relevance[d] > 0.0):
        before += scores[d] == best
        d += 1
    return 1.0 / (before + 1) if before < query.cutoff else 0.0


cdef double success(const Ranked *query) noexcept nogil:
    return reciprocal_rank(query) > 0.0


cdef double expected_reciprocal_rank(const Ranked *query) noexcept nogil:
    """Return expected reciprocal rank; ``relevance`` over the parameter is the probability that a document satisfies.
    """
    cdef intp_t k
    cdef double still_looking = 1.0, total = 0.0, chance
    for k in range(query.cutoff):
        chance = query.of.relevance[query.items[k]] / query.parameter
        total += still_looking * chance / (k + 1)
        still_looking *= 1.0 - chance
    return total


cdef double rank_biased_precision(const Ranked *query) noexcept nogil:
    cdef intp_t k
    cdef double looking = 1.0 - query.parameter, total = 0.0
    for k in range(query.cutoff):
        total += looking * query.of.relevance[query.items[k]]
        looking *= query.parameter
    return total


cdef double average_relevance_position(const Ranked *query) noexcept nogil:
    cdef intp_t k
    cdef double mass = 0.0, total = 0.0, worth
    for k in range(query.cutoff):
        worth = query.of.relevance[query.items[k]]
        mass += worth
        total += (k + 1) * worth
    return total / mass if mass > 0.0 else query.empty


cdef double dcg_by_rank(const Ranked *query) noexcept nogil:
    cdef double total = 0.0
    cdef intp_t k
    for k in range(query.cutoff):
        total += query.of.rank_weights[k] * query.of.relevance[query.items[k]]
    return total


cdef double tie_averaged_dcg(const Ranked *query) noexcept nogil:
    """Return the mean over all orders of equal scores: each tied item gets the mean relevance of the tie."""
    cdef const double *scores = query.of.scores
    cdef double total = 0.0, worth, weight, tied_score
    cdef intp_t first = 0, last, n_tied, d
    while first < query.cutoff:
        tied_score = scores[query.items[first]]
        worth = 0.0
        weight = 0.0
        last = first
        while last < query.cutoff and scores[query.items[last]] == tied_score:
            worth += query.of.relevance[query.items[last]]
            weight += query.of.rank_weights[last]
            last += 1
        n_tied = last - first
        if last == query.cutoff < query.of.n_items:  # more of the tied items may be past the cutoff
            worth = 0.0
            n_tied = 0
            for d in range(query.of.n_items):
                if scores[d] == tied_score:
                    worth += query.of.relevance[d]
                    n_tied += 1
        total += weight * (worth / n_tied)
        first = last
    return total


cdef set UNRANKED = {"mrr", "success"}
cdef dict METRICS = {
    "precision": <uintptr_t>precision,
    "recall": <uintptr_t>recall,
    "ap": <uintptr_t>average_precision,
    "mrr": <uintptr_t>reciprocal_rank,
    "success": <uintptr_t>success,
    "err": <uintptr_t>expected_reciprocal_rank,
    "rbp": <uintptr_t>rank_biased_precision,
    "average_relevance_position": <uintptr_t>average_relevance_position,
}


cdef struct Judgements:
    const double *of_documents   # (n_docs, n_topics) of a batch or a query
    intp_t n_topics
    double kept                  # share of a topic that is left after each document about it
    const double *discounts


cdef inline double gain_left(const Judgements *judged, intp_t item, const double *left) noexcept nogil:
    """Return the gain of a document to whom so much of each topic is ``left``."""
    cdef const double *document = judged.of_documents + item * judged.n_topics
    cdef double gain = 0.0
    cdef intp_t t
    for t in range(judged.n_topics):
        gain += document[t] * left[t]
    return gain


cdef inline double see(const Judgements *judged, intp_t item, double *left) noexcept nogil:
    """Return the gain of a document, which leaves less of its topics to the next."""
    cdef double gain = gain_left(judged, item, left)
    cdef intp_t t
    for t in range(judged.n_topics):
        if judged.of_documents[item * judged.n_topics + t] > 0.0:
            left[t] *= judged.kept
    return gain


cdef double alpha_dcg_of_ranking(
    const Judgements *judged, const int32_t *ranking, intp_t n_ranks, double *left
) noexcept nogil:
    cdef double total = 0.0
    cdef intp_t k, t
    for t in range(judged.n_topics):
        left[t] = 1.0
    for k in range(n_ranks):
        if ranking[k] < 0:
            break
        total += judged.discounts[k] * see(judged, ranking[k], left)
    return total


cdef double greedy_alpha_dcg(
    const Judgements *judged, intp_t n_items, intp_t n_ranks, double *left, char *taken
) noexcept nogil:
    """Return the alpha-DCG of the ranking that takes the document of the largest gain at each rank."""
    cdef intp_t best, d, k, t
    cdef double gain, largest, total = 0.0
    for t in range(judged.n_topics):
        left[t] = 1.0
    memset(taken, 0, n_items)
    for k in range(n_ranks):
        best, largest = -1, 0.0
        for d in range(n_items):
            gain = gain_left(judged, d, left)
            if gain > largest and not taken[d]:
                best, largest = d, gain
        if best < 0:
            break
        taken[best] = True
        total += judged.discounts[k] * see(judged, best, left)
    return total


cdef enum:
    FACTORS_PER_LOG = 16  # whose rounding adds up in a logarithm
cdef double LARGEST_ODDS = 1e100


cdef inline double log_of_chance(double odds) noexcept nogil:
    """Return -log(1 + odds), for odds of at least 0; ``log1p`` takes branches that are hard to predict."""
    cdef double whole = 1.0 + odds
    return (whole - 1.0 - odds) / whole - log(whole)


cdef void log_prob_of_query(
    const double *scores, intp_t n_items, intp_t cutoff, const int32_t *rankings, intp_t n_rankings, intp_t stride,
    char *workspace, bint of_prefixes, double *log_prob
) noexcept nogil:
    """Return the log of the product over ranks of w_{y_k} / S_k, in the unit of each rank; a ranking may end with -1.

    With ``of_prefixes``, ``log_prob`` is like the rankings and has the log of the product down to each rank. Each
    factor is 1 / (1 + S_{k+1} / w_{y_k}), and the odds against a few of them, 1 / product - 1, are a sum of positive
    terms. So near-certain choices keep their digits, unless w underflows in that unit.
    """
    cdef Remaining *remaining = <Remaining *>state_at(workspace, lay_out_remaining, n_items, cutoff)
    cdef intp_t i, k, unit
    cdef const int32_t *ranking
    cdef double weight, left_over, odds
    cdef Sum total
    prepare_remaining(remaining, scores, n_items, cutoff)
    for i in range(n_rankings):
        ranking = rankings + i * stride
        remaining.cutoff = ranks_placed(ranking, cutoff)
        if remaining.wide:
            analyse_ranking(remaining, ranking)
        else:
            sum_remaining(remaining, ranking)
        total = Sum(0.0, 0.0)
        odds = 0.0
        for k in range(remaining.cutoff):
            left_over = remaining.sums[k + 1]
            if not remaining.wide:
                odds += left_over / remaining.weights[ranking[k]] * (1.0 + odds)
            else:
                unit = remaining.unit_position[k]
                weight = weight_in_unit(remaining, ranking[k], unit)
                if weight * LARGEST_ODDS < 1.0:
                    add(&total, (scores[ranking[k]] - scores[remaining.leading[unit]]) - log(remaining.sums[k]))
                else:
                    if remaining.unit_position[k + 1] < remaining.n_leading:
                        left_over *= unit_ratio(remaining, remaining.unit_position[k + 1], unit)
                    odds += left_over / weight * (1.0 + odds)
            if odds > LARGEST_ODDS or k % FACTORS_PER_LOG == FACTORS_PER_LOG - 1:
                add(&total, log_of_chance(odds))
                odds = 0.0
            if of_prefixes:
                log_prob[i * stride + k] = value_of(&total) + log_of_chance(odds)
        if not of_prefixes:
            add(&total, log_of_chance(odds))
            log_prob[i] = value_of(&total)


# ---------------------------------------------------------------------------------------------------------------------
# Batch
# ---------------------------------------------------------------------------------------------------------------------

cdef size_t ranking_workspace(intp_t n_items) noexcept nogil:
    return <size_t>n_items * (sizeof(double) + sizeof(int32_t))


cdef struct MetricCall:
    Queries queries
    ranked_metric metric        # or NULL
    bint ranks                  # the metric reads the ranking
    bint all_retrieved          # no score is -inf
    intp_t cutoff               # negative: all documents of each query that were retrieved
    double parameter
    double empty                # the value of an empty query
    bint empty_unless_relevant  # and of one without relevant items
    double *out                 # not set without a metric
    double *ideal               # DCG of the best ranking, of which ``out`` is a share, or ``empty``; or NULL


cdef intp_t count_retrieved(const double *scores, intp_t n_items) noexcept nogil:
    """Return the number of items that have a score above -inf."""
    cdef intp_t d, retrieved = 0
    for d in range(n_items):
        retrieved += scores[d] > -INFINITY
    return retrieved


cdef void metric_in_batch(const void *call_, intp_t q, char *workspace) noexcept nogil:
    cdef const MetricCall *call = <const MetricCall *>call_
    cdef Query query = query_at(&call.queries, q)
    cdef intp_t retrieved, wanted
    cdef double *keys = <double *>workspace
    cdef double *weights = keys + query.n_items
    cdef int32_t *items = <int32_t *>(weights + query.n_items)
    cdef Ranked ranked
    if call.metric != NULL:
        retrieved = query.n_items if call.all_retrieved else count_retrieved(query.scores, query.n_items)
        wanted = call.cutoff if call.cutoff >= 0 else retrieved
        ranked = Ranked(query, items, min(wanted, retrieved), wanted, call.parameter, call.empty)
        if call.ranks:
            rank_query(query.scores, query.n_items, ranked.cutoff, keys, items)
        call.out[q] = call.metric(&ranked) if query.n_items > 0 else call.empty
        if call.out[q] == 0.0 and call.empty != 0.0 and call.empty_unless_relevant and n_relevant(&query) == 0:
            call.out[q] = call.empty
    if call.ideal != NULL:
        call.ideal[q] = ideal_dcg_of_query(&query, query.cutoff, keys, weights, items)
        if call.metric != NULL:
            call.out[q] = call.out[q] / call.ideal[q] if call.ideal[q] != 0.0 else call.empty


cdef MetricCall new_call(const Queries *queries, intp_t cutoff) noexcept:
    """Return a call without a metric; a cutoff of -1 is none."""
    cdef MetricCall call = MetricCall(queries[0], NULL, True, False, cutoff, 1.0, 0.0, False, NULL, NULL)
    if cutoff >= 0:
        call.queries.n_ranks = min(queries.n_ranks, cutoff)
    return call


cdef int run_metric(MetricCall *call, CheckedBatch checked, double ns_per_item) except -1:
    cdef Batch batch = new_batch(checked.queries.offsets, checked.n_queries)
    call.all_retrieved = not checked.found_in_scores & PLR_NOT_FINITE
    batch.call = call
    batch.query = metric_in_batch
    batch.fewest_items = 0
    batch.workspace = ranking_workspace(checked.longest) + checked.longest * sizeof(double)
    batch.ns_per_item = ns_per_item
    return run_batch(&batch, checked.n_threads)


cdef struct RankingsCall:
    Queries queries
    int32_t *rankings           # (n_queries, n_rankings, n_ranks)
    intp_t n_rankings, n_ranks
    double *out                 # (n_queries, n_rankings), 0 before
    bint of_prefixes            # whether ``out`` has a value for each rank
    Judgements judged
    double *ideal               # (n_queries,), alpha-DCG of the ranking that is chosen greedily, NaN if not yet known


cdef void mode_in_batch(const void *call_, intp_t q, char *workspace) noexcept nogil:
    cdef const RankingsCall *call = <const RankingsCall *>call_
    cdef Query query = query_at(&call.queries, q)
    cdef intp_t n_ranks = min(count_retrieved(query.scores, query.n_items), call.n_ranks)
    cdef double *keys = <double *>workspace
    cdef int32_t *items = <int32_t *>(keys + query.n_items)
    rank_query(query.scores, query.n_items, n_ranks, keys, items)
    memcpy(call.rankings + q * call.n_ranks, items, n_ranks * sizeof(int32_t))


cdef void alpha_ndcg_in_batch(const void *call_, intp_t q, char *workspace) noexcept nogil:
    cdef const RankingsCall *call = <const RankingsCall *>call_
    cdef const int64_t *offsets = call.queries.offsets
    cdef Judgements judged = call.judged
    cdef intp_t n_items = offsets[q + 1] - offsets[q], n_ranks = min(call.n_ranks, n_items), i
    cdef double *left = <double *>workspace
    judged.of_documents += offsets[q] * judged.n_topics
    if isnan(call.ideal[q]):
        call.ideal[q] = greedy_alpha_dcg(&judged, n_items, n_ranks, left, <char *>(left + judged.n_topics))
    if call.ideal[q] == 0.0:
        return
    for i in range(q * call.n_rankings, (q + 1) * call.n_rankings):
        call.out[i] = alpha_dcg_of_ranking(&judged, call.rankings + i * call.n_ranks, n_ranks, left) / call.ideal[q]


cdef void log_prob_in_batch(const void *call_, intp_t q, char *workspace) noexcept nogil:
    cdef const RankingsCall *call = <const RankingsCall *>call_
    cdef Query query = query_at(&call.queries, q)
    log_prob_of_query(
        query.scores, query.n_items, min(query.n_items, call.n_ranks),
        call.rankings + q * call.n_rankings * call.n_ranks, call.n_rankings, call.n_ranks, workspace,
        call.of_prefixes, call.out + q * call.n_rankings * (call.n_ranks if call.of_prefixes else 1))


cdef object run_over_rankings(
    RankingsCall *call, query_function of_query, const int32_t[:, :, ::1] rankings, size_t workspace,
    double ns_per_item, n_threads, bint of_prefixes=False
):
    """Return a number for each ranking, (n_queries, n_rankings), or for each of its ranks."""
    cdef Batch batch = new_batch(call.queries.offsets, rankings.shape[0])
    shape = rankings.shape[0], rankings.shape[1], rankings.shape[2]
    values = np.zeros(shape if of_prefixes else shape[:2])
    call.of_prefixes = of_prefixes
    call.rankings, call.out = <int32_t *>rankings_at(rankings), results(values.reshape(-1))
    call.n_rankings, call.n_ranks = rankings.shape[1], rankings.shape[2]
    batch.call = call
    batch.query = of_query
    batch.workspace = workspace
    batch.ns_per_item = ns_per_item
    run_batch(&batch, n_threads)
    return values


# ---------------------------------------------------------------------------------------------------------------------
# Entry points
# ---------------------------------------------------------------------------------------------------------------------

cdef const double[::1] DISCOUNTS = 1.0 / np.log2(np.arange(4096) + 2.0)


cdef bint is_plain_value(object value) noexcept:
    """Return whether this is a float that is finite or NaN."""
    return type(value) is float and not isinf(<double>value)


def discounts(intp_t n_ranks):
    """Return the discounts of DCG, 1 / log2(rank + 1)."""
    return np.array(discounts_of(n_ranks)[:n_ranks])


cdef const double[::1] discounts_of(intp_t n_ranks):
    """Return at least so many discounts."""
    return DISCOUNTS if n_ranks <= DISCOUNTS.shape[0] else 1.0 / np.log2(np.arange(n_ranks) + 2.0)


cdef struct Grades:
    Column column
    int seen                    # bits of label + 1, a single one for gains of grades; from A_GRADE on for others

cdef enum:
    GAINS_THAT_SHOW = 2 | 4 | 8  # 1, 3 and 7
    A_GRADE = 256


cdef void gains_in_range(void *grades_, intp_t start, intp_t stop) noexcept nogil:
    cdef Grades *grades = <Grades *>grades_
    if not copy_column(&grades.column, start, stop) & PLR_NO_WHOLE_GRADE:
        plr_add_flags(&grades.seen, of_grades.to_gains(grades.column.copy + start, stop - start))


def gains_of_grades(labels, n_threads):
    """Return 2**label - 1 for an array of whole grades from 0 to 200, or None for any other.

    Beside it stand the labels if all above 0 have the form of gains, 2**grade - 1, and 1, 3 and 7 are among them.
    """
    cdef Grades grades
    cdef intp_t n
    cdef int one_more
    grades.column.kind, grades.column.found, grades.seen = PLR_KINDS, 0, 0
    grades.column.given = <const char *>plain(labels, &grades.column.kind, &n)
    if n < 1:
        return None
    gains = new_array(n, &grades.column.copy)
    run_ranges(gains_in_range, &grades, n, 1.0, threads_of_pass(n_threads, n))
    if grades.column.found & PLR_NO_WHOLE_GRADE:
        return None
    if grades.seen < A_GRADE and grades.seen & GAINS_THAT_SHOW == GAINS_THAT_SHOW:
        return gains, [one_more - 1 for one_more in (2, 4, 8, 16, 32, 64, 128) if grades.seen & one_more]
    return gains, []


cdef MetricCall new_dcg_call(CheckedBatch checked, intp_t cutoff) except *:
    """Return such a call with the rank weights of the batch, or else the usual discounts."""
    cdef intp_t n_ranks = checked.longest if cutoff < 0 else min(cutoff, checked.longest)
    if checked.queries.rank_weights == NULL:
        checked.discounts = discounts_of(n_ranks)
        checked.queries.rank_weights, checked.queries.n_ranks = numbers(checked.discounts), n_ranks
    return new_call(&checked.queries, cutoff)


def dcg_plain(CheckedBatch query, cutoff, ties, bint over_ideal, empty):
    """Return the DCG of a `plain_query`, or its share; None if an option is not plain."""
    cdef intp_t n_ranks
    if (
        query is None or type(ties) is not str or ties != "index" or not is_plain_cutoff(cutoff, &n_ranks)
        or not is_plain_value(empty)
        or over_ideal and (query.found_in_relevance | query.found_in_rank_weights) & PLR_NEGATIVE
    ):
        return None
    return dcg(query, n_ranks, False, over_ideal, empty)


cpdef object dcg(CheckedBatch checked, intp_t cutoff, bint average_ties, bint over_ideal=False, double empty=0.0):
    """Return the DCG of each query. Without rank weights these are the usual discounts, and a cutoff of -1 is none.

    With ``over_ideal`` it is the share of the ideal DCG. ``empty`` is the value where that is 0, or of an empty query.
    """
    cdef MetricCall call = new_dcg_call(checked, cutoff)
    values = new_array(checked.n_queries, &call.out)
    call.metric, call.cutoff = tie_averaged_dcg if average_ties else dcg_by_rank, call.queries.n_ranks
    call.empty = empty
    if over_ideal:
        _ideal = new_array(checked.n_queries, &call.ideal)
    run_metric(&call, checked, 60.0 if over_ideal else 30.0)
    return values


def ideal_dcg(CheckedBatch checked not None, intp_t cutoff):
    """Return the DCG of the best ranking of each query; relevance and rank weights must not be negative."""
    cdef MetricCall call = new_dcg_call(checked, cutoff)
    ideal = new_array(checked.n_queries, &call.ideal)
    run_metric(&call, checked, 60.0)
    return ideal


def metric_plain(str name, CheckedBatch query, cutoff, double empty, double parameter, bint not_negative):
    """Return one of ``METRICS`` of a `plain_query`; None if its relevance or the cutoff is not plain."""
    cdef intp_t n_ranks
    if (
        query is None or not is_plain_cutoff(cutoff, &n_ranks)
        or not_negative and query.found_in_relevance & PLR_NEGATIVE
    ):
        return None
    return metric(name, query, n_ranks, empty, parameter)


cpdef object metric(str name, CheckedBatch checked, intp_t cutoff, double empty=0.0, double parameter=1.0):
    """Return one of ``METRICS`` of the first ``cutoff`` documents of each query, or of all for -1.

    ``empty`` is the value of a query without relevant documents.
    """
    cdef MetricCall call = new_call(&checked.queries, cutoff)
    values = new_array(checked.n_queries, &call.out)
    call.metric, call.parameter = <ranked_metric><uintptr_t>METRICS[name], parameter
    call.empty, call.empty_unless_relevant = empty, True
    call.ranks = name not in UNRANKED
    run_metric(&call, checked, 50.0 if call.ranks else 1.0)
    return values


def modes(const double[::1] scores, const int64_t[::1] offsets, intp_t n_ranks, n_threads):
    """Return the first items by descending score, (n_queries, n_ranks), with -1 after the last one above -inf."""
    cdef RankingsCall call
    rankings = np.full((offsets.shape[0] - 1, 1, n_ranks), -1, np.int32)
    call.queries = queries_of(scores, offsets)
    run_over_rankings(&call, mode_in_batch, rankings, ranking_workspace(longest_query(offsets)), 30.0, n_threads)
    return rankings[:, 0]


def alpha_ndcg(
    const double[:, ::1] judged, const int64_t[::1] offsets, double kept, const int32_t[:, :, ::1] rankings,
    double[::1] ideal, n_threads
):
    """Return the alpha-DCG of checked rankings as shares of the ideal, (n_queries, n_rankings), 0 where that is 0.

    ``ideal``, (n_queries,), keeps what is computed for it: NaN stands for what is not known.
    """
    cdef RankingsCall call
    cdef intp_t n_topics = judged.shape[1]
    cdef const double[::1] discounts = discounts_of(rankings.shape[2])
    call.queries.offsets = integers(offsets)
    call.judged = Judgements(&judged[0, 0], n_topics, kept, numbers(discounts))
    call.ideal = results(ideal)
    return run_over_rankings(
        &call, alpha_ndcg_in_batch, rankings, n_topics * sizeof(double) + longest_query(offsets),
        1.0 + rankings.shape[1] * n_topics, n_threads)


def log_prob_of_checked(
    const double[::1] scores, const int64_t[::1] offsets, const int32_t[:, :, ::1] rankings, bint of_prefixes, n_threads
):
    """Return log-probabilities of checked rankings, (n_queries, n_rankings), or of the ranks down to each of theirs."""
    cdef RankingsCall call
    cdef intp_t longest = longest_query(offsets)
    call.queries = queries_of(scores, offsets)
    return run_over_rankings(
        &call, log_prob_in_batch, rankings, bytes_of(lay_out_remaining, longest, min(rankings.shape[2], longest)),
        10.0 + rankings.shape[1], n_threads, of_prefixes)
