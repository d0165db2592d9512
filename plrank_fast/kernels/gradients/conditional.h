/* Conditional Monte Carlo: the gradient of each item given the order of all others, integrated over its own
 * position. */
#ifndef PLR_CONDITIONAL_H
#define PLR_CONDITIONAL_H

#include "runtime/cancellation.h"
#include "simd/isa.h"

/* The sums of one ranking that all items share. S_j and R_j are sums of w and of w rho over the items not in the first
 * j places, j = 0..K; drop_j is the rank weight of place j minus that of place j + 1. */
typedef struct {
    size_t cutoff;
    const double *sums;         /* (K + 1,) S */
    const double *inverse_sums; /* (K,) 1 / S */
    const double *gains;        /* (K + 1,) R */
    const double *means;        /* (K,) R / S */
    const double *drops;        /* (K,) */
    cancellation *stop;         /* checked now and then; once requested, the outputs are undefined */
} conditional_ranking;

typedef struct {
    /* Set gradient[i] and, if hessian is not NULL, hessian[i] of n items as if the ranking did not place them. Items
     * with weights above `heaviest`, that of the heaviest unplaced item, get undefined numbers. */
    void (*unplaced)(const conditional_ranking *ranking, const double *weights, const double *relevance, size_t n,
                     double heaviest, double *gradient, double *hessian);
    /* Set those of the items placed at ranks first, first + 1, ...: weights[i] is that of the item at rank first +
     * i. */
    void (*placed)(const conditional_ranking *ranking, const double *weights, const double *relevance, size_t first,
                   size_t n, double *gradient, double *hessian);
    /* Sum w and w rho over n items; the arrays hold n rounded up to whole vectors, padded with zeros. */
    void (*sum)(const double *weights, const double *relevance, size_t n, double *weight, double *gain);
} conditional_kernels;

/* Return whether `unplaced` interpolates, and so needs the heaviest item: below this size it takes longer to set up
 * than it saves. */
static inline int plr_conditional_interpolates(size_t n, size_t cutoff)
{
    return n >= 512 && cutoff >= 48;
}

PLR_DECLARE_KERNELS(conditional_kernels)

#endif
