/* P(rank of j = m + 1) = integral of w_j q_j [z^m] P / L_j dt, for all items and ranks of a panel. */
#ifndef PLR_RANK_PROBABILITIES_H
#define PLR_RANK_PROBABILITIES_H

#include "gradients/exact/exact_query.h"
#include "gradients/exact/exact_panel.h"

/* P at one vector of nodes, kept for all items to divide by their factors. */
typedef struct {
    lanes time, weight;
    intptr_t low, high;
    lanes *P;
} kept_node;

/* Room for P at all nodes of a plan, `coefficients` for each vector, and for a quartet's sums, `most_sums` for each
 * thread. */
typedef struct {
    kept_node *nodes;
    size_t coefficients, most_sums;
    lanes *P, *sums;
} kept_nodes;

#define integrate_rank_probabilities ISA(integrate_rank_probabilities)

/* Add those of the panel's items to the query's. query_item: the query's item for each of the panel; the panel's first
 * rank is the one after `arrived` items. */
void integrate_rank_probabilities(panel *p, const kept_nodes *kept, const exact_query *query,
                                  const intptr_t *query_item, intptr_t arrived);

#endif
