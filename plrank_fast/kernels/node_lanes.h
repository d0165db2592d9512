/* Vectors whose lanes are quadrature nodes: one register holds the same quantity at PLR_LANES times.
 *
 * Written with the vector extensions of GCC and Clang, so that one source serves every SIMD level.
 */
#ifndef PLR_NODE_LANES_H
#define PLR_NODE_LANES_H

#include <string.h>

#include "isa.h"

typedef double lanes __attribute__((vector_size(8 * PLR_LANES)));
typedef int64_t int_lanes __attribute__((vector_size(8 * PLR_LANES)));

PLR_INLINE lanes all_lanes(double x)
{
    return x - (lanes){0};
}

PLR_INLINE lanes load_lanes(const double *from)
{
    lanes x;
    memcpy(&x, from, sizeof x);
    return x;
}

PLR_INLINE double larger(double a, double b) /* fmax is a call: it has to look for NaN */
{
    return a > b ? a : b;
}

PLR_INLINE double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* mask ? yes : no, lane by lane; the mask is the result of a comparison. */
PLR_INLINE lanes blend(int_lanes mask, lanes yes, lanes no)
{
    return (lanes)((mask & (int_lanes)yes) | (~mask & (int_lanes)no));
}

PLR_INLINE lanes keep(int_lanes mask, lanes yes)
{
    return (lanes)(mask & (int_lanes)yes);
}

PLR_INLINE double sum_lanes(lanes x)
{
#if PLR_LANES == 8
    typedef double half __attribute__((vector_size(32)));
    typedef double quarter __attribute__((vector_size(16)));
    half h[2];
    memcpy(h, &x, sizeof x);
    h[0] += h[1];
    quarter q[2];
    memcpy(q, h, sizeof q);
    q[0] += q[1];
    return q[0][0] + q[0][1];
#elif PLR_LANES == 4
    typedef double half __attribute__((vector_size(16)));
    half h[2];
    memcpy(h, &x, sizeof x);
    h[0] += h[1];
    return h[0][0] + h[0][1];
#else
    return x[0] + x[1];
#endif
}

PLR_INLINE double max_lanes(lanes x)
{
    double most = x[0];
    for (int i = 1; i < PLR_LANES; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

/* x = n ln 2 + r with |r| <= ln(2) / 2: returns 2^n in *power and e^r - 1 by its Taylor polynomial of degree 12 (remainder
 * 2e-16 of e^r). Adding 1.5 * 2^52 rounds to an integer and leaves n in the low bits. |x| <= 708. */
PLR_INLINE lanes split_exp(lanes x, lanes *power)
{
    const double magic = 0x1.8p52;
    lanes shifted = x * 0x1.71547652b82fep0 + magic;
    lanes n = shifted - magic;
    lanes r = x - n * 0x1.62e42fefa3800p-1;
    r = r - n * 0x1.ef35793c76730p-45;
    lanes r2 = r * r, r4 = r2 * r2;
    lanes low = (1.0 / 2 + r * (1.0 / 6)) + r2 * (1.0 / 24 + r * (1.0 / 120));
    lanes mid = (1.0 / 720 + r * (1.0 / 5040)) + r2 * (1.0 / 40320 + r * (1.0 / 362880));
    lanes high = (1.0 / 3628800 + r * (1.0 / 39916800)) + r2 * (1.0 / 479001600);
    *power = (lanes)((((int_lanes)shifted) << 52) + ((int64_t)1023 << 52));
    return r + r2 * (low + r4 * (mid + r4 * high));
}

/* exp(x) for x <= 708; below -708 it stays at exp(-708). */
PLR_INLINE lanes exp_lanes(lanes x)
{
    x = blend(x > -708.0, x, all_lanes(-708.0));
    lanes power, tail = split_exp(x, &power);
    return power * tail + power;
}

/* exp(x) - 1 with full relative accuracy, |x| <= 708. */
PLR_INLINE lanes expm1_lanes(lanes x)
{
    lanes power, tail = split_exp(x, &power);
    return power * tail + (power - 1.0);
}

/* ln x for positive normal x to 3e-7 of ln x (for bounds): x = 2^e m with 3/4 <= m < 3/2, ln m = 2 atanh((m - 1) / (m + 1)). */
PLR_INLINE lanes rough_log_lanes(lanes x)
{
    const double magic = 0x1.8p52;
    int_lanes bits = (int_lanes)x - (int64_t)0x3fe8000000000000;
    int_lanes exponent = bits >> 52;
    lanes mantissa = (lanes)((int_lanes)x - (exponent << 52));
    lanes e = (lanes)(exponent + (int64_t)0x4338000000000000) - magic;
    lanes s = (mantissa - 1.0) / (mantissa + 1.0), s2 = s * s;
    return e * 0x1.62e42fefa39efp-1 + 2.0 * s * (1.0 + s2 * (1.0 / 3 + s2 * (1.0 / 5 + s2 * (1.0 / 7))));
}

#endif
