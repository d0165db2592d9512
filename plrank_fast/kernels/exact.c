/* One query: scores to panels of arrival time, panels to quadrature nodes, nodes to gradient, Hessian diagonal and value.
 *
 * A panel is a stretch of time with its own map of nodes. One panel serves a list without large gaps between
 * neighbouring scores. Where scores have a gap, all items above it have rung before those below it matter, to within the
 * tolerance: time is cut there, the items above leave (the next panel starts at the rank after them) and the items far
 * below have not entered yet. Every panel works with weights relative to its own heaviest item, so that scores may be
 * further apart than the exponents of float64 reach.
 *
 * With normal clocks (scores with normal noise) a panel is a chain of items without a gap that the noise could not bridge,
 * and has no end but those of its items.
 */
#include "exact.h"

#include "arrival_polynomial.h"
#include "crowd.h"
#include "normal_plan.h"
#include "quadrature_plan.h"

#define SHARE_OF_ENDS 0.2 /* of what is promised: may be lost to each of late arrivals, leaving and not having entered */
#define UNRESOLVED 0.1   /* errors over (what shows of the finest pattern)^2 / norm, seen up to this */
#define LEAST_UNSEEN 0.03 /* of the error that nodes are planned for, which hides from the sum of the gradient */
#define MOST_UNSEEN 0.3   /* likewise, at worst */
#define FEW 8            /* items whose gradients are too few numbers to be checked */
#define GAP 7.0          /* nats between neighbouring scores from which a cut saves nodes */
#define WIDEST 250.0     /* nats that one panel may span */
#define SORTED_FROM 17   /* rank weights from which sorting the light items pays: their series differ in length */
#define CROWD_FROM 800   /* items from which those that are light at all times become a crowd */
#define KEYS 256
#define ATTEMPTS 4
#define NORMAL_GAP 12.0  /* sigmas between neighbouring scores that noise bridges with a chance of 1e-17 */
#define WINDOW 200.0     /* of time, in a chain of normal clocks wider than WIDEST */
#define REACH 10.0       /* sigmas from its score at which a normal clock rings with a chance of 1e-23 */

/* --------------------------------------------------------------------------------------------- memory */

typedef struct {
    double *f, *w_in, *rho_in;  /* of the panel, as they come */
    double *w, *rho;            /* in the order of the evaluator */
    double *theta, *delta;      /* of the query */
    double *panel_theta, *panel_delta; /* the K from the first rank of the panel, MARGIN zeros on either side */
    double *key, *key_buffer;
    intptr_t *rank_order, *order_buffer; /* all items by falling score, only where there are gaps */
    intptr_t *panel_item;       /* of the panel as it comes: item of the query */
    intptr_t *item;             /* in the order of the evaluator: item of the panel, -1 for null items */
    double *place;              /* likewise: where its normal clock stands */
    normal_plan *normal;
    histogram *bins;
    quadrature *plan;
    octave_sums *octaves;
    double *crowd_w;            /* then mass, rho_mass and two outputs of the crowd's nodes */
    integrals at;
    arrivals *nodes;            /* only for rank probabilities: P at all nodes, and the sums of a quartet */
    lanes *kept, *sums;
} workspace;

static char *carve(char **free_memory, size_t bytes)
{
    char *block = *free_memory;
    *free_memory += (bytes + 63) / 64 * 64;
    return block;
}

/* Room for coefficients of P: a band ends at a few standard deviations above the arrivals that are expected at the end of
 * the plan, which are K and a few of its square roots. */
static intptr_t most_coefficients(intptr_t D, intptr_t K)
{
    const intptr_t all = D + 2 * PLR_LANES + QUARTET, band = 8 * K + 2000;
    return all < band ? all : band;
}

static size_t lay_out(workspace *ws, char *memory, intptr_t D, intptr_t K, int purpose)
{
    char *start = memory;
    const size_t items = D + 2 * PLR_LANES + QUARTET, real = sizeof(double), index = sizeof(intptr_t);
    const size_t ranks_padded = K + 2 * MARGIN + 2, coefficients = most_coefficients(D, K) + 2 * MARGIN;
    const size_t crowd = OCTAVES * CROWD_NODES;
    ws->f = (double *)carve(&memory, items * real + 64);
    ws->w_in = (double *)carve(&memory, items * real + 64);
    ws->rho_in = (double *)carve(&memory, items * real);
    ws->w = (double *)carve(&memory, items * real);
    ws->rho = (double *)carve(&memory, items * real);
    ws->theta = (double *)carve(&memory, ranks_padded * real);
    ws->delta = (double *)carve(&memory, ranks_padded * real);
    ws->panel_theta = (double *)carve(&memory, ranks_padded * real);
    ws->panel_delta = (double *)carve(&memory, ranks_padded * real);
    ws->key = (double *)carve(&memory, items * real);
    ws->key_buffer = (double *)carve(&memory, items * real);
    ws->rank_order = (intptr_t *)carve(&memory, items * index);
    ws->order_buffer = (intptr_t *)carve(&memory, items * index);
    ws->panel_item = (intptr_t *)carve(&memory, items * index);
    ws->item = (intptr_t *)carve(&memory, items * index);
    ws->bins = (histogram *)carve(&memory, sizeof(histogram));
    ws->plan = (quadrature *)carve(&memory, sizeof(quadrature));
    ws->at.r = (lanes *)carve(&memory, items * sizeof(lanes));
    ws->at.gradient = (lanes *)carve(&memory, items * sizeof(lanes));
    ws->at.hessian = (lanes *)carve(&memory, items * sizeof(lanes));
    ws->at.check = (lanes *)carve(&memory, items * sizeof(lanes));
    ws->octaves = (octave_sums *)carve(&memory, D >= CROWD_FROM ? sizeof(octave_sums) : 0);
    ws->crowd_w = (double *)carve(&memory, 5 * crowd * real);
    lanes **nodes[] = {&ws->at.crowd_r, &ws->at.crowd_plain, &ws->at.crowd_relevant, &ws->at.crowd_plain_hessian,
                       &ws->at.crowd_relevant_hessian};
    for (int i = 0; i < 5; i++)
        *nodes[i] = (lanes *)carve(&memory, crowd * sizeof(lanes));
    lanes **polynomials[] = {&ws->at.P, &ws->at.B, &ws->at.y, &ws->at.c, &ws->at.e,
                             &ws->at.s, &ws->at.b};
    for (size_t i = 0; i < sizeof polynomials / sizeof *polynomials; i++)
        *polynomials[i] = (lanes *)carve(&memory, coefficients * sizeof(lanes)) + (i < 2 ? MARGIN : 0);
    if (purpose == PLR_EXACT_NORMAL) {
        ws->place = (double *)carve(&memory, items * real);
        ws->at.hazard = (lanes *)carve(&memory, items * sizeof(lanes));
        ws->normal = (normal_plan *)carve(&memory, sizeof(normal_plan));
    }
    if (purpose == PLR_EXACT_PROBABILITIES) {
        ws->nodes = (arrivals *)carve(&memory, MOST_NODES / PLR_LANES * sizeof(arrivals));
        ws->kept = (lanes *)carve(&memory, MOST_NODES / PLR_LANES * coefficients * sizeof(lanes));
        ws->sums = (lanes *)carve(&memory, QUARTET * (K + 1) * sizeof(lanes));
    }
    return memory - start;
}

static size_t workspace_bytes(intptr_t D, intptr_t K, int purpose)
{
    workspace ws;
    return lay_out(&ws, (char *)64, D, K < D ? K : D, purpose) + 64;
}

/* -------------------------------------------------------------------------------------- order of the items */

/* Put the n items of a panel into the order that the evaluator wants (see clocks), by a counting sort on the weight:
 * quarter octaves, or only heavy and light. heavy: weight above which an item is heavy. */
static void order_items(workspace *ws, intptr_t n, double heavy, int sorted, clocks *items)
{
    intptr_t counts[2 * KEYS] = {0}, *irrelevant_count = counts, *relevant_count = counts + KEYS;
    const int keys = sorted ? KEYS : 2;
    const int64_t one = (int64_t)1023 << 2; /* exponent and two bits of the mantissa of 1.0 */
    uint16_t *key = (uint16_t *)ws->key;
    int64_t heavy_key = 0;
    if (sorted) {
        memcpy(&heavy_key, &heavy, sizeof heavy_key);
        heavy_key = heavy >= 1 ? -1 : one - (heavy_key >> 50);
        heavy_key = heavy_key < KEYS - 1 ? heavy_key : KEYS - 1;
    }
    intptr_t n_relevant = 0;
    for (intptr_t j = 0; j < n; j++) {
        int64_t k = !(ws->w_in[j] > heavy);
        if (sorted) {
            memcpy(&k, ws->w_in + j, sizeof k);
            k = one - (k >> 50);
            k = k < KEYS - 1 ? k : KEYS - 1;
        }
        const int relevant = ws->rho_in[j] != 0;
        n_relevant += relevant;
        key[j] = (uint16_t)(k + KEYS * relevant);
        counts[key[j]]++;
    }
    const intptr_t total = (n + QUARTET - 1) / QUARTET * QUARTET;
    intptr_t place = 0, heavy_relevant = 0, heavy_irrelevant = 0;
    for (int k = 0; k < keys; k++) {
        intptr_t count = relevant_count[k];
        relevant_count[k] = place;
        place += count;
        if (k <= heavy_key)
            heavy_relevant += count;
    }
    place += total - n;
    for (int k = keys - 1; k >= 0; k--) {
        intptr_t count = irrelevant_count[k];
        irrelevant_count[k] = place;
        place += count;
        if (k <= heavy_key)
            heavy_irrelevant += count;
    }
    for (intptr_t j = n_relevant; j < n_relevant + total - n; j++) {
        ws->item[j] = -1;
        ws->w[j] = ws->rho[j] = 0;
    }
    for (intptr_t j = 0; j < n; j++) {
        intptr_t to = counts[key[j]]++;
        ws->item[to] = j;
        ws->w[to] = ws->w_in[j];
        ws->rho[to] = ws->rho_in[j];
    }
    items->quartets = total / QUARTET;
    items->relevant = (n_relevant + QUARTET - 1) / QUARTET;
    items->light_begin = (heavy_relevant + QUARTET - 1) / QUARTET;
    items->light_end = (total - heavy_irrelevant) / QUARTET;
    if (items->light_end < items->light_begin)
        items->light_end = items->light_begin;
    items->w = ws->w;
    items->rho = ws->rho;
    items->sorted = sorted;
    items->light_weight = items->crowd_weight = 0;
    items->crowd = 0;
    items->place = NULL;
    for (intptr_t j = QUARTET * items->light_begin; j < QUARTET * items->light_end; j++)
        items->light_weight += ws->w[j];
}

/* Indices of keys by falling key; stable (merge sort). */
static void sort_by_score(intptr_t n, double *key, intptr_t *order, double *key_buffer, intptr_t *order_buffer)
{
    for (intptr_t width = 1; width < n; width *= 2) {
        for (intptr_t begin = 0; begin < n; begin += 2 * width) {
            intptr_t middle = begin + width < n ? begin + width : n, end = middle + width < n ? middle + width : n;
            intptr_t a = begin, b = middle;
            for (intptr_t to = begin; to < end; to++) {
                intptr_t from = b >= end || (a < middle && key[a] >= key[b]) ? a++ : b++;
                key_buffer[to] = key[from];
                order_buffer[to] = order[from];
            }
        }
        memcpy(key, key_buffer, n * sizeof *key);
        memcpy(order, order_buffer, n * sizeof *order);
    }
}

/* ------------------------------------------------------------------------------------------------ panels */

/* Histogram of -f for n scores relative to their maximum. */
static void fill_histogram(histogram *h, const double *f, intptr_t n, double lowest)
{
    h->bins = (int)(smaller(-lowest * BINS_PER_NAT, MOST_BINS - 2)) + 2;
    for (int i = 0; i < h->bins + PLR_LANES; i++)
        h->count[i] = 0;
    for (intptr_t j = 0; j < n; j++) {
        double x = -f[j] * BINS_PER_NAT;
        x = x < MOST_BINS - 2 ? x : MOST_BINS - 2;
        int i = (int)x;
        h->count[i] += 1 - (x - i);
        h->count[i + 1] += x - i;
    }
    h->above[0] = 0;
    for (int i = 0; i < h->bins; i++)
        h->above[i + 1] = h->above[i] + h->count[i];
}

PLR_INLINE void integrate_outputs(const exact_query *query, const clocks *items, const ranks *k, lanes t, lanes dt,
                                  integrals *at, const int checked, const int normal)
{
    if (query->hessian)
        integrate_at(items, k, t, dt, at, HESSIAN, normal);
    else if (query->gradient && checked)
        integrate_at(items, k, t, dt, at, CHECK, normal);
    else if (query->gradient)
        integrate_at(items, k, t, dt, at, NOTHING_ELSE, normal);
    else
        integrate_at(items, k, t, dt, at, VALUE_ALONE, normal);
}

/* Gradient, Hessian diagonal and value of a panel's items, added to those of the query. */
static void integrate_items(workspace *ws, exact_query *query, const clocks *items, const ranks *k, double *value)
{
    const quadrature *plan = ws->plan;
    integrals *at = &ws->at;
    const intptr_t padded = QUARTET * items->quartets;
    const int checked = query->gradient && !query->hessian && !items->place && plan->wide;
    at->watched &= checked;
    at->value = (lanes){0};
    for (intptr_t j = 0; j < padded; j++)
        at->gradient[j] = at->hessian[j] = (lanes){0};
    for (intptr_t j = 0; checked && j < padded; j++)
        at->check[j] = (lanes){0};
    for (int i = 0; i < plan->nodes && !query->patience.stopped; i += PLR_LANES) {
        lanes t = vec_load(plan->time + i), dt = vec_load(plan->weight + i);
        at->mark = vec_load(plan->mark + i);
        if (items->place)
            integrate_outputs(query, items, k, t, dt, at, 0, 1);
        else if (checked)
            integrate_outputs(query, items, k, t, dt, at, 1, 0);
        else
            integrate_outputs(query, items, k, t, dt, at, 0, 0);
    }
    *value += vec_sum(at->value);
    for (intptr_t j = 0; checked && j < padded; j++) {
        const double finest = vec_sum(at->check[j]);
        at->unresolved += finest * finest;
    }
    for (intptr_t j = 0; query->gradient && j < padded; j++)
        if (ws->item[j] >= 0)
            query->gradient[ws->panel_item[ws->item[j]]] += vec_sum(at->gradient[j]);
    for (intptr_t j = 0; query->hessian && j < padded; j++)
        if (ws->item[j] >= 0)
            query->hessian[ws->panel_item[ws->item[j]]] += vec_sum(at->hessian[j]);
}

/* Rank probabilities of a panel's items, added to those of the query; its first rank is the one after the arrived. */
static void place_items(workspace *ws, exact_query *query, const clocks *items, const ranks *k, intptr_t arrived)
{
    const quadrature *plan = ws->plan;
    intptr_t blocks = 0;
    lanes *kept = ws->kept;
    for (int i = 0; i < plan->nodes && !query->patience.stopped; i += PLR_LANES) {
        arrivals *node = ws->nodes + blocks;
        clocks here = *items;
        node->t = vec_load(plan->time + i);
        node->dt = vec_load(plan->weight + i);
        exponential_arrivals_at(&here, k, node->t, &ws->at, &node->low, &node->high);
        if (node->low >= k->K)
            break;
        memcpy(kept, ws->at.P, node->high * sizeof(lanes));
        node->P = kept;
        kept += node->high;
        blocks++;
    }
    for (intptr_t quartet = 0; quartet < items->quartets; quartet++) {
        if (give_up(&query->patience, (double)blocks * k->K))
            return;
        place_quartet(items, k, quartet, ws->nodes, blocks, ws->sums);
        for (int n = 0; n < QUARTET; n++) {
            const intptr_t item = ws->item[QUARTET * quartet + n];
            if (item < 0)
                continue;
            double *row = query->probabilities + ws->panel_item[item] * query->columns + arrived;
            for (intptr_t m = 0; m < k->K; m++)
                row[m] += vec_sum(ws->sums[QUARTET * m + n]);
        }
    }
}

/* The K ranks from the one after the arrived items, for a panel of n items. */
static ranks panel_ranks(workspace *ws, const exact_query *query, intptr_t n, intptr_t arrived, intptr_t K,
                         tolerances tolerance)
{
    memset(ws->panel_theta, 0, (K + 2 * MARGIN) * sizeof(double));
    memset(ws->panel_delta, 0, (K + 2 * MARGIN) * sizeof(double));
    memcpy(ws->panel_theta + MARGIN, ws->theta + arrived, K * sizeof(double));
    memcpy(ws->panel_delta + MARGIN, ws->delta + arrived, K * sizeof(double));
    ranks k = {K, ws->panel_theta + MARGIN, ws->panel_delta + MARGIN, 1e300, 13 - log2(tolerance.nodes), n < 2 * K,
               most_coefficients(query->D, K)};
    if (K > 1)
        k.most_early = larger(1, pow(1e12 * tolerance.nodes, 1.0 / (double)(K - 1)));
    return k;
}

/* Integrate one panel over [t0, t1] and add to the outputs. ws->f, rho_in, panel_item hold its n items, bins their
 * histogram; arrived: items that have left before. Returns whether all ranks are filled at its end. */
static int solve_panel(workspace *ws, exact_query *query, intptr_t n, intptr_t arrived, intptr_t K, double t0, double t1,
                       tolerances tolerance, double *value, int *nodes)
{
    lanes sum = {0};
    for (intptr_t j = n; j % PLR_LANES; j++)
        ws->f[j] = -INFINITY;
    for (intptr_t j = 0; j < n; j += PLR_LANES) {
        lanes f = vec_load(ws->f + j), w = vec_exp_flush(f);
        memcpy(ws->w_in + j, &w, sizeof w);
        sum += w;
    }
    const double S = vec_sum(sum);
    quadrature *plan = ws->plan;
    plan_quadrature(ws->bins, S, (double)K, t0, t1, tolerance, plan);
    *nodes += plan->pieces * plan->nodes;
    const ranks k = panel_ranks(ws, query, n, arrived, K, tolerance);
    for (int piece = 0; piece < plan->pieces; piece++) {
        place_nodes(plan, piece);
        const double heavy = log1p(k.most_early) / plan->time[plan->nodes - 1];
        clocks items;
        order_items(ws, n, heavy, K >= SORTED_FROM, &items);
        if (query->probabilities)
            place_items(ws, query, &items, &k, arrived);
        else
            integrate_items(ws, query, &items, &k, value);
    }
    return plan->ended;
}

/* Whether a gap of scores lies above which fewer than K items are. */
static int has_gap(const histogram *h, intptr_t K, double gap)
{
    int empty = 0;
    for (int i = 0; i < h->bins && h->above[i] < (double)K; i++) {
        empty = h->count[i] == 0 ? empty + 1 : 0;
        if (empty >= (int)(gap * BINS_PER_NAT) - 1)
            return 1;
    }
    return 0;
}

/* ln of the time, relative to the clock of the last item that leaves, at which items may leave as if all had rung.
 *
 * What that does to the result is bounded as in quadrature_plan.h: the expected gains differ by R at most for each item
 * that is still silent, whose chance is q = e^-x or less, and so do the gradient's entries, in sum of absolute values, by
 * R (x + 2 K) q: x q is the derivative of the chance, and both rankings, with the item and without, are made by K choices
 * or fewer. Likewise R (x (2 + x) + 4 K) q for the diagonal of the Hessian. Fewer than K items leave before the last panel
 * with an end, and n in it. */
static double all_rung(intptr_t n, intptr_t K, tolerances tolerance)
{
    const double ranks = 2 * (double)K, log_allowed = log(tolerance.cut / (double)(n + K));
    double x = 1;
    for (int i = 0; i < 4; i++) {
        const double factor = tolerance.derivatives > 1   ? x * (1 + 0.5 * x) + ranks
                              : tolerance.derivatives > 0 ? x + ranks
                                                          : 1;
        x = larger(1, log(factor) - log_allowed);
    }
    return log(x);
}

/* What the items that have not entered yet may have of total weight, times the time at which they do: the chance that one
 * of them rings before, which costs as much as in all_rung, in each of at most K panels. */
static double not_entered(intptr_t K, tolerances tolerance)
{
    return tolerance.cut / (double)K / (tolerance.derivatives > 0 ? 1 + 2 * (double)K : 1);
}

/* All items by falling score: their scores, and themselves in ws->rank_order. */
static const double *sort_query(workspace *ws, const exact_query *query)
{
    double *f = ws->key;
    for (intptr_t j = 0; j < query->D; j++) {
        ws->rank_order[j] = j;
        f[j] = query->scores[j];
    }
    sort_by_score(query->D, f, ws->rank_order, ws->key_buffer, ws->order_buffer);
    memcpy(ws->key_buffer, f, query->D * sizeof *f);
    return ws->key_buffer;
}

static void solve_with_gaps(workspace *ws, exact_query *query, double common, intptr_t K, tolerances tolerance,
                            double *value, int *nodes)
{
    const intptr_t D = query->D;
    const double *sorted = sort_query(ws, query);
    double start_reference = 0, start_delay = 0;
    intptr_t arrived = 0;
    while (arrived < K) {
        intptr_t next = arrived + 1;
        while (next < D && sorted[next - 1] - sorted[next] < GAP && sorted[arrived] - sorted[next] < WIDEST)
            next++;
        const double top = sorted[arrived];
        const double delay = all_rung(next - arrived, K, tolerance);
        double t0 = arrived ? exp(top - start_reference + start_delay) : 0, t1 = INFINITY;
        intptr_t n = D - arrived;
        if (next < D) {
            t1 = exp(top - sorted[next - 1] + delay);
            double entered = log(not_entered(K, tolerance) / (double)(D - next)) - delay;
            for (n = next - arrived; arrived + n < D && sorted[arrived + n] - sorted[next - 1] > entered; n++)
                ;
        }
        for (intptr_t j = 0; j < n; j++) {
            ws->panel_item[j] = ws->rank_order[arrived + j];
            ws->rho_in[j] = query->probabilities ? 0 : query->relevance[ws->panel_item[j]] - common;
            ws->f[j] = sorted[arrived + j] - top;
        }
        intptr_t ranks_left = K - arrived < n ? K - arrived : n;
        fill_histogram(ws->bins, ws->f, n, ws->f[n - 1]);
        if (solve_panel(ws, query, n, arrived, ranks_left, t0, t1, tolerance, value, nodes) && ranks_left == K - arrived)
            return;
        start_reference = sorted[next - 1];
        start_delay = delay;
        arrived = next;
    }
}

/* Histogram of -f from the octaves: their items at the mean weight. */
static void histogram_of_octaves(histogram *h, const octave_sums *sums)
{
    memset(h->count, 0, sizeof h->count);
    h->bins = 2;
    for (int octave = 0; octave < OCTAVES; octave++) {
        const moments plain = sums->plain[COPIES * octave];
        if (plain[0] == 0)
            continue;
        const double mantissa = 1.5 + 0.5 * plain[1] / plain[0];
        const double x = larger(0, (octave * 0.6931471805599453 - log(mantissa)) * BINS_PER_NAT);
        const int i = (int)x;
        h->count[i] += plain[0] * (1 - (x - i));
        h->count[i + 1] += plain[0] * (x - i);
        h->bins = i + 2;
    }
    h->above[0] = 0;
    for (int i = 0; i < h->bins; i++)
        h->above[i + 1] = h->above[i] + h->count[i];
}

/* A long list: light items as a crowd, the others one by one. Returns 0, having done nothing, where that is not the way:
 * gaps between the scores, or hardly any light items. */
static int solve_with_crowd(workspace *ws, exact_query *query, double highest, double common, intptr_t K,
                            tolerances tolerance, double *value, int *nodes)
{
    const intptr_t D = query->D;
    if (D < CROWD_FROM || D < 8 * K || query->probabilities)
        return 0;
    double *weights = ws->f;
    lanes sum = {0};
    for (intptr_t j = 0; j < D; j += PLR_LANES) {
        lanes f = vec_all(-INFINITY);
        if (D - j >= PLR_LANES)
            f = vec_load(query->scores + j) - highest;
        else
            for (intptr_t i = j; i < D; i++)
                f[i - j] = query->scores[i] - highest;
        const lanes w = vec_exp_flush(f);
        memcpy(weights + j, &w, sizeof w);
        sum += w;
    }
    add_to_octaves(ws->octaves, D, weights, query->relevance, common);
    histogram_of_octaves(ws->bins, ws->octaves);
    if (has_gap(ws->bins, K, GAP))
        return 0;
    const double S = vec_sum(sum);
    quadrature *plan = ws->plan;
    /* Nodes cost next to nothing here, and a second attempt as much as the first. */
    const tolerances generous = {tolerance.nodes / 1e3, tolerance.cut, tolerance.derivatives,
                                 tolerance.single_ranks};
    plan_quadrature(ws->bins, S, (double)K, 0, INFINITY, generous, plan);
    place_nodes(plan, 0);
    const double end = plan->time[plan->nodes - 1];
    if (plan->pieces > 1 || S * end > 600)
        return 0;
    /* The error of the crowd is about 1e-7 r^8 where r is largest. */
    const double r_cut = 0.5 * smaller(1, pow(1e6 * tolerance.nodes, 1.0 / 8)), w_cut = log1p(r_cut) / end;
    const int first_octave = w_cut >= 2 ? 0 : (int)ceil(1 - log2(w_cut));
    if (first_octave >= OCTAVES)
        return 0;
    const double heaviest_of_crowd = ldexp(1, 1 - first_octave);
    intptr_t n = 0;
    for (intptr_t j = 0; j < D; j++) {
        ws->panel_item[n] = j;
        n += weights[j] >= heaviest_of_crowd;
    }
    if (n > D / 8)
        return 0;
    for (intptr_t i = 0; i < n; i++) {
        ws->w_in[i] = weights[ws->panel_item[i]];
        ws->rho_in[i] = query->relevance[ws->panel_item[i]] - common;
    }
    ranks k = panel_ranks(ws, query, D, 0, K, tolerance);
    clocks items;
    order_items(ws, n, log1p(k.most_early) / end, 0, &items);

    const intptr_t room = OCTAVES * CROWD_NODES;
    double *mass = ws->crowd_w + room, *rho_mass = mass + room, *plain = rho_mass + room, *relevant = plain + room;
    int octaves[OCTAVES];
    items.crowd = place_crowd(ws->octaves, first_octave, ws->crowd_w, mass, rho_mass, octaves);
    items.crowd_w = ws->crowd_w;
    items.crowd_mass = mass;
    items.crowd_rho_mass = rho_mass;
    integrals *at = &ws->at;
    for (intptr_t c = 0; c < items.crowd; c++) {
        items.crowd_weight += mass[c] * ws->crowd_w[c];
        at->crowd_plain[c] = at->crowd_relevant[c] = (lanes){0};
        at->crowd_plain_hessian[c] = at->crowd_relevant_hessian[c] = (lanes){0};
    }
    *nodes += plan->nodes;
    const int watched = ws->at.watched; /* so many nodes need no watching */
    integrate_items(ws, query, &items, &k, value);
    ws->at.watched = watched;
    for (int second = 0; second < 2; second++) {
        double *to = second ? query->hessian : query->gradient;
        for (intptr_t c = 0; c < items.crowd; c++) {
            plain[c] = vec_sum((second ? at->crowd_plain_hessian : at->crowd_plain)[c]);
            relevant[c] = vec_sum((second ? at->crowd_relevant_hessian : at->crowd_relevant)[c]);
        }
        if (to)
            return_to_items(first_octave, octaves, plain, relevant, D, weights, query->relevance, common, to);
    }
    return 1;
}

static void solve_panels(workspace *ws, exact_query *query, double highest, double lowest, double common, intptr_t K,
                         tolerances tolerance, double *value, int *nodes)
{
    const intptr_t D = query->D;
    if (solve_with_crowd(ws, query, highest, common, K, tolerance, value, nodes))
        return;
    int gaps = !(highest - lowest < WIDEST);
    if (!gaps) {
        for (intptr_t j = 0; j < D; j++)
            ws->f[j] = query->scores[j] - highest;
        fill_histogram(ws->bins, ws->f, D, lowest - highest);
        gaps = has_gap(ws->bins, K, GAP);
    }
    if (gaps) {
        solve_with_gaps(ws, query, common, K, tolerance, value, nodes);
        return;
    }
    for (intptr_t j = 0; j < D; j++) {
        ws->panel_item[j] = j;
        ws->rho_in[j] = query->probabilities ? 0 : query->relevance[j] - common;
    }
    solve_panel(ws, query, D, 0, K, 0, INFINITY, tolerance, value, nodes);
}

/* ---------------------------------------------------------------------------------------- normal clocks */

/* y at which Phi(y) / Phi(-y) is about this ratio, >= 1: Newton's method on ln ratio = 1.5976 y + 0.070566 y^3. */
static double place_of_ratio(double ratio)
{
    const double target = log(ratio);
    double y = target < 2 ? 0.6 * target : cbrt(14 * target);
    for (int i = 0; i < 6; i++)
        y -= (1.5976 * y + 0.070566 * y * y * y - target) / (1.5976 + 0.211698 * y * y);
    return y;
}

/* Integrate over the nodes of ws->plan, for n items of ws->f, rho_in and panel_item. */
static void integrate_normal_nodes(workspace *ws, exact_query *query, intptr_t n, const ranks *k, double *value)
{
    const quadrature *plan = ws->plan;
    const double early = place_of_ratio(k->most_early) - plan->time[plan->nodes - 1];
    for (intptr_t j = n; j % PLR_LANES; j++)
        ws->f[j] = 0;
    for (intptr_t j = 0; j < n; j += PLR_LANES) { /* in place of weights: any function that rises with the score */
        const lanes w = vec_exp_flush(vec_load(ws->f + j));
        memcpy(ws->w_in + j, &w, sizeof w);
    }
    clocks items;
    order_items(ws, n, early < 0 ? exp(larger(early, -700)) : 1, k->K >= SORTED_FROM, &items);
    for (intptr_t j = 0; j < QUARTET * items.quartets; j++)
        ws->place[j] = ws->item[j] < 0 ? -1e30 : ws->f[ws->item[j]];
    items.place = ws->place;
    integrate_items(ws, query, &items, k, value);
}

static void integrate_normal_plan(workspace *ws, exact_query *query, intptr_t n, intptr_t arrived, intptr_t K,
                                  tolerances tolerance, double *value, int *nodes)
{
    plan_normal(ws->bins, (double)n, (double)K, tolerance, ws->normal);
    const ranks k = panel_ranks(ws, query, n, arrived, K, tolerance);
    const intptr_t all = count_normal_nodes(ws->normal);
    *nodes += (int)all;
    for (intptr_t first = 0; first < all && !query->patience.stopped; first += MOST_NODES) {
        ws->plan->nodes = all - first < MOST_NODES ? (int)(all - first) : MOST_NODES;
        place_normal_nodes(ws->normal, all, first, ws->plan->nodes, ws->plan->time, ws->plan->weight);
        integrate_normal_nodes(ws, query, n, &k, value);
    }
}

/* Items [first, end) of those sorted by score, relative to the first of them, which lies at `top`. */
static void take_sorted(workspace *ws, const exact_query *query, const double *sorted, intptr_t first, intptr_t end,
                        double inverse_sigma, double common)
{
    for (intptr_t i = first; i < end; i++) {
        ws->panel_item[i - first] = ws->rank_order[i];
        ws->rho_in[i - first] = query->relevance[ws->rank_order[i]] - common;
        ws->f[i - first] = (sorted[i] - sorted[first]) * inverse_sigma;
    }
    fill_histogram(ws->bins, ws->f, end - first, ws->f[end - first - 1]);
}

/* A chain of items [arrived, next), wider than the histogram: windows of time, each with the items that may ring in it,
 * and one rule with the spacing that the densest of them needs. */
static void solve_long_chain(workspace *ws, exact_query *query, const double *sorted, intptr_t arrived, intptr_t next,
                             double inverse_sigma, double common, intptr_t K, tolerances tolerance, double *value,
                             int *nodes)
{
    const double top = sorted[arrived], span = (top - sorted[next - 1]) * inverse_sigma;
    double spacing = 1;
    for (int integrating = 0; integrating < 2; integrating++) {
        intptr_t first = arrived, end = arrived;
        double until = -REACH;
        for (double from = -REACH; from < span + REACH && !query->patience.stopped; from = until) {
            until = from + WINDOW;
            while ((top - sorted[first]) * inverse_sigma < from - REACH && first < next - 1)
                first++;
            while (end < next && (top - sorted[end]) * inverse_sigma < until + REACH)
                end++;
            if (first >= K)
                break;
            const intptr_t n = end - first, ranks_left = K - first < n ? K - first : n;
            take_sorted(ws, query, sorted, first, end, inverse_sigma, common);
            if (!integrating) {
                plan_normal(ws->bins, (double)n, (double)ranks_left, tolerance, ws->normal);
                for (int i = 0; i < ws->normal->sections; i++)
                    spacing = smaller(spacing, ws->normal->spacing[i]);
                continue;
            }
            const ranks k = panel_ranks(ws, query, n, first, ranks_left, tolerance);
            const double shift = (top - sorted[first]) * inverse_sigma; /* time at which the first of these stands */
            intptr_t node = (intptr_t)ceil((from + REACH) / spacing);
            const intptr_t last = (intptr_t)ceil((until + REACH) / spacing);
            for (; node < last; node += ws->plan->nodes) {
                ws->plan->nodes = last - node < MOST_NODES ? (int)((last - node + 7) / 8 * 8) : MOST_NODES;
                for (int i = 0; i < ws->plan->nodes; i++) {
                    ws->plan->time[i] = (double)(node + i) * spacing - REACH - shift;
                    ws->plan->weight[i] = node + i < last ? spacing : 0;
                }
                *nodes += ws->plan->nodes;
                integrate_normal_nodes(ws, query, n, &k, value);
            }
        }
    }
}

static void solve_normal(workspace *ws, exact_query *query, double inverse_sigma, double highest, double lowest,
                         double common, intptr_t K, tolerances tolerance, double *value, int *nodes)
{
    const intptr_t D = query->D;
    int gaps = !((highest - lowest) * inverse_sigma < WIDEST);
    if (!gaps) {
        for (intptr_t j = 0; j < D; j++) {
            ws->f[j] = (query->scores[j] - highest) * inverse_sigma;
            ws->panel_item[j] = j;
            ws->rho_in[j] = query->relevance[j] - common;
        }
        fill_histogram(ws->bins, ws->f, D, (lowest - highest) * inverse_sigma);
        gaps = has_gap(ws->bins, K, NORMAL_GAP);
    }
    if (!gaps) {
        integrate_normal_plan(ws, query, D, 0, K, tolerance, value, nodes);
        return;
    }
    const double *sorted = sort_query(ws, query);
    for (intptr_t arrived = 0, next; arrived < K && !query->patience.stopped; arrived = next) {
        next = arrived + 1;
        while (next < D && (sorted[next - 1] - sorted[next]) * inverse_sigma < NORMAL_GAP)
            next++;
        const intptr_t n = next - arrived, ranks_left = K - arrived < n ? K - arrived : n;
        if (!((sorted[arrived] - sorted[next - 1]) * inverse_sigma < WIDEST)) {
            solve_long_chain(ws, query, sorted, arrived, next, inverse_sigma, common, K, tolerance, value, nodes);
            continue;
        }
        take_sorted(ws, query, sorted, arrived, next, inverse_sigma, common);
        integrate_normal_plan(ws, query, n, arrived, ranks_left, tolerance, value, nodes);
    }
}

/* ------------------------------------------------------------------------------------------------- query */

static void find_range(const double *x, intptr_t n, double *least, double *most)
{
    lanes low = vec_all(x[0]), high = low;
    intptr_t j = 0;
    for (; j + PLR_LANES <= n; j += PLR_LANES) {
        const lanes here = vec_load(x + j);
        low = vec_select(here < low, here, low);
        high = vec_select(here > high, here, high);
    }
    *most = vec_largest(high);
    *least = -vec_largest(-low);
    for (; j < n; j++) {
        *most = larger(*most, x[j]);
        *least = smaller(*least, x[j]);
    }
}

static void clear(const exact_query *query)
{
    if (query->gradient)
        memset(query->gradient, 0, query->D * sizeof(double));
    if (query->hessian)
        memset(query->hessian, 0, query->D * sizeof(double));
}

/* Which part of the error that nodes are planned for may hide from the sum of the gradient. More than usual where single
 * ranks are seen, and where relevance is nearly the same for all: then the gradient is a small difference of the errors
 * that the common part makes, and the sum shows even less of them. */
static double unseen_share(const exact_query *query, double common, double largest_rho, int single_ranks)
{
    double total = 0;
    for (intptr_t j = 0; j < query->D; j++)
        total += query->relevance[j] - common;
    const double alike = fabs(total) / ((double)query->D * largest_rho);
    return single_ranks ? MOST_UNSEEN : larger(LEAST_UNSEEN, MOST_UNSEEN * alike);
}

/* inverse_sigma is that of normal clocks, or 0 for exponential ones. */
static void solve_query(exact_query *query, double inverse_sigma, void *memory)
{
    const intptr_t D = query->D;
    intptr_t K = query->K < D ? query->K : D;
    workspace layout, *ws = &layout;
    lay_out(ws, memory, D, K, inverse_sigma > 0 ? PLR_EXACT_NORMAL : PLR_EXACT_GRADIENT);
    query->value = 0;
    query->attempts = query->nodes = 0;
    ws->at.patience = &query->patience;
    clear(query);
    if (D == 0 || K <= 0)
        return;

    double highest, lowest, least, most;
    find_range(query->scores, D, &lowest, &highest);
    find_range(query->relevance, D, &least, &most);
    /* A constant added to all relevance changes no gradient, nor does one added to all rank weights when every item is
       placed. The second removes the slow wait for the last item. */
    const double common = least > 0 ? least : most < 0 ? most : 0;
    const double last_theta = K == D ? query->rank_weights[D - 1] : 0;
    const double largest_rho = larger(fabs(least), fabs(most));
    double total_theta = 0, largest_theta = 0, variation = 0, total_rho = 0;
    for (intptr_t m = 0; m < K; m++) {
        double theta = query->rank_weights[m];
        total_theta += theta;
        largest_theta = larger(largest_theta, fabs(theta));
        ws->theta[m] = theta - last_theta;
        ws->delta[m] = (m + 1 < K ? query->rank_weights[m + 1] : last_theta) - theta;
    }
    for (intptr_t m = 0; m < K; m++)
        variation += fabs(ws->delta[m]);
    for (intptr_t j = 0; j < D && last_theta != 0; j++)
        total_rho += query->relevance[j] - common;
    const double known_value = common * total_theta + last_theta * total_rho;
    query->value = known_value;
    while (K > 0 && ws->theta[K - 1] == 0) /* the last rank too when every item is placed */
        K--;
    if (K == 0 || least == most || largest_theta == 0)
        return;

    const double scale = largest_theta * largest_rho, floor_share = 1e-3;
    /* The rule for the nodes is not to be trusted above 1e-5, and made for rank weights that fall: those that go up and
       down let single ranks be seen, which are narrower in time than sums of them. */
    const double ups_and_downs = larger(1, variation / largest_theta);
    double accuracy = smaller(query->rtol, 1e-5) / (ups_and_downs * ups_and_downs);
    if (!query->gradient)
        accuracy /= 100; /* nothing checks a value that comes alone */
    else if (D <= FEW)
        accuracy /= 1000; /* the checks may be blind by chance where they have few entries to look at */
    /* What may be lost at the ends of panels is a share of what is promised where the gradient is smallest, in units of the
       bound R there. For the diagonal of the Hessian the bound is of half of it. */
    const int single_ranks = ups_and_downs > 1.01;
    const int derivatives = query->hessian ? 2 : query->gradient ? 1 : 0;
    const double R = variation * (most - least), of_end = SHARE_OF_ENDS * query->rtol * floor_share * scale / R;
    const double cut = smaller(of_end, 1e-3) / (derivatives > 1 ? 2 : 1) / accuracy;
    for (int attempt = 0; attempt < ATTEMPTS && !query->patience.stopped; attempt++) {
        const tolerances tolerance = {accuracy / (query->hessian ? 1000 : 1), cut * accuracy, derivatives, single_ranks};
        double integral = 0;
        ws->at.unresolved = 0;
        ws->at.watched = 1;
        query->attempts = attempt + 1;
        query->nodes = 0;
        if (inverse_sigma > 0)
            solve_normal(ws, query, inverse_sigma, highest, lowest, common, K, tolerance, &integral, &query->nodes);
        else
            solve_panels(ws, query, highest, lowest, common, K, tolerance, &integral, &query->nodes);
        query->value = known_value + integral;
        if (!query->gradient)
            return;
        /* The gradient's entries sum to zero: what they do sum to measures the error of the quadrature, and so does what
           the integrands have of the finest pattern that the nodes can show, entry by entry. Both may be small by chance,
           which must not decide where the gradient is so small that the plan does not vouch for it. Choose more nodes
           where one of the three is too large. */
        lanes sums = {0}, absolutes = {0}, squares = {0};
        intptr_t j = 0;
        for (; j + PLR_LANES <= D; j += PLR_LANES) {
            const lanes g = vec_load(query->gradient + j);
            sums += g;
            absolutes += (lanes)((int_lanes)g & INT64_MAX);
            squares += g * g;
        }
        double sum = vec_sum(sums), absolute = vec_sum(absolutes), square = vec_sum(squares);
        for (; j < D; j++) {
            sum += query->gradient[j];
            absolute += fabs(query->gradient[j]);
            square += query->gradient[j] * query->gradient[j];
        }
        const double norm = sqrt(square), finest = sqrt(ws->at.unresolved), floor = floor_share * scale;
        const double unresolved = UNRESOLVED * finest * finest / larger(larger(norm, finest), 1e-300);
        double planned = 0;
        if (!ws->at.watched)
            planned = unseen_share(query, common, largest_rho, single_ranks) * tolerance.nodes * ups_and_downs *
                      ups_and_downs * scale;
        const double excess = larger(fabs(sum) / (0.03 * query->rtol * larger(absolute, floor)),
                                     larger(unresolved, planned) / (query->rtol * larger(norm, floor)));
        if (excess <= 1)
            return;
        const double wanted = accuracy * smaller(3e-2, larger(1e-4, 0.3 / excess));
        if (attempt + 1 == ATTEMPTS || accuracy <= 1e-14)
            return;
        accuracy = larger(wanted, 1e-15);
        clear(query);
    }
}

static void solve_exponential(exact_query *query, void *memory)
{
    solve_query(query, 0, memory);
}

static void solve_thurstonian(exact_query *query, double inverse_sigma, void *memory)
{
    solve_query(query, inverse_sigma, memory);
    for (intptr_t j = 0; query->gradient && j < query->D; j++)
        query->gradient[j] *= inverse_sigma;
    for (intptr_t j = 0; query->hessian && j < query->D; j++)
        query->hessian[j] = query->hessian[j] * inverse_sigma * inverse_sigma;
}

/* Each column sums to one: what is missing measures the error. When every item is placed, the last column is what the
 * others leave of each row. */
static void rank_probabilities(exact_query *query, void *memory)
{
    const intptr_t D = query->D, columns = query->columns;
    intptr_t K = columns < D ? columns : D;
    workspace layout, *ws = &layout;
    lay_out(ws, memory, D, K, PLR_EXACT_PROBABILITIES);
    ws->at.patience = &query->patience;
    const int complete = K == D;
    K -= complete;
    double highest, lowest;
    find_range(query->scores, D, &lowest, &highest);
    memset(ws->theta, 0, (K + 1) * sizeof(double));
    memset(ws->delta, 0, (K + 1) * sizeof(double));
    double *column = ws->theta, accuracy = 1e-9;
    for (int attempt = 0; attempt < ATTEMPTS && !query->patience.stopped; attempt++) {
        double value = 0, missing = 0;
        query->nodes = 0;
        query->attempts = attempt + 1;
        for (intptr_t j = 0; j < D && !give_up(&query->patience, (double)columns); j++) /* its first touch takes long */
            memset(query->probabilities + j * columns, 0, columns * sizeof(double));
        if (K > 0)
            solve_panels(ws, query, highest, lowest, 0, K, (tolerances){accuracy, 1e-11, 0, 1}, &value, &query->nodes);
        for (intptr_t m = 0; m < K; m++)
            column[m] = -1;
        for (intptr_t j = 0; j < D && !give_up(&query->patience, (double)K); j++)
            for (intptr_t m = 0; m < K; m++)
                column[m] += query->probabilities[j * columns + m];
        for (intptr_t m = 0; m < K; m++)
            missing = larger(missing, fabs(column[m]));
        if (missing < 1e-9)
            break;
        accuracy *= 1e-3;
    }
    for (intptr_t j = 0; j < D && !give_up(&query->patience, (double)columns); j++) {
        double *row = query->probabilities + j * columns, left = 1;
        for (intptr_t m = 0; m < K; m++) {
            row[m] = larger(row[m], 0);
            left -= row[m];
        }
        if (complete)
            row[K] = larger(left, 0);
    }
}

static void prepare(void)
{
    prepare_quadrature();
    prepare_crowd();
    prepare_normal_clocks();
}

const exact_kernels ISA(exact_kernels) = {prepare, workspace_bytes, solve_exponential, rank_probabilities, solve_thurstonian};
