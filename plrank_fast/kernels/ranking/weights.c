#include "ranking/weights.h"

#include <math.h>

#include "simd/vector_math.h"

static void extremes(const double *scores, size_t n, double *lowest, double *highest)
{
    vec_f64 low = vec_all(scores[0]), high = low;
    size_t i = 0;
    for (; i + PLR_LANES <= n; i += PLR_LANES) {
        vec_f64 v = vec_load(scores + i);
        low = vec_min_f64(v, low);
        high = vec_max_f64(v, high);
    }
    for (; i < n; i++) {
        low[0] = smaller(scores[i], low[0]);
        high[0] = larger(scores[i], high[0]);
    }
    *lowest = vec_smallest(low);
    *highest = vec_largest(high);
}

static double relative(const double *scores, double highest, double sign, double *out, size_t n)
{
    size_t i = 0;
    vec_f64 total = {0}, lost = {0}; /* differences to the total may be a thousand times smaller than it is */
    for (; i + PLR_LANES <= n; i += PLR_LANES) {
        vec_f64 weight = vec_exp((vec_load(scores + i) - highest) * sign), sum = total + weight;
        vec_store(out + i, weight);
        lost += weight - (sum - total);
        total = sum;
    }
    if (i < n) {
        vec_f64 last = vec_exp((vec_load_some(scores + i, n - i, highest) - highest) * sign);
        vec_store_some(out + i, last, n - i);
        for (size_t lane = 0; i + lane < n; lane++)
            total[lane] += last[lane];
    }
    return vec_sum(total) + vec_sum(lost);
}

static double sum_of_squares(const double *weights, size_t n)
{
    vec_f64 sum = {0};
    for (size_t i = 0; i < n; i += PLR_LANES) {
        vec_f64 w = vec_load_some(weights + i, n - i, 0.0);
        sum += w * w;
    }
    return vec_sum(sum);
}

/* Add one item to [count, mass] of its octave. */
PLR_INLINE void enter_octave(vec_pair *octaves, size_t n_octaves, double weight)
{
    uint64_t bits;
    memcpy(&bits, &weight, sizeof bits);
    size_t octave = (size_t)(1023 - (bits >> 52));
    octaves[octave < n_octaves ? octave : n_octaves - 1] += (vec_pair){1.0, weight};
}

/* Even and odd items have separate sums for each octave, so that an addition need not wait for the one before. */
static void sort_into_octaves(const double *weights, size_t n, double spread, weight_octaves *octaves)
{
    const double deepest = spread * 1.4426950408889634 + 2.0;
    const size_t n_octaves = deepest < PLR_OCTAVES ? (size_t)deepest : PLR_OCTAVES;
    vec_pair even[PLR_OCTAVES], odd[PLR_OCTAVES];
    /* expected_arrivals reads whole registers of the sums */
    const size_t cleared = (n_octaves + PLR_LANES - 1) / PLR_LANES * PLR_LANES;
    for (size_t i = 0; i < cleared; i++)
        even[i] = odd[i] = (vec_pair){0};
    size_t d = 0;
    for (; d + 2 <= n; d += 2) {
        enter_octave(even, n_octaves, weights[d]);
        enter_octave(odd, n_octaves, weights[d + 1]);
    }
    if (d < n)
        enter_octave(even, n_octaves, weights[d]);
    octaves->n = n_octaves;
    for (size_t i = 0; i < cleared; i++) {
        vec_pair sums = even[i] + odd[i];
        octaves->count[i] = sums[0];
        octaves->mass[i] = sums[1];
    }
}

/* Newton's method on the concave sum of 1 - exp(-w t), which approaches the root from below. */
static arrivals expected_arrivals(const weight_octaves *octaves, double wanted, double latest)
{
    arrivals result = {0.0, 0.0, 0.0};
    double arrived = 0.0, total = 0.0;
    for (size_t i = 0; i < octaves->n; i++)
        total += octaves->mass[i];
    result.time = wanted / total;
    while (result.time < latest) {
        vec_f64 waiting = {0}, rate = {0}, spread = {0}, everyone = {0};
        for (size_t i = 0; i < octaves->n; i += PLR_LANES) {
            vec_f64 count = vec_load(octaves->count + i), mass = vec_load(octaves->mass + i);
            vec_f64 weight = mass / vec_select(count > 0.0, count, vec_all(1.0));
            vec_f64 still = vec_exp_flush(weight * -result.time);
            waiting += count * still;
            spread += count * still * (1.0 - still);
            rate += mass * still;
            everyone += count;
        }
        result.rate = vec_sum(rate);
        result.variance = vec_sum(spread);
        arrived = vec_sum(everyone) - vec_sum(waiting);
        if (arrived > wanted - 0.02 * wanted)
            return result;
        result.time += (wanted - arrived) / result.rate;
    }
    result.time = INFINITY;
    return result;
}

const weights_kernels ISA(weights_kernels) = {extremes, relative, sum_of_squares, sort_into_octaves, expected_arrivals};
