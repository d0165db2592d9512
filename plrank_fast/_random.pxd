"""Counter-keyed random streams: one per (query, block of samples)."""

from plrank_fast._typedefs cimport uint64_t

cdef extern from "random_stream.h" nogil:
    int PLR_STREAM_LANES
    ctypedef struct plr_stream:
        uint64_t word[4][8]
    void plr_stream_init(plr_stream *stream, const uint64_t *key, uint64_t query, uint64_t block)
    void plr_stream_next(plr_stream *stream, uint64_t *out)
    uint64_t plr_splitmix64(uint64_t *state)

# Samples that share a stream: the unit in which samples are drawn, accumulated and reproduced.
cdef enum:
    BLOCK = 128
