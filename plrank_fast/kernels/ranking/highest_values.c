#include "ranking/highest_values.h"

#include <math.h>

#include "simd/vectors.h"

static double highest_relevant(const double *scores, const double *relevance, size_t n)
{
    const vec_f64 none = vec_all(-INFINITY);
    vec_f64 highest = none;
    for (size_t i = 0; i < n; i += PLR_LANES) {
        vec_i64 relevant = vec_load_some(relevance + i, n - i, 0.0) > 0.0;
        highest = vec_max_f64(vec_select(relevant, vec_load_some(scores + i, n - i, 0.0), none), highest);
    }
    return vec_largest(highest);
}

static size_t count_above(const double *scores, double score, size_t n, size_t *n_tied)
{
    vec_i64 above = {0}, equal = {0};
    for (size_t i = 0; i < n; i += PLR_LANES) {
        vec_f64 other = vec_load_some(scores + i, n - i, -INFINITY);
        above -= other > score;
        equal -= other == score;
    }
    size_t n_above = *n_tied = 0;
    for (int lane = 0; lane < PLR_LANES; lane++) {
        n_above += (size_t)above[lane];
        *n_tied += (size_t)equal[lane];
    }
    return n_above;
}

static double next_lower(const double *values, double bound, size_t n, size_t *n_equal)
{
    const vec_f64 none = vec_all(-INFINITY);
    vec_f64 next = none;
    vec_i64 equal = {0};
    for (size_t i = 0; i < n; i += PLR_LANES) {
        vec_f64 value = vec_load_some(values + i, n - i, -INFINITY);
        equal -= value == bound;
        next = vec_max_f64(vec_select(value < bound, value, none), next);
    }
    *n_equal = 0;
    for (int lane = 0; lane < PLR_LANES; lane++)
        *n_equal += (size_t)equal[lane];
    return vec_largest(next);
}

const highest_values_kernels ISA(highest_values_kernels) = {highest_relevant, count_above, next_lower};
