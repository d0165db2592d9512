/* The accuracy of an attempt at the gradient, and the check whether it had enough nodes. */
#ifndef PLR_ERROR_CHECK_H
#define PLR_ERROR_CHECK_H

#include <float.h>
#include <math.h>

#include "gradients/exact/exact_problem.h"

/* Errors of a query's results over the guaranteed ones: a bound, and the largest that is certain, from the sum of the
 * gradient and from rounding. An attempt is repeated if the bound is above 1, or `certain` is above a share; the call
 * fails if `certain` remains above 1. `guaranteed` are the errors that the guarantee allows in each integral. */
typedef struct {
    double bound, certain, guaranteed[INTEGRALS];
} error_ratios;

#define LEAST_NORM 1e-3 /* the error bound is relative to at least this part of max |theta| max |rho| */
#define ROUNDING 2      /* units of the last place of variation times range_of_rho, in an entry; of a product, times
                         * K^1.5: it sums K^2 terms, and the next coefficients of P err by the square root of K */

/* The least norm to which the error bound is relative. */
static double floor_of_norm(const exact_problem *problem)
{
    return LEAST_NORM * problem->shape.largest_theta * problem->shape.largest_rho;
}

/* The part of the tolerance that is for quadrature, ends and borders. */
static double rtol_of_plans(const exact_query *query)
{
    return (1 - SHARE_OF_SERIES) * query->rtol;
}

static double guaranteed_of_value(const exact_problem *problem)
{
    return rtol_of_plans(problem->query) * problem->shape.sum_theta * problem->shape.largest_rho;
}

/* Return the tolerances of the first attempt. An item that arrives when the last rank is filled gains about the mean
 * rank weight, so the norm of the gradient is about mean_theta times norm_of_slope then (where readers
 * stop, quadrature_plan.h has a forecast), and the norm of the Hessian diagonal half of that. Items that leave a panel
 * early and items that enter late share the tolerance for borders. */
static tolerances first_tolerances(const exact_problem *problem)
{
    const exact_query *query = problem->query;
    const problem_shape *shape = &problem->shape;
    const double R = shape->most_change, least = rtol_of_plans(query) * floor_of_norm(problem);
    const double forecast = rtol_of_plans(query) * (query->stop ? 1 : shape->mean_theta), border = SHARE_OF_ENDS / 2;
    tolerances first = {.R = R, .unit = shape->unit};
    first.derivatives = query->hessian ? 2 : query->gradient ? 1 : 0;
    first.product = query->direction != NULL;
    first.cut = smaller(border * least / R / losses_of(first.derivatives), border);
    first.allowed[OF_VALUE] = guaranteed_of_value(problem);
    first.allowed[OF_GRADIENT] = first.allowed[OF_HESSIAN] = (1 - SHARE_OF_ENDS) * least;
    first.per_norm[OF_GRADIENT] = forecast;
    first.per_norm[OF_HESSIAN] = first.product ? 0 : forecast / 2; /* a product may be 0 */
    return first;
}

typedef struct {
    double sum, square;
} entry_sums;

static void sum_block_of_entries(void *problem_, intptr_t block, int thread)
{
    exact_problem *problem = problem_;
    const item_range items = block_of_list(problem->query->D, block);
    const double *entries = problem->checked;
    lanes sums = {0}, squares = {0};
    for (intptr_t j = items.begin; j < items.end; j += PLR_LANES) {
        const lanes g = vec_load_some(entries + j, items.end - j, 0);
        sums += g;
        squares += g * g;
    }
    problem->of_block[block] = (block_sums){{vec_sum(sums), vec_sum(squares)}};
    (void)thread;
}

static entry_sums sum_entries(exact_problem *problem, const double *entries)
{
    problem->checked = entries;
    const block_sums all = sum_over_list(problem, sum_block_of_entries);
    return (entry_sums){all.sum[0], all.sum[1]};
}

/* Compare an integral's errors with what the guarantee allows. */
static void check_bound(const exact_problem *problem, int integral, double guaranteed, error_ratios *errors)
{
    errors->guaranteed[integral] = guaranteed;
    errors->bound = larger(errors->bound, problem->error[integral] / guaranteed);
}

static void check_entries(exact_problem *problem, int integral, const double *entries, error_ratios *errors)
{
    const exact_query *query = problem->query;
    const problem_shape *shape = &problem->shape;
    const entry_sums sums = sum_entries(problem, entries);
    const double guaranteed = rtol_of_plans(query) * larger(sqrt(sums.square), floor_of_norm(problem));
    const double steps = integral == OF_HESSIAN && query->direction ? pow((double)problem->K, 1.5) : 1;
    const double rounding = steps * ROUNDING * DBL_EPSILON * shape->variation * shape->range_of_rho;
    check_bound(problem, integral, guaranteed, errors);
    errors->certain = larger(errors->certain, rounding / guaranteed);
    if (integral == OF_GRADIENT || query->direction) {
        const double off = sums.sum - (integral == OF_GRADIENT ? shape->sum : 0);
        errors->certain = larger(errors->certain, fabs(off) / sqrt((double)query->D) / guaranteed);
    }
}

static error_ratios check_errors(exact_problem *problem)
{
    const exact_query *query = problem->query;
    error_ratios errors = {0};
    check_bound(problem, OF_VALUE, guaranteed_of_value(problem), &errors);
    if (query->gradient)
        check_entries(problem, OF_GRADIENT, query->gradient, &errors);
    if (query->hessian)
        check_entries(problem, OF_HESSIAN, query->hessian, &errors);
    return errors;
}

#endif
