/* A histogram of the scores, from which nodes are planned, so that planning costs time per distinct score and not per
 * item. */
#ifndef PLR_SCORE_HISTOGRAM_H
#define PLR_SCORE_HISTOGRAM_H

#include "simd/isa.h"

#define BINS_PER_NAT 2
#define MOST_BINS 640
#define LARGEST_EXPONENT 700.0 /* e^700 is near the largest double, e^-700 near the least */
#define WITHIN_BINS (1 / cosh(0.5 / BINS_PER_NAT)) /* splitting counts between bins multiplies e^-k by at most this */

typedef struct {
    int bins;                                /* number of bins in use; the rest of a vector is zero */
    double count[MOST_BINS + PLR_LANES];     /* items with -f around bin / BINS_PER_NAT, linearly split */
    double relevance[MOST_BINS + PLR_LANES]; /* sum of the relevance of these items, */
    double magnitudes[MOST_BINS + PLR_LANES]; /* of its magnitudes, */
    double squares[MOST_BINS + PLR_LANES];   /* and of its squares */
    double above[MOST_BINS + PLR_LANES + 1]; /* items in the bins before this one */
} score_histogram;

#define fill_histogram ISA(fill_histogram)
#define sum_counts ISA(sum_counts)
#define has_gap ISA(has_gap)

/* Fill the histogram of -f for n scores relative to their maximum, the lowest of which is given; relevance may be NULL
 * for 1. */
void fill_histogram(score_histogram *histogram, const double *f, const double *relevance, intptr_t n, double lowest);
/* Fill `above` from `count`. */
void sum_counts(score_histogram *histogram);
/* Return whether the scores have a gap with fewer than K items above it, which may be all that were counted. */
int has_gap(const score_histogram *histogram, intptr_t K, double gap);

/* Add items with these sums to a bin, and the given share of them to the next one instead. */
PLR_INLINE void add_to_bins(score_histogram *histogram, int bin, double share, double count, double relevance,
                            double magnitude, double square)
{
    histogram->count[bin] += (1 - share) * count;
    histogram->count[bin + 1] += share * count;
    histogram->relevance[bin] += (1 - share) * relevance;
    histogram->relevance[bin + 1] += share * relevance;
    histogram->magnitudes[bin] += (1 - share) * magnitude;
    histogram->magnitudes[bin + 1] += share * magnitude;
    histogram->squares[bin] += (1 - share) * square;
    histogram->squares[bin + 1] += share * square;
}

#endif
