/* How exact an attempt at the gradient is to be, and whether it has had enough nodes. */
#ifndef PLR_ERROR_CHECK_H
#define PLR_ERROR_CHECK_H

#include "gradients/exact/exact_problem.h"

/* What rank weights and relevance say about the size of the gradient and of its errors. */
typedef struct {
    double largest_theta, largest_rho; /* absolute */
    double largest_left;    /* of relevance less what all items share, of which errors are made */
    double variation;       /* sum |theta_k - theta_(k+1)| */
    double range_of_rho;
    double ups_and_downs;   /* variation over largest_theta: 1 for rank weights that fall */
    int single_ranks;       /* whether they let single ranks be seen, which are narrower in time than sums of them */
    int one_step;           /* whether they fall at one rank for the most part, as those of precision do */
} problem_shape;

#define first_accuracy ISA(first_accuracy)
#define lost_at_ends ISA(lost_at_ends)
#define excess_error ISA(excess_error)

/* Of the quadrature, for an integral of order 1, at the first attempt. */
double first_accuracy(exact_problem *problem, const problem_shape *shape);
/* What may be lost at each of the ends of panels, in units of variation times range_of_rho. */
double lost_at_ends(const exact_query *query, const problem_shape *shape, int derivatives);
/* The estimated error of the query's gradient over the one that is promised. */
double excess_error(exact_problem *problem, const problem_shape *shape);

#endif
