#include "losses/pair_losses.h"

#include <float.h>

#include "simd/vector_math.h"

static double precede(double score, const double *scores, double *gradient, double *own, size_t n)
{
    vec_f64 total = {0}, pushed = {0};
    for (size_t i = 0; i < n; i += PLR_LANES) {
        vec_f64 ahead = score - vec_load_some(scores + i, n - i, -DBL_MAX);
        vec_f64 e = vec_exp_flush(-vec_abs(ahead));
        vec_i64 in_order = ahead > 0.0;
        vec_f64 wrong = vec_select(in_order, e, vec_all(1.0)) / (1.0 + e); /* probability of the wrong order */
        vec_f64 loss = vec_log1p_unit(e) + vec_select(in_order, (vec_f64){0}, -ahead);
        if (n - i < PLR_LANES)
            for (size_t lane = n - i; lane < PLR_LANES; lane++)
                wrong[lane] = loss[lane] = 0.0;
        total += loss;
        pushed += wrong;
        vec_store_some(gradient + i, vec_load_some(gradient + i, n - i, 0.0) + wrong, n - i);
    }
    *own -= vec_sum(pushed);
    return vec_sum(total);
}

static double ranked(const ranked_documents *all, size_t document, const ranked_documents *lower, size_t first,
                     const double *distance, size_t n)
{
    const double score = all->scores[document], gain = all->gains[document], discount = all->discounts[document];
    const double *scores = lower->scores + first, *gains = lower->gains + first, *discounts = lower->discounts + first;
    double *gradient = lower->gradient + first;
    vec_f64 total = {0}, pushed = {0};
    for (size_t i = 0; i < n; i += PLR_LANES) {
        /* This is never negative, as the others rank lower; lanes past the end have equal gain, so weight 0. */
        vec_f64 ahead = score - vec_load_some(scores + i, n - i, score);
        vec_f64 more = gain - vec_load_some(gains + i, n - i, gain);
        vec_f64 weight = discount - vec_load_some(discounts + i, n - i, 0.0);
        if (distance)
            weight += vec_load_some(distance + i, n - i, 0.0);
        vec_f64 e = vec_exp_flush(-ahead);
        vec_i64 in_order = more > 0.0;
        vec_f64 one = vec_all(1.0);
        vec_f64 share = weight * more * vec_select(in_order, e, one) / (1.0 + e);
        total += weight * vec_abs(more) * (vec_log1p_unit(e) + vec_select(in_order, (vec_f64){0}, ahead));
        pushed += share;
        vec_store_some(gradient + i, vec_load_some(gradient + i, n - i, 0.0) + share, n - i);
    }
    all->gradient[document] -= vec_sum(pushed);
    return vec_sum(total);
}

const pair_kernels ISA(pair_kernels) = {precede, ranked};
