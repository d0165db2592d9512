"""The interface of losses: three steps over the rows of one query."""

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New

from plrank_fast._core.runtime.layout cimport layout_function
from plrank_fast._core.runtime.scalar_types cimport intp_t, uint64_t

cdef struct LossOptions:
    intp_t cutoff                # ranks that count, in every query
    const double *discounts      # 1 / log2(rank + 1), of the longest query
    bint discounts_past_cutoff   # pairs with a document past the cutoff use its discount; otherwise that is 0
    double scale                 # factor of score differences: slope of a pair, 1 / temperature, 1 / deviation
    double distance_weight       # of LambdaLoss
    const uint64_t *key          # key of the streams that break ties of labels; NULL: the lower index comes first
    uint64_t first_query         # index of the batch's first query in these streams

cdef struct LossQuery:
    const LossOptions *options
    intp_t n_items
    intp_t cutoff                # ranks that count, at most n_items
    const double *scores
    const double *labels         # grades, or gains for the losses that approach NDCG
    uint64_t stream              # number of the query's random stream
    double *gradient             # (n_items,) OUT, zero before; or NULL, for bucket orders only
    double *hessian              # (n_items,) OUT, the diagonal, zero before; or NULL, as for most losses
    double *value                # OUT, zero before
    intp_t n_rows                # 1, or set by the begin step; rows are processed in order
    int (*look)() noexcept nogil  # called within rows: returns whether to stop, with an exception set; or NULL
    void *state

ctypedef void (*loss_step)(LossQuery *query) noexcept nogil
ctypedef void (*loss_rows)(LossQuery *query, intp_t first, intp_t last) noexcept nogil

cdef struct Loss:
    layout_function lay_out      # lays out the state; or NULL
    loss_step begin              # NULL: the query is one row
    loss_rows rows
    loss_step finish             # or NULL
    double ns_per_item           # rough cost of begin and finish
    double ns_per_row_item       # rough cost of a row, per item
    double ns_per_row_item_and_rank
    bint rows_are_ranks          # there are as many rows as ranks that count, else at most as many as documents


cdef inline object as_object(const Loss *loss):
    """Return a loss as Python hands it to ``losses.evaluate``."""
    return PyCapsule_New(<void *>loss, "plrank_fast loss", NULL)


cdef inline const Loss *loss_in(object capsule) except NULL:
    """Return the loss that ``as_object`` has made an object."""
    return <const Loss *>PyCapsule_GetPointer(capsule, "plrank_fast loss")


cdef inline double ns_per_row(const Loss *loss, intp_t n_items, intp_t cutoff) noexcept nogil:
    return n_items * (loss.ns_per_row_item + min(cutoff, n_items) * loss.ns_per_row_item_and_rank)
