#include "gradients/exact/exact.h"

#include <math.h>

#include "gradients/exact/error_check.h"
#include "gradients/exact/panels.h"
#include "simd/denormals.h"

#define MOSTLY_RELEVANT 0.125 /* share of irrelevant items, which cost a third of others, up to which the mean pays */
#define SHARE_OF_SUM 0.25     /* part of the error bound that the sum of the gradient may show */
#define ATTEMPTS 3            /* most attempts before the check of errors passes */

static range range_of(const double *x, intptr_t n)
{
    lanes low = vec_all(x[0]), high = low;
    for (intptr_t j = 0; j < n; j += PLR_LANES) {
        const lanes here = vec_load_some(x + j, n - j, x[0]);
        low = vec_min_f64(here, low);
        high = vec_max_f64(here, high);
    }
    return (range){vec_smallest(low), vec_largest(high)};
}

static range both_ranges(range a, range b)
{
    return (range){smaller(a.least, b.least), larger(a.most, b.most)};
}

static void clear_outputs_of_block(void *problem, intptr_t block, int thread)
{
    const exact_query *query = ((const exact_problem *)problem)->query;
    const item_range items = block_of_list(query->D, block);
    const double of_all_ranks = query->exposure && query->K >= query->D ? query->rank_weights[query->D - 1] : 0;
    for (intptr_t j = items.begin; query->gradient && j < items.end; j++)
        query->gradient[j] = of_all_ranks;
    for (intptr_t j = items.begin; query->hessian && j < items.end; j++)
        query->hessian[j] = 0;
    (void)thread;
}

/* Clear the outputs of one block, and find the ranges of scores and, if given, the range and the sums of relevance. */
static void look_at_block(void *problem_, intptr_t block, int thread)
{
    exact_problem *problem = problem_;
    const exact_query *query = problem->query;
    const item_range items = block_of_list(query->D, block);
    const intptr_t n = items.end - items.begin;
    const range scores = range_of(query->scores + items.begin, n);
    range relevance = {0, 0};
    relevance_sums sums = {0, 0};
    clear_outputs_of_block(problem, block, thread);
    if (query->relevance) {
        relevance = range_of(query->relevance + items.begin, n);
        sums = relevance_of(problem, items);
    }
    problem->of_block[block] =
        (block_sums){{scores.least, scores.most, relevance.least, relevance.most, sums.total, sums.irrelevant}};
}

/* Clear the outputs, and find the ranges of scores and relevance and the sums of relevance. */
static void look_at_items(exact_problem *problem)
{
    pass_over_list(problem, look_at_block);
    const double *of_block = problem->of_block->sum;
    range scores = {of_block[0], of_block[1]}, relevance = {of_block[2], of_block[3]};
    for (intptr_t block = 1; block < blocks_of_list(problem->query->D); block++) {
        of_block = problem->of_block[block].sum;
        scores = both_ranges(scores, (range){of_block[0], of_block[1]});
        relevance = both_ranges(relevance, (range){of_block[2], of_block[3]});
    }
    problem->lowest = scores.least;
    problem->highest = scores.most;
    problem->relevance = relevance;
    const block_sums all = sum_blocks(problem->of_block, blocks_of_list(problem->query->D));
    problem->all_relevance = (relevance_sums){all.sum[4], all.sum[5]};
}

/* Set problem->common to the relevance whose subtraction makes the most items irrelevant, or to the mean if they are
 * few. It changes no gradient, but its error would be the sum of the errors of all items. `sums` are the sums of
 * what remains. */
static void find_common(exact_problem *problem, relevance_sums *sums)
{
    const range relevance = problem->relevance;
    problem->common = relevance.least > 0 ? relevance.least : relevance.most < 0 ? relevance.most : 0;
    const double D = (double)problem->query->D;
    *sums = problem->common == 0 ? problem->all_relevance : sum_relevance(problem);
    if (sums->irrelevant <= MOSTLY_RELEVANT * D) {
        problem->common += sums->total / D;
        *sums = sum_relevance(problem);
    }
}

/* Return a bound of the magnitude of the gains of any ranking of any of the items where readers stop: sum |theta| max
 * |rho|, or max |theta| max |rho_j| / R_j, since the chances of stopping at the items of a ranking add up to at most
 * 1. */
static double most_gains(const exact_query *query, double sum_theta, double largest_theta, double largest_rho)
{
    double per_stop = 0;
    for (intptr_t j = 0; j < query->D; j++)
        if (query->relevance[j] != 0)
            per_stop = larger(per_stop, fabs(query->relevance[j]) / query->stop[j]);
    return smaller(sum_theta * largest_rho, largest_theta * per_stop);
}

/* Determine the integrand and its magnitude; return the part of the value that needs no integral.
 *
 * A constant added to all relevance changes no gradient, nor does one added to all rank weights if every item is
 * placed. Subtracting the second constant spares the integral the long wait for the last item. Neither holds where
 * readers stop. */
static double describe_problem(exact_problem *problem)
{
    problem_shape *shape = &problem->shape;
    const exact_query *query = problem->query;
    const intptr_t D = query->D, K = query->K < D ? query->K : D;
    relevance_sums rho = {(double)D, 0};
    if (query->exposure || query->stop)
        problem->relevance = both_ranges(problem->relevance, (range){0, 0});
    else
        find_common(problem, &rho);
    const double least = problem->relevance.least, most = problem->relevance.most;
    const double last_theta = K == D && !query->stop ? query->rank_weights[D - 1] : 0;
    double total_theta = 0, sum_theta = 0, largest_theta = 0, variation = 0;
    for (intptr_t m = 0; m < K; m++) {
        double theta = query->rank_weights[m];
        total_theta += theta;
        sum_theta += fabs(theta);
        largest_theta = larger(largest_theta, fabs(theta));
        problem->theta[m] = theta - last_theta;
        problem->delta[m] = (m + 1 < K ? query->rank_weights[m + 1] : last_theta) - theta;
    }
    for (intptr_t m = 0; m < K; m++)
        variation += fabs(problem->delta[m]);
    problem->K = K;
    while (problem->K > 0 && problem->theta[problem->K - 1] == 0) /* includes the last rank if every item is placed */
        problem->K--;
    *shape = (problem_shape){.largest_theta = largest_theta, .largest_rho = larger(fabs(least), fabs(most)),
                             .variation = variation, .range_of_rho = most - least, .sum_theta = sum_theta,
                             .mean_theta = fabs(total_theta / (double)K - last_theta),
                             .sum = query->exposure ? total_theta : 0,
                             .most_change = variation * (most - least),
                             .unit = variation * larger(most - problem->common, problem->common - least)};
    if (query->stop)
        shape->most_change = shape->unit = 2 * most_gains(query, sum_theta, largest_theta, shape->largest_rho);
    for (intptr_t m = 0; m < K && query->stop; m++)
        problem->moves[m] = larger(fabs(problem->delta[m]), fabs(problem->theta[m]));
    return problem->common * total_theta + last_theta * rho.total;
}

/* Do so for average precision. Its rank weights do not rise, so a change of a ranking by which no number of relevant
 * items in the first k ranks changes by more than 1 changes the metric by at most the sum of the first R rank weights,
 * R being the number of relevant items. The first k ranks have at most min(k, R) of them, which bounds the integrands
 * (docs/numerics.md). */
static double describe_average_precision(exact_problem *problem)
{
    problem_shape *shape = &problem->shape;
    const exact_query *query = problem->query;
    const double D = (double)query->D;
    const intptr_t K = query->K < query->D ? query->K : query->D;
    const double R = problem->all_relevance.total, most = smaller((double)K, R);
    *shape = (problem_shape){.largest_rho = 1};
    if (R == 0 || R == D) /* the same for all rankings */
        return R == 0 ? 0 : (double)K / D;
    const double last_theta = K == query->D ? 1 / D : 0;
    double *theta = problem->theta, *bound = problem->most_theta;
    double all = 0, mean = 0;
    for (intptr_t m = 0; m <= K; m++) {
        const double k = (double)(m + 1);
        theta[m] = m < K ? (1 / k - last_theta) / R : 0;
        bound[m] = theta[m] * smaller(k, R);
        all += k <= R ? theta[m] : 0;
        mean += theta[m] * (1 + 2 * (k - 1) * R / D);
    }
    for (intptr_t m = 0; m < K; m++) {
        const double c = theta[m] - theta[m + 1], many = c * smaller((double)(m + 1), R);
        problem->delta[m] = -c;
        problem->most_delta[m] = bound[m + 1] - bound[m];
        problem->moves[m] = larger(many, larger(fabs(theta[m + 1] - c), fabs(theta[m + 1] - many)));
    }
    problem->K = K == query->D ? K - 1 : K;
    *shape = (problem_shape){.largest_theta = 1 / R, .largest_rho = 1, .variation = all, .range_of_rho = 1,
                             .sum_theta = most / R, .mean_theta = mean / (double)K, .most_change = all, .unit = all};
    return last_theta * (R + 1) / 2;
}

/* Integrate the query, and repeat with more nodes while the errors may exceed the tolerance. */
static void integrate_query(exact_problem *problem, double known_value)
{
    exact_query *query = problem->query;
    problem->tolerance = first_tolerances(problem);
    for (int attempt = 0; attempt < ATTEMPTS && !query->cancellation.requested; attempt++) {
        problem->value = 0;
        problem->plans = 0;
        problem->panel.reading = 1;
        for (int i = 0; i < INTEGRALS; i++)
            problem->error[i] = 2 * problem->tolerance.cut * losses_of(i) * problem->tolerance.R;
        query->attempts = attempt + 1;
        const unsigned before = flush_denormals(); /* many probabilities underflow, early and late */
        integrate(problem);
        restore_denormals(before);
        query->value = known_value + problem->value;
        const error_ratios errors = check_errors(problem);
        query->missed = errors.certain > 1 ? query->rtol * errors.certain : 0;
        const double seen = errors.certain / SHARE_OF_SUM;
        if ((errors.bound <= 1 && seen <= 1) || attempt + 1 == ATTEMPTS)
            return;
        for (int i = OF_GRADIENT; i < INTEGRALS; i++) {
            const double guaranteed = seen > 1 ? smaller(errors.guaranteed[i], problem->error[i] / seen)
                                               : errors.guaranteed[i];
            problem->tolerance.allowed[i] = 0.5 * guaranteed / problem->plans;
            problem->tolerance.per_norm[i] = 0;
        }
        pass_over_list(problem, clear_outputs_of_block);
    }
}

static void multiply_outputs_of_block(void *problem_, intptr_t block, int thread)
{
    exact_problem *problem = problem_;
    const exact_query *query = problem->query;
    const item_range items = block_of_list(query->D, block);
    const double factor = query->inverse_sigma;
    for (intptr_t j = items.begin; query->gradient && j < items.end; j++)
        query->gradient[j] *= factor;
    for (intptr_t j = items.begin; query->hessian && j < items.end; j++)
        query->hessian[j] = query->hessian[j] * factor * factor;
    (void)thread;
}

/* Keep exposures, which are means of rank weights, within the range of these: propensities must not be below 0. */
static void limit_exposures(exact_query *query, intptr_t K)
{
    const range weights = range_of(query->rank_weights, K), with_0 = both_ranges(weights, (range){0, 0});
    const range allowed = K < query->D ? with_0 : weights;
    for (intptr_t j = 0; j < query->D; j++)
        query->gradient[j] = smaller(larger(query->gradient[j], allowed.least), allowed.most);
}

/* Count the items at which readers may stop. */
static intptr_t count_stopping(const exact_query *query)
{
    intptr_t n = 0;
    for (intptr_t j = 0; j < query->D && query->stop; j++)
        n += query->stop[j] != 0;
    return n;
}

static void find_expectations(exact_query *query, void *memory)
{
    const intptr_t D = query->D, K = query->K < D ? query->K : D;
    exact_problem problem;
    lay_out_problem(&problem, query, memory);
    if (K == 1) /* whoever stops does so after the only rank */
        query->stop = NULL;
    problem.stopping = count_stopping(query);
    problem.panel.stops = problem.stopping > 0;
    if (!problem.panel.stops)
        query->stop = NULL;
    query->value = query->missed = 0;
    query->attempts = query->nodes = 0;
    if (D == 0)
        return;
    look_at_items(&problem);
    if (K <= 0)
        return;
    query->value = query->average_precision ? describe_average_precision(&problem) : describe_problem(&problem);
    if (problem.K > 0 && problem.shape.range_of_rho != 0 && problem.shape.largest_theta != 0)
        integrate_query(&problem, query->value);
    if (query->inverse_sigma != 1)
        pass_over_list(&problem, multiply_outputs_of_block);
    if (query->exposure)
        limit_exposures(query, K);
}

/* Clear the rows in order, since touching memory for the first time takes long. */
static void clear_probabilities(exact_query *query)
{
    const intptr_t K = query->K;
    for (intptr_t j = 0; j < query->D && !cancellation_requested(&query->cancellation, (double)K); j++)
        memset(query->probabilities + j * K, 0, K * sizeof(double));
}

/* Raise negative probabilities to 0; if every item is placed, the last column is 1 minus the others in each row. */
static void complete_rows(exact_query *query, intptr_t K, int complete)
{
    const double work = (double)query->K;
    for (intptr_t j = 0; j < query->D && !cancellation_requested(&query->cancellation, work); j++) {
        double *row = query->probabilities + j * query->K, left = 1;
        for (intptr_t m = 0; m < K; m++) {
            row[m] = larger(row[m], 0);
            left -= row[m];
        }
        if (complete)
            row[K] = larger(left, 0);
    }
}

/* Compute rank probabilities, so that the error of each column is at most 1e-9. */
static void find_rank_probabilities(exact_query *query, void *memory)
{
    const intptr_t D = query->D;
    const int complete = query->K >= D;
    const intptr_t K = complete ? D - 1 : query->K;
    exact_problem problem;
    lay_out_problem(&problem, query, memory);
    problem.K = K;
    look_at_items(&problem);
    memset(problem.theta, 0, (K + 1) * sizeof(double));
    memset(problem.delta, 0, (K + 1) * sizeof(double));
    query->nodes = 0;
    query->attempts = 1;
    clear_probabilities(query);
    problem.tolerance = (tolerances){.allowed = {1e-9}, .R = 1, .unit = 1, .cut = 1e-11};
    const unsigned before = flush_denormals();
    if (K > 0)
        integrate(&problem);
    restore_denormals(before);
    complete_rows(query, K, complete);
}

static void solve(exact_query *query, void *memory)
{
    if (query->probabilities)
        find_rank_probabilities(query, memory);
    else
        find_expectations(query, memory);
}

static void prepare(void)
{
    prepare_gauss_legendre();
    prepare_arrival_tables();
    prepare_interpolation();
}

/* Return the name of the noise of a law, NULL if there are not so many. */
static const char *noise_of(int law)
{
    return law < ALL_LAWS ? laws[law]->noise : NULL;
}

const exact_kernels ISA(exact_kernels) = {prepare, exact_workspace_bytes, solve, noise_of};
