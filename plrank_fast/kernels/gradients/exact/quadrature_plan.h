/* Where to put the quadrature nodes of an integral over exponential arrival times.
 *
 * Item j arrives at an Exp(w_j) time, p_j = 1 - exp(-w_j t) being the chance that it has arrived by t and q_j = 1 -
 * p_j. The integrands live where the first K arrivals happen: Lambda(t) = sum p_j arrivals are expected by t, with
 * variance V = sum p_j q_j. On a logarithmic axis of t they turn from "not yet" to "already" over a width of sqrt(V) /
 * Lambda', Lambda' = dLambda / d ln t, so nodes have to be that dense: b, the largest Lambda' / sqrt(V).
 *
 *     t = t0 + (b sinh v)^2 / S,   0 <= v <= asinh(sqrt(S (t1 - t0)) / b),   S = sum of the weights
 *
 * runs like sqrt(t) at the start, where arrivals are Poisson (sqrt makes their width constant), and like log(t) later.
 */
#ifndef PLR_QUADRATURE_PLAN_H
#define PLR_QUADRATURE_PLAN_H

#include <math.h>

#include "gradients/exact/gauss_legendre.h"
#include "gradients/exact/score_histogram.h"

/* Allowed errors, absolute: of the quadrature, for an integral of order 1, and what may be lost after the end of time,
 * in units of R (tail_bound.h). */
typedef struct {
    double nodes, cut;
    int derivatives;  /* that are asked for: 0 of the value alone, 2 with the Hessian diagonal */
} tolerances;

typedef struct {
    int pieces, nodes;      /* pieces of equal length in v, each of so many nodes */
    int ended;              /* no rank <= K is left open after the last node */
    double order;           /* power of what half as many nodes err by that all of them do, by the bound of the plan */
    double t0, b, S, v_end; /* of the map */
    double time[MOST_NODES], weight[MOST_NODES], finest[MOST_NODES]; /* of one piece */
} quadrature_plan;

/* Norms of the gradient and of the diagonal of the Hessian that nodes are planned for, over max |theta| max |rho|. Where
 * they turn out smaller, the check repeats the attempt. */
#define NORM_OF_GRADIENT 0.1
#define NORM_OF_HESSIAN 0.01
#define MOST_ORDER 3.5

/* Nats between what an integral of order 1 may err by and 1. */
static inline double nats_wanted(tolerances tolerance)
{
    const double norm = tolerance.derivatives > 1 ? NORM_OF_HESSIAN : tolerance.derivatives > 0 ? NORM_OF_GRADIENT : 1;
    return -log(norm * tolerance.nodes);
}

/* The power of what half of the nodes err by that all of them do, from the nats of either: 2 where the integrand has a
 * pole, 4 if it is a Gaussian bump, of which a part is believed. */
static inline double order_of_errors(double nats_of_all, double nats_of_half)
{
    const double order = nats_of_all / nats_of_half;
    return order < 2 ? 2 : order < MOST_ORDER ? order : MOST_ORDER;
}

#define prepare_exponential_table ISA(prepare_exponential_table)
#define plan_quadrature ISA(plan_quadrature)
#define place_nodes ISA(place_nodes)

/* The table of exponential arrivals, once per process. */
void prepare_exponential_table(void);
/* Plan the integral over [t0, t1] (t1 may be infinite: the end is then where no arrival of rank <= K is left).
 * histogram: of -f, f being relative to its maximum; S: sum of the weights; K: ranks still to fill. */
void plan_quadrature(const score_histogram *histogram, double S, double K, double t0, double t1, tolerances tolerance,
                     quadrature_plan *plan);
/* Time, weight and finest pattern of the nodes of one piece. */
void place_nodes(quadrature_plan *plan, int piece);

#endif
