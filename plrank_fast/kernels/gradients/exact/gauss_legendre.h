/* Gauss-Legendre rules on [0, 1], mapped so that their nodes are nearly evenly spaced. */
#ifndef PLR_GAUSS_LEGENDRE_H
#define PLR_GAUSS_LEGENDRE_H

#include "simd/isa.h"

#define MOST_NODES 512

/* Gauss-Legendre nodes x are dense at both ends. The nodes of these rules are (24 x + 3 x^3 + x^5) / 28, which are
 * spaced more evenly. Any odd polynomial would do; this one needs nearly the least nodes (docs/numerics.md). */
#define SPREAD_1 (1 - SPREAD_3 - SPREAD_5)
#define SPREAD_3 (3.0 / 28)
#define SPREAD_5 (1.0 / 28)

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
