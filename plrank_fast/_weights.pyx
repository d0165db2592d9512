"""Weights of one query's items, which samplers and estimators share, and how peaked they are."""

from libc.math cimport INFINITY, exp, ldexp
from libc.string cimport memset

from plrank_fast._simd cimport simd_level
from plrank_fast._typedefs cimport intp_t, uint64_t

import numpy as np

cdef extern from "weights.h" nogil:
    ctypedef struct weights_kernels:
        void (*relative)(const double *scores, double highest, double sign, double *out, size_t n) noexcept nogil
    const weights_kernels *weights_kernels_at(int level)

cdef const weights_kernels *kernels = weights_kernels_at(simd_level())

cdef double LARGEST_SPREAD = 600.0  # nats; sums of weights and their reciprocals stay far inside a double's range


cdef void relative_weights_of(const double *scores, double highest, double *out, intp_t n_items) noexcept nogil:
    """out[d] = exp(score - highest), in vector registers; the scores lie within 700 of the highest."""
    kernels.relative(scores, highest, 1.0, out, n_items)


cdef size_t weights_workspace(intp_t n_items) noexcept nogil:
    """Bytes that ``weigh`` carves out."""
    return (n_items * sizeof(double) + 63) // 64 * 64


cdef double bound_draws(const Weights *weights, intp_t cutoff) noexcept nogil:
    """Upper bound on the sum over ranks k of S_1 / S_k: S_k is at least the weight of the D - k + 1 lightest."""
    cdef double[65] mass       # of the items by octave below the heaviest; then of all lighter octaves
    cdef intp_t[64] count
    cdef intp_t d, _, octave
    cdef double bound, left, lower_end = 1.0
    memset(mass, 0, sizeof(mass))
    memset(count, 0, sizeof(count))
    for d in range(weights.n_items):
        # a double's exponent is 1023 for the heaviest weight, 1
        octave = min(1023 - <intp_t>((<const uint64_t *>(weights.relative + d))[0] >> 52), <intp_t>63)
        mass[octave] += weights.relative[d]
        count[octave] += 1
    for octave in range(62, -1, -1):
        mass[octave] += mass[octave + 1]
    # take items away from the heaviest octave on; those left in an octave weigh at least its lower end
    bound = 0.0
    octave = -1
    left = 0.0
    for _ in range(cutoff):
        while left == 0.0:
            octave += 1
            left = <double>count[octave]
            lower_end = ldexp(1.0, -<int>octave) if octave < 63 else weights.lightest
        bound += weights.total / (mass[octave + 1] + left * lower_end)
        left -= 1.0
    return bound


cdef char *weigh(Weights *weights, const double *scores, intp_t n_items, intp_t cutoff, char *workspace) noexcept nogil:
    """Describe the weights of one query. Returns the first byte of ``workspace`` not used. O(D + K)."""
    cdef intp_t d
    cdef double lowest = INFINITY
    weights.n_items = n_items
    weights.scores = scores
    weights.highest = -INFINITY
    for d in range(n_items):
        weights.highest = max(weights.highest, scores[d])
        lowest = min(lowest, scores[d])
    weights.spread = weights.highest - lowest
    weights.representable = weights.spread <= LARGEST_SPREAD
    weights.relative = <double *>workspace
    if weights.representable:
        kernels.relative(scores, weights.highest, 1.0, weights.relative, n_items)
        weights.total = 0.0
        for d in range(n_items):
            weights.total += weights.relative[d]
        weights.lightest = exp(-weights.spread)
        weights.most_draws = bound_draws(weights, min(cutoff, n_items))
    return workspace + weights_workspace(n_items)


# ---------------------------------------------------------------------------------------------------------------------
# For tests
# ---------------------------------------------------------------------------------------------------------------------

def relative_weights(const double[::1] scores, double highest):
    """exp(score - highest) as the kernels compute it; differences of at most 708."""
    out = np.empty(scores.shape[0])
    cdef double[::1] view = out
    kernels.relative(&scores[0], highest, 1.0, &view[0], scores.shape[0])
    return out
