/* The contribution of one rank to the gradient of every item: the inner loop of PL-Rank-2. */
#ifndef PLR_RANK_PASS_H
#define PLR_RANK_PASS_H

#include "simd/isa.h"

typedef struct {
    /* Compute gradient[d] += weights[d] * (relevance[d] * direct - reward). */
    void (*direct_and_reward)(double *gradient, const double *weights, const double *relevance, double direct,
                              double reward, size_t n);
} rank_pass_kernels;

PLR_DECLARE_KERNELS(rank_pass_kernels)

#endif
