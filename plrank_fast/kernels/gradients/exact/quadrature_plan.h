/* The quadrature nodes of an integral over exponential arrival times.
 *
 * Item j arrives at an Exp(w_j) time. It has arrived by t with probability p_j = 1 - exp(-w_j t); q_j = 1 - p_j. The
 * integrands are concentrated where the first K arrivals happen: Lambda(t) = sum p_j arrivals are expected by t, with
 * variance V = sum p_j q_j. On the axis ln t the integrands change over a width of sqrt(V) / Lambda', Lambda' = dLambda
 * / d ln t, so the density of nodes must be proportional to b, about the largest Lambda' / sqrt(V). The map
 *
 *     t = t0 + (b sinh v)^2 / S,   0 <= v <= asinh(sqrt(S (t1 - t0)) / b),   S = sum of the weights
 *
 * makes v grow like sqrt(t) at the start, where arrivals are Poisson (sqrt makes their width constant), and like log(t)
 * later. The number of nodes follows from a bound of the error (integrand_bound.h).
 */
#ifndef PLR_QUADRATURE_PLAN_H
#define PLR_QUADRATURE_PLAN_H

#include <float.h>
#include <math.h>

#include "gradients/exact/arrival_profile.h"
#include "gradients/exact/gauss_legendre.h"
#include "gradients/exact/integrand_bound.h"

#define MOST_STEPS (MOST_BINS + 80) /* of time */
#define SHARE_OF_ENDS 0.1 /* of an error: the loss after the end of a plan, and that at the borders of panels */

/* The errors that an attempt allows: in each panel, at least `allowed` and `per_flux` times the gradient_flux
 * (arrival_profile.h) when rank K is filled, to which the norm of a gradient is proportional; and at the borders
 * between panels, in units of R (tail_bound.h). */
typedef struct {
    double allowed[INTEGRALS], per_flux[INTEGRALS], cut;
    double R;         /* variation of the rank weights times the range of relevance, */
    double unit;      /* and times the largest relevance that is integrated */
    int derivatives;  /* 0 for the value alone, 1 with the gradient, 2 with the Hessian diagonal, */
    int product;      /* or with a product of the Hessian in its place */
} tolerances;

/* Return how many times R an integral loses if the loss is 1. */
static inline double losses_of(int integral)
{
    return integral == OF_HESSIAN ? 2 : 1;
}

/* The errors of the quadrature that a plan allows, and the loss after its end. */
typedef struct {
    double allowed[INTEGRALS];
    double nats;             /* of accuracy, where integrands are largest, that the most demanding integral takes */
    double cut;              /* the loss in units of R, */
    double lost[INTEGRALS];  /* and of each integral */
} plan_goals;

/* The steps of a plan's time from the first arrivals to where the loss falls below a tolerance. */
typedef struct {
    int first, steps;
    double crowding[MOST_STEPS]; /* at each: 1 / s^2, s being the width of arrivals, times the share of digits */
    double end;              /* on the axis of the bins */
    int ended;               /* no rank is left open at its end */
    double largest_flux;     /* while rank K is expected to be open, at most 1 */
    int last_open;           /* step at which it is */
    plan_goals goals;
} live_time;

typedef struct {
    int pieces, nodes;      /* pieces of equal length in v, each of so many nodes */
    int ended;              /* no rank <= K is left open after the last node */
    double accuracy;        /* allowed where the integrands are largest, relative to these */
    double error[INTEGRALS]; /* bounds of the panel's errors */
    time_map map;
    double time[MOST_NODES], weight[MOST_NODES]; /* of one piece */
} quadrature_plan;

#define prepare_exponential_table ISA(prepare_exponential_table)
#define find_live_time ISA(find_live_time)
#define best_eta ISA(best_eta)
#define choose_nodes ISA(choose_nodes)
#define plan_quadrature ISA(plan_quadrature)
#define place_nodes ISA(place_nodes)

/* Fill the table of exponential arrivals, once per process. */
void prepare_exponential_table(void);
/* Walk along steps of time from the given one to where the loss is what is allowed, or to the step of `last`. */
void find_live_time(const arrival_table *table, const score_histogram *histogram, const panel_gains *gains, int step,
                    double last, const tolerances *tolerance, live_time *live);
/* Return the eta that needs about the least nodes on an interval of this length in v on which arrivals have the width
 * 1 / b. */
double best_eta(double b, double v_length, double nats);
/* Divide plan->map into so few pieces that their nodes suffice, and set the plan's errors. */
void choose_nodes(const score_histogram *histogram, const panel_gains *gains, const plan_goals *goals, double b,
                  quadrature_plan *plan);
/* Plan the integral over [t0, t1] (if t1 is infinite, it ends where no arrival of rank <= K is left). `histogram` is
 * that of -f, with f relative to its maximum; S is the sum of the weights. */
void plan_quadrature(const score_histogram *histogram, const panel_gains *gains, double S, double t0, double t1,
                     const tolerances *tolerance, quadrature_plan *plan);
/* Set times and weights of the nodes of one piece. */
void place_nodes(quadrature_plan *plan, int piece);

#endif
