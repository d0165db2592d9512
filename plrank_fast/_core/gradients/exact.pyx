"""Exact expectations of a batch of queries by quadrature: metric, gradient, Hessian diagonal, rank probabilities.

The kernels are in kernels/gradients/exact: ``exact.h`` lists the files, and docs/numerics.md explains them.
"""

import numpy as np

from libc.stddef cimport size_t
from libc.stdint cimport intptr_t
from libc.string cimport memset

from plrank_fast._core.gradients.scale cimport Scale, scale_gradient, scale_of, scale_workspace
from plrank_fast._core.runtime.arguments cimport CheckedBatch, is_plain_factor, result_of, zeros
from plrank_fast._core.runtime.batch cimport Batch, new_batch, run_batch
from plrank_fast._core.runtime.buffers cimport numbers, results
from plrank_fast._core.runtime.layout cimport aligned
from plrank_fast._core.runtime.magnitudes cimport PLR_SMALLEST_TOLERANCE
from plrank_fast._core.runtime.queries cimport Queries, Query, query_at
from plrank_fast._core.runtime.scalar_types cimport intp_t
from plrank_fast._core.runtime.simd cimport simd_level
from plrank_fast._core.runtime.teams cimport loop_of_team, parallel_loop, run_in_team
from plrank_fast._core.runtime.threads cimport Workspaces, cancellation, raise_if_stopped, signal_came

cdef extern from "gradients/exact/exact.h" nogil:
    ctypedef struct exact_query:
        intptr_t D, K
        const double *scores
        const double *relevance
        const double *rank_weights
        const double *stop
        double rtol, inverse_sigma
        int law
        double *gradient
        double *hessian
        const double *direction
        int average_precision
        int exposure
        double *probabilities
        cancellation cancellation
        parallel_loop loop
        double value, missed
        int attempts, nodes

    ctypedef struct exact_kernels:
        void (*prepare)() noexcept nogil
        size_t (*workspace)(const exact_query *query, intptr_t longest, int n_threads) noexcept nogil
        void (*solve)(exact_query *query, void *workspace) noexcept nogil
        const char *(*noise)(int law) noexcept nogil

    const exact_kernels *exact_kernels_at(int level)

cdef const exact_kernels *kernels = exact_kernels_at(simd_level())
kernels.prepare()

cdef dict NOISES = {}
while kernels.noise(len(NOISES)) != NULL:
    NOISES[kernels.noise(len(NOISES)).decode()] = len(NOISES)

# Nanoseconds per item, and per item and rank, at 1e-6 and std-1 scores; scores of trained models cost several times as
# much. Only the length of a round and the number of threads depend on it.
cdef double NS_PER_ITEM = 40.0
cdef double NS_PER_ITEM_AND_RANK = 4.0
cdef double TIMES_PRODUCT = 16.0   # as long: five polynomials of each item, at twice the nodes
cdef double TIMES_SLOW = 3.0       # readers who stop, normal noise


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef exact_query new_query(intp_t cutoff) noexcept nogil:
    """Return a query with Gumbel noise, for which the caller still has to set the inputs and the outputs."""
    cdef exact_query query
    memset(&query, 0, sizeof(query))
    query.K = cutoff
    query.inverse_sigma = 1.0
    query.loop = loop_of_team(1)
    return query


cdef size_t exact_workspace(intp_t n_items, intp_t cutoff, bint probabilities) noexcept nogil:
    """Return the bytes of workspace for one query, in whole cache lines."""
    cdef double any
    cdef exact_query query = new_query(cutoff)
    if probabilities:
        query.probabilities = &any
    return kernels.workspace(&query, n_items, 1)


cdef bint solve(
    const double *scores, const double *relevance, const double *stop, intp_t n_items, const double *rank_weights,
    intp_t cutoff, double rtol, double *gradient, double *hessian, double *value, char *workspace
) noexcept nogil:
    """Fill the outputs that are not NULL; ``stop`` may be NULL too. Returns whether ``rtol`` was met."""
    cdef exact_query query = new_query(cutoff)
    query.D, query.scores, query.relevance, query.rank_weights = n_items, scores, relevance, rank_weights
    query.rtol, query.gradient, query.hessian, query.stop = rtol, gradient, hessian, stop
    kernels.solve(&query, workspace)
    if value != NULL:
        value[0] = query.value
    return query.missed == 0.0


cdef void find_rank_probabilities(
    const double *scores, intp_t n_items, intp_t cutoff, double *probabilities, char *workspace
) noexcept nogil:
    """Fill ``probabilities`` (n_items, cutoff)."""
    cdef exact_query query = new_query(cutoff)
    query.D, query.scores, query.probabilities = n_items, scores, probabilities
    kernels.solve(&query, workspace)


# ---------------------------------------------------------------------------------------------------------------------
# Batch
# ---------------------------------------------------------------------------------------------------------------------

cdef struct ExactCall:
    Queries queries
    exact_query query            # what all queries share; the outputs are the first one's
    double *value                # one for each query, or NULL
    double *missed               # tolerance that each query reached if it is above rtol, else 0
    const Scale *scale           # or NULL: the outputs are the query's own


cdef size_t bytes_of_call(const ExactCall *call, intp_t n_items, int n_threads) noexcept nogil:
    """Return the bytes of workspace for a query; a gradient that is scaled comes first."""
    cdef size_t n_bytes = kernels.workspace(&call.query, n_items, n_threads)
    if call.scale == NULL:
        return n_bytes
    return aligned(n_items * sizeof(double)) + max(n_bytes, scale_workspace(n_items))


cdef void solve_and_scale(const ExactCall *call, const Query *view, exact_query *query, char *workspace) noexcept nogil:
    cdef char *unused = workspace + aligned(view.n_items * sizeof(double))
    query.gradient = <double *>workspace
    kernels.solve(query, <double *>unused)
    query.value *= scale_gradient(call.scale, view, query.gradient, unused)


cdef void solve_query(const ExactCall *call, intp_t q, exact_query query, char *workspace) noexcept nogil:
    cdef Query view = query_at(&call.queries, q)
    query.D, query.scores, query.relevance = view.n_items, view.scores, view.relevance
    query.rank_weights = view.rank_weights
    if query.gradient != NULL:
        query.gradient += view.first
    if query.hessian != NULL:
        query.hessian += view.first
    if query.direction != NULL:
        query.direction += view.first
    if query.stop != NULL:
        query.stop += view.first
    if query.probabilities != NULL:
        query.probabilities += view.first * query.K
    if call.scale != NULL:
        solve_and_scale(call, &view, &query, workspace)
    else:
        kernels.solve(&query, workspace)
    if call.value != NULL:
        call.value[q] = query.value
    call.missed[q] = query.missed


cdef void solve_in_batch(const void *call_, intp_t q, char *workspace) noexcept nogil:
    cdef const ExactCall *call = <const ExactCall *>call_
    solve_query(call, q, call.query, workspace)


cdef struct LongQuery:
    const ExactCall *call
    intp_t index
    exact_query query
    char *workspace


cdef void solve_in_team(void *long_query_) noexcept nogil:
    cdef const LongQuery *long_query = <const LongQuery *>long_query_
    solve_query(long_query.call, long_query.index, long_query.query, long_query.workspace)


cdef int solve_long_query(const void *call_, intp_t q, int n_threads) except -1:
    """Solve a query whose nodes and items the threads share; the calling thread checks for interrupts meanwhile."""
    cdef const ExactCall *call = <const ExactCall *>call_
    cdef Workspaces workspace = Workspaces(
        1, bytes_of_call(call, query_at(&call.queries, q).n_items, n_threads))
    cdef LongQuery long_query = LongQuery(call, q, call.query, workspace.of_thread(0))
    long_query.query.cancellation.interrupted = signal_came
    long_query.query.loop = loop_of_team(n_threads)
    run_in_team(solve_in_team, &long_query, n_threads)
    return raise_if_stopped()


cdef object run_call(ExactCall *call, CheckedBatch checked, double ns_per_rank):
    """Solve all queries; return the first that missed its tolerance and the tolerance it reached, or else None."""
    cdef Batch batch = new_batch(call.queries.offsets, checked.n_queries)
    cdef double of_single_query = 0.0
    cdef intp_t q
    of_queries = zeros(checked.n_queries, &call.missed) if checked.n_queries > 1 else None
    if of_queries is None:
        call.missed = &of_single_query
    batch.call = call
    batch.query = solve_in_batch
    batch.long_query = solve_long_query
    batch.workspace = bytes_of_call(call, checked.longest, 1)
    batch.ns_per_item = NS_PER_ITEM + ns_per_rank * min(call.query.K, checked.longest)
    if call.query.direction != NULL:
        batch.ns_per_item *= TIMES_PRODUCT
    elif call.query.stop != NULL or call.query.law != 0:
        batch.ns_per_item *= TIMES_SLOW
    run_batch(&batch, checked.n_threads)
    for q in range(checked.n_queries):
        if call.missed[q] > 0.0:
            return q, call.missed[q]
    return None


# ---------------------------------------------------------------------------------------------------------------------
# Entry points
# ---------------------------------------------------------------------------------------------------------------------

cdef ExactCall new_call(CheckedBatch checked, intp_t n_ranks, double rtol) noexcept:
    cdef ExactCall call
    call.queries, call.query = checked.queries, new_query(n_ranks)
    call.query.rtol = rtol
    call.value, call.scale = NULL, NULL
    return call


def scaled_expectations(
    CheckedBatch checked not None, double rtol, const double[::1] stop, factors, bint over_ideal, gradient
):
    """Return the values times the queries' ``factors``, a float or an array, and write the gradient of their sum.

    With ``over_ideal`` the factors are divided by the ideal DCG, and 0 where that is 0. ``gradient`` is an array
    (n_docs,) of float64 or float32. The second result is the query that missed the tolerance, or None.
    """
    cdef ExactCall call = new_call(checked, checked.queries.n_ranks, rtol)
    cdef Scale scale = scale_of(checked.n_items, factors, over_ideal, gradient)
    values = zeros(checked.n_queries, &call.value)
    call.query.stop, call.scale = numbers(stop), &scale
    call.query.gradient = call.value  # that there is one decides about the workspace; each query's is in its own
    if checked.queries.n_ranks == 0:
        gradient.fill(0.0)
        return values, None
    return values, run_call(&call, checked, NS_PER_ITEM_AND_RANK)


def expectations_plain(
    CheckedBatch query, rtol, out, bint value, bint gradient, hessian, noise, sigma, stop, bint exposure, direction
):
    """Return the value of a `plain_query`, the gradient or both; None if an option is not plain."""
    if (
        query is None or out is not None or hessian is not False or stop is not None or direction is not None
        or type(rtol) is not float or not PLR_SMALLEST_TOLERANCE <= rtol < 1.0
        or type(noise) is not str or noise not in NOISES or not is_plain_factor(sigma)
    ):
        return None
    values, slopes, _, missed = expectations(query, rtol, noise, sigma, value, gradient, False, exposure)
    if missed is not None:
        return None
    return slopes if not value else (values, slopes) if gradient else values


cpdef tuple expectations(
    CheckedBatch checked, double rtol, str noise="gumbel", double sigma=1.0, bint value=False, bint gradient=False,
    bint hessian=False, bint exposure=False, const double[::1] direction=None, const double[::1] stop=None
):
    """Return the value (n_queries,), the gradient and the Hessian diagonal (n_docs,), each None if not asked for.

    The last result is the first query that missed the tolerance, with what it reached, or None. ``exposure`` takes no
    relevance, and returns the exposures in place of the gradient. With a ``direction`` the Hessian's product with it
    takes the place of the Hessian diagonal.
    """
    cdef ExactCall call = new_call(checked, checked.queries.n_ranks, rtol)
    cdef const double[::1] ones
    values = slopes = diagonal = None
    if value:
        values = zeros(checked.n_queries, &call.value)
    if gradient or hessian:
        slopes = result_of(&checked.queries, checked.n_queries, checked.n_items, &call.query.gradient)
    if hessian:
        diagonal = zeros(checked.n_items, &call.query.hessian)
    call.query.direction, call.query.stop = numbers(direction), numbers(stop)
    call.query.law = NOISES[noise]
    # The kernel subtracts scores before it divides by sigma, so that a large offset of all scores costs no digits.
    call.query.inverse_sigma = 1.0 / sigma
    if checked.queries.n_ranks == 0:
        return values, slopes, diagonal, None
    if exposure:
        ones = np.ones(checked.n_items)
        call.query.exposure, call.queries.relevance = True, numbers(ones)
    missed = run_call(&call, checked, NS_PER_ITEM_AND_RANK)
    return values, slopes, diagonal, missed


cdef void mark_relevant(
    const Queries *queries, intp_t n_queries, double empty, double *relevant, double *values
) noexcept nogil:
    """Set ``relevant`` to 1 for relevance above 0, else 0, and the values of queries without any to ``empty``."""
    cdef intp_t q, j
    cdef bint found
    for q in range(n_queries):
        found = False
        for j in range(queries.offsets[q], queries.offsets[q + 1]):
            relevant[j] = queries.relevance[j] > 0.0
            found |= queries.relevance[j] > 0.0
        if not found:
            values[q] = empty


def average_precision(CheckedBatch checked not None, intp_t cutoff, double rtol, double empty, bint gradient):
    """Return the values (n_queries,), the gradient (n_docs,) or None, and the query that missed the tolerance."""
    cdef ExactCall call = new_call(checked, cutoff, rtol)
    cdef double *relevant = NULL
    _truths, values = zeros(checked.n_items, &relevant), zeros(checked.n_queries, &call.value)
    slopes = zeros(checked.n_items, &call.query.gradient) if gradient else None
    call.query.average_precision, call.queries.relevance = True, relevant
    mark_relevant(&checked.queries, checked.n_queries, 0.0, relevant, call.value)
    missed = run_call(&call, checked, (2 if gradient else 1) * NS_PER_ITEM_AND_RANK)
    mark_relevant(&checked.queries, checked.n_queries, empty, relevant, call.value)
    return values, slopes, missed


def solve_unchecked(
    const double[::1] scores, const double[::1] relevance, const double[::1] rank_weights, double rtol, bint normal,
    double[::1] gradient, double[::1] hessian, bint average_precision=False
):
    """Solve one query for any ``rtol``, which may be missed; return the value and the numbers of attempts and nodes.

    ``hessian`` may be None. Scores, relevance, rank weights and ``gradient`` are not empty. For average precision only
    the number of rank weights counts.
    """
    cdef exact_query query = new_query(rank_weights.shape[0])
    query.D, query.rtol, query.law = scores.shape[0], rtol, normal
    query.scores, query.relevance, query.rank_weights = numbers(scores), numbers(relevance), numbers(rank_weights)
    query.gradient, query.hessian = results(gradient), results(hessian)
    query.average_precision = average_precision
    cdef Workspaces workspace = Workspaces(1, kernels.workspace(&query, query.D, 1))
    kernels.solve(&query, workspace.of_thread(0))
    return query.value, query.attempts, query.nodes


def rank_probabilities(CheckedBatch checked not None, intp_t cutoff):
    """Return the probabilities (n_docs, cutoff), and the query that missed the tolerance."""
    cdef ExactCall call = new_call(checked, cutoff, 0.0)
    cdef double[:, ::1] found
    probabilities = np.zeros((checked.n_items, cutoff))
    if cutoff == 0 or checked.n_items == 0:
        return probabilities, None
    found = probabilities
    call.query.probabilities = &found[0, 0]
    return probabilities, run_call(&call, checked, 2 * NS_PER_ITEM_AND_RANK)
