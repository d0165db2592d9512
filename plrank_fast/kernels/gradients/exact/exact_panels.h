/* From a query to panels.
 *
 * A panel is an interval of time with its own map of nodes. One panel serves a list without large gaps between
 * neighbouring scores. The weights in a panel are relative to its heaviest item, so that scores may be further apart
 * than the exponents of float64 reach.
 */
#ifndef PLR_EXACT_PANELS_H
#define PLR_EXACT_PANELS_H

#include "gradients/exact/exact_problem.h"

#define GAP 7.0          /* nats between neighbouring scores from which on a cut saves nodes */
/* Nats (sigmas with normal arrival times) that one panel may span. Shorter ones leave out more items that cannot arrive
 * in them, and have more nodes in all. The limit is 200: odds are finite up to e^700 (exact_panel.h), beside which
 * third powers of w t, at most e^600, must be negligible. */
#define WIDEST 30.0

#define integrate_exponential ISA(integrate_exponential)
#define integrate_normal ISA(integrate_normal)
#define integrate_compressed ISA(integrate_compressed)

/* Add the integrals to the outputs of the query and to problem->value, to within problem->tolerance, with exponential
 * and with normal arrival times. */
void integrate_exponential(exact_problem *problem);
void integrate_normal(exact_problem *problem);
/* Replace integrate_exponential for a long list: light items by proxies, the others one by one. Returns 0, and does
 * nothing, if compression does not apply: short lists, gaps between the scores, few light items, rank probabilities,
 * products with the Hessian. */
int integrate_compressed(exact_problem *problem);

#endif
