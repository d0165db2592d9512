/* Probability that tied items come first, in any order among themselves, by an integral over arrival times. */
#ifndef PLR_TIED_BUCKET_H
#define PLR_TIED_BUCKET_H

#include <stdint.h>

#include "simd/isa.h"

/* Items that arrive at times of Exp(w_i), tied, and later items, whose weights sum to W. */
typedef struct {
    intptr_t n;              /* tied items, at least one */
    const double *log_odds;  /* (n,) ln(w_i / W), any finite numbers */
    double *slope;           /* (n,) OUT: d ln P / d ln w_i; NULL: no derivatives are wanted */
    double *curvature;       /* (n,) OUT: d^2 ln P / d (ln w_i)^2; NULL: not wanted */
    int (*look)(void);       /* called now and then: whether to stop, for then the results do not matter; or NULL */
    double log_prob;         /* OUT: ln P */
    double slope_later;      /* OUT: d ln P / d ln W, which is minus the sum of `slope` */
    double curvature_later;  /* OUT: an item of the share a of W has the second derivative a slope_later + a^2 of this */
    int nodes;               /* OUT: of the quadrature, 0 where the solution is in closed form */
} tied_bucket;

typedef struct {
    /* Of so many doubles. */
    size_t (*workspace)(intptr_t n);
    void (*solve)(tied_bucket *bucket, double *workspace);
} tied_bucket_kernels;

PLR_DECLARE_KERNELS(tied_bucket_kernels)

#endif
