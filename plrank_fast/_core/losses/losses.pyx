"""Losses over a batch: one value per query, and the gradient of their sum.

A loss has three steps (``losses/loss.pxd``): begin, which sets the number of rows of the query, the rows, in order, and
finish. A long query is divided into rows, and the driver checks for interrupts between them.
"""


from libc.string cimport memset

from plrank_fast._core.losses.loss cimport Loss, LossOptions, LossQuery, loss_in, ns_per_row
from plrank_fast._core.random.key cimport draw_key
from plrank_fast._core.ranking.metrics cimport discounts_of
from plrank_fast._core.runtime.arguments cimport CheckedBatch, empty, is_plain_cutoff, zeros
from plrank_fast._core.runtime.batch cimport Batch, new_batch, run_batch
from plrank_fast._core.runtime.buffers cimport numbers
from plrank_fast._core.runtime.layout cimport bytes_of, state_at
from plrank_fast._core.runtime.magnitudes cimport (
    PLR_ABOVE_ONE, PLR_NEGATIVE, PLR_NO_SMALL_GRADE, PLR_TOO_LARGE, are_finite, gain_of_grade,
)
from plrank_fast._core.runtime.queries cimport Queries, Query, query_at
from plrank_fast._core.runtime.scalar_types cimport intp_t, uint64_t
from plrank_fast._core.runtime.threads cimport ROUND_NS, Workspaces, raise_if_stopped, signal_came

cdef intp_t ROW_GROUP = 8  # rows are processed in multiples of this, the targets that SoftRank takes together


cdef struct Call:
    Queries queries              # grades, or gains for the losses that approach NDCG, are their relevance
    Loss loss
    LossOptions options
    double *values               # (n_queries,)
    double *gradient             # (n_docs,)
    double *hessian              # (n_docs,), or NULL
    bint to_gains                # labels are small grades, which become gains


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef double cost_of_loss(const void *call_, intp_t n_items) noexcept nogil:
    cdef const Call *call = <const Call *>call_
    return 200.0 + n_items * call.loss.ns_per_item + (
        (min(call.options.cutoff, n_items) if call.loss.rows_are_ranks else n_items) * ns_per_row(
            &call.loss, n_items, call.options.cutoff))


cdef void begin_query(
    const Call *call, intp_t q, char *workspace, int (*look)() noexcept nogil, LossQuery *query
) noexcept nogil:
    """Begin one query of a batch, which must not be empty; ``look`` is that of ``LossQuery``."""
    cdef Query of_batch = query_at(&call.queries, q)
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
        call.loss.begin(query)


cdef void finish_query(const Call *call, LossQuery *query) noexcept nogil:
    if call.loss.finish != NULL and query.n_rows > 0:
        call.loss.finish(query)


# ---------------------------------------------------------------------------------------------------------------------
# Batch
# ---------------------------------------------------------------------------------------------------------------------

cdef void evaluate_in_batch(const void *call_, intp_t q, char *workspace) noexcept nogil:
    cdef const Call *call = <const Call *>call_
    cdef LossQuery query
    begin_query(call, q, workspace, NULL, &query)
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
        begin_query(call, q, workspace.of_thread(0), signal_came, &query)
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

def evaluate_plain(
    loss, CheckedBatch query, out, double lowest, double highest, double scale, gain, cutoff,
    bint discounts_past_cutoff, double distance_weight, rng, bint ties_at_random
):
    """Return the value of a `plain_query` and its gradient; None if its labels or an option are not plain."""
    cdef intp_t n_ranks
    cdef int refused = PLR_NEGATIVE if lowest == 0.0 else 0
    if highest == 1.0:
        refused |= PLR_ABOVE_ONE
    if gain is not None:
        refused |= PLR_NO_SMALL_GRADE
    if (
        query is None or query.found_in_scores & PLR_TOO_LARGE or query.found_in_relevance & refused
        or out is not None or rng is not None or ties_at_random or not is_plain_cutoff(cutoff, &n_ranks)
        or not (gain is None or type(gain) is str and gain == "exponential")
    ):
        return None
    values, gradient, _, finite = evaluate(
        loss, query, n_ranks, scale, gain is not None, None, discounts_past_cutoff, distance_weight)
    return (values, gradient) if finite else None


cpdef tuple evaluate(
    object loss, CheckedBatch checked, intp_t cutoff=-1, double scale=1.0, bint to_gains=False,
    const double[::1] gains=None, bint discounts_past_cutoff=False, double distance_weight=0.0,
    bint ties_at_random=False, object rng=None, uint64_t first_query=0, int n_derivatives=1
):
    """Return the values (n_queries,) of a loss, its gradient and the diagonal of its Hessian, (n_docs,).

    ``loss`` is an object of its module. ``n_derivatives`` are computed, two of them for BUCKET_ORDER only; None stands
    for the others. The last result is whether all values are finite, as derivatives then are. The labels are those of
    the batch, or ``gains`` in their place; ``to_gains`` converts grades that are small. A cutoff of -1 is none.
    """
    cdef Call call
    cdef Batch batch
    cdef uint64_t[2] key
    cdef bint of_gains = to_gains or gains is not None
    cdef const double[::1] discounts = discounts_of(checked.longest if of_gains else 0)
    call.queries = checked.queries
    if gains is not None:
        call.queries.relevance = numbers(gains)
    call.to_gains = to_gains
    call.loss = loss_in(loss)[0]
    call.options = LossOptions(
        checked.longest if cutoff < 0 else cutoff, numbers(discounts), discounts_past_cutoff, scale, distance_weight,
        NULL, first_query)
    if ties_at_random:
        draw_key(rng, key)
        call.options.key = key
    call.gradient, call.hessian = NULL, NULL
    values = zeros(checked.n_queries, &call.values)
    gradient = empty(checked.n_items, &call.gradient) if n_derivatives > 0 else None
    diagonal = empty(checked.n_items, &call.hessian) if n_derivatives > 1 else None
    if checked.n_items > 0:
        batch = new_batch(checked.queries.offsets, checked.n_queries)
        batch.call = &call
        batch.query = evaluate_in_batch
        batch.long_query = evaluate_long_query
        batch.workspace = bytes_of(call.loss.lay_out, checked.longest, min(call.options.cutoff, checked.longest))
        batch.cost = cost_of_loss
        batch.kind = <const void *>call.loss.rows
        run_batch(&batch, checked.n_threads)
    return values, gradient, diagonal, bool(are_finite(call.values, checked.n_queries))
