/* Short lists of (key, item) pairs, without a branch that depends on a key. */
#ifndef PLR_SELECTION_H
#define PLR_SELECTION_H

#include "simd/isa.h"

#define PLR_SHORT_LIST 128 /* most pairs that sort_short takes */

typedef struct {
    /* Copy the pairs (keys[i], i) with keys[i] < pivot in order and return their number. Outputs have room for n. */
    size_t (*keep_below)(const double *keys, size_t n, double pivot, double *kept_keys, int32_t *kept_items);
    /* Copy the pairs (-values[i], i) with values[i] >= pivot likewise. */
    size_t (*keep_from)(const double *values, size_t n, double pivot, double *kept_keys, int32_t *kept_items);
    /* Sort by key; equal keys stay in order. */
    void (*sort_short)(double *keys, int32_t *items, size_t n);
} selection_kernels;

PLR_DECLARE_KERNELS(selection_kernels)

#endif
