"""Exact expectations of a batch of queries by quadrature: metric, gradient, Hessian diagonal, rank probabilities.

The kernels are in kernels/gradients/exact: ``exact.h`` lists the files, and docs/numerics.md explains them.
"""

from libc.stddef cimport size_t
from libc.stdint cimport intptr_t
from libc.string cimport memset

from plrank_fast._core.runtime.batch cimport (
    Batch, batch_of, longest_query, loop_of_threads, parallel_loop, run_batch,
)
from plrank_fast._core.runtime.lone_query cimport NOT_TAKEN, LoneQuery, plain_count, plain_output, plain_threads
from plrank_fast._core.runtime.queries cimport Queries, Query, queries_of, query_at
from plrank_fast._core.runtime.scalar_types cimport int64_t, intp_t
from plrank_fast._core.runtime.simd cimport simd_level
from plrank_fast._core.runtime.threads cimport Workspaces, raise_if_stopped, signal_came

cdef extern from "gradients/exact/exact.h" nogil:
    ctypedef struct cancellation:
        int (*interrupted)() noexcept nogil
        int requested
        double work
        const cancellation *of_caller

    ctypedef struct exact_query:
        intptr_t D, K
        const double *scores
        const double *relevance
        const double *rank_weights
        double rtol, inverse_sigma
        int normal
        double *gradient
        double *hessian
        double *probabilities
        intptr_t columns
        cancellation cancellation
        parallel_loop loop
        double value, missed
        int attempts, nodes

    int PLR_EXACT_GRADIENT
    int PLR_EXACT_PROBABILITIES
    int PLR_EXACT_NORMAL

    ctypedef struct exact_kernels:
        void (*prepare)() noexcept nogil
        size_t (*workspace)(intptr_t D, intptr_t K, int purpose, int n_threads) noexcept nogil
        void (*solve)(exact_query *query, void *workspace) noexcept nogil
        void (*rank_probabilities)(exact_query *query, void *workspace) noexcept nogil

    const exact_kernels *exact_kernels_at(int level)

cdef const exact_kernels *kernels = exact_kernels_at(simd_level())
kernels.prepare()

cdef struct Noise:
    bint normal                  # or Gumbel noise
    double inverse_sigma

cdef Noise GUMBEL = Noise(False, 1.0)

# Nanoseconds per item, and per item and rank, at 1e-6 and std-1 scores; only the length of a round depends on it.
cdef double NS_PER_ITEM = 40.0
cdef double NS_PER_ITEM_AND_RANK = 4.0
cdef double PEAKED = 4.0  # scores of trained models cost several times as much, so that further threads pay earlier


cdef exact_query new_query(intp_t n_items, const double *scores, bint interruptible, int n_threads) noexcept nogil:
    """Return a query for which the caller still has to set the outputs."""
    cdef exact_query task
    memset(&task, 0, sizeof(task))
    if interruptible:
        task.cancellation.interrupted = signal_came
    task.loop = loop_of_threads(n_threads)
    task.D = n_items
    task.scores = scores
    task.inverse_sigma = 1.0
    return task


# ---------------------------------------------------------------------------------------------------------------------
# Per query
# ---------------------------------------------------------------------------------------------------------------------

cdef size_t exact_workspace(intp_t n_items, intp_t cutoff, bint probabilities) noexcept nogil:
    """Return the bytes of workspace for one query, in whole cache lines."""
    return kernels.workspace(n_items, cutoff, PLR_EXACT_PROBABILITIES if probabilities else PLR_EXACT_GRADIENT, 1)


cdef int solve(
    const double *scores, const double *relevance, intp_t n_items, const double *rank_weights, intp_t cutoff,
    double rtol, double *gradient, double *hessian, double *value, char *workspace, bint interruptible
) noexcept nogil:
    """Fill the outputs that are not NULL. Returns -1 if interrupted, 1 if ``rtol`` could not be met."""
    cdef exact_query task = solved(
        GUMBEL, scores, relevance, n_items, rank_weights, cutoff, rtol, gradient, hessian, workspace, interruptible, 1)
    if value != NULL:
        value[0] = task.value
    return -1 if task.cancellation.requested else task.missed > 0.0


cdef exact_query solved(
    Noise noise, const double *scores, const double *relevance, intp_t n_items, const double *rank_weights,
    intp_t cutoff, double rtol, double *gradient, double *hessian, char *workspace, bint interruptible, int n_threads
) noexcept nogil:
    """Solve a query with either noise, on up to ``n_threads`` threads."""
    cdef exact_query task = new_query(n_items, scores, interruptible, n_threads)
    task.K = cutoff
    task.relevance = relevance
    task.rank_weights = rank_weights
    task.rtol = rtol
    task.gradient = gradient
    task.hessian = hessian
    task.inverse_sigma = noise.inverse_sigma
    task.normal = noise.normal
    kernels.solve(&task, workspace)
    return task


cdef int find_rank_probabilities(
    const double *scores, intp_t n_items, intp_t cutoff, double *probabilities, char *workspace, bint interruptible
) noexcept nogil:
    """Fill ``probabilities`` (n_items, cutoff). Returns -1 if interrupted."""
    return find_with_threads(scores, n_items, cutoff, probabilities, workspace, interruptible, 1)


cdef int find_with_threads(
    const double *scores, intp_t n_items, intp_t cutoff, double *probabilities, char *workspace, bint interruptible,
    int n_threads
) noexcept nogil:
    cdef exact_query task = new_query(n_items, scores, interruptible, n_threads)
    task.columns = cutoff
    task.probabilities = probabilities
    kernels.rank_probabilities(&task, workspace)
    return -1 if task.cancellation.requested else 0


# ---------------------------------------------------------------------------------------------------------------------
# Batch
# ---------------------------------------------------------------------------------------------------------------------

cdef struct SolveCall:
    Queries queries
    double rtol
    Noise noise
    double *gradient             # outputs may be NULL
    double *hessian
    double *value
    double *missed               # of each query: the tolerance reached if it is above rtol, else 0


cdef void solve_query(
    const SolveCall *call, intp_t q, char *workspace, bint interruptible, int n_threads
) noexcept nogil:
    cdef Query query = query_at(&call.queries, q)
    cdef exact_query task = solved(
        call.noise, query.scores, query.relevance, query.n_items, query.rank_weights, call.queries.n_ranks,
        call.rtol, call.gradient + query.first if call.gradient != NULL else NULL,
        call.hessian + query.first if call.hessian != NULL else NULL, workspace, interruptible, n_threads)
    if call.value != NULL:
        call.value[q] = task.value
    call.missed[q] = task.missed


cdef void solve_in_batch(const void *call, intp_t q, char *workspace) noexcept nogil:
    solve_query(<const SolveCall *>call, q, workspace, False, 1)


cdef inline int purpose_of(const SolveCall *call) noexcept nogil:
    return PLR_EXACT_NORMAL if call.noise.normal else PLR_EXACT_GRADIENT


cdef int solve_long_query(const void *call_, intp_t q, int n_threads) except -1:
    """Solve a query whose nodes and items the threads share; the calling thread checks for interrupts meanwhile."""
    cdef const SolveCall *call = <const SolveCall *>call_
    cdef intp_t n_items = query_at(&call.queries, q).n_items
    cdef Workspaces workspace = Workspaces(
        1, kernels.workspace(n_items, call.queries.n_ranks, purpose_of(call), n_threads))
    with nogil:
        solve_query(call, q, workspace.of_thread(0), True, n_threads)
    return raise_if_stopped()


cdef struct RankProbabilitiesCall:
    Queries queries
    double *probabilities        # (n_docs, columns)
    intp_t columns


cdef void find_query_probabilities(
    const RankProbabilitiesCall *call, intp_t q, char *workspace, bint interruptible, int n_threads
) noexcept nogil:
    cdef Query query = query_at(&call.queries, q)
    find_with_threads(
        query.scores, query.n_items, call.columns, call.probabilities + query.first * call.columns, workspace,
        interruptible, n_threads)


cdef void find_in_batch(const void *call, intp_t q, char *workspace) noexcept nogil:
    find_query_probabilities(<const RankProbabilitiesCall *>call, q, workspace, False, 1)


cdef int find_long_query(const void *call_, intp_t q, int n_threads) except -1:
    cdef const RankProbabilitiesCall *call = <const RankProbabilitiesCall *>call_
    cdef intp_t n_items = query_at(&call.queries, q).n_items
    cdef Workspaces workspace = Workspaces(
        1, kernels.workspace(n_items, call.columns, PLR_EXACT_PROBABILITIES, n_threads))
    with nogil:
        find_query_probabilities(call, q, workspace.of_thread(0), True, n_threads)
    return raise_if_stopped()


# ---------------------------------------------------------------------------------------------------------------------
# Entry points
# ---------------------------------------------------------------------------------------------------------------------

cdef void describe_solving(Batch *batch, SolveCall *call, intp_t longest, intp_t n_ranks) noexcept:
    """Set the functions and the costs of a batch whose tolerance and noise are known."""
    batch.call = call
    batch.query = solve_in_batch
    batch.long_query = solve_long_query
    batch.workspace = kernels.workspace(longest, n_ranks, purpose_of(call), 1)
    batch.ns_per_item = NS_PER_ITEM + NS_PER_ITEM_AND_RANK * min(n_ranks, longest)
    batch.slowest = PEAKED


cdef void describe_finding(Batch *batch, RankProbabilitiesCall *call, intp_t longest) noexcept:
    """Set the functions and the costs of a batch of rank probabilities."""
    batch.call = call
    batch.query = find_in_batch
    batch.long_query = find_long_query
    batch.workspace = exact_workspace(longest, call.columns, True)
    batch.ns_per_item = NS_PER_ITEM + 2 * NS_PER_ITEM_AND_RANK * min(call.columns, longest)
    batch.slowest = PEAKED


def solve_batch(
    const double[::1] scores, const double[::1] relevance, const double[:, ::1] rank_weights,
    const int64_t[::1] offsets, double rtol, int n_threads, double[::1] gradient, double[::1] hessian,
    double[::1] value, double[::1] missed, bint normal=False, double inverse_sigma=1.0
):
    """Fill those of ``gradient``, ``hessian`` (n_docs,) and ``value`` (n_queries,) that are not None.

    They must be zero where queries are empty. Empty arrays and K = 0 are allowed. Noise of the scores is ``normal`` or
    Gumbel noise, with the given inverse of its standard deviation (scale). ``missed`` (n_queries,) becomes the
    tolerance that each query has reached if that is above ``rtol``, and 0 otherwise.
    """
    cdef SolveCall call
    cdef Batch batch = batch_of(offsets)
    if scores.shape[0] == 0 or rank_weights.shape[1] == 0:
        return
    call.queries = queries_of(scores, relevance, rank_weights, offsets)
    call.rtol = rtol
    call.noise = Noise(normal, inverse_sigma)
    call.gradient = NULL if gradient is None else &gradient[0]
    call.hessian = NULL if hessian is None else &hessian[0]
    call.value = NULL if value is None else &value[0]
    call.missed = &missed[0]
    describe_solving(&batch, &call, longest_query(offsets), rank_weights.shape[1])
    run_batch(&batch, n_threads)


def lone_solution(
    scores, relevance, rank_weights, rtol, double smallest_tolerance, bint normal, double inverse_sigma, n_threads,
    out, hessian, bint value
):
    """Return the gradient of one short query with plain arguments, or its ``value``, or None.

    The gradient comes with its Hessian diagonal on request; the noise is that of ``solve_batch``. See
    ``runtime/lone_query``.
    """
    cdef SolveCall call
    cdef Batch batch
    cdef LoneQuery query = LoneQuery.__new__(LoneQuery)
    cdef intp_t n_results
    cdef double *results
    cdef double missed = 0.0
    cdef bint with_hessian = hessian is True
    if (
        type(rtol) is not float or not smallest_tolerance <= rtol < 1.0 or not plain_threads(n_threads)
        or not (hessian is False or (with_hessian and out is None))
        or not query.look_at(scores, relevance, rank_weights)
    ):
        return None
    n_results = 1 if value else query.n_items
    call.rtol = rtol
    call.noise = Noise(normal, inverse_sigma)
    batch = query.batch()
    describe_solving(&batch, &call, query.n_items, query.n_ranks)
    if not plain_output(out, n_results) or not query.copy(&batch, (1 + with_hessian) * n_results * sizeof(double)):
        return None
    results = <double *>query.results
    call.queries = query.queries
    call.gradient = NULL if value else results
    call.hessian = results + n_results if with_hessian else NULL
    call.value = results if value else NULL
    call.missed = &missed
    query.run(&batch)
    if missed > 0.0:  # validation raises the error
        return None
    first = query.deliver(0, n_results * sizeof(double), n_results, out)
    if not with_hessian:
        return first
    return first, query.deliver(n_results * sizeof(double), n_results * sizeof(double), n_results, None)


def lone_value_and_gradient(scores, relevance, rank_weights, rtol, double smallest_tolerance, n_threads):
    """Return value and gradient of one short query with plain arguments, or None. See ``runtime/lone_query``."""
    cdef SolveCall call
    cdef Batch batch
    cdef LoneQuery query = LoneQuery.__new__(LoneQuery)
    cdef double missed = 0.0
    if (
        type(rtol) is not float or not smallest_tolerance <= rtol < 1.0 or not plain_threads(n_threads)
        or not query.look_at(scores, relevance, rank_weights)
    ):
        return None
    call.rtol = rtol
    call.noise = Noise(False, 1.0)
    batch = query.batch()
    describe_solving(&batch, &call, query.n_items, query.n_ranks)
    if not query.copy(&batch, (1 + query.n_items) * sizeof(double)):
        return None
    call.queries = query.queries
    call.value = <double *>query.results
    call.gradient = call.value + 1
    call.hessian = NULL
    call.missed = &missed
    query.run(&batch)
    if missed > 0.0:
        return None
    return (
        query.deliver(0, sizeof(double), 1, None),
        query.deliver(sizeof(double), query.n_items * sizeof(double), query.n_items, None),
    )


def effort(
    const double[::1] scores, const double[::1] relevance, const double[::1] rank_weights, double rtol,
    double[::1] gradient, double[::1] hessian
):
    """Solve one query; return the number of attempts, and of nodes in all of them.

    ``hessian`` may be None. Scores, relevance, rank weights and ``gradient`` are not empty.
    """
    cdef Workspaces workspace = Workspaces(1, exact_workspace(scores.shape[0], rank_weights.shape[0], False))
    cdef exact_query task
    with nogil:
        task = solved(
            GUMBEL, &scores[0], &relevance[0], scores.shape[0], &rank_weights[0], rank_weights.shape[0], rtol,
            &gradient[0], &hessian[0] if hessian is not None else NULL, workspace.of_thread(0), False, 1)
    return task.attempts, task.nodes


def rank_probabilities_batch(
    const double[::1] scores, const int64_t[::1] offsets, int n_threads, double[:, ::1] probabilities
):
    """Fill ``probabilities`` (n_docs, K) of each item at each rank. Empty arrays and K = 0 are allowed."""
    cdef RankProbabilitiesCall call
    cdef Batch batch = batch_of(offsets)
    if scores.shape[0] == 0 or probabilities.shape[1] == 0:
        return
    call.queries = queries_of(scores, None, None, offsets)
    call.probabilities = &probabilities[0, 0]
    call.columns = probabilities.shape[1]
    describe_finding(&batch, &call, longest_query(offsets))
    run_batch(&batch, n_threads)


def lone_rank_probabilities(scores, cutoff, n_threads):
    """Return the probabilities (n_items, cutoff) of one short query with plain arguments, or None."""
    cdef RankProbabilitiesCall call
    cdef Batch batch
    cdef LoneQuery query = LoneQuery.__new__(LoneQuery)
    cdef size_t n_bytes
    call.columns = plain_count(cutoff, 1)
    if call.columns < 1 or not plain_threads(n_threads) or not query.look_at(scores, NOT_TAKEN, NOT_TAKEN):
        return None
    if call.columns > query.n_items:
        return None
    n_bytes = query.n_items * call.columns * sizeof(double)
    batch = query.batch()
    describe_finding(&batch, &call, query.n_items)
    if not query.copy(&batch, n_bytes):
        return None
    call.queries = query.queries
    call.probabilities = <double *>query.results
    query.run(&batch)
    return query.deliver(0, n_bytes, (query.n_items, call.columns), None)


def lone_exposure(scores, rank_weights, n_threads, out):
    """Return the expected exposure in one short query with plain arguments, or None."""
    cdef RankProbabilitiesCall call
    cdef Batch batch
    cdef LoneQuery query = LoneQuery.__new__(LoneQuery)
    cdef intp_t n_probabilities, d, k
    cdef double *exposures
    if not plain_threads(n_threads) or not query.look_at(scores, NOT_TAKEN, rank_weights):
        return None
    call.columns = query.n_ranks
    n_probabilities = query.n_items * call.columns
    batch = query.batch()
    describe_finding(&batch, &call, query.n_items)
    if (
        not plain_output(out, query.n_items)
        or not query.copy(&batch, (n_probabilities + query.n_items) * sizeof(double))
    ):
        return None
    call.queries = query.queries
    call.probabilities = <double *>query.results
    query.run(&batch)
    exposures = call.probabilities + n_probabilities
    for d in range(query.n_items):
        for k in range(call.columns):  # rank by rank, for the same bits as a batch
            exposures[d] += call.probabilities[d * call.columns + k] * call.queries.rank_weights[k]
    return query.deliver(n_probabilities * sizeof(double), query.n_items * sizeof(double), query.n_items, out)
