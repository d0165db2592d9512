#include "gradients/exact/error_check.h"

#include <float.h>
#include <math.h>

#define COARSEST 0.05      /* tolerance above which the rule for the nodes is not reliable */
#define LEAST_NORM 1e-3    /* of max |theta| max |rho|: the error bound is relative to at least this */
/* Shares of the error bound: of the loss from late arrivals, from leaving and from entering, each, and of the sum of
 * the gradient, which should be 0. */
#define SHARE_OF_ENDS 0.2
#define SHARE_OF_SUM 0.05
/* Errors over (part of the finest pattern)^2 / norm: the largest that was measured, and that of half of all lists. */
#define SUSPECTED 0.1
#define BELIEVED 0.01
#define ROUNDING 2         /* units of the last place of variation times range_of_rho, in an entry */
#define FEW 8              /* items whose gradients have too few entries for the check */
#define UNCHECKED 100      /* divides the tolerance where no check follows */

/* The error of an integral of order 1 is multiplied by the variation of rank weights. */
double first_accuracy(const exact_problem *problem, const problem_shape *shape)
{
    const exact_query *query = problem->query;
    const double accuracy = smaller(query->rtol, COARSEST) * shape->largest_theta / shape->variation;
    return query->gradient && query->D > FEW ? accuracy : accuracy / UNCHECKED;
}

/* The tolerance is a share of the smallest error bound. The bound of the loss applies to half the diagonal of the
 * Hessian. */
double lost_at_ends(const exact_query *query, const problem_shape *shape, int derivatives)
{
    const double R = shape->variation * shape->range_of_rho, scale = shape->largest_theta * shape->largest_rho;
    const double of_end = SHARE_OF_ENDS * query->rtol * LEAST_NORM * scale / R;
    return smaller(of_end, 1e-3) / (derivatives > 1 ? 2 : 1);
}

typedef struct {
    double sum, absolute, square;
} entry_sums;

static void sum_block_of_entries(void *problem_, intptr_t block, int thread)
{
    exact_problem *problem = problem_;
    const item_range items = block_of_list(problem->query->D, block);
    const double *entries = problem->checked;
    lanes sums = {0}, absolutes = {0}, squares = {0};
    intptr_t j = items.begin;
    for (; j + PLR_LANES <= items.end; j += PLR_LANES) {
        const lanes g = vec_load(entries + j);
        sums += g;
        absolutes += vec_abs(g);
        squares += g * g;
    }
    block_sums all = {{vec_sum(sums), vec_sum(absolutes), vec_sum(squares)}};
    for (; j < items.end; j++) {
        all.sum[0] += entries[j];
        all.sum[1] += fabs(entries[j]);
        all.sum[2] += entries[j] * entries[j];
    }
    problem->of_block[block] = all;
    (void)thread;
}

static entry_sums sum_entries(exact_problem *problem, const double *entries)
{
    problem->checked = entries;
    const block_sums all = sum_over_list(problem, sum_block_of_entries);
    return (entry_sums){all.sum[0], all.sum[1], all.sum[2]};
}

/* Return the guaranteed error, which is relative to the norm of the entries, or to the floor if that is larger. */
static double promised_error(const exact_problem *problem, const problem_shape *shape, entry_sums entries)
{
    const double floor = LEAST_NORM * shape->largest_theta * shape->largest_rho;
    return problem->query->rtol * larger(sqrt(entries.square), floor);
}

/* Return the error estimated from the finest pattern: its square, or a higher power, over the guaranteed error. */
static double unresolved_error(double factor, double squares_of_patterns, double order, double promised, double rtol)
{
    const double finest = sqrt(squares_of_patterns) * rtol / promised;
    return factor * pow(finest, finest < 1 ? order : 1) / rtol;
}

static void check_entries(exact_problem *problem, const problem_shape *shape, const double *entries,
                          double squares_of_patterns, errors_over_promise *errors)
{
    const exact_query *query = problem->query;
    const entry_sums sums = sum_entries(problem, entries);
    const double promised = promised_error(problem, shape, sums), believed = problem->panel.order;
    const double suspected = query->normal ? 0.5 * (1.5 + believed) : 2;
    const double rounding = ROUNDING * DBL_EPSILON * shape->variation * shape->range_of_rho;
    errors->suspected = larger(errors->suspected,
                               unresolved_error(SUSPECTED, squares_of_patterns, suspected, promised, query->rtol));
    errors->seen = larger(errors->seen,
                          unresolved_error(BELIEVED, squares_of_patterns, believed, promised, query->rtol));
    errors->seen = larger(errors->seen, rounding / promised);
    if (entries == query->gradient) {
        const double floor = LEAST_NORM * shape->largest_theta * shape->largest_rho;
        const double sum = fabs(sums.sum) / (query->rtol * larger(sums.absolute, floor));
        errors->suspected = larger(errors->suspected, sum / SHARE_OF_SUM);
        errors->seen = larger(errors->seen, sum);
    }
}

errors_over_promise check_errors(exact_problem *problem, const problem_shape *shape)
{
    errors_over_promise errors = {0, 0};
    check_entries(problem, shape, problem->query->gradient, problem->panel.unresolved_gradient, &errors);
    if (problem->query->hessian)
        check_entries(problem, shape, problem->query->hessian, problem->panel.unresolved_hessian, &errors);
    return errors;
}
