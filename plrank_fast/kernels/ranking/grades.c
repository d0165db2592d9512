#include "ranking/grades.h"

#include "simd/vectors.h"

static int to_gains(double *grades, size_t n)
{
    vec_u64 seen = {0};
    for (size_t i = 0; i < n; i += PLR_LANES) {
        const vec_u64 grade = (vec_u64)(vec_load_some(grades + i, n - i, 0.0) + 0x1p52) & 255;
        const vec_u64 one_more = grade + 1;
        seen |= one_more | (grade & one_more) << 8;
        vec_store_some(grades + i, (vec_f64)((grade + 1023) << 52) - 1.0, n - i);
    }
    uint64_t all = 0;
    for (int lane = 0; lane < PLR_LANES; lane++)
        all |= seen[lane];
    return (int)all;
}

const grades_kernels ISA(grades_kernels) = {to_gains};
