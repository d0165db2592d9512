/* Weights of items, exp(score), relative to the heaviest. */
#ifndef PLR_WEIGHTS_H
#define PLR_WEIGHTS_H

#include "simd/isa.h"

/* Largest difference of scores, in nats, between items whose weights may share a unit: sums of weights and their
 * reciprocals stay far inside a double's range then. */
#define PLR_LARGEST_SPREAD 600.0

#define PLR_OCTAVES 64

/* How weights are spread: enough to say within a few percent how long draws with replacement, or arrivals, take to
 * produce a number of different items, in time that does not depend on the number of items. */
typedef struct {
    double count[PLR_OCTAVES]; /* items whose weight lies in [2^-i, 2^(1-i)); the last one has all lighter items too */
    double mass[PLR_OCTAVES];  /* and the sum of their weights */
    size_t n;                  /* octaves up to the last that has items */
} weight_octaves;

typedef struct {
    double time;      /* at which a number of items is expected to have arrived; or infinite */
    double rate;      /* at which others arrive then, on average */
    double variance;  /* of their number then */
} arrivals;

typedef struct {
    void (*extremes)(const double *scores, size_t n, double *lowest, double *highest);
    /* out[i] = exp(sign * (scores[i] - highest)), i < n: weights for sign 1, mean arrival times for sign -1. The scores
     * lie within 700 of the highest. Returns the sum. */
    double (*relative)(const double *scores, double highest, double sign, double *out, size_t n);
    /* Of weights of which the heaviest is 1; `spread` in nats is that from the heaviest to the lightest. */
    void (*sort_into_octaves)(const double *weights, size_t n, double spread, weight_octaves *octaves);
    /* If it takes longer than `latest`, a finite time, that is all that is found out. */
    arrivals (*expected_arrivals)(const weight_octaves *octaves, double wanted, double latest);
} weights_kernels;

PLR_DECLARE_KERNELS(weights_kernels)

#endif
