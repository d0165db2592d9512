"""Calls of Python functions by XLA's interface for foreign functions, in a fifth of the time of JAX's callback.

A call has one attribute, a text that names it. The function that `calls_by` has been given makes a Python function of
the text, once; it takes arrays over the memory of the operands, which are valid until it returns, and returns an array
for each result. What it raises becomes the error of the call: JAX raises ValueError for errors of arguments.

XLA promises that a major version of the interface keeps the structs below, which have their first fields here, and
only adds to them. So nothing depends on the headers of the jaxlib that is installed.
"""

import numpy as np

from cpython.buffer cimport PyBUF_READ, PyBUF_WRITE
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.pycapsule cimport PyCapsule_New
from libc.stddef cimport size_t
from libc.stdint cimport int64_t

cdef struct Extension:
    size_t struct_size
    int type
    Extension *next

cdef struct Version:
    size_t struct_size
    Extension *extensions
    int major, minor

cdef struct Metadata:
    size_t struct_size
    Version version

cdef struct MetadataExtension:
    Extension base
    Metadata *metadata

cdef struct NewError:
    size_t struct_size
    Extension *extensions
    const char *message
    int code

cdef struct Api:
    size_t struct_size
    Extension *extensions
    Version version
    const void *internal
    void *(*create_error)(NewError *error) noexcept

cdef struct Buffer:
    size_t struct_size
    Extension *extensions
    int dtype
    char *data
    int64_t n_axes
    const int64_t *shape

cdef struct Buffers:
    size_t struct_size
    Extension *extensions
    int64_t size
    const int *types
    Buffer **buffers

cdef struct Text:
    const char *characters
    size_t length

cdef struct Attributes:
    size_t struct_size
    Extension *extensions
    int64_t size
    const int *types
    Text **names
    Text **values

cdef struct Call:
    size_t struct_size
    Extension *extensions
    const Api *api
    void *context
    int stage
    Buffers operands
    Buffers results
    Attributes attributes

cdef enum:
    METADATA = 1                 # an extension
    CANCELLED = 1                # errors
    INVALID_ARGUMENT = 3
    RESOURCE_EXHAUSTED = 8
    INTERNAL = 13

cdef dict DTYPES = {number: np.dtype(name) for number, name in {
    1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32", 9: "uint64",
    11: "float32", 12: "float64",
}.items()}
cdef object NDARRAY = np.ndarray
cdef dict calls = {}             # functions by the texts that name them
cdef object found_by


def calls_by(function):
    """Make the functions of calls by ``function``, which takes the text; return the target to register with XLA."""
    global found_by
    found_by = function
    calls.clear()
    return PyCapsule_New(<void *>answer, "xla._CUSTOM_CALL_TARGET", NULL)


cdef object array_of(const Buffer *buffer, int access):
    """Return an array over the memory of a buffer."""
    cdef int64_t i, n_bytes
    dtype = DTYPES[buffer.dtype]
    n_bytes = dtype.itemsize
    for i in range(buffer.n_axes):
        n_bytes *= buffer.shape[i]
    shape = tuple([buffer.shape[i] for i in range(buffer.n_axes)])
    if n_bytes == 0:
        return np.empty(shape, dtype)
    return NDARRAY(shape, dtype, PyMemoryView_FromMemory(buffer.data, n_bytes, access))


cdef int evaluate(const Call *call) except -1:
    """Call the function, and copy what it returns to the results."""
    cdef const Text *name = call.attributes.values[0]
    cdef int64_t i
    text = name.characters[:name.length]
    function = calls.get(text)
    if function is None:
        function = calls[text] = found_by(text.decode())
    answers = function(*[array_of(call.operands.buffers[i], PyBUF_READ) for i in range(call.operands.size)])
    for i in range(call.results.size):
        array_of(call.results.buffers[i], PyBUF_WRITE)[...] = answers[i]
    return 0


cdef void *answer(Call *call) noexcept with gil:
    """Answer a call of XLA, or its question which version of the interface this function knows."""
    cdef NewError told
    cdef Version *version
    if call.extensions != NULL and call.extensions.type == METADATA:
        version = &(<MetadataExtension *>call.extensions).metadata.version
        version.major, version.minor = 0, call.api.version.minor
        return NULL
    try:
        evaluate(call)
        return NULL
    except BaseException as error:
        message = str(error).encode()
        told = NewError(sizeof(NewError), NULL, message, INTERNAL)
        if isinstance(error, (ValueError, TypeError)):
            told.code = INVALID_ARGUMENT
        elif isinstance(error, MemoryError):
            told.code = RESOURCE_EXHAUSTED
        elif isinstance(error, KeyboardInterrupt):
            told.code = CANCELLED
        return call.api.create_error(&told)
