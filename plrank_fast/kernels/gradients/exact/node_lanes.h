/* What the evaluators of the exact gradient compute with: vectors whose lanes are quadrature nodes.
 *
 * The lanes are doubles, or, in a source that defines PLR_SINGLE before it includes anything, floats: twice as many
 * nodes in a register, for tolerances that leave room for their rounding (error_check.c). Every evaluator is written
 * once and compiled for both; only what is defined here tells them apart.
 */
#ifndef PLR_NODE_LANES_H
#define PLR_NODE_LANES_H

#include "simd/vector_math.h"

/* Lane i of the result is the sum over the lanes of v[i], for as many vectors as they have lanes. In a step of stride s
 * two vectors become one whose lane i is the sum of lanes i and i ^ s of the first of them or, where i has the bit s,
 * of the second: two shuffles and an addition for each pair, where vectors summed one by one take six for each. */
#define OWN_LANE(i, s) ((i) + ((i) & (s) ? NODE_LANES : 0))
#define OTHER_LANE(i, s) (((i) ^ (s)) + ((i) & (s) ? NODE_LANES : 0))
#define ADD_PAIRS(sum, s)                                                                          \
    for (int i = 0; i < NODE_LANES; i += 2 * (s))                                                  \
        sum[i] = __builtin_shufflevector(sum[i], sum[i + (s)], ALL_NODE_LANES(OWN_LANE, s)) +      \
                 __builtin_shufflevector(sum[i], sum[i + (s)], ALL_NODE_LANES(OTHER_LANE, s));

#ifdef PLR_SINGLE

typedef float real;
#define lanes vec_f32 /* in place of the vectors of doubles that vectors.h calls so */
#define int_lanes vec_i32
#define NODE_LANES PLR_LANES_32
#define ALL_NODE_LANES PLR_ALL_LANES_32
#define NODE_ISA(name) ISA(name##_single)
#define LARGEST_EXPONENT 80.0 /* e^80 is near the largest float */
/* Largest -ln of P's constant. P grows from there to order 1, and what is lost where smaller coefficients underflow
 * grows along with it, from 1e-38 to 1e-10. */
#define LARGEST_SILENCE 64.0

/* exp(x) - 1 for |x| <= 87; relative error below 3e-7, also near 0. As vec_expm1, with the Taylor polynomial of
 * degree 8. */
PLR_INLINE lanes lanes_expm1(lanes x)
{
    const float shift = 0x1.8p23f;
    lanes shifted = x * 0x1.715476p0f + shift, n = shifted - shift;
    lanes r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f, r2 = r * r;
    lanes low = (0.5f + r * (1.0f / 6)) + r2 * (1.0f / 24 + r * (1.0f / 120));
    lanes high = (1.0f / 720 + r * (1.0f / 5040)) + r2 * (1.0f / 40320);
    lanes tail = r + r2 * (low + (r2 * r2) * high);
    lanes power = (lanes)(((vec_u32)shifted << 23) + (UINT32_C(127) << 23));
    return power * tail + (power - 1.0f);
}

PLR_INLINE vec_f64 half_in_doubles(lanes v, const int half)
{
    vec_half_f32 halves[2];
    memcpy(halves, &v, sizeof v);
    return __builtin_convertvector(halves[half], vec_f64);
}

PLR_INLINE lanes from_doubles(vec_f64 first, vec_f64 second)
{
    const vec_half_f32 halves[2] = {__builtin_convertvector(first, vec_half_f32),
                                    __builtin_convertvector(second, vec_half_f32)};
    lanes v;
    memcpy(&v, halves, sizeof v);
    return v;
}

/* In doubles: all integrands have this factor, and a float is too coarse an exponent for it. */
PLR_INLINE lanes lanes_silence(double weight, lanes t)
{
    return from_doubles(vec_exp_flush(-weight * half_in_doubles(t, 0)), vec_exp_flush(-weight * half_in_doubles(t, 1)));
}

PLR_INLINE lanes lanes_load(const double *from)
{
    return from_doubles(vec_load(from), vec_load(from + PLR_LANES));
}

PLR_INLINE double lanes_sum(lanes v)
{
    return vec_sum(half_in_doubles(v, 0) + half_in_doubles(v, 1));
}

#else

typedef double real;
#define NODE_LANES PLR_LANES
#if PLR_LANES == 8
#define ALL_NODE_LANES(order, s) PLR_FOUR_LANES(order, s, 0), PLR_FOUR_LANES(order, s, 4)
#elif PLR_LANES == 4
#define ALL_NODE_LANES(order, s) PLR_FOUR_LANES(order, s, 0)
#else
#define ALL_NODE_LANES(order, s) order(0, s), order(1, s)
#endif
#define NODE_ISA(name) ISA(name)
#define LARGEST_EXPONENT 700.0 /* e^700 is near the largest double */
#define LARGEST_SILENCE 550.0  /* whose e^550 may be multiplied by relevance of up to 2^200 (runtime/magnitudes.h) */

#define lanes_expm1 vec_expm1
#define lanes_load vec_load
#define lanes_sum vec_sum

PLR_INLINE lanes lanes_silence(double weight, lanes t)
{
    return vec_exp_flush(-weight * t);
}

#endif

PLR_INLINE lanes lanes_all(real x)
{
    return x - (lanes){0};
}

/* a where the comparison held, else b (or 0). */
PLR_INLINE lanes lanes_select(int_lanes held, lanes a, lanes b)
{
    return (lanes)(((int_lanes)a & held) | ((int_lanes)b & ~held));
}

PLR_INLINE lanes lanes_keep(int_lanes held, lanes a)
{
    return (lanes)((int_lanes)a & held);
}

PLR_INLINE lanes lanes_sums(const lanes *v)
{
    lanes sum[NODE_LANES];
    memcpy(sum, v, sizeof sum);
    ADD_PAIRS(sum, 1)
#if NODE_LANES >= 4
    ADD_PAIRS(sum, 2)
#endif
#if NODE_LANES >= 8
    ADD_PAIRS(sum, 4)
#endif
#if NODE_LANES >= 16
    ADD_PAIRS(sum, 8)
#endif
    return sum[0];
}

#endif
