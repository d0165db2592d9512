#include "gradients/exact/error_check.h"

#include <float.h>
#include <math.h>

#define COARSEST 0.05      /* tolerance above which the rule for the nodes is not to be trusted */
#define LEAST_NORM 1e-3    /* of max |theta| max |rho|: errors are promised relative to this at least */
/* Shares of what is promised: what may be lost to each of late arrivals, leaving and not having entered, and how far
 * the sum of the gradient may be off. */
#define SHARE_OF_ENDS 0.2
#define SHARE_OF_SUM 0.05
#define UNRESOLVED 0.1     /* errors over (what shows of the finest pattern)^2 / norm, seen up to this */
#define LEAST_UNSEEN 0.03  /* of the error that nodes are planned for, which hides from the sum of the gradient */
#define MOST_UNSEEN 0.3    /* likewise, at worst */
#define FEW 8              /* items whose gradients are too few numbers to be checked */
#define ITEMS_PER_RANK 5   /* and rank again: from there on the gradient's norm can be told beforehand */
#define SHARE_OF_CHECK 0.1 /* of what the check of what was planned allows: what the nodes are planned for */

/* Which part of the error that nodes are planned for may hide from the sum of the gradient. More than usual where
 * single ranks are seen; where relevance is nearly the same for all, for then the gradient is a small difference of the
 * errors that the common part makes, and the sum shows even less of them; and where relevance has both signs, for then
 * the errors have, and the sum may be small by chance. */
static double unseen_share(exact_problem *problem, const problem_shape *shape)
{
    if (shape->single_ranks)
        return MOST_UNSEEN;
    const relevance_sums rho = sum_relevance(problem);
    const double alike = fabs(rho.total) / ((double)problem->query->D * shape->largest_left);
    const double mixed = 1 - fabs(rho.total) / rho.absolute;
    return larger(LEAST_UNSEEN, MOST_UNSEEN * larger(alike, mixed));
}

/* Sums of weights, squares and their products with relevance that the norm is made of. */
static void sum_norm(void *problem_, intptr_t block, int thread)
{
    exact_problem *problem = problem_;
    const exact_query *query = problem->query;
    const item_range items = block_of_list(query->D, block);
    lanes sum_w = {0}, sum_rho = {0}, squares = {0}, squares_rho = {0}, squares_rho2 = {0};
    for (intptr_t j = items.begin; j < items.end; j += PLR_LANES) {
        const size_t left = items.end - j;
        const lanes w = vec_exp_flush((vec_load_some(query->scores + j, left, -DBL_MAX) - problem->highest) * query->inverse_sigma);
        const lanes rho = vec_load_some(query->relevance + j, left, 0) - problem->common, squared = w * w;
        sum_w += w;
        sum_rho += w * rho;
        squares += squared;
        squares_rho += squared * rho;
        squares_rho2 += squared * rho * rho;
    }
    problem->of_block[block] = (block_sums){{vec_sum(sum_w), vec_sum(sum_rho), vec_sum(squares), vec_sum(squares_rho),
                                             vec_sum(squares_rho2)}};
    (void)thread;
}

/* About what the norm of the gradient will be. Where few of many items are placed, each rank is filled from nearly the
 * whole list, so the gradient is nearly that of all rank weights at the first rank, p_j (rho_j - sum_i p_i rho_i) with p
 * the softmax of the scores: 0.3 to 1.1 of that, half of all lists above 0.95 (measured; normal scores of standard
 * deviation 0.3 to 2). */
static double expected_norm(exact_problem *problem)
{
    const block_sums all = sum_over_list(problem, sum_norm);
    double theta = 0;
    for (intptr_t m = 0; m < problem->K; m++)
        theta += fabs(problem->theta[m]);
    const double S = all.sum[0], mean = all.sum[1] / S;
    const double norm2 = all.sum[4] - 2 * mean * all.sum[3] + mean * mean * all.sum[2];
    return theta * sqrt(larger(norm2, 0)) / S;
}

/* The part of an accuracy of 1 that the check of what was planned takes for an error. */
static double planned_share(exact_problem *problem, const problem_shape *shape)
{
    const double scale = shape->largest_theta * shape->largest_left;
    return unseen_share(problem, shape) * shape->ups_and_downs * shape->ups_and_downs * scale;
}

/* The rule for the nodes is made for rank weights that fall. */
double first_accuracy(exact_problem *problem, const problem_shape *shape)
{
    const exact_query *query = problem->query;
    const double accuracy = smaller(query->rtol, COARSEST) / (shape->ups_and_downs * shape->ups_and_downs);
    if (!query->gradient)
        return accuracy / 100; /* nothing checks a value that comes alone */
    if (query->D <= FEW)
        return accuracy / 1000; /* the checks may be blind by chance where they have few entries to look at */
    if (ITEMS_PER_RANK * problem->K * problem->K > query->D || query->hessian || problem->query->normal)
        return accuracy;
    /* A gradient that is small beside relevance and rank weights would fail the check of what was planned. */
    const double norm = larger(expected_norm(problem), LEAST_NORM * shape->largest_theta * shape->largest_rho);
    const double checked = query->rtol * norm / planned_share(problem, shape);
    return smaller(accuracy, larger(SHARE_OF_CHECK * checked, 1e-14));
}

/* A share of what is promised where the gradient is smallest. For the diagonal of the Hessian the bound is of half of
 * it. */
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

/* What was planned of the diagonal of the Hessian, over what is promised of it. Nothing else is known of its error. */
static double excess_of_hessian(exact_problem *problem, const problem_shape *shape)
{
    const exact_query *query = problem->query;
    const double scale = shape->largest_theta * shape->largest_rho, alpha = shape->ups_and_downs;
    const double norm = sqrt(sum_entries(problem, query->hessian).square);
    const double left = shape->largest_theta * shape->largest_left;
    const double share = problem->query->normal ? planned_share(problem, shape) : alpha * alpha * left;
    const double planned = share * problem->panel.planned_hessian_error;
    return planned / (query->rtol * larger(norm, LEAST_NORM * scale));
}

/* The gradient's entries sum to zero: what they do sum to measures the error of the quadrature, and so does what the
 * integrands have of the finest pattern that the nodes can show, entry by entry. Both may be small by chance, which
 * must not decide where the gradient is so small that the plan does not vouch for it. */
double excess_error(exact_problem *problem, const problem_shape *shape)
{
    const exact_query *query = problem->query;
    const double scale = shape->largest_theta * shape->largest_rho, floor = LEAST_NORM * scale, rtol = query->rtol;
    const entry_sums entries = sum_entries(problem, query->gradient);
    const double norm = sqrt(entries.square), finest = sqrt(problem->panel.unresolved);
    const double unresolved = UNRESOLVED * finest * finest / larger(larger(norm, finest), 1e-300);
    double planned = 0;
    if (!problem->panel.all_checked)
        planned = planned_share(problem, shape) * problem->panel.planned_error;
    const double excess = larger(fabs(entries.sum) / (SHARE_OF_SUM * rtol * larger(entries.absolute, floor)),
                                 larger(unresolved, planned) / (rtol * larger(norm, floor)));
    return query->hessian ? larger(excess, excess_of_hessian(problem, shape)) : excess;
}
