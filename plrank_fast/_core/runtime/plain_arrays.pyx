"""NumPy arrays that a kernel can read without conversion: contiguous native doubles and integers.

Most calls pass only such arrays, which need none of the conversions of ``validation``. An array found plain here has
passed the checks that matter; nothing here raises.
"""

import numpy as np

from cpython.buffer cimport (
    PyBUF_FORMAT,
    PyBUF_SIMPLE,
    PyBUF_STRIDES,
    PyBUF_WRITABLE,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from plrank_fast._core.runtime.magnitudes cimport are_finite, copy_finite
from plrank_fast._core.runtime.scalar_types cimport int64_t, intp_t

cdef object NDARRAY = np.ndarray, DOUBLE = np.dtype(np.float64), EMPTY = np.empty


cdef inline void *plain_memory(object array, intp_t *n_values, bint writeable, bint integers) noexcept:
    cdef Py_buffer view
    cdef void *values = NULL
    n_values[0] = -1
    if type(array) is not NDARRAY:
        return NULL
    try:
        PyObject_GetBuffer(array, &view, PyBUF_FORMAT | PyBUF_STRIDES | (PyBUF_WRITABLE if writeable else 0))
    except (BufferError, ValueError):  # the array is read-only, or no format describes its type
        return NULL
    if (
        view.ndim == 1 and view.format[1] == 0 and view.itemsize == 8
        and (view.format[0] in (b"l", b"q") if integers else view.format[0] == b"d")
        and view.strides[0] == 8
    ):
        values = view.buf
        n_values[0] = view.shape[0]
    PyBuffer_Release(&view)
    return values


cdef double *plain_values(object array, intp_t *n_values, bint writeable) noexcept:
    """Return the values of a one-dimensional, contiguous array of native doubles; NULL and a count of -1 for others.

    The pointer is valid until the array is freed or resized. A subclass, such as a masked array, is not plain.
    """
    return <double *>plain_memory(array, n_values, writeable, False)


cdef const int64_t *plain_integers(object array, intp_t *n_values) noexcept:
    """Return the values of such an array of native integers of 64 bits."""
    return <const int64_t *>plain_memory(array, n_values, False, True)


cdef void *data_of(object array) except? NULL:
    """Return the memory of a writeable, C-contiguous array of this package, valid until the array is freed."""
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_SIMPLE | PyBUF_WRITABLE)
    PyBuffer_Release(&view)
    return view.buf


def finite_copy(values):
    """Return a C-contiguous copy of an array of finite native doubles of any shape, or None for anything else."""
    cdef Py_buffer given, view
    cdef bint finite, in_order = True
    if type(values) is not NDARRAY or values.dtype is not DOUBLE:
        return None
    try:
        PyObject_GetBuffer(values, &given, PyBUF_SIMPLE)
    except (BufferError, ValueError):  # the values are not contiguous
        in_order = False
    copy = EMPTY(values.shape) if in_order else values.copy()
    PyObject_GetBuffer(copy, &view, PyBUF_SIMPLE | PyBUF_WRITABLE)
    if in_order:
        finite = copy_finite(<double *>view.buf, <const double *>given.buf, view.len // sizeof(double))
        PyBuffer_Release(&given)
    else:
        finite = are_finite(<const double *>view.buf, view.len // sizeof(double))
    PyBuffer_Release(&view)
    return copy if finite else None
