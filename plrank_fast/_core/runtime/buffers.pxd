"""The first elements of memoryviews, of which kernels take the pointers; a view may be empty or None."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cython cimport boundscheck
from plrank_fast._core.runtime.scalar_types cimport int32_t, int64_t, intp_t


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


cdef inline void *data_of(object array) except? NULL:
    """Return the memory of a writeable, C-contiguous array of this package, valid until the array is freed."""
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_SIMPLE | PyBUF_WRITABLE)
    PyBuffer_Release(&view)
    return view.buf


cdef inline const void *read_only(object array) except? NULL:
    """Return the memory of a C-contiguous array, which need not be writeable."""
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_SIMPLE)
    PyBuffer_Release(&view)
    return view.buf


cdef inline const double *doubles_of(object array, intp_t *n_values) except? NULL:
    """Return the values of a C-contiguous array of doubles, which need not be writeable, and their number."""
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_SIMPLE)
    PyBuffer_Release(&view)
    n_values[0] = view.len // sizeof(double)
    return <const double *>view.buf
