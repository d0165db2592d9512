/* Sums of the integrands over the nodes of a panel. */
#ifndef PLR_PANEL_INTEGRALS_H
#define PLR_PANEL_INTEGRALS_H

#include "gradients/exact/arrival_polynomials.h"
#include "gradients/exact/exact_panel.h"
#include "gradients/exact/exact_query.h"
#include "gradients/exact/hessian_product.h"
#include "gradients/exact/lane_sums.h"
#include "gradients/exact/leave_one_out_division.h"
#include "gradients/exact/leave_one_out_series.h"

/* Return the number of terms of the longest series of a light item, 0 if there is no such item. */
PLR_INLINE intptr_t longest_series(const panel *p, const node_vector *node)
{
    double largest = node->light_odds;
    for (intptr_t j = 0; j < p->proxies.count; j += QUARTET)
        largest = larger(largest, largest_of_quartet(p->at.proxy_odds + j));
    return largest < 0 ? 0 : terms_of_series(p, node, largest);
}

/* Add quartets [begin, end). */
PLR_INLINE void add_items(panel *p, const node_vector *node, intptr_t begin, intptr_t end, const integrands wanted,
                          const int law)
{
    const double work = (double)p->ranks.K;
    for (intptr_t quartet = begin; quartet < end && !cancellation_requested(p->cancellation, work); quartet++) {
        const int relevant = quartet < p->items.relevant;
        const int light = quartet >= node->light_begin && quartet < node->light_end;
        if (light && relevant)
            add_by_series(p, quartet, node, 1, wanted, law);
        else if (light)
            add_by_series(p, quartet, node, 0, wanted, law);
        else if (relevant)
            add_by_division(p, quartet, node, 1, wanted, law);
        else
            add_by_division(p, quartet, node, 0, wanted, law);
    }
}

/* The evaluation of one vector of nodes. */
typedef struct {
    panel *p; /* with its workspace */
    node_vector node;
    integrands wanted;
    int law;
} node_task;

/* Compute P, B and the series at the vector of nodes from i on. */
static void prepare_nodes(node_task *task, int i)
{
    panel *p = task->p;
    node_vector found = {.time = vec_load(p->plan->time + i), .weight = p->reading * vec_load(p->plan->weight + i)};
    found.factor = task->wanted == EXPOSURE ? (lanes){0} : found.time;
    if (p->ranks.found > 0)
        precision_arrivals(p, &found);
    else
        find_arrivals(p, &found);
    node_vector here = found; /* a copy that cannot be aliased */
    const intptr_t K = p->ranks.K;
    if (here.low < K) {
        for (intptr_t m = here.low; m < K && m < here.high; m++)
            here.value += p->ranks.theta[m] * p->at.G[m];
        if (p->ranks.divide_all) {
            here.light_begin = here.light_end = 0;
            here.light_odds = -1;
        }
        if (task->wanted == PRODUCT)
            prepare_product(p, &here);
        else if (task->wanted == PRECISION)
            find_precision_series(p, &here, longest_series(p, &here));
        else if (task->wanted != VALUE_ALONE)
            find_series(p, &here, longest_series(p, &here));
    }
    task->node = here;
}

/* Threads share blocks of quartets. */
#define QUARTETS_OF_BLOCK 64

static intptr_t blocks_of_quartets(const panel *p)
{
    return (p->items.quartets + QUARTETS_OF_BLOCK - 1) / QUARTETS_OF_BLOCK;
}

/* Add the integrands of a block of quartets at the nodes. */
static void add_block(panel *p, const node_task *task, intptr_t block)
{
    const node_vector here = task->node;
    const intptr_t begin = block * QUARTETS_OF_BLOCK, next = begin + QUARTETS_OF_BLOCK;
    const intptr_t end = next < p->items.quartets ? next : p->items.quartets;
    if (here.low >= p->ranks.K || task->wanted == VALUE_ALONE)
        return;
    if (task->wanted == PRODUCT)
        add_product(p, &here, begin, end);
    else if (task->wanted == PRECISION)
        add_items(p, &here, begin, end, PRECISION, exponential_arrivals);
    else if (task->wanted == HESSIAN)
        FOR_LAW(task->law, add_items(p, &here, begin, end, HESSIAN, LAW))
    else
        FOR_LAW(task->law, add_items(p, &here, begin, end, GRADIENT, LAW))
}

/* Add the parts outside of all blocks: the metric itself, and proxies. */
static void add_rest(panel *p, const node_task *task)
{
    const node_vector here = task->node;
    p->sums.value += here.value * here.weight;
    if (p->proxies.count == 0 || here.low >= p->ranks.K || task->wanted == VALUE_ALONE)
        return;
    if (task->wanted == HESSIAN)
        add_proxies(task->p, &here, HESSIAN);
    else
        add_proxies(task->p, &here, GRADIENT);
}

/* Vectors of nodes that threads evaluate at the same time: first each vector by itself, then each block of quartets at
 * all vectors in turn. So every sum is over the nodes in their order, as on one thread. */
typedef struct {
    panel *p;            /* of the caller */
    panel *copy;         /* one for each vector, which shares all except the workspace of its nodes */
    node_task *task;
    int first, vectors;
} side_by_side;

static void prepare_side_by_side(void *argument, intptr_t v, int thread)
{
    side_by_side *nodes = argument;
    cancellation own;
    panel *p = nodes->copy + v;
    p->cancellation = cancellation_of_thread(nodes->p->cancellation, thread, &own);
    if (!p->cancellation->requested)
        prepare_nodes(nodes->task + v, nodes->first + (int)v * PLR_LANES);
    p->cancellation = nodes->p->cancellation; /* `own` ends with this pass */
}

static void add_side_by_side(void *argument, intptr_t block, int thread)
{
    side_by_side *nodes = argument;
    cancellation own, *of_thread = cancellation_of_thread(nodes->p->cancellation, thread, &own);
    panel mine = *nodes->p;
    mine.cancellation = of_thread;
    for (int v = 0; v < nodes->vectors && !of_thread->requested; v++) {
        mine.at = nodes->copy[v].at;
        add_block(&mine, nodes->task + v, block);
    }
}

static void integrate_side_by_side(panel *p, const integrands wanted)
{
    panel copy[MOST_SIDE_BY_SIDE];
    node_task task[MOST_SIDE_BY_SIDE];
    const int most = threads_of(p->loop);
    side_by_side nodes = {.p = p, .copy = copy, .task = task};
    for (int v = 0; v < most; v++) {
        copy[v] = *p;
        copy[v].at = p->side_by_side[v];
        task[v] = (node_task){.p = copy + v, .wanted = wanted, .law = p->plan->map.law};
    }
    for (int i = 0; i < p->plan->nodes && !p->cancellation->requested; i += nodes.vectors * PLR_LANES) {
        const int left = (p->plan->nodes - i + PLR_LANES - 1) / PLR_LANES;
        nodes.first = i;
        nodes.vectors = left < most ? left : most;
        run_loop(p->loop, prepare_side_by_side, &nodes, nodes.vectors);
        if (p->cancellation->requested)
            return;
        for (int v = 0; v < nodes.vectors; v++)
            add_rest(p, task + v);
        run_loop(p->loop, add_side_by_side, &nodes, blocks_of_quartets(p));
    }
}

static void integrate_one_by_one(panel *p, const integrands wanted)
{
    node_task task = {.p = p, .wanted = wanted, .law = p->plan->map.law};
    for (int i = 0; i < p->plan->nodes && !p->cancellation->requested; i += PLR_LANES) {
        prepare_nodes(&task, i);
        add_rest(p, &task);
        for (intptr_t block = 0; block < blocks_of_quartets(p); block++)
            add_block(p, &task, block);
    }
}

static integrands integrands_wanted(const exact_query *query)
{
    return query->exposure    ? EXPOSURE
           : query->direction ? PRODUCT
           : query->hessian   ? HESSIAN
           : !query->gradient ? VALUE_ALONE
           : query->average_precision ? PRECISION
                                      : GRADIENT;
}

/* Call these in order: clear the sums, add the integrands at the nodes of the panel's plan, and add the sums to the
 * query. The last adds the requested gradient and Hessian diagonal of the panel's items to those of the query and
 * returns the panel's value. query_item maps the items of the panel to those of the query. */
static void clear_sums(panel *p, const exact_query *query)
{
    const integrands wanted = integrands_wanted(query);
    const size_t items = QUARTET * p->items.quartets * sizeof(lanes), proxies = p->proxies.count * sizeof(proxy_sums);
    node_sums *sums = &p->sums;
    sums->value = (lanes){0};
    if (wanted != VALUE_ALONE)
        memset(sums->gradient, 0, items);
    if (wanted >= HESSIAN)
        memset(sums->hessian, 0, items);
    if (proxies > 0 && wanted != VALUE_ALONE)
        memset(sums->proxy_gradient, 0, proxies);
    if (proxies > 0 && wanted == HESSIAN)
        memset(sums->proxy_hessian, 0, proxies);
}

/* Add the lanes of each item's sum to the query's item. `sums` has room for whole groups of vectors. */
static void hand_out(const panel *p, const lanes *sums, const intptr_t *query_item, double *to)
{
    const intptr_t items = QUARTET * p->items.quartets, *item = p->items.item;
    for (intptr_t j = 0; j < items; j += PLR_LANES) {
        const lanes group = lane_sums(sums + j);
        for (intptr_t i = 0; i < PLR_LANES && j + i < items; i++)
            if (item[j + i] >= 0)
                to[query_item[item[j + i]]] += group[i];
    }
}

static void add_nodes(panel *p, const exact_query *query)
{
    if (threads_of(p->loop) > 1)
        integrate_side_by_side(p, integrands_wanted(query));
    else
        integrate_one_by_one(p, integrands_wanted(query));
}

static double hand_out_sums(panel *p, const exact_query *query, const intptr_t *query_item)
{
    if (query->gradient)
        hand_out(p, p->sums.gradient, query_item, query->gradient);
    if (query->hessian)
        hand_out(p, p->sums.hessian, query_item, query->hessian);
    return vec_sum(p->sums.value);
}

#endif
