/* The rank of the first relevant document, which needs no ranking: the highest score of a relevant document, and the
 * number of documents with higher ones. */
#ifndef PLR_FIRST_RELEVANT_H
#define PLR_FIRST_RELEVANT_H

#include "simd/isa.h"

typedef struct {
    /* Return the highest score of a document with relevance above 0; -inf if there is none. */
    double (*highest_relevant)(const double *scores, const double *relevance, size_t n);
    /* Return the number of scores above `score`, which is not -inf; *n_tied gets the number of scores equal to it. */
    size_t (*count_above)(const double *scores, double score, size_t n, size_t *n_tied);
} first_relevant_kernels;

PLR_DECLARE_KERNELS(first_relevant_kernels)

#endif
