/* Gains of whole grades, 2^grade - 1. */
#ifndef PLR_GRADES_H
#define PLR_GRADES_H

#include "simd/isa.h"

typedef struct {
    /* Replace grades, whole numbers from 0 to 200, by their gains; return the bits of grade + 1 of all, which are a
     * single one for grades that are gains themselves, with bits of at least 2^8 for others. */
    int (*to_gains)(double *grades, size_t n);
} grades_kernels;

PLR_DECLARE_KERNELS(grades_kernels)

#endif
