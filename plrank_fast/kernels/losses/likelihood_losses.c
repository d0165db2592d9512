#include "losses/likelihood_losses.h"

#include <float.h>
#include <math.h>

#include "simd/vector_math.h"

static double squared(const double *scores, const double *labels, double *gradient, size_t n)
{
    vec_f64 total = {0};
    for (size_t i = 0; i < n; i += PLR_LANES) {
        vec_f64 error = vec_load_some(scores + i, n - i, 0.0) - vec_load_some(labels + i, n - i, 0.0);
        total += error * error;
        vec_store_some(gradient + i, 2.0 * error, n - i);
    }
    return vec_sum(total);
}

static double logistic(const double *scores, const double *labels, double *gradient, size_t n)
{
    vec_f64 total = {0};
    for (size_t i = 0; i < n; i += PLR_LANES) {
        /* the lanes past the end get a score of -DBL_MAX and a label of 0, which add nothing */
        vec_f64 f = vec_load_some(scores + i, n - i, -DBL_MAX), y = vec_load_some(labels + i, n - i, 0.0);
        vec_f64 e = vec_exp_flush(-vec_abs(f));
        vec_i64 positive = f > 0.0;
        /* log(1 + exp(f)) = max(f, 0) + log(1 + exp(-|f|)); the select avoids inf - inf in the linear part at f =
         * 1e308 */
        total += vec_select(positive, (1.0 - y) * f, -y * f) + vec_log1p_unit(e);
        vec_store_some(gradient + i, vec_select(positive, vec_all(1.0), e) / (1.0 + e) - y, n - i);
    }
    return vec_sum(total);
}

static double exponentials(const double *x, double shift, double *out, size_t n)
{
    vec_f64 total = {0};
    for (size_t i = 0; i < n; i += PLR_LANES) {
        vec_f64 e = vec_exp_flush(vec_load_some(x + i, n - i, -DBL_MAX) - shift);
        /* the lanes past the end are exp(-huge) = 0, unless the shift is as low */
        vec_store_some(out + i, e, n - i);
        if (n - i >= PLR_LANES)
            total += e;
        else
            for (size_t lane = 0; lane < n - i; lane++)
                total[0] += e[lane];
    }
    return vec_sum(total);
}

static double softmax(const double *scores, const double *labels, double *gradient, size_t n)
{
    vec_f64 highest = vec_all(scores[0]), mass = {0}, value = {0};
    for (size_t i = 0; i < n; i += PLR_LANES) {
        highest = vec_max_f64(vec_load_some(scores + i, n - i, scores[0]), highest);
        mass += vec_load_some(labels + i, n - i, 0.0);
    }
    const double shift = vec_largest(highest), all_labels = vec_sum(mass);
    if (all_labels == 0.0)
        return 0.0;
    const double total = exponentials(scores, shift, gradient, n), log_total = log(total);
    const double per_label = 1.0 / all_labels, per_weight = 1.0 / total;
    for (size_t i = 0; i < n; i += PLR_LANES) {
        vec_f64 share = vec_load_some(labels + i, n - i, 0.0) * per_label;
        vec_f64 below = shift - vec_load_some(scores + i, n - i, shift); /* perhaps infinite */
        value += vec_keep(share > 0.0, share * (below + log_total));
        vec_store_some(gradient + i, vec_load_some(gradient + i, n - i, 0.0) * per_weight - share, n - i);
    }
    return vec_sum(value);
}

static double sum_of_logarithms(const double *x, size_t n)
{
    vec_f64 total = {0};
    for (size_t i = 0; i < n; i += PLR_LANES)
        total += vec_log(vec_load_some(x + i, n - i, 1.0));
    return vec_sum(total);
}

const likelihood_kernels ISA(likelihood_kernels) = {squared, logistic, softmax, exponentials,
                                                              sum_of_logarithms};
