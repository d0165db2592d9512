#include "runtime/magnitudes.h"

#include <float.h>
#include <math.h>

#define LARGEST 0x1p200
#define SMALLEST 0x1p-200

_Static_assert(PLR_LIMIT_EXPONENT == 200, "LARGEST and SMALLEST are 2 to that power");

/* There is no branch on the value, so that compilers vectorise the loops. */
PLR_INLINE int64_t found_in_one(double value)
{
    double size = fabs(value);
    int64_t found = size <= DBL_MAX ? 0 : PLR_NOT_FINITE;
    found |= size > LARGEST ? PLR_TOO_LARGE : 0;
    found |= ((size < SMALLEST) & (size > 0.0)) ? PLR_TOO_SMALL : 0;
    return found | (size >= SMALLEST ? PLR_LARGE_ENOUGH : 0);
}

static int found_in(const double *values, size_t n)
{
    int64_t found = 0;
    for (size_t i = 0; i < n; i++)
        found |= found_in_one(values[i]);
    return (int)found;
}

/* A separate pass over many values would take half as long as the copy. */
static int found_while_copying(double *restrict to, const double *restrict values, size_t n)
{
    int64_t found = 0;
    for (size_t i = 0; i < n; i++) {
        double value = values[i];
        found |= found_in_one(value);
        to[i] = value;
    }
    return (int)found;
}

const magnitudes_kernels ISA(magnitudes_kernels) = {found_in, found_while_copying};
