/* A bound of the integrands at complex times, and by it of the error of a Gauss-Legendre rule.
 *
 * A rule of n nodes on [-1, 1] errs by an integral around the ellipse whose semi-axes sum to e^eta, |E| <= (1 / 2 pi)
 * int |f(x)| |k_n(x)| |dx|, where the kernel k_n is at most 2 pi e^(-(2n + 1) eta) if n eta is at least 2.4
 * (docs/numerics.md). At a complex time |q_j| and |p_j| replace q_j and p_j, so P is at most C = prod_j (|p_j| + |q_j|)
 * times the distribution of the number N of arrivals with probabilities u_j = |p_j| / (|p_j| + |q_j|).
 * With h_j = |w_j q_j| / (|p_j| + |q_j|) and partial summation over ranks,
 *
 *     |w_j q_j Y_j| <= C h_j sum_k |delta_k| P(N without j < k),
 *     |w_j q_j X_j| <= C h_j sum_i |rho_i| h_i sum_k |delta_k| P(N without i and j = k - 1).
 *
 * Both probabilities are at most those of Chernoff and Bernstein, and the second is at most e^-V I_0(V), V being the
 * variance of N without i and j: by Cauchy's formula it is at most the mean of prod_i |1 - u_i + u_i e^(i (x + a_i))|
 * over all x, where the a_i are phases; each factor is at most exp(-u_i (1 - u_i) (1 - cos(x + a_i))), and by Hoelder's
 * inequality their mean is largest for equal phases.
 *
 * With normal arrival times the density takes the place of w_j q_j.
 */
#ifndef PLR_INTEGRAND_BOUND_H
#define PLR_INTEGRAND_BOUND_H

#include "gradients/exact/score_histogram.h"

#define DENSITY_AT_0 (0.5 * M_2_SQRTPI * M_SQRT1_2) /* of normal arrival times: 1 / sqrt(2 pi) */

enum { OF_VALUE, OF_GRADIENT, OF_HESSIAN, INTEGRALS };

/* The rank weights of a panel, and the integrals over it. */
typedef struct {
    intptr_t K;
    const double *theta, *delta; /* NULL for rank probabilities: the value then bounds a column of them */
    double sum_theta;            /* of magnitudes */
    int derivatives;             /* 0 for the value alone, 1 with the gradient, 2 with the Hessian diagonal */
    int exposure;                /* whether derivatives are by relevance */
    int product;                 /* whether the Hessian is multiplied by a vector of entries of at most 1 */
} panel_gains;

/* The map from [v_begin, v_begin + v_length] to time: t = t0 + scale sinh(v)^2, or t0 + scale sinh(v) for normal
 * arrival times. */
typedef struct {
    int normal;
    double t0, scale, v_begin, v_length;
} time_map;

#define bound_rule ISA(bound_rule)

/* Set log_error of each integral to ln of a bound of the norm of a rule's error on the interval, times e^(2 n eta). */
void bound_rule(const score_histogram *histogram, const panel_gains *gains, const time_map *map, double eta,
                double log_error[INTEGRALS]);

#endif
