"""NumPy arrays that a kernel can read without conversion: contiguous native doubles."""

from plrank_fast._core.runtime.scalar_types cimport intp_t

cdef double *plain_values(object array, intp_t *n_values, bint writeable) noexcept
cdef object new_array(const void *values, size_t n_bytes, object shape, object dtype)
