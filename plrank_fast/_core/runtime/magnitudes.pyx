"""Whether values are finite, and of a size whose products and sums stay far from both ends of a double's range."""

from plrank_fast._core.runtime.simd cimport simd_level

cdef extern from "runtime/magnitudes.h" nogil:
    int PLR_ORDINARY_EXPONENT
    ctypedef struct magnitudes_kernels:
        int (*any_not_finite)(const double *values, size_t n) noexcept nogil
        int (*copy_and_find_not_finite)(double *to, const double *values, size_t n) noexcept nogil
        int (*any_extraordinary)(const double *values, size_t n) noexcept nogil
    const magnitudes_kernels *magnitudes_kernels_at(int level)

cdef const magnitudes_kernels *kernels = magnitudes_kernels_at(simd_level())

ORDINARY_EXPONENT = PLR_ORDINARY_EXPONENT


cdef bint are_finite(const double *values, size_t n) noexcept nogil:
    return n == 0 or not kernels.any_not_finite(values, n)


cdef bint copy_finite(double *to, const double *values, size_t n) noexcept nogil:
    """Copy the values; False if any is NaN or infinite."""
    return n == 0 or not kernels.copy_and_find_not_finite(to, values, n)


cdef bint are_ordinary(const double *values, size_t n) noexcept nogil:
    """Whether each value is 0 or has a magnitude from 2**-200 to 2**200."""
    return n == 0 or not kernels.any_extraordinary(values, n)


def all_finite(const double[::1] values):
    """Whether no value is NaN or infinite."""
    return values.shape[0] == 0 or are_finite(&values[0], values.shape[0])


def all_ordinary(const double[::1] values):
    """Whether each value is 0 or has a magnitude from 2**-200 to 2**200."""
    return values.shape[0] == 0 or are_ordinary(&values[0], values.shape[0])
