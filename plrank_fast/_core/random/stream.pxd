"""Counter-keyed random streams: one per (query, block of samples)."""

from plrank_fast._core.runtime.scalar_types cimport intp_t, uint64_t

cdef extern from "random/random_stream.h" nogil:
    int PLR_STREAM_LANES
    ctypedef struct plr_stream:
        uint64_t word[4][8]
    uint64_t plr_mix64(uint64_t z)

cdef void start_stream(plr_stream *stream, const uint64_t *key, uint64_t query, uint64_t block) noexcept nogil

# A stream serves at most this many samples. A block is the unit in which samples are drawn, accumulated and reproduced.
cdef enum:
    BLOCK = 128


cdef inline intp_t block_size(intp_t n_items) noexcept nogil:
    """Return the samples per block of a query: fewer in very long lists, so that each takes a fraction of a second."""
    cdef intp_t size = BLOCK
    while size > 1 and size * n_items > (1 << 23):
        size //= 2
    return size
