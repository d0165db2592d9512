/* Weights of items, exp(score), relative to the heaviest. */
#ifndef PLR_WEIGHTS_H
#define PLR_WEIGHTS_H

#include "isa.h"

typedef struct {
    /* out[i] = exp(sign * (scores[i] - highest)), i < n: weights for sign 1, mean clocks for sign -1. The scores lie
     * within 700 of the highest. */
    void (*relative)(const double *scores, double highest, double sign, double *out, size_t n);
} weights_kernels;

PLR_DECLARE_KERNELS(weights_kernels)

#endif
