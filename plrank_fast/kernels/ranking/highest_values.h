/* Highest values of a list, from which the rank of the first relevant document and the ideal ranking of a few different
 * gains follow without a sort. */
#ifndef PLR_HIGHEST_VALUES_H
#define PLR_HIGHEST_VALUES_H

#include "simd/isa.h"

typedef struct {
    /* Return the highest score of a document with relevance above 0; -inf if there is none. */
    double (*highest_relevant)(const double *scores, const double *relevance, size_t n);
    /* Return the number of scores above `score`, which is not -inf; *n_tied gets the number of scores equal to it. */
    size_t (*count_above)(const double *scores, double score, size_t n, size_t *n_tied);
    /* Return the highest value below `bound`, -inf if there is none; *n_equal gets the number of those equal to it. */
    double (*next_lower)(const double *values, double bound, size_t n, size_t *n_equal);
} highest_values_kernels;

PLR_DECLARE_KERNELS(highest_values_kernels)

#endif
