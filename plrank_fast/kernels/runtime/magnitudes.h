/* Check that values are finite, and that their products and sums stay far from both ends of a double's range. */
#ifndef PLR_MAGNITUDES_H
#define PLR_MAGNITUDES_H

#include "simd/isa.h"

/* Arrays that enter products, such as relevance and rank weights, are all 0 or have a largest magnitude from 2^-200 to
 * 2^200. Products of two such quantities, their squares, and sums of 2^40 of those lie between 2^-800 and 2^840. */
#define PLR_LIMIT_EXPONENT 200
#define PLR_LARGEST_COUNT ((int64_t)1 << 59) /* samples, ranks, queries: as many doubles can be addressed */
#define PLR_SMALLEST_TOLERANCE 1e-10         /* below it rounding errors dominate exact expectations */

enum {
    PLR_NOT_FINITE = 1,
    PLR_TOO_LARGE = 2,
    PLR_TOO_SMALL = 4,
    PLR_LARGE_ENOUGH = 8,
    PLR_NEGATIVE = 16,
    PLR_ABOVE_ONE = 32,
    PLR_NO_SMALL_GRADE = 64,
    PLR_NO_WHOLE_GRADE = 128
};

enum { PLR_DOUBLES, PLR_FLOATS, PLR_INTS, PLR_LONGS, PLR_KINDS };

typedef struct {
    /* Return flags for what occurs among the values: NaN or an infinity; a magnitude above 2^200; one below 2^-200, but
     * not 0; one of at least 2^-200; a value below 0; one above 1; one that is not a whole number from 0 to 6, or to
     * 200. */
    int (*found_in)(const double *values, size_t n);
    /* Return whether no value is NaN or infinite, in a third of the time. */
    int (*are_finite)(const double *values, size_t n);
    /* Copy values of each kind to doubles and return the flags of found_in; the two arrays do not overlap. Integers
     * from 2^53 on, which a double may not represent, count as not finite. */
    int (*found_while_copying[PLR_KINDS])(double *to, const void *values, size_t n);
} magnitudes_kernels;

PLR_DECLARE_KERNELS(magnitudes_kernels)

#endif
