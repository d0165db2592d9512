"""Check that values are finite, and that their products and sums stay far from both ends of a double's range."""

from plrank_fast._core.runtime.scalar_types cimport int64_t

cdef bint any_negative(const double *values, size_t n) noexcept nogil
cdef bint are_finite(const double *values, size_t n) noexcept nogil
cdef bint are_within_limits(const double *values, size_t n) noexcept nogil

cdef extern from "runtime/atomics.h" nogil:
    void plr_add_flags(int *flags, int found)

cdef extern from "runtime/magnitudes.h" nogil:
    const int PLR_DOUBLES, PLR_FLOATS, PLR_INTS, PLR_LONGS, PLR_KINDS
    const int PLR_NOT_FINITE, PLR_TOO_LARGE, PLR_NEGATIVE, PLR_ABOVE_ONE, PLR_NO_SMALL_GRADE, PLR_NO_WHOLE_GRADE
    const int PLR_LIMIT_EXPONENT
    const int64_t PLR_LARGEST_COUNT
    const double PLR_SMALLEST_TOLERANCE

cdef int found_in(const double *values, size_t n) noexcept nogil
cdef int found_by_threads(const double *values, size_t n, int n_threads) noexcept
cdef int found_by_team(const double *values, size_t n, int n_threads) noexcept nogil
cdef int found_while_copying(double *to, const void *values, int kind, size_t n) noexcept nogil
cdef bint each_within(int found) noexcept nogil


cdef inline double gain_of_grade(double label) noexcept nogil:
    """Return 2**label - 1 for a small grade."""
    return (1 << <int>label) - 1
