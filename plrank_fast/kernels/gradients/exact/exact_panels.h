/* From a query to panels.
 *
 * A panel is a stretch of time with its own map of nodes. One panel serves a list without large gaps between
 * neighbouring scores. Every panel works with weights relative to its own heaviest item, so that scores may be further
 * apart than the exponents of float64 reach.
 */
#ifndef PLR_EXACT_PANELS_H
#define PLR_EXACT_PANELS_H

#include "gradients/exact/exact_problem.h"

#define SORTED_FROM 17   /* rank weights from which sorting the light items pays: their series differ in length */
#define GAP 7.0          /* nats between neighbouring scores from which a cut saves nodes */
/* Nats (with normal arrival times sigmas) that one panel may span. The odds go no further than e^700 (exact_panel.h), and
 * third powers of what those times the weight are, e^600 at most, have to be nothing beside that. */
#define WIDEST 200.0

#define integrate_exponential ISA(integrate_exponential)
#define integrate_normal ISA(integrate_normal)
#define integrate_compressed ISA(integrate_compressed)

/* Add to the outputs of the query and to problem->value, to within problem->tolerance: with exponential arrival times,
 * and with normal ones. */
void integrate_exponential(exact_problem *problem);
void integrate_normal(exact_problem *problem);
/* As integrate_exponential, for a long list: proxies in place of light items, the others one by one. Returns 0, having
 * done nothing, where that is not the way: short lists, gaps between the scores, hardly any light items, rank
 * probabilities. */
int integrate_compressed(exact_problem *problem);

#endif
