/* Losses over pairs: one document against a row of others, in vector registers. */
#ifndef PLR_PAIR_LOSSES_H
#define PLR_PAIR_LOSSES_H

#include "isa.h"

/* Documents in descending order of score as far as the cutoff, then the others. */
typedef struct {
    const double *scores, *gains, *discounts;
    const double *distance; /* distance[m]: extra discount between ranks m apart, or NULL */
} ranked_documents;

typedef struct {
    /* log(1 + exp(f_j - f)) summed over the others j, all of which document f should precede. Adds to gradient[j] and
     * to *own the derivatives. */
    double (*precede)(double score, const double *scores, double *gradient, double *own, size_t n);
    /* The document at rank `first` against those at ranks first + 1 .. n - 1, each pair weighted by the difference of
     * gains times that of discounts. */
    double (*ranked)(const ranked_documents *documents, size_t first, size_t n, double *gradient);
} pair_kernels;

PLR_DECLARE_KERNELS(pair_kernels)

#endif
