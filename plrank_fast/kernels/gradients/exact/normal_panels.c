/* Panels of normal arrival times: each is a chain of items without a gap that noise does not bridge, integrated from
 * the first arrivals of its items to the last. */
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

/* Begin a panel of the n items of problem->f, rho and query_item, with the given time of its last node. */
static void begin_normal_panel(exact_problem *problem, intptr_t n, double last_time)
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
    clear_sums(p, problem->query);
}

/* Integrate the panel of the n items in problem->histogram. */
static void integrate_chain(exact_problem *problem, intptr_t n, intptr_t arrived, intptr_t K)
{
    exact_query *query = problem->query;
    quadrature_plan *plan = problem->panel.plan;
    plan_normal(problem->histogram, (double)n, (double)K, &problem->tolerance, problem->normal);
    add_errors(problem, problem->normal->error);
    set_ranks(problem, n, arrived, K, problem->normal->accuracy);
    const intptr_t all = problem->normal->nodes;
    query->nodes += (int)all;
    place_normal_nodes(problem->normal, all - 8, 8, plan->time, plan->weight);
    begin_normal_panel(problem, n, plan->time[7]);
    for (intptr_t first = 0; first < all && !query->cancellation.requested; first += MOST_NODES) {
        plan->nodes = all - first < MOST_NODES ? (int)(all - first) : MOST_NODES;
        place_normal_nodes(problem->normal, first, plan->nodes, plan->time, plan->weight);
        add_nodes(&problem->panel, query);
    }
    problem->value += hand_out_sums(&problem->panel, query, problem->query_item);
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

/* Integrate a window [from, until) of time in a chain. Time is relative to the first item of the chain, and the scores
 * of the panel are relative to an item `shift` below it. The panel's ranks are set, and the nodes are multiples of the
 * spacing. */
static void integrate_window(exact_problem *problem, double from, double until, double shift, double spacing,
                             intptr_t n)
{
    exact_query *query = problem->query;
    quadrature_plan *plan = problem->panel.plan;
    intptr_t node = (intptr_t)ceil((from + REACH) / spacing);
    const intptr_t last = (intptr_t)ceil((until + REACH) / spacing);
    begin_normal_panel(problem, n, until - shift);
    for (; node < last; node += plan->nodes) {
        plan->nodes = last - node < MOST_NODES ? (int)((last - node + 7) / 8 * 8) : MOST_NODES;
        for (int i = 0; i < plan->nodes; i++) {
            plan->time[i] = (double)(node + i) * spacing - REACH - shift;
            plan->weight[i] = node + i < last ? spacing : 0;
        }
        query->nodes += plan->nodes;
        add_nodes(&problem->panel, query);
    }
    problem->value += hand_out_sums(&problem->panel, query, problem->query_item);
}

/* Integrate a chain of items [arrived, next) wider than the histogram by windows of time, each with the items that may
 * arrive in it, and one rule with the spacing that the densest window needs. The first of two walks finds the
 * spacing. */
static void integrate_long_chain(exact_problem *problem, const double *sorted, intptr_t arrived, intptr_t next)
{
    const double inverse_sigma = problem->query->inverse_sigma;
    const double top = sorted[arrived], span = (top - sorted[next - 1]) * inverse_sigma;
    const intptr_t K = problem->K;
    double spacing = 1;
    for (int integrating = 0; integrating < 2; integrating++) {
        intptr_t first = arrived, end = arrived;
        double until = -REACH;
        for (double from = -REACH; from < span + REACH && !problem->query->cancellation.requested; from = until) {
            until = from + WIDEST;
            while ((top - sorted[first]) * inverse_sigma < from - REACH && first < next - 1)
                first++;
            while (end < next && (top - sorted[end]) * inverse_sigma < until + REACH)
                end++;
            if (first >= K)
                break;
            const intptr_t n = end - first, ranks_left = K - first < n ? K - first : n;
            take_sorted(problem, sorted, first, end);
            if (integrating) {
                set_ranks(problem, n, first, ranks_left, problem->normal->accuracy);
                integrate_window(problem, from, until, (top - sorted[first]) * inverse_sigma, spacing, n);
                continue;
            }
            plan_normal(problem->histogram, (double)n, (double)ranks_left, &problem->tolerance, problem->normal);
            add_errors(problem, problem->normal->error);
            for (int i = 0; i < problem->normal->sections; i++)
                spacing = smaller(spacing, problem->normal->spacing[i]);
        }
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
    integrate_chain(problem, D, 0, problem->K);
    return 1;
}

void integrate_normal(exact_problem *problem)
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
        const intptr_t n = next - arrived, ranks_left = K - arrived < n ? K - arrived : n;
        if (!((sorted[arrived] - sorted[next - 1]) * inverse_sigma < WIDEST)) {
            integrate_long_chain(problem, sorted, arrived, next);
            continue;
        }
        take_sorted(problem, sorted, arrived, next);
        integrate_chain(problem, n, arrived, ranks_left);
    }
}
