/* Losses over pairs: one document against a row of others, in vector registers. */
#ifndef PLR_PAIR_LOSSES_H
#define PLR_PAIR_LOSSES_H

#include "simd/isa.h"

typedef struct {
    double score, gain, discount;
} ranked_document;

/* Some of the documents that rank lower than one, or as low. */
typedef struct {
    const double *scores, *gains, *discounts;
    const double *distance; /* extra difference of discounts between that one and each of these, or NULL */
} lower_documents;

typedef struct {
    /* log(1 + exp(f_j - f)) summed over the others j, all of which document f should precede. Adds to gradient[j] and
     * to *own the derivatives. */
    double (*precede)(double score, const double *scores, double *gradient, double *own, size_t n);
    /* A document against n that rank lower, each pair weighted by the difference of gains times that of discounts.
     * Adds to gradient[j] and to *own the derivatives. */
    double (*ranked)(
        ranked_document document, const lower_documents *lower, double *gradient, double *own, size_t n);
} pair_kernels;

PLR_DECLARE_KERNELS(pair_kernels)

#endif
