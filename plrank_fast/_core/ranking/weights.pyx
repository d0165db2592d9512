"""Weights of one query's items, which samplers and estimators share, and how peaked they are."""

from libc.math cimport exp, ldexp

from plrank_fast._core.runtime.buffers cimport data_of
from plrank_fast._core.runtime.layout cimport aligned
from plrank_fast._core.runtime.scalar_types cimport intp_t
from plrank_fast._core.runtime.simd cimport simd_level

import numpy as np

cdef extern from "ranking/weights.h" nogil:
    ctypedef struct weights_kernels:
        void (*extremes)(const double *scores, size_t n, double *lowest, double *highest) noexcept nogil
        double (*relative)(const double *scores, double highest, double sign, double *out, size_t n) noexcept nogil
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


cdef arrivals expected_arrivals(const Weights *weights, double wanted, double latest) noexcept nogil:
    """Return the time by which ``wanted`` items have arrived on average, if that is before ``latest``.

    The octaves give it within a few percent.
    """
    return kernels.expected_arrivals(&weights.octaves, wanted, latest)


cdef size_t weights_workspace(intp_t n_items) noexcept nogil:
    """Return the number of bytes that ``weigh`` takes."""
    return aligned(n_items * sizeof(double))


cdef double bound_draws(const Weights *weights, intp_t cutoff) noexcept nogil:
    """Return a bound on the sum over ranks k of S_1 / S_k: S_k is at least the weight of the D - k + 1 lightest."""
    cdef const weight_octaves *octaves = &weights.octaves
    cdef double[65] lighter     # mass of all lighter octaves
    cdef intp_t _, octave, n_octaves = octaves.n
    cdef double bound = 0.0, left = 0.0, lower_end = 1.0
    lighter[n_octaves - 1] = 0.0
    for octave in range(n_octaves - 2, -1, -1):
        lighter[octave] = lighter[octave + 1] + octaves.mass[octave + 1]
    # take items away from the heaviest octave on; those left in an octave weigh at least its lower end
    octave = -1
    for _ in range(cutoff):
        while left == 0.0:
            octave += 1
            left = octaves.count[octave]
            lower_end = ldexp(1.0, -<int>octave) if octave < PLR_OCTAVES - 1 else weights.lightest
        bound += weights.total / (lighter[octave] + left * lower_end)
        left -= 1.0
    return bound


cdef char *weigh(
    Weights *weights, const double *scores, intp_t n_items, intp_t cutoff, bint sort, char *workspace
) noexcept nogil:
    """Compute the weights of one query, with ``sort`` also how they are spread. O(D + K).

    Returns the first unused byte of ``workspace``.
    """
    cdef double lowest
    weights.n_items = n_items
    weights.scores = scores
    kernels.extremes(scores, n_items, &lowest, &weights.highest)
    weights.spread = weights.highest - lowest
    weights.representable = weights.spread <= PLR_LARGEST_SPREAD
    weights.relative = <double *>workspace
    weights.sorted = sort and weights.representable
    if weights.representable:
        weights.total = kernels.relative(scores, weights.highest, 1.0, weights.relative, n_items)
        weights.lightest = exp(-weights.spread)
    if weights.sorted:
        kernels.sort_into_octaves(weights.relative, n_items, weights.spread, &weights.octaves)
        weights.most_draws = bound_draws(weights, min(cutoff, n_items))
    return workspace + weights_workspace(n_items)


# ---------------------------------------------------------------------------------------------------------------------
# For tests
# ---------------------------------------------------------------------------------------------------------------------

def relative_weights(scores, double highest):
    """Return exp(score - highest) as the kernels compute it, for differences of at most 708."""
    out = np.empty(scores.size)
    kernels.relative(<const double *>data_of(scores), highest, 1.0, <double *>data_of(out), scores.size)
    return out


def arrival(scores, double wanted):
    """Return (time, rate): when ``wanted`` items are expected to have arrived, and the rate of arrivals then."""
    cdef Weights weights
    cdef arrivals last
    memory = np.empty(scores.size + 8)
    weigh(&weights, <const double *>data_of(scores), scores.size, 1, True, <char *>data_of(memory))
    last = expected_arrivals(&weights, wanted, 1e300)
    return last.time, last.rate
