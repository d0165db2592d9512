/* One panel for a long list: light items compressed to proxies, the others one by one. */
#ifndef PLR_COMPRESSED_PANEL_H
#define PLR_COMPRESSED_PANEL_H

#include <math.h>

#include "gradients/exact/exact_problem.h"
#include "gradients/exact/panel_integrals.h"

#define ITEMS_PER_RANK 8 /* a list must be longer than COMPRESSED_FROM by so many for each rank */

/* Compute the weights of a block of items, in problem->f, their sum, and their moments. */
static void weigh_block(void *problem_, intptr_t block, int thread)
{
    exact_problem *problem = problem_;
    const exact_query *query = problem->query;
    const item_range items = block_of_list(query->D, block);
    lanes sum = {0};
    for (intptr_t j = items.begin; j < items.end; j += PLR_LANES) {
        const lanes score = vec_load_some(query->scores + j, items.end - j, -INFINITY);
        const lanes w = vec_exp_flush((score - problem->highest) * query->inverse_sigma);
        vec_store(problem->f + j, w);
        sum += w;
    }
    problem->of_block[block] = (block_sums){{vec_sum(sum)}};
    sum_octaves(problem->octaves_of_block + block, items.end - items.begin, problem->f + items.begin,
                query->relevance + items.begin, problem->common,
                query->stop ? query->stop + items.begin : NULL);
    (void)thread;
}

/* Compute the weights of all items, in problem->f, and their moments; return the sum of the weights. */
static double weigh_all(exact_problem *problem)
{
    const double sum = sum_over_list(problem, weigh_block).sum[0];
    problem->octaves->used = 0;
    for (intptr_t block = 0; block < blocks_of_list(problem->query->D); block++)
        merge_octaves(problem->octaves, problem->octaves_of_block + block);
    return sum;
}

/* Return the first octave all of whose items are light enough at the end of the integral: the error of compression is
 * about 1e-7 r^8 for the largest r. */
static int first_light_octave(double accuracy, double end)
{
    const double largest_odds = 0.5 * smaller(1, pow(1e8 * accuracy, 1.0 / 8)), heaviest = log1p(largest_odds) / end;
    return heaviest >= 2 ? 0 : (int)ceil(1 - log2(heaviest));
}

/* Fill the histogram of all items. */
static void fill_long_histogram(exact_problem *problem)
{
    const exact_query *query = problem->query;
    bin_sums bins[MOST_BINS] = {{0}};
    double stops[MOST_BINS] = {0};
    int used = add_octaves(bins, problem->octaves);
    for (intptr_t j = 0; j < query->D && query->stop; j++) {
        if (query->stop[j] == 0)
            continue;
        const double nats = (problem->highest - query->scores[j]) * query->inverse_sigma, rho = query->relevance[j];
        add_to_bins(bins, stops, nats, (bin_sums){1, rho, fabs(rho), rho * rho}, query->stop[j]);
        used = bins_within(nats) > used ? bins_within(nats) : used;
    }
    set_histogram(problem->histogram, bins, query->stop ? stops : NULL, used);
}

/* Return whether an item is one of these heavier ones, or readers may stop there. */
PLR_INLINE int is_heavy(const double *w, double heaviest, const double *stop, intptr_t j)
{
    return (w[j] >= heaviest) | stops_at(stop, j);
}

/* Take these items of a block, from the place in the panel that is in of_block. */
static void take_heavy_of_block(void *problem_, intptr_t block, int thread)
{
    exact_problem *problem = problem_;
    const item_range items = block_of_list(problem->query->D, block);
    const double *w = problem->f, *stop = problem->query->stop, heaviest = problem->polynomials->heaviest;
    intptr_t n = (intptr_t)problem->of_block[block].sum[0];
    for (intptr_t j = items.begin; j < items.end; j++) {
        if (!is_heavy(w, heaviest, stop, j))
            continue;
        problem->query_item[n] = j;
        problem->w[n] = w[j];
        problem->rho[n++] = problem->query->relevance[j] - problem->common;
    }
    (void)thread;
}

/* Take the items above the octave into the panel, one by one. */
static void take_heavy(exact_problem *problem, int first_octave)
{
    intptr_t before = 0;
    problem->polynomials->heaviest = ldexp(1, 1 - first_octave);
    for (intptr_t block = 0; block < blocks_of_list(problem->query->D); block++) {
        const octave_sums *octaves = problem->octaves_of_block + block;
        problem->of_block[block].sum[0] = (double)before;
        before += count_heavier(octaves, first_octave) + octaves->stopping;
    }
    pass_over_list(problem, take_heavy_of_block);
}

/* Add the derivatives at the proxies to a block of the items that they replace. */
static void return_to_block(void *problem_, intptr_t block, int thread)
{
    const exact_problem *problem = problem_;
    const exact_query *query = problem->query;
    const item_range items = block_of_list(query->D, block);
    const intptr_t j = items.begin, n = items.end - items.begin;
    return_to_items(problem->polynomials, n, problem->f + j, query->relevance + j, problem->common,
                    query->stop ? query->stop + j : NULL, problem->returned + j);
    (void)thread;
}

static void return_from_proxies(exact_problem *problem, int first_octave, const proxy_sums *sums, double *to)
{
    const proxy_items *proxies = &problem->panel.proxies;
    for (intptr_t c = 0; c < proxies->count; c++) {
        problem->proxy_zeroth[c] = vec_sum(sums[c].plain);
        problem->proxy_first[c] = vec_sum(sums[c].relevant);
    }
    interpolate_proxies(problem->octaves, first_octave, problem->proxy_zeroth, problem->proxy_first,
                        problem->polynomials);
    problem->returned = to;
    pass_over_list(problem, return_to_block);
}

/* Integrate a long list: light items by proxies, the others one by one. Returns 0, and does nothing, if compression
 * does not apply: short lists, gaps between the scores, few light items, items without a rate, rank probabilities,
 * products with the Hessian, readers who may stop at most items. */
static int integrate_compressed(exact_problem *problem)
{
    const exact_query *query = problem->query;
    const intptr_t D = query->D, K = problem->K;
    panel *p = &problem->panel;
    if (D < COMPRESSED_FROM + ITEMS_PER_RANK * K || !arrives_at_rate(query->law) || query->probabilities ||
        query->direction || problem->stopping > D / 2)
        return 0;
    const double S = weigh_all(problem);
    fill_long_histogram(problem);
    if (has_gap(problem->histogram, K, laws[query->law]->gap))
        return 0;
    const panel_gains gains = gains_of_panel(problem, 0, K);
    const tolerances tolerance = tolerances_of_plan(problem, 1);
    plan_quadrature(query->law, problem->histogram, &gains, -INFINITY, INFINITY, &tolerance, p->plan);
    place_nodes(p->plan, 0);
    const double end = p->plan->time[p->plan->nodes - 1];
    if (p->plan->pieces > 1 || S * end > LARGEST_LOG_CONSTANT)
        return 0;
    const int first_octave = first_light_octave(p->plan->accuracy, end);
    if (first_octave >= OCTAVES)
        return 0;
    const intptr_t heavy_items = count_heavier(problem->octaves, first_octave), n = heavy_items + problem->stopping;
    if (heavy_items > D / 4)
        return 0;
    change_panel(problem, n);
    take_heavy(problem, first_octave);
    set_ranks(problem, D, 0, K, p->plan->accuracy);
    order_panel(problem, n);
    place_proxies(problem->octaves, first_octave, &p->proxies);
    add_errors(problem, p->plan->error);
    problem->query->nodes += p->plan->nodes;
    clear_sums(p);
    add_nodes(p);
    problem->value += hand_out_sums(p);
    if (query->gradient)
        return_from_proxies(problem, first_octave, p->sums.proxy_gradient, query->gradient);
    if (query->hessian)
        return_from_proxies(problem, first_octave, p->sums.proxy_hessian, query->hessian);
    p->proxies.count = 0;
    p->proxies.weight = 0;
    change_panel(problem, D);
    return 1;
}

#endif
