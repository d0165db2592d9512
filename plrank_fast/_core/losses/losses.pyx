"""Losses over a batch: one value per query, and the gradient of their sum.

A loss has three steps (``losses/loss.pxd``): begin, which sets the number of rows of the query, the rows, in order, and
finish. A long query is divided into rows, and the driver checks for interrupts between them.
"""

from libc.math cimport floor, ldexp

from plrank_fast._core.losses.bucket_order cimport bucket_order
from plrank_fast._core.losses.likelihood cimport list_mle, pointwise_logistic, pointwise_squared, softmax_cross_entropy
from plrank_fast._core.losses.loss cimport Loss, LossOptions, LossQuery
from plrank_fast._core.losses.pairs cimport lambda_loss, pairwise_logistic
from plrank_fast._core.losses.ranks cimport approx_ndcg, soft_rank
from plrank_fast._core.runtime.batch cimport Batch, batch_of, longest_query, run_batch
from plrank_fast._core.runtime.lone_query cimport (
    LONGEST_PLAIN_COUNT, NOT_TAKEN, LoneQuery, plain_count, plain_threads,
)
from plrank_fast._core.runtime.magnitudes cimport are_finite, are_within_limits
from plrank_fast._core.runtime.plain_arrays cimport plain_values
from plrank_fast._core.runtime.queries cimport Queries, Query, queries_of, query_at
from plrank_fast._core.runtime.scalar_types cimport int64_t, intp_t, uint64_t
from plrank_fast._core.runtime.threads cimport ROUND_NS, Workspaces, raise_if_stopped, signal_came

cpdef enum LossKind:
    POINTWISE_SQUARED
    POINTWISE_LOGISTIC
    SOFTMAX_CROSS_ENTROPY
    LIST_MLE
    BUCKET_ORDER
    PAIRWISE_LOGISTIC
    LAMBDA_LOSS
    APPROX_NDCG
    SOFT_RANK


cdef intp_t ROW_GROUP = 8  # rows are processed in multiples of this, the targets that SoftRank takes together


cdef Loss loss_of_kind(int kind) noexcept nogil:
    if kind == POINTWISE_SQUARED:
        return pointwise_squared()
    if kind == POINTWISE_LOGISTIC:
        return pointwise_logistic()
    if kind == SOFTMAX_CROSS_ENTROPY:
        return softmax_cross_entropy()
    if kind == LIST_MLE:
        return list_mle()
    if kind == BUCKET_ORDER:
        return bucket_order()
    if kind == PAIRWISE_LOGISTIC:
        return pairwise_logistic()
    if kind == LAMBDA_LOSS:
        return lambda_loss()
    if kind == APPROX_NDCG:
        return approx_ndcg()
    return soft_rank()


cdef struct Call:
    Queries queries              # grades, or gains for the losses that approach NDCG, are their relevance
    Loss loss
    LossOptions options
    double *values               # (n_queries,)
    double *gradient             # (n_docs,)
    double *hessian              # (n_docs,), or NULL


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef double cost_of_query(const void *call_, intp_t n_items) noexcept nogil:
    cdef const Call *call = <const Call *>call_
    cdef intp_t ranks = min(call.options.cutoff, n_items)
    return 200.0 + n_items * call.loss.ns_per_item + (
        (ranks if call.loss.rows_are_ranks else n_items) * call.loss.row_ns(n_items, ranks))


cdef LossQuery describe_query(const Call *call, intp_t q) noexcept nogil:
    """Return one query of a batch, which must not be empty."""
    cdef Query of_batch = query_at(&call.queries, q)
    cdef LossQuery query
    query.n_items = of_batch.n_items
    query.cutoff = min(call.options.cutoff, query.n_items)
    query.scores = of_batch.scores
    query.labels = of_batch.relevance
    query.discounts = call.options.discounts
    query.scale = call.options.scale
    query.distance_weight = call.options.distance_weight
    query.discounts_past_cutoff = call.options.discounts_past_cutoff
    query.key = call.options.key
    query.stream = call.options.first_query + <uint64_t>q
    query.gradient = call.gradient + of_batch.first if call.gradient != NULL else NULL
    query.hessian = call.hessian + of_batch.first if call.hessian != NULL else NULL
    query.value = call.values + q
    query.n_rows = 0
    query.look = NULL
    query.state = NULL
    return query


# ---------------------------------------------------------------------------------------------------------------------
# Batch
# ---------------------------------------------------------------------------------------------------------------------

cdef void evaluate_in_batch(const void *call_, intp_t q, char *workspace) noexcept nogil:
    cdef const Call *call = <const Call *>call_
    cdef LossQuery query = describe_query(call, q)
    call.loss.begin(&query, workspace)
    if query.n_rows > 0:
        call.loss.rows(&query, 0, query.n_rows)
        call.loss.finish(&query)


cdef int evaluate_long_query(const void *call_, intp_t q, int n_threads) except -1:
    """Evaluate a query that outlasts a round in portions of rows, with checks for interrupts and the same numbers."""
    cdef const Call *call = <const Call *>call_
    cdef LossQuery query = describe_query(call, q)
    cdef double portion = min(1e15, ROUND_NS / (1.0 + call.loss.row_ns(query.n_items, query.cutoff)))
    cdef intp_t rows = ROW_GROUP * max(<intp_t>1, <intp_t>(portion / ROW_GROUP)), first
    cdef Workspaces workspace = Workspaces(1, call.loss.workspace(query.n_items, query.cutoff))
    query.look = signal_came
    with nogil:
        call.loss.begin(&query, workspace.of_thread(0))
    raise_if_stopped()
    for first in range(0, query.n_rows, rows):
        with nogil:
            call.loss.rows(&query, first, min(first + rows, query.n_rows))
        raise_if_stopped()
    if query.n_rows > 0:
        call.loss.finish(&query)
    return 0


# ---------------------------------------------------------------------------------------------------------------------
# Entry points
# ---------------------------------------------------------------------------------------------------------------------

cdef double LABEL_OF_A_GAIN = 7.0  # ``validation.warn_if_gains`` examines labels from here on


cdef void describe_batch(Batch *batch, const Call *call, intp_t longest) noexcept:
    """Set the functions and the costs of a batch whose loss and options are known."""
    batch.call = call
    batch.query = evaluate_in_batch
    batch.long_query = evaluate_long_query
    batch.workspace = call.loss.workspace(longest, min(call.options.cutoff, longest))
    batch.cost = cost_of_query


def evaluate_loss(
    int kind, const double[::1] scores, const double[::1] labels, const int64_t[::1] offsets, intp_t cutoff,
    const double[::1] discounts, bint discounts_past_cutoff, double scale, double distance_weight,
    const uint64_t[::1] key, uint64_t first_query, int n_threads, double[::1] values, double[::1] gradient,
    double[::1] hessian=None
):
    """Fill ``values`` (n_queries,) and ``gradient`` (n_docs,), both preset to 0. For NDCG, ``labels`` are gains.

    ``hessian`` (n_docs,), preset to 0, gets the diagonal of the Hessian. Only BUCKET_ORDER has it, and takes None for
    ``gradient``.

    ``discounts``, 1 / log2(rank + 1), must reach one rank past the end of the longest query; ``key`` is None if
    the index breaks ties of labels.
    """
    cdef Call call
    cdef Batch batch = batch_of(offsets)
    cdef intp_t longest = longest_query(offsets)
    if longest == 0:
        return
    call.queries = queries_of(scores, labels, None, offsets)
    call.loss = loss_of_kind(kind)
    call.options = LossOptions(
        cutoff, &discounts[0], discounts_past_cutoff, scale, distance_weight, NULL, first_query)
    if key is not None:
        call.options.key = &key[0]
    call.values = &values[0]
    call.gradient = &gradient[0] if gradient is not None else NULL
    call.hessian = &hessian[0] if hessian is not None else NULL
    describe_batch(&batch, &call, longest)
    run_batch(&batch, n_threads)


def lone_loss(
    int kind, scores, labels, double lowest_label, double highest_label, bint as_gains, cutoff, discounts,
    bint discounts_past_cutoff, double scale, double distance_weight, n_threads, first_query
):
    """Return value (1,) and gradient of one short query with plain arguments, ties broken by index, or None.

    ``as_gains`` converts labels to gains if they are whole numbers below 7, which cannot be mistaken for gains. See
    ``runtime/lone_query``.
    """
    cdef Call call
    cdef Batch batch
    cdef LoneQuery query = LoneQuery.__new__(LoneQuery)
    cdef intp_t n_discounts, d
    cdef intp_t ranks = LONGEST_PLAIN_COUNT if cutoff is None else plain_count(cutoff, 0)
    cdef double *copied
    cdef double *results
    cdef const double *of_ranks = plain_values(discounts, &n_discounts, False)
    if (
        ranks < 0 or plain_count(first_query, 0) < 0 or not plain_threads(n_threads)
        or not query.look_at(scores, labels, NOT_TAKEN)
    ):
        return None
    if n_discounts <= query.n_items:
        return None
    call.loss = loss_of_kind(kind)
    call.options = LossOptions(ranks, of_ranks, discounts_past_cutoff, scale, distance_weight, NULL, 0)
    batch = query.batch()
    describe_batch(&batch, &call, query.n_items)
    if not query.copy(&batch, (1 + query.n_items) * sizeof(double)):
        return None
    call.queries = query.queries
    if not are_within_limits(call.queries.scores, query.n_items):
        return None
    copied = <double *>call.queries.relevance
    for d in range(query.n_items):
        if not lowest_label <= copied[d] <= highest_label:
            return None
        if as_gains:
            if not (0.0 <= copied[d] < LABEL_OF_A_GAIN and copied[d] == floor(copied[d])):
                return None
            copied[d] = ldexp(1.0, <int>copied[d]) - 1.0
    results = <double *>query.results
    call.values = results
    call.gradient = results + 1
    call.hessian = NULL
    query.run(&batch)
    if not are_finite(results, 1 + query.n_items):
        return None
    return (
        query.deliver(0, sizeof(double), 1, None),
        query.deliver(sizeof(double), query.n_items * sizeof(double), query.n_items, None),
    )
