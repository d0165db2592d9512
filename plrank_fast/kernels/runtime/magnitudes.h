/* Whether values are finite, and whether products and sums of them stay far from both ends of a double's range. */
#ifndef PLR_MAGNITUDES_H
#define PLR_MAGNITUDES_H

#include "simd/isa.h"

/* Products of two values of an ordinary magnitude, their squares, and sums of 2^40 of those, are from 2^-800 to
 * 2^840. */
#define PLR_ORDINARY_EXPONENT 200

typedef struct {
    /* Whether any value is NaN or infinite. */
    int (*any_not_finite)(const double *values, size_t n);
    /* The same while they are copied; the two arrays lie apart. */
    int (*copy_and_find_not_finite)(double *to, const double *values, size_t n);
    /* Whether any value but 0 has a magnitude outside 2^-200 to 2^200. */
    int (*any_extraordinary)(const double *values, size_t n);
} magnitudes_kernels;

PLR_DECLARE_KERNELS(magnitudes_kernels)

#endif
