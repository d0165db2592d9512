/* What the evaluators of the exact gradient share: the items of a panel, its rank weights, its nodes, and their
 * workspace.
 *
 * At time t item j has arrived with chance p_j = 1 - exp(-w_j t), q_j = 1 - p_j. With L_j(z) = q_j + p_j z and a_j =
 * rho_j w_j q_j,
 *
 *     P = prod_j L_j,   B = sum_j a_j P / L_j,   <theta, B> = sum_m theta_(m+1) B_m
 *     E[metric] = integral of <theta, B> dt
 *     dE/df_j   = integral of  w_j q_j { rho_j (1 - x) Y_j + t X_j } dt,                      x = w_j t
 *     d2E/df_j2 = integral of  w_j q_j { rho_j [(1 - x)^2 - x] Y_j + t (1 - x) X_j } dt
 *     Y_j = <theta, P / L_j>,   X_j = <delta, B / L_j - a_j P / L_j^2>
 *     delta_m = theta_(m+1) - theta_m, theta_(K+1) = 0
 *
 * with polynomials in z, whose coefficient of z^m belongs to m arrivals, cut after K terms. What is left without j is a
 * series in the odds r_j = p_j / q_j = expm1(x) (leave_one_out_series.h) or comes from a division
 * (leave_one_out_division.h). The lanes of a vector are quadrature nodes.
 *
 * Normal arrival times: item j arrives at -u_j, u_j normal around its score f_j, so that p_j = Phi(y), y = f_j + t (in
 * units of sigma). Only what depends on the time of arrival itself is another: the hazard h_j (density of arriving over
 * q_j), which is w_j above, and its derivatives by the score,
 *
 *     a_j = rho_j h_j q_j,   dE/df_j = integral of  h_j q_j { rho_j (-y) Y_j + X_j } dt
 *     d2E/df_j2 = integral of  h_j q_j { rho_j (y^2 - 1) Y_j - y X_j } dt
 */
#ifndef PLR_EXACT_PANEL_H
#define PLR_EXACT_PANEL_H

#include "runtime/parallel_loop.h"
#include "gradients/exact/item_block.h"
#include "gradients/exact/moment_compression.h"
#include "gradients/exact/quadrature_plan.h"
#include "simd/vector_math.h"

#define MOST_SIDE_BY_SIDE 8 /* vectors of nodes that threads work on at the same time */
#define LARGEST_EXPONENT 700.0 /* e^700 is near the largest double */
#define LARGEST_SILENCE 550.0  /* -ln of P's constant: e^550 may be multiplied by relevance of up to 2^200 (runtime/magnitudes.h) */
#define MARGIN 8 /* zeros before and after theta, delta and the coefficients of P and B */

/* The ranks that a panel's items compete for. */
typedef struct {
    intptr_t K;
    const double *theta, *delta;   /* K entries, MARGIN zeros on either side: set_ranks */
    double upward_limit;         /* largest odds for which their powers may be used upwards, >= 1 */
    double downward_limit;       /* smallest for which those of their inverse may be, from the panel's last item on */
    double bits;                 /* a series stops after -log2 of its ratio has added up to this */
    int divide_all;              /* too few items to share coefficients: divide for each of them */
    intptr_t most_coefficients;  /* that there is room for: more than any band has */
} rank_block;

/* One vector of quadrature nodes, and what it takes to evaluate the integrands there. */
typedef struct {
    lanes time, weight, finest;      /* finest: the finest pattern of the rule (gauss_legendre.h) */
    intptr_t low, high;              /* coefficients of P and B that matter; none where low reaches K */
    intptr_t top;                    /* the smaller of high and K: ranks beyond are not filled yet */
    intptr_t light_begin, light_end; /* light quartets at these times, which may be more than at the panel's last */
    double light_weight;             /* sum of w over them */
} node_vector;

/* Overwritten at every vector of nodes. */
typedef struct {
    lanes *odds;                /* r of each item */
    lanes *hazard;              /* of each item; only with normal arrival times, with exponential ones it is w */
    lanes *proxy_odds;
    lanes *P, *B;               /* coefficients, MARGIN zeros before them */
    lanes *y, *c, *e;           /* coefficients of the series in r */
    lanes *s, *b;               /* power sums */
} node_workspace;

/* What a proxy's items get back over w: plain + rho relevant; both times the finest pattern too. */
typedef struct {
    lanes plain, relevant, plain_pattern, relevant_pattern;
} proxy_sums;

/* Sums over the nodes. */
typedef struct {
    lanes value;
    lanes *gradient, *hessian;  /* of each item */
    lanes *gradient_pattern, *hessian_pattern; /* of each quartet: its integrands times the finest pattern of the nodes */
    proxy_sums *proxy_gradient, *proxy_hessian; /* of each proxy */
} node_sums;

typedef struct {
    item_block items;
    proxy_items proxies;        /* none but in a compressed panel */
    rank_block ranks;
    quadrature_plan *plan;
    node_workspace at;
    node_sums sums;
    node_workspace *side_by_side; /* for vectors of nodes that are worked on at the same time; `at` is the first */
    const parallel_loop *loop;    /* with no more threads than there are of those */
    double order;               /* least power of those patterns that errors are, of all plans so far */
    double unresolved_gradient, unresolved_hessian; /* sums of squares of patterns, over all panels so far */
    cancellation *cancellation;
} panel;

PLR_INLINE double last_lane(const lanes *x)
{
    return ((const double *)x)[PLR_LANES - 1];
}

/* Odds at time t of an item of weight w <= 1: where e^(w t) would overflow it has arrived all the same. */
PLR_INLINE lanes exponential_odds(double w, lanes t)
{
    const lanes x = w * t;
    return vec_expm1(vec_select(x < LARGEST_EXPONENT, x, vec_all(LARGEST_EXPONENT)));
}

PLR_INLINE lanes hazard_of(const panel *p, intptr_t j, const int normal)
{
    return normal ? p->at.hazard[j] : vec_all(p->items.w[j]);
}

/* The largest odds of four items at the last of the nodes. */
PLR_INLINE double largest_of_quartet(const lanes *odds)
{
    double a = larger(last_lane(odds), last_lane(odds + 1)), b = larger(last_lane(odds + 2), last_lane(odds + 3));
    return larger(a, b);
}

/* Terms after which ratio^i has fallen below 2^-bits; the logarithm is read off the exponent, from above. */
PLR_INLINE intptr_t series_terms(double ratio, double bits, intptr_t most)
{
    if (ratio >= 0.95)
        return most;
    int64_t word;
    memcpy(&word, &ratio, sizeof word);
    double log2_ratio = (double)((word >> 52) - 1023) + (double)(word & 0xfffffffffffff) * 0x1p-52 + 0.0861;
    double terms = bits / -log2_ratio + 2;
    return terms < most ? (intptr_t)terms : most;
}

#endif
