/* The quadrature nodes of an integral over exponential arrival times.
 *
 * Item j arrives at an Exp(w_j) time. It has arrived by t with probability p_j = 1 - exp(-w_j t); q_j = 1 - p_j. The
 * integrands are concentrated where the first K arrivals happen: Lambda(t) = sum p_j arrivals are expected by t, with
 * variance V = sum p_j q_j. On the axis ln t the integrands change over a width of sqrt(V) / Lambda', Lambda' = dLambda
 * / d ln t, so the density of nodes must be proportional to b, the largest Lambda' / sqrt(V). The map
 *
 *     t = t0 + (b sinh v)^2 / S,   0 <= v <= asinh(sqrt(S (t1 - t0)) / b),   S = sum of the weights
 *
 * makes v grow like sqrt(t) at the start, where arrivals are Poisson (sqrt makes their width constant), and like log(t)
 * later.
 */
#ifndef PLR_QUADRATURE_PLAN_H
#define PLR_QUADRATURE_PLAN_H

#include <math.h>

#include "gradients/exact/gauss_legendre.h"
#include "gradients/exact/score_histogram.h"

/* Absolute tolerances: of the quadrature, for an integral of order 1, and of the loss after the end of the integral, in
 * units of R (tail_bound.h). */
typedef struct {
    double nodes, cut;
    int derivatives;  /* 0 for the value alone, 1 with the gradient, 2 with the Hessian diagonal */
} tolerances;

typedef struct {
    int pieces, nodes;      /* pieces of equal length in v, each of so many nodes */
    int ended;              /* no rank <= K is left open after the last node */
    double order;           /* the error is this power of that of half as many nodes, by the bound of the plan */
    double t0, b, S, v_end; /* of the map */
    double time[MOST_NODES], weight[MOST_NODES], finest[MOST_NODES]; /* of one piece */
} quadrature_plan;

/* Norms of the gradient and of the diagonal of the Hessian for which nodes are planned, over max |theta| max |rho|. If
 * the actual norms are smaller, the check repeats the attempt. */
#define NORM_OF_GRADIENT 0.1
#define NORM_OF_HESSIAN 0.01
#define MOST_ORDER 4.0

/* Return -ln of the allowed absolute error of an integral of order 1. */
static inline double nats_wanted(tolerances tolerance)
{
    const double norm = tolerance.derivatives > 1 ? NORM_OF_HESSIAN : tolerance.derivatives > 0 ? NORM_OF_GRADIENT : 1;
    return -log(norm * tolerance.nodes);
}

/* Return the power by which the error of all nodes follows from that of half of them, from the nats of either: 2 where
 * the integrand has a pole, 4 if it is a Gaussian bump. */
static inline double order_of_errors(double nats_of_all, double nats_of_half)
{
    const double order = nats_of_all / nats_of_half;
    return order < 2 ? 2 : order < MOST_ORDER ? order : MOST_ORDER;
}

#define prepare_exponential_table ISA(prepare_exponential_table)
#define plan_quadrature ISA(plan_quadrature)
#define place_nodes ISA(place_nodes)

/* Fill the table of exponential arrivals, once per process. */
void prepare_exponential_table(void);
/* Plan the integral over [t0, t1] (if t1 is infinite, it ends where no arrival of rank <= K is left). `histogram` is
 * that of -f, with f relative to its maximum; S is the sum of the weights; K ranks are still to be filled. */
void plan_quadrature(const score_histogram *histogram, double S, double K, double t0, double t1, tolerances tolerance,
                     quadrature_plan *plan);
/* Set time, weight and finest pattern of the nodes of one piece. */
void place_nodes(quadrature_plan *plan, int piece);

#endif
