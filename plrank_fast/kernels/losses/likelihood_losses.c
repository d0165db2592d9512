#include "losses/likelihood_losses.h"

#include <float.h>

#include "simd/vector_math.h"

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

static double sum_of_logarithms(const double *x, size_t n)
{
    vec_f64 total = {0};
    for (size_t i = 0; i < n; i += PLR_LANES)
        total += vec_log(vec_load_some(x + i, n - i, 1.0));
    return vec_sum(total);
}

const likelihood_kernels ISA(likelihood_kernels) = {logistic, exponentials, sum_of_logarithms};
