#include "gradients/exact/panel_integrals.h"

#include "gradients/exact/arrival_polynomials.h"
#include "gradients/exact/leave_one_out_division.h"
#include "gradients/exact/leave_one_out_series.h"

/* Terms of the longest series of a light item. */
PLR_INLINE intptr_t longest_series(const panel *p, const node_vector *node)
{
    const rank_block *ranks = &p->ranks;
    intptr_t longest = 0;
    for (intptr_t quartet = node->light_begin; quartet < node->light_end; quartet++) {
        intptr_t terms = series_terms(largest_of_quartet(p->at.odds + QUARTET * quartet), ranks->bits, ranks->K);
        longest = terms > longest ? terms : longest;
    }
    for (intptr_t j = 0; j < p->proxies.count; j += QUARTET) {
        intptr_t terms = series_terms(largest_of_quartet(p->at.proxy_odds + j), ranks->bits, ranks->K);
        longest = terms > longest ? terms : longest;
    }
    return longest;
}

/* Quartet by quartet, or two at a time where they are irrelevant and so cost less. */
PLR_INLINE void add_items(panel *p, const node_vector *node, const integrands wanted, const int normal)
{
    const intptr_t quartets = p->items.quartets;
    intptr_t quartet = 0;
    while (quartet < quartets && !cancellation_requested(p->cancellation, (double)p->ranks.K)) {
        const int relevant = quartet < p->items.relevant;
        const int light = quartet >= node->light_begin && quartet < node->light_end;
        const intptr_t alike_end = light                           ? node->light_end
                                   : quartet < node->light_begin ? node->light_begin
                                                                 : quartets;
        const int pair = !relevant && quartet + 1 < alike_end;
        if (light && relevant)
            add_by_series(p, quartet, 1, node, 1, wanted, normal);
        else if (light && pair)
            add_by_series(p, quartet, 2, node, 0, wanted, normal);
        else if (light)
            add_by_series(p, quartet, 1, node, 0, wanted, normal);
        else if (relevant)
            add_by_division(p, quartet, 1, node, 1, wanted, normal);
        else if (pair)
            add_by_division(p, quartet, 2, node, 0, wanted, normal);
        else
            add_by_division(p, quartet, 1, node, 0, wanted, normal);
        quartet += 1 + pair;
    }
}

/* Add the integrands at the nodes from i on. */
PLR_INLINE void integrate_nodes(panel *p, int i, const integrands wanted, const int normal,
                                void (*const find_arrivals)(panel *, node_vector *))
{
    node_vector found = {.time = lanes_load(p->plan->time + i), .weight = lanes_load(p->plan->weight + i),
                         .finest = lanes_load(p->plan->finest + i)};
    find_arrivals(p, &found);
    node_vector here = found; /* a copy that nothing else can point to */
    const intptr_t K = p->ranks.K;
    if (here.low >= K)
        return;
    lanes value = {0};
    for (intptr_t m = here.low; m < K && m < here.high; m++)
        value += p->ranks.theta[m] * p->at.B[m];
    p->sums.value += value * here.weight;
    if (wanted == VALUE_ALONE)
        return;
    if (p->ranks.divide_all)
        here.light_begin = here.light_end = 0;
    find_series(p, &here, longest_series(p, &here));
    if (p->proxies.count)
        add_proxies(p, &here, wanted);
    add_items(p, &here, wanted, normal);
}

PLR_INLINE void integrate_wanted(panel *p, int i, const integrands wanted, const int normal,
                                 void (*const find_arrivals)(panel *, node_vector *))
{
    if (wanted == HESSIAN)
        integrate_nodes(p, i, HESSIAN, normal, find_arrivals);
    else if (wanted == CHECKED_GRADIENT && !normal)
        integrate_nodes(p, i, CHECKED_GRADIENT, 0, find_arrivals);
    else if (wanted == GRADIENT)
        integrate_nodes(p, i, GRADIENT, normal, find_arrivals);
    else
        integrate_nodes(p, i, VALUE_ALONE, normal, find_arrivals);
}

static void clear_sums(panel *p, const integrands wanted)
{
    const size_t items = QUARTET * p->items.quartets * sizeof(lanes), proxies = p->proxies.count * sizeof(lanes);
    node_sums *sums = &p->sums;
    sums->value = (lanes){0};
    if (wanted == VALUE_ALONE)
        return;
    memset(sums->gradient, 0, items);
    if (wanted == CHECKED_GRADIENT)
        memset(sums->check, 0, items);
    if (wanted == HESSIAN)
        memset(sums->hessian, 0, items);
    if (proxies == 0)
        return;
    memset(sums->proxy_plain, 0, proxies);
    memset(sums->proxy_relevant, 0, proxies);
    if (wanted == HESSIAN) {
        memset(sums->proxy_plain_hessian, 0, proxies);
        memset(sums->proxy_relevant_hessian, 0, proxies);
    }
}

/* The gradient's errors are looked at entry by entry where nodes are as dense as single items need them. Normal plans
 * have another rule, to which the pattern does not belong. */
static integrands integrands_wanted(const panel *p, const exact_query *query)
{
    if (query->hessian)
        return HESSIAN;
    if (!query->gradient)
        return VALUE_ALONE;
    return !p->items.position && p->plan->wide ? CHECKED_GRADIENT : GRADIENT;
}

/* Add up the nodes of each item's sum, and add that to the query's item. There is room for whole groups of vectors. */
static void hand_out(const panel *p, const lanes *sums, const intptr_t *query_item, double *to)
{
    const intptr_t items = QUARTET * p->items.quartets, *item = p->items.item;
    for (intptr_t j = 0; j < items; j += NODE_LANES) {
        const lanes group = lanes_sums(sums + j);
        for (intptr_t i = 0; i < NODE_LANES && j + i < items; i++)
            if (item[j + i] >= 0)
                to[query_item[item[j + i]]] += group[i];
    }
}

double integrate_panel(panel *p, const exact_query *query, const intptr_t *query_item)
{
    const intptr_t items = QUARTET * p->items.quartets;
    const integrands wanted = integrands_wanted(p, query);
    p->all_checked &= wanted == CHECKED_GRADIENT;
    p->planned_error = larger(p->planned_error, p->plan->error);
    p->planned_hessian_error = larger(p->planned_hessian_error, p->plan->hessian_error);
    clear_sums(p, wanted);
    for (int i = 0; i < p->plan->nodes && !p->cancellation->requested; i += NODE_LANES) {
#ifndef PLR_SINGLE
        if (p->items.position) {
            integrate_wanted(p, i, wanted, 1, normal_arrivals);
            continue;
        }
#endif
        integrate_wanted(p, i, wanted, 0, exponential_arrivals);
    }
    for (intptr_t j = 0; wanted == CHECKED_GRADIENT && j < items; j++) {
        const double finest = lanes_sum(p->sums.check[j]);
        p->unresolved += finest * finest;
    }
    if (query->gradient)
        hand_out(p, p->sums.gradient, query_item, query->gradient);
    if (query->hessian)
        hand_out(p, p->sums.hessian, query_item, query->hessian);
    return lanes_sum(p->sums.value);
}
