/* P(rank of j = m + 1) = integral of w_j q_j [z^m] P / L_j dt, for all items and ranks of a panel. */
#ifndef PLR_RANK_PROBABILITIES_H
#define PLR_RANK_PROBABILITIES_H

#include "gradients/exact/arrival_polynomials.h"
#include "gradients/exact/exact_panel.h"
#include "gradients/exact/leave_one_out_division.h"

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

/* Compute and keep P at a vector of nodes; no coefficients if all ranks are filled by then. */
static void keep_nodes(void *panel_, intptr_t v, int thread)
{
    panel p = *(const panel *)panel_;
    const int i = (int)v * PLR_LANES;
    cancellation own;
    p.cancellation = cancellation_of_thread(p.cancellation, thread, &own);
    p.at = p.side_by_side + thread;
    lanes *room = p.kept.P + v * p.kept.coefficients;
    node_vector here = {.time = vec_load(p.plan->time + i), .weight = vec_load(p.plan->weight + i)};
    if (p.cancellation->requested)
        return;
    find_arrivals(&p, &here);
    p.kept.nodes[v] = (kept_node){here.time, here.weight, here.low, here.high, room};
    if (here.low < p.ranks.K)
        memcpy(room, p.at->P, here.high * sizeof(lanes));
}

/* Compute the K sums of each item of a quartet. */
static void sum_quartet(const panel *p, intptr_t quartet, lanes *sums)
{
    const double *w = p->items.w + QUARTET * quartet;
    for (intptr_t m = 0; m < QUARTET * p->ranks.K; m++)
        sums[m] = (lanes){0};
    for (intptr_t i = 0; i < p->kept.vectors; i++) {
        lanes r[QUARTET];
        for (int n = 0; n < QUARTET; n++)
            r[n] = exponential_odds(w[n], p->kept.nodes[i].time).odds;
        add_node(p, w, p->kept.nodes + i, r, sums);
    }
}

/* Add the probabilities of a quartet to the query's. */
static void integrate_quartet(void *panel_, intptr_t quartet, int thread)
{
    const panel *p = panel_;
    const intptr_t K = p->ranks.K;
    lanes *sums = p->kept.sums + thread * p->kept.most_sums;
    cancellation own;
    if (cancellation_requested(cancellation_of_thread(p->cancellation, thread, &own), (double)p->kept.vectors * K))
        return;
    sum_quartet(p, quartet, sums);
    for (int n = 0; n < QUARTET; n++) {
        const intptr_t item = p->items.item[QUARTET * quartet + n];
        if (item < 0)
            continue;
        double *row = p->query->probabilities + item * p->query->K + p->ranks.arrived;
        for (intptr_t m = 0; m < K; m++)
            row[m] += vec_sum(sums[QUARTET * m + n]);
    }
}

/* Add the probabilities of the panel's items to the query's. */
static void integrate_rank_probabilities(panel *p)
{
    const intptr_t all = (p->plan->nodes + PLR_LANES - 1) / PLR_LANES;
    run_loop(p->loop, keep_nodes, p, all);
    if (p->cancellation->requested)
        return;
    p->kept.vectors = 0;
    while (p->kept.vectors < all && p->kept.nodes[p->kept.vectors].low < p->ranks.K)
        p->kept.vectors++;
    run_loop(p->loop, integrate_quartet, p, p->items.quartets);
}

#endif
