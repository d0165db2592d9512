/* Whether values are finite, and whether products and sums of them stay far from both ends of a double's range. */
#ifndef PLR_MAGNITUDES_H
#define PLR_MAGNITUDES_H

#include "simd/isa.h"

/* Relevance, rank weights and whatever else is multiplied are 0, or their largest magnitude is from 2^-200 to 2^200.
 * Products of two such quantities, their squares, and sums of 2^40 of those, are then from 2^-800 to 2^840. */
#define PLR_LIMIT_EXPONENT 200

enum { PLR_NOT_FINITE = 1, PLR_TOO_LARGE = 2, PLR_TOO_SMALL = 4, PLR_LARGE_ENOUGH = 8 };

typedef struct {
    /* What is among the values: any that is NaN or infinite; of a magnitude above 2^200; below 2^-200, but not 0; from
     * 2^-200 on. */
    int (*found_in)(const double *values, size_t n);
    /* The same while they are copied; the two arrays lie apart. */
    int (*found_while_copying)(double *to, const double *values, size_t n);
} magnitudes_kernels;

PLR_DECLARE_KERNELS(magnitudes_kernels)

#endif
