"""NumPy arrays that a kernel could read as they are: native doubles, one after another.

Most calls bring nothing else, and for them the checks of ``validation``, which read whatever holds numbers, are a
detour. What is found here to be plain has passed those that matter; nothing here raises.
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
from libc.string cimport memcpy

from plrank_fast._core.runtime.magnitudes cimport are_finite, copy_finite
from plrank_fast._core.runtime.scalar_types cimport intp_t

cdef object NDARRAY = np.ndarray, DOUBLE = np.dtype(np.float64), EMPTY = np.empty


cdef double *plain_values(object array, intp_t *n_values, bint writeable) noexcept:
    """The values of a one-dimensional, contiguous array of native doubles, or NULL; -1 values where it is none.

    They are there as long as the array is, and nobody resizes it. A subclass, such as a masked array, is not plain.
    """
    cdef Py_buffer view
    cdef double *values = NULL
    n_values[0] = -1
    if type(array) is not NDARRAY:
        return NULL
    try:
        PyObject_GetBuffer(array, &view, PyBUF_FORMAT | PyBUF_STRIDES | (PyBUF_WRITABLE if writeable else 0))
    except (BufferError, ValueError):  # it is read-only, or of a type that no format describes
        return NULL
    if (
        view.ndim == 1 and view.format[0] == b"d" and view.format[1] == 0
        and (view.strides[0] == sizeof(double) or view.shape[0] <= 1)
    ):
        values = <double *>view.buf
        n_values[0] = view.shape[0]
    PyBuffer_Release(&view)
    return values


cdef object new_array(const void *values, size_t n_bytes, object shape, object dtype):
    """An array of so many bytes."""
    cdef Py_buffer view
    array = EMPTY(shape, dtype)
    PyObject_GetBuffer(array, &view, PyBUF_SIMPLE | PyBUF_WRITABLE)
    memcpy(view.buf, values, n_bytes)
    PyBuffer_Release(&view)
    return array


def finite_copy(values):
    """Return a C-contiguous copy of an array of finite native doubles of any shape, or None for anything else."""
    cdef Py_buffer given, view
    cdef bint finite, in_order = True
    if type(values) is not NDARRAY or values.dtype is not DOUBLE:
        return None
    try:
        PyObject_GetBuffer(values, &given, PyBUF_SIMPLE)
    except (BufferError, ValueError):  # its values do not lie in their order, without gaps
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
