#include "simd/vector_functions.h"

#include "simd/vector_math.h"

static void evaluate(int function, const double *x, double *first, double *second, size_t n)
{
    for (size_t i = 0; i < n; i += PLR_LANES) {
        vec_f64 here = vec_load(x + i), other = {0}, result = {0};
        switch (function) {
        case PLR_VECTOR_EXP: result = vec_exp(here); break;
        case PLR_VECTOR_EXP_FLUSH: result = vec_exp_flush(here); break;
        case PLR_VECTOR_EXPM1: result = vec_expm1(here); break;
        case PLR_VECTOR_ROUGH_EXP2: result = vec_rough_exp2(here); break;
        case PLR_VECTOR_LOG: result = vec_log(here); break;
        case PLR_VECTOR_LOG1P_UNIT: result = vec_log1p_unit(here); break;
        case PLR_VECTOR_ROUGH_LOG: result = vec_rough_log(here); break;
        case PLR_VECTOR_ROUGH_ROOTS: result = vec_rough_sqrt(here), other = vec_rough_inverse(here); break;
        case PLR_VECTOR_NORMAL_TAIL: result = vec_normal_tail(here, &other); break;
        case PLR_VECTOR_SIN_COS: result = vec_sin_cos(here, &other); break;
        }
        vec_store(first + i, result);
        vec_store(second + i, other);
    }
}

const vector_functions_kernels ISA(vector_functions_kernels) = {evaluate};
