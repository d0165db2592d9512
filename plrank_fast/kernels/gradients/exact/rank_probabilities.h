/* P(rank of j = m + 1) = integral of w_j q_j [z^m] P / L_j dt, for all items and ranks of a panel. */
#ifndef PLR_RANK_PROBABILITIES_H
#define PLR_RANK_PROBABILITIES_H

#include "gradients/exact/arrival_polynomials.h"
#include "gradients/exact/exact_panel.h"
#include "gradients/exact/exact_query.h"
#include "gradients/exact/leave_one_out_division.h"

/* P at one vector of nodes, which is divided by the factor of each item. */
typedef struct {
    lanes time, weight;
    intptr_t low, high;
    lanes *P;
} kept_node;

/* Memory for P at all nodes of a plan, `coefficients` for each vector, and for the sums of a quartet, `most_sums` for
 * each thread. */
typedef struct {
    kept_node *nodes;
    size_t coefficients, most_sums;
    lanes *P, *sums;
} kept_nodes;

/* Add the share of one vector of nodes in the probabilities of four items with odds r there, by the division of the
 * gradient, with each coefficient a separate result. */
PLR_INLINE void add_node(const panel *p, const double *w, const kept_node *node, const lanes *r, lanes *restrict sums)
{
    const lanes *restrict P = node->P, zero = {0};
    const intptr_t K = p->ranks.K, low = node->low, end = node->high < K ? node->high : K;
    lanes s[QUARTET], weight[QUARTET], x[QUARTET];
    int_lanes early[QUARTET];
    double first = INFINITY, last = 0;
    for (int n = 0; n < QUARTET; n++) {
        first = smaller(first, r[n][0]);
        last = larger(last, last_lane(r + n));
    }
    const double border = division_border(p, node->high, first, last);
    for (int n = 0; n < QUARTET; n++) {
        early[n] = r[n] <= border;
        s[n] = vec_keep(early[n], r[n]);
        weight[n] = vec_keep(early[n], w[n] * node->weight);
        x[n] = zero;
    }
    if (first <= border)
        for (intptr_t m = low; m < end; m++)
            for (int n = 0; n < QUARTET; n++) {
                x[n] = P[m] - s[n] * x[n];
                sums[QUARTET * m + n] += weight[n] * x[n];
            }
    if (!(last > border))
        return;
    for (int n = 0; n < QUARTET; n++) {
        s[n] = vec_select(early[n], zero, 1.0 / r[n]);
        weight[n] = s[n] * (w[n] * node->weight);
        x[n] = zero;
    }
    intptr_t m = node->high - 1;
    const intptr_t down_to = low > 1 ? low : 1;
    for (; m > K && m >= down_to; m--)
        for (int n = 0; n < QUARTET; n++)
            x[n] = P[m] - s[n] * x[n];
    for (; m >= down_to; m--)
        for (int n = 0; n < QUARTET; n++) {
            x[n] = P[m] - s[n] * x[n];
            sums[QUARTET * (m - 1) + n] += weight[n] * x[n];
        }
}

/* Data that the threads of a panel share. */
typedef struct {
    panel *p;
    const kept_nodes *kept;
    const exact_query *query;
    const intptr_t *query_item;
    intptr_t arrived; /* items that have left before */
    intptr_t vectors; /* number of vectors of nodes before all ranks are filled */
} probabilities_task;

/* Compute and keep P at a vector of nodes; no coefficients if all ranks are filled by then. */
static void keep_nodes(void *argument, intptr_t v, int thread)
{
    const probabilities_task *task = argument;
    const quadrature_plan *plan = task->p->plan;
    const int i = (int)v * PLR_LANES;
    cancellation own;
    panel mine = *task->p;
    mine.cancellation = cancellation_of_thread(task->p->cancellation, thread, &own);
    mine.at = mine.side_by_side[thread];
    lanes *room = task->kept->P + v * task->kept->coefficients;
    node_vector here = {.time = vec_load(plan->time + i), .weight = vec_load(plan->weight + i)};
    if (mine.cancellation->requested)
        return;
    find_arrivals(&mine, &here);
    task->kept->nodes[v] = (kept_node){here.time, here.weight, here.low, here.high, room};
    if (here.low < mine.ranks.K)
        memcpy(room, mine.at.P, here.high * sizeof(lanes));
}

/* Compute the K sums of each item of a quartet. */
static void sum_quartet(const probabilities_task *task, intptr_t quartet, lanes *sums)
{
    const panel *p = task->p;
    const double *w = p->items.w + QUARTET * quartet;
    for (intptr_t m = 0; m < QUARTET * p->ranks.K; m++)
        sums[m] = (lanes){0};
    for (intptr_t i = 0; i < task->vectors; i++) {
        lanes r[QUARTET];
        for (int n = 0; n < QUARTET; n++)
            r[n] = exponential_odds(w[n], task->kept->nodes[i].time).odds;
        add_node(p, w, task->kept->nodes + i, r, sums);
    }
}

static void integrate_quartet(void *argument, intptr_t quartet, int thread)
{
    const probabilities_task *task = argument;
    const panel *p = task->p;
    const intptr_t K = p->ranks.K;
    lanes *sums = task->kept->sums + thread * task->kept->most_sums;
    cancellation own;
    if (cancellation_requested(cancellation_of_thread(p->cancellation, thread, &own), (double)task->vectors * K))
        return;
    sum_quartet(task, quartet, sums);
    for (int n = 0; n < QUARTET; n++) {
        const intptr_t item = p->items.item[QUARTET * quartet + n];
        if (item < 0)
            continue;
        double *row = task->query->probabilities + task->query_item[item] * task->query->K + task->arrived;
        for (intptr_t m = 0; m < K; m++)
            row[m] += vec_sum(sums[QUARTET * m + n]);
    }
}

/* Add the probabilities of the panel's items to those of the query. query_item maps the items of the panel to those of
 * the query; the panel's first rank follows `arrived` items. */
static void integrate_rank_probabilities(panel *p, const kept_nodes *kept, const exact_query *query, const intptr_t
                                         *query_item, intptr_t arrived)
{
    probabilities_task task = {.p = p, .kept = kept, .query = query, .query_item = query_item, .arrived = arrived};
    const intptr_t all = (p->plan->nodes + PLR_LANES - 1) / PLR_LANES;
    run_loop(p->loop, keep_nodes, &task, all);
    if (p->cancellation->requested)
        return;
    while (task.vectors < all && kept->nodes[task.vectors].low < p->ranks.K)
        task.vectors++;
    run_loop(p->loop, integrate_quartet, &task, p->items.quartets);
}

#endif
