/* Min-max normalisation of the columns of some rows. */
#ifndef PLR_COLUMN_RANGES_H
#define PLR_COLUMN_RANGES_H

#include "simd/isa.h"

typedef struct {
    /* Map each column of the rows, of which there is at least one, onto [0, 1], or to 0 if it is constant. A width may
     * overflow; halves do not. The two workspaces have room for a row. */
    void (*floats)(float *rows, size_t n_rows, size_t width, float *low, float *span);
    void (*doubles)(double *rows, size_t n_rows, size_t width, double *low, double *span);
    void (*long_doubles)(long double *rows, size_t n_rows, size_t width, long double *low, long double *span);
} column_ranges_kernels;

PLR_DECLARE_KERNELS(column_ranges_kernels)

#endif
