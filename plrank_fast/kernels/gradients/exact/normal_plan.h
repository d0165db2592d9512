/* The quadrature nodes of an integral over normal arrival times: item j arrives at -u_j, u_j ~ N(f_j, 1).
 *
 * All integrands are entire functions that fall off like a normal density at both ends, for which the trapezoid rule
 * converges geometrically: for a bump of standard deviation s it errs by 2 exp(-2 (pi s / h)^2) at spacing h. On the
 * axis of time s is the standard deviation of the number of arrivals over its slope, sqrt(V) / Lambda', combined with
 * the width of the density factors, about 1 / sqrt(3) (measured: a product of two or three of them and of polynomials).
 * This is only a start: for many digits from few items, the growth of the integrand off the real axis decides, where it
 * is no Gaussian bump. At t + i y the coefficients of P are at most prod_j (|p_j| + |q_j|) in sum, a density grows by
 * e^(y^2 / 2), and the rule errs by at most exp(-2 pi y / h) of that for any y; the y that is best for Gaussian bumps
 * suffices. Early and late, where the integrand is small, fewer digits suffice. So each section of time has its own
 * spacing, and the map from steps of the rule to time is their sum with steps smoothed to logistic functions. It is
 * analytic in a strip, so the rule still converges geometrically.
 */
#ifndef PLR_NORMAL_PLAN_H
#define PLR_NORMAL_PLAN_H

#include "gradients/exact/quadrature_plan.h"

#define REACH 10.0 /* sigmas from its score beyond which an item arrives with probability 1e-23 */
#define SECTIONS (4 * (MOST_BINS + 80))

typedef struct {
    int sections;
    double begin;               /* time */
    intptr_t nodes;             /* a multiple of 8, at any SIMD level */
    double accuracy, error[INTEGRALS]; /* as in quadrature_plan.h */
    double softness;            /* of the logistic functions, per step of the rule */
    double width;               /* of a section, in units of time */
    double spacing[SECTIONS];   /* of each section */
    double border[SECTIONS + 1]; /* between section i and the one before, in steps of the rule */
} normal_plan;

#define prepare_normal_tables ISA(prepare_normal_tables)
#define plan_normal ISA(plan_normal)
#define place_normal_nodes ISA(place_normal_nodes)

/* Fill the tables of normal arrivals, once per process. */
void prepare_normal_tables(void);
/* Plan the integral over the times at which arrivals of n items fill ranks 1..K. */
void plan_normal(const score_histogram *histogram, double n, double K, const tolerances *tolerance, normal_plan *plan);
/* Place `count` of the nodes from the first on; count is a multiple of 8. */
void place_normal_nodes(const normal_plan *plan, intptr_t first, int count, double *time, double *weight);

#endif
