#include "runtime/magnitudes.h"

#include <float.h>
#include <math.h>

/* Without a branch on the values, so that the loops are vectorised. */

static int any_not_finite(const double *values, size_t n)
{
    int64_t found = 0;
    for (size_t i = 0; i < n; i++)
        found |= fabs(values[i]) <= DBL_MAX ? 0 : 1;
    return (int)found;
}

/* A pass over the values of its own would take half as long as the copy, where these are many. */
static int copy_and_find_not_finite(double *restrict to, const double *restrict values, size_t n)
{
    int64_t found = 0;
    for (size_t i = 0; i < n; i++) {
        double value = values[i];
        found |= fabs(value) <= DBL_MAX ? 0 : 1;
        to[i] = value;
    }
    return (int)found;
}

static int any_extraordinary(const double *values, size_t n)
{
    const double largest = ldexp(1.0, PLR_ORDINARY_EXPONENT), smallest = 1.0 / largest;
    int64_t found = 0;
    for (size_t i = 0; i < n; i++) {
        double size = fabs(values[i]);
        found |= size > largest ? 1 : 0;
        found |= ((size < smallest) & (size > 0.0)) ? 1 : 0;
    }
    return (int)found;
}

const magnitudes_kernels ISA(magnitudes_kernels) = {any_not_finite, copy_and_find_not_finite, any_extraordinary};
