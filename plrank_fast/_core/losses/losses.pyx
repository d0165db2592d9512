"""Losses over a batch: one value per query, and the gradient of their sum.

A loss has three steps (``losses/loss.pxd``): begin, which sets the number of rows of the query, the rows, in order, and
finish. A long query is divided into rows, and the driver checks for interrupts between them.
"""

import numpy as np

from libc.float cimport DBL_MAX
from libc.math cimport INFINITY
from libc.stdint cimport uintptr_t
from libc.string cimport memset

from plrank_fast._core.losses.bucket_order cimport bucket_order
from plrank_fast._core.losses.likelihood cimport list_mle, pointwise_logistic, pointwise_squared, softmax_cross_entropy
from plrank_fast._core.losses.loss cimport Loss, LossOptions, LossQuery, ns_per_row
from plrank_fast._core.losses.pairs cimport lambda_loss, pairwise_logistic
from plrank_fast._core.losses.ranks cimport approx_ndcg, soft_rank
from plrank_fast._core.random.key cimport draw_key
from plrank_fast._core.ranking.metrics cimport discounts_of
from plrank_fast._core.runtime.arguments cimport (
    NOT_TAKEN,
    CheckedBatch,
    checked_batch,
    checked_count,
    checked_cutoff,
    checked_threads,
    empty,
    validation,
    zeros,
)
from plrank_fast._core.runtime.batch cimport Batch, new_batch, run_batch
from plrank_fast._core.runtime.buffers cimport data_of
from plrank_fast._core.runtime.layout cimport bytes_of, state_at
from plrank_fast._core.runtime.magnitudes cimport (
    PLR_ABOVE_ONE, PLR_NEGATIVE, PLR_NO_SMALL_GRADE, PLR_NOT_FINITE, PLR_TOO_LARGE, are_finite,
    gain_of_grade, plr_add_flags,
)
from plrank_fast._core.runtime.queries cimport Queries, Query, query_at
from plrank_fast._core.runtime.scalar_types cimport intp_t, uint64_t
from plrank_fast._core.runtime.threads cimport ROUND_NS, Workspaces, raise_if_stopped, signal_came

cdef dict LOSSES = {
    "pointwise_squared": <uintptr_t>&pointwise_squared,
    "pointwise_logistic": <uintptr_t>&pointwise_logistic,
    "softmax_cross_entropy": <uintptr_t>&softmax_cross_entropy,
    "list_mle": <uintptr_t>&list_mle,
    "bucket_order": <uintptr_t>&bucket_order,
    "pairwise_logistic": <uintptr_t>&pairwise_logistic,
    "lambda_loss": <uintptr_t>&lambda_loss,
    "approx_ndcg": <uintptr_t>&approx_ndcg,
    "soft_rank": <uintptr_t>&soft_rank,
}
cdef intp_t ROW_GROUP = 8  # rows are processed in multiples of this, the targets that SoftRank takes together


cdef struct Call:
    Queries queries              # grades, or gains for the losses that approach NDCG, are their relevance
    Loss loss
    LossOptions options
    double *values               # (n_queries,)
    double *gradient             # (n_docs,)
    double *hessian              # (n_docs,), or NULL
    bint to_gains                # labels are small grades, which become gains
    int *found                   # flags of ``magnitudes.h`` for values and gradient, or NULL


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef double cost_of_loss(const void *call_, intp_t n_items) noexcept nogil:
    cdef const Call *call = <const Call *>call_
    return 200.0 + n_items * call.loss.ns_per_item + (
        (min(call.options.cutoff, n_items) if call.loss.rows_are_ranks else n_items) * ns_per_row(
            &call.loss, n_items, call.options.cutoff))


cdef LossQuery begin_query(const Call *call, intp_t q, char *workspace, int (*look)() noexcept nogil) noexcept nogil:
    """Begin one query of a batch, which must not be empty; ``look`` is that of ``LossQuery``."""
    cdef Query of_batch = query_at(&call.queries, q)
    cdef LossQuery query
    cdef double *labels = <double *>of_batch.relevance
    cdef size_t doubles = of_batch.n_items * sizeof(double)
    cdef intp_t d
    if call.to_gains:
        for d in range(of_batch.n_items):
            labels[d] = gain_of_grade(labels[d])
    query.options = &call.options
    query.n_items = of_batch.n_items
    query.cutoff = min(call.options.cutoff, query.n_items)
    query.scores = of_batch.scores
    query.labels = of_batch.relevance
    query.stream = call.options.first_query + <uint64_t>q
    query.gradient = call.gradient + of_batch.first if call.gradient != NULL else NULL
    query.hessian = call.hessian + of_batch.first if call.hessian != NULL else NULL
    if query.gradient != NULL:
        memset(query.gradient, 0, doubles)
    if query.hessian != NULL:
        memset(query.hessian, 0, doubles)
    query.value = call.values + q
    query.n_rows = 1
    query.look = look
    query.state = state_at(workspace, call.loss.lay_out, query.n_items, query.cutoff)
    if call.loss.begin != NULL:
        call.loss.begin(&query)
    return query


cdef void finish_query(const Call *call, LossQuery *query) noexcept nogil:
    if call.loss.finish != NULL and query.n_rows > 0:
        call.loss.finish(query)
    if call.found != NULL and not (are_finite(query.value, 1) and are_finite(query.gradient, query.n_items)):
        plr_add_flags(call.found, PLR_NOT_FINITE)


# ---------------------------------------------------------------------------------------------------------------------
# Batch
# ---------------------------------------------------------------------------------------------------------------------

cdef void evaluate_in_batch(const void *call_, intp_t q, char *workspace) noexcept nogil:
    cdef const Call *call = <const Call *>call_
    cdef LossQuery query = begin_query(call, q, workspace, NULL)
    if query.n_rows > 0:
        call.loss.rows(&query, 0, query.n_rows)
    finish_query(call, &query)


cdef int evaluate_long_query(const void *call_, intp_t q, int n_threads) except -1:
    """Evaluate a query that outlasts a round in portions of rows, with checks for interrupts and the same numbers."""
    cdef const Call *call = <const Call *>call_
    cdef intp_t n_items = query_at(&call.queries, q).n_items, cutoff = min(call.options.cutoff, n_items), first
    cdef double portion = min(1e15, ROUND_NS / (1.0 + ns_per_row(&call.loss, n_items, cutoff)))
    cdef intp_t rows = ROW_GROUP * max(<intp_t>1, <intp_t>(portion / ROW_GROUP))
    cdef Workspaces workspace = Workspaces(1, bytes_of(call.loss.lay_out, n_items, cutoff))
    cdef LossQuery query
    with nogil:
        query = begin_query(call, q, workspace.of_thread(0), signal_came)
    raise_if_stopped()
    for first in range(0, query.n_rows, rows):
        with nogil:
            call.loss.rows(&query, first, min(first + rows, query.n_rows))
        raise_if_stopped()
    finish_query(call, &query)
    return 0


# ---------------------------------------------------------------------------------------------------------------------
# Entry points
# ---------------------------------------------------------------------------------------------------------------------

cdef bint all_in_range(const double *values, intp_t n, double factor, double lowest, double highest) noexcept nogil:
    cdef intp_t d
    for d in range(n):
        if not lowest <= factor * values[d] <= highest:
            return False
    return True


def evaluate(
    str loss, scores, labels, offsets, n_threads, out, double scale=1.0, bint finite=True,
    bint not_negative=False, bint at_most_one=False, gains=None, bint limited=False, cutoff=None,
    bint discounts_past_cutoff=False, double distance_weight=0.0, rng=None, bint ties_at_random=False, first_query=0,
    int n_derivatives=1
):
    """Return the values (n_queries,) of a loss and its gradient (n_docs,).

    "bucket_order" can have none or two derivatives; it then returns the diagonal of the Hessian too, or None for what
    is not computed. ``gains`` is the function that converts grades to gains, None for losses of the labels. Labels of
    ``limited`` magnitude enter products. Results beyond the largest double are refused if they must be ``finite``.
    """
    cdef Call call
    cdef Batch batch
    cdef uint64_t[2] key
    cdef int found = 0
    cdef CheckedBatch checked = checked_batch(scores, labels, NOT_TAKEN, offsets, n_threads, "labels", limited)
    cdef const double[::1] discounts = discounts_of(checked.longest if gains is not None else 0)
    call.queries = checked.queries
    if checked.found_in_scores & PLR_TOO_LARGE:
        validation.require(
            all_in_range(call.queries.scores, checked.n_items, scale, -DBL_MAX, DBL_MAX),
            f"scores times the slope, or over temperature or sigma, are beyond the largest double, got a factor of "
            f"{scale:g}: divide both by the same number")
    if checked.found_in_relevance & ((PLR_NEGATIVE if not_negative else 0) | (PLR_ABOVE_ONE if at_most_one else 0)):
        validation.within(np.asarray(checked.relevance), "labels", 0.0, 1.0 if at_most_one else INFINITY)
    call.to_gains = gains is not None and not checked.found_in_relevance & PLR_NO_SMALL_GRADE
    if gains is not None and not call.to_gains:
        labels = gains(np.asarray(checked.relevance))
        call.queries.relevance = <double *>data_of(labels)
    call.loss = (<Loss *><uintptr_t>LOSSES[loss])[0]
    call.options = LossOptions(
        checked_cutoff(cutoff, checked.longest), <double *>&discounts[0],
        discounts_past_cutoff, scale, distance_weight, NULL, checked_count(first_query, "first_query", 0))
    n_threads = checked_threads(n_threads)
    outputs = None
    if out is not None:
        outputs = validation.output_pair(out, (checked.n_queries,), (checked.n_items,))
    if ties_at_random:
        draw_key(rng, key)
        call.options.key = key
    elif rng is not None:
        validation.check_random_state(rng)
    values = zeros(checked.n_queries)
    call.values = <double *>data_of(values)
    call.gradient = call.hessian = NULL
    call.found = &found if finite else NULL
    gradient = diagonal = None
    if n_derivatives > 0:
        gradient = empty(checked.n_items)
        call.gradient = <double *>data_of(gradient)
    if n_derivatives > 1:
        diagonal = empty(checked.n_items)
        call.hessian = <double *>data_of(diagonal)
    if checked.n_items > 0:
        batch = new_batch(checked.queries.offsets, checked.n_queries)
        batch.call = &call
        batch.query = evaluate_in_batch
        batch.long_query = evaluate_long_query
        batch.workspace = bytes_of(call.loss.lay_out, checked.longest, min(call.options.cutoff, checked.longest))
        batch.cost = cost_of_loss
        batch.kind = <const void *>call.loss.rows
        run_batch(&batch, n_threads)
    if found & PLR_NOT_FINITE:
        validation.representable(values, "scores and labels")
        validation.representable(gradient, "scores and labels")
    if gradient is not None and all_in_range(call.gradient, checked.n_items, 1.0, 0.0, 0.0):
        checked.warn_if_all_alike("labels")
    if outputs is not None:
        return validation.deliver(values, outputs[0]), validation.deliver(gradient, outputs[1])
    return (values, gradient) if n_derivatives == 1 else (values, gradient, diagonal)
