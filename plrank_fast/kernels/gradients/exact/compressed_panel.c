/* One panel for a long list: light items compressed to proxies, the others one by one. */
#include <math.h>

#include "gradients/exact/exact_panels.h"
#include "gradients/exact/panel_integrals.h"
#include "ranking/weights.h"

#define FEW_RANKS 12     /* for which COMPRESSED_FROM holds; for each more, */
#define ITEMS_PER_RANK 8 /* so many items more */

/* Weights of all items in problem->f; returns their sum. */
static double weigh_all(exact_problem *problem)
{
    const exact_query *query = problem->query;
    lanes sum = {0};
    for (intptr_t j = 0; j < query->D; j += PLR_LANES) {
        lanes f = vec_all(-INFINITY);
        if (query->D - j >= PLR_LANES)
            f = vec_load(query->scores + j) - problem->highest;
        else
            for (intptr_t i = j; i < query->D; i++)
                f[i - j] = query->scores[i] - problem->highest;
        const lanes w = vec_exp_flush(f);
        vec_store(problem->f + j, w);
        sum += w;
    }
    return vec_sum(sum);
}

/* The first octave all of whose items are light enough at the end of time: the error of compression is about 1e-7 r^8
 * where r is largest. */
static int first_light_octave(double nodes, double end)
{
    const double largest_odds = 0.5 * smaller(1, pow(1e6 * nodes, 1.0 / 8)), heaviest = log1p(largest_odds) / end;
    return heaviest >= 2 ? 0 : (int)ceil(1 - log2(heaviest));
}

/* The items that are heavier than those of the octave, one by one: their number. */
static intptr_t take_heavy(exact_problem *problem, int first_octave)
{
    const double heaviest_of_octave = ldexp(1, 1 - first_octave), *w = problem->f;
    const intptr_t D = problem->query->D;
    intptr_t n = 0;
    for (intptr_t j = 0; j < D; j++) {
        problem->query_item[n] = j;
        n += w[j] >= heaviest_of_octave;
    }
    return n;
}

static void return_from_proxies(exact_problem *problem, const lanes *plain, const lanes *relevant, double *to)
{
    const exact_query *query = problem->query;
    const proxy_items *proxies = &problem->panel.proxies;
    for (intptr_t c = 0; c < proxies->count; c++) {
        problem->proxy_zeroth[c] = vec_sum(plain[c]);
        problem->proxy_first[c] = vec_sum(relevant[c]);
    }
    return_to_items(proxies, problem->proxy_zeroth, problem->proxy_first, query->D, problem->f, query->relevance,
                    problem->common, to);
}

int integrate_compressed(exact_problem *problem)
{
    const exact_query *query = problem->query;
    const intptr_t D = query->D, K = problem->K;
    panel *p = &problem->panel;
    const intptr_t more = K > FEW_RANKS ? ITEMS_PER_RANK * (K - FEW_RANKS) : 0;
    if (D < COMPRESSED_FROM + more || D < ITEMS_PER_RANK * K || query->probabilities)
        return 0;
    const double S = weigh_all(problem), *w = problem->f;
    add_to_octaves(problem->octaves, D, w, query->relevance, problem->common);
    histogram_of_octaves(problem->histogram, problem->octaves);
    if (has_gap(problem->histogram, K, GAP))
        return 0;
    /* Nodes cost next to nothing here, and a second attempt as much as the first. */
    tolerances generous = problem->tolerance;
    generous.nodes /= 1e3;
    plan_quadrature(problem->histogram, S, (double)K, 0, INFINITY, generous, p->plan);
    place_nodes(p->plan, 0);
    const double end = p->plan->time[p->plan->nodes - 1];
    if (p->plan->pieces > 1 || S * end > PLR_LARGEST_SPREAD)
        return 0;
    const int first_octave = first_light_octave(problem->tolerance.nodes, end);
    if (first_octave >= OCTAVES)
        return 0;
    const intptr_t n = take_heavy(problem, first_octave);
    if (n > D / 4)
        return 0;
    for (intptr_t i = 0; i < n; i++) {
        problem->w[i] = w[problem->query_item[i]];
        problem->rho[i] = query->relevance[problem->query_item[i]] - problem->common;
    }
    set_ranks(problem, D, 0, K, 0);
    const double heavy = log1p(p->ranks.upward_limit) / end;
    order_items(n, problem->w, problem->rho, heavy, 0, (uint16_t *)problem->key, &p->items);
    place_proxies(problem->octaves, first_octave, &p->proxies);
    problem->query->nodes += p->plan->nodes;
    const int all_checked = p->all_checked; /* so many nodes need no check */
    problem->value += integrate_panel(p, query, problem->query_item);
    p->all_checked = all_checked;
    if (query->gradient)
        return_from_proxies(problem, p->sums.proxy_plain, p->sums.proxy_relevant, query->gradient);
    if (query->hessian)
        return_from_proxies(problem, p->sums.proxy_plain_hessian, p->sums.proxy_relevant_hessian, query->hessian);
    p->proxies.count = 0;
    p->proxies.weight = 0;
    return 1;
}
