"""Counter-keyed random streams (``kernels/random/random_stream.h`` and ``.c``).

The generator is xoshiro256++ in eight lanes. The 128-bit key of a call, the index of the query and the index of the
block of samples alone seed a stream.
"""

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
