#include "gradients/exact/error_check.h"

#include <math.h>

#define LEAST_NORM 1e-3   /* of max |theta| max |rho|: errors are promised relative to this at least */
/* Shares of what is promised: what may be lost to each of late arrivals, leaving and not having entered, and how far
 * the sum of the gradient may be off. */
#define SHARE_OF_ENDS 0.2
#define SHARE_OF_SUM 0.03
#define UNRESOLVED 0.1    /* errors over (what shows of the finest pattern)^2 / norm, seen up to this */
#define LEAST_UNSEEN 0.03 /* of the error that nodes are planned for, which hides from the sum of the gradient */
#define MOST_UNSEEN 0.3   /* likewise, at worst */
#define FEW 8             /* items whose gradients are too few numbers to be checked */

/* The rule for the nodes is not to be trusted above 1e-5, and made for rank weights that fall. */
double first_accuracy(const exact_query *query, const problem_shape *shape)
{
    const double accuracy = smaller(query->rtol, 1e-5) / (shape->ups_and_downs * shape->ups_and_downs);
    if (!query->gradient)
        return accuracy / 100; /* nothing checks a value that comes alone */
    if (query->D <= FEW)
        return accuracy / 1000; /* the checks may be blind by chance where they have few entries to look at */
    return accuracy;
}

/* A share of what is promised where the gradient is smallest. For the diagonal of the Hessian the bound is of half of
 * it. */
double lost_at_ends(const exact_query *query, const problem_shape *shape, int derivatives)
{
    const double R = shape->variation * shape->range_of_rho, scale = shape->largest_theta * shape->largest_rho;
    const double of_end = SHARE_OF_ENDS * query->rtol * LEAST_NORM * scale / R;
    return smaller(of_end, 1e-3) / (derivatives > 1 ? 2 : 1);
}

/* Which part of the error that nodes are planned for may hide from the sum of the gradient. More than usual where
 * single ranks are seen; where relevance is nearly the same for all, for then the gradient is a small difference of the
 * errors that the common part makes, and the sum shows even less of them; and where relevance has both signs, for then
 * the errors have, and the sum may be small by chance. */
static double unseen_share(const exact_problem *problem, const problem_shape *shape)
{
    const exact_query *query = problem->query;
    double total = 0, absolute = 0;
    for (intptr_t j = 0; j < query->D; j++) {
        const double rho = query->relevance[j] - problem->common;
        total += rho;
        absolute += fabs(rho);
    }
    const double alike = fabs(total) / ((double)query->D * shape->largest_rho), mixed = 1 - fabs(total) / absolute;
    return shape->single_ranks ? MOST_UNSEEN : larger(LEAST_UNSEEN, MOST_UNSEEN * larger(alike, mixed));
}

typedef struct {
    double sum, absolute, square;
} entry_sums;

static entry_sums sum_entries(const double *gradient, intptr_t D)
{
    lanes sums = {0}, absolutes = {0}, squares = {0};
    intptr_t j = 0;
    for (; j + PLR_LANES <= D; j += PLR_LANES) {
        const lanes g = vec_load(gradient + j);
        sums += g;
        absolutes += (lanes)((int_lanes)g & INT64_MAX);
        squares += g * g;
    }
    entry_sums all = {vec_sum(sums), vec_sum(absolutes), vec_sum(squares)};
    for (; j < D; j++) {
        all.sum += gradient[j];
        all.absolute += fabs(gradient[j]);
        all.square += gradient[j] * gradient[j];
    }
    return all;
}

/* The gradient's entries sum to zero: what they do sum to measures the error of the quadrature, and so does what the
 * integrands have of the finest pattern that the nodes can show, entry by entry. Both may be small by chance, which
 * must not decide where the gradient is so small that the plan does not vouch for it. */
double excess_error(const exact_problem *problem, const problem_shape *shape)
{
    const exact_query *query = problem->query;
    const double scale = shape->largest_theta * shape->largest_rho, floor = LEAST_NORM * scale, rtol = query->rtol;
    const entry_sums entries = sum_entries(query->gradient, query->D);
    const double norm = sqrt(entries.square), finest = sqrt(problem->panel.unresolved);
    const double unresolved = UNRESOLVED * finest * finest / larger(larger(norm, finest), 1e-300);
    double planned = 0;
    if (!problem->panel.all_checked)
        planned = unseen_share(problem, shape) * problem->panel.planned_error * shape->ups_and_downs *
                  shape->ups_and_downs * scale;
    return larger(fabs(entries.sum) / (SHARE_OF_SUM * rtol * larger(entries.absolute, floor)),
                  larger(unresolved, planned) / (rtol * larger(norm, floor)));
}
