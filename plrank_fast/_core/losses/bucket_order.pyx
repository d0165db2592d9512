"""The likelihood of a ranking with ties, in any order among tied documents. O(D log D + 32 D).

The documents of one label form a bucket. Exponential arrival times are memoryless, so the log-likelihood is a sum over
buckets, of the log-probability that all documents of the bucket precede all documents of lower labels. Each probability
is an integral, which ``kernels/losses/tied_bucket.c`` evaluates; for the lowest bucket it is 1. With a cutoff that is
all documents after the bucket of rank K.
"""

from libc.math cimport exp, log

from plrank_fast._core.losses.loss cimport Loss, LossQuery, as_object
from plrank_fast._core.ranking.metrics cimport rank_all
from plrank_fast._core.runtime.compensated cimport Sum, add, multiply, value_of
from plrank_fast._core.runtime.layout cimport Layout, take, take_state
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t
from plrank_fast._core.runtime.simd cimport simd_level

cdef extern from "losses/tied_bucket.h" nogil:
    ctypedef struct tied_bucket:
        intp_t n
        const double *log_odds
        double *slope
        double *curvature
        int (*look)() noexcept nogil
        double log_prob
        double slope_later
        double curvature_later
    ctypedef struct tied_bucket_kernels:
        size_t (*workspace)(intp_t n) noexcept nogil
        void (*solve)(tied_bucket *bucket, double *workspace) noexcept nogil
    const tied_bucket_kernels *tied_bucket_kernels_at(int level)

cdef const tied_bucket_kernels *kernels = tied_bucket_kernels_at(simd_level())


# ---------------------------------------------------------------------------------------------------------------------
# Per item: weights of later documents, exp(highest) times a sum, at any distance of the scores
# ---------------------------------------------------------------------------------------------------------------------

cdef struct Later:
    double highest               # highest score of the documents
    double log_sum               # ln of the sum of exp(score - highest)


cdef inline double log_ratio(double score, const Later *later) noexcept nogil:
    return (score - later.highest) - later.log_sum


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef struct Buckets:
    int32_t *items               # (n_items,) by descending label
    double *scores               # (n_items,) of the items, in this order
    double *log_odds             # (n_items,)
    double *slope                # (n_items,)
    double *curvature            # (n_items,)
    intp_t *begins               # (n_items + 1,) begin of each bucket in ``items``, and the end of the last one
    Later *later                 # (n_items,) the documents after each bucket
    double *memory               # memory of the kernel


cdef void lay_out_buckets(Layout *layout, intp_t n_items, intp_t cutoff) noexcept nogil:
    cdef Buckets measured
    cdef Buckets *state = <Buckets *>take_state(layout, sizeof(Buckets), &measured)
    cdef size_t doubles = n_items * sizeof(double)
    state.items = <int32_t *>take(layout, n_items * sizeof(int32_t))
    state.scores = <double *>take(layout, doubles)
    state.log_odds = <double *>take(layout, doubles)
    state.slope = <double *>take(layout, doubles)
    state.curvature = <double *>take(layout, doubles)
    state.begins = <intp_t *>take(layout, (n_items + 1) * sizeof(intp_t))
    state.later = <Later *>take(layout, n_items * sizeof(Later))
    state.memory = <double *>take(layout, kernels.workspace(n_items) * sizeof(double))


cdef intp_t find_buckets(LossQuery *query, Buckets *state) noexcept nogil:
    """Sort the documents into buckets, and compute the weight after each but the last; return their number."""
    cdef intp_t n_items = query.n_items, n_buckets = 0, k, b
    cdef double highest
    cdef Sum total = Sum(0.0, 0.0)
    rank_all(query.labels, n_items, n_items, state.scores, state.items)
    for k in range(n_items):
        if k == 0 or (
            state.begins[n_buckets - 1] < query.cutoff
            and query.labels[state.items[k]] != query.labels[state.items[k - 1]]
        ):
            state.begins[n_buckets] = k
            n_buckets += 1
    state.begins[n_buckets] = n_items
    for k in range(n_items):
        state.scores[k] = query.scores[state.items[k]]
    highest = state.scores[n_items - 1]
    for b in range(n_buckets - 1, 0, -1):
        for k in range(state.begins[b], state.begins[b + 1]):
            if state.scores[k] > highest:
                multiply(&total, exp(highest - state.scores[k]))
                highest = state.scores[k]
            add(&total, exp(state.scores[k] - highest))
        state.later[b - 1].highest = highest
        state.later[b - 1].log_sum = log(value_of(&total))
    return n_buckets


cdef void add_bucket(LossQuery *query, Buckets *state, intp_t b, tied_bucket *bucket) noexcept nogil:
    """Solve bucket b, and add its derivatives with respect to its own scores to those from the buckets before it."""
    cdef intp_t begin = state.begins[b], k
    for k in range(begin, state.begins[b + 1]):
        state.log_odds[k] = log_ratio(state.scores[k], &state.later[b])
    bucket.n = state.begins[b + 1] - begin
    bucket.log_odds = state.log_odds + begin
    bucket.slope = state.slope + begin if query.gradient != NULL else NULL
    bucket.curvature = state.curvature + begin if query.hessian != NULL else NULL
    bucket.look = query.look
    kernels.solve(bucket, state.memory)
    if query.gradient == NULL:
        return
    for k in range(begin, state.begins[b + 1]):
        query.gradient[state.items[k]] -= state.slope[k]
        if query.hessian != NULL:
            query.hessian[state.items[k]] -= state.curvature[k]


cdef void bucket_order_rows(LossQuery *query, intp_t first, intp_t last) noexcept nogil:
    """Add up the buckets, and the derivatives with respect to each document as one that follows earlier buckets."""
    cdef Buckets *state = <Buckets *>query.state
    cdef tied_bucket bucket
    cdef intp_t n_buckets, b, k
    cdef double unit, share
    cdef Sum value = Sum(0.0, 0.0), slope = value, curvature = value
    n_buckets = find_buckets(query, state)
    for b in range(n_buckets):
        if b > 0 and query.gradient != NULL:
            for k in range(state.begins[b], state.begins[b + 1]):
                share = exp(log_ratio(state.scores[k], &state.later[b - 1]))
                query.gradient[state.items[k]] = -share * value_of(&slope)
                if query.hessian != NULL:
                    query.hessian[state.items[k]] = -share * (
                        value_of(&slope) + share * value_of(&curvature))
        if b == n_buckets - 1:
            break
        if b > 0:
            unit = exp(
                (state.later[b].highest - state.later[b - 1].highest)
                + (state.later[b].log_sum - state.later[b - 1].log_sum))
            multiply(&slope, unit)
            multiply(&curvature, unit * unit)
        add_bucket(query, state, b, &bucket)
        add(&value, -bucket.log_prob)
        add(&slope, bucket.slope_later)
        add(&curvature, bucket.curvature_later)
        if query.look != NULL and query.look():
            return
    query.value[0] = value_of(&value)

cdef Loss bucket_order = Loss(lay_out_buckets, NULL, bucket_order_rows, NULL, 120.0, 0.0, 0.0, False)
BUCKET_ORDER = as_object(&bucket_order)
