/* Losses over pairs: one document against a row of others, in vector registers. */
#ifndef PLR_PAIR_LOSSES_H
#define PLR_PAIR_LOSSES_H

#include "simd/isa.h"

/* Documents in descending order of score. */
typedef struct {
    double *scores;    /* times the slope */
    double *gains;     /* over the ideal DCG */
    double *discounts; /* 1 / log2(rank + 1), or the discount past the cutoff */
    double *gradient;
} ranked_documents;

typedef struct {
    /* Return the sum of log(1 + exp(f_j - f)) over the documents j that the document with score f should precede. Adds
     * the derivatives to gradient[j] and *own. */
    double (*precede)(double score, const double *scores, double *gradient, double *own, size_t n);
    /* Return the loss of a document and the n of `lower` from `first` on, which rank no higher, each pair weighted by
     * the difference of gains times the difference of discounts, to which `distance` is added unless it is NULL. Adds
     * the derivatives to both gradients. */
    double (*ranked)(const ranked_documents *all, size_t document, const ranked_documents *lower, size_t first,
                     const double *distance, size_t n);
} pair_kernels;

PLR_DECLARE_KERNELS(pair_kernels)

#endif
