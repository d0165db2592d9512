/* Gauss-Legendre rules on [0, 1], mapped so that their nodes are nearly evenly spaced. */
#ifndef PLR_GAUSS_LEGENDRE_H
#define PLR_GAUSS_LEGENDRE_H

#include "simd/isa.h"

#define MOST_NODES 512

/* The arcsine series truncated after degree 5, over its sum at 1: the nodes are g(x) = SPREAD_1 x + SPREAD_3 x^3 +
 * SPREAD_5 x^5 at those of the Gauss-Legendre rule, which are dense at both ends. g spaces them more evenly. */
#define SPREAD_1 (120.0 / 149)
#define SPREAD_3 (20.0 / 149)
#define SPREAD_5 (9.0 / 149)

typedef struct {
    const double *node, *weight; /* nodes ascend */
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
