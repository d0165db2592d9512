#include "runtime/magnitudes.h"

#include <math.h>

#include "simd/vectors.h"

#define LARGEST 0x1p200
#define SMALLEST 0x1p-200
#define BELOW_SMALLEST 0x1.fffffffffffffp-201
#define SIGN (UINT64_C(1) << 63)
#define ONE_EXPONENT (UINT64_C(1) << 52)

_Static_assert(PLR_LIMIT_EXPONENT == 200, "LARGEST and SMALLEST are 2 to that power");

/* Return the flags for n values, of which those of a magnitude from `infinite` on count as not finite, and copy them
 * unless `to` is NULL. Most flags follow from the extremes, which take one instruction each where a flag of every value
 * would take three. */
PLR_INLINE int found_below(const double *values, size_t n, double infinite, double *to)
{
    const vec_f64 infinity = vec_all(INFINITY);
    vec_f64 least = infinity, most = -infinity, below_smallest = infinity;
    vec_u64 too_high = {0}, fractions = {0};
    for (size_t i = 0; i < n; i += PLR_LANES) {
        const vec_f64 x = vec_load_some(values + i, n - i, values[0]);
        const vec_u64 size = (vec_u64)vec_abs(x);
        if (to)
            vec_store_some(to + i, x, n - i);
        least = vec_min_f64(x, least);
        most = vec_max_f64(x, most);
        below_smallest = vec_min_f64((vec_f64)(size - 1), below_smallest); /* NaN, not taken, for a size of 0 */
        too_high |= size + ONE_EXPONENT; /* has the sign bit for infinities and NaN */
        fractions |= (vec_u64)(x + 0x1.8p52 - 0x1.8p52) ^ (vec_u64)x;
    }
    const double low = vec_smallest(least), high = vec_largest(most), largest = larger(-low, high);
    int found = !vec_any((vec_i32)(too_high & SIGN)) && !(largest >= infinite) ? 0 : PLR_NOT_FINITE;
    const int no_grade = found || low < 0 || vec_any((vec_i32)(fractions & ~SIGN)); /* -0 is a grade */
    found |= largest > LARGEST ? PLR_TOO_LARGE : 0;
    found |= vec_smallest(below_smallest) < BELOW_SMALLEST ? PLR_TOO_SMALL : 0;
    found |= low < 0 ? PLR_NEGATIVE : 0;
    found |= high > 1 ? PLR_ABOVE_ONE : 0;
    found |= no_grade || high >= 7 ? PLR_NO_SMALL_GRADE : 0;
    found |= no_grade || high > PLR_LIMIT_EXPONENT ? PLR_NO_WHOLE_GRADE : 0;
    return found | (largest >= SMALLEST ? PLR_LARGE_ENOUGH : 0);
}

static int found_in(const double *values, size_t n)
{
    return found_below(values, n, INFINITY, NULL);
}

static int are_finite(const double *values, size_t n)
{
    vec_f64 not_finite = {0};
    for (size_t i = 0; i < n; i += PLR_LANES) {
        const vec_f64 x = vec_load_some(values + i, n - i, 0.0);
        not_finite += x - x;
    }
    return vec_sum(not_finite) == 0;
}

static int copy_doubles(double *restrict to, const void *restrict values, size_t n)
{
    return found_below(values, n, INFINITY, to);
}

#define BLOCK 1024 /* values that stay in the cache between the conversion and the check of it */

#define COPY_FROM(type, name, infinite)                                          \
    static int name(double *restrict to, const void *restrict values_, size_t n) \
    {                                                                            \
        const type *restrict values = values_;                                   \
        int found = 0;                                                           \
        for (size_t begin = 0; begin < n; begin += BLOCK) {                      \
            const size_t end = n - begin < BLOCK ? n : begin + BLOCK;            \
            for (size_t i = begin; i < end; i++)                                 \
                to[i] = (double)values[i];                                       \
            found |= found_below(to + begin, end - begin, infinite, NULL);       \
        }                                                                        \
        return found;                                                            \
    }

COPY_FROM(float, copy_floats, INFINITY)
COPY_FROM(int32_t, copy_ints, INFINITY)
COPY_FROM(int64_t, copy_longs, 0x1p53)

const magnitudes_kernels ISA(magnitudes_kernels) = {found_in, are_finite,
                                                  {copy_doubles, copy_floats, copy_ints, copy_longs}};
