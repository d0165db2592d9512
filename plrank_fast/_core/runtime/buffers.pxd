"""The first elements of memoryviews, of which kernels take the pointers; a view may be empty or None."""

from cython cimport boundscheck
from plrank_fast._core.runtime.scalar_types cimport int32_t, int64_t


@boundscheck(False)
cdef inline const double *numbers(const double[::1] view) noexcept nogil:
    return &view[0] if view is not None else NULL


@boundscheck(False)
cdef inline double *results(double[::1] view) noexcept nogil:
    return &view[0] if view is not None else NULL


@boundscheck(False)
cdef inline const int64_t *integers(const int64_t[::1] view) noexcept nogil:
    return &view[0] if view is not None else NULL


@boundscheck(False)
cdef inline int32_t *written(int32_t[:, :, ::1] view) noexcept nogil:
    return &view[0, 0, 0]


@boundscheck(False)
cdef inline const int32_t *rankings(const int32_t[:, :, ::1] view) noexcept nogil:
    return &view[0, 0, 0]
