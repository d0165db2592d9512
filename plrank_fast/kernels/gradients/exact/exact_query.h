/* One query of the exact kernel: its inputs and outputs. */
#ifndef PLR_EXACT_QUERY_H
#define PLR_EXACT_QUERY_H

#include <stdint.h>

#include "runtime/parallel_loop.h"

typedef struct {
    intptr_t D, K;             /* items; rank weights, or columns of probabilities (may exceed D) */
    const double *scores, *relevance, *rank_weights;
    const double *stop;        /* (D,) chance that a reader stops at each item, or NULL for 0 */
    double rtol;
    double inverse_sigma;      /* 1 over the scale of the noise, which multiplies scores minus the highest */
    int law;                    /* law of arrival (law.h), 0 for Gumbel noise */
    double *gradient, *hessian; /* (D,), either may be NULL */
    const double *direction;    /* (D,) of magnitude 1 or less, or NULL: `hessian` is then the product with it */
    int average_precision;      /* it replaces the metric of rank_weights, which is NULL; relevance is 0 or 1 */
    int exposure;               /* whether `gradient` is by relevance (then all 1) and not by scores: the exposure */
    double *probabilities;      /* (D, K), in place of the above; relevance and rank_weights are then unused */
    cancellation cancellation;
    parallel_loop loop;        /* threads that share the work; results do not depend on it */
    double value;               /* out */
    double missed;              /* out: the tolerance reached, by the check, if it is above rtol; else 0 */
    int attempts, nodes;        /* out: number of attempts, and of nodes in all of them */
} exact_query;

#endif
