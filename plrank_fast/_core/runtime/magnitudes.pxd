"""Check that values are finite, and that their products and sums stay far from both ends of a double's range."""

from plrank_fast._core.runtime.scalar_types cimport int64_t

cdef bint are_finite(const double *values, size_t n) noexcept nogil
cdef bint copy_each_within_limits(double *to, const double *values, size_t n) noexcept nogil
cdef bint are_within_limits(const double *values, size_t n) noexcept nogil

cdef extern from "runtime/magnitudes.h" nogil:
    const int PLR_NOT_FINITE, PLR_TOO_LARGE, PLR_NEGATIVE, PLR_ABOVE_ONE, PLR_NO_SMALL_GRADE, PLR_LIMIT_EXPONENT
    const int64_t PLR_LARGEST_COUNT
    const double PLR_SMALLEST_TOLERANCE

cdef int found_in(const double *values, size_t n) noexcept nogil
cdef int found_while_copying(double *to, const void *values, int kind, size_t n) noexcept nogil
cdef bint each_within(int found) noexcept nogil
