/* Panels of normal arrival times: each is a chain of items without a gap that noise does not bridge, integrated from
 * the first arrivals of its items to the last. */
#ifndef PLR_NORMAL_PANELS_H
#define PLR_NORMAL_PANELS_H

#include <math.h>

#include "gradients/exact/exact_panels.h"
#include "gradients/exact/panel_integrals.h"

/* Sigmas between neighbouring scores: the difference of two arrivals varies with sqrt(2) sigma. */
#define NORMAL_GAP (M_SQRT2 * REACH)

/* Return y with Phi(y) / Phi(-y) about `odds`, >= 1: Newton's method on ln odds = 1.5976 y + 0.070566 y^3. */
static double position_of_odds(double odds)
{
    const double target = log(odds);
    double y = target < 2 ? 0.6 * target : cbrt(14 * target);
    for (int i = 0; i < 6; i++)
        y -= (1.5976 * y + 0.070566 * y * y * y - target) / (1.5976 + 0.211698 * y * y);
    return y;
}

/* Order the n items of problem->f, rho and query_item for a panel with the given time of its last node. */
static void order_normal_items(exact_problem *problem, intptr_t n, double last_time)
{
    panel *p = &problem->panel;
    item_block *items = &p->items;
    const double early = position_of_odds(p->ranks.upward_limit) - last_time;
    for (intptr_t j = n; j % PLR_LANES; j++)
        problem->f[j] = 0;
    for (intptr_t j = 0; j < n; j += PLR_LANES) /* replaces weights: any increasing function of the score */
        vec_store(problem->w + j, vec_exp_flush(vec_load(problem->f + j)));
    const double heavy = early < 0 ? exp(larger(early, -LARGEST_EXPONENT)) : 1;
    order_items(n, problem->w, problem->rho, heavy, (uint16_t *)problem->key, items);
    for (intptr_t j = 0; j < QUARTET * items->quartets; j++)
        items->position[j] = items->item[j] < 0 ? -LARGEST_EXPONENT : problem->f[items->item[j]];
}

/* Integrate the panel of the n items in problem->histogram over the times [from, until]. The last panel is that whose
 * items fill the last rank. */
static void integrate_panel(exact_problem *problem, intptr_t n, intptr_t arrived, double from, double until, int last)
{
    exact_query *query = problem->query;
    panel *p = &problem->panel;
    const intptr_t K = problem->K - arrived < n ? problem->K - arrived : n;
    const panel_gains gains = gains_of_panel(problem, arrived, K);
    const tolerances tolerance = tolerances_of_plan(problem, last);
    plan_normal(problem->histogram, &gains, (double)n, from, until, &tolerance, p->plan);
    add_errors(problem, p->plan->error);
    query->nodes += p->plan->pieces * p->plan->nodes;
    set_ranks(problem, n, arrived, K, p->plan->accuracy);
    for (int piece = 0; piece < p->plan->pieces && !query->cancellation.requested; piece++) {
        place_nodes(p->plan, piece);
        order_normal_items(problem, n, p->plan->time[p->plan->nodes - 1]);
        clear_sums(p, query);
        add_nodes(p, query);
        problem->value += hand_out_sums(p, query, problem->query_item);
    }
}

/* Take items [first, end) of those sorted by score, with scores relative to the first of them. */
static void take_sorted(exact_problem *problem, const double *sorted, intptr_t first, intptr_t end)
{
    for (intptr_t i = first; i < end; i++) {
        problem->query_item[i - first] = problem->rank_order[i];
        problem->rho[i - first] = problem->query->relevance[problem->rank_order[i]] - problem->common;
        problem->f[i - first] = (sorted[i] - sorted[first]) * problem->query->inverse_sigma;
    }
    fill_histogram(problem->histogram, problem->f, problem->rho, end - first, problem->f[end - first - 1]);
}

/* Integrate a chain of items [arrived, next), in windows of time if it is wide, each with the items that may arrive in
 * it. Time is relative to the first item of the chain. */
static void integrate_chain(exact_problem *problem, const double *sorted, intptr_t arrived, intptr_t next)
{
    const double inverse_sigma = problem->query->inverse_sigma;
    const double top = sorted[arrived], span = (top - sorted[next - 1]) * inverse_sigma;
    intptr_t first = arrived, end = arrived;
    double until = span < WIDEST ? INFINITY : WIDEST;
    for (double from = -INFINITY; from < span + REACH; from = until, until += WIDEST) {
        while ((top - sorted[first]) * inverse_sigma < from - REACH && first < next - 1)
            first++;
        while (end < next && (top - sorted[end]) * inverse_sigma < until + REACH)
            end++;
        if (first >= problem->K || problem->query->cancellation.requested)
            return;
        const double shift = (top - sorted[first]) * inverse_sigma;
        take_sorted(problem, sorted, first, end);
        const int last = next >= problem->K && !(until < span + REACH);
        integrate_panel(problem, end - first, first, from - shift, until - shift, last);
    }
}

/* Integrate a list without gaps as one panel, which needs no sorting. Returns 0, and does nothing, if there are
 * gaps. */
static int integrate_without_gaps(exact_problem *problem)
{
    const exact_query *query = problem->query;
    const double inverse_sigma = problem->query->inverse_sigma;
    const intptr_t D = query->D;
    if (!((problem->highest - problem->lowest) * inverse_sigma < WIDEST))
        return 0;
    for (intptr_t j = 0; j < D; j++) {
        problem->f[j] = (query->scores[j] - problem->highest) * inverse_sigma;
        problem->query_item[j] = j;
        problem->rho[j] = query->relevance[j] - problem->common;
    }
    const double lowest = (problem->lowest - problem->highest) * inverse_sigma;
    fill_histogram(problem->histogram, problem->f, problem->rho, D, lowest);
    if (has_gap(problem->histogram, problem->K, NORMAL_GAP))
        return 0;
    integrate_panel(problem, D, 0, -INFINITY, INFINITY, 1);
    return 1;
}

/* Add the integrals to the outputs of the query and to problem->value, to within problem->tolerance. */
static void integrate_normal(exact_problem *problem)
{
    const intptr_t D = problem->query->D, K = problem->K;
    const double inverse_sigma = problem->query->inverse_sigma;
    if (integrate_without_gaps(problem))
        return;
    const double *sorted = sort_scores(problem);
    for (intptr_t arrived = 0, next; arrived < K && !problem->query->cancellation.requested; arrived = next) {
        next = arrived + 1;
        while (next < D && (sorted[next - 1] - sorted[next]) * inverse_sigma < NORMAL_GAP)
            next++;
        integrate_chain(problem, sorted, arrived, next);
    }
}

#endif
