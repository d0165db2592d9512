/* One query of the exact kernel: what is asked, and what is answered. */
#ifndef PLR_EXACT_QUERY_H
#define PLR_EXACT_QUERY_H

#include <stdint.h>

#include "runtime/parallel_loop.h"

typedef struct {
    intptr_t D, K;             /* items; rank weights (may exceed D) */
    const double *scores, *relevance, *rank_weights;
    double rtol;
    double inverse_sigma;      /* of the noise: a score less the highest is multiplied by it */
    int normal;                 /* whether the noise is normal; it is Gumbel noise otherwise */
    double *gradient, *hessian; /* (D,), either may be NULL */
    double *probabilities;      /* (D, columns), instead of the above; relevance and rank_weights are then not read */
    intptr_t columns;
    cancellation cancellation;
    parallel_loop loop;        /* threads to share the work among; results do not depend on it */
    double value;               /* out */
    double missed;              /* out: the tolerance that was reached, by the check, where it is above rtol; else 0 */
    int attempts, nodes;        /* out: how often nodes were chosen, how many there were in all */
} exact_query;

enum { PLR_EXACT_GRADIENT, PLR_EXACT_PROBABILITIES, PLR_EXACT_NORMAL }; /* purposes of a workspace */

#endif
