/* Check that values are finite, and that their products and sums stay far from both ends of a double's range. */
#ifndef PLR_MAGNITUDES_H
#define PLR_MAGNITUDES_H

#include "simd/isa.h"

/* Arrays that enter products, such as relevance and rank weights, are all 0 or have a largest magnitude from 2^-200 to
 * 2^200. Products of two such quantities, their squares, and sums of 2^40 of those lie between 2^-800 and 2^840. */
#define PLR_LIMIT_EXPONENT 200

enum { PLR_NOT_FINITE = 1, PLR_TOO_LARGE = 2, PLR_TOO_SMALL = 4, PLR_LARGE_ENOUGH = 8 };

typedef struct {
    /* Return flags for what occurs among the values: NaN or an infinity; a magnitude above 2^200; one below 2^-200, but
     * not 0; one of at least 2^-200. */
    int (*found_in)(const double *values, size_t n);
    /* Copy the values and return the flags of found_in; the two arrays do not overlap. */
    int (*found_while_copying)(double *to, const double *values, size_t n);
} magnitudes_kernels;

PLR_DECLARE_KERNELS(magnitudes_kernels)

#endif
