/* P and B at a vector of times, the input of the evaluators. */
#ifndef PLR_ARRIVAL_POLYNOMIALS_H
#define PLR_ARRIVAL_POLYNOMIALS_H

#include <math.h>

#include "gradients/exact/average_precision.h"
#include "gradients/exact/exact_panel.h"
#include "gradients/exact/power_sums.h"
#include "gradients/exact/truncated_product.h"

#define SMALL 0.3       /* largest odds of an item that may enter P through power sums */
#define FEWEST_SMALL 5  /* quartets from which on power sums are cheaper than products */
#define BANDED_FROM 32  /* rank weights from which on searching for negligible coefficients pays */
#define QUARTETS_OF_SET 512       /* small quartets: the product of their q, at least 1.3^-2048, does not underflow */
#define NEGLIGIBLE_FACTOR 0x1p-75 /* share of a factor's largest coefficient that no recurrence makes significant */

/* ----------------------------------------------------------------------------------------------- single items */

/* Find the odds, and the hazards unless they are w at all times. */
PLR_INLINE void find_odds(panel *p, lanes t, const int law)
{
    const intptr_t n = QUARTET * p->items.quartets;
    const double *w = p->items.w;
    lanes *restrict odds = p->at->odds, *restrict hazard = p->at->hazard;
    for (intptr_t j = 0; j < n; j++) {
        const odds_and_hazard item = odds_at(law, w[j], t);
        odds[j] = item.odds;
        if (!arrives_at_rate(law))
            hazard[j] = item.hazard;
    }
    for (intptr_t j = 0; j < n && p->stops; j++)
        odds[j] *= 1 - p->items.stop[j];
    for (intptr_t j = 0; j < p->proxies.count; j++)
        p->at->proxy_odds[j] = vec_expm1(p->proxies.w[j] * t);
}

/* Find the light quartets at these times, from the middle of the items on. */
PLR_INLINE void find_light(const panel *p, node_vector *node, const int law)
{
    const item_block *items = &p->items;
    const lanes *odds = p->at->odds;
    intptr_t begin = items->relevant, end = begin;
    double here, largest = -1, weight[QUARTET] = {0};
    while (begin > 0 && (here = largest_of_quartet(odds + QUARTET * (begin - 1))) <= p->ranks.upward_limit) {
        begin--;
        largest = larger(largest, here);
    }
    while (end < items->quartets && (here = largest_of_quartet(odds + QUARTET * end)) <= p->ranks.upward_limit) {
        end++;
        largest = larger(largest, here);
    }
    for (intptr_t j = QUARTET * begin; j < QUARTET * end && arrives_at_rate(law); j += QUARTET)
        for (int n = 0; n < QUARTET; n++)
            weight[n] += items->w[j + n];
    node->light_begin = begin;
    node->light_end = end;
    node->light_weight = (weight[0] + weight[1]) + (weight[2] + weight[3]);
    node->light_odds = largest;
}

/* ------------------------------------------------------------------------------- which coefficients matter */

/* Return for each lane the smaller of `least` and the smallest odds of a downward division in quartets [begin, end). */
PLR_INLINE lanes smallest_of_heavy(const panel *p, intptr_t begin, intptr_t end, lanes least)
{
    for (intptr_t j = QUARTET * begin; j < QUARTET * end; j++) {
        const lanes odds = p->at->odds[j];
        least = vec_min_f64(vec_select(odds >= p->ranks.upward_limit, odds, least), least);
    }
    return least;
}

/* Return the smallest odds of a downward division; infinite if there is none. */
PLR_INLINE double smallest_heavy_odds(const panel *p, const node_vector *node)
{
    const lanes first = smallest_of_heavy(p, 0, node->light_begin, vec_all(INFINITY));
    return vec_smallest(smallest_of_heavy(p, node->light_end, p->items.quartets, first));
}

/* Return how far below the expected number of arrivals the coefficients of P may be omitted. Upward recurrences with
 * odds up to r amplify an error of P_m by r^(top-m), so P(N <= m) r^(top-m) must be below e^-nats, where P(N <= mean -
 * x) is at most exp(-x^2 / (2 variance + 2 x / 3)) (Bernstein) and at most exp(-x^2 / (2 mean)). */
PLR_INLINE double reach_below(double mean, double variance, double nats, double top, double log_r)
{
    const double wanted = nats + larger(0, top - mean) * log_r, slope = wanted / 3 + variance * log_r;
    const double left = 1 - 2 * log_r / 3;
    const double bernstein = left > 0 ? (slope + sqrt(slope * slope + 2 * left * variance * wanted)) / left : INFINITY;
    const double of_mean = mean * log_r + sqrt(mean * mean * log_r * log_r + 2 * mean * wanted);
    return smaller(bernstein, of_mean);
}

/* Find the coefficients of P, low to high, outside which its mass is negligible at 2^-bits, from the first node to the
 * last. */
PLR_INLINE void find_band(const panel *p, intptr_t *low, intptr_t *high)
{
    lanes arrivals = {0}, variance = {0};
    double largest = 1;
    for (intptr_t j = 0; j < QUARTET * p->items.quartets; j++) {
        lanes q = 1.0 / (1.0 + p->at->odds[j]), chance = p->at->odds[j] * q;
        arrivals += chance;
        variance += chance * q;
        largest = larger(largest, last_lane(p->at->odds + j));
    }
    for (intptr_t j = 0; j < p->proxies.count; j++) {
        lanes q = 1.0 / (1.0 + p->at->proxy_odds[j]), chance = p->proxies.mass[j] * (p->at->proxy_odds[j] * q);
        arrivals += chance;
        variance += chance * q;
    }
    const double nats = M_LN2 * p->ranks.bits, log_r = log(smaller(largest, p->ranks.upward_limit));
    const double reach_above = nats / 3 + sqrt(nats * nats / 9 + 2 * nats * last_lane(&variance));
    const double above = last_lane(&arrivals) + reach_above;
    *high = above + 2 < (double)*high ? (intptr_t)(above + 2) : *high;
    const double top = (double)(*high < p->ranks.K ? *high : p->ranks.K);
    const double below = arrivals[0] - reach_below(arrivals[0], variance[0], nats, top, log_r);
    *low = below > 1 ? (intptr_t)below - 1 : 0;
}

/* Find the coefficients that divisions need: K for upward ones, and for downward ones as many more as it takes for the
 * start of the recurrence to become negligible. */
PLR_INLINE void find_coefficients(const panel *p, node_vector *node)
{
    const rank_block *ranks = &p->ranks;
    const intptr_t K = ranks->K, n_items = QUARTET * p->items.quartets;
    const intptr_t most = p->proxies.count ? ranks->most_coefficients : n_items;
    const double smallest = smallest_heavy_odds(p, node);
    intptr_t low = 0, high = K;
    if (smallest < INFINITY)
        high = ranks->divide_all ? n_items + 1 : K + 1 + series_terms(1 / smallest, ranks->bits, most);
    if (high > most + 1)
        high = most + 1;
    if (K >= BANDED_FROM || high > K + BANDED_FROM)
        find_band(p, &low, &high);
    if (high > ranks->most_coefficients)
        high = ranks->most_coefficients;
    node->low = low;
    node->high = high;
    node->top = high < K ? high : K;
}

/* ---------------------------------------------------------------------------------------------- P and B */

/* Return the product of q over a range of quartets, whose odds are known; 0 where it underflows. */
PLR_INLINE lanes none_arrived_of(const panel *p, intptr_t begin, intptr_t end)
{
    lanes inverse[QUARTET];
    for (int n = 0; n < QUARTET; n++)
        inverse[n] = vec_all(1);
    for (intptr_t quartet = begin; quartet < end; quartet++)
        for (int n = 0; n < QUARTET; n++)
            inverse[n] *= 1.0 + p->at->odds[QUARTET * quartet + n];
    return 1.0 / ((inverse[0] * inverse[1]) * (inverse[2] * inverse[3]));
}

/* Return the product of q + s p over a range of quartets: the chance that a reader reads on after all of their items
 * that have arrived. */
PLR_INLINE lanes chance_to_read_on(const panel *p, lanes t, intptr_t begin, intptr_t end, const int law)
{
    lanes chance = vec_all(1);
    for (intptr_t j = QUARTET * begin; j < QUARTET * end; j++) {
        if (p->items.stop[j] == 0)
            continue;
        chance *= (1.0 + p->at->odds[j]) / (1.0 + odds_at(law, p->items.w[j], t).odds);
    }
    return chance;
}

/* Set P = B = 0 except for the constant of P. If the probability that no light item has arrived is far from underflow,
 * it is the constant, and the factors of light items are 1 + r z (monic, the result); otherwise they are q + p z. If
 * readers stop, those are in (q + s p) (q' + p' z) with p' / q' = r, and q + s p is in the constant. */
PLR_INLINE int start_polynomials(panel *p, const node_vector *node, const int law)
{
    const double weight = node->light_weight + p->proxies.weight;
    const lanes none_arrived = arrives_at_rate(law) ? vec_exp_flush(-weight * node->time)
                                                    : none_arrived_of(p, node->light_begin, node->light_end);
    /* compressed panels are built to be far from underflow */
    const int monic = arrives_at_rate(law) ? p->proxies.count || weight * last_lane(&node->time) < LARGEST_LOG_CONSTANT
                                           : last_lane(&none_arrived) > exp(-LARGEST_LOG_CONSTANT);
    lanes *restrict P = p->at->P, *restrict B = p->at->B;
    for (intptr_t m = -MARGIN; m < node->high; m++)
        P[m] = B[m] = (lanes){0};
    P[0] = monic ? none_arrived : vec_all(1);
    if (p->stops) {
        const int light = monic && arrives_at_rate(law); /* otherwise none_arrived has the chance for the odds above */
        const intptr_t begin = light ? node->light_begin : 0, end = light ? node->light_end : 0;
        P[0] *= chance_to_read_on(p, node->time, 0, begin, law) *
                chance_to_read_on(p, node->time, end, p->items.quartets, law);
    }
    return monic;
}

/* Find the quartets that enter P through power sums: those in which all odds are small, if there are enough. */
PLR_INLINE item_range find_small(const panel *p, const node_vector *node)
{
    intptr_t begin = node->light_begin, end = node->light_end;
    while (begin < end && largest_of_quartet(p->at->odds + QUARTET * begin) > SMALL)
        begin++;
    while (begin < end && largest_of_quartet(p->at->odds + QUARTET * (end - 1)) > SMALL)
        end--;
    if (end - begin < FEWEST_SMALL)
        begin = end;
    return (item_range){begin, end};
}

/* Multiply P, so far a constant, by the factors of small quartets and proxies, divided by q. Adds to b, which enters B
 * when P is complete; returns its number of terms. */
PLR_INLINE intptr_t multiply_small(panel *p, lanes *P, item_range small, intptr_t coefficients, const int law)
{
    const item_block *items = &p->items;
    const node_workspace *at = p->at;
    intptr_t border = items->relevant < small.begin ? small.begin : items->relevant;
    border = border > small.end ? small.end : border;
    for (intptr_t i = 0; i < coefficients; i++)
        at->s[i] = (lanes){0};
    const intptr_t first = QUARTET * small.begin, middle = QUARTET * border, last = QUARTET * small.end;
    const summed_items relevant = {.count = middle - first, .odds = at->odds + first, .hazard = at->hazard + first,
                                   .w = items->w + first, .rho = items->rho + first};
    const summed_items irrelevant = {.count = last - middle, .odds = at->odds + middle};
    intptr_t terms = add_power_sums(p, relevant, 1, law, coefficients, at->s, at->b);
    const intptr_t all_terms = add_power_sums(p, irrelevant, 0, law, coefficients, at->s, NULL);
    if (p->proxies.count) {
        const summed_items proxies = {.count = p->proxies.count, .odds = at->proxy_odds, .mass = p->proxies.mass,
                                      .rho_mass = p->proxies.rho_mass};
        const intptr_t more = add_power_sums(p, proxies, 1, exponential_arrivals, coefficients, at->s, at->b);
        terms = more > terms ? more : terms;
    }
    multiply_by_power_sums(P, at->s, terms > all_terms ? terms : all_terms, coefficients);
    return terms;
}

/* Return the number of coefficients of a factor up to the last one that is not negligible beside the largest. The last
 * lane decides: odds increase with time, and high coefficients with them. */
PLR_INLINE intptr_t length_of(const lanes *factor, intptr_t coefficients)
{
    double largest = 0;
    for (intptr_t m = 0; m < coefficients; m++)
        largest = larger(largest, last_lane(factor + m));
    while (coefficients > 1 && last_lane(factor + coefficients - 1) <= NEGLIGIBLE_FACTOR * largest)
        coefficients--;
    return coefficients;
}

/* Multiply P by the factors q + p z of small quartets where the product of all q would underflow. Each set of quartets
 * has a polynomial of its own, whose constant does not, and P is multiplied by one after the other, all coefficients
 * from the lowest on, because B is computed from those below the band too. */
PLR_INLINE intptr_t multiply_sets_of_small(panel *p, const node_vector *node, item_range small, const int law)
{
    lanes *factor = p->at->y;
    intptr_t terms = 0, top = 0, next;
    for (intptr_t begin = small.begin; begin < small.end && !p->cancellation->requested; begin = next) {
        next = begin + QUARTETS_OF_SET < small.end ? begin + QUARTETS_OF_SET : small.end;
        factor[0] = none_arrived_of(p, begin, next);
        const intptr_t more = multiply_small(p, factor, (item_range){begin, next}, node->high, law);
        const intptr_t length = length_of(factor, node->high);
        top = top + length < node->high ? top + length - 1 : node->high - 1;
        multiply_polynomial(p->at->P, factor, length, top);
        terms = more > terms ? more : terms;
    }
    return terms;
}

/* The state of a product over quartets: how many are left, and the highest coefficient that is not 0. */
typedef struct {
    intptr_t left, top;
} progress;

/* Return the lowest coefficient that the factors left move into the band. */
PLR_INLINE intptr_t bottom_of(const node_vector *node, const progress *now)
{
    return node->low > QUARTET * now->left ? node->low - QUARTET * now->left : 0;
}

typedef enum { IRRELEVANT, RELEVANT, COUNTED } item_kind;

/* Multiply P, and B if they are relevant, by the factors of quartets [begin, end) except the small ones. */
PLR_INLINE void multiply_quartets(panel *p, const node_vector *node, item_range small, intptr_t begin, intptr_t end,
                                  progress *now, int monic, const item_kind kind, const int law)
{
    const intptr_t coefficients = node->high;
    for (intptr_t quartet = end - 1; quartet >= begin; quartet--) {
        if (quartet >= small.begin && quartet < small.end) {
            quartet = small.begin;
            continue;
        }
        if (cancellation_requested(p->cancellation, (double)coefficients))
            return;
        now->left--;
        now->top = now->top + QUARTET < coefficients - 1 ? now->top + QUARTET : coefficients - 1;
        const intptr_t bottom = bottom_of(node, now);
        const int light = monic && quartet >= node->light_begin && quartet < node->light_end;
        if (kind == COUNTED && light)
            count_quartet(p, quartet, bottom, now->top, 1);
        else if (kind == COUNTED)
            count_quartet(p, quartet, bottom, now->top, 0);
        else if (light)
            include_quartet(p, quartet, bottom, now->top, 1, kind, law);
        else
            include_quartet(p, quartet, bottom, now->top, 0, kind, law);
    }
}

PLR_INLINE void arrival_polynomials(panel *p, node_vector *node, const item_kind kind, const int law)
{
    const item_block *items = &p->items;
    find_odds(p, node->time, law);
    find_light(p, node, law);
    find_coefficients(p, node);
    if (node->low >= p->ranks.K)
        return;
    const node_vector here = *node; /* a copy that cannot be aliased */
    const int monic = start_polynomials(p, &here, law);
    const item_range small = find_small(p, &here);
    intptr_t terms = 0;
    progress now = {items->quartets - (small.end - small.begin), 0};
    if (small.begin < small.end || p->proxies.count) {
        for (intptr_t i = 0; i < here.high; i++)
            p->at->b[i] = (lanes){0};
        terms = monic ? multiply_small(p, p->at->P, small, here.high, law)
                      : multiply_sets_of_small(p, &here, small, law);
        now.top = here.high - 1;
    }
    multiply_quartets(p, &here, small, items->relevant, items->quartets, &now, monic, IRRELEVANT, law);
    if (kind == COUNTED)
        count_small(p, &here, small, terms, bottom_of(&here, &now), now.top);
    multiply_quartets(p, &here, small, 0, items->relevant, &now, monic, kind, law);
    if (kind == RELEVANT && !p->cancellation->requested)
        add_shares(p->at->B, p->at->P, p->at->b, terms, here.low, here.high);
}

/* Compute the odds of each item and the coefficients of P and B, and for average precision of H and G, that matter at
 * node->time; set the rest of *node, which has no coefficients if all ranks are filled by then. */
static void find_arrivals(panel *p, node_vector *node)
{
    if (p->ranks.found > 0)
        arrival_polynomials(p, node, COUNTED, exponential_arrivals);
    else
        FOR_LAW(p->plan->map.law, arrival_polynomials(p, node, RELEVANT, LAW))
}

#endif
