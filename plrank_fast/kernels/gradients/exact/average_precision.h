/* Expected average precision: a relevant item at rank k <= K gains theta_k times the number of relevant items so far,
 * itself among them; theta_k = 1 / k over the number R of relevant items.
 *
 * With relevance rho 0 or 1 and e^2 = 0, the coefficients of prod_i (q_i + p_i z (1 + e rho_i)) are the probabilities
 * of m arrivals plus e times the expected number of relevant items among them. Let n be 1 plus the number of relevant
 * items that have left (panels.h). With n u + v in place of u + e v, H is that product and G is the sum
 * over j of rho_j w_j q_j times the product without j; P and B are those with e = 0. So
 *
 *     value   = integral of <theta, G> dt
 *     d/df_j  = integral of w_j q_j { rho_j (1 - x) <theta, H_j> + t (rho_j <theta, z B_j> + <delta, G_j>) } dt,
 *
 * where those without item j follow, in this order, from
 *
 *     P = L P_j,    H = L H_j + rho_j p_j z P_j,    B = L B_j + a_j P_j,    G = L G_j + rho_j p_j z B_j + a_j H_j:
 *
 * one division for an irrelevant item, as for other metrics, and four for a relevant one. Light items have the same
 * three series as for other metrics, with other coefficients, because 1 / L = sum (-r z)^i, r z / L^2 = -sum i (-r z)^i
 * and so on. docs/numerics.md proves the bounds.
 */
#ifndef PLR_AVERAGE_PRECISION_H
#define PLR_AVERAGE_PRECISION_H

#include "gradients/exact/exact_panel.h"
#include "gradients/exact/power_sums.h"

/* --------------------------------------------------------------------------------------------- P, H, B and G */

/* The factor of some items: sums over n items have n + 1 coefficients in L, n in H (from z on) and a, n - 1 in b (from
 * z on). H, a and b are to L what H - P, B and G - B are to P. */
typedef struct {
    lanes L[QUARTET + 1], H[QUARTET], a[QUARTET], b[QUARTET - 1];
} counting_factor;

/* Add the product of two polynomials of so many coefficients. */
PLR_INLINE void add_polynomials(lanes *to, const lanes *x, const int n_x, const lanes *y, const int n_y)
{
    for (int i = 0; i < n_x; i++)
        for (int j = 0; j < n_y; j++)
            to[i + j] += x[i] * y[j];
}

/* Return the factor of all items of two factors of n items each. */
PLR_INLINE counting_factor product_of_factors(const counting_factor *x, const counting_factor *y, const int n)
{
    counting_factor xy = {{{0}}, {{0}}, {{0}}, {{0}}};
    add_polynomials(xy.L, x->L, n + 1, y->L, n + 1);
    add_polynomials(xy.H, x->H, n, y->L, n + 1);
    add_polynomials(xy.H, y->H, n, x->L, n + 1);
    add_polynomials(xy.a, x->a, n, y->L, n + 1);
    add_polynomials(xy.a, y->a, n, x->L, n + 1);
    add_polynomials(xy.b, x->b, n - 1, y->L, n + 1);
    add_polynomials(xy.b, y->b, n - 1, x->L, n + 1);
    add_polynomials(xy.b, x->a, n, y->H, n);
    add_polynomials(xy.b, y->a, n, x->H, n);
    return xy;
}

/* Multiply P, H, B and G by the factors of a quartet of relevant items, divided by q if monic. */
PLR_INLINE void count_quartet(panel *p, intptr_t quartet, intptr_t low, intptr_t top, const int monic)
{
    lanes *restrict P = p->at->P, *restrict H = p->at->H, *restrict B = p->at->B, *restrict G = p->at->G;
    counting_factor item[QUARTET], pair[2];
    for (int n = 0; n < QUARTET; n++) {
        const intptr_t j = QUARTET * quartet + n;
        const lanes q = monic ? vec_all(1) : 1.0 / (1.0 + p->at->odds[j]), chance = p->at->odds[j] * q;
        item[n] = (counting_factor){.L = {q, chance}, .H = {chance}, .a = {p->items.w[j] * q}};
    }
    for (int n = 0; n < 2; n++)
        pair[n] = product_of_factors(item + 2 * n, item + 2 * n + 1, 1);
    const counting_factor all = product_of_factors(pair, pair + 1, 2);
    const lanes *L = all.L, *h = all.H, *a = all.a, *b = all.b;
    for (intptr_t m = top; m >= low; m--) {
        const lanes next = (L[0] * G[m] + L[1] * G[m - 1]) + (L[2] * G[m - 2] + (L[3] * G[m - 3] + L[4] * G[m - 4]));
        const lanes seen = (h[0] * B[m - 1] + h[1] * B[m - 2]) + (h[2] * B[m - 3] + h[3] * B[m - 4]);
        const lanes own = (a[0] * H[m] + a[1] * H[m - 1]) + (a[2] * H[m - 2] + a[3] * H[m - 3]);
        G[m] = ((next + seen) + own) + (b[0] * P[m - 1] + (b[1] * P[m - 2] + b[2] * P[m - 3]));
        B[m] = ((L[0] * B[m] + L[1] * B[m - 1]) + (L[2] * B[m - 2] + (L[3] * B[m - 3] + L[4] * B[m - 4]))) +
               ((a[0] * P[m] + a[1] * P[m - 1]) + (a[2] * P[m - 2] + a[3] * P[m - 3]));
        H[m] = ((L[0] * H[m] + L[1] * H[m - 1]) + (L[2] * H[m - 2] + (L[3] * H[m - 3] + L[4] * H[m - 4]))) +
               ((h[0] * P[m - 1] + h[1] * P[m - 2]) + (h[2] * P[m - 3] + h[3] * P[m - 4]));
        P[m] = (L[0] * P[m] + L[1] * P[m - 1]) + (L[2] * P[m - 2] + (L[3] * P[m - 3] + L[4] * P[m - 4]));
    }
}

/* Compute the power sums of the small relevant items and proxies; return the number of terms that matter. */
PLR_INLINE intptr_t count_power_sums(const panel *p, const node_vector *node, item_range small)
{
    const intptr_t first = QUARTET * small.begin, coefficients = node->high;
    const intptr_t end = QUARTET * (small.end < p->items.relevant ? small.end : p->items.relevant);
    for (intptr_t i = 0; i < coefficients; i++)
        p->at->counts[i] = (lanes){0};
    const summed_items items = {.count = end - first, .odds = p->at->odds + first};
    const summed_items proxies = {.count = p->proxies.count, .odds = p->at->proxy_odds, .mass = p->proxies.counts};
    const intptr_t terms = add_power_sums(p, items, 0, exponential_arrivals, coefficients, p->at->counts, NULL);
    const intptr_t more = add_power_sums(p, proxies, 0, exponential_arrivals, coefficients, p->at->counts, NULL);
    return more > terms ? more : terms;
}

/* Compute H, B and G from low to top, from the P of all irrelevant and of the small relevant items. Over these relevant
 * items, r z / L sums to -sum_i counts_i z^i, w / L to sum_i b_i z^i, and w r z / L^2 to -sum_i i b_i z^i. */
PLR_INLINE void count_small(panel *p, const node_vector *node, item_range small, intptr_t terms, intptr_t low,
                            intptr_t top)
{
    const lanes *restrict P = p->at->P, *counts = p->at->counts, *b = p->at->b;
    lanes *restrict H = p->at->H, *restrict B = p->at->B, *restrict G = p->at->G;
    for (intptr_t m = -MARGIN; m < node->high; m++)
        H[m] = G[m] = (lanes){0};
    const intptr_t counted = terms > 0 ? count_power_sums(p, node, small) : 0;
    for (intptr_t m = low; m <= top; m++) {
        lanes found = p->ranks.found * P[m], gain = {0}, more = {0};
        for (intptr_t i = 1; i < counted && i <= m; i++)
            found -= counts[i] * P[m - i];
        H[m] = found;
        for (intptr_t i = 0; i < terms && i <= m; i++) {
            gain += b[i] * P[m - i];
            more += b[i] * (H[m - i] + (double)i * P[m - i]);
        }
        B[m] = gain;
        G[m] = more;
    }
}

/* ------------------------------------------------------------------------------------------- without one item */

/* Compute the coefficients of the series of light items (leave_one_out_series.h): y_i = <theta_(m+i), H + i P>, c_i =
 * <delta_(m+i), G + i B> + <theta_(m+i+1), B> and e_i = (i + 1) (<delta_(m+i), H + i P> + <theta_(m+i+1), P>), and for
 * irrelevant ones d_i = <delta_(m+i), G>, for low <= m, m + i < top. */
PLR_INLINE void find_precision_series(const panel *p, const node_vector *node, intptr_t terms)
{
    const lanes *restrict P = p->at->P, *restrict H = p->at->H, *restrict B = p->at->B, *restrict G = p->at->G;
    for (intptr_t i = 0; i < terms; i++) {
        const double *theta = p->ranks.theta + i, *delta = p->ranks.delta + i, order = (double)i;
        lanes y = {0}, c = {0}, d = {0}, e = {0};
        for (intptr_t m = node->low; m < node->top - i; m++) {
            const lanes found = H[m] + order * P[m];
            y += theta[m] * found;
            d += delta[m] * G[m];
            c += (order * delta[m] + theta[m + 1]) * B[m];
            e += delta[m] * found + theta[m + 1] * P[m];
        }
        p->at->y[i] = y;
        p->at->c[i] = c + d;
        p->at->d[i] = d;
        p->at->e[i] = e * (order + 1);
    }
}

/* Divide upwards, as in leave_one_out_division.h. */
PLR_INLINE void divide_precision_upwards(const panel *p, const node_vector *node, const lanes *r, const lanes *a,
                                         lanes *qY, lanes *qX)
{
    const lanes *restrict P = p->at->P, *restrict H = p->at->H, *restrict B = p->at->B, *restrict G = p->at->G;
    const double *theta = p->ranks.theta, *delta = p->ranks.delta;
    lanes x[QUARTET] = {{0}}, h[QUARTET] = {{0}}, v[QUARTET] = {{0}}, g[QUARTET] = {{0}};
    for (intptr_t m = node->low; m < node->top; m++)
        for (int n = 0; n < QUARTET; n++) {
            h[n] = (H[m] - r[n] * x[n]) - r[n] * h[n];
            x[n] = P[m] - r[n] * x[n];
            g[n] = ((G[m] - r[n] * v[n]) - a[n] * h[n]) - r[n] * g[n];
            v[n] = (B[m] - a[n] * x[n]) - r[n] * v[n];
            qY[n] += theta[m] * h[n];
            qX[n] += theta[m + 1] * v[n];
            qX[n] += delta[m] * g[n];
        }
}

/* Divide downwards likewise: with s = 1 / r, from the coefficients of z^m to z^(m-1). */
PLR_INLINE void divide_precision_downwards(const panel *p, const node_vector *node, const lanes *s, const lanes *a,
                                           lanes *qY, lanes *qX)
{
    const lanes *restrict P = p->at->P, *restrict H = p->at->H, *restrict B = p->at->B, *restrict G = p->at->G;
    const double *theta = p->ranks.theta, *delta = p->ranks.delta;
    lanes x[QUARTET] = {{0}}, h[QUARTET] = {{0}}, v[QUARTET] = {{0}}, g[QUARTET] = {{0}};
    const intptr_t last = node->low > 1 ? node->low : 1;
    for (intptr_t m = node->high - 1; m >= last; m--) {
        const int counts = m <= p->ranks.K; /* rank weights beyond are not stored */
        const double here = counts ? theta[m - 1] : 0, next = counts ? theta[m] : 0, step = counts ? delta[m - 1] : 0;
        for (int n = 0; n < QUARTET; n++) {
            v[n] = s[n] * ((B[m] - a[n] * x[n]) - v[n]);
            g[n] = s[n] * ((G[m] - a[n] * h[n]) - g[n]) - v[n];
            x[n] = s[n] * (P[m] - x[n]);
            h[n] = s[n] * (H[m] - h[n]) - x[n];
            qY[n] += here * h[n];
            qX[n] += next * v[n];
            qX[n] += step * g[n];
        }
    }
}

#endif
