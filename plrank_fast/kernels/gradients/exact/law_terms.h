/* The terms in which a law of arrival describes an item, at real and at complex times. */
#ifndef PLR_LAW_TERMS_H
#define PLR_LAW_TERMS_H

#include <math.h>

#include "gradients/exact/exact_query.h"
#include "gradients/exact/score_histogram.h"
#include "simd/vector_math.h"

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

#endif
