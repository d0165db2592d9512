#include "gradients/rank_pass.h"

static void direct_and_reward(double *restrict gradient, const double *restrict weights,
                              const double *restrict relevance, double direct, double reward, size_t n)
{
    for (size_t d = 0; d < n; d++)
        gradient[d] += weights[d] * (relevance[d] * direct - reward);
}

const rank_pass_kernels ISA(rank_pass_kernels) = {direct_and_reward};
