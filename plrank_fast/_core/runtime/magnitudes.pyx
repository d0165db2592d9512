"""Check that values are finite, and that their products and sums stay far from both ends of a double's range.

Values are within the limits if they are finite and all of them are 0, or the largest magnitude is from 2**-200 to
2**200.
"""

from plrank_fast._core.runtime.scalar_types cimport intp_t
from plrank_fast._core.runtime.simd cimport simd_level
from plrank_fast._core.runtime.teams cimport run_ranges, share_ranges

cdef extern from "runtime/magnitudes.h" nogil:
    int PLR_TOO_SMALL, PLR_LARGE_ENOUGH
    ctypedef struct magnitudes_kernels:
        int (*found_in)(const double *values, size_t n) noexcept nogil
        int (*are_finite)(const double *values, size_t n) noexcept nogil
        int (*found_while_copying[4])(double *to, const void *values, size_t n) noexcept nogil
    const magnitudes_kernels *magnitudes_kernels_at(int level)

cdef const magnitudes_kernels *kernels = magnitudes_kernels_at(simd_level())

LARGEST_MAGNITUDE = 2.0**PLR_LIMIT_EXPONENT
SMALLEST_TOLERANCE, LARGEST_COUNT = PLR_SMALLEST_TOLERANCE, PLR_LARGEST_COUNT
TOO_LARGE, TOO_SMALL, NEGATIVE = PLR_TOO_LARGE, PLR_TOO_SMALL, PLR_NEGATIVE
ABOVE_ONE, NO_SMALL_GRADE = PLR_ABOVE_ONE, PLR_NO_SMALL_GRADE


cdef inline bint within(int found) noexcept nogil:
    return not found & (PLR_NOT_FINITE | PLR_TOO_LARGE) and found & (PLR_TOO_SMALL | PLR_LARGE_ENOUGH) != PLR_TOO_SMALL


cdef int found_in(const double *values, size_t n) noexcept nogil:
    """Return the flags of ``magnitudes.h`` for what occurs among the values."""
    return kernels.found_in(values, n)


cdef struct Values:
    const double *values
    int found


cdef void look_at_values(void *looked_, intp_t start, intp_t stop) noexcept nogil:
    cdef Values *looked = <Values *>looked_
    plr_add_flags(&looked.found, found_in(looked.values + start, stop - start))


cdef int found_by_threads(const double *values, size_t n, int n_threads) noexcept:
    """Return the same flags in one pass, which threads share."""
    cdef Values looked = Values(values, 0)
    run_ranges(look_at_values, &looked, n, 0.5, n_threads)
    return looked.found


cdef int found_by_team(const double *values, size_t n, int n_threads) noexcept nogil:
    """Return the same flags within a query."""
    cdef Values looked = Values(values, 0)
    share_ranges(look_at_values, &looked, n, n_threads)
    return looked.found


cdef int found_while_copying(double *to, const void *values, int kind, size_t n) noexcept nogil:
    """Copy values of a kind of ``magnitudes.h`` to doubles; return the flags for what occurs among them."""
    return kernels.found_while_copying[kind](to, values, n)


cdef bint each_within(int found) noexcept nogil:
    """Return whether every group of the values, however they are grouped, is within the limits."""
    return not found & (PLR_NOT_FINITE | PLR_TOO_LARGE | PLR_TOO_SMALL)


cdef bint are_finite(const double *values, size_t n) noexcept nogil:
    return kernels.are_finite(values, n)


cdef bint any_negative(const double *values, size_t n) noexcept nogil:
    return kernels.found_in(values, n) & PLR_NEGATIVE != 0


cdef bint are_within_limits(const double *values, size_t n) noexcept nogil:
    return within(kernels.found_in(values, n))


def all_finite(const double[::1] values):
    """Return whether all values are finite."""
    return values.shape[0] == 0 or are_finite(&values[0], values.shape[0])


def each_within_limits(const double[::1] values):
    """Return whether every group of the values, however they are grouped, is within the limits."""
    return values.shape[0] == 0 or each_within(found_in(&values[0], values.shape[0]))


def all_zero(const double[::1] values):
    """Return whether all values are 0; most arrays show one that is not at once."""
    cdef intp_t i
    for i in range(values.shape[0]):
        if values[i] != 0.0:
            return False
    return True
