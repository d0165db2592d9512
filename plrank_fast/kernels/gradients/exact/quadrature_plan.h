/* The quadrature nodes of an integral over arrival times.
 *
 * The integrands are concentrated where the first K arrivals happen: Lambda = sum p_j arrivals are expected by a time,
 * with variance V = sum p_j q_j. They change over a width of s = sqrt(V) / Lambda', so the density of nodes must be
 * proportional to 1 / s where it is largest. Items that arrive at a rate have Poisson arrivals first; for them Lambda'
 * is the derivative by ln t, b^2 = 2 (1 + max 1 / s^2), and the map
 *
 *     t = t0 + (b sinh v)^2 / S,   0 <= v <= asinh(sqrt(S (t1 - t0)) / b),   S = sum of the weights
 *
 * makes v grow like sqrt(t) at the start, which makes the width of Poisson arrivals constant, and like ln t later. For
 * others the map t = t0 + scale sinh v makes nodes dense around t0, where arrivals are the most crowded, and spaces
 * them further apart away from it. The number of nodes follows from a bound of the error (integrand_bound.h).
 */
#ifndef PLR_QUADRATURE_PLAN_H
#define PLR_QUADRATURE_PLAN_H

#include <float.h>
#include <math.h>
#include <string.h>

#include "gradients/exact/arrival_profile.h"
#include "gradients/exact/gauss_legendre.h"
#include "gradients/exact/integrand_bound.h"
#include "gradients/exact/tail_bound.h"

#define SHARE_OF_ENDS 0.1 /* part of an error: loss after the end of a plan, and at the borders of panels */

/* The errors that an attempt allows: in each panel, at least `allowed` and `per_norm` times the norm_of_slope
 * (arrival_profile.h) when rank K is filled, to which the norm of a gradient is proportional; and at the borders
 * between panels, in units of R (tail_bound.h). */
typedef struct {
    double allowed[INTEGRALS], per_norm[INTEGRALS], cut;
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
    double nats;             /* accuracy where integrands are largest, for the most demanding integral */
    double cut;              /* the loss in units of R, */
    double lost[INTEGRALS];  /* and of each integral */
} plan_goals;

/* The steps of a plan's time from the first arrivals to where the loss falls below a tolerance. */
typedef struct {
    int first, steps;
    double crowding[PROFILE_TABLE / 2]; /* 1 / s^2 at each, s being the width of arrivals, times the share of digits */
    double end;              /* end of the plan on the axis of the bins */
    int ended;               /* no rank is left open at its end */
    double forecast;         /* forecast of the gradient's norm, only where readers stop */
    double largest_norm;     /* largest norm while rank K is expected to be open, at most 1 */
    int last_open;           /* step at which it is */
    plan_goals goals;
} plan_span;

typedef struct {
    int pieces, nodes;      /* pieces of equal length in v, each of so many nodes */
    int ended;              /* no rank <= K is left open after the last node */
    double accuracy;        /* allowed where the integrands are largest, relative to these */
    double error[INTEGRALS]; /* bounds of the panel's errors */
    time_map map;
    double time[MOST_NODES], weight[MOST_NODES]; /* the nodes of one piece */
} quadrature_plan;

/* Constants of the map and of the ellipse on which errors are bounded. The bound holds for any; these need nearly the
 * least nodes (docs/numerics.md). */
#define LARGEST_ETA 1.25
#define STEEPNESS 0.4 /* how steep integrands are in v, relative to 1 / s^2, for items without a rate */
#define UNPROVED 1.01 /* factor of the number of nodes, for what points of an ellipse and bins miss */

#define FILLED 0.9       /* part of the last rank that is filled where the expected norm is known, */
#define READ 8.0         /* as it is where the chance that a reader reads on has fallen by so many nats */

/* Return the bound of the loss; a product with the Hessian loses one order more (tail_bound.h). */
static tail_bound loss_of(const score_histogram *histogram, tail_bins bins, const panel_gains *gains, double *inverse_z)
{
    tail_bound loss = tail_bound_of(histogram, bins, gains->K - 1.0, inverse_z);
    if (gains->product)
        loss.log_loss += log((double)gains->K + 1 + loss.rate);
    return loss;
}

/* Return how far into a step the loss falls within the cut, if it is within it at the next step: the later of chord and
 * tangent, for one nat less because both are guesses, if the bound confirms it; else 1. */
static double steps_to_cut(const arrival_table *table, const score_histogram *histogram, const panel_gains *gains, int
                           step, tail_bound before, tail_bound after, double log_cut, double inverse_z)
{
    const double goal = log_cut - 1, tangent = 1 - (goal - after.log_loss) * BINS_PER_NAT / after.slope;
    const double steps = larger(tangent, (before.log_loss - goal) / (before.log_loss - after.log_loss));
    double p[MOST_BINS + PLR_LANES], q[MOST_BINS + PLR_LANES];
    if (!(steps < 1))
        return 1;
    const tail_bins between = tail_bins_after(table, histogram, step, steps, gains->derivatives, p, q);
    return loss_of(histogram, between, gains, &inverse_z).log_loss < log_cut ? steps : 1;
}

/* Set what the plan allows, once the norm of the gradient is known. */
static void set_goals(const arrival_table *table, const score_histogram *histogram, const panel_gains *gains, const
                      tolerances *tolerance, plan_span *span)
{
    const double norm = histogram->stops ? span->forecast
                                         : norm_of_slope(table, histogram, span->last_open, gains->exposure);
    plan_goals *goals = &span->goals;
    goals->nats = 1;
    goals->cut = SHARE_OF_ENDS;
    for (int i = 0; i <= gains->derivatives; i++) {
        const double all = larger(larger(tolerance->allowed[i], tolerance->per_norm[i] * norm), DBL_MIN);
        const double largest = tolerance->unit * (i ? larger(span->largest_norm, DBL_MIN) : 1);
        goals->allowed[i] = (1 - SHARE_OF_ENDS) * all;
        goals->nats = larger(goals->nats, log(largest / goals->allowed[i]));
        goals->cut = smaller(goals->cut, SHARE_OF_ENDS * all / losses_of(i) / tolerance->R);
    }
    for (int i = 0; i <= gains->derivatives; i++)
        goals->lost[i] = goals->cut * losses_of(i) * tolerance->R;
}

/* Return the variation of the rank weights over the ranks that these arrivals fill, after the ranks filled before. */
static double filled_weights(const panel_gains *gains, double arrivals, intptr_t *filled)
{
    double sum = 0;
    for (; *filled < gains->K && (double)*filled + 0.5 <= arrivals; ++*filled)
        sum += fabs(gains->delta[*filled]);
    return sum;
}

/* Walk in steps of time from the given one until the loss is allowed, or to the step of `last`. */
static void find_span(const arrival_table *table, const score_histogram *histogram, const panel_gains *gains, int step,
                      double last, const tolerances *tolerance, plan_span *span)
{
    const double earlier = (double)gains->K - 1;
    span->first = step;
    span->end = last;
    span->steps = span->ended = span->last_open = 0;
    span->largest_norm = span->goals.cut = span->forecast = 0;
    intptr_t filled = 0;
    double inverse_z = 1, log_cut = 0, reading_norm = 0;
    tail_bound before = {0};
    const double last_step = smaller(last * BINS_PER_NAT + 1, step + PROFILE_TABLE / 2);
    for (; step < last_step; step++) {
        const arrival_profile at = profile_at(table, histogram, step);
        const double ahead = at.arrivals - earlier;
        double share_of_nats = 0;
        const double reading = histogram->stops ? log_reading(table, histogram, step) : 0;
        if ((ahead <= FILLED && reading > -READ) || span->largest_norm == 0) {
            span->largest_norm = larger(span->largest_norm, smaller(at.norm, 1));
            span->last_open = step;
            if (histogram->stops) {
                reading_norm = exp(reading) * norm_of_slope(table, histogram, step, 0);
                span->forecast += reading_norm * filled_weights(gains, at.arrivals, &filled);
            }
        } else {
            if (span->goals.cut == 0) {
                if (histogram->stops)
                    span->forecast += reading_norm * filled_weights(gains, INFINITY, &filled);
                set_goals(table, histogram, gains, tolerance, span);
                log_cut = log(span->goals.cut);
            }
            const double inverse_before = inverse_z;
            tail_bound loss = {0};
            if (histogram->stops || ahead * ahead > -log_cut * at.variance || at.slope < span->goals.cut)
                loss = loss_of(histogram, tail_bins_at(table, histogram, step, gains->derivatives), gains, &inverse_z);
            if (loss.log_loss < log_cut) {
                const double steps =
                    steps_to_cut(table, histogram, gains, step - 1, before, loss, log_cut, inverse_before);
                span->end = (step - 1 + steps) / BINS_PER_NAT;
                span->ended = span->end < last;
                break;
            }
            before = loss;
            share_of_nats = larger(0, ahead) * ahead / (-2 * log_cut * at.arrivals);
        }
        const double steepness = at.slope * at.slope / larger(at.variance, DBL_MIN);
        span->crowding[span->steps++] = steepness * larger(0, 1 - share_of_nats);
    }
    if (span->goals.cut == 0)
        set_goals(table, histogram, gains, tolerance, span);
    span->end = smaller(span->end, last);
}

/* Return the eta that needs about the least nodes on an interval of this length in v on which arrivals have the width 1
 * / b. Gaussian integrands grow by the nats wanted, and phases of t turn by less than a right angle. */
static double best_eta(double b, double v_length, double nats)
{
    const double half = 0.5 * v_length, growth = LARGEST_ETA * b * half;
    return LARGEST_ETA / sqrt(1 + half * half + growth * growth / nats);
}

/* Return one of the plan's pieces, which have equal lengths in v. */
static time_map piece_of(const quadrature_plan *plan, int piece)
{
    time_map map = plan->map;
    map.v_length /= plan->pieces;
    map.v_begin += piece * map.v_length;
    return map;
}

/* Set log_error of each integral to ln of a bound of the errors of all pieces, times e^(2 n eta); return the number n
 * of nodes per piece that they need. */
static double nodes_wanted(const score_histogram *histogram, const panel_gains *gains, const double *allowed, const
                           quadrature_plan *plan, double eta, double log_error[INTEGRALS])
{
    double wanted = 0;
    for (int i = 0; i <= gains->derivatives; i++)
        log_error[i] = -INFINITY;
    for (int piece = 0; piece < plan->pieces; piece++) {
        const time_map map = piece_of(plan, piece);
        double of_piece[INTEGRALS];
        bound_rule(histogram, gains, &map, eta, of_piece);
        for (int i = 0; i <= gains->derivatives; i++)
            log_error[i] = larger(log_error[i], of_piece[i] + log(plan->pieces));
    }
    for (int i = 0; i <= gains->derivatives; i++)
        wanted = larger(wanted, UNPROVED * (log_error[i] - log(allowed[i])) / (2 * eta));
    return wanted;
}

/* Divide plan->map into so few pieces that their nodes suffice, and set the plan's errors. An ellipse on which the
 * integrands grow by more than twice the nats wanted is too large: a smaller one is tried. */
static void choose_nodes(const score_histogram *histogram, const panel_gains *gains, const plan_goals *goals, double b,
                         quadrature_plan *plan)
{
    double wanted, eta, log_error[INTEGRALS];
    for (plan->pieces = 1;; plan->pieces += (int)(plan->pieces * wanted / MOST_NODES)) {
        eta = best_eta(b, plan->map.v_length / plan->pieces, goals->nats);
        for (int piece = 0; piece < plan->pieces; piece++) {
            const time_map map = piece_of(plan, piece);
            eta = smaller(eta, laws[map.law]->largest_eta(&map));
        }
        wanted = nodes_wanted(histogram, gains, goals->allowed, plan, eta, log_error);
        while (2 * eta * wanted > 3 * goals->nats) {
            double within[INTEGRALS];
            const double fewer = nodes_wanted(histogram, gains, goals->allowed, plan, 0.8 * eta, within);
            if (!(fewer < wanted))
                break;
            eta *= 0.8;
            wanted = fewer;
            memcpy(log_error, within, sizeof log_error);
        }
        if (!(wanted > MOST_NODES))
            break;
    }
    plan->nodes = rounded_nodes(wanted);
    plan->accuracy = exp(-goals->nats);
    for (int i = 0; i <= gains->derivatives; i++)
        plan->error[i] = exp(log_error[i] - 2 * plan->nodes * eta) + (plan->ended ? goals->lost[i] : 0);
}

/* Choose the map from t0 to span->end for items that arrive at a rate, S in sum; return its b (best_eta). */
static double map_of_rates(const plan_span *span, double S, double t0, time_map *map)
{
    double steepest = 0;
    for (int i = 0; i < span->steps; i++)
        steepest = larger(steepest, span->crowding[i]);
    const double length = larger(exp(span->end) - t0, 1e-3 * t0), b = sqrt(2 * (1 + steepest));
    *map = (time_map){.law = map->law, .t0 = t0, .scale = b * b / S, .v_length = asinh(sqrt(S * length) / b)};
    return b;
}

/* Choose the map of [begin, span->end] for items without a rate that needs about the least nodes, dense around the time
 * of the most crowded arrivals; return its b (best_eta). Before time 0, fewer digits matter. */
static double map_of_scores(const plan_span *span, double begin, time_map *map)
{
    const double step = 1.0 / BINS_PER_NAT, end = larger(span->end, begin + step);
    double density[PROFILE_TABLE / 2], densest = 0, best = 0, b = 0;
    map->t0 = begin;
    for (int i = 0; i < span->steps; i++) {
        const double t = step * (span->first + i), early = smaller(t, 0) / begin;
        density[i] = larger(0, 1 - early * early) + span->crowding[i];
        if (density[i] > densest) {
            densest = density[i];
            map->t0 = t;
        }
    }
    for (double scale = step; scale == step || scale < end - begin; scale *= M_SQRT2) {
        double steepest = 0;
        for (int i = 0; i < span->steps; i++) {
            const double off = step * (span->first + i) - map->t0;
            steepest = larger(steepest, density[i] * (scale * scale + off * off));
        }
        const double v_begin = asinh((begin - map->t0) / scale), v_length = asinh((end - map->t0) / scale) - v_begin;
        const double steepness = sqrt(STEEPNESS * steepest), eta = best_eta(steepness, v_length, span->goals.nats);
        if (eta <= best)
            continue;
        best = eta;
        b = steepness;
        *map = (time_map){map->law, map->t0, scale, v_begin, v_length};
    }
    return b;
}

/* Return a time before which a share of the loss at the end is lost. The bound is the one for items that leave
 * early (panels.h): R (d + 2 K p) for an item with probability p, where d is the density, which the Hessian diagonal
 * multiplies by a slope of at most 8 beside p > 1e-15. */
static double begin_of(const score_histogram *histogram, const plan_span *span, double K, int law)
{
    int step = span->first;
    for (; step < span->last_open; step++) {
        const arrival_profile at = profile_at(arrival_tables + law, histogram, step);
        if (5 * at.slope + 2 * K * at.arrivals > SHARE_OF_ENDS * span->goals.cut)
            break;
    }
    return (double)(step - 1) / BINS_PER_NAT;
}

/* Plan the integral over the times in [from, until], either of which may be infinite, at which arrivals of the items in
 * the histogram fill ranks. Times are relative to the heaviest item, as in law_terms.h. */
static void plan_quadrature(int law, const score_histogram *histogram, const panel_gains *gains, double from,
                            double until, const tolerances *tolerance, quadrature_plan *plan)
{
    const double K = (double)gains->K, S = total_weight(histogram), n = histogram->above[histogram->bins];
    const double last = smaller(until, (double)histogram->bins / BINS_PER_NAT + laws[law]->certain + 1);
    const double early = log(n * (1 + 2 * K) / tolerance->cut); /* K arrivals at rates take S t >= K */
    const double earliest = larger(from, arrives_at_rate(law) ? log(K / S) - 1 : -laws[law]->before(early));
    plan_span span;
    find_span(arrival_tables + law, histogram, gains, (int)floor(earliest * BINS_PER_NAT), last, tolerance, &span);
    span.end = smaller(span.end + laws[law]->later_than_bins, last);
    plan->ended = span.ended;
    plan->map.law = law;
    const double b = arrives_at_rate(law)
                         ? map_of_rates(&span, S, exp(from), &plan->map)
                         : map_of_scores(&span, larger(earliest, begin_of(histogram, &span, K, law)), &plan->map);
    choose_nodes(histogram, gains, &span.goals, b, plan);
    for (int i = 0; i <= gains->derivatives && !arrives_at_rate(law); i++)
        plan->error[i] += SHARE_OF_ENDS * span.goals.lost[i];
}

/* Set times and weights of the nodes of one piece. */
static void place_nodes(quadrature_plan *plan, int piece)
{
    const quadrature_rule rule = gauss_legendre(plan->nodes);
    const time_map map = piece_of(plan, piece);
    const double scale = map.scale;
    for (int i = 0; i < plan->nodes; i += PLR_LANES) {
        const lanes v = map.v_begin + vec_load(rule.node + i) * map.v_length;
        const lanes grow = vec_expm1(v), shrink = -grow / (1.0 + grow);
        const lanes sinh_v = 0.5 * (grow - shrink), cosh_v = 1.0 + 0.5 * (grow + shrink);
        const lanes t = map.t0 + scale * (arrives_at_rate(map.law) ? sinh_v * sinh_v : sinh_v);
        const lanes dt = scale * map.v_length * cosh_v * (arrives_at_rate(map.law) ? 2.0 * sinh_v : vec_all(1));
        vec_store(plan->time + i, t);
        vec_store(plan->weight + i, dt * vec_load(rule.weight + i));
    }
}

#endif
