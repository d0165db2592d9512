/* Where to put the quadrature nodes when arrival times are normal: item j arrives at -u_j, u_j ~ N(f_j, 1).
 *
 * All integrands are entire functions that fall off like a normal density at both ends, where the trapezoid rule
 * converges geometrically: of a bump of standard deviation s it errs by 2 exp(-2 (pi s / h)^2) at spacing h. On the
 * axis of time s is that of the number of arrivals over its slope, sqrt(V) / Lambda', combined with the width of the
 * densities that stand before it, about 1 / sqrt(3) (measured: a product of two or three of them and of polynomials).
 * That is the start only: many digits from few items are decided by how fast the integrand grows off the double axis,
 * where it is no Gaussian bump. At t + i y the coefficients of P are at most prod_j (|p_j| + |q_j|) in sum, a density
 * grows by e^(y^2 / 2), and the rule errs by exp(-2 pi y / h) of that for any y; the y that is best for Gaussian bumps
 * will do. Late and early, where a share of the integral is left that is small already, less is asked. So each
 * section of time has its own spacing, and the map from steps of the rule to time is their sum with steps smoothed to
 * logistic functions: analytic in a strip, and so the rule converges on it as well.
 */
#ifndef PLR_NORMAL_PLAN_H
#define PLR_NORMAL_PLAN_H

#include "gradients/exact/quadrature_plan.h"

#define SECTIONS (4 * (MOST_BINS + 80))

typedef struct {
    int sections;
    double begin;               /* time */
    double order;               /* power of what every other node errs by that all of them do */
    double softness;            /* of the logistic functions, per step of the rule */
    double width;               /* of a section, in units of time */
    double spacing[SECTIONS];   /* of each section */
    double border[SECTIONS + 1]; /* in steps of the rule, of section i and the one before */
} normal_plan;

#define prepare_normal_tables ISA(prepare_normal_tables)
#define plan_normal ISA(plan_normal)
#define count_normal_nodes ISA(count_normal_nodes)
#define place_normal_nodes ISA(place_normal_nodes)

/* The tables of normal arrivals, once per process. */
void prepare_normal_tables(void);
/* Plan the integral over the times at which arrivals of n items fill ranks 1..K; tolerance as for exponential
 * arrivals. */
void plan_normal(const score_histogram *histogram, double n, double K, tolerances tolerance, normal_plan *plan);
/* Nodes of the plan, a multiple of 8 at any SIMD level. */
intptr_t count_normal_nodes(const normal_plan *plan);
/* count nodes from the first on, of all; count is a multiple of 8. `finest` alternates: with it the sum over all nodes is
 * the difference of the two rules that have every other node. */
void place_normal_nodes(const normal_plan *plan, intptr_t all, intptr_t first, int count, double *time, double *weight,
                        double *finest);

#endif
