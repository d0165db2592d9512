"""NumPy arrays that are read without ``validation``: contiguous native doubles, single floats and integers.

Most calls pass only such arrays. An array found plain here has passed the checks that matter; nothing here raises.
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


cdef extern from "runtime/magnitudes.h" nogil:
    int PLR_DOUBLES, PLR_FLOATS, PLR_INTS, PLR_LONGS


cdef inline int kind_of(const Py_buffer *view) noexcept:
    """Return the kind of numbers, or -1."""
    cdef char name = view.format[0]
    if view.format[1] != 0:
        return -1
    if view.itemsize == 8:
        return PLR_DOUBLES if name == b"d" else PLR_LONGS if name in (b"l", b"q") else -1
    if view.itemsize == 4:
        return PLR_FLOATS if name == b"f" else PLR_INTS if name == b"i" else -1
    return -1


cdef inline void *plain_memory(object array, intp_t *n_values, bint writeable, int *kind) noexcept:
    cdef Py_buffer view
    cdef void *values = NULL
    n_values[0] = -1
    if type(array) is not NDARRAY:
        return NULL
    try:
        PyObject_GetBuffer(array, &view, PyBUF_FORMAT | PyBUF_STRIDES | (PyBUF_WRITABLE if writeable else 0))
    except (BufferError, ValueError):  # the array is read-only, or no format describes its type
        return NULL
    kind[0] = kind_of(&view)
    if kind[0] >= 0 and view.ndim == 1 and view.strides[0] == view.itemsize:
        values = view.buf
        n_values[0] = view.shape[0]
    PyBuffer_Release(&view)
    return values


cdef double *plain_values(object array, intp_t *n_values, bint writeable) noexcept:
    """Return the values of a one-dimensional, contiguous array of native doubles; NULL and a count of -1 for others.

    The pointer is valid until the array is freed or resized. A subclass, such as a masked array, is not plain.
    """
    cdef int kind = -1
    cdef void *values = plain_memory(array, n_values, writeable, &kind)
    if kind != PLR_DOUBLES:
        n_values[0] = -1
    return <double *>values if kind == PLR_DOUBLES else NULL


cdef const void *plain_numbers(object array, intp_t *n_values, int *kind) noexcept:
    """Return the values of such an array of any ``kind`` of numbers, one of ``magnitudes.h``."""
    return plain_memory(array, n_values, False, kind)


cdef const int64_t *plain_integers(object array, intp_t *n_values) noexcept:
    """Return the values of such an array of native integers of 64 bits."""
    cdef int kind = -1
    cdef void *values = plain_memory(array, n_values, False, &kind)
    if kind != PLR_LONGS:
        n_values[0] = -1
    return <const int64_t *>values if kind == PLR_LONGS else NULL


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
