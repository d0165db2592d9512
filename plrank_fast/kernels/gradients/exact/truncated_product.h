/* P and B by multiplication, four factors at a time. */
#ifndef PLR_TRUNCATED_PRODUCT_H
#define PLR_TRUNCATED_PRODUCT_H

#include "gradients/exact/exact_panel.h"

/* Multiply P (and B = sum a P / L) by four factors q + p z, coefficients low to top; if monic, all q are 1. */
PLR_INLINE void multiply_quartet(lanes *restrict P, lanes *restrict B, intptr_t low, intptr_t top, const lanes *q,
                                 const lanes *p, const lanes *a, const int monic, const int relevant)
{
    lanes l12[3], l34[3], l[5], a12[2] = {{0}}, a34[2] = {{0}}, n[4] = {{0}};
    if (monic) {
        l12[1] = p[0] + p[1];
        l34[1] = p[2] + p[3];
    } else {
        l12[1] = q[0] * p[1] + p[0] * q[1];
        l34[1] = q[2] * p[3] + p[2] * q[3];
    }
    l12[0] = monic ? vec_all(1) : q[0] * q[1];
    l34[0] = monic ? vec_all(1) : q[2] * q[3];
    l12[2] = p[0] * p[1];
    l34[2] = p[2] * p[3];
    l[0] = monic ? vec_all(1) : l12[0] * l34[0];
    l[1] = monic ? l12[1] + l34[1] : l12[0] * l34[1] + l12[1] * l34[0];
    l[2] = monic ? l12[2] + l12[1] * l34[1] + l34[2] : l12[0] * l34[2] + l12[1] * l34[1] + l12[2] * l34[0];
    l[3] = l12[1] * l34[2] + l12[2] * l34[1];
    l[4] = l12[2] * l34[2];
    if (relevant) {
        a12[0] = monic ? a[0] + a[1] : a[0] * q[1] + a[1] * q[0];
        a12[1] = a[0] * p[1] + a[1] * p[0];
        a34[0] = monic ? a[2] + a[3] : a[2] * q[3] + a[3] * q[2];
        a34[1] = a[2] * p[3] + a[3] * p[2];
        n[0] = a12[0] * l34[0] + a34[0] * l12[0];
        n[1] = a12[0] * l34[1] + a12[1] * l34[0] + a34[0] * l12[1] + a34[1] * l12[0];
        n[2] = a12[0] * l34[2] + a12[1] * l34[1] + a34[0] * l12[2] + a34[1] * l12[1];
        n[3] = a12[1] * l34[2] + a34[1] * l12[2];
    }
    for (intptr_t m = top; m >= low; m--) {
        lanes head = monic ? P[m] : l[0] * P[m];
        if (relevant) {
            lanes base = monic ? B[m] : l[0] * B[m];
            lanes more = n[0] * P[m] + n[1] * P[m - 1];
            base += l[1] * B[m - 1] + l[2] * B[m - 2];
            more += n[2] * P[m - 2] + n[3] * P[m - 3];
            B[m] = (base + (l[3] * B[m - 3] + l[4] * B[m - 4])) + more;
        }
        P[m] = (head + l[1] * P[m - 1]) + (l[2] * P[m - 2] + (l[3] * P[m - 3] + l[4] * P[m - 4]));
    }
}

/* Multiply P by a factor of `length` coefficients, and set coefficients 0 to top of the product. */
PLR_INLINE void multiply_polynomial(lanes *restrict P, const lanes *restrict factor, intptr_t length, intptr_t top)
{
    enum { AT_ONCE = 4 };
    for (intptr_t m = top; m >= 0; m -= AT_ONCE) {
        lanes sum[AT_ONCE] = {{0}};
        for (intptr_t i = 0; i < length && i <= m; i++)
            for (int n = 0; n < AT_ONCE; n++)
                sum[n] += factor[i] * P[m - i - n];
        for (int n = 0; n < AT_ONCE && n <= m; n++)
            P[m - n] = sum[n];
    }
}

/* Multiply by the factors of a quartet, divided by q if monic: P then starts with the product of all q. */
PLR_INLINE void include_quartet(panel *p, intptr_t quartet, intptr_t low, intptr_t top, const int monic,
                                const int relevant, const int law)
{
    const intptr_t j = QUARTET * quartet;
    lanes q[QUARTET], odds[QUARTET], a[QUARTET] = {{0}};
    for (int n = 0; n < QUARTET; n++) {
        q[n] = monic ? vec_all(1) : 1.0 / (1.0 + p->at->odds[j + n]);
        odds[n] = monic ? p->at->odds[j + n] : p->at->odds[j + n] * q[n];
        if (relevant)
            a[n] = (p->items.rho[j + n] * hazard_of(p, j + n, law)) * q[n];
    }
    multiply_quartet(p->at->P, p->at->B, low, top, q, odds, a, monic, relevant);
}

#endif
