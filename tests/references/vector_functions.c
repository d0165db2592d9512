/* The functions of kernels/simd/vector_math.h over arrays, whose lengths are multiples of 8. */
#include "simd/vector_math.h"

#define EVALUATE(name, ...)                                                   \
    void name(const double *x, double *first, double *second, size_t n)       \
    {                                                                         \
        for (size_t i = 0; i < n; i += PLR_LANES) {                           \
            vec_f64 here = vec_load(x + i), other = {0};                      \
            vec_store(first + i, __VA_ARGS__);                                \
            vec_store(second + i, other);                                     \
        }                                                                     \
    }

EVALUATE(exp_, vec_exp(here))
EVALUATE(exp_flush, vec_exp_flush(here))
EVALUATE(expm1_, vec_expm1(here))
EVALUATE(rough_exp2, vec_rough_exp2(here))
EVALUATE(log_, vec_log(here))
EVALUATE(log1p_unit, vec_log1p_unit(here))
EVALUATE(rough_log, vec_rough_log(here))
EVALUATE(rough_square_root_and_inverse, (other = vec_rough_inverse(here), vec_rough_sqrt(here)))
EVALUATE(normal_tail, vec_normal_tail(here, &other))
EVALUATE(sin_cos, vec_sin_cos(here, &other))
