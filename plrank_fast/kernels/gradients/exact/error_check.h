/* How exact an attempt at the gradient is to be, and whether it has had enough nodes. */
#ifndef PLR_ERROR_CHECK_H
#define PLR_ERROR_CHECK_H

#include "gradients/exact/exact_problem.h"

/* What rank weights and relevance say about the size of the gradient and of its errors. */
typedef struct {
    double largest_theta, largest_rho; /* absolute */
    double variation;       /* sum |theta_k - theta_(k+1)| */
    double range_of_rho;
} problem_shape;

/* Errors of a query's results over those that are promised: what they may be, for which an attempt is repeated, and what
 * they are by all that is known of plan and rounding. */
typedef struct {
    double suspected, seen;
} errors_over_promise;

#define first_accuracy ISA(first_accuracy)
#define lost_at_ends ISA(lost_at_ends)
#define check_errors ISA(check_errors)

/* Of the quadrature, for an integral of order 1, at the first attempt. */
double first_accuracy(const exact_problem *problem, const problem_shape *shape);
/* What may be lost at each of the ends of panels, in units of variation times range_of_rho. */
double lost_at_ends(const exact_query *query, const problem_shape *shape, int derivatives);
errors_over_promise check_errors(exact_problem *problem, const problem_shape *shape);

#endif
