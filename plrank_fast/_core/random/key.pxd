"""The 128-bit key of a call's random streams."""

from plrank_fast._core.runtime.scalar_types cimport uint64_t

cdef bint draw_key(object rng, uint64_t *key) except -1
