"""Sums that keep what rounding loses: many equal terms are rounded the same way, and a plain sum drifts."""

from libc.math cimport isfinite

cdef struct Sum:
    double total
    double lost                # what rounding has lost; the sum is both together


cdef inline void add(Sum *sum, double term) noexcept nogil:
    cdef double total = sum.total + term, added = total - sum.total
    sum.lost += (sum.total - (total - added)) + (term - added)
    sum.total = total


cdef inline void multiply(Sum *sum, double factor) noexcept nogil:
    sum.total *= factor
    sum.lost *= factor


cdef inline double value_of(const Sum *sum) noexcept nogil:
    """Return the sum; one that is infinite has lost what is no number."""
    return sum.total + sum.lost if isfinite(sum.total) else sum.total
