/* Vectors of one register's width and the functions on them that no header of C offers.
 *
 * Written with the vector extensions of GCC and Clang: one text for SSE2, AVX2, AVX-512 and NEON.
 */
#ifndef PLR_VECTOR_MATH_H
#define PLR_VECTOR_MATH_H

#include "isa.h"
#include <string.h>

typedef double vec_f64 __attribute__((vector_size(8 * PLR_LANES)));
typedef uint64_t vec_u64 __attribute__((vector_size(8 * PLR_LANES)));
typedef float vec_f32 __attribute__((vector_size(8 * PLR_LANES)));
typedef int32_t vec_i32 __attribute__((vector_size(8 * PLR_LANES)));
typedef uint32_t vec_u32 __attribute__((vector_size(8 * PLR_LANES)));
typedef uint16_t vec_u16 __attribute__((vector_size(8 * PLR_LANES)));
#define PLR_LANES_32 (2 * PLR_LANES)

typedef int64_t vec_i64 __attribute__((vector_size(8 * PLR_LANES))); /* also the result of a comparison */

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

/* Lane by lane: a where the comparison held, else b. */
PLR_INLINE vec_f64 vec_select(vec_i64 held, vec_f64 a, vec_f64 b)
{
    return (vec_f64)(((vec_i64)a & held) | ((vec_i64)b & ~held));
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

/* Lane by lane minimum and maximum of two that are neither NaN nor zero, and of signed integers: the operations here
 * that GCC does not find by itself in generic vectors (it takes three instructions instead of one), and all that a
 * sorting network consists of. */
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#if defined(PLR_ISA_AVX512)
PLR_INLINE vec_f32 vec_smaller(vec_f32 a, vec_f32 b) { return (vec_f32)_mm512_min_ps((__m512)a, (__m512)b); }
PLR_INLINE vec_f32 vec_larger(vec_f32 a, vec_f32 b) { return (vec_f32)_mm512_max_ps((__m512)a, (__m512)b); }
PLR_INLINE vec_i32 vec_min(vec_i32 a, vec_i32 b) { return (vec_i32)_mm512_min_epi32((__m512i)a, (__m512i)b); }
PLR_INLINE vec_u32 vec_min_u32(vec_u32 a, vec_u32 b) { return (vec_u32)_mm512_min_epu32((__m512i)a, (__m512i)b); }
#elif defined(PLR_ISA_AVX2)
PLR_INLINE vec_f32 vec_smaller(vec_f32 a, vec_f32 b) { return (vec_f32)_mm256_min_ps((__m256)a, (__m256)b); }
PLR_INLINE vec_f32 vec_larger(vec_f32 a, vec_f32 b) { return (vec_f32)_mm256_max_ps((__m256)a, (__m256)b); }
PLR_INLINE vec_i32 vec_min(vec_i32 a, vec_i32 b) { return (vec_i32)_mm256_min_epi32((__m256i)a, (__m256i)b); }
PLR_INLINE vec_u32 vec_min_u32(vec_u32 a, vec_u32 b) { return (vec_u32)_mm256_min_epu32((__m256i)a, (__m256i)b); }
#else
#if defined(__x86_64__)
PLR_INLINE vec_f32 vec_smaller(vec_f32 a, vec_f32 b) { return (vec_f32)_mm_min_ps((__m128)a, (__m128)b); }
PLR_INLINE vec_f32 vec_larger(vec_f32 a, vec_f32 b) { return (vec_f32)_mm_max_ps((__m128)a, (__m128)b); }
#else
PLR_INLINE vec_f32 vec_smaller(vec_f32 a, vec_f32 b)
{
    vec_i32 less = a < b;
    return (vec_f32)(((vec_i32)a & less) | ((vec_i32)b & ~less));
}
PLR_INLINE vec_f32 vec_larger(vec_f32 a, vec_f32 b)
{
    vec_i32 less = a < b;
    return (vec_f32)(((vec_i32)b & less) | ((vec_i32)a & ~less));
}
#endif
PLR_INLINE vec_i32 vec_min(vec_i32 a, vec_i32 b)
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

/* Whether any lane has a bit set. (From generic vectors GCC makes a chain of twenty instructions.) */
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

/* The sign bits of all lanes, the first one lowest. */
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

/* Lane by lane the 32 bits at table[at]: one instruction where there is one, which takes 16 cycles for sixteen entries
 * in the nearest cache. */
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

/* Lanes of two registers in an order known to the compiler: lane i of the result is lane order(i, x) of those of a
 * followed by those of b, where `order` is a macro. (__builtin_shuffle is GCC's alone.) */
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

PLR_INLINE vec_f64 vec_clamp(vec_f64 v, double lowest)
{
    for (int lane = 0; lane < PLR_LANES; lane++)
        v[lane] = v[lane] > lowest ? v[lane] : lowest;
    return v;
}

/* Uniform on the odd multiples of 2^-53 in (0, 1), from the upper 52 bits of a random word: neither 0 nor 1. */
PLR_INLINE vec_f64 vec_uniform(vec_u64 random)
{
    vec_f64 in_1_2 = (vec_f64)((random >> 12) | UINT64_C(0x3ff0000000000000));
    return in_1_2 - (1.0 - 0x1p-53);
}

/* Natural logarithm of a positive, finite, normal number; relative error below 4.5e-16 (tests/test_vector_math.py).
 *
 * x = 2^e m with m in [sqrt(1/2), sqrt(2)), log x = e ln 2 + 2 artanh(s), s = (m - 1) / (m + 1), and
 * artanh(s) / s = 1 + z Q(z), z = s^2, with Q the degree-6 Chebyshev interpolant (error 5e-18).
 */
PLR_INLINE vec_f64 vec_log(vec_f64 x)
{
    const uint64_t sqrt_half = UINT64_C(0x3fe6a09e667f3bcd), one = UINT64_C(0x3ff0000000000000);
    vec_u64 shifted = (vec_u64)x + (one - sqrt_half);
    vec_f64 m = (vec_f64)((shifted & UINT64_C(0x000fffffffffffff)) + sqrt_half);
    /* the biased exponent as a double: its bits below the mantissa of 2^52 */
    vec_f64 e = (vec_f64)((shifted >> 52) | UINT64_C(0x4330000000000000)) - (0x1p52 + 1023.0);
    vec_f64 s = (m - 1.0) / (m + 1.0);
    vec_f64 z = s * s;
    vec_f64 q = 0.1461658542488862199 + (vec_f64){0};
    q = q * z + 0.1533171061821077157;
    q = q * z + 0.1818288945567494604;
    q = q * z + 0.2222221113025987703;
    q = q * z + 0.2857142862600326874;
    q = q * z + 0.3999999999989944323;
    q = q * z + 0.6666666666666669688;
    const double ln2_high = 0x1.62e42fefa3800p-1, ln2_low = 0x1.ef35793c76730p-45;
    return e * ln2_high + (2.0 * s + (s * z * q + e * ln2_low));
}

/* exp(x) for |x| <= 708; relative error below 4e-16 (tests/test_vector_math.py).
 *
 * x = n ln 2 + r with |r| <= ln(2) / 2; exp r by its Taylor polynomial of degree 12 (remainder 2e-16), in pairs, so
 * that its steps overlap.
 */
PLR_INLINE vec_f64 vec_exp(vec_f64 x)
{
    const double shift = 0x1.8p52; /* adding it rounds to an integer, which then stands in the low bits */
    const double ln2_high = 0x1.62e42fefa3800p-1, ln2_low = 0x1.ef35793c76730p-45;
    vec_f64 shifted = x * 0x1.71547652b82fep0 + shift;
    vec_f64 n = shifted - shift;
    vec_f64 r = (x - n * ln2_high) - n * ln2_low;
    vec_f64 r2 = r * r, r4 = r2 * r2;
    vec_f64 low = (1.0 + r) + r2 * (0.5 + r * (1.0 / 6));
    vec_f64 mid = (1.0 / 24 + r * (1.0 / 120)) + r2 * (1.0 / 720 + r * (1.0 / 5040));
    vec_f64 high = (1.0 / 40320 + r * (1.0 / 362880)) + r2 * (1.0 / 3628800 + r * (1.0 / 39916800));
    vec_f64 p = low + r4 * (mid + r4 * (high + r4 * (1.0 / 479001600)));
    return p * (vec_f64)(((vec_u64)shifted + 1023) << 52);
}

#endif
