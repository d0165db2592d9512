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
    found |= value < 0.0 ? PLR_NEGATIVE : 0;
    found |= value > 1.0 ? PLR_ABOVE_ONE : 0;
    const double rounded = value + 0x1.8p52 - 0x1.8p52;
    found |= (value >= 0.0) & (value < 7.0) & (rounded == value) ? 0 : PLR_NO_SMALL_GRADE;
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
#define COPY_FROM(type, name, largest)                                                      \
    static int name(double *restrict to, const void *restrict values_, size_t n)            \
    {                                                                                       \
        const type *restrict values = values_;                                              \
        int64_t found = 0;                                                                  \
        for (size_t i = 0; i < n; i++) {                                                    \
            double value = (double)values[i];                                               \
            found |= found_in_one(value) | (fabs(value) >= (largest) ? PLR_NOT_FINITE : 0); \
            to[i] = value;                                                                  \
        }                                                                                   \
        return (int)found;                                                                  \
    }

COPY_FROM(double, copy_doubles, INFINITY)
COPY_FROM(float, copy_floats, INFINITY)
COPY_FROM(int32_t, copy_ints, INFINITY)
COPY_FROM(int64_t, copy_longs, 0x1p53)

const magnitudes_kernels ISA(magnitudes_kernels) = {found_in, {copy_doubles, copy_floats, copy_ints, copy_longs}};
