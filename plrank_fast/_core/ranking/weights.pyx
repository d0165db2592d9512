"""Weights of one query's items, which samplers and estimators share, and how peaked they are."""

from plrank_fast._core.runtime.buffers cimport numbers
from plrank_fast._core.runtime.compensated cimport Sum, add, value_of
from plrank_fast._core.runtime.layout cimport aligned
from plrank_fast._core.runtime.scalar_types cimport intp_t
from plrank_fast._core.runtime.simd cimport simd_level
from plrank_fast._core.runtime.teams cimport ITEMS_PER_RANGE, number_of_ranges, run_in_team, share_ranges

import numpy as np

cdef extern from "ranking/weights.h" nogil:
    ctypedef struct weights_kernels:
        void (*extremes)(const double *scores, size_t n, double *lowest, double *highest) noexcept nogil
        double (*relative)(const double *scores, double highest, double sign, double *out, size_t n) noexcept nogil
        double (*sum_of_squares)(const double *weights, size_t n) noexcept nogil
        void (*sort_into_octaves)(
            const double *weights, size_t n, double spread, weight_octaves *octaves) noexcept nogil
        arrivals (*expected_arrivals)(const weight_octaves *octaves, double wanted, double latest) noexcept nogil
    const weights_kernels *weights_kernels_at(int level)

cdef const weights_kernels *kernels = weights_kernels_at(simd_level())


cdef double relative_weights_of(
    const double *scores, double highest, double sign, double *out, intp_t n_items
) noexcept nogil:
    """Set out[d] = exp(sign * (score - highest)) and return the sum; the scores lie within 700 of the highest."""
    return kernels.relative(scores, highest, sign, out, n_items)


cdef double effective_items(const Weights *weights) noexcept nogil:
    """Return the number of equal weights of which two draws are the same item as often as of these weights."""
    return weights.total * weights.total / kernels.sum_of_squares(weights.relative, weights.n_items)


cdef void sort_range(void *weights_, intp_t start, intp_t stop) noexcept nogil:
    cdef const Weights *weights = <const Weights *>weights_
    kernels.sort_into_octaves(weights.relative + start, stop - start, weights.spread, of_range(weights, start))


cdef const weight_octaves *sort_weights(const Weights *weights) noexcept nogil:
    """Return how representable weights are spread, valid until the next pass over them. O(D)."""
    cdef weight_octaves *octaves = weights.of_ranges
    cdef const weight_octaves *found
    cdef intp_t i
    cdef size_t octave
    share_ranges(sort_range, <void *>weights, weights.n_items, weights.n_threads)
    for i in range(1, number_of_ranges(weights.n_items)):
        found = &weights.of_ranges[i]
        for octave in range(octaves.n):
            octaves.count[octave] += found.count[octave]
            octaves.mass[octave] += found.mass[octave]
    return octaves


cdef arrivals expected_arrivals(const weight_octaves *octaves, double wanted, double latest) noexcept nogil:
    """Return the time by which ``wanted`` items have arrived on average, if that is before ``latest``.

    The octaves give it within a few percent.
    """
    return kernels.expected_arrivals(octaves, wanted, latest)


cdef size_t weights_workspace(intp_t n_items) noexcept nogil:
    """Return the number of bytes that ``weigh`` takes."""
    return aligned(n_items * sizeof(double)) + aligned(number_of_ranges(n_items) * sizeof(weight_octaves))


cdef inline weight_octaves *of_range(const Weights *weights, intp_t start) noexcept nogil:
    return &weights.of_ranges[start // ITEMS_PER_RANGE]


cdef void find_extremes(void *weights_, intp_t start, intp_t stop) noexcept nogil:
    cdef const Weights *weights = <const Weights *>weights_
    cdef double *found = of_range(weights, start).mass
    kernels.extremes(weights.scores + start, stop - start, &found[0], &found[1])


cdef void weigh_range(void *weights_, intp_t start, intp_t stop) noexcept nogil:
    cdef const Weights *weights = <const Weights *>weights_
    of_range(weights, start).mass[0] = kernels.relative(
        weights.scores + start, weights.highest, 1.0, weights.relative + start, stop - start)


cdef char *weigh(
    Weights *weights, const double *scores, intp_t n_items, char *workspace, int n_threads=1
) noexcept nogil:
    """Compute the weights of one query, and return the first unused byte of ``workspace``. O(D).

    Sums are those of ranges, whose number does not depend on the threads.
    """
    cdef double lowest
    cdef Sum total = Sum(0.0, 0.0)
    cdef intp_t i, n_ranges = number_of_ranges(n_items)
    weights.n_items, weights.scores, weights.n_threads = n_items, scores, n_threads
    weights.relative = <double *>workspace
    weights.of_ranges = <weight_octaves *>(workspace + aligned(n_items * sizeof(double)))
    share_ranges(find_extremes, weights, n_items, n_threads)
    lowest, weights.highest = weights.of_ranges[0].mass[0], weights.of_ranges[0].mass[1]
    for i in range(1, n_ranges):
        lowest = min(lowest, weights.of_ranges[i].mass[0])
        weights.highest = max(weights.highest, weights.of_ranges[i].mass[1])
    weights.spread = weights.highest - lowest
    weights.representable = weights.spread <= PLR_LARGEST_SPREAD
    if weights.representable:
        share_ranges(weigh_range, weights, n_items, n_threads)
        for i in range(n_ranges):
            add(&total, weights.of_ranges[i].mass[0])
        weights.total = value_of(&total)
    return workspace + weights_workspace(n_items)


cdef struct Weighing:
    Weights *weights
    const double *scores
    intp_t n_items
    char *workspace
    int n_threads


cdef void weigh_in_team(void *weighing_) noexcept nogil:
    cdef Weighing *query = <Weighing *>weighing_
    query.workspace = weigh(query.weights, query.scores, query.n_items, query.workspace, query.n_threads)


cdef char *weigh_by_team(
    Weights *weights, const double *scores, intp_t n_items, char *workspace, int n_threads
) noexcept:
    """Compute the weights of a query that threads share. The caller holds the GIL, which this releases."""
    cdef Weighing query = Weighing(weights, scores, n_items, workspace, n_threads)
    run_in_team(weigh_in_team, &query, n_threads)
    return query.workspace


# ---------------------------------------------------------------------------------------------------------------------
# For tests
# ---------------------------------------------------------------------------------------------------------------------

def arrival(const double[::1] scores, double wanted):
    """Return (time, rate): when ``wanted`` items are expected to have arrived, and the rate of arrivals then."""
    cdef Weights weights
    cdef arrivals last
    cdef double[::1] memory = np.empty(weights_workspace(scores.shape[0]) // 8)
    weigh(&weights, numbers(scores), scores.shape[0], <char *>&memory[0])
    last = expected_arrivals(sort_weights(&weights), wanted, 1e300)
    return last.time, last.rate
