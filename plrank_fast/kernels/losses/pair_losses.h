/* Losses over pairs: one document against a row of others, in vector registers. */
#ifndef PLR_PAIR_LOSSES_H
#define PLR_PAIR_LOSSES_H

#include "simd/isa.h"

typedef struct {
    double score, gain, discount;
} ranked_document;

/* A subset of the documents that rank no higher than a given document. */
typedef struct {
    const double *scores, *gains, *discounts;
    const double *distance; /* extra difference of discounts between the given document and each of these, or NULL */
} lower_documents;

typedef struct {
    /* Return the sum of log(1 + exp(f_j - f)) over the documents j that the document with score f should precede. Adds
     * the derivatives to gradient[j] and *own. */
    double (*precede)(double score, const double *scores, double *gradient, double *own, size_t n);
    /* Return the loss of a document and n that rank no higher, each pair weighted by the difference of gains times that
     * of discounts. Adds the derivatives to gradient[j] and *own. */
    double (*ranked)(
        ranked_document document, const lower_documents *lower, double *gradient, double *own, size_t n);
} pair_kernels;

PLR_DECLARE_KERNELS(pair_kernels)

#endif
