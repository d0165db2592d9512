#include "gradients/exact/error_check.h"

#include <float.h>
#include <math.h>

#define LEAST_NORM 1e-3    /* of max |theta| max |rho|: the error bound is relative to at least this */
#define SHARE_OF_ENDS 0.2  /* of the error bound: losses from late arrivals, from leaving, from entering */
#define OF_OTHERS 16       /* times as large as that for the gradient are the bounds for value and Hessian diagonal */
#define ROUNDING 2         /* units of the last place of variation times range_of_rho, in an entry */

/* The least norm to which the error bound is relative. */
static double floor_of_norm(const problem_shape *shape)
{
    return LEAST_NORM * shape->largest_theta * shape->largest_rho;
}

/* Item j gets about the mean rank weight where it arrives just in time, so that the norm of the gradient is about
 * mean_theta mean_rho times the flux at that time, and the norm of the Hessian diagonal half of that. The error of the
 * value is relative to sum |theta| max |rho|, which bounds its integrand. */
tolerances first_tolerances(const exact_query *query, const problem_shape *shape)
{
    const double R = shape->variation * shape->range_of_rho, least = query->rtol * floor_of_norm(shape);
    const double forecast = query->rtol * shape->mean_theta * shape->mean_rho / shape->unit;
    tolerances first = {.nodes = query->rtol / OF_OTHERS, .cut = smaller(SHARE_OF_ENDS * least / R, 1e-3)};
    if (query->gradient) {
        first.derivatives = 1;
        first.nodes = least / shape->unit;
        first.per_flux = forecast;
    }
    if (query->hessian) {
        first.derivatives = 2;
        first.nodes /= OF_OTHERS;
        first.per_flux /= 2 * OF_OTHERS;
        first.cut /= 2; /* twice the loss is the bound for the diagonal */
    }
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
    intptr_t j = items.begin;
    for (; j + PLR_LANES <= items.end; j += PLR_LANES) {
        const lanes g = vec_load(entries + j);
        sums += g;
        squares += g * g;
    }
    block_sums all = {{vec_sum(sums), vec_sum(squares)}};
    for (; j < items.end; j++) {
        all.sum[0] += entries[j];
        all.sum[1] += entries[j] * entries[j];
    }
    problem->of_block[block] = all;
    (void)thread;
}

static entry_sums sum_entries(exact_problem *problem, const double *entries)
{
    problem->checked = entries;
    const block_sums all = sum_over_list(problem, sum_block_of_entries);
    return (entry_sums){all.sum[0], all.sum[1]};
}

static void check_entries(exact_problem *problem, const problem_shape *shape, const double *entries,
                          errors_over_promise *errors)
{
    const exact_query *query = problem->query;
    const entry_sums sums = sum_entries(problem, entries);
    const double promised = query->rtol * larger(sqrt(sums.square), floor_of_norm(shape));
    const double rounding = ROUNDING * DBL_EPSILON * shape->variation * shape->range_of_rho;
    const double bound = (entries == query->hessian ? OF_OTHERS : 1) * problem->error * shape->unit;
    errors->bound = larger(errors->bound, bound / promised);
    errors->certain = larger(errors->certain, rounding / promised);
    if (entries == query->gradient)
        errors->certain = larger(errors->certain, fabs(sums.sum - shape->sum) / sqrt((double)query->D) / promised);
}

errors_over_promise check_errors(exact_problem *problem, const problem_shape *shape)
{
    errors_over_promise errors = {0, 0};
    check_entries(problem, shape, problem->query->gradient, &errors);
    if (problem->query->hessian)
        check_entries(problem, shape, problem->query->hessian, &errors);
    return errors;
}
