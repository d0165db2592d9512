/* Gauss-Legendre rules on [0, 1], mapped so that their nodes are nearly evenly spaced. */
#ifndef PLR_GAUSS_LEGENDRE_H
#define PLR_GAUSS_LEGENDRE_H

#include "simd/isa.h"

#define MOST_NODES 512

/* Nodes are ascending. `finest` is the finest pattern that the nodes can resolve, of alternating sign: the rule's sum
 * of it times an integrand is, up to a factor, the divided difference of the integrand (as a function of the
 * Gauss-Legendre nodes) over all nodes. This is 0 for polynomials of degree up to nodes - 2, so its size measures how
 * poorly the nodes resolve the integrand. */
typedef struct {
    const double *node, *weight, *finest;
} quadrature_rule;

#define prepare_gauss_legendre ISA(prepare_gauss_legendre)
#define rounded_nodes ISA(rounded_nodes)
#define gauss_legendre ISA(gauss_legendre)

/* Compute all rules, once per process. */
void prepare_gauss_legendre(void);
/* Return the least number of nodes that has a rule and is at least `wanted`. */
int rounded_nodes(double wanted);
/* Return the rule with `nodes` nodes, a number from rounded_nodes. */
quadrature_rule gauss_legendre(int nodes);

#endif
