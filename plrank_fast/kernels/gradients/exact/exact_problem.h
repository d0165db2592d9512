/* State and workspace of one query in the exact kernel. */
#ifndef PLR_EXACT_PROBLEM_H
#define PLR_EXACT_PROBLEM_H

#include <math.h>
#include <stddef.h>

#include "gradients/exact/exact_panel.h"
#include "gradients/exact/list_blocks.h"

#define SHARE_OF_SERIES 0.01 /* part of the error bound for truncated series and rounding */
#define ITEMS_SIDE_BY_SIDE ((intptr_t)1 << 20) /* items of all node workspaces, of at least 64 bytes each */

typedef struct {
    double least, most;
} range;

/* Magnitudes of rank weights and relevance, which bound the gradient and its errors. */
typedef struct {
    double largest_theta, largest_rho; /* largest magnitudes */
    double variation;       /* sum |theta_k - theta_(k+1)| */
    double range_of_rho;
    double most_change;     /* largest change of the gains by any change of the ranking */
    double sum_theta;       /* sum of magnitudes */
    double mean_theta;      /* magnitude of the mean of what is integrated */
    double sum;             /* sum of the entries of the gradient */
    double unit;            /* unit of the quadrature's errors: variation times the largest relevance integrated */
} problem_shape;

typedef struct {
    double total, irrelevant; /* irrelevant: number of items */
} relevance_sums;

typedef struct {
    exact_query *query;
    problem_shape shape;
    double highest, lowest;       /* scores */
    range relevance;
    intptr_t stopping;            /* items at which readers may stop */
    relevance_sums all_relevance; /* sums of the relevance, if it is given */
    double common;                /* relevance that is subtracted from all items, which changes no gradient */
    intptr_t K;                   /* ranks up to the last whose weight differs from those after it */
    double *theta, *delta;        /* rank weights minus the weight of the rank after the last, and their differences; */
    double *most_theta, *most_delta; /* bounds of these for average precision (average_precision.h), */
    double *moves;                /* and of weights of pairs for it and where readers stop (integrand_bound.h) */
    double relevant_left;         /* relevant items that have left before the panel */
    tolerances tolerance;         /* of this attempt */
    double value;                 /* integral so far, */
    double error[INTEGRALS];      /* and bounds of the errors of the quadrature */
    int plans;                    /* number of plans in this attempt */

    intptr_t longest, most_ranks; /* room of the workspace */
    char *room, *end;             /* memory of the arrays that are as long as a panel */
    parallel_loop loop_of_panel;  /* the query's loop, with at most as many threads as side_by_side has room for */
    block_sums *of_block;         /* sums of a pass over the list */

    double *f, *w, *rho;          /* score minus the highest, weight, relevance of the panel's items in input order */
    intptr_t *query_item;         /* likewise: index of the item in the query */
    double *key, *key_buffer;     /* keys by which items are sorted */
    intptr_t *rank_order, *order_buffer; /* all items by descending score, only if there are gaps */
    double *panel_theta, *panel_delta; /* K entries from the first rank of the panel, MARGIN zeros on either side */
    score_histogram *histogram;   /* histogram of the panel's scores */
    octave_sums *octaves, *octaves_of_block; /* moments of the weights of all items and of each block */
    double *proxy_zeroth, *proxy_first; /* derivatives at the proxies */
    proxy_polynomials *polynomials; /* interpolants of these, */
    double *returned;             /* and the output to which they are added */
    const double *checked;        /* entries to be summed */
    panel panel;
    node_workspace side_by_side[MOST_SIDE_BY_SIDE]; /* the last member, which is not cleared */
} exact_problem;

#define LINE 64 /* bytes of a cache line */


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

static integrands integrands_wanted(const exact_query *query)
{
    return query->exposure    ? EXPOSURE
           : query->direction ? PRODUCT
           : query->hessian   ? HESSIAN
           : !query->gradient ? VALUE_ALONE
           : query->average_precision ? PRECISION
                                      : GRADIENT;
}

/* Return the most coefficients of P that are stored: a band ends a few standard deviations above the number of arrivals
 * expected at the end of the plan, which is K plus a few times its square root. */
static intptr_t most_coefficients(intptr_t D, intptr_t K)
{
    const intptr_t all = D + 2 * PLR_LANES + QUARTET, band = 8 * K + 2000;
    return all < band ? all : band;
}

static void lay_out_items(exact_problem *problem, char **memory, size_t items)
{
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
    ordered->stop = carve_reals(memory, items);
    if (problem->query->direction)
        ordered->direction = carve_reals(memory, items);
}

static void lay_out_ranks(exact_problem *problem, char **memory, intptr_t K)
{
    const size_t ranks = K + 2 * MARGIN + 2;
    double **weights[] = {&problem->theta, &problem->delta, &problem->moves, &problem->panel_theta,
                          &problem->panel_delta};
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        *weights[i] = carve_reals(memory, ranks);
    double **bounds[] = {&problem->most_theta, &problem->most_delta};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds && problem->query->average_precision; i++)
        *bounds[i] = carve_reals(memory, ranks);
}

static void lay_out_plans(exact_problem *problem, char **memory)
{
    problem->histogram = carve(memory, sizeof(score_histogram));
    problem->panel.plan = carve(memory, sizeof(quadrature_plan));
}

static void lay_out_sums(exact_problem *problem, char **memory, size_t items)
{
    node_sums *sums = &problem->panel.sums;
    sums->gradient = carve_vectors(memory, items);
    sums->hessian = carve_vectors(memory, items);
}

static void lay_out_nodes(exact_problem *problem, node_workspace *at, char **memory, size_t items, size_t coefficients)
{
    memset(at, 0, sizeof *at);
    at->odds = carve_vectors(memory, items);
    lanes **series[] = {&at->y, &at->c, &at->e, &at->s, &at->b};
    for (size_t i = 0; i < sizeof series / sizeof *series; i++)
        *series[i] = carve_vectors(memory, coefficients);
    at->P = carve_vectors(memory, coefficients) + MARGIN;
    at->B = carve_vectors(memory, coefficients) + MARGIN;
    if (!arrives_at_rate(problem->query->law))
        at->hazard = carve_vectors(memory, items);
    lanes **more[] = {&at->V, &at->W, &at->A, &at->n, &at->f, &at->g, &at->h, &at->k};
    for (size_t i = 0; i < sizeof more / sizeof *more && problem->query->direction; i++)
        *more[i] = carve_vectors(memory, coefficients) + MARGIN;
    at->G = at->B;
    at->d = at->c;
    if (problem->query->average_precision) {
        at->G = carve_vectors(memory, coefficients) + MARGIN;
        at->H = carve_vectors(memory, coefficients) + MARGIN;
        at->d = carve_vectors(memory, coefficients);
        at->counts = carve_vectors(memory, coefficients);
    }
    if (problem->longest >= COMPRESSED_FROM)
        at->proxy_odds = carve_vectors(memory, OCTAVES * PROXIES_OF_OCTAVE);
}

static void lay_out_proxies(exact_problem *problem, char **memory)
{
    proxy_items *proxies = &problem->panel.proxies;
    node_sums *sums = &problem->panel.sums;
    const size_t most = OCTAVES * PROXIES_OF_OCTAVE;
    problem->octaves = carve(memory, sizeof(octave_sums));
    problem->octaves_of_block = carve(memory, blocks_of_list(problem->longest) * sizeof(octave_sums));
    problem->polynomials = carve(memory, sizeof(proxy_polynomials));
    double **reals[] = {&proxies->w, &proxies->mass, &proxies->rho_mass, &proxies->counts, &problem->proxy_zeroth,
                        &problem->proxy_first};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        *reals[i] = carve_reals(memory, most);
    sums->proxy_gradient = carve(memory, most * sizeof(proxy_sums));
    sums->proxy_hessian = carve(memory, most * sizeof(proxy_sums));
}

static void lay_out_kept(exact_problem *problem, char **memory, size_t coefficients)
{
    enum { VECTORS = MOST_NODES / PLR_LANES };
    kept_nodes *kept = &problem->panel.kept;
    kept->coefficients = coefficients;
    kept->most_sums = QUARTET * (problem->most_ranks + 1);
    kept->nodes = carve(memory, VECTORS * sizeof(kept_node));
    kept->P = carve_vectors(memory, VECTORS * coefficients);
    kept->sums = carve_vectors(memory, problem->loop_of_panel.n_threads * kept->most_sums);
}

/* Lay out the arrays that are as long as a panel, for panels of up to n of the D items, so that the used memory is
 * contiguous. Returns its end. */
static char *lay_out_panel(exact_problem *problem, intptr_t n, int n_threads)
{
    char *memory = problem->room;
    problem->loop_of_panel.n_threads = n_threads;
    const size_t items = n + 2 * PLR_LANES + QUARTET;
    const size_t coefficients = most_coefficients(problem->longest, problem->most_ranks) + 2 * MARGIN;
    lay_out_items(problem, &memory, items);
    lay_out_sums(problem, &memory, items);
    for (int i = 0; i < n_threads; i++)
        lay_out_nodes(problem, problem->side_by_side + i, &memory, items, coefficients);
    if (problem->query->probabilities)
        lay_out_kept(problem, &memory, coefficients);
    return memory;
}

static int most_threads(const exact_problem *problem)
{
    const int wanted = threads_of(&problem->query->loop);
    return wanted < MOST_SIDE_BY_SIDE ? wanted : MOST_SIDE_BY_SIDE;
}

/* Lay them out again for as many of the threads as there is room for: each needs its own memory. */
static void change_panel(exact_problem *problem, intptr_t n)
{
    int n_threads = most_threads(problem);
    while (lay_out_panel(problem, n, n_threads) > problem->end && n_threads > 1)
        n_threads--;
}

/* Lay out the workspace of a query in `memory` (on a cache line); clear all other members. Returns the size of the
 * workspace. */
static size_t lay_out_problem(exact_problem *problem, exact_query *query, char *memory)
{
    char *const start = memory;
    const intptr_t D = query->D, K = query->K < D ? query->K : D;
    memset(problem, 0, offsetof(exact_problem, side_by_side));
    problem->query = query;
    problem->longest = D;
    problem->most_ranks = K;
    problem->loop_of_panel = query->loop;
    problem->panel.query = query;
    problem->panel.wanted = integrands_wanted(query);
    problem->panel.cancellation = &query->cancellation;
    problem->panel.loop = &problem->loop_of_panel;
    problem->panel.reading = 1;
    problem->panel.side_by_side = problem->side_by_side;
    lay_out_ranks(problem, &memory, K);
    lay_out_plans(problem, &memory);
    if (D >= COMPRESSED_FROM)
        lay_out_proxies(problem, &memory);
    problem->of_block = carve(&memory, blocks_of_list(D) * sizeof(block_sums));
    problem->f = carve_reals(&memory, D + 2 * PLR_LANES);
    problem->room = memory;
    const intptr_t room = ITEMS_SIDE_BY_SIDE / (D + 1);
    const int wanted = most_threads(problem);
    problem->end = lay_out_panel(problem, D, room < 1 ? 1 : room < wanted ? (int)room : wanted);
    return problem->end - start;
}

static void run_nothing(const parallel_loop *loop, loop_body body, void *argument, intptr_t n)
{
    (void)loop, (void)body, (void)argument, (void)n;
}

static size_t exact_workspace_bytes(const exact_query *query, intptr_t longest, int n_threads)
{
    exact_query as_long = *query;
    exact_problem problem;
    as_long.D = longest;
    as_long.loop = (parallel_loop){run_nothing, n_threads};
    return lay_out_problem(&problem, &as_long, (char *)LINE) + LINE;
}

/* ------------------------------------------------------------------------------------------ parts of panels */

/* Copy K numbers, with MARGIN zeros on either side; return the first of them. */
static const double *with_margins(double *to, const double *from, intptr_t K)
{
    memset(to, 0, (K + 2 * MARGIN) * sizeof(double));
    return memcpy(to + MARGIN, from, K * sizeof(double));
}

/* Set the panel's ranks: K ranks after the first `arrived`, for n items, and the accuracy of the panel's plan. */
static void set_ranks(exact_problem *problem, intptr_t n, intptr_t arrived, intptr_t K, double accuracy)
{
    const int average_precision = problem->query->average_precision;
    /* divisions by three factors in turn enlarge errors by about K^2 / 2 more */
    if (problem->query->direction || average_precision)
        accuracy /= (double)((K + 1) * (K + 1));
    const double to_spare = SHARE_OF_SERIES / DBL_EPSILON * accuracy; /* powers of odds upwards may grow up to this */
    problem->panel.ranks = (rank_block){
        .K = K,
        .arrived = arrived,
        .theta = with_margins(problem->panel_theta, problem->theta + arrived, K),
        .delta = with_margins(problem->panel_delta, problem->delta + arrived, K),
        .upward_limit = K == 1 ? 1e300 : larger(1, pow(to_spare, 1.0 / (double)(K - 1))),
        .downward_limit = pow(larger(1, to_spare), -1.0 / (double)n),
        .bits = 11 - log2(accuracy),
        .divide_all = n < 2 * K,
        .most_coefficients = most_coefficients(problem->query->D, K),
        .found = average_precision ? 1 + problem->relevant_left : 0,
    };
}

/* Order the panel's n items of weights problem->w, and take into it what their order does not tell. */
static void order_panel(exact_problem *problem, intptr_t n)
{
    const exact_query *query = problem->query;
    item_block *items = &problem->panel.items;
    order_items(n, problem->w, arrives_at_rate(query->law) ? problem->w : problem->f, problem->rho, problem->query_item,
                query->average_precision, (uint16_t *)problem->key, items);
    const intptr_t all = QUARTET * items->quartets, *item = items->item;
    for (intptr_t j = 0; j < all && !arrives_at_rate(query->law); j++)
        items->w[j] = item[j] < 0 ? -LARGEST_EXPONENT : items->w[j];
    for (intptr_t j = 0; j < all && query->direction; j++)
        items->direction[j] = item[j] < 0 ? 0 : query->direction[item[j]];
    for (intptr_t j = 0; j < all && query->stop; j++)
        items->stop[j] = item[j] < 0 ? 0 : query->stop[item[j]];
}

/* Return the rank weights of a panel with K ranks after the first `arrived`. */
static panel_gains gains_of_panel(const exact_problem *problem, intptr_t arrived, intptr_t K)
{
    const int derivatives = problem->tolerance.derivatives, exposure = problem->query->exposure;
    if (problem->query->probabilities)
        return (panel_gains){.K = K, .sum_theta = 1};
    const int counts = problem->query->average_precision;
    const double *theta = (counts ? problem->most_theta : problem->theta) + arrived;
    const double *delta = (counts ? problem->most_delta : problem->delta) + arrived;
    const double *moves = counts || problem->panel.stops ? problem->moves + arrived : NULL;
    double sum = 0;
    for (intptr_t k = 0; k < K; k++)
        sum += fabs(theta[k]);
    return (panel_gains){K, theta, delta, moves, sum, derivatives, exposure, problem->tolerance.product};
}

/* Return the errors allowed in the next plan of the attempt. Those of the value add up over the plans: each may take
 * half of what is left, the last one all of it, less a hundredth for what its end adds (quadrature_plan.h). */
static tolerances tolerances_of_plan(const exact_problem *problem, int last)
{
    tolerances plan = problem->tolerance;
    plan.allowed[OF_VALUE] = (last ? 0.99 : 0.5) * (plan.allowed[OF_VALUE] - problem->error[OF_VALUE]);
    return plan;
}

/* Add the errors of a plan to the attempt's errors. */
static void add_errors(exact_problem *problem, const double error[INTEGRALS])
{
    for (int i = 0; i < INTEGRALS; i++)
        problem->error[i] += error[i];
    problem->plans++;
}

/* Run body(problem, block, thread) for each block of the list. */
static void pass_over_list(exact_problem *problem, loop_body body)
{
    run_loop(&problem->query->loop, body, problem, blocks_of_list(problem->query->D));
}

/* Run a pass whose body fills problem->of_block; return the sums over all blocks. */
static block_sums sum_over_list(exact_problem *problem, loop_body body)
{
    pass_over_list(problem, body);
    return sum_blocks(problem->of_block, blocks_of_list(problem->query->D));
}

static relevance_sums relevance_of(const exact_problem *problem, item_range items)
{
    lanes total = {0}, relevant = {0};
    const lanes one = vec_all(1), zero = {0};
    for (intptr_t j = items.begin; j < items.end; j += PLR_LANES) {
        const lanes given = vec_load_some(problem->query->relevance + j, items.end - j, problem->common);
        const lanes rho = given - problem->common;
        total += rho;
        relevant += vec_keep(rho != zero, one);
    }
    return (relevance_sums){vec_sum(total), (double)(items.end - items.begin) - vec_sum(relevant)};
}

static void sum_relevance_of_block(void *problem_, intptr_t block, int thread)
{
    exact_problem *problem = problem_;
    const relevance_sums sums = relevance_of(problem, block_of_list(problem->query->D, block));
    problem->of_block[block] = (block_sums){{sums.total, sums.irrelevant}};
    (void)thread;
}

/* Sum over all items their relevance minus the common part, and count those for which it is 0. */
static relevance_sums sum_relevance(exact_problem *problem)
{
    const block_sums all = sum_over_list(problem, sum_relevance_of_block);
    return (relevance_sums){all.sum[0], all.sum[1]};
}

/* Sort all items by descending score; return their scores, and leave their indices in problem->rank_order. */
static const double *sort_scores(exact_problem *problem)
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

#endif
