/* Conditional Monte Carlo: the gradient of each item given the order of all others, integrated over its own
 * position. */
#ifndef PLR_CONDITIONAL_H
#define PLR_CONDITIONAL_H

#include "runtime/cancellation.h"
#include "simd/isa.h"

/* The sums of one ranking that all items share. S_j and R_j are sums of w and of w rho over the items not in the first
 * j places, j = 0..K; drop_j is the rank weight of place j minus the weight of place j + 1. */
typedef struct {
    size_t cutoff;
    double *sums;         /* (K + 1,) S */
    double *inverse_sums; /* (K,) 1 / S */
    double *gains;        /* (K + 1,) R */
    double *means;        /* (K,) R / S */
    double *drops;        /* (K,) */
    cancellation *stop;   /* checked now and then; once requested, the outputs are undefined */
} conditional_ranking;

typedef struct {
    double weight, gain, heaviest;
} conditional_sums;

enum { PLR_NODES = 32 };

/* Gradient and Hessian of an unplaced item, w (rho G(w) + M(w)), as Chebyshev series of G and M. */
typedef struct {
    double heaviest; /* they hold for weights up to this one */
    double slope[2][PLR_NODES], level[2][PLR_NODES];
} conditional_series;

typedef struct {
    /* Interpolate what unplaced items of at most a weight get, with their Hessian or without; return whether the series
     * resolve it. */
    int (*interpolate)(const conditional_ranking *ranking, double heaviest, int with_hessian,
                       conditional_series *series);
    /* Add to gradient[i] and, if hessian is not NULL, hessian[i] of n items what the ranking gives them if it does not
     * place them, by series unless that is NULL. */
    void (*add_unplaced)(const conditional_ranking *ranking, const conditional_series *series, const double *weights,
                         const double *relevance, size_t n, double *gradient, double *hessian);
    /* Set the entries of the items that it places: weights[k] belongs to the item at rank k. */
    void (*placed)(const conditional_ranking *ranking, const double *weights, const double *relevance, double *gradient,
                   double *hessian);
    /* Return w and w rho summed over n items, and the largest w. */
    conditional_sums (*sum)(const double *weights, const double *relevance, size_t n);
} conditional_kernels;

PLR_DECLARE_KERNELS(conditional_kernels)

#endif
