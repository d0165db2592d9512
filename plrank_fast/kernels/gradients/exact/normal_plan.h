/* The quadrature nodes of an integral over normal arrival times: item j arrives at -u_j, u_j ~ N(f_j, 1).
 *
 * The map t = t0 + scale sinh v makes nodes dense around t0, where arrivals are the most crowded, and spaces them
 * further apart away from it. The rule and the bound of its error are those of quadrature_plan.h.
 */
#ifndef PLR_NORMAL_PLAN_H
#define PLR_NORMAL_PLAN_H

#include "gradients/exact/quadrature_plan.h"

#define REACH 10.0 /* sigmas from its score beyond which an item arrives with probability 1e-23 */

#define prepare_normal_table ISA(prepare_normal_table)
#define plan_normal ISA(plan_normal)

/* Fill the table of normal arrivals, once per process. */
void prepare_normal_table(void);
/* Plan the integral over those times in [from, until], either of which may be infinite, at which arrivals of n items
 * fill ranks. */
void plan_normal(const score_histogram *histogram, const panel_gains *gains, double n, double from, double until,
                 const tolerances *tolerance, quadrature_plan *plan);

#endif
