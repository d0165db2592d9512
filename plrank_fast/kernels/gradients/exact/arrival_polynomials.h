/* P and B at a vector of times, the input of the evaluators. */
#ifndef PLR_ARRIVAL_POLYNOMIALS_H
#define PLR_ARRIVAL_POLYNOMIALS_H

#include "gradients/exact/exact_panel.h"

#define exponential_arrivals ISA(exponential_arrivals)
#define normal_arrivals ISA(normal_arrivals)

/* Compute the odds of each item and the coefficients of P and B that matter at node->time; set the rest of *node, which
 * has no coefficients if all ranks are filled by then. */
void exponential_arrivals(panel *p, node_vector *node);
void normal_arrivals(panel *p, node_vector *node);

#endif
