/* The functions of vector_math.h over arrays, so that tests can check each of them. */
#ifndef PLR_VECTOR_FUNCTIONS_H
#define PLR_VECTOR_FUNCTIONS_H

#include "simd/isa.h"

/* Functions of one argument; those with two results write the second to a separate array. */
enum {
    PLR_VECTOR_EXP,
    PLR_VECTOR_EXP_FLUSH,
    PLR_VECTOR_EXPM1,
    PLR_VECTOR_ROUGH_EXP2,
    PLR_VECTOR_LOG,
    PLR_VECTOR_LOG1P_UNIT,
    PLR_VECTOR_ROUGH_LOG,
    PLR_VECTOR_ROUGH_ROOTS,
    PLR_VECTOR_NORMAL_TAIL, /* and the density */
    PLR_VECTOR_SIN_COS,     /* sine, and the cosine */
};

typedef struct {
    /* Evaluate a function at n arguments; n is a multiple of 8. */
    void (*evaluate)(int function, const double *x, double *first, double *second, size_t n);
} vector_functions_kernels;

PLR_DECLARE_KERNELS(vector_functions_kernels)

#endif
