/* The quadrature nodes of an integral over normal arrival times: item j arrives at -u_j, u_j ~ N(f_j, 1).
 *
 * The map t = t0 + scale sinh v makes nodes dense around t0, where arrivals are the most crowded, and spaces them
 * further apart away from it. The rule and the bound of its error are those of quadrature_plan.h.
 */
#ifndef PLR_NORMAL_PLAN_H
#define PLR_NORMAL_PLAN_H

#include "gradients/exact/quadrature_plan.h"

#define REACH 10.0 /* sigmas from its score beyond which an item arrives with probability 1e-23 */

/* Constants of the map. The bound holds for any; these need nearly the least nodes (docs/numerics.md). */
#define STEEPNESS 0.4    /* of the integrands in v, relative to 1 / s^2 there */
#define LEAST_SCALE (1.0 / BINS_PER_NAT) /* a step of time */

/* Sigmas by which items may arrive later than those of the histogram, whose counts are split between bins
 * (docs/numerics.md). */
#define LATER_THAN_BINS 0.15

/* The table on the axis of time itself. prepare_normal_table fills it; it is read-only afterwards. */
static arrival_table normal_table = {.certain = REACH * BINS_PER_NAT};

/* Fill the table of normal arrivals, once per process. */
static void prepare_normal_table(void)
{
    arrival_table *table = &normal_table;
    for (int k = 0; k < PROFILE_TABLE; k++) {
        const double x = (double)(PROFILE_TABLE / 2 - k) / BINS_PER_NAT, y = smaller(20, larger(-20, x));
        table->p[k] = x < -20 ? 0 : 0.5 * erfc(-y * M_SQRT1_2);
        table->q[k] = 0.5 * erfc(y * M_SQRT1_2);
        table->hazard[k] = x < -20 ? 0 : DENSITY_AT_0 * exp(-0.5 * y * y) / table->q[k];
        table->lost[0][k] = table->hazard[k];
        table->lost[1][k] = table->hazard[k] * (1 + 0.5 * fabs(y));
    }
}

/* Choose the map of [begin, end] that needs about the least nodes, dense around the time of the most crowded arrivals;
 * return its b (best_eta). Before time 0, fewer digits matter. */
static double choose_map(const live_time *live, double begin, double end, double nats, time_map *map)
{
    double density[MOST_STEPS], densest = 0, best = 0, b = 0;
    map->law = PLR_NORMAL;
    for (int i = 0; i < live->steps; i++) {
        const double t = (double)(live->first + i) / BINS_PER_NAT, early = smaller(t, 0) / begin;
        density[i] = larger(0, 1 - early * early) + live->crowding[i];
        if (density[i] > densest) {
            densest = density[i];
            map->t0 = t;
        }
    }
    for (double scale = LEAST_SCALE; scale == LEAST_SCALE || scale < end - begin; scale *= M_SQRT2) {
        double steepest = 0;
        for (int i = 0; i < live->steps; i++) {
            const double off = (double)(live->first + i) / BINS_PER_NAT - map->t0;
            steepest = larger(steepest, density[i] * (scale * scale + off * off));
        }
        const double v_begin = asinh((begin - map->t0) / scale), v_end = asinh((end - map->t0) / scale);
        const double v_length = v_end - v_begin;
        const double eta = best_eta(sqrt(STEEPNESS * steepest), v_length, nats);
        if (eta <= best)
            continue;
        best = eta;
        b = sqrt(STEEPNESS * steepest);
        map->scale = scale;
        map->v_begin = v_begin;
        map->v_length = v_length;
    }
    return b;
}

/* Return a time before which a share of the loss at the end is lost. The bound is that of items that leave early
 * (exponential_panels.h): R (d + 2 K p) for an item with probability p, where d is the density, which the Hessian
 * diagonal multiplies by |y| <= 8 beside p > 1e-15. */
static double begin_of(const score_histogram *histogram, const live_time *live, double K)
{
    int step = live->first;
    for (; step < live->last_open; step++) {
        const arrival_profile at = profile_at(&normal_table, histogram, step);
        if (5 * at.slope + 2 * K * at.arrivals > SHARE_OF_ENDS * live->goals.cut)
            break;
    }
    return (double)(step - 1) / BINS_PER_NAT;
}

/* Plan the integral over those times in [from, until], either of which may be infinite, at which arrivals of n items
 * fill ranks. The plan ends after the time at which the loss of the histogram is within the tolerance. */
static void plan_normal(const score_histogram *histogram, const panel_gains *gains, double n, double from, double until,
                        const tolerances *tolerance, quadrature_plan *plan)
{
    const double K = (double)gains->K;
    const double earliest = larger(from, -sqrt(2 * (log(n * (1 + 2 * K)) - log(tolerance->cut))));
    const double last = smaller(until, (double)histogram->bins / BINS_PER_NAT + 12);
    live_time live;
    find_live_time(&normal_table, histogram, gains, (int)floor(earliest * BINS_PER_NAT), last, tolerance, &live);
    const double begin = larger(earliest, begin_of(histogram, &live, K));
    const double end = larger(smaller(live.end + LATER_THAN_BINS, last), begin + 1.0 / BINS_PER_NAT);
    plan->ended = live.ended;
    const double b = choose_map(&live, begin, end, live.goals.nats, &plan->map);
    choose_nodes(histogram, gains, &live.goals, b, plan);
    for (int i = 0; i <= gains->derivatives; i++)
        plan->error[i] += SHARE_OF_ENDS * live.goals.lost[i];
}

#endif
