/* One source is compiled for several instruction sets.
 *
 * Every kernels/<family>.c is compiled once per SIMD level with -DPLR_ISA=<level>; ISA(name) then gives the name its
 * level as a suffix, so that all levels link into one module. A family collects its functions in a struct of function
 * pointers,
 *
 *     typedef struct { void (*fill)(double *, size_t); } arrival_times_kernels;    in arrival_times.h
 *     PLR_DECLARE_KERNELS(arrival_times_kernels)
 *
 *     const arrival_times_kernels ISA(arrival_times_kernels) = {fill};                    in arrival_times.c
 *
 * and the module calls arrival_times_kernels_at(level) once, at import. Levels: 0 baseline (SSE2, NEON), 1 AVX2 with
 * FMA, 2 AVX-512 (F, CD, BW, DQ, VL). runtime/simd.pyx decides which one runs.
 */
#ifndef PLR_ISA_H
#define PLR_ISA_H

#include <stddef.h>
#include <stdint.h>

#define PLR_CONCAT_(a, b) a##_##b
#define PLR_CONCAT(a, b) PLR_CONCAT_(a, b)
#ifdef PLR_ISA
#define ISA(name) PLR_CONCAT(name, PLR_ISA)
#endif

#ifdef PLR_HAVE_AVX512
#define PLR_IF_AVX512(x) x
#else
#define PLR_IF_AVX512(x)
#endif
#ifdef PLR_HAVE_AVX2
#define PLR_IF_AVX2(x) x
#else
#define PLR_IF_AVX2(x)
#endif

/* Declare the tables of all levels that were built and the function that chooses one. */
#define PLR_DECLARE_KERNELS(family)                                  \
    extern const family PLR_CONCAT(family, baseline);                \
    PLR_IF_AVX2(extern const family PLR_CONCAT(family, avx2);)       \
    PLR_IF_AVX512(extern const family PLR_CONCAT(family, avx512);)   \
    static inline const family *PLR_CONCAT(family, at)(int level)    \
    {                                                                \
        PLR_IF_AVX512(if (level >= 2) return &PLR_CONCAT(family, avx512);) \
        PLR_IF_AVX2(if (level >= 1) return &PLR_CONCAT(family, avx2);)     \
        (void)level;                                                 \
        return &PLR_CONCAT(family, baseline);                        \
    }

/* Number of doubles in one register at this level. */
#if defined(PLR_ISA_AVX512)
#define PLR_LANES 8
#elif defined(PLR_ISA_AVX2)
#define PLR_LANES 4
#else
#define PLR_LANES 2
#endif

#define PLR_INLINE static inline __attribute__((always_inline))

/* Unroll the loop that follows; the compiler knows its number of iterations, which is small. */
#define PLR_UNROLL _Pragma("GCC unroll 32")

#endif
