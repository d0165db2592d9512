/* Inner loops of the losses that make ranks smooth: ApproxNDCG and SoftRank. */
#ifndef PLR_RANK_LOSSES_H
#define PLR_RANK_LOSSES_H

#include "isa.h"

/* Documents of SoftRank handled together, in as many registers as that takes. */
#define PLR_SOFT_RANK_TARGETS 8

typedef struct {
    /* slopes[j] = derivative of logistic(f_j - f); returns the sum of logistic(f_j - f) over j */
    double (*logistic_rank)(double score, const double *scores, double *slopes, size_t n);
    /* gradient[j] += factor * slopes[j]; returns the sum of what was added */
    double (*add_slopes)(double factor, const double *slopes, double *gradient, size_t n);
    /* For PLR_SOFT_RANK_TARGETS documents (those past n_targets repeat one): with normal noise of unit variance on
     * every difference of scores, value[t] = sum over ranks of discount times the probability of the rank.
     * `targets` are positions among the n scores. Takes factors[t] times the derivatives off gradient, and returns the
     * sum of factors[t] value[t]. `memory` holds PLR_SOFT_RANK_TARGETS (n (cutoff + 2) + cutoff) doubles. */
    double (*soft_rank)(const double *scores, size_t n, const double *discounts, size_t cutoff, const int32_t *targets,
                        size_t n_targets, const double *factors, double *memory, double *gradient);
} rank_kernels;

PLR_DECLARE_KERNELS(rank_kernels)

#endif
