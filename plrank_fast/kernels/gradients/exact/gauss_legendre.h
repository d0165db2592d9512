/* Gauss-Legendre rules on [0, 1], mapped so that their nodes are nearly evenly spaced. */
#ifndef PLR_GAUSS_LEGENDRE_H
#define PLR_GAUSS_LEGENDRE_H

#include <math.h>

#include "simd/isa.h"
#include "simd/vectors.h"

#define MOST_NODES 512

/* Gauss-Legendre nodes x are dense at both ends. The nodes of these rules are (24 x + 3 x^3 + x^5) / 28, which are
 * spaced more evenly. Any odd polynomial would do; this one needs nearly the least nodes (docs/numerics.md). */
#define SPREAD_1 (1 - SPREAD_3 - SPREAD_5)
#define SPREAD_3 (3.0 / 28)
#define SPREAD_5 (1.0 / 28)

typedef struct {
    const double *node, *weight; /* nodes ascend */
} quadrature_rule;

/* Numbers of nodes are multiples of 8 up to 128 and of 32 up to 512, at every SIMD level. */
enum { FINE_STEP = 8, FINE_RULES = 16, COARSE_STEP = 32, COARSE_RULES = 12, FINE_NODES = FINE_STEP * FINE_RULES };
#define SUM_TO(n) ((n) * ((n) + 1) / 2)
#define ALL_NODES                                                                     \
    (FINE_STEP * SUM_TO(FINE_RULES) + FINE_NODES * COARSE_RULES + COARSE_STEP * SUM_TO(COARSE_RULES))

static quadrature_rule rules[FINE_RULES + COARSE_RULES]; /* filled by prepare_gauss_legendre, read-only afterwards */
static double rule_storage[2 * ALL_NODES];

/* Return the least number of nodes that has a rule and is at least `wanted`. */
static int rounded_nodes(double wanted)
{
    int nodes = wanted < MOST_NODES ? (int)ceil(wanted) : MOST_NODES;
    if (nodes <= FINE_NODES)
        return nodes <= FINE_STEP ? FINE_STEP : (nodes + FINE_STEP - 1) / FINE_STEP * FINE_STEP;
    return (nodes + COARSE_STEP - 1) / COARSE_STEP * COARSE_STEP;
}

/* Return the rule with `nodes` nodes, a number from rounded_nodes. */
static quadrature_rule gauss_legendre(int nodes)
{
    return rules[nodes <= FINE_NODES ? nodes / FINE_STEP - 1 : FINE_RULES - 1 + (nodes - FINE_NODES) / COARSE_STEP];
}

static void fill_rule(int nodes, double *node, double *weight)
{
    for (int i = 0; i < nodes; i += PLR_LANES) {
        lanes z, slope = {0};
        for (int lane = 0; lane < PLR_LANES; lane++)
            z[lane] = -cos(M_PI * (i + lane + 0.75) / (nodes + 0.5));
        for (int digits = 2; digits < 32; digits *= 2) { /* two are correct at first */
            lanes p1 = vec_all(1), p2 = {0};
            for (int j = 0; j < nodes; j++) {
                const double inverse = 1 / (j + 1.0);
                const lanes p3 = p2;
                p2 = p1;
                p1 = ((2 * j + 1) * inverse * z) * p2 - (j * inverse) * p3;
            }
            slope = nodes * (z * p1 - p2) / (z * z - 1.0);
            z -= p1 / slope;
        }
        const lanes z2 = z * z, x = z * (SPREAD_1 + z2 * (SPREAD_3 + z2 * SPREAD_5));
        const lanes dx = SPREAD_1 + z2 * (3 * SPREAD_3 + z2 * 5 * SPREAD_5);
        vec_store(node + i, (1.0 + x) / 2.0);
        vec_store(weight + i, dx / ((1.0 - z * z) * slope * slope));
    }
}

/* Compute all rules, once per process. */
static void prepare_gauss_legendre(void)
{
    double *free_storage = rule_storage;
    for (int i = 0; i < FINE_RULES + COARSE_RULES; i++) {
        int nodes = i < FINE_RULES ? FINE_STEP * (i + 1) : FINE_NODES + COARSE_STEP * (i - FINE_RULES + 1);
        double *node = free_storage, *weight = node + nodes;
        fill_rule(nodes, node, weight);
        rules[i] = (quadrature_rule){node, weight};
        free_storage += 2 * nodes;
    }
}

#endif
