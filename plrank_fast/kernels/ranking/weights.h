/* Weights of items, exp(score), relative to the heaviest. */
#ifndef PLR_WEIGHTS_H
#define PLR_WEIGHTS_H

#include "simd/isa.h"

/* Largest difference of scores, in nats, between items whose weights may share a unit, so that sums of weights and
 * their reciprocals stay far inside a double's range. */
#define PLR_LARGEST_SPREAD 600.0

#define PLR_OCTAVES 64

/* A histogram of weights. It predicts within a few percent how long draws with replacement, or arrivals, take to
 * produce a number of different items, in time that does not depend on the number of items. */
typedef struct {
    double count[PLR_OCTAVES]; /* items whose weight lies in [2^-i, 2^(1-i)); the last one has all lighter items too */
    double mass[PLR_OCTAVES];  /* sum of their weights */
    size_t n;                  /* octaves up to the last that has items */
} weight_octaves;

typedef struct {
    double time;      /* when the wanted number of items is expected to have arrived; or infinite */
    double rate;      /* expected rate of arrivals at that time */
    double variance;  /* variance of the number of arrivals by that time */
} arrivals;

typedef struct {
    void (*extremes)(const double *scores, size_t n, double *lowest, double *highest);
    /* Set out[i] = exp(sign * (scores[i] - highest)): weights for sign 1, mean arrival times for sign -1. The scores
     * lie within 700 of the highest. Return the sum. */
    double (*relative)(const double *scores, double highest, double sign, double *out, size_t n);
    double (*sum_of_squares)(const double *weights, size_t n);
    /* Fill the histogram. The heaviest weight is 1; `spread` is the log of its ratio to the lightest. */
    void (*sort_into_octaves)(const double *weights, size_t n, double spread, weight_octaves *octaves);
    /* Return time, rate and variance for `wanted` arrivals; only an infinite time if they take longer than `latest`,
     * which is finite. */
    arrivals (*expected_arrivals)(const weight_octaves *octaves, double wanted, double latest);
} weights_kernels;

PLR_DECLARE_KERNELS(weights_kernels)

#endif
