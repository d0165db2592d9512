#include "data/column_ranges.h"

#include <string.h>

#define NORMALIZE(type, name)                                                                                          \
    static void name(type *restrict rows, size_t n_rows, size_t width, type *restrict low, type *restrict span)        \
    {                                                                                                                  \
        const type half = (type)0.5;                                                                                   \
        memcpy(low, rows, width * sizeof *low);                                                                        \
        memcpy(span, rows, width * sizeof *span);                                                                      \
        for (size_t row = 1; row < n_rows; row++)                                                                      \
            for (size_t i = 0; i < width; i++) {                                                                       \
                const type value = rows[row * width + i];                                                              \
                low[i] = value < low[i] ? value : low[i];                                                              \
                span[i] = value > span[i] ? value : span[i];                                                           \
            }                                                                                                          \
        for (size_t i = 0; i < width; i++) {                                                                           \
            low[i] *= half;                                                                                            \
            span[i] = span[i] * half - low[i];                                                                         \
        }                                                                                                              \
        for (size_t row = 0; row < n_rows; row++)                                                                      \
            for (size_t i = 0; i < width; i++) {                                                                       \
                const type share = (rows[row * width + i] * half - low[i]) / span[i];                                  \
                rows[row * width + i] = span[i] > 0 ? share : 0;                                                       \
            }                                                                                                          \
    }

NORMALIZE(float, floats)
NORMALIZE(double, doubles)
NORMALIZE(long double, long_doubles)

const column_ranges_kernels ISA(column_ranges_kernels) = {floats, doubles, long_doubles};
