/* Exponential arrival times of rate w, on the axis of time: the noise of Plackett-Luce. x = w t. */
#ifndef PLR_EXPONENTIAL_LAW_H
#define PLR_EXPONENTIAL_LAW_H

#include "gradients/exact/law_terms.h"

/* Return the odds at time t of an item of weight w <= 1. Where e^(w t) would overflow, it has arrived with
 * certainty. */
PLR_INLINE lanes exponential_odds(double w, lanes t)
{
    const lanes x = w * t;
    return vec_expm1(vec_select(x < LARGEST_EXPONENT, x, vec_all(LARGEST_EXPONENT)));
}

PLR_INLINE item_slopes exponential_slopes(double w, lanes t)
{
    const lanes rest = 1.0 - w * t;
    return (item_slopes){rest, rest * rest - w * t, t};
}

/* Return sin(b / 2)^2 to 1e-5, by the Taylor polynomial of sin(pi r), |r| <= 1/2. */
PLR_INLINE lanes rough_squared_sine(lanes b)
{
    const double shift = 0x1.8p52;
    const lanes turns = b * (0.5 / M_PI), r = turns - ((turns + shift) - shift), r2 = r * r;
    const lanes sine = M_PI + r2 * (-5.16771278 + r2 * (2.55016404 + r2 * (-0.59926453 + r2 * 0.08214589)));
    return r2 * sine * sine;
}

PLR_INLINE item_magnitudes exponential_item(double w, complex_lanes t)
{
    const lanes a = limited(w * t.real), b = limited(w * t.imaginary);
    const lanes q = vec_rough_exp2(-M_LOG2E * a);
    const lanes p = vec_rough_sqrt((1.0 - q) * (1.0 - q) + 4.0 * q * rough_squared_sine(b));
    const complex_lanes second = {1.0 - 3.0 * a + a * a - b * b, b * (2.0 * a - 3.0)};
    return (item_magnitudes){p, p + q, w * q, (1.0 - a) * (1.0 - a) + b * b, square_of(second)};
}

#endif
