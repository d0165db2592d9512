/* Exact expected metric under Plackett-Luce, its gradient and Hessian diagonal, by quadrature over arrival times. */
#ifndef PLR_EXACT_H
#define PLR_EXACT_H

#include "isa.h"

/* How a long query gives up: `interrupted`, unless NULL, is asked now and then, and once it said yes, `stopped` stays
 * set, nothing more is computed and the outputs mean nothing. */
typedef struct {
    int (*interrupted)(void);
    int stopped;
    double work; /* since it was last asked */
} patience;

typedef struct {
    intptr_t D, K;             /* items; rank weights (may exceed D) */
    const double *scores, *relevance, *rank_weights;
    double rtol;
    double *gradient, *hessian; /* (D,), either may be NULL */
    double *probabilities;      /* (D, columns), instead of the above; relevance and rank_weights are then not read */
    intptr_t columns;
    patience patience;
    double value;               /* out */
    int attempts, nodes;        /* out: how often the nodes were chosen anew, how many there were in the end */
} exact_query;

enum { PLR_EXACT_GRADIENT, PLR_EXACT_PROBABILITIES, PLR_EXACT_NORMAL }; /* purposes of a workspace */

typedef struct {
    void (*prepare)(void);                         /* tables of this level, once per process */
    size_t (*workspace)(intptr_t D, intptr_t K, int purpose); /* bytes, for the longest list and the largest K */
    void (*solve)(exact_query *query, void *workspace);
    void (*rank_probabilities)(exact_query *query, void *workspace);
    /* As solve, for the ranking by scores with independent normal noise; promises of sigma times the gradient. */
    void (*solve_normal)(exact_query *query, double inverse_sigma, void *workspace);
} exact_kernels;

PLR_DECLARE_KERNELS(exact_kernels)

#endif
