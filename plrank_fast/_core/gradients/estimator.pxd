"""The interface of estimators from sampled rankings: three steps over the rankings of one query.

``begin`` prepares the state, ``accumulate`` adds rankings to the gradient or the state, as often as there are more, and
``hand_out`` adds the sums in the state to the gradient. An estimator that must see all rankings first, for a baseline,
has a fourth, ``observe``. ``sampled`` lays the state out, draws the rankings in portions, keeps sums over very many of
them accurate, and takes the mean. With noisy scores the rows that it draws have the arrivals behind the ranking.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.string cimport memset

from plrank_fast._core.ranking.weights cimport Weights
from plrank_fast._core.runtime.compensated cimport Sum
from plrank_fast._core.runtime.layout cimport layout_function
from plrank_fast._core.runtime.scalar_types cimport int32_t, intp_t
from plrank_fast._core.runtime.threads cimport cancellation, is_cancelled
from plrank_fast._core.sampling.noise cimport Noise, NoisyScores
from plrank_fast._core.sampling.samplers cimport Draw


cdef struct Estimate:
    # the query
    intp_t n_items
    intp_t cutoff                # ranks that count: min(number of rank weights, n_items)
    const double *scores         # or the levels of ``noisy``
    const double *relevance
    const double *rank_weights
    const Noise *noise           # on the scores, or NULL
    NoisyScores noisy
    Weights weights              # of the items
    # rankings of the query
    Draw draw                    # its number of samples also counts given rankings; the driver sets its cutoff
    const int32_t *given         # (n_samples, length) rankings, or NULL: they are drawn
    intp_t length                # of a row
    const double *rewards        # (n_samples,) of given rankings, replacing relevance and rank weights; or NULL
    cancellation stop            # checked within a ranking by estimators that take O(D K) for one
    # outputs: sums, until the driver takes their mean
    double *gradient             # (n_items,) OUT, zero at first; one number if the estimate is one per query
    double *hessian              # (n_items,) OUT, zero at first, or NULL
    double *value                # (1,) OUT, the mean metric of the rankings that are accumulated, or NULL
    # state of the driver
    Sum metric                   # of the rankings so far
    intp_t until_moved           # rankings still to accumulate before sums are moved to totals
    Sum *totals                  # sums that have been moved out of gradient and Hessian
    bint in_totals               # whether any have been moved
    int n_threads                # as many may share a pass over the items
    bint observing               # whether this pass over the rankings is the first of two
    intp_t denominator           # of the mean; 1 once the estimator itself has divided by it
    void *state                  # the estimator's own, laid out and not yet initialised before ``begin``
    # set by ``begin``
    bint in_groups               # whether ``accumulate_group`` replaces ``accumulate``

ctypedef void (*estimate_step)(Estimate *estimate) noexcept nogil
# rankings in rows, ``stride`` items apart
ctypedef void (*accumulate_step)(
    Estimate *estimate, const int32_t *rankings, intp_t n_rankings, intp_t stride) noexcept nogil
# the first ``n_rankings`` of a group, (cutoff, GROUP_SIZE)
ctypedef void (*group_step)(Estimate *estimate, const int32_t *columns, intp_t n_rankings) noexcept nogil

cdef struct Estimator

ctypedef Estimator (*estimator_function)() noexcept nogil

cdef struct Estimator:
    layout_function lay_out      # lays out the state; or NULL
    estimate_step begin          # or NULL
    accumulate_step observe      # all rankings, before any is accumulated, and means are over N - 1; or NULL
    accumulate_step accumulate
    group_step accumulate_group  # or NULL
    estimate_step hand_out       # leaves the state's sums at zero; NULL: all sums are in the gradient
    accumulate_step baseline     # becomes ``observe`` where the caller asks for a baseline; or NULL
    estimator_function with_hessian  # the estimator that has a Hessian too; NULL: this one
    bint adds_up                 # the result is the sum over the rankings, not their mean
    bint one_per_query           # the estimate is one number, not one per item
    bint needs_relevance
    bint needs_noise             # K + 1 ranks are drawn, with their arrivals
    intp_t fewest_items          # queries need so many: 2 for gradients, as rounding must not give one to a single item
    double ns_per_item           # rough cost per sample and item, per sample and rank, and per sample, item and rank
    double ns_per_rank
    double ns_per_item_and_rank


cdef inline Estimate estimate_of(
    const double *scores, const double *relevance, intp_t n_items, const double *rank_weights, intp_t cutoff,
    Draw draw, double *gradient, double *hessian
) noexcept nogil:
    """Return an estimate of one query, from drawn rankings if the caller gives none; later steps set the rest."""
    cdef Estimate estimate
    memset(&estimate, 0, sizeof(Estimate))
    estimate.n_items = n_items
    estimate.cutoff = min(cutoff, n_items)
    estimate.scores = scores
    estimate.relevance = relevance
    estimate.rank_weights = rank_weights
    estimate.draw = draw
    estimate.gradient = gradient
    estimate.hessian = hessian
    estimate.n_threads = 1
    return estimate


cdef inline bint is_stopped(Estimate *estimate, double ns) noexcept nogil:
    """Return whether to stop before work of ``ns`` nanoseconds, because the caller has been interrupted."""
    return is_cancelled(&estimate.stop, ns)


cdef inline Estimator new_estimator(
    layout_function lay_out, estimate_step begin, accumulate_step accumulate, estimate_step hand_out,
    double ns_per_item, double ns_per_rank, double ns_per_item_and_rank
) noexcept nogil:
    """Return an estimator of these steps alone."""
    cdef Estimator estimator
    memset(&estimator, 0, sizeof(Estimator))
    estimator.lay_out, estimator.begin, estimator.accumulate, estimator.hand_out = lay_out, begin, accumulate, hand_out
    estimator.needs_relevance = True
    estimator.fewest_items = 2
    estimator.ns_per_item = ns_per_item
    estimator.ns_per_rank = ns_per_rank
    estimator.ns_per_item_and_rank = ns_per_item_and_rank
    return estimator


cdef inline object as_object(estimator_function estimator):
    """Return an estimator as Python hands it to ``sampled.estimate``."""
    return PyCapsule_New(<void *>estimator, "plrank_fast estimator", NULL)


cdef inline Estimator estimator_in(object capsule, bint with_hessian, bint with_baseline) except *:
    """Return the estimator that ``as_object`` has made an object, or the one with a Hessian."""
    cdef Estimator estimator = (<estimator_function>PyCapsule_GetPointer(capsule, "plrank_fast estimator"))()
    if with_hessian and estimator.with_hessian != NULL:
        estimator = estimator.with_hessian()
    if with_baseline:
        estimator.observe = estimator.baseline
    return estimator


cdef inline double ns_per_sample(const Estimator *estimator, intp_t n_items, intp_t cutoff) noexcept nogil:
    """Return the rough cost of accumulating one ranking of ``n_items`` items, of which ``cutoff`` ranks count."""
    return n_items * (estimator.ns_per_item + cutoff * estimator.ns_per_item_and_rank) + cutoff * estimator.ns_per_rank


cdef inline void sum_future_reward(
    const Estimate *estimate, const int32_t *ranking, double *future_reward
) noexcept nogil:
    """Set future_reward[k] = sum over x >= k of theta_x rho_{y_x}, for k = 0 to the cutoff. O(K)."""
    cdef intp_t k
    cdef double reward = 0.0
    future_reward[estimate.cutoff] = 0.0
    for k in range(estimate.cutoff - 1, -1, -1):
        reward += estimate.rank_weights[k] * estimate.relevance[ranking[k]]
        future_reward[k] = reward
