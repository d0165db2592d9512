/* The accuracy of an attempt at the gradient, and the check whether it had enough nodes. */
#ifndef PLR_ERROR_CHECK_H
#define PLR_ERROR_CHECK_H

#include "gradients/exact/exact_problem.h"

/* Magnitudes of rank weights and relevance, which bound the gradient and its errors. */
typedef struct {
    double largest_theta, largest_rho; /* largest magnitudes */
    double variation;       /* sum |theta_k - theta_(k+1)| */
    double range_of_rho;
} problem_shape;

/* Estimated errors of a query's results over the guaranteed ones. An attempt is repeated if the suspected error is too
 * large; the call fails if the error seen, a lower estimate by the bound of the plan and rounding, remains too
 * large. */
typedef struct {
    double suspected, seen;
} errors_over_promise;

#define first_accuracy ISA(first_accuracy)
#define lost_at_ends ISA(lost_at_ends)
#define check_errors ISA(check_errors)

/* Return the tolerance of the quadrature, for an integral of order 1, at the first attempt. */
double first_accuracy(const exact_problem *problem, const problem_shape *shape);
/* Return the tolerance of each end of a panel, in units of variation times range_of_rho. */
double lost_at_ends(const exact_query *query, const problem_shape *shape, int derivatives);
errors_over_promise check_errors(exact_problem *problem, const problem_shape *shape);

#endif
