#include "gradients/exact/exact_problem.h"

#include <math.h>

#define LINE 64 /* bytes of a cache line */
#define TO_SPARE 1e12  /* powers of odds up to this times the accuracy are used upwards */
#define MOST_GROWTH 40.0 /* of rounding errors that the powers of odds bring, in floats */

/* ------------------------------------------------------------------------------------------------ workspace */

static void *carve(char **free_memory, size_t bytes)
{
    char *block = *free_memory;
    *free_memory += (bytes + LINE - 1) / LINE * LINE;
    return block;
}

static double *carve_reals(char **free_memory, size_t n)
{
    return (double *)carve(free_memory, n * sizeof(double));
}

static intptr_t *carve_indices(char **free_memory, size_t n)
{
    return (intptr_t *)carve(free_memory, n * sizeof(intptr_t));
}

static lanes *carve_vectors(char **free_memory, size_t n)
{
    return (lanes *)carve(free_memory, n * sizeof(lanes));
}

/* Room for coefficients of P: a band ends at a few standard deviations above the arrivals that are expected at the end
 * of the plan, which are K and a few of its square roots. */
static intptr_t most_coefficients(intptr_t D, intptr_t K)
{
    const intptr_t all = D + 2 * PLR_LANES + QUARTET, band = 8 * K + 2000;
    return all < band ? all : band;
}

static void lay_out_items(exact_problem *problem, char **memory, size_t items, int purpose)
{
    problem->f = carve_reals(memory, items);
    problem->w = carve_reals(memory, items);
    problem->rho = carve_reals(memory, items);
    problem->query_item = carve_indices(memory, items);
    problem->key = carve_reals(memory, items);
    problem->key_buffer = carve_reals(memory, items);
    problem->rank_order = carve_indices(memory, items);
    problem->order_buffer = carve_indices(memory, items);
    item_block *ordered = &problem->panel.items;
    ordered->w = carve_reals(memory, items);
    ordered->rho = carve_reals(memory, items);
    ordered->item = carve_indices(memory, items);
    if (purpose == PLR_EXACT_NORMAL)
        ordered->position = carve_reals(memory, items);
}

static void lay_out_ranks(exact_problem *problem, char **memory, intptr_t K)
{
    const size_t ranks = K + 2 * MARGIN + 2;
    double **weights[] = {&problem->theta, &problem->delta, &problem->panel_theta, &problem->panel_delta};
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        *weights[i] = carve_reals(memory, ranks);
}

static void lay_out_nodes(exact_problem *problem, char **memory, size_t items, size_t coefficients, int purpose)
{
    node_workspace *at = &problem->panel.at;
    node_sums *sums = &problem->panel.sums;
    problem->histogram = carve(memory, sizeof(score_histogram));
    problem->panel.plan = carve(memory, sizeof(quadrature_plan));
    lanes **of_items[] = {&at->odds, &sums->gradient, &sums->hessian, &sums->check};
    for (size_t i = 0; i < sizeof of_items / sizeof *of_items; i++)
        *of_items[i] = carve_vectors(memory, items);
    lanes **series[] = {&at->y, &at->c, &at->e, &at->s, &at->b};
    for (size_t i = 0; i < sizeof series / sizeof *series; i++)
        *series[i] = carve_vectors(memory, coefficients);
    at->P = carve_vectors(memory, coefficients) + MARGIN;
    at->B = carve_vectors(memory, coefficients) + MARGIN;
    if (purpose == PLR_EXACT_NORMAL) {
        at->hazard = carve_vectors(memory, items);
        problem->normal = carve(memory, sizeof(normal_plan));
    }
}

static void lay_out_proxies(exact_problem *problem, char **memory)
{
    proxy_items *proxies = &problem->panel.proxies;
    node_sums *sums = &problem->panel.sums;
    problem->octaves = carve(memory, sizeof(octave_sums));
    double **reals[] = {&proxies->w, &proxies->mass, &proxies->rho_mass, &problem->proxy_zeroth, &problem->proxy_first};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        *reals[i] = carve_reals(memory, MOST_PROXIES);
    lanes **vectors[] = {&problem->panel.at.proxy_odds, &sums->proxy_plain, &sums->proxy_relevant,
                         &sums->proxy_plain_hessian, &sums->proxy_relevant_hessian};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        *vectors[i] = carve_vectors(memory, MOST_PROXIES);
}

static void lay_out_kept(exact_problem *problem, char **memory, size_t coefficients, intptr_t K)
{
    enum { VECTORS = MOST_NODES / PLR_LANES };
    problem->kept.nodes = carve(memory, VECTORS * sizeof(kept_node));
    problem->kept.P = carve_vectors(memory, VECTORS * coefficients);
    problem->kept.sums = carve_vectors(memory, QUARTET * (K + 1));
}

size_t lay_out_problem(exact_problem *problem, char *memory, intptr_t D, intptr_t K, int purpose)
{
    char *const start = memory;
    const size_t items = D + 2 * PLR_LANES + QUARTET, coefficients = most_coefficients(D, K) + 2 * MARGIN;
    memset(problem, 0, sizeof *problem);
    lay_out_items(problem, &memory, items, purpose);
    lay_out_ranks(problem, &memory, K);
    lay_out_nodes(problem, &memory, items, coefficients, purpose);
    if (D >= COMPRESSED_FROM)
        lay_out_proxies(problem, &memory);
    if (purpose == PLR_EXACT_PROBABILITIES)
        lay_out_kept(problem, &memory, coefficients, K);
    return memory - start;
}

size_t exact_workspace_bytes(intptr_t D, intptr_t K, int purpose)
{
    exact_problem problem;
    return lay_out_problem(&problem, (char *)LINE, D, K < D ? K : D, purpose) + LINE;
}

/* ------------------------------------------------------------------------------------------ parts of panels */

/* K numbers with MARGIN zeros on either side; returns the first of them. */
static const void *with_margins(void *to, const double *from, intptr_t K, int single)
{
    memset(to, 0, (K + 2 * MARGIN) * sizeof(double));
    if (!single)
        return memcpy((double *)to + MARGIN, from, K * sizeof(double));
    float *floats = (float *)to + MARGIN;
    for (intptr_t m = 0; m < K; m++)
        floats[m] = (float)from[m];
    return floats;
}

/* The largest odds r for which powers up to r^(K-1) may be used upwards in floats.
 *
 * The series of leave_one_out_series.h has terms of up to r^i P(N < K - i), N being the items that have arrived. Their
 * sum, by which rounding errors grow, is about r^(K-1) E[r^-N] = r^(K-1) prod_j (q_j + p_j / r), which is at most
 * r^(K-1) e^(-(1 - 1/r) Lambda). No item reaches the odds r before the heaviest does, at t = ln(1 + r), by when at
 * least those of the plan's last step before have arrived. */
static double largest_upward(intptr_t K, const quadrature_plan *plan)
{
    const double increment = 0.125, factor = exp(increment);
    const double log_most = log(MOST_GROWTH), first = log_most / (double)(K - 1);
    double r = exp(first);
    for (double log_r = first + increment; log_r < 5; log_r += increment) {
        const double tried = r * factor;
        const int step = tried < 1.72 ? 0 : tried < 4.21 ? 1 : tried < 14.2 ? 2 : 3;
        const double arrived = tried < 0.84 ? 0 : plan->arrived[step];
        if ((double)(K - 1) * log_r - (1 - 1 / tried) * arrived > log_most)
            break;
        r = tried;
    }
    return r;
}

void set_ranks(exact_problem *problem, intptr_t n, intptr_t arrived, intptr_t K, int single)
{
    const double nodes = problem->tolerance.nodes;
    const double upward_limit = K == 1   ? single ? 1e30 : 1e300
                                : single ? largest_upward(K, problem->panel.plan)
                                         : larger(1, pow(TO_SPARE * nodes, 1.0 / (double)(K - 1)));
    problem->panel.ranks = (rank_block){
        .K = K,
        .theta = with_margins(problem->panel_theta, problem->theta + arrived, K, single),
        .delta = with_margins(problem->panel_delta, problem->delta + arrived, K, single),
        .upward_limit = upward_limit,
        .downward_limit = single ? 1 : 1 / upward_limit, /* how many have arrived says nothing of the last coefficients */
        .bits = 13 - log2(nodes),
        .divide_all = n < 2 * K,
        .most_coefficients = most_coefficients(problem->query->D, K),
    };
}

const double *sort_scores(exact_problem *problem)
{
    const exact_query *query = problem->query;
    for (intptr_t j = 0; j < query->D; j++) {
        problem->rank_order[j] = j;
        problem->key[j] = query->scores[j];
    }
    sort_by_key(query->D, problem->key, problem->rank_order, problem->key_buffer, problem->order_buffer);
    memcpy(problem->key_buffer, problem->key, query->D * sizeof(double));
    return problem->key_buffer;
}
