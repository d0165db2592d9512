/* Normal arrival times: an item is due at minus its score, in units of sigma. y = f + t. */
#ifndef PLR_NORMAL_LAW_H
#define PLR_NORMAL_LAW_H

#include "gradients/exact/law_terms.h"

#define DENSITY_AT_0 (0.5 * M_2_SQRTPI * M_SQRT1_2) /* of normal arrival times, 1 / sqrt(2 pi) */

PLR_INLINE odds_and_hazard normal_odds(double score, lanes t)
{
    const double certain = sqrt(2 * LARGEST_EXPONENT); /* sigmas at which q is about e^-700 */
    lanes y = score + t, density;
    y = vec_select(y < certain, y, vec_all(certain));
    const lanes tail = vec_normal_tail(vec_abs(y), &density);
    const int_lanes early = y < 0.0;
    const lanes inverse_q = 1.0 / vec_select(early, 1.0 - tail, tail);
    return (odds_and_hazard){vec_select(early, tail, 1.0 - tail) * inverse_q, density * inverse_q};
}

PLR_INLINE item_slopes normal_slopes(double score, lanes t)
{
    const lanes y = score + t;
    return (item_slopes){-y, y * y - 1.0, vec_all(1)};
}

/* Return whether arrival is certain, or certain not to be, to 1e-22. */
PLR_INLINE int normal_certain(double f, complex_lanes t)
{
    const lanes y = f + t.real;
    return vec_largest((t.imaginary - y) * (t.imaginary + y)) < -100;
}

/* Return the probability of a normal variable above z, Re z >= 0, over e^(-z^2 / 2), to 1.3e-5, by Weideman's series
 * for the error function (docs/numerics.md), summed for both parts at once. */
PLR_INLINE complex_lanes rough_tail(complex_lanes z)
{
    static const double series[] = {-8.4800862e-5, -1.8021895e-4, 4.9836962e-4, 1.4282417e-3,
                                    -2.3422658e-3, -0.01387978,   -6.2564108e-3, 0.11193483,
                                    0.48204482,    1.1898904,     2.1253128,     2.9534215};
    const double middle = 4.119534;
    const lanes inverse2 = vec_rough_inverse(square_of((complex_lanes){middle + z.real, z.imaginary}));
    const complex_lanes inverse = {(middle + z.real) * inverse2, -z.imaginary * inverse2};
    const complex_lanes x = times((complex_lanes){middle - z.real, -z.imaginary}, inverse);
    const lanes twice = 2.0 * x.real, size = square_of(x);
    lanes before = {0}, sum = vec_all(series[0]);
    for (int i = 1; i < (int)(sizeof series / sizeof *series); i++) {
        const lanes next = series[i] + twice * sum - size * before;
        before = sum;
        sum = next;
    }
    const complex_lanes all = times((complex_lanes){sum - x.real * before, x.imaginary * before}, inverse);
    return times((complex_lanes){all.real + DENSITY_AT_0, all.imaginary}, inverse);
}

PLR_INLINE item_magnitudes normal_magnitudes(double w, double f, complex_lanes t)
{
    const complex_lanes y = {f + t.real, t.imaginary};
    const complex_lanes square = times(y, y), later = {vec_abs(y.real), y.imaginary};
    const lanes decay = vec_rough_exp2(-M_LOG2E * limited(0.5 * square.real));
    lanes cosine;
    const lanes sine = vec_sin_cos(later.real * later.imaginary * (0.5 / M_PI), &cosine);
    const complex_lanes tail = times((complex_lanes){decay * cosine, -decay * sine}, rough_tail(later));
    const complex_lanes rest = {1.0 - tail.real, tail.imaginary}, second = {square.real - 1.0, square.imaginary};
    const lanes less = vec_rough_sqrt(square_of(tail)), more = vec_rough_sqrt(square_of(rest));
    (void)w;
    return (item_magnitudes){vec_select(y.real > 0.0, more, less), more + less, DENSITY_AT_0 * decay, square_of(y),
                             square_of(second)};
}

static arrival normal_at(double y)
{
    const double x = smaller(20, larger(-20, y)), q = 0.5 * erfc(x * M_SQRT1_2);
    if (y < -20)
        return (arrival){.q = 1};
    return (arrival){0.5 * erfc(-x * M_SQRT1_2), q, DENSITY_AT_0 * exp(-0.5 * x * x) / q, fabs(x)};
}

static double normal_reach(double nats)
{
    return sqrt(2 * nats);
}

static double normal_largest_eta(const time_map *map)
{
    (void)map;
    return INFINITY;
}

static const arrival_law normal_law = {.noise = "normal", .gap = 14.0, .certain = 10, .later_than_bins = 0.15,
                                       .least_eta = 0.4, .at = normal_at, .before = normal_reach,
                                       .after = normal_reach, .largest_eta = normal_largest_eta};

#endif
