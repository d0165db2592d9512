/* P and B without one item, by division, for heavy items, and for all items if there are too few of them to share
 * coefficients: P / L_j by the recurrence x_m = P_m - r_j x_(m-1) upwards, or in terms of s_j = 1 / r_j downwards; B
 * likewise.
 *
 * Each step of the upward recurrence multiplies a rounding error by r, so it is safe while r^(K-1) does not exceed the
 * spare digits (upward_limit). The downward recurrence divides errors by r and is safe where r is larger than 1.
 */
#ifndef PLR_LEAVE_ONE_OUT_DIVISION_H
#define PLR_LEAVE_ONE_OUT_DIVISION_H

#include <math.h>

#include "gradients/exact/average_precision.h"
#include "gradients/exact/item_integrand.h"

/* Return the largest odds for upward divisions, in a group whose least odds are `first`, at the first node, and whose
 * largest are `last`, at the last one. Both directions are safe while downward_limit <= r <= upward_limit, so if all
 * coefficients are available, one direction often serves all lanes. */
PLR_INLINE double division_border(const panel *p, intptr_t high, double first, double last)
{
    const rank_block *ranks = &p->ranks;
    const int all_at_hand = ranks->divide_all && high > QUARTET * p->items.quartets;
    return all_at_hand && last > ranks->upward_limit && first >= ranks->downward_limit ? 0 : ranks->upward_limit;
}

/* Divide upwards: x = P / (1 + r z), v = (B - rho w x) / (1 + r z) over the coefficients low to high. */
PLR_INLINE void divide_upwards(const panel *p, const node_vector *node, const lanes *r, const lanes *a,
                               const int relevant, lanes *qY, lanes *qX)
{
    const lanes *restrict P = p->at->P, *restrict B = relevant ? p->at->B : p->at->G;
    const double *theta = p->ranks.theta, *delta = p->ranks.delta;
    lanes x[QUARTET] = {{0}}, v[QUARTET] = {{0}};
    for (intptr_t m = node->low; m < node->top; m++)
        for (int n = 0; n < QUARTET; n++) {
            if (relevant) {
                x[n] = P[m] - r[n] * x[n];
                v[n] = (B[m] - a[n] * x[n]) - r[n] * v[n];
                qY[n] += theta[m] * x[n];
            } else {
                v[n] = B[m] - r[n] * v[n];
            }
            qX[n] += delta[m] * v[n];
        }
}

/* Divide downwards: u = P / (z + s), v = (B - rho w s u) / (z + s); s u and s v are x and v of divide_upwards. */
PLR_INLINE void divide_downwards(const panel *p, const node_vector *node, const lanes *s, const lanes *a,
                                 const int relevant, lanes *qY, lanes *qX)
{
    const lanes *restrict P = p->at->P, *restrict B = relevant ? p->at->B : p->at->G;
    const double *theta = p->ranks.theta, *delta = p->ranks.delta;
    const intptr_t K = p->ranks.K, last = node->low > 1 ? node->low : 1;
    lanes u[QUARTET] = {{0}}, v[QUARTET] = {{0}}, Y[QUARTET] = {{0}}, X[QUARTET] = {{0}}, as[QUARTET];
    for (int n = 0; n < QUARTET; n++)
        as[n] = relevant ? a[n] * s[n] : s[n];
    intptr_t m = node->high - 1;
    for (; m > K && m >= last; m--)
        for (int n = 0; n < QUARTET; n++) {
            if (relevant) {
                v[n] = (B[m] - as[n] * u[n]) - s[n] * v[n];
                u[n] = P[m] - s[n] * u[n];
            } else {
                v[n] = B[m] - s[n] * v[n];
            }
        }
    for (; m >= last; m--)
        for (int n = 0; n < QUARTET; n++) {
            if (relevant) {
                v[n] = (B[m] - as[n] * u[n]) - s[n] * v[n];
                u[n] = P[m] - s[n] * u[n];
                Y[n] += theta[m - 1] * u[n];
            } else {
                v[n] = B[m] - s[n] * v[n];
            }
            X[n] += delta[m - 1] * v[n];
        }
    for (int n = 0; n < QUARTET; n++) {
        qX[n] += s[n] * X[n];
        if (relevant)
            qY[n] += s[n] * Y[n];
    }
}

/* Add a quartet of any items: upwards at the nodes where the odds are small enough, downwards at the others. */
PLR_INLINE void add_by_division(panel *p, intptr_t quartet, const node_vector *node, const evaluation of)
{
    const intptr_t j = QUARTET * quartet;
    const lanes zero = {0};
    lanes qY[QUARTET] = {{0}}, qX[QUARTET] = {{0}}, r[QUARTET], s[QUARTET], a[QUARTET];
    int_lanes early[QUARTET];
    double first = INFINITY, last = 0;
    for (int n = 0; n < QUARTET; n++) {
        r[n] = p->at->odds[j + n];
        a[n] = p->items.rho[j + n] * hazard_of(p, j + n, of.law);
        first = smaller(first, r[n][0]);
        last = larger(last, last_lane(r + n));
    }
    const double border = division_border(p, node->high, first, last);
    const int upwards = first <= border, downwards = last > border;
    for (int n = 0; n < QUARTET; n++)
        early[n] = r[n] <= border;
    if (upwards) {
        for (int n = 0; n < QUARTET; n++)
            s[n] = vec_keep(early[n], r[n]);
        if (of.relevant && of.wanted == PRECISION)
            divide_precision_upwards(p, node, s, a, qY, qX);
        else
            divide_upwards(p, node, s, a, of.relevant, qY, qX);
        for (int n = 0; n < QUARTET && downwards; n++) {
            qY[n] = vec_keep(early[n], qY[n]);
            qX[n] = vec_keep(early[n], qX[n]);
        }
    }
    if (downwards) {
        for (int n = 0; n < QUARTET; n++)
            s[n] = vec_select(early[n], zero, 1.0 / r[n]);
        if (of.relevant && of.wanted == PRECISION)
            divide_precision_downwards(p, node, s, a, qY, qX);
        else
            divide_downwards(p, node, s, a, of.relevant, qY, qX);
    }
    for (int n = 0; n < QUARTET; n++)
        add_item(p, j + n, node, qY[n], qX[n], of);
}

#endif
