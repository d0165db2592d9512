"""Weights of one query's items, which samplers and estimators share, and how peaked they are."""

from plrank_fast._core.runtime.buffers cimport data_of
from plrank_fast._core.runtime.layout cimport aligned
from plrank_fast._core.runtime.scalar_types cimport intp_t
from plrank_fast._core.runtime.simd cimport simd_level

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


cdef void sort_weights(const Weights *weights, weight_octaves *octaves) noexcept nogil:
    """Compute how representable weights are spread. O(D)."""
    kernels.sort_into_octaves(weights.relative, weights.n_items, weights.spread, octaves)


cdef arrivals expected_arrivals(const weight_octaves *octaves, double wanted, double latest) noexcept nogil:
    """Return the time by which ``wanted`` items have arrived on average, if that is before ``latest``.

    The octaves give it within a few percent.
    """
    return kernels.expected_arrivals(octaves, wanted, latest)


cdef size_t weights_workspace(intp_t n_items) noexcept nogil:
    """Return the number of bytes that ``weigh`` takes."""
    return aligned(n_items * sizeof(double))


cdef char *weigh(Weights *weights, const double *scores, intp_t n_items, char *workspace) noexcept nogil:
    """Compute the weights of one query, and return the first unused byte of ``workspace``. O(D)."""
    cdef double lowest
    weights.n_items = n_items
    weights.scores = scores
    kernels.extremes(scores, n_items, &lowest, &weights.highest)
    weights.spread = weights.highest - lowest
    weights.representable = weights.spread <= PLR_LARGEST_SPREAD
    weights.relative = <double *>workspace
    if weights.representable:
        weights.total = kernels.relative(scores, weights.highest, 1.0, weights.relative, n_items)
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
    cdef weight_octaves octaves
    cdef arrivals last
    memory = np.empty(scores.size + 8)
    weigh(&weights, <const double *>data_of(scores), scores.size, <char *>data_of(memory))
    sort_weights(&weights, &octaves)
    last = expected_arrivals(&octaves, wanted, 1e300)
    return last.time, last.rate
