"""A function that answers a call that does not fit its signature, at little cost to a call that does.

CPython's vectorcall protocol passes a call on as it came, in a fifth of the time that ``*args, **kwargs`` take: for a
short list, these would take a tenth of the whole call.
"""

import functools

from cpython.exc cimport PyErr_ExceptionMatches, PyErr_Fetch, PyErr_NormalizeException, PyErr_Restore
from cpython.object cimport PyObject

cdef extern from "Python.h":
    """
    #define PLR_ACCEPT_VECTORCALL(type, offset) \\
        ((type)->tp_vectorcall_offset = (offset), (type)->tp_call = PyVectorcall_Call, \\
         (type)->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL, PyType_Modified(type))
    """
    ctypedef PyObject *(*vectorcallfunc)(PyObject *, PyObject *const *, size_t, PyObject *) noexcept
    PyObject *PyObject_Vectorcall(PyObject *, PyObject *const *, size_t, PyObject *) noexcept
    object PyMethod_New(object function, object instance)
    ctypedef struct PyTypeObject:
        pass
    void PLR_ACCEPT_VECTORCALL(PyTypeObject *kind, Py_ssize_t offset)


cdef class Answering:
    """``function``, with ``answer(error, function)`` called on a TypeError of a call that does not fit it."""

    cdef vectorcallfunc vectorcall
    cdef PyObject *callee
    cdef object function, answer
    cdef dict __dict__
    cdef object __weakref__

    def __cinit__(self, function, answer):
        self.vectorcall = pass_on
        self.function, self.answer = function, answer
        self.callee = <PyObject *>function
        functools.update_wrapper(self, function)

    def __get__(self, instance, owner):
        return self if instance is None else PyMethod_New(self, instance)

    def __reduce__(self):
        return self.__qualname__

    def __repr__(self):
        return repr(self.function)


cdef PyObject *pass_on(PyObject *wrapper, PyObject *const *arguments, size_t number, PyObject *names) noexcept:
    cdef PyObject *result = PyObject_Vectorcall((<Answering>wrapper).callee, arguments, number, names)
    if result == NULL and PyErr_ExceptionMatches(TypeError):
        answer_error(<Answering>wrapper)
    return result


cdef void answer_error(Answering wrapper) noexcept:
    """Let ``answer`` change the error that is set, if it was raised before any line of the function ran."""
    cdef PyObject *kind = NULL
    cdef PyObject *error = NULL
    cdef PyObject *traceback = NULL
    PyErr_Fetch(&kind, &error, &traceback)
    PyErr_NormalizeException(&kind, &error, &traceback)
    if traceback == NULL:
        wrapper.answer(<object>error, wrapper.function)
    PyErr_Restore(kind, error, traceback)


cdef Answering EXAMPLE = Answering(Answering.__get__, None)
PLR_ACCEPT_VECTORCALL(
    <PyTypeObject *>Answering, <char *>&EXAMPLE.vectorcall - <char *><PyObject *>EXAMPLE
)
