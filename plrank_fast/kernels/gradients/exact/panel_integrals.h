/* Sums of the integrands over the nodes of a panel. */
#ifndef PLR_PANEL_INTEGRALS_H
#define PLR_PANEL_INTEGRALS_H

#include "gradients/exact/arrival_polynomials.h"
#include "gradients/exact/exact_panel.h"
#include "gradients/exact/hessian_product.h"
#include "gradients/exact/lane_sums.h"
#include "gradients/exact/leave_one_out_division.h"
#include "gradients/exact/leave_one_out_series.h"

/* Return the number of terms of the longest series of a light item, 0 if there is no such item. */
PLR_INLINE intptr_t longest_series(const panel *p, const node_vector *node)
{
    double largest = node->light_odds;
    for (intptr_t j = 0; j < p->proxies.count; j += QUARTET)
        largest = larger(largest, largest_of_quartet(p->at->proxy_odds + j));
    return largest < 0 ? 0 : terms_of_series(p, node, largest);
}

/* Add quartets [begin, end). */
PLR_INLINE void add_items(panel *p, const node_vector *node, intptr_t begin, intptr_t end, const int stops,
                          const integrands wanted, const int law)
{
    const double work = (double)p->ranks.K;
    for (intptr_t quartet = begin; quartet < end && !cancellation_requested(p->cancellation, work); quartet++) {
        const int relevant = quartet < p->items.relevant;
        const int light = quartet >= node->light_begin && quartet < node->light_end;
        if (light && relevant)
            add_by_series(p, quartet, node, (evaluation){1, stops, wanted, law});
        else if (light)
            add_by_series(p, quartet, node, (evaluation){0, stops, wanted, law});
        else if (relevant)
            add_by_division(p, quartet, node, (evaluation){1, stops, wanted, law});
        else
            add_by_division(p, quartet, node, (evaluation){0, stops, wanted, law});
    }
}

/* Do so, compiled for readers who stop, which items of no other kind pay for, and for those who do not. */
PLR_INLINE void add_read_items(panel *p, const node_vector *node, intptr_t begin, intptr_t end,
                               const integrands wanted, const int law)
{
    if (p->stops)
        add_items(p, node, begin, end, 1, wanted, law);
    else
        add_items(p, node, begin, end, 0, wanted, law);
}

/* Compute P, B and the series at the vector of nodes from i on. */
static void prepare_nodes(panel *p, int i, node_vector *node)
{
    lanes value = {0};
    node->time = vec_load(p->plan->time + i);
    node->weight = p->reading * vec_load(p->plan->weight + i);
    node->factor = p->wanted == EXPOSURE ? (lanes){0} : node->time;
    find_arrivals(p, node);
    for (intptr_t m = node->low; m < node->top; m++)
        value += p->ranks.theta[m] * p->at->G[m];
    node->value = value;
    if (node->low >= p->ranks.K || p->wanted == VALUE_ALONE)
        return;
    if (p->ranks.divide_all) {
        node->light_begin = node->light_end = 0;
        node->light_odds = -1;
    }
    if (p->wanted == PRODUCT)
        prepare_product(p, node);
    else if (p->wanted == PRECISION)
        find_precision_series(p, node, longest_series(p, node));
    else
        find_series(p, node, longest_series(p, node));
}

/* Threads share blocks of quartets, and of as many proxies. */
#define QUARTETS_OF_BLOCK 64

static intptr_t blocks_of(intptr_t n)
{
    return (n + QUARTETS_OF_BLOCK - 1) / QUARTETS_OF_BLOCK;
}

/* Add the integrands of quartets [begin, end) at the nodes. */
static void add_quartets(panel *p, const node_vector *node, intptr_t begin, intptr_t end)
{
    const int law = p->plan->map.law;
    const node_vector here = *node; /* a copy that cannot be aliased */
    if (p->wanted == PRODUCT)
        add_product(p, &here, begin, end);
    else if (p->wanted == PRECISION)
        add_items(p, &here, begin, end, 0, PRECISION, exponential_arrivals);
    else if (p->wanted == HESSIAN)
        FOR_LAW(law, add_read_items(p, &here, begin, end, HESSIAN, LAW))
    else
        FOR_LAW(law, add_read_items(p, &here, begin, end, GRADIENT, LAW))
}

/* Add the integrands of a block, first of quartets, then of proxies. */
static void add_block(panel *p, const node_vector *node, intptr_t block)
{
    const intptr_t of_quartets = blocks_of(p->items.quartets), last = block < of_quartets ? p->items.quartets
                                                                                           : p->proxies.count;
    const intptr_t begin = QUARTETS_OF_BLOCK * (block < of_quartets ? block : block - of_quartets);
    const intptr_t end = begin + QUARTETS_OF_BLOCK < last ? begin + QUARTETS_OF_BLOCK : last;
    if (node->low >= p->ranks.K)
        return;
    if (block < of_quartets)
        add_quartets(p, node, begin, end);
    else if (p->wanted == HESSIAN)
        add_proxies(p, node, begin, end, HESSIAN);
    else
        add_proxies(p, node, begin, end, GRADIENT);
}

/* Vectors of nodes that threads evaluate at the same time: first each vector by itself, then each block of quartets at
 * all vectors in turn. So every sum is over the nodes in their order, as on one thread. Each thread has a panel of its
 * own, with its own state of cancellation and workspace. */
typedef struct {
    panel of_thread[MOST_SIDE_BY_SIDE];
    cancellation own[MOST_SIDE_BY_SIDE];
    node_vector node[MOST_SIDE_BY_SIDE];
    int first, vectors;
} side_by_side;

static void prepare_side_by_side(void *argument, intptr_t v, int thread)
{
    side_by_side *nodes = argument;
    panel *mine = nodes->of_thread + thread;
    mine->at = mine->side_by_side + v;
    if (!cancellation_requested(mine->cancellation, 0))
        prepare_nodes(mine, nodes->first + (int)v * PLR_LANES, nodes->node + v);
}

static void add_side_by_side(void *argument, intptr_t block, int thread)
{
    side_by_side *nodes = argument;
    panel *mine = nodes->of_thread + thread;
    for (int v = 0; v < nodes->vectors && !cancellation_requested(mine->cancellation, 0); v++) {
        mine->at = mine->side_by_side + v;
        add_block(mine, nodes->node + v, block);
    }
}

/* Add the integrands at the nodes of the panel's plan. */
static void add_nodes(panel *p)
{
    const int most = threads_of(p->loop);
    const intptr_t blocks = p->wanted == VALUE_ALONE ? 0 : blocks_of(p->items.quartets) + blocks_of(p->proxies.count);
    side_by_side nodes;
    for (int thread = 0; thread < most; thread++) {
        nodes.of_thread[thread] = *p;
        nodes.of_thread[thread].cancellation = cancellation_of_thread(p->cancellation, thread, nodes.own + thread);
    }
    for (int i = 0; i < p->plan->nodes && !p->cancellation->requested; i += nodes.vectors * PLR_LANES) {
        const int left = (p->plan->nodes - i + PLR_LANES - 1) / PLR_LANES;
        nodes.first = i;
        nodes.vectors = left < most ? left : most;
        run_loop(p->loop, prepare_side_by_side, &nodes, nodes.vectors);
        if (p->cancellation->requested)
            return;
        for (int v = 0; v < nodes.vectors; v++)
            p->sums.value += nodes.node[v].value * nodes.node[v].weight;
        run_loop(p->loop, add_side_by_side, &nodes, blocks);
    }
}

/* Clear the sums over the nodes of the panel. */
static void clear_sums(panel *p)
{
    const size_t items = QUARTET * p->items.quartets * sizeof(lanes), proxies = p->proxies.count * sizeof(proxy_sums);
    node_sums *sums = &p->sums;
    sums->value = (lanes){0};
    if (p->wanted != VALUE_ALONE)
        memset(sums->gradient, 0, items);
    if (p->wanted >= HESSIAN)
        memset(sums->hessian, 0, items);
    if (proxies > 0 && p->wanted != VALUE_ALONE)
        memset(sums->proxy_gradient, 0, proxies);
    if (proxies > 0 && p->wanted == HESSIAN)
        memset(sums->proxy_hessian, 0, proxies);
}

/* Add the lanes of each item's sum to the query's item. `sums` has room for whole groups of vectors. */
static void hand_out(const panel *p, const lanes *sums, double *to)
{
    const intptr_t items = QUARTET * p->items.quartets, *item = p->items.item;
    for (intptr_t j = 0; j < items; j += PLR_LANES) {
        const lanes group = lane_sums(sums + j);
        for (intptr_t i = 0; i < PLR_LANES && j + i < items; i++)
            if (item[j + i] >= 0)
                to[item[j + i]] += group[i];
    }
}

/* Add the requested gradient and Hessian diagonal of the panel's items to the query's; return its value. */
static double hand_out_sums(const panel *p)
{
    if (p->query->gradient)
        hand_out(p, p->sums.gradient, p->query->gradient);
    if (p->query->hessian)
        hand_out(p, p->sums.hessian, p->query->hessian);
    return vec_sum(p->sums.value);
}

#endif
