#include "gradients/exact/rank_probabilities.h"

#include "gradients/exact/arrival_polynomials.h"
#include "gradients/exact/leave_one_out_division.h"

/* One node vector's share in the chances of four items, r being their odds there: as the division of the gradient, but
 * each coefficient is a result of its own. */
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
    const double border = division_border(&p->ranks, first, last);
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

/* The K sums of each item of a quartet. */
static void sum_quartet(const panel *p, intptr_t quartet, const kept_nodes *kept, intptr_t vectors)
{
    const double *w = p->items.w + QUARTET * quartet;
    for (intptr_t m = 0; m < QUARTET * p->ranks.K; m++)
        kept->sums[m] = (lanes){0};
    for (intptr_t i = 0; i < vectors; i++) {
        lanes r[QUARTET];
        for (int n = 0; n < QUARTET; n++)
            r[n] = exponential_odds(w[n], kept->nodes[i].time);
        add_node(p, w, kept->nodes + i, r, kept->sums);
    }
}

/* P at all nodes; returns the number of vectors before all ranks are filled. */
static intptr_t keep_nodes(panel *p, const kept_nodes *kept)
{
    lanes *room = kept->P;
    intptr_t vectors = 0;
    for (int i = 0; i < p->plan->nodes && !p->cancellation->requested; i += PLR_LANES) {
        node_vector here = {.time = vec_load(p->plan->time + i), .weight = vec_load(p->plan->weight + i)};
        exponential_arrivals(p, &here);
        if (here.low >= p->ranks.K)
            break;
        memcpy(room, p->at.P, here.high * sizeof(lanes));
        kept->nodes[vectors++] = (kept_node){here.time, here.weight, here.low, here.high, room};
        room += here.high;
    }
    return vectors;
}

void integrate_rank_probabilities(panel *p, const kept_nodes *kept, const exact_query *query,
                                  const intptr_t *query_item, intptr_t arrived)
{
    const intptr_t K = p->ranks.K, vectors = keep_nodes(p, kept);
    for (intptr_t quartet = 0; quartet < p->items.quartets; quartet++) {
        if (cancellation_requested(p->cancellation, (double)vectors * K))
            return;
        sum_quartet(p, quartet, kept, vectors);
        for (int n = 0; n < QUARTET; n++) {
            const intptr_t item = p->items.item[QUARTET * quartet + n];
            if (item < 0)
                continue;
            double *row = query->probabilities + query_item[item] * query->columns + arrived;
            for (intptr_t m = 0; m < K; m++)
                row[m] += vec_sum(kept->sums[QUARTET * m + n]);
        }
    }
}
