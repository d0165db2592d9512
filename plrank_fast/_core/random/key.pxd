"""Keys of random streams, 128 bits for each call."""

from plrank_fast._core.runtime.scalar_types cimport uint64_t

cdef int draw_key(object rng, uint64_t *key) except -1
cpdef bint is_plain_source(object rng)
