/* The probability that tied items come first, in any order among themselves, by an integral over arrival times. */
#ifndef PLR_TIED_BUCKET_H
#define PLR_TIED_BUCKET_H

#include <stdint.h>

#include "simd/isa.h"

/* Tied items, which arrive at Exp(w_i) times, and later items, whose weights sum to W. */
typedef struct {
    intptr_t n;              /* tied items, at least one */
    const double *log_odds;  /* (n,) ln(w_i / W), any numbers */
    double *slope;           /* (n,) OUT: d ln P / d ln w_i; or NULL for no derivatives */
    double *curvature;       /* (n,) OUT: d^2 ln P / d (ln w_i)^2; or NULL */
    int (*look)(void);       /* called now and then; returns whether to stop, with undefined results; or NULL */
    double log_prob;         /* OUT: ln P */
    double slope_later;      /* OUT: d ln P / d ln W, which is minus the sum of `slope` */
    double curvature_later;  /* OUT: a later item of weight a W has second derivative a slope_later + a^2 times this */
} tied_bucket;

typedef struct {
    /* Return the number of doubles that the workspace of `solve` needs. */
    size_t (*workspace)(intptr_t n);
    void (*solve)(tied_bucket *bucket, double *workspace);
} tied_bucket_kernels;

PLR_DECLARE_KERNELS(tied_bucket_kernels)

#endif
