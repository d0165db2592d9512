"""NumPy arrays that a kernel can read without conversion: contiguous native doubles and integers."""

from plrank_fast._core.runtime.scalar_types cimport int64_t, intp_t

cdef double *plain_values(object array, intp_t *n_values, bint writeable) noexcept
cdef const int64_t *plain_integers(object array, intp_t *n_values) noexcept
cdef void *data_of(object array) except? NULL
