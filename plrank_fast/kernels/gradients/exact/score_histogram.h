/* A histogram of the scores, from which nodes are planned, so that planning costs time per distinct score and not per
 * item. Each item is split between two neighbouring bins, so that the sum of the weights e^f is kept. This lowers sums
 * of functions that are concave in the weight. */
#ifndef PLR_SCORE_HISTOGRAM_H
#define PLR_SCORE_HISTOGRAM_H

#include <math.h>
#include <string.h>

#include "simd/vector_math.h"
#include "simd/vectors.h"

#define BINS_PER_NAT 2
#define MOST_BINS 640

typedef struct {
    int bins;                                /* number of bins in use; the rest of a vector is zero */
    double count[MOST_BINS + PLR_LANES];     /* items with -f around bin / BINS_PER_NAT */
    double relevance[MOST_BINS + PLR_LANES]; /* sum of the relevance of these items, */
    double magnitudes[MOST_BINS + PLR_LANES]; /* of its magnitudes, */
    double squares[MOST_BINS + PLR_LANES];   /* and of its squares */
    int stops;                               /* whether readers may stop, */
    double reads[MOST_BINS + PLR_LANES];     /* and then the mean of the chance to read on after these items */
    double above[MOST_BINS + PLR_LANES + 1]; /* items in the bins before this one */
} score_histogram;

/* Sums over the items of a bin: their number, relevance, its magnitudes and its squares. */
typedef double bin_sums __attribute__((vector_size(4 * sizeof(double))));

/* Add items of score -nats to the bins, and the sum of their chances to stop, if given, to `stops`. */
PLR_INLINE void add_to_bins(bin_sums *bins, double *stops, double nats, bin_sums sums, double stop)
{
    const double position = smaller(nats * BINS_PER_NAT, MOST_BINS - 2);
    const int bin = (int)position;
    const double x = (position - bin) / BINS_PER_NAT; /* 1 - e^-x by its Taylor polynomial */
    const double lost = x * (1 - x * (1.0 / 2 - x * (1.0 / 6 - x * (1.0 / 24 - x * (1.0 / 120)))));
    const double share = lost / -expm1(-1.0 / BINS_PER_NAT); /* of the weight that is lost up to the next bin */
    bins[bin] += (1 - share) * sums;
    bins[bin + 1] += share * sums;
    if (stops) {
        stops[bin] += (1 - share) * stop;
        stops[bin + 1] += share * stop;
    }
}

/* Fill the histogram from so many bins. `stops` are sums of the chance to stop at their items, NULL for 0. */
static void set_histogram(score_histogram *histogram, const bin_sums *bins, const double *stops, int n)
{
    histogram->bins = n;
    histogram->stops = stops != NULL;
    histogram->above[0] = 0;
    for (int i = 0; i < n + PLR_LANES; i++) {
        const bin_sums sums = i < n ? bins[i] : (bin_sums){0};
        histogram->count[i] = sums[0];
        histogram->relevance[i] = sums[1];
        histogram->magnitudes[i] = sums[2];
        histogram->squares[i] = sums[3];
        histogram->above[i + 1] = histogram->above[i] + sums[0];
    }
    for (int i = 0; stops && i < n + PLR_LANES; i++)
        histogram->reads[i] = i < n && histogram->count[i] > 0 ? larger(0, 1 - stops[i] / histogram->count[i]) : 1;
}

/* Return the bins in use for scores of -nats or more. */
PLR_INLINE int bins_within(double nats)
{
    return (int)smaller(nats * BINS_PER_NAT, MOST_BINS - 2) + 2;
}

PLR_INLINE void count_in_bins(bin_sums *bins, double *stops, const double *f, const double *relevance,
                              const double *stop, const intptr_t *item, intptr_t n)
{
    for (intptr_t j = 0; j < n; j++) {
        const double rho = relevance ? relevance[j] : 1;
        add_to_bins(bins, stops, -f[j], (bin_sums){1, rho, fabs(rho), rho * rho}, stop ? stop[item[j]] : 0);
    }
}

/* Fill the histogram of -f for n scores relative to their maximum, the lowest of which is given; relevance may be NULL
 * for 1, and `stop`, of the items by their index, NULL for 0. */
static void fill_histogram(score_histogram *histogram, const double *f, const double *relevance, const double *stop,
                           const intptr_t *item, intptr_t n, double lowest)
{
    bin_sums bins[MOST_BINS];
    double stops[MOST_BINS];
    const int used = bins_within(-lowest);
    memset(bins, 0, used * sizeof *bins);
    memset(stops, 0, used * sizeof *stops);
    if (stop)
        count_in_bins(bins, stops, f, relevance, stop, item, n);
    else
        count_in_bins(bins, NULL, f, relevance, NULL, NULL, n);
    set_histogram(histogram, bins, stop ? stops : NULL, used);
}

/* Return the sum of the weights. */
static double total_weight(const score_histogram *histogram)
{
    double sum = 0, w = 1;
    for (int i = 0; i < histogram->bins; i++, w *= exp(-1.0 / BINS_PER_NAT))
        sum += histogram->count[i] * w;
    return sum;
}

/* Return whether the scores have a gap with fewer than K items above it, which may be all that were counted. */
static int has_gap(const score_histogram *histogram, intptr_t K, double gap)
{
    int empty = 0;
    for (int i = 0; i < histogram->bins && histogram->above[i] < (double)K; i++) {
        empty = histogram->count[i] == 0 ? empty + 1 : 0;
        if (empty >= (int)(gap * BINS_PER_NAT) - 1)
            return 1;
    }
    return histogram->above[histogram->bins] < (double)K - 0.5;
}

#endif
