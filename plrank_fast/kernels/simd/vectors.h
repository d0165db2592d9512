/* Vectors of one register's width: their types, loads and stores, selection by lane, reductions, shuffles.
 *
 * Everything uses the vector extensions of GCC and Clang, so that one source serves SSE2, AVX2, AVX-512 and NEON, with
 * the arithmetic and comparisons of C. There are intrinsics only where the compilers miss an instruction that halves
 * the work, each beside the generic code that it replaces. vector_math.h has the elementary functions.
 */
#ifndef PLR_VECTORS_H
#define PLR_VECTORS_H

#include <string.h>

#include "simd/isa.h"

#if defined(PLR_ISA_AVX2) || defined(PLR_ISA_AVX512)
#include <immintrin.h>
#elif defined(__x86_64__)
#include <emmintrin.h>
#endif

/* ------------------------------------------------------------------------------------------------------------------
 * Types
 * --------------------------------------------------------------------------------------------------------------- */

#define PLR_VECTOR(type, bytes) type __attribute__((vector_size(bytes)))

typedef PLR_VECTOR(double, 8 * PLR_LANES) vec_f64;
typedef PLR_VECTOR(int64_t, 8 * PLR_LANES) vec_i64; /* comparisons have it too: -1 where they hold, else 0 */
typedef PLR_VECTOR(uint64_t, 8 * PLR_LANES) vec_u64;
typedef PLR_VECTOR(float, 8 * PLR_LANES) vec_f32;
typedef PLR_VECTOR(int32_t, 8 * PLR_LANES) vec_i32;
typedef PLR_VECTOR(uint32_t, 8 * PLR_LANES) vec_u32;
typedef PLR_VECTOR(uint16_t, 8 * PLR_LANES) vec_u16;
#define PLR_LANES_32 (2 * PLR_LANES)

/* Half a register: as many numbers of 32 bits as a whole one has doubles. */
typedef PLR_VECTOR(float, 4 * PLR_LANES) vec_half_f32;
typedef PLR_VECTOR(int32_t, 4 * PLR_LANES) vec_half_i32;

/* Doubles in at most 256 bits, for code that three ports of 256 bits run faster than two ports of 512 bits. */
#define PLR_NARROW_LANES (PLR_LANES < 4 ? PLR_LANES : 4)
typedef PLR_VECTOR(double, 8 * PLR_NARROW_LANES) vec_narrow;

typedef PLR_VECTOR(double, 16) vec_pair;

/* The exact kernel calls a vector whose lanes are quadrature nodes `lanes`. */
typedef vec_f64 lanes;
typedef vec_i64 int_lanes;

/* ------------------------------------------------------------------------------------------------------------------
 * Loads and stores, at any address
 * --------------------------------------------------------------------------------------------------------------- */

PLR_INLINE vec_f64 vec_all(double x)
{
    return x - (vec_f64){0}; /* x + 0 would turn -0 into 0 and therefore take an instruction */
}

PLR_INLINE vec_f64 vec_load(const double *from)
{
    vec_f64 v;
    memcpy(&v, from, sizeof v);
    return v;
}

PLR_INLINE void vec_store(double *to, vec_f64 v)
{
    memcpy(to, &v, sizeof v);
}

/* Load the first count lanes (at most all) from memory and set the others to `fill`. The generic code waits for a store
 * of some bytes before it can load them as a register, which takes as long as six whole registers. */
PLR_INLINE vec_f64 vec_load_some(const double *from, size_t count, double fill)
{
    vec_f64 v = vec_all(fill);
    if (count >= PLR_LANES)
        return vec_load(from);
#if defined(PLR_ISA_AVX512)
    return (vec_f64)_mm512_mask_loadu_pd((__m512d)v, (__mmask8)((1u << count) - 1), from);
#elif defined(PLR_ISA_AVX2)
    const vec_i64 held = (vec_i64){0, 1, 2, 3} < (int64_t)count;
    return (vec_f64)_mm256_blendv_pd((__m256d)v, _mm256_maskload_pd(from, (__m256i)held), (__m256d)held);
#else
    memcpy(&v, from, count * sizeof(double));
    return v;
#endif
}

PLR_INLINE void vec_store_some(double *to, vec_f64 v, size_t count)
{
    if (count >= PLR_LANES) {
        vec_store(to, v);
        return;
    }
#if defined(PLR_ISA_AVX512)
    _mm512_mask_storeu_pd(to, (__mmask8)((1u << count) - 1), (__m512d)v);
#elif defined(PLR_ISA_AVX2)
    _mm256_maskstore_pd(to, (__m256i)((vec_i64){0, 1, 2, 3} < (int64_t)count), (__m256d)v);
#else
    memcpy(to, &v, count * sizeof(double));
#endif
}

PLR_INLINE vec_u64 vec_load_u64(const uint64_t *from)
{
    vec_u64 v;
    memcpy(&v, from, sizeof v);
    return v;
}

PLR_INLINE vec_i32 vec_load_i32(const int32_t *from)
{
    vec_i32 v;
    memcpy(&v, from, sizeof v);
    return v;
}

PLR_INLINE void vec_store_i32(int32_t *to, vec_i32 v)
{
    memcpy(to, &v, sizeof v);
}

/* Load bytes, each -1 or 0, as masks of doubles. */
PLR_INLINE vec_i64 vec_load_masks(const int8_t *from)
{
#if defined(PLR_ISA_AVX512)
    return (vec_i64)_mm512_cvtepi8_epi64(_mm_loadl_epi64((const __m128i *)from));
#elif defined(PLR_ISA_AVX2)
    int32_t bytes;
    memcpy(&bytes, from, sizeof bytes);
    return (vec_i64)_mm256_cvtepi8_epi64(_mm_cvtsi32_si128(bytes));
#else
    return (vec_i64){from[0], from[1]};
#endif
}

/* Return in each lane the 32 bits at table[at]. AVX-512 has one instruction for it, which takes 16 cycles for sixteen
 * entries in the first-level cache. */
PLR_INLINE vec_u32 vec_gather(const void *table, vec_u32 at)
{
#if defined(PLR_ISA_AVX512)
    return (vec_u32)_mm512_i32gather_epi32((__m512i)at, table, 4);
#elif defined(PLR_ISA_AVX2)
    return (vec_u32)_mm256_i32gather_epi32(table, (__m256i)at, 4);
#else
    vec_u32 v;
    for (int lane = 0; lane < PLR_LANES_32; lane++) {
        uint32_t entry;
        memcpy(&entry, (const char *)table + 4 * (size_t)at[lane], sizeof entry);
        v[lane] = entry;
    }
    return v;
#endif
}

/* ------------------------------------------------------------------------------------------------------------------
 * Lane by lane
 * --------------------------------------------------------------------------------------------------------------- */

/* Return a where the comparison held, else b. */
PLR_INLINE vec_f64 vec_select(vec_i64 held, vec_f64 a, vec_f64 b)
{
    return (vec_f64)(((vec_i64)a & held) | ((vec_i64)b & ~held));
}

/* Return a where the comparison held, else 0. */
PLR_INLINE vec_f64 vec_keep(vec_i64 held, vec_f64 a)
{
    return (vec_f64)((vec_i64)a & held);
}

PLR_INLINE vec_f64 vec_abs(vec_f64 x)
{
    return (vec_f64)((vec_u64)x & UINT64_C(0x7fffffffffffffff));
}

/* Minima and maxima: a where it is smaller (larger), else b, so that the result is b where either is NaN. GCC compiles
 * the generic code to three instructions, and sorting networks consist of these operations. */
#if defined(PLR_ISA_AVX512)
PLR_INLINE vec_f64 vec_min_f64(vec_f64 a, vec_f64 b) { return (vec_f64)_mm512_min_pd((__m512d)a, (__m512d)b); }
PLR_INLINE vec_f64 vec_max_f64(vec_f64 a, vec_f64 b) { return (vec_f64)_mm512_max_pd((__m512d)a, (__m512d)b); }
PLR_INLINE vec_f32 vec_min_f32(vec_f32 a, vec_f32 b) { return (vec_f32)_mm512_min_ps((__m512)a, (__m512)b); }
PLR_INLINE vec_f32 vec_max_f32(vec_f32 a, vec_f32 b) { return (vec_f32)_mm512_max_ps((__m512)a, (__m512)b); }
PLR_INLINE vec_i32 vec_min_i32(vec_i32 a, vec_i32 b) { return (vec_i32)_mm512_min_epi32((__m512i)a, (__m512i)b); }
PLR_INLINE vec_u32 vec_min_u32(vec_u32 a, vec_u32 b) { return (vec_u32)_mm512_min_epu32((__m512i)a, (__m512i)b); }
#elif defined(PLR_ISA_AVX2)
PLR_INLINE vec_f64 vec_min_f64(vec_f64 a, vec_f64 b) { return (vec_f64)_mm256_min_pd((__m256d)a, (__m256d)b); }
PLR_INLINE vec_f64 vec_max_f64(vec_f64 a, vec_f64 b) { return (vec_f64)_mm256_max_pd((__m256d)a, (__m256d)b); }
PLR_INLINE vec_f32 vec_min_f32(vec_f32 a, vec_f32 b) { return (vec_f32)_mm256_min_ps((__m256)a, (__m256)b); }
PLR_INLINE vec_f32 vec_max_f32(vec_f32 a, vec_f32 b) { return (vec_f32)_mm256_max_ps((__m256)a, (__m256)b); }
PLR_INLINE vec_i32 vec_min_i32(vec_i32 a, vec_i32 b) { return (vec_i32)_mm256_min_epi32((__m256i)a, (__m256i)b); }
PLR_INLINE vec_u32 vec_min_u32(vec_u32 a, vec_u32 b) { return (vec_u32)_mm256_min_epu32((__m256i)a, (__m256i)b); }
#else
#if defined(__x86_64__)
PLR_INLINE vec_f64 vec_min_f64(vec_f64 a, vec_f64 b) { return (vec_f64)_mm_min_pd((__m128d)a, (__m128d)b); }
PLR_INLINE vec_f64 vec_max_f64(vec_f64 a, vec_f64 b) { return (vec_f64)_mm_max_pd((__m128d)a, (__m128d)b); }
PLR_INLINE vec_f32 vec_min_f32(vec_f32 a, vec_f32 b) { return (vec_f32)_mm_min_ps((__m128)a, (__m128)b); }
PLR_INLINE vec_f32 vec_max_f32(vec_f32 a, vec_f32 b) { return (vec_f32)_mm_max_ps((__m128)a, (__m128)b); }
#else
PLR_INLINE vec_f64 vec_min_f64(vec_f64 a, vec_f64 b) { return vec_select(a < b, a, b); }
PLR_INLINE vec_f64 vec_max_f64(vec_f64 a, vec_f64 b) { return vec_select(a > b, a, b); }
PLR_INLINE vec_f32 vec_min_f32(vec_f32 a, vec_f32 b)
{
    vec_i32 less = a < b;
    return (vec_f32)(((vec_i32)a & less) | ((vec_i32)b & ~less));
}
PLR_INLINE vec_f32 vec_max_f32(vec_f32 a, vec_f32 b)
{
    vec_i32 more = a > b;
    return (vec_f32)(((vec_i32)a & more) | ((vec_i32)b & ~more));
}
#endif
/* This form is generic because SSE2 has no minimum of integers. */
PLR_INLINE vec_i32 vec_min_i32(vec_i32 a, vec_i32 b)
{
    vec_i32 less = a < b;
    return b ^ ((a ^ b) & less);
}
PLR_INLINE vec_u32 vec_min_u32(vec_u32 a, vec_u32 b)
{
    vec_u32 less = (vec_u32)(a < b);
    return b ^ ((a ^ b) & less);
}
#endif

/* Shuffle the lanes of two registers in an order known to the compiler: lane i of the result is lane order(i, x) of a
 * followed by b, where `order` is a macro. (GCC's __builtin_shuffle takes the order as a vector; Clang lacks it.) */
#define PLR_FOUR_LANES(order, x, i) order(i, x), order(i + 1, x), order(i + 2, x), order(i + 3, x)
#if defined(PLR_ISA_AVX512)
#define PLR_ALL_LANES_32(order, x) \
    PLR_FOUR_LANES(order, x, 0), PLR_FOUR_LANES(order, x, 4), PLR_FOUR_LANES(order, x, 8), PLR_FOUR_LANES(order, x, 12)
#elif defined(PLR_ISA_AVX2)
#define PLR_ALL_LANES_32(order, x) PLR_FOUR_LANES(order, x, 0), PLR_FOUR_LANES(order, x, 4)
#else
#define PLR_ALL_LANES_32(order, x) PLR_FOUR_LANES(order, x, 0)
#endif
#define vec_shuffle_i32(a, b, order, x) __builtin_shufflevector(a, b, PLR_ALL_LANES_32(order, x))

/* ------------------------------------------------------------------------------------------------------------------
 * Over all lanes
 * --------------------------------------------------------------------------------------------------------------- */

PLR_INLINE double larger(double a, double b) /* fmax is a call, because it has to handle NaN */
{
    return a > b ? a : b;
}

PLR_INLINE double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* Add halves first: eight lanes take three additions, and each lane is rounded at most three times. */
PLR_INLINE double vec_sum(vec_f64 v)
{
#if PLR_LANES == 8
    vec_narrow half[2];
    memcpy(half, &v, sizeof v);
    vec_narrow narrow = half[0] + half[1];
#else
    vec_narrow narrow = v;
#endif
#if PLR_NARROW_LANES == 4
    vec_pair pair = __builtin_shufflevector(narrow, narrow, 0, 1) + __builtin_shufflevector(narrow, narrow, 2, 3);
#else
    vec_pair pair = narrow;
#endif
    return pair[0] + pair[1];
}

PLR_INLINE double vec_largest(vec_f64 v)
{
    double largest = v[0];
    for (int lane = 1; lane < PLR_LANES; lane++)
        largest = larger(v[lane], largest);
    return largest;
}

PLR_INLINE double vec_smallest(vec_f64 v)
{
    double smallest = v[0];
    for (int lane = 1; lane < PLR_LANES; lane++)
        smallest = smaller(v[lane], smallest);
    return smallest;
}

/* Return whether any lane has a bit set. (GCC compiles generic vectors to a chain of twenty instructions.) */
PLR_INLINE int vec_any(vec_i32 v)
{
#if defined(PLR_ISA_AVX512)
    return _mm512_test_epi32_mask((__m512i)v, (__m512i)v) != 0;
#elif defined(PLR_ISA_AVX2)
    return !_mm256_testz_si256((__m256i)v, (__m256i)v);
#else
    vec_u64 wide = (vec_u64)v;
    uint64_t all = 0;
    for (int lane = 0; lane < PLR_LANES; lane++)
        all |= wide[lane];
    return all != 0;
#endif
}

/* Return the sign bits of all lanes, with the first lane in the lowest bit. */
PLR_INLINE uint32_t vec_signs(vec_i32 v)
{
#if defined(PLR_ISA_AVX512)
    return _mm512_movepi32_mask((__m512i)v);
#elif defined(PLR_ISA_AVX2)
    return (uint32_t)_mm256_movemask_ps((__m256)v);
#else
    uint32_t signs = 0;
    for (int lane = 0; lane < PLR_LANES_32; lane++)
        signs |= ((uint32_t)v[lane] >> 31) << lane;
    return signs;
#endif
}

#endif
