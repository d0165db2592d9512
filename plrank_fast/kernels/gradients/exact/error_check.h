/* The accuracy of an attempt at the gradient, and the check whether it had enough nodes. */
#ifndef PLR_ERROR_CHECK_H
#define PLR_ERROR_CHECK_H

#include "gradients/exact/exact_problem.h"

/* Magnitudes of rank weights and relevance, which bound the gradient and its errors. */
typedef struct {
    double largest_theta, largest_rho; /* largest magnitudes */
    double variation;       /* sum |theta_k - theta_(k+1)| */
    double range_of_rho;
    double sum_theta;       /* of magnitudes */
    double mean_theta;      /* magnitude of the mean of what is integrated */
    double sum;             /* of the entries of the gradient */
    double unit;            /* of errors of the quadrature: variation times the largest relevance that is integrated */
} problem_shape;

/* Errors of a query's results over the guaranteed ones: a bound, and the largest that is certain, from the sum of the
 * gradient and from rounding. An attempt is repeated if the bound is above 1, or `certain` is above a share; the call
 * fails if `certain` remains above 1. `guaranteed` are the errors that the guarantee allows in each integral. */
typedef struct {
    double bound, certain, guaranteed[INTEGRALS];
} error_ratios;

#define first_tolerances ISA(first_tolerances)
#define check_errors ISA(check_errors)

/* Return the tolerances of the first attempt. */
tolerances first_tolerances(const exact_query *query, const problem_shape *shape);
error_ratios check_errors(exact_problem *problem, const problem_shape *shape);

#endif
