/* Exponential arrival times of rate w, the noise of Plackett-Luce. x = w t. */
#ifndef PLR_EXPONENTIAL_LAW_H
#define PLR_EXPONENTIAL_LAW_H

#include "gradients/exact/law_terms.h"

#define TURNED 0.9 /* t - t0 turns by this part of a right angle on the largest ellipse */

/* Return the odds at time t of an item of weight w <= 1. Where e^(w t) would overflow, it has arrived with
 * certainty. */
PLR_INLINE odds_and_hazard exponential_odds(double w, lanes t)
{
    return (odds_and_hazard){vec_expm1(vec_min_f64(w * t, vec_all(LARGEST_EXPONENT))), vec_all(w)};
}

PLR_INLINE item_slopes exponential_slopes(double w, lanes t)
{
    const lanes rest = 1.0 - w * t;
    return (item_slopes){rest, rest * rest - w * t, t};
}

/* No items are left out of the bound at complex times. */
PLR_INLINE int exponential_certain(double f, complex_lanes t)
{
    (void)f, (void)t;
    return 0;
}

/* Return sin(b / 2)^2 to 1e-5, by the Taylor polynomial of sin(pi r), |r| <= 1/2. */
PLR_INLINE lanes rough_squared_sine(lanes b)
{
    const double shift = 0x1.8p52;
    const lanes turns = b * (0.5 / M_PI), r = turns - ((turns + shift) - shift), r2 = r * r;
    const lanes sine = M_PI + r2 * (-5.16771278 + r2 * (2.55016404 + r2 * (-0.59926453 + r2 * 0.08214589)));
    return r2 * sine * sine;
}

PLR_INLINE item_magnitudes exponential_magnitudes(double w, double f, complex_lanes t)
{
    const lanes a = limited(w * t.real), b = limited(w * t.imaginary);
    const lanes q = vec_rough_exp2(-M_LOG2E * a);
    const lanes p = vec_rough_sqrt((1.0 - q) * (1.0 - q) + 4.0 * q * rough_squared_sine(b));
    const complex_lanes second = {1.0 - 3.0 * a + a * a - b * b, b * (2.0 * a - 3.0)};
    (void)f;
    return (item_magnitudes){p, p + q, w * q, (1.0 - a) * (1.0 - a) + b * b, square_of(second)};
}

static arrival exponential_at(double y)
{
    const double x = exp(smaller(7, larger(-LARGEST_EXPONENT, y)));
    return (arrival){-expm1(-x), exp(-x), x, x};
}

static double exponential_before(double nats)
{
    return nats;
}

static double exponential_after(double nats)
{
    return log(nats);
}

/* Where t - t0 turns by more than a right angle, the magnitudes of heavy items grow like e^(w |t|) within so small an
 * angle that the points of the bound may miss it. */
static double exponential_largest_eta(const time_map *map)
{
    return asinh(TURNED * M_PI_4 / (SPREAD_1 * 0.5 * map->v_length));
}

static const arrival_law exponential_law = {.noise = "gumbel", .gap = 7.0, .certain = 5, .later_than_bins = 0,
                                            .least_eta = 0.2, .at = exponential_at, .before = exponential_before,
                                            .after = exponential_after, .largest_eta = exponential_largest_eta};

#endif
