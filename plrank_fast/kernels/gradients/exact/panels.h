/* From a query to panels.
 *
 * A panel is an interval of time with its own map of nodes. One panel serves a list without large gaps between
 * neighbouring scores. At a gap, all items above it have arrived before those below it matter, to within the tolerance.
 * Time is cut there, and where a panel would span too much: the items above leave (the next panel starts at the rank
 * after them), and the items far below have not entered yet. Scores in a panel are relative to its highest, so that
 * they may be further apart than the exponents of float64 reach.
 */
#ifndef PLR_PANELS_H
#define PLR_PANELS_H

#include <math.h>

#include "gradients/exact/compressed_panel.h"
#include "gradients/exact/exact_problem.h"
#include "gradients/exact/panel_integrals.h"
#include "gradients/exact/rank_probabilities.h"

/* Nats, or sigmas, that one panel may span. Shorter ones leave out more items that cannot arrive in them, and have more
 * nodes in all. The limit is 200: odds are finite up to e^700 (exact_panel.h), beside which third powers of w t, at
 * most e^600, must be negligible. */
#define WIDEST 30.0

/* Integrate one panel over the times [from, until], relative to the highest score, and add to the outputs. problem->f,
 * rho and query_item hold its n items, histogram their scores; `arrived` items have left before, and the items of the
 * last panel fill the last rank. Returns whether that is filled at the end of the panel. */
static int integrate_panel(exact_problem *problem, intptr_t n, intptr_t arrived, double from, double until, int last)
{
    exact_query *query = problem->query;
    panel *p = &problem->panel;
    const intptr_t left = problem->K - arrived, K = left < n ? left : n;
    const panel_gains gains = gains_of_panel(problem, arrived, K);
    const tolerances tolerance = tolerances_of_plan(problem, last);
    plan_quadrature(query->law, problem->histogram, &gains, from, until, &tolerance, p->plan);
    add_errors(problem, p->plan->error);
    query->nodes += p->plan->pieces * p->plan->nodes;
    set_ranks(problem, n, arrived, K, p->plan->accuracy);
    for (intptr_t j = n; j % PLR_LANES; j++)
        problem->f[j] = -INFINITY;
    for (intptr_t j = 0; j < n; j += PLR_LANES)
        vec_store(problem->w + j, vec_exp_flush(vec_load(problem->f + j)));
    order_panel(problem, n);
    clear_sums(p);
    for (int piece = 0; piece < p->plan->pieces; piece++) {
        place_nodes(p->plan, piece);
        if (query->probabilities)
            integrate_rank_probabilities(p);
        else
            add_nodes(p);
    }
    problem->value += hand_out_sums(p);
    return p->plan->ended && K == left;
}

/* Return how long after the last leaving item is due all items may leave, as if they had arrived.
 *
 * The error is bounded as in tail_bound.h. Each item that has not arrived yet, with probability q <= e^-x, changes the
 * expected gains by at most R, and the gradient's entries, in sum of absolute values, by at most R (x + 2 K) e^-x: x
 * e^-x bounds the derivative of the probability, and both rankings, with the item and without, consist of at most K
 * choices. The bound for the diagonal of the Hessian is R (x (2 + x) + 4 K) e^-x, and the bound for its product with a
 * vector of entries of at most 1 is R (x + 2 K + 2)^2 e^-x: each of two derivatives is of the probability or of the
 * gains. Fewer than K items leave before the last panel with an end, and n in it. */
static double delay_of_exit(int law, intptr_t n, intptr_t K, tolerances tolerance)
{
    const double ranks = 2 * (double)K, log_allowed = log(tolerance.cut / (double)(n + K));
    double x = 1;
    for (int i = 0; i < 4; i++) {
        const double factor = tolerance.product           ? 0.5 * (x + ranks + 2) * (x + ranks + 2)
                              : tolerance.derivatives > 1 ? x * (1 + 0.5 * x) + ranks
                              : tolerance.derivatives > 0 ? x + ranks
                                                          : 1;
        x = larger(1, log(factor) - log_allowed);
    }
    return laws[law]->after(x);
}

/* Return how long before they are due n items may enter. The probability that one of them arrives earlier causes an
 * error as in delay_of_exit in each of at most K panels. */
static double entering_lead(int law, intptr_t n, intptr_t K, tolerances tolerance)
{
    const double of_item = tolerance.derivatives > 0 ? 1 + 2 * (double)K : 1;
    const double factor = tolerance.product ? (1 + of_item) * (1 + of_item) : of_item;
    return laws[law]->before(log((double)n * (double)K * factor / tolerance.cut));
}

/* Take n items of the query into the panel, in the order given, or as they are if it is NULL, with scores relative to
 * `top`, and count them by score, down to the lowest score f. Their relevance is 1 for rank probabilities. */
PLR_INLINE void take_items(exact_problem *problem, intptr_t n, const intptr_t *order, double top, double lowest)
{
    const exact_query *query = problem->query;
    const double *scores = query->scores, *relevance = query->probabilities ? NULL : query->relevance;
    const double inverse_sigma = query->inverse_sigma, common = problem->common;
    double *restrict f = problem->f, *restrict rho = problem->rho;
    intptr_t *restrict query_item = problem->query_item;
    for (intptr_t i = 0; i < n; i++) {
        const intptr_t item = order ? order[i] : i;
        query_item[i] = item;
        f[i] = (scores[item] - top) * inverse_sigma;
        rho[i] = relevance ? relevance[item] - common : 0;
    }
    fill_histogram(problem->histogram, f, relevance ? rho : NULL, query->stop, query_item, n, lowest);
}

static void integrate_between_cuts(exact_problem *problem)
{
    const exact_query *query = problem->query;
    const intptr_t D = query->D, K = problem->K;
    const double *sorted = sort_scores(problem), inverse_sigma = query->inverse_sigma, gap = laws[query->law]->gap;
    double delay = INFINITY; /* after the last item that leaves is due */
    for (intptr_t arrived = 0, next; arrived < K && !query->cancellation.requested; arrived = next) {
        const double top = sorted[arrived];
        const double from = arrived ? delay - (sorted[arrived - 1] - top) * inverse_sigma : -INFINITY;
        double until = INFINITY;
        next = arrived + 1;
        while (next < D && (sorted[next - 1] - sorted[next]) * inverse_sigma < gap &&
               (top - sorted[next]) * inverse_sigma < WIDEST)
            next++;
        intptr_t n = D - arrived;
        if (next < D) {
            delay = delay_of_exit(query->law, next - arrived, K, problem->tolerance);
            const double far = delay + entering_lead(query->law, D - next, K, problem->tolerance);
            until = (top - sorted[next - 1]) * inverse_sigma + delay;
            n = next - arrived;
            while (arrived + n < D && (sorted[next - 1] - sorted[arrived + n]) * inverse_sigma < far)
                n++;
        }
        take_items(problem, n, problem->rank_order + arrived, top, (sorted[arrived + n - 1] - top) * inverse_sigma);
        if (integrate_panel(problem, n, arrived, from, until, next >= K))
            return;
        for (intptr_t i = 0; i < next - arrived; i++)
            problem->relevant_left += problem->rho[i];
        for (intptr_t i = arrived; i < next && query->stop; i++)
            problem->panel.reading *= 1 - query->stop[problem->rank_order[i]];
    }
}

/* Add the integrals to the outputs of the query and to problem->value, to within problem->tolerance. A list without
 * gaps needs no sorting. */
static void integrate(exact_problem *problem)
{
    const exact_query *query = problem->query;
    const double span = (problem->highest - problem->lowest) * query->inverse_sigma;
    problem->relevant_left = 0;
    if (integrate_compressed(problem))
        return;
    int gaps = !(span < WIDEST);
    if (!gaps) {
        take_items(problem, query->D, NULL, problem->highest, -span);
        gaps = has_gap(problem->histogram, problem->K, laws[query->law]->gap);
    }
    if (gaps)
        integrate_between_cuts(problem);
    else
        integrate_panel(problem, query->D, 0, -INFINITY, INFINITY, 1);
}

#endif
