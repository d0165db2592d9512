/* Gauss-Legendre rules on [0, 1], their nodes spread nearly evenly. */
#ifndef PLR_GAUSS_LEGENDRE_H
#define PLR_GAUSS_LEGENDRE_H

#include "simd/isa.h"

#define MOST_NODES 512

/* Nodes ascending. `finest` is the finest pattern that the nodes can show, of alternating sign: the rule's sum of it
 * times an integrand is, up to a factor, the divided difference of the integrand (as a function of the Gauss-Legendre
 * nodes) over all nodes. That is 0 for polynomials of degree up to nodes - 2, so what is left measures how well the
 * integrand is resolved. */
typedef struct {
    const double *node, *weight, *finest;
} quadrature_rule;

#define prepare_gauss_legendre ISA(prepare_gauss_legendre)
#define rounded_nodes ISA(rounded_nodes)
#define gauss_legendre ISA(gauss_legendre)

/* Compute all rules, once per process. */
void prepare_gauss_legendre(void);
/* The least number of nodes, of those for which there is a rule, that is no less than wanted. */
int rounded_nodes(double wanted);
/* The rule of so many nodes, a number that rounded_nodes has given. */
quadrature_rule gauss_legendre(int nodes);

#endif
