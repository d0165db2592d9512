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

/* The errors that an attempt allows: of the quadrature in each panel, at least `allowed` and `per_flux` times the
 * gradient_flux (arrival_profile.h) when rank K is filled, to which the norm of a gradient is proportional; and of the
 * loss after the end of the integral, in units of R (tail_bound.h). */
typedef struct {
    double allowed[INTEGRALS], per_flux[INTEGRALS], cut;
    double unit;      /* variation of the rank weights times the largest relevance that is integrated */
    int derivatives;  /* 0 for the value alone, 1 with the gradient, 2 with the Hessian diagonal */
} tolerances;

/* The flux of a panel while rank K is expected to be open: the largest, at most 1, and the last step of time. */
typedef struct {
    double largest;
    int last_step;
} panel_flux;

/* Include the next step of time, by which `ahead` more items have arrived than fill the first K - 1 ranks. */
static inline void include_flux(panel_flux *flux, arrival_profile at, int step, double ahead)
{
    if (ahead > 1 && flux->largest > 0)
        return;
    flux->largest = larger(flux->largest, smaller(at.flux, 1));
    flux->last_step = step;
}

/* Return the error of the quadrature that a panel allows, for a gradient of this flux. */
static inline double allowed_error(const tolerances *tolerance, double flux, int integral)
{
    return larger(larger(tolerance->allowed[integral], tolerance->per_flux[integral] * flux), DBL_MIN);
}

typedef struct {
    int pieces, nodes;      /* pieces of equal length in v, each of so many nodes */
    int ended;              /* no rank <= K is left open after the last node */
    double accuracy;        /* allowed where the integrands are largest, relative to these */
    double error[INTEGRALS]; /* bounds of the panel's errors */
    double t0, b, S, v_end; /* of the map */
    double time[MOST_NODES], weight[MOST_NODES]; /* of one piece */
} quadrature_plan;

#define prepare_exponential_table ISA(prepare_exponential_table)
#define plan_quadrature ISA(plan_quadrature)
#define place_nodes ISA(place_nodes)

/* Fill the table of exponential arrivals, once per process. */
void prepare_exponential_table(void);
/* Plan the integral over [t0, t1] (if t1 is infinite, it ends where no arrival of rank <= K is left). `histogram` is
 * that of -f, with f relative to its maximum; S is the sum of the weights. */
void plan_quadrature(const score_histogram *histogram, const panel_gains *gains, double S, double t0, double t1,
                     const tolerances *tolerance, quadrature_plan *plan);
/* Set times and weights of the nodes of one piece. */
void place_nodes(quadrature_plan *plan, int piece);

#endif
