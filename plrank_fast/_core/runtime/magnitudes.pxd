"""Check that values are finite, and that their products and sums stay far from both ends of a double's range."""

cdef bint are_finite(const double *values, size_t n) noexcept nogil
cdef bint copy_finite(double *to, const double *values, size_t n) noexcept nogil
cdef bint copy_each_within_limits(double *to, const double *values, size_t n) noexcept nogil
cdef bint are_within_limits(const double *values, size_t n) noexcept nogil
cdef bint are_too_large(const double *values, size_t n) noexcept nogil
