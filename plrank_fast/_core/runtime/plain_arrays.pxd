"""NumPy arrays that are read without ``validation``: contiguous native doubles, single floats and integers."""

from plrank_fast._core.runtime.scalar_types cimport int64_t, intp_t

cdef double *plain_values(object array, intp_t *n_values, bint writeable) noexcept
cdef const void *plain_numbers(object array, intp_t *n_values, int *kind) noexcept
cdef const int64_t *plain_integers(object array, intp_t *n_values) noexcept
