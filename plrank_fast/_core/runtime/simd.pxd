"""The SIMD level of this process: 0 baseline (SSE2, NEON), 1 AVX2, 2 AVX-512."""

cdef int simd_level() noexcept nogil
