"""Exact expectations of a batch of queries by quadrature: metric, gradient, Hessian diagonal, rank probabilities.

The kernels are in kernels/gradients/exact: ``exact.h`` lists the files, and docs/numerics.md explains them.
"""

from libc.stddef cimport size_t
from libc.stdint cimport intptr_t
from libc.string cimport memset

from plrank_fast._core.runtime.arguments cimport (
    LARGEST_PLAIN_COUNT,
    NOT_TAKEN,
    CheckedBatch,
    checked_batch,
    checked_count,
    checked_factor,
    checked_flag,
    checked_output,
    checked_threads,
    chosen,
    validation,
    zeros,
)
from plrank_fast._core.runtime.batch cimport Batch, loop_of_threads, new_batch, parallel_loop, run_batch
from plrank_fast._core.runtime.plain_arrays cimport data_of
from plrank_fast._core.runtime.queries cimport Queries, Query, query_at
from plrank_fast._core.runtime.scalar_types cimport intp_t
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
        int exposure
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
cdef dict NOISES = {"gumbel": False, "normal": True}
NOISE_NAMES = tuple(NOISES)
cdef double SMALLEST_RTOL = 1e-10  # below it rounding errors dominate; the C interface has the same limit
SMALLEST_TOLERANCE = SMALLEST_RTOL

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
    cdef exact_query task = solve_with_noise(
        GUMBEL, False, scores, relevance, n_items, rank_weights, cutoff, rtol, gradient, hessian, workspace,
        interruptible, 1)
    if value != NULL:
        value[0] = task.value
    return -1 if task.cancellation.requested else task.missed > 0.0


cdef exact_query solve_with_noise(
    Noise noise, bint exposure, const double *scores, const double *relevance, intp_t n_items,
    const double *rank_weights, intp_t cutoff, double rtol, double *gradient, double *hessian, char *workspace,
    bint interruptible, int n_threads
) noexcept nogil:
    """Solve a query with either noise, on up to ``n_threads`` threads."""
    cdef exact_query task = new_query(n_items, scores, interruptible, n_threads)
    task.K = cutoff
    task.relevance = relevance
    task.rank_weights = rank_weights
    task.rtol = rtol
    task.exposure = exposure
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
    bint exposure                # in place of the gradient; relevance is 1
    double *gradient             # outputs may be NULL
    double *hessian
    double *value
    double *missed               # of each query: the tolerance reached if it is above rtol, else 0


cdef void solve_query_of_call(
    const SolveCall *call, intp_t q, char *workspace, bint interruptible, int n_threads
) noexcept nogil:
    cdef Query query = query_at(&call.queries, q)
    cdef exact_query task = solve_with_noise(
        call.noise, call.exposure, query.scores, query.relevance, query.n_items, query.rank_weights, call.queries.n_ranks,
        call.rtol, call.gradient + query.first if call.gradient != NULL else NULL,
        call.hessian + query.first if call.hessian != NULL else NULL, workspace, interruptible, n_threads)
    if call.value != NULL:
        call.value[q] = task.value
    call.missed[q] = task.missed


cdef void solve_in_batch(const void *call, intp_t q, char *workspace) noexcept nogil:
    solve_query_of_call(<const SolveCall *>call, q, workspace, False, 1)


cdef inline int purpose_of(const SolveCall *call) noexcept nogil:
    return PLR_EXACT_NORMAL if call.noise.normal else PLR_EXACT_GRADIENT


cdef int solve_long_query(const void *call_, intp_t q, int n_threads) except -1:
    """Solve a query whose nodes and items the threads share; the calling thread checks for interrupts meanwhile."""
    cdef const SolveCall *call = <const SolveCall *>call_
    cdef intp_t n_items = query_at(&call.queries, q).n_items
    cdef Workspaces workspace = Workspaces(
        1, kernels.workspace(n_items, call.queries.n_ranks, purpose_of(call), n_threads))
    with nogil:
        solve_query_of_call(call, q, workspace.of_thread(0), True, n_threads)
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

def expectations(
    scores, relevance, rank_weights, offsets, rtol, noise, sigma, n_threads, out, bint value, bint gradient,
    hessian=False, bint unchecked=False, bint exposure=False
):
    """Return those of value (n_queries,), gradient and Hessian diagonal (n_docs,) that are wanted.

    The other arguments are those of ``pl_rank_exact``; ``out`` is that of the gradient with its Hessian diagonal, or of
    a single result. ``unchecked`` allows any ``rtol``, which may be missed. ``exposure`` takes no relevance, and returns
    the exposures in place of the gradient.
    """
    cdef SolveCall call
    cdef Batch batch
    cdef CheckedBatch checked = checked_batch(scores, NOT_TAKEN if exposure else relevance, rank_weights, offsets)
    cdef intp_t n_results = checked.n_items, q
    cdef double missed = 0.0
    cdef bint with_hessian = checked_flag(hessian, "hessian")
    if not unchecked and (type(rtol) is not float or not SMALLEST_RTOL <= rtol < 1.0):
        rtol = validation.relative_tolerance(rtol)
    call.rtol = rtol
    call.noise.normal = chosen(noise, "noise", NOISES)
    # The kernel subtracts scores before it divides by sigma, so that a large offset of all scores costs no digits.
    call.noise.inverse_sigma = 1.0 / checked_factor(sigma, "sigma")
    n_threads = checked_threads(n_threads)
    call.gradient = call.hessian = call.value = NULL
    if with_hessian:
        outputs = (None, None) if out is None else validation.output_pair(out, (checked.n_items,))
        diagonal = zeros(checked.n_items)
        call.hessian = <double *>data_of(diagonal)
        call.gradient = checked.result(checked.n_items, None)
    elif value:
        n_results = checked.n_queries
        out = checked_output(out, n_results)
        call.value = checked.result(n_results, out)
    else:
        out = checked_output(out, n_results)
        call.gradient = checked.result(n_results, out)
    if value and gradient:
        slopes = zeros(checked.n_items)
        call.gradient = <double *>data_of(slopes)
    if checked.queries.n_ranks > 0:
        call.missed = &missed
        if checked.n_queries > 1:
            missed_by_query = zeros(checked.n_queries)
            call.missed = <double *>data_of(missed_by_query)
        call.queries = checked.queries
        call.exposure = exposure
        if exposure:
            ones = zeros(checked.n_items) + 1.0
            call.queries.relevance = <const double *>data_of(ones)
        batch = new_batch(checked.queries.offsets, checked.n_queries)
        batch.call = &call
        batch.query = solve_in_batch
        batch.long_query = solve_long_query
        batch.workspace = kernels.workspace(checked.longest, checked.queries.n_ranks, purpose_of(&call), 1)
        batch.ns_per_item = NS_PER_ITEM + NS_PER_ITEM_AND_RANK * checked.queries.n_ranks
        batch.slowest = PEAKED
        run_batch(&batch, n_threads)
        for q in range(checked.n_queries):
            if call.missed[q] > 0.0 and not unchecked:
                validation.tolerance_missed(q, call.missed[q], rtol)
    if with_hessian:
        result = checked.delivered(n_results, None)
        return validation.deliver(result, outputs[0]), validation.deliver(diagonal, outputs[1])
    if value and gradient:
        return checked.delivered(n_results, None), slopes
    return checked.delivered(n_results, out)


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
        task = solve_with_noise(
            GUMBEL, False, &scores[0], &relevance[0], scores.shape[0], &rank_weights[0], rank_weights.shape[0], rtol,
            &gradient[0], &hessian[0] if hessian is not None else NULL, workspace.of_thread(0), False, 1)
    return task.attempts, task.nodes


cdef int find_probabilities(CheckedBatch checked, intp_t columns, object n_threads, double *probabilities) except -1:
    """Fill ``probabilities`` (n_docs, columns), preset to 0, of each item at each rank."""
    cdef RankProbabilitiesCall call
    cdef Batch batch = new_batch(checked.queries.offsets, checked.n_queries)
    if checked.n_items == 0 or columns == 0:
        return 0
    call.queries = checked.queries
    call.probabilities = probabilities
    call.columns = columns
    batch.call = &call
    batch.query = find_in_batch
    batch.long_query = find_long_query
    batch.workspace = exact_workspace(checked.longest, columns, True)
    batch.ns_per_item = NS_PER_ITEM + 2 * NS_PER_ITEM_AND_RANK * min(columns, checked.longest)
    batch.slowest = PEAKED
    return run_batch(&batch, n_threads)


def rank_probabilities(scores, cutoff, offsets, n_threads, out):
    """Return the probabilities (n_docs, cutoff). The arguments are those of the public function."""
    cdef CheckedBatch checked = checked_batch(scores, NOT_TAKEN, NOT_TAKEN, offsets)
    cdef intp_t columns = checked_count(cutoff, "cutoff", 0)
    shape = checked.n_items, columns
    n_threads = checked_threads(n_threads)
    if columns > LARGEST_PLAIN_COUNT:
        validation.addressable(shape, sizeof(double), "cutoff")
    if out is not None:
        validation.output(out, shape)
    probabilities = zeros(shape)
    find_probabilities(checked, columns, n_threads, <double *>data_of(probabilities))
    return probabilities if out is None else validation.deliver(probabilities, out)
