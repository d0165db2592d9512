/* Panels of exponential arrival times. At a gap of the scores, all items above it have arrived before those below it
 * matter, to within the tolerance. Time is cut there: the items above leave (the next panel starts at the rank after
 * them), and the items far below have not entered yet. */
#ifndef PLR_EXPONENTIAL_PANELS_H
#define PLR_EXPONENTIAL_PANELS_H

#include <math.h>

#include "gradients/exact/compressed_panel.h"
#include "gradients/exact/exact_panels.h"
#include "gradients/exact/panel_integrals.h"

/* Integrate one panel over [t0, t1] and add to the outputs. problem->f, rho and query_item hold its n items, histogram
 * their scores; `arrived` items have left before. The last panel is that whose items fill the last rank.
 * Returns whether all ranks are filled at the end of the panel. */
static int integrate_stretch(exact_problem *problem, intptr_t n, intptr_t arrived, intptr_t K, double t0, double t1, int
                             last)
{
    panel *p = &problem->panel;
    lanes sum = {0};
    for (intptr_t j = n; j % PLR_LANES; j++)
        problem->f[j] = -INFINITY;
    for (intptr_t j = 0; j < n; j += PLR_LANES) {
        lanes w = vec_exp_flush(vec_load(problem->f + j));
        vec_store(problem->w + j, w);
        sum += w;
    }
    const panel_gains gains = gains_of_panel(problem, arrived, K);
    const tolerances tolerance = tolerances_of_plan(problem, last);
    plan_quadrature(problem->histogram, &gains, vec_sum(sum), t0, t1, &tolerance, p->plan);
    add_errors(problem, p->plan->error);
    problem->query->nodes += p->plan->pieces * p->plan->nodes;
    for (int piece = 0; piece < p->plan->pieces; piece++) {
        place_nodes(p->plan, piece);
        set_ranks(problem, n, arrived, K, p->plan->accuracy);
        const double heavy = log1p(p->ranks.upward_limit) / p->plan->time[p->plan->nodes - 1];
        order_items(n, problem->w, problem->rho, heavy, (uint16_t *)problem->key, &p->items);
        for (intptr_t j = 0; j < QUARTET * p->items.quartets && problem->query->direction; j++) {
            const intptr_t item = p->items.item[j];
            p->items.direction[j] = item < 0 ? 0 : problem->query->direction[problem->query_item[item]];
        }
        if (problem->query->probabilities)
            integrate_rank_probabilities(p, &problem->kept, problem->query, problem->query_item, arrived);
        else {
            clear_sums(p, problem->query);
            add_nodes(p, problem->query);
            problem->value += hand_out_sums(p, problem->query, problem->query_item);
        }
    }
    return p->plan->ended;
}

/* Return ln of the time, relative to the expected arrival of the last item that leaves, at which items may leave as if
 * all had arrived.
 *
 * The error is bounded as in tail_bound.h. Each item that has not arrived yet, with probability q = e^-x or less,
 * changes the expected gains by at most R, and the gradient's entries, in sum of absolute values, by at most R (x + 2
 * K) q: x q is the derivative of the probability, and both rankings, with the item and without, consist of at most K
 * choices. The bound for the diagonal of the Hessian is R (x (2 + x) + 4 K) q, and that for its product with a vector
 * of entries of at most 1 is R (x + 2 K + 2)^2 q: each of two derivatives is of the probability or of the gains. Fewer
 * than K items leave before the last panel with an end, and n in it. */
static double leaving_delay(intptr_t n, intptr_t K, tolerances tolerance)
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
    return log(x);
}

/* Return the largest total weight of the items that have not entered yet, times the time of entry. This bounds the
 * probability that one of them arrives earlier, which causes an error as in leaving_delay in each of at most K
 * panels. */
static double weight_outside(intptr_t K, tolerances tolerance)
{
    const double of_item = tolerance.derivatives > 0 ? 1 + 2 * (double)K : 1;
    return tolerance.cut / (double)K / (tolerance.product ? (1 + of_item) * (1 + of_item) : of_item);
}

static double relevance_of(const exact_problem *problem, intptr_t item)
{
    return problem->query->probabilities ? 0 : problem->query->relevance[item] - problem->common;
}

/* Return the relevance by which the histogram weighs items: 1 for rank probabilities. */
static const double *relevance_or_ones(const exact_problem *problem)
{
    return problem->query->probabilities ? NULL : problem->rho;
}

static void integrate_between_gaps(exact_problem *problem)
{
    const intptr_t D = problem->query->D, K = problem->K;
    const tolerances tolerance = problem->tolerance;
    const double *sorted = sort_scores(problem), inverse_sigma = problem->query->inverse_sigma;
    double start_reference = 0, start_delay = 0;
    intptr_t arrived = 0;
    while (arrived < K) {
        intptr_t next = arrived + 1;
        while (next < D && (sorted[next - 1] - sorted[next]) * inverse_sigma < GAP &&
               (sorted[arrived] - sorted[next]) * inverse_sigma < WIDEST)
            next++;
        const double top = sorted[arrived];
        const double delay = leaving_delay(next - arrived, K, tolerance);
        double t0 = arrived ? exp((top - start_reference) * inverse_sigma + start_delay) : 0, t1 = INFINITY;
        intptr_t n = D - arrived;
        if (next < D) {
            t1 = exp((top - sorted[next - 1]) * inverse_sigma + delay);
            double entered = log(weight_outside(K, tolerance) / (double)(D - next)) - delay;
            n = next - arrived;
            while (arrived + n < D && (sorted[arrived + n] - sorted[next - 1]) * inverse_sigma > entered)
                n++;
        }
        for (intptr_t j = 0; j < n; j++) {
            problem->query_item[j] = problem->rank_order[arrived + j];
            problem->rho[j] = relevance_of(problem, problem->query_item[j]);
            problem->f[j] = (sorted[arrived + j] - top) * inverse_sigma;
        }
        intptr_t ranks_left = K - arrived < n ? K - arrived : n;
        fill_histogram(problem->histogram, problem->f, relevance_or_ones(problem), n, problem->f[n - 1]);
        if (integrate_stretch(problem, n, arrived, ranks_left, t0, t1, next >= K) && ranks_left == K - arrived)
            return;
        start_reference = sorted[next - 1];
        start_delay = delay;
        arrived = next;
    }
}

/* Add the integrals to the outputs of the query and to problem->value, to within problem->tolerance. */
static void integrate_exponential(exact_problem *problem)
{
    const exact_query *query = problem->query;
    const intptr_t D = query->D, K = problem->K;
    if (integrate_compressed(problem))
        return;
    const double inverse_sigma = query->inverse_sigma;
    int gaps = !((problem->highest - problem->lowest) * inverse_sigma < WIDEST);
    if (!gaps) {
        for (intptr_t j = 0; j < D; j++) {
            problem->f[j] = (query->scores[j] - problem->highest) * inverse_sigma;
            problem->query_item[j] = j;
            problem->rho[j] = relevance_of(problem, j);
        }
        fill_histogram(problem->histogram, problem->f, relevance_or_ones(problem), D,
                       (problem->lowest - problem->highest) * inverse_sigma);
        gaps = has_gap(problem->histogram, K, GAP);
    }
    if (gaps)
        integrate_between_gaps(problem);
    else
        integrate_stretch(problem, D, 0, K, 0, INFINITY, 1);
}

#endif
