"""Counter-keyed random streams (``kernels/random/random_stream.h`` and ``.c``), exposed for the known-answer tests.

The generator is xoshiro256++ in eight lanes. The 128-bit key of a call, the index of the query and the index of the
block of samples alone seed a stream.
"""

import numpy as np

from plrank_fast._core.runtime.scalar_types cimport uint64_t
from plrank_fast._core.runtime.simd cimport simd_level

cdef extern from "random/random_stream.h" nogil:
    ctypedef struct random_stream_kernels:
        void (*start)(plr_stream *stream, const uint64_t *key, uint64_t query, uint64_t block) noexcept nogil
    const random_stream_kernels *random_stream_kernels_at(int level)

cdef const random_stream_kernels *kernels = random_stream_kernels_at(simd_level())


cdef void start_stream(plr_stream *stream, const uint64_t *key, uint64_t query, uint64_t block) noexcept nogil:
    """Set ``stream`` to the start of the stream of (key, query, block); ``key`` has two words."""
    kernels.start(stream, key, query, block)


def stream_words(const uint64_t[::1] key, uint64_t query, uint64_t block, Py_ssize_t steps):
    """Return the first ``steps`` rows of eight words of the stream of (key, query, block)."""
    cdef plr_stream stream
    cdef Py_ssize_t i
    out = np.empty((steps, PLR_STREAM_LANES), dtype=np.uint64)
    cdef uint64_t[:, ::1] view = out
    start_stream(&stream, &key[0], query, block)
    for i in range(steps):
        plr_stream_next(&stream, &view[i, 0])
    return out


def xoshiro_words(const uint64_t[::1] state, Py_ssize_t steps):
    """Return the outputs of xoshiro256++ from a given state of four words (all lanes run it; they must agree)."""
    cdef plr_stream stream
    cdef Py_ssize_t i, lane
    out = np.empty((steps, PLR_STREAM_LANES), dtype=np.uint64)
    cdef uint64_t[:, ::1] view = out
    for i in range(4):
        for lane in range(PLR_STREAM_LANES):
            stream.word[i][lane] = state[i]
    for i in range(steps):
        plr_stream_next(&stream, &view[i, 0])
    return out


def splitmix_words(uint64_t seed, Py_ssize_t steps):
    """Return the outputs of SplitMix64 from ``seed``."""
    cdef Py_ssize_t i
    out = np.empty(steps, dtype=np.uint64)
    cdef uint64_t[::1] view = out
    for i in range(steps):
        view[i] = plr_splitmix64(&seed)
    return out
