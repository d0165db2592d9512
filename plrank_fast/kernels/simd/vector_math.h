/* Elementary functions of vectors: exponentials, logarithms, normal distribution, sine and cosine.
 * tests/references/test_vector_math.py checks the error bounds stated here at every SIMD level.
 *
 * These functions replace a library: inlined into the loops that use them, they keep their constants in registers,
 * overlap with the surrounding work and are compiled for one level like everything else, and wheels need not bundle a
 * library. The functions of SLEEF 3.5.1, which err by 1 ulp (1.4e-16) where ours err by up to 3.7e-16 (exp), 1.0e-15
 * (expm1) and 2.8e-16 (log), take one and a half to five times as long. For 8 doubles in the first-level cache, in ns
 * (GCC 12, Xeon at 2.5 GHz, best of 300; ours first, then SLEEF's as calls):
 *
 *                 exp              expm1            log
 *     SSE2        33.7   52.1      34.0  141.1      31.4   93.6
 *     AVX2         9.7   22.5       9.9   54.4      10.9   43.1
 *     AVX-512      5.3   11.4       5.7   29.8       7.6   17.2
 *
 * The sums that follow would lose the digit by which SLEEF is more accurate. Highway (C++) and SLEEF's headers for
 * inlining have not been measured.
 */
#ifndef PLR_VECTOR_MATH_H
#define PLR_VECTOR_MATH_H

#include <float.h>

#include "simd/vectors.h"

/* ln 2 in two parts; the product of the first with any exponent is exact. */
#define LN2_HIGH 0x1.62e42fefa3800p-1
#define LN2_LOW 0x1.ef35793c76730p-45

/* ------------------------------------------------------------------------------------------------------------------
 * Exponentials
 * --------------------------------------------------------------------------------------------------------------- */

/* Reduce the argument of an exponential: x = n ln 2 + r with |r| <= ln(2) / 2, |x| <= 708. Returns e^r - 1, by the
 * Taylor polynomial of degree 12 of e^r (remainder 2e-16 of e^r) in pairs, so that its steps overlap, and 2^n in
 * *power. Keeping the 1 out of the polynomial costs nothing, as it enters with the factor 2^n, and keeps expm1 accurate
 * near 0. */
PLR_INLINE vec_f64 split_exp(vec_f64 x, vec_f64 *power)
{
    const double shift = 0x1.8p52; /* adding it rounds to an integer, which the low bits then hold */
    vec_f64 shifted = x * 0x1.71547652b82fep0 + shift;
    vec_f64 n = shifted - shift;
    vec_f64 r = (x - n * LN2_HIGH) - n * LN2_LOW;
    vec_f64 r2 = r * r, r4 = r2 * r2;
    vec_f64 low = (1.0 / 2 + r * (1.0 / 6)) + r2 * (1.0 / 24 + r * (1.0 / 120));
    vec_f64 mid = (1.0 / 720 + r * (1.0 / 5040)) + r2 * (1.0 / 40320 + r * (1.0 / 362880));
    vec_f64 high = (1.0 / 3628800 + r * (1.0 / 39916800)) + r2 * (1.0 / 479001600);
    *power = (vec_f64)(((vec_u64)shifted << 52) + ((uint64_t)1023 << 52));
    return r + r2 * (low + r4 * (mid + r4 * high));
}

/* exp(x) for |x| <= 708; relative error below 4e-16. */
PLR_INLINE vec_f64 vec_exp(vec_f64 x)
{
    vec_f64 power, tail = split_exp(x, &power);
    return power * tail + power;
}

/* exp(x) for x <= 708, 0 below -708. */
PLR_INLINE vec_f64 vec_exp_flush(vec_f64 x)
{
    return vec_select(x < -708.0, (vec_f64){0}, vec_exp(x));
}

/* exp(x) - 1 for |x| <= 708; relative error below 1.1e-15, also near 0. */
PLR_INLINE vec_f64 vec_expm1(vec_f64 x)
{
    vec_f64 power, tail = split_exp(x, &power);
    return power * tail + (power - 1.0);
}

/* exp(x) - 1, with exp(x) in *whole, for |x| <= 708: both with the relative errors above. */
PLR_INLINE vec_f64 vec_expm1_and_exp(vec_f64 x, vec_f64 *whole)
{
    vec_f64 power, tail = split_exp(x, &power);
    *whole = power * tail + power;
    return power * tail + (power - 1.0);
}

/* 2^y for y <= 0, 0 where it underflows; relative error below 7.5e-8 (the minimax polynomial of degree 5). It costs
 * less than half of vec_exp_flush. */
PLR_INLINE vec_f64 vec_rough_exp2(vec_f64 y)
{
    const double shift = 0x1.8p52;
    vec_f64 shifted = y + shift, n = shifted - shift, r = y - n;
    vec_f64 p = vec_all(0.00132764718741439);
    p = p * r + 0.00967554133351439;
    p = p * r + 0.055507132738645125;
    p = p * r + 0.240221197238634;
    p = p * r + 0.6931469670645358;
    p = p * r + 1.000000071654678;
#if defined(PLR_ISA_AVX512)
    return (vec_f64)_mm512_scalef_pd((__m512d)p, (__m512d)n); /* one instruction for the four below */
#else
    p = (vec_f64)((vec_u64)p + ((vec_u64)shifted << 52));
    return vec_keep(n > -1000.0, p);
#endif
}

/* ------------------------------------------------------------------------------------------------------------------
 * Logarithms
 * --------------------------------------------------------------------------------------------------------------- */

/* Natural logarithm of a positive, finite, normal number; relative error below 4.5e-16.
 *
 * x = 2^e m with m in [sqrt(1/2), sqrt(2)), log x = e ln 2 + 2 artanh(s), s = (m - 1) / (m + 1), and
 * artanh(s) / s = 1 + z Q(z), z = s^2, with Q the degree-6 Chebyshev interpolant (error 5e-18).
 */
PLR_INLINE vec_f64 vec_log(vec_f64 x)
{
    const uint64_t sqrt_half = UINT64_C(0x3fe6a09e667f3bcd), one = UINT64_C(0x3ff0000000000000);
    vec_u64 shifted = (vec_u64)x + (one - sqrt_half);
    vec_f64 m = (vec_f64)((shifted & UINT64_C(0x000fffffffffffff)) + sqrt_half);
    /* the biased exponent as a double: its bits enter the mantissa of 2^52 */
    vec_f64 e = (vec_f64)((shifted >> 52) | UINT64_C(0x4330000000000000)) - (0x1p52 + 1023.0);
    vec_f64 s = (m - 1.0) / (m + 1.0);
    vec_f64 z = s * s;
    vec_f64 q = vec_all(0.1461658542488862199);
    q = q * z + 0.1533171061821077157;
    q = q * z + 0.1818288945567494604;
    q = q * z + 0.2222221113025987703;
    q = q * z + 0.2857142862600326874;
    q = q * z + 0.3999999999989944323;
    q = q * z + 0.6666666666666669688;
    return e * LN2_HIGH + (2.0 * s + (s * z * q + e * LN2_LOW));
}

/* log(1 + e) for 0 <= e <= 1; relative error below 4.5e-16, also near 0: the logarithm of the rounded sum, with a
 * first-order correction for the rounding. */
PLR_INLINE vec_f64 vec_log1p_unit(vec_f64 e)
{
    vec_f64 u = 1.0 + e;
    return vec_log(u) + (e - (u - 1.0)) / u;
}

/* ln x for positive normal x, for bounds; relative error below 2e-6: x = 2^e m with 3/4 <= m < 3/2, and ln m over m - 1
 * is the minimax polynomial of degree 6. */
PLR_INLINE vec_f64 vec_rough_log(vec_f64 x)
{
    const double magic = 0x1.8p52;
    vec_i64 bits = (vec_i64)x - (int64_t)0x3fe8000000000000;
    vec_i64 exponent = bits >> 52;
    vec_f64 mantissa = (vec_f64)((vec_i64)x - (exponent << 52));
    vec_f64 e = (vec_f64)(exponent + (int64_t)0x4338000000000000) - magic;
    vec_f64 r = mantissa - 1.0, r2 = r * r;
    vec_f64 low = (1.0000008841625603 - 0.49998630750298309 * r) + r2 * (0.33314464015068534 - 0.25062305416241572 * r);
    vec_f64 high = (0.20675209884394931 - 0.16807142594736961 * r) + r2 * 0.082902640449218885;
    return e * 0x1.62e42fefa39efp-1 + r * (low + r2 * r2 * high);
}

/* 1 / sqrt(x) for positive normal x, for bounds; relative error below 5e-6: steps of Newton's method from an
 * approximation that AVX-512 has, or from half of the exponent. */
PLR_INLINE vec_f64 vec_rough_inverse_sqrt(vec_f64 x)
{
#if defined(PLR_ISA_AVX512)
    vec_f64 y = (vec_f64)_mm512_rsqrt14_pd((__m512d)x);
#else
    vec_f64 y = (vec_f64)(UINT64_C(0x5fe6eb50c7b537a9) - ((vec_u64)x >> 1));
    y *= 1.5 - 0.5 * x * y * y;
#endif
    return y * (1.5 - 0.5 * x * y * y);
}

/* The square root of x >= 0 likewise. */
PLR_INLINE vec_f64 vec_rough_sqrt(vec_f64 x)
{
    return x * vec_rough_inverse_sqrt(vec_max_f64(x, vec_all(DBL_MIN)));
}

/* 1 / x likewise. */
PLR_INLINE vec_f64 vec_rough_inverse(vec_f64 x)
{
#if defined(PLR_ISA_AVX512)
    vec_f64 y = (vec_f64)_mm512_rcp14_pd((__m512d)x);
    return y * (2.0 - x * y);
#else
    return 1.0 / x;
#endif
}

/* ------------------------------------------------------------------------------------------------------------------
 * Normal distribution, sine and cosine
 * --------------------------------------------------------------------------------------------------------------- */

/* Return a number uniform on the odd multiples of 2^-53 in (0, 1), from the upper 52 bits of a random word. */
PLR_INLINE vec_f64 vec_uniform(vec_u64 random)
{
    vec_f64 in_1_2 = (vec_f64)((random >> 12) | UINT64_C(0x3ff0000000000000));
    return in_1_2 - (1.0 - 0x1p-53);
}

PLR_INLINE vec_f64 vec_sqrt(vec_f64 x)
{
    for (int lane = 0; lane < PLR_LANES; lane++)
        x[lane] = __builtin_sqrt(x[lane]);
    return x;
}

/* Phi(-size), size >= 0, and the density there; relative error of both below 1.3e-15 max(1, size^2).
 *
 * Phi(-x) = exp(-x^2 / 2) P(t) / (x + 5), t = (x - 5) / (x + 5) in [-1, 1), P the degree-20 Chebyshev interpolant
 * (error 1e-15).
 */
PLR_INLINE vec_f64 vec_normal_tail(vec_f64 size, vec_f64 *density)
{
    vec_f64 decay = vec_exp_flush(-0.5 * size * size);
    vec_f64 inverse = 1.0 / (size + 5.0);
    vec_f64 t = vec_select(size < 1e100, (size - 5.0) * inverse, vec_all(1.0));
    vec_f64 p = vec_all(5.151491485332322e-9);
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

/* Density and distribution function of the standard normal distribution, with the errors of vec_normal_tail. */
PLR_INLINE vec_f64 vec_normal(vec_f64 x, vec_f64 *density)
{
    vec_f64 tail = vec_normal_tail(vec_abs(x), density);
    return vec_select(x < 0.0, tail, 1.0 - tail);
}

/* Sine and cosine of 2 pi u, 0 <= u < 1: reduced to an eighth of a turn, then Taylor polynomials; relative error below
 * 4.5e-16. */
PLR_INLINE vec_f64 vec_sin_cos(vec_f64 u, vec_f64 *cosine)
{
    const double shift = 0x1.8p52;
    vec_f64 shifted = 4.0 * u + shift;
    vec_f64 r = 4.0 * u - (shifted - shift);
    vec_u64 quarter = (vec_u64)shifted;
    vec_f64 z = r * r;
    vec_f64 s = vec_all(6.0669357311061955e-12);
    s = s * z - 6.6880351098114684e-10;
    s = s * z + 5.6921729219679268e-08;
    s = s * z - 3.5988432352120853e-06;
    s = s * z + 1.6044118478735982e-04;
    s = s * z - 4.6817541353186881e-03;
    s = s * z + 7.9692626246167046e-02;
    s = s * z - 6.4596409750624625e-01;
    s = r * (s * z + 1.5707963267948966);
    vec_f64 c = vec_all(6.5659631149794737e-11);
    c = c * z - 6.3866030837918522e-09;
    c = c * z + 4.7108747788181715e-07;
    c = c * z - 2.5202042373060605e-05;
    c = c * z + 9.1926027483942659e-04;
    c = c * z - 2.0863480763352961e-02;
    c = c * z + 2.5366950790104802e-01;
    c = c * z - 1.2337005501361698;
    c = c * z + 1.0;
    vec_i64 odd = -(vec_i64)(quarter & 1);
    /* quarters 2 and 3 change the sign of the sine, 1 and 2 of the cosine */
    vec_u64 sine_sign = (quarter & 2) << 62, cosine_sign = ((quarter + 1) & 2) << 62;
    *cosine = (vec_f64)((vec_u64)vec_select(odd, s, c) ^ cosine_sign);
    return (vec_f64)((vec_u64)vec_select(odd, c, s) ^ sine_sign);
}

#endif
