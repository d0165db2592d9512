#include "weights.h"
#include "vector_math.h"

static void relative(const double *scores, double highest, double sign, double *out, size_t n)
{
    size_t i = 0;
    for (; i + PLR_LANES <= n; i += PLR_LANES)
        vec_store(out + i, vec_exp((vec_load(scores + i) - highest) * sign));
    if (i < n) {
        vec_f64 last = highest + (vec_f64){0};
        memcpy(&last, scores + i, (n - i) * sizeof(double));
        last = vec_exp((last - highest) * sign);
        memcpy(out + i, &last, (n - i) * sizeof(double));
    }
}

const weights_kernels ISA(weights_kernels) = {relative};
