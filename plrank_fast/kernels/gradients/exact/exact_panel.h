/* Data that the evaluators of the exact gradient share: the items of a panel, its rank weights, its nodes, and their
 * workspace.
 *
 * At time t item j has arrived with probability p_j = 1 - exp(-w_j t); q_j = 1 - p_j. With L_j(z) = q_j + p_j z and a_j
 * = rho_j w_j q_j,
 *
 *     P = prod_j L_j,   B = sum_j a_j P / L_j,   <theta, B> = sum_m theta_(m+1) B_m
 *     E[metric] = integral of <theta, B> dt
 *     dE/df_j   = integral of  w_j q_j { rho_j (1 - x) Y_j + t X_j } dt,                      x = w_j t
 *     d2E/df_j2 = integral of  w_j q_j { rho_j [(1 - x)^2 - x] Y_j + t (1 - x) X_j } dt
 *     Y_j = <theta, P / L_j>,   X_j = <delta, B / L_j - a_j P / L_j^2>
 *     delta_m = theta_(m+1) - theta_m, theta_(K+1) = 0
 *
 * with polynomials in z truncated after K terms, whose coefficient of z^m belongs to m arrivals. The polynomials
 * without item j are series in the odds r_j = p_j / q_j = expm1(x) (leave_one_out_series.h) or the result of a division
 * (leave_one_out_division.h). The lanes of a vector are quadrature nodes.
 *
 * The exposure dE/drho_j is the integral of w_j q_j Y_j: like dE/df_j with rho_j = 1 and 0 for the factors t.
 *
 * If a reader stops at item j with probability R_j = 1 - s_j, and the metric counts what is read, theta_k rho times
 * the product of s over the ranks before k, then L_j(z) = q_j + s_j p_j z: coefficients of products are probabilities
 * that so many items have arrived and the reader reads on after them. The odds are r_j = s_j p_j / q_j, and
 *
 *     X_j = <delta, G_j> - R_j <theta, z G_j>,   G_j = B / L_j - a_j P / L_j^2
 *
 * With items that have no rate but arrive at -u_j, where u_j is the score f_j with noise, the hazard h_j, the density
 * of arrival over q_j, takes the place of w_j. With the first and second derivatives s_j and c_j of the density by the
 * score, over the density (law.h),
 *
 *     a_j = rho_j h_j q_j,   dE/df_j = integral of  h_j q_j { rho_j s_j Y_j + X_j } dt
 *     d2E/df_j2 = integral of  h_j q_j { rho_j c_j Y_j + s_j X_j } dt
 */
#ifndef PLR_EXACT_PANEL_H
#define PLR_EXACT_PANEL_H

#include "gradients/exact/exact_query.h"
#include "gradients/exact/item_block.h"
#include "gradients/exact/law.h"
#include "gradients/exact/moment_compression.h"
#include "gradients/exact/quadrature_plan.h"
#include "simd/vector_math.h"

#define MOST_SIDE_BY_SIDE 16 /* most vectors of nodes that threads evaluate at the same time */
#define LARGEST_LOG_CONSTANT 550.0  /* -ln of P's constant: e^550 times 2^200 (runtime/magnitudes.h) is finite */
#define MARGIN 8 /* zeros before and after theta, delta and the coefficients of P and B */

/* The ranks for which the items of a panel compete. */
typedef struct {
    intptr_t K, arrived;           /* number of ranks, and of those before them */
    const double *theta, *delta;   /* K entries, MARGIN zeros on either side: set_ranks */
    double upward_limit;         /* largest odds for which upward recurrences are used, >= 1 */
    double downward_limit;       /* smallest odds for which downward ones may start at the panel's last item */
    double bits;                 /* a series stops when its ratio^i falls below 2^-bits */
    int divide_all;              /* too few items to share coefficients: divide for each of them */
    intptr_t most_coefficients;  /* room of the workspace: more than any band has */
    double found;                /* 1 and the relevant items that have left, for average precision; else 0 */
} rank_block;

/* Requested outputs: the value alone, the exposure or gradient too, the gradient of average precision
 * (average_precision.h), or also the Hessian diagonal or a product of the Hessian (hessian_product.h). */
typedef enum { VALUE_ALONE, EXPOSURE, GRADIENT, PRECISION, HESSIAN, PRODUCT } integrands;

/* One vector of quadrature nodes, with the coefficients and items that matter there. */
typedef struct {
    lanes time, weight;
    lanes value;                     /* integrand of the metric itself: <theta, B> */
    lanes factor;                    /* t outside of q, Y and X: the time, 0 for the exposure */
    intptr_t low, high;              /* coefficients of P and B that matter; none where low reaches K */
    intptr_t top;                    /* min(high, K): later ranks are not filled yet */
    intptr_t light_begin, light_end; /* quartets whose odds do not exceed the limit of series at these times */
    double light_weight, light_odds; /* sum of w over them, and their largest odds; -1 if there are none */
} node_vector;

/* Workspace that every vector of nodes overwrites. */
typedef struct {
    lanes *odds;                /* r of each item, times the chance to read on */
    lanes *hazard;              /* hazard of each item, unless it is w at all times (law.h) */
    lanes *proxy_odds;
    lanes *P, *B;               /* coefficients, MARGIN zeros before them */
    lanes *G;                   /* B, or for average precision B and Q */
    lanes *y, *c, *e;           /* coefficients of the series in r, */
    lanes *d;                   /* and c of irrelevant items */
    lanes *s, *b;               /* power sums */
    lanes *V, *W, *A;           /* coefficients for a product with the Hessian, MARGIN zeros before them, */
    lanes *n, *f, *g, *h, *k;   /* and coefficients of further series */
    lanes *H, *counts;          /* coefficients and power sums of relevant items, for average precision */
} node_workspace;

/* Derivatives of a proxy's items over w: plain + rho relevant. */
typedef struct {
    lanes plain, relevant;
} proxy_sums;

/* Sums over the nodes. */
typedef struct {
    lanes value;
    lanes *gradient, *hessian;  /* one for each item */
    proxy_sums *proxy_gradient, *proxy_hessian; /* one for each proxy */
} node_sums;

/* P at one vector of nodes, which is divided by the factor of each item, for rank probabilities. */
typedef struct {
    lanes time, weight;
    intptr_t low, high;
    lanes *P;
} kept_node;

/* Memory for P at all nodes of a plan, `coefficients` for each vector, and for the sums of a quartet, `most_sums` for
 * each thread. */
typedef struct {
    intptr_t vectors;           /* vectors of nodes before all ranks are filled */
    kept_node *nodes;
    size_t coefficients, most_sums;
    lanes *P, *sums;
} kept_nodes;

typedef struct {
    const exact_query *query;
    integrands wanted;
    item_block items;
    proxy_items proxies;        /* none unless the panel is compressed */
    rank_block ranks;
    int stops;                  /* whether readers stop */
    double reading;             /* chance that a reader reads on after all items that have left before */
    quadrature_plan *plan;
    const node_workspace *at;
    node_sums sums;
    kept_nodes kept;            /* used for rank probabilities alone */
    node_workspace *side_by_side; /* one for each vector of nodes under way; `at` is one of these */
    const parallel_loop *loop;    /* it has at most as many threads as there are of those */
    cancellation *cancellation;
} panel;

PLR_INLINE double last_lane(const lanes *x)
{
    return ((const double *)x)[PLR_LANES - 1];
}

PLR_INLINE lanes hazard_of(const panel *p, intptr_t j, const int law)
{
    return arrives_at_rate(law) ? vec_all(p->items.w[j]) : p->at->hazard[j];
}

/* Return the largest odds of four items at the last of the nodes. */
PLR_INLINE double largest_of_quartet(const lanes *odds)
{
    double a = larger(last_lane(odds), last_lane(odds + 1)), b = larger(last_lane(odds + 2), last_lane(odds + 3));
    return larger(a, b);
}

/* Return the number of terms after which ratio^i is below 2^-bits; the exponent bounds the logarithm from above. */
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
