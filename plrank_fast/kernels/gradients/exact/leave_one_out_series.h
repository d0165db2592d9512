/* P and B without one item, for light items, by series in the odds r_j whose coefficients all items share:
 *
 *     q_j Y_j = sum_i (-r_j)^i y_i,   y_i = sum_m theta_(m+i) P_m,
 *     q_j X_j = sum_i (-r_j)^i c_i - rho_j w_j sum_i (-r_j)^i e_i,
 *         c_i = sum_m delta_(m+i) B_m,   e_i = (i+1) sum_m delta_(m+i) P_m.
 *
 * A relevant item costs three Horner schemes, an irrelevant one (rho = 0) only the scheme of c. They stop where r^i
 * becomes negligible, which is soon for a light item.
 */
#ifndef PLR_LEAVE_ONE_OUT_SERIES_H
#define PLR_LEAVE_ONE_OUT_SERIES_H

#include "gradients/exact/item_integrand.h"

/* Return the number of terms of a series in odds up to this. */
PLR_INLINE intptr_t terms_of_series(const panel *p, const node_vector *node, double odds)
{
    return series_terms(odds, p->ranks.bits, node->top - node->low);
}

/* Add the share of one coefficient to `count` neighbouring y, c and e. */
PLR_INLINE void add_coefficient(const double *theta, const double *delta, lanes P, lanes B, const intptr_t count,
                                lanes *y, lanes *c, lanes *e)
{
    for (intptr_t n = 0; n < count; n++) {
        c[n] += delta[n] * B;
        y[n] += theta[n] * P;
        e[n] += delta[n] * P;
    }
}

/* Compute y_i = sum_m theta_(m+i) P_m, c_i and e_i for low <= m, m + i < top, four i at a time. Terms of ranks from top
 * on would cancel only together with the omitted coefficients, which powers of odds amplify, so they are omitted
 * too. */
PLR_INLINE void find_series(const panel *p, const node_vector *node, intptr_t terms)
{
    const intptr_t low = node->low, top = node->top, beyond = top < p->ranks.K ? 3 : 0; /* theta past K is zero */
    const lanes *restrict P = p->at->P, *restrict B = p->at->B;
    lanes *restrict y = p->at->y, *restrict c = p->at->c, *restrict e = p->at->e;
    for (intptr_t i = 0; i < terms; i += 4) {
        lanes sum_y[4] = {{0}}, sum_c[4] = {{0}}, sum_e[4] = {{0}};
        const double *theta = p->ranks.theta + i, *delta = p->ranks.delta + i;
        intptr_t m = low;
        for (; m < top - beyond - i; m++)
            add_coefficient(theta + m, delta + m, P[m], B[m], 4, sum_y, sum_c, sum_e);
        for (; m < top - i; m++)
            add_coefficient(theta + m, delta + m, P[m], B[m], top - i - m, sum_y, sum_c, sum_e);
        for (int n = 0; n < 4; n++) {
            c[i + n] = sum_c[n];
            y[i + n] = sum_y[n];
            e[i + n] = sum_e[n] * (double)(i + n + 1);
        }
    }
}

/* Evaluate Y, C and E, the series with coefficients y, c and e, for a quartet; only C if they are irrelevant. */
PLR_INLINE void evaluate_series(const panel *p, intptr_t terms, const lanes *z, const int relevant,
                                lanes *Y, lanes *C, lanes *E)
{
    const lanes *y = p->at->y, *c = relevant ? p->at->c : p->at->d, *e = p->at->e;
    for (int n = 0; n < QUARTET; n++) {
        Y[n] = y[terms - 1];
        C[n] = c[terms - 1];
        E[n] = e[terms - 1];
    }
    for (intptr_t i = terms - 2; i >= 0; i--)
        for (int n = 0; n < QUARTET; n++) {
            C[n] = C[n] * z[n] + c[i];
            if (relevant) {
                Y[n] = Y[n] * z[n] + y[i];
                E[n] = E[n] * z[n] + e[i];
            }
        }
}

/* Add a quartet of light items. */
PLR_INLINE void add_by_series(panel *p, intptr_t quartet, const node_vector *node, const evaluation of)
{
    const intptr_t j = QUARTET * quartet;
    const intptr_t terms = terms_of_series(p, node, largest_of_quartet(p->at->odds + j));
    lanes z[QUARTET], Y[QUARTET], C[QUARTET], E[QUARTET];
    for (int n = 0; n < QUARTET; n++)
        z[n] = -p->at->odds[j + n];
    evaluate_series(p, terms, z, of.relevant, Y, C, E);
    for (int n = 0; n < QUARTET; n++) {
        const lanes own = of.relevant ? (p->items.rho[j + n] * hazard_of(p, j + n, of.law)) * E[n] : (lanes){0};
        add_item(p, j + n, node, Y[n], of.relevant ? C[n] - own : C[n], of);
    }
}

PLR_INLINE void add_to_proxy(proxy_sums *sums, lanes plain, lanes relevant)
{
    sums->plain += plain;
    sums->relevant += relevant;
}

/* Add the derivatives of the items of proxies [begin, end), over their weight: plain + rho relevant; the Hessian
 * diagonal likewise. */
PLR_INLINE void add_proxies(panel *p, const node_vector *node, intptr_t begin, intptr_t end, const integrands wanted)
{
    const node_sums *sums = &p->sums;
    const lanes t = node->factor, dt = node->weight;
    for (intptr_t j = begin; j < end; j += QUARTET) {
        const intptr_t terms = terms_of_series(p, node, largest_of_quartet(p->at->proxy_odds + j));
        lanes z[QUARTET], Y[QUARTET], C[QUARTET], E[QUARTET], plain[QUARTET], unused[QUARTET];
        for (int n = 0; n < QUARTET; n++)
            z[n] = -p->at->proxy_odds[j + n];
        evaluate_series(p, terms, z, 1, Y, C, E);
        memcpy(plain, C, sizeof plain);
        if (p->at->d != p->at->c)
            evaluate_series(p, terms, z, 0, unused, plain, unused);
        for (int n = 0; n < QUARTET; n++) {
            const lanes x = p->proxies.w[j + n] * t, more = t * (C[n] - plain[n]);
            add_to_proxy(&sums->proxy_gradient[j + n], dt * t * plain[n], dt * ((1.0 - x) * Y[n] - x * E[n] + more));
            if (wanted == HESSIAN)
                add_to_proxy(&sums->proxy_hessian[j + n], dt * t * (1.0 - x) * C[n],
                             dt * (((1.0 - x) * (1.0 - x) - x) * Y[n] - (1.0 - x) * x * E[n]));
        }
    }
}

#endif
