/* Sums of the integrands over the nodes of a panel. */
#ifndef PLR_PANEL_INTEGRALS_H
#define PLR_PANEL_INTEGRALS_H

#include "gradients/exact/exact_query.h"
#include "gradients/exact/exact_panel.h"

#define integrate_panel ISA(integrate_panel)

/* Add the gradient and the Hessian diagonal of the panel's items to those of the query, those that are asked for, and
 * return its value. query_item: the query's item for each of the panel. */
double integrate_panel(panel *p, const exact_query *query, const intptr_t *query_item);

#endif
