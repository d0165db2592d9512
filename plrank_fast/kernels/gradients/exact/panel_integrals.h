/* Sums of the integrands over the nodes of a panel. */
#ifndef PLR_PANEL_INTEGRALS_H
#define PLR_PANEL_INTEGRALS_H

#include "gradients/exact/exact_query.h"
#include "gradients/exact/exact_panel.h"

#define clear_sums ISA(clear_sums)
#define add_nodes ISA(add_nodes)
#define hand_out_sums ISA(hand_out_sums)

/* Call these in order: clear the sums, add the integrands at the nodes of the panel's plan, and add the sums to the
 * query. The last adds the requested gradient and Hessian diagonal of the panel's items to those of the query and
 * returns the panel's value. query_item maps the items of the panel to those of the query. */
void clear_sums(panel *p, const exact_query *query);
void add_nodes(panel *p, const exact_query *query);
double hand_out_sums(panel *p, const exact_query *query, const intptr_t *query_item);

#endif
