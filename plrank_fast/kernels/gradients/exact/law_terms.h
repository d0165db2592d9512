/* The terms in which a law of arrival describes items, at real and at complex times. */
#ifndef PLR_LAW_TERMS_H
#define PLR_LAW_TERMS_H

#include <math.h>

#include "gradients/exact/gauss_legendre.h"
#include "simd/vector_math.h"

#define LARGEST_EXPONENT 700.0 /* e^700 is near the largest double, e^-700 near the least */

typedef struct {
    lanes real, imaginary;
} complex_lanes;

PLR_INLINE complex_lanes times(complex_lanes a, complex_lanes b)
{
    return (complex_lanes){a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
}

PLR_INLINE lanes square_of(complex_lanes a)
{
    return a.real * a.real + a.imaginary * a.imaginary;
}

/* Derivatives of an item's density by its score, over the density, and the speed at which time must run to keep the
 * item's probability when its score moves. */
typedef struct {
    lanes first, second, moving;
} item_slopes;

typedef struct {
    lanes odds, hazard;
} odds_and_hazard;

/* Magnitudes of an item at a complex time: of p and of p and q in sum, of its density, and the squares of the factors
 * of Y in the gradient and in the Hessian diagonal. */
typedef struct {
    lanes p, both, density, first, second;
} item_magnitudes;

/* Limit the exponents of an item: beyond, it has arrived, or grows so much that no bound is of use. */
PLR_INLINE lanes limited(lanes x)
{
    const double most = 0.5 * LARGEST_EXPONENT;
    return vec_min_f64(vec_max_f64(x, vec_all(-most)), vec_all(most));
}

/* An item some time after it is due: the probabilities that it has arrived and that it has not, its hazard, and the
 * magnitude of its first slope. */
typedef struct {
    double p, q, hazard, slope;
} arrival;

/* The map from [v_begin, v_begin + v_length] to time: t = t0 + scale sinh(v)^2 for items that arrive at a rate,
 * t0 + scale sinh(v) for others. */
typedef struct {
    int law;
    double t0, scale, v_begin, v_length;
} time_map;

/* Functions and numbers of a law, on the axis of the scores, in units of the noise: an item is due at minus its score.
 * If it arrives at a rate, this is the axis ln t. */
typedef struct {
    const char *noise;
    double gap;              /* least gap between neighbouring scores at which a cut of time saves nodes */
    double certain;          /* time after it is due by which an item has arrived for certain */
    double later_than_bins;  /* items may arrive later by this than in the histogram, whose counts are split
                              * between bins (docs/numerics.md) */
    double least_eta;        /* least eta for which the fewest points of an ellipse serve (integrand_bound.h) */
    arrival (*at)(double y); /* the time y after it is due */
    /* Times before and after it is due beyond which both the probability that an item arrives and its density are at
     * most e^-nats; after, the density is at most nats e^-nats. */
    double (*before)(double nats), (*after)(double nats);
    double (*largest_eta)(const time_map *map); /* largest ellipse on which the bound of the integrands holds */
} arrival_law;

#endif
