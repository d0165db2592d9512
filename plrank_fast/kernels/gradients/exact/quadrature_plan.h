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
 * later. The number of nodes follows from bounds of the error off the real axis, at each step of time and at the start
 * (docs/numerics.md).
 */
#ifndef PLR_QUADRATURE_PLAN_H
#define PLR_QUADRATURE_PLAN_H

#include <float.h>
#include <math.h>

#include "gradients/exact/arrival_profile.h"
#include "gradients/exact/gauss_legendre.h"

#define LEAST_NATS 8.0       /* of accuracy: a bound of larger errors says little */
#define LARGEST_EXPONENT 700.0 /* e^700 is near the largest double, e^-700 near the least */

/* Tolerances: of the quadrature, in the unit of error_check.h, the larger of `nodes` and `per_flux` times the flux
 * (arrival_profile.h) at rank K, to which the norm of a gradient is proportional; and of the loss after the end of the
 * integral, in units of R (tail_bound.h). */
typedef struct {
    double nodes, per_flux, cut;
    int derivatives;  /* 0 for the value alone, 1 with the gradient, 2 with the Hessian diagonal */
} tolerances;

/* The flux of a panel: ln of the largest, times a bound of the chance that a rank is open, and the flux when rank K is
 * filled. */
typedef struct {
    double log_largest, last;
} panel_flux;

static const panel_flux no_flux = {-LARGEST_EXPONENT, 0};

/* Include a step of time, by which `ahead` more items have arrived than fill the first K - 1 ranks. Returns ln of the
 * flux, at most 1, times a bound of P(N < K). */
static inline double include_flux(panel_flux *flux, arrival_profile at, double ahead)
{
    const double log_open = ahead > 0 ? -ahead * ahead / (2 * at.arrivals) : 0;
    const double log_flux = log(smaller(at.flux, 1)) + log_open;
    flux->log_largest = larger(flux->log_largest, log_flux);
    if (ahead <= 1 || flux->last == 0)
        flux->last = at.flux;
    return log_flux;
}

/* Return -ln of the error that a rule may have where an integrand is 1. */
static inline double nats_wanted(tolerances tolerance, panel_flux flux)
{
    const double allowed = larger(larger(tolerance.nodes, tolerance.per_flux * flux.last), DBL_MIN);
    return larger(LEAST_NATS, (tolerance.derivatives > 0 ? flux.log_largest : 0) - log(allowed));
}

typedef struct {
    int pieces, nodes;      /* pieces of equal length in v, each of so many nodes */
    int ended;              /* no rank <= K is left open after the last node */
    double accuracy, error; /* of the rule where an integrand is 1, and a bound of the panel's error */
    double t0, b, S, v_end; /* of the map */
    double time[MOST_NODES], weight[MOST_NODES]; /* of one piece */
} quadrature_plan;

#define prepare_exponential_table ISA(prepare_exponential_table)
#define plan_quadrature ISA(plan_quadrature)
#define place_nodes ISA(place_nodes)

/* Fill the table of exponential arrivals, once per process. */
void prepare_exponential_table(void);
/* Plan the integral over [t0, t1] (if t1 is infinite, it ends where no arrival of rank <= K is left). `histogram` is
 * that of -f, with f relative to its maximum; S is the sum of the weights; K ranks are still to be filled. */
void plan_quadrature(const score_histogram *histogram, double S, double K, double t0, double t1, tolerances tolerance,
                     quadrature_plan *plan);
/* Set times and weights of the nodes of one piece. */
void place_nodes(quadrature_plan *plan, int piece);

#endif
