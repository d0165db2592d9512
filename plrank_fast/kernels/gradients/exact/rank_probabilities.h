/* P(rank of j = m + 1) = integral of w_j q_j [z^m] P / L_j dt, for all items and ranks of a panel. */
#ifndef PLR_RANK_PROBABILITIES_H
#define PLR_RANK_PROBABILITIES_H

#include "gradients/exact/exact_query.h"
#include "gradients/exact/exact_panel.h"

/* P at one vector of nodes, which is divided by the factor of each item. */
typedef struct {
    lanes time, weight;
    intptr_t low, high;
    lanes *P;
} kept_node;

/* Memory for P at all nodes of a plan, `coefficients` for each vector, and for the sums of a quartet, `most_sums` for
 * each thread. */
typedef struct {
    kept_node *nodes;
    size_t coefficients, most_sums;
    lanes *P, *sums;
} kept_nodes;

#define integrate_rank_probabilities ISA(integrate_rank_probabilities)

/* Add the probabilities of the panel's items to those of the query. query_item maps the items of the panel to those of
 * the query; the panel's first rank follows `arrived` items. */
void integrate_rank_probabilities(panel *p, const kept_nodes *kept, const exact_query *query,
                                  const intptr_t *query_item, intptr_t arrived);

#endif
