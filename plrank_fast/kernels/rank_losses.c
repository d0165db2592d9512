#include "rank_losses.h"
#include "vector_functions.h"

#define LOWEST -0x1.fffffffffffffp1023

static double logistic_rank(double score, const double *scores, double *slopes, size_t n)
{
    vec_f64 total = {0};
    for (size_t i = 0; i < n; i += PLR_LANES) {
        vec_f64 above = vec_load_some(scores + i, n - i, LOWEST) - score;
        vec_f64 e = vec_exp_flush(-vec_abs(above)), inverse = 1.0 / (1.0 + e);
        vec_f64 chance = vec_select(above > 0.0, inverse, e * inverse);
        if (n - i < PLR_LANES)
            for (size_t lane = n - i; lane < PLR_LANES; lane++)
                chance[lane] = 0.0;
        total += chance;
        vec_store_some(slopes + i, e * inverse * inverse, n - i);
    }
    return vec_sum(total);
}

static double add_slopes(double factor, const double *slopes, double *gradient, size_t n)
{
    vec_f64 total = {0};
    for (size_t i = 0; i < n; i += PLR_LANES) {
        vec_f64 share = factor * vec_load_some(slopes + i, n - i, 0.0);
        total += share;
        vec_store_some(gradient + i, vec_load_some(gradient + i, n - i, 0.0) + share, n - i);
    }
    return vec_sum(total);
}

/* One register of targets. The rank of a target counts those that beat it, one at a time and as if independent:
 * p_i(r) = p_{i-1}(r) (1 - beat_i) + p_{i-1}(r - 1) beat_i. All p_{i-1} are kept; going back, the derivatives a(r) of
 * the value by p_i(r) give that by beat_i. */
static double soft_rank_register(const double *scores, size_t n, const double *discounts, size_t cutoff,
                                 const int32_t *targets, size_t n_targets, const double *factors, double *memory,
                                 double *gradient)
{
    vec_f64 own, factor = {0}, value = {0}, zero = {0};
    vec_f64 *beat = (vec_f64 *)memory, *density = beat + n, *ranks = density + n, *a = ranks + n * cutoff;
    for (size_t t = 0; t < PLR_LANES; t++) {
        own[t] = scores[targets[t < n_targets ? t : 0]];
        if (t < n_targets)
            factor[t] = factors[t];
    }
    for (size_t i = 0; i < n; i++) {
        beat[i] = vec_normal(scores[i] - own, &density[i]);
        for (size_t t = 0; t < n_targets; t++)
            if (targets[t] == (int32_t)i)
                beat[i][t] = density[i][t] = 0.0;
    }
    for (size_t r = 0; r < cutoff; r++)
        ranks[r] = r == 0 ? zero + 1.0 : zero;
    for (size_t i = 0; i < n; i++) {
        const vec_f64 *p = ranks + i * cutoff;
        vec_f64 b = beat[i], before = zero;
        if (i + 1 == n) {
            for (size_t r = 0; r < cutoff; r++) {
                value += discounts[r] * (p[r] + b * (before - p[r]));
                before = p[r];
            }
        } else {
            vec_f64 *next = ranks + (i + 1) * cutoff;
            for (size_t r = 0; r < cutoff; r++) {
                next[r] = p[r] + b * (before - p[r]);
                before = p[r];
            }
        }
    }
    for (size_t r = 0; r < cutoff; r++)
        a[r] = zero + discounts[r];
    vec_f64 own_gradient = zero;
    for (size_t i = n; i-- > 0;) {
        const vec_f64 *p = ranks + i * cutoff;
        vec_f64 b = beat[i], slope = zero, before = zero;
        for (size_t r = 0; r < cutoff; r++) {
            slope += a[r] * (before - p[r]);
            before = p[r];
            a[r] += b * ((r + 1 < cutoff ? a[r + 1] : zero) - a[r]);
        }
        vec_f64 share = factor * slope * density[i];
        gradient[i] -= vec_sum(share);
        own_gradient += share;
    }
    for (size_t t = 0; t < n_targets; t++)
        gradient[targets[t]] += own_gradient[t];
    return vec_sum(factor * value);
}

static double soft_rank(const double *scores, size_t n, const double *discounts, size_t cutoff, const int32_t *targets,
                        size_t n_targets, const double *factors, double *memory, double *gradient)
{
    double total = 0.0;
    for (size_t first = 0; first < n_targets; first += PLR_LANES) {
        size_t here = n_targets - first < PLR_LANES ? n_targets - first : PLR_LANES;
        total += soft_rank_register(scores, n, discounts, cutoff, targets + first, here, factors + first, memory,
                                    gradient);
    }
    return total;
}

const rank_kernels ISA(rank_kernels) = {logistic_rank, add_slopes, soft_rank};
