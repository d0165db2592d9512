/* Functions on vectors beyond the logarithm: exponential, logistic, normal distribution, sine and cosine; loads and
 * stores of less than a whole vector. Errors as tests/test_vector_math.py finds them. */
#ifndef PLR_VECTOR_FUNCTIONS_H
#define PLR_VECTOR_FUNCTIONS_H

#include "vector_math.h"

/* The first count lanes (at most all) from memory, the others filled. */
PLR_INLINE vec_f64 vec_load_some(const double *from, size_t count, double fill)
{
    vec_f64 v = fill + (vec_f64){0};
    if (count >= PLR_LANES)
        return vec_load(from);
    memcpy(&v, from, count * sizeof(double));
    return v;
}

PLR_INLINE void vec_store_some(double *to, vec_f64 v, size_t count)
{
    if (count >= PLR_LANES)
        vec_store(to, v);
    else
        memcpy(to, &v, count * sizeof(double));
}

PLR_INLINE double vec_sum(vec_f64 v)
{
    double sum = 0.0;
    for (int lane = 0; lane < PLR_LANES; lane++)
        sum += v[lane];
    return sum;
}

PLR_INLINE vec_f64 vec_abs(vec_f64 x)
{
    return (vec_f64)((vec_u64)x & UINT64_C(0x7fffffffffffffff));
}

/* exp(x) for x <= 708, 0 below -708. */
PLR_INLINE vec_f64 vec_exp_flush(vec_f64 x)
{
    return vec_select(x < -708.0, (vec_f64){0}, vec_exp(x));
}

/* log(1 + e) for 0 <= e <= 1, with full relative accuracy: the logarithm of the rounded sum, corrected to first order
 * for what the rounding left out. */
PLR_INLINE vec_f64 vec_log1p_unit(vec_f64 e)
{
    vec_f64 u = 1.0 + e;
    return vec_log(u) + (e - (u - 1.0)) / u;
}

/* Phi(-size), size >= 0, and the density there; relative error of both below 1e-15 max(1, size^2).
 *
 * Phi(-x) = exp(-x^2 / 2) P(t) / (x + 5), t = (x - 5) / (x + 5) in [-1, 1), P the degree-20 Chebyshev interpolant
 * (error 1e-15).
 */
PLR_INLINE vec_f64 vec_normal_tail(vec_f64 size, vec_f64 *density)
{
    vec_f64 decay = vec_exp_flush(-0.5 * size * size);
    vec_f64 inverse = 1.0 / (size + 5.0);
    vec_f64 t = vec_select(size < 1e100, (size - 5.0) * inverse, 1.0 + (vec_f64){0});
    vec_f64 p = 5.151491485332322e-9 + (vec_f64){0};
    p = p * t - 2.3627806826406505e-9;
    p = p * t - 5.8140759654532122e-8;
    p = p * t + 2.9828593613267891e-8;
    p = p * t + 4.2180192145092113e-7;
    p = p * t - 3.2349752237852996e-7;
    p = p * t - 2.7598749410219641e-6;
    p = p * t + 3.972040494146394e-6;
    p = p * t + 1.6676472037663174e-5;
    p = p * t - 4.9758894070727902e-5;
    p = p * t - 5.9374254572626343e-5;
    p = p * t + 0.00054489794667893012;
    p = p * t - 0.00079786967110366957;
    p = p * t - 0.0029933765747193971;
    p = p * t + 0.020795066827479358;
    p = p * t - 0.069118638725453031;
    p = p * t + 0.16502036616910736;
    p = p * t - 0.31353315667043614;
    p = p * t + 0.49530561596999375;
    p = p * t - 0.66538250289006841;
    p = p * t + 0.76919304975006296;
    *density = 0.3989422804014326779 * decay;
    return decay * p * inverse;
}

/* Density and distribution function of the standard normal distribution, as exact. */
PLR_INLINE vec_f64 vec_normal(vec_f64 x, vec_f64 *density)
{
    vec_f64 tail = vec_normal_tail(vec_abs(x), density);
    return vec_select(x < 0.0, tail, 1.0 - tail);
}

/* Sine and cosine of 2 pi u, 0 <= u < 1: in quarters of a turn, by Taylor polynomials of up to an eighth. */
PLR_INLINE vec_f64 vec_sin_cos(vec_f64 u, vec_f64 *cosine)
{
    const double shift = 0x1.8p52;
    vec_f64 shifted = 4.0 * u + shift;
    vec_f64 r = 4.0 * u - (shifted - shift);
    vec_u64 quarter = (vec_u64)shifted;
    vec_f64 z = r * r;
    vec_f64 s = 6.0669357311061955e-12 + (vec_f64){0};
    s = s * z - 6.6880351098114684e-10;
    s = s * z + 5.6921729219679268e-08;
    s = s * z - 3.5988432352120853e-06;
    s = s * z + 1.6044118478735982e-04;
    s = s * z - 4.6817541353186881e-03;
    s = s * z + 7.9692626246167046e-02;
    s = s * z - 6.4596409750624625e-01;
    s = r * (s * z + 1.5707963267948966);
    vec_f64 c = 6.5659631149794737e-11 + (vec_f64){0};
    c = c * z - 6.3866030837918522e-09;
    c = c * z + 4.7108747788181715e-07;
    c = c * z - 2.5202042373060605e-05;
    c = c * z + 9.1926027483942659e-04;
    c = c * z - 2.0863480763352961e-02;
    c = c * z + 2.5366950790104802e-01;
    c = c * z - 1.2337005501361698;
    c = c * z + 1.0;
    vec_i64 odd = -(vec_i64)(quarter & 1);
    /* quarters 2 and 3 turn the sign of the sine, 1 and 2 that of the cosine */
    vec_u64 sine_sign = (quarter & 2) << 62, cosine_sign = ((quarter + 1) & 2) << 62;
    *cosine = (vec_f64)((vec_u64)vec_select(odd, s, c) ^ cosine_sign);
    return (vec_f64)((vec_u64)vec_select(odd, c, s) ^ sine_sign);
}

#endif
