"""Losses of given labels over a batch: one value per query, and the gradient of their sum.

A loss is three steps (``_losses.pxd``): begin, which says how many rows the query has, the rows, in order, and finish.
Rows are what a long query is cut into between two looks for Ctrl-C.
"""

from cython.parallel cimport prange

from plrank_fast._likelihood_losses cimport list_mle, pointwise_logistic, pointwise_squared, softmax_cross_entropy
from plrank_fast._pair_losses cimport lambda_loss, pairwise_logistic
from plrank_fast._rank_losses cimport approx_ndcg, soft_rank
from plrank_fast._threads cimport (
    ROUND_NS,
    Workspaces,
    check_interrupt,
    longest_query,
    most_threads,
    neighbours,
    raise_if_stopped,
    signal_came,
    threads_for,
)
from plrank_fast._typedefs cimport int64_t, intp_t, uint64_t

POINTWISE_SQUARED, POINTWISE_LOGISTIC, SOFTMAX_CROSS_ENTROPY, LIST_MLE = range(4)
PAIRWISE_LOGISTIC, LAMBDA_LOSS, APPROX_NDCG, SOFT_RANK = range(4, 8)

cdef intp_t ROW_GROUP = 8  # rows are handed over in multiples of this: the targets that SoftRank takes together


cdef Loss loss_of_kind(int kind) noexcept nogil:
    if kind == 0:
        return pointwise_squared()
    if kind == 1:
        return pointwise_logistic()
    if kind == 2:
        return softmax_cross_entropy()
    if kind == 3:
        return list_mle()
    if kind == 4:
        return pairwise_logistic()
    if kind == 5:
        return lambda_loss()
    if kind == 6:
        return approx_ndcg()
    return soft_rank()


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef double query_ns(const Loss *loss, intp_t n_items, intp_t cutoff) noexcept nogil:
    """Rough cost of a query; an empty one costs nothing."""
    cdef intp_t ranks = min(cutoff, n_items)
    if n_items == 0:
        return 0.0
    return 200.0 + n_items * loss.ns_per_item + (
        (ranks if loss.rows_are_ranks else n_items) * loss.row_ns(n_items, ranks))


cdef LossQuery describe_query(
    const double[::1] scores, const double[::1] labels, const int64_t[::1] offsets, intp_t q,
    const LossOptions *options, double[::1] values, double[::1] gradient
) noexcept nogil:
    """Point at one query of a batch (which must not be empty)."""
    cdef LossQuery query
    query.n_items = offsets[q + 1] - offsets[q]
    query.cutoff = min(options.cutoff, query.n_items)
    query.scores = &scores[offsets[q]]
    query.labels = &labels[offsets[q]]
    query.discounts = options.discounts
    query.scale = options.scale
    query.distance_weight = options.distance_weight
    query.discounts_past_cutoff = options.discounts_past_cutoff
    query.key = options.key
    query.stream = options.first_query + <uint64_t>q
    query.gradient = &gradient[offsets[q]]
    query.value = &values[q]
    query.n_rows = 0
    query.look = NULL
    query.state = NULL
    return query


cdef void evaluate_query(const Loss *loss, LossQuery *query, char *workspace) noexcept nogil:
    loss.begin(query, workspace)
    if query.n_rows > 0:
        loss.rows(query, 0, query.n_rows)
        loss.finish(query)


# ---------------------------------------------------------------------------------------------------------------------
# Batch
# ---------------------------------------------------------------------------------------------------------------------

cdef void evaluate_in_batch(
    const Loss *loss, const double[::1] scores, const double[::1] labels, const int64_t[::1] offsets, intp_t q,
    const LossOptions *options, char *workspace, double[::1] values, double[::1] gradient
) noexcept nogil:
    cdef LossQuery query
    if offsets[q + 1] > offsets[q]:
        query = describe_query(scores, labels, offsets, q, options, values, gradient)
        evaluate_query(loss, &query, workspace)


cdef int evaluate_long_query(const Loss *loss, LossQuery *query, char *workspace) except -1:
    """A query that outlasts a round, in portions of rows: the same numbers, and Ctrl-C is heard."""
    cdef double portion = min(1e15, ROUND_NS / (1.0 + loss.row_ns(query.n_items, query.cutoff)))
    cdef intp_t rows = ROW_GROUP * max(<intp_t>1, <intp_t>(portion / ROW_GROUP)), first
    query.look = signal_came
    with nogil:
        loss.begin(query, workspace)
    check_interrupt()
    for first in range(0, query.n_rows, rows):
        with nogil:
            loss.rows(query, first, min(first + rows, query.n_rows))
        raise_if_stopped()
    if query.n_rows > 0:
        loss.finish(query)
    return 0


# ---------------------------------------------------------------------------------------------------------------------
# Entry point
# ---------------------------------------------------------------------------------------------------------------------

def evaluate_loss(
    int kind, const double[::1] scores, const double[::1] labels, const int64_t[::1] offsets, intp_t cutoff,
    const double[::1] discounts, bint discounts_past_cutoff, double scale, double distance_weight,
    const uint64_t[::1] key, uint64_t first_query, int n_threads, double[::1] values, double[::1] gradient
):
    """Fill ``values`` (n_queries,) and ``gradient`` (n_docs,), both preset to 0. ``labels`` are gains where NDCG is.

    ``discounts``, 1 / log2(rank + 1), must reach one rank past the end of the longest query; ``key`` is None where ties
    of labels are broken by index.
    """
    cdef Loss loss = loss_of_kind(kind)
    cdef LossOptions options = LossOptions(
        cutoff, &discounts[0], discounts_past_cutoff, scale, distance_weight, NULL, first_query)
    cdef LossQuery query
    cdef intp_t n_queries = offsets.shape[0] - 1
    cdef intp_t start = 0, stop, q
    cdef intp_t longest = longest_query(offsets)
    cdef int threads
    cdef double budget, cost
    n_threads = most_threads(n_threads, n_queries)
    cdef Workspaces workspaces = Workspaces(n_threads, loss.workspace(longest, min(cutoff, longest)))
    if key is not None:
        options.key = &key[0]
    while start < n_queries:
        budget = ROUND_NS * n_threads
        stop = start
        while stop < n_queries:
            cost = query_ns(&loss, offsets[stop + 1] - offsets[stop], cutoff)
            if stop > start and (cost > ROUND_NS or budget <= 0.0):
                break
            budget -= cost
            stop += 1
        if stop - start == 1 and query_ns(&loss, offsets[stop] - offsets[start], cutoff) > ROUND_NS:
            query = describe_query(scores, labels, offsets, start, &options, values, gradient)
            evaluate_long_query(&loss, &query, workspaces.of_thread(0))
        else:
            threads = threads_for(n_threads, stop - start)
            with nogil:
                for q in prange(
                    start, stop, schedule="dynamic", chunksize=neighbours(stop - start, threads), num_threads=threads
                ):
                    evaluate_in_batch(
                        &loss, scores, labels, offsets, q, &options,
                        workspaces.of_this_thread(), values, gradient)
            check_interrupt()
        start = stop
