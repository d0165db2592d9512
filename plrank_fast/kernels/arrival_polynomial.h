/* The integrands of the exact gradient: polynomials in z whose coefficient of z^m belongs to m arrivals.
 *
 * At time t item j has rung with chance p_j = 1 - exp(-w_j t), q_j = 1 - p_j. With L_j(z) = q_j + p_j z and a_j = rho_j w_j q_j,
 *
 *     P = prod_j L_j,   B = sum_j a_j P / L_j,   E[metric] = integral of <theta, B> dt,   <theta, B> = sum_m theta_(m+1) B_m
 *     dE/df_j   = integral of  w_j q_j { rho_j (1 - x) Y_j + t X_j } dt,                      x = w_j t
 *     d2E/df_j2 = integral of  w_j q_j { rho_j [(1 - x)^2 - x] Y_j + t (1 - x) X_j } dt
 *     Y_j = <theta, P / L_j>,   X_j = <delta, B / L_j - a_j P / L_j^2>,   delta_m = theta_(m+1) - theta_m, theta_(K+1) = 0.
 *
 * No polynomial is ever divided. 1 / L_j is a power series, in z for p_j < q_j and in 1 / z otherwise, and its inner
 * products with P and B are polynomials in r_j = p_j / q_j = expm1(x), or in s_j = 1 / r_j, with coefficients common to
 * all items:
 *
 *     q_j <theta, P / L_j> = sum_i (-r_j)^i y_i,   y_i = sum_m theta_(m+i) P_m           (z^-1 ... series "early")
 *     p_j <theta, P / L_j> = sum_i (-s_j)^i y'_i,  y'_i = sum_m theta_m P_(m+1+i)        (series "late")
 *
 * and likewise for B (c_i) and 1 / L_j^2 (e_i). A relevant item costs three Horner schemes, an irrelevant one (rho = 0)
 * only that of c. The series stops where r^i no longer matters, which is soon for light items. Items are worked off in
 * quartets so that four chains of multiply-adds run at once; lanes are quadrature nodes.
 */
#ifndef PLR_ARRIVAL_POLYNOMIAL_H
#define PLR_ARRIVAL_POLYNOMIAL_H

#include <math.h>

#include "node_lanes.h"

#define QUARTET 4
#define SMALL 0.3       /* largest r of an item that may enter P through power sums */
#define FEWEST_SMALL 5  /* quartets from which power sums are cheaper than products */
#define MARGIN 8 /* zeros before and after theta, delta and the coefficients of P and B */

/* Items of one integral, in the order: relevant ones by falling weight, null items (w = 0) that fill up the last quartet,
 * irrelevant ones by rising weight. Heavy items are thus at both ends and light ones in the middle. */
typedef struct {
    intptr_t quartets;
    intptr_t relevant;          /* quartets with a relevant item come first */
    intptr_t light_begin, light_end; /* quartets whose series is the early one at every node */
    int sorted;                 /* whether the order by weight is kept among the light ones too */
    const double *w, *rho;
    double light_weight;        /* sum of w over the light quartets */
    intptr_t heaviest_light;    /* an item of the light quartets */
} clocks;

typedef struct {
    intptr_t K;
    const double *theta, *delta; /* K + 1 entries, MARGIN zeros on either side */
    double most_early;           /* largest r for which the early series is used, >= 1 */
    double bits;                 /* a series stops after -log2 of its ratio has added up to this */
} ranks;

typedef struct {
    lanes *r;                   /* of each item */
    lanes *P, *B;               /* coefficients, MARGIN zeros before them */
    lanes *y, *c, *e;           /* series coefficients, early */
    lanes *y_late, *c_late, *e_late;
    lanes *s, *b;               /* power sums */
    lanes *gradient, *hessian;  /* of each item; hessian may be NULL */
    lanes value;
} integrals;

PLR_INLINE double last_lane(const lanes *x)
{
    return ((const double *)x)[PLR_LANES - 1];
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

PLR_INLINE double largest_of_quartet(const lanes *r)
{
    double a = fmax(last_lane(r), last_lane(r + 1)), b = fmax(last_lane(r + 2), last_lane(r + 3));
    return fmax(a, b);
}

/* --------------------------------------------------------------------------------------------------------- P and B */

/* Multiply P (and B = sum a P / L) by four factors q + p z; monic: all q are 1. */
PLR_INLINE void multiply_quartet(lanes *restrict P, lanes *restrict B, intptr_t top, const lanes *q, const lanes *p,
                                 const lanes *a, const int monic, const int relevant)
{
    lanes l12[3], l34[3], l[5], a12[2] = {{0}}, a34[2] = {{0}}, n[4] = {{0}};
    if (monic) {
        l12[1] = p[0] + p[1];
        l34[1] = p[2] + p[3];
    } else {
        l12[1] = q[0] * p[1] + p[0] * q[1];
        l34[1] = q[2] * p[3] + p[2] * q[3];
    }
    l12[0] = monic ? all_lanes(1) : q[0] * q[1];
    l34[0] = monic ? all_lanes(1) : q[2] * q[3];
    l12[2] = p[0] * p[1];
    l34[2] = p[2] * p[3];
    l[0] = monic ? all_lanes(1) : l12[0] * l34[0];
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
    for (intptr_t m = top; m >= 0; m--) {
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

/* Power sums of light items: s_i = sum (-r)^i, b_i = sum rho w (-r)^i; returns the number of terms that matter. */
PLR_INLINE intptr_t add_power_sums(const clocks *items, const ranks *k, intptr_t begin, intptr_t end, const int relevant,
                                   intptr_t most, integrals *at)
{
    intptr_t longest = 1;
    for (intptr_t j = QUARTET * begin; j < QUARTET * end; j += QUARTET) {
        intptr_t terms = series_terms(largest_of_quartet(at->r + j), k->bits, most);
        longest = terms > longest ? terms : longest;
        lanes power[QUARTET], ratio[QUARTET], share[QUARTET];
        for (int i = 0; i < QUARTET; i++) {
            ratio[i] = -at->r[j + i];
            power[i] = ratio[i];
            share[i] = all_lanes(items->rho[j + i] * items->w[j + i]);
        }
        if (relevant)
            at->b[0] += (share[0] + share[1]) + (share[2] + share[3]);
        for (intptr_t i = 1; i < terms; i++) {
            at->s[i] += (power[0] + power[1]) + (power[2] + power[3]);
            if (relevant)
                at->b[i] += (share[0] * power[0] + share[1] * power[1]) + (share[2] * power[2] + share[3] * power[3]);
            for (int n = 0; n < QUARTET; n++)
                power[n] *= ratio[n];
        }
    }
    return longest;
}

/* P *= prod (1 + r z) from the power sums of r (Newton's identities): m P_m = -sum_i s_i P_(m-i). P is a constant before. */
PLR_INLINE void multiply_by_power_sums(lanes *P, const lanes *s, intptr_t terms, intptr_t coefficients)
{
    for (intptr_t m = 1; m < coefficients; m++) {
        lanes sum0 = {0}, sum1 = {0};
        intptr_t most = m < terms - 1 ? m : terms - 1, i = most;
        for (; i > 1; i -= 2) {
            sum0 += s[i] * P[m - i];
            sum1 += s[i - 1] * P[m - i + 1];
        }
        if (i == 1)
            sum1 += s[1] * P[m - 1];
        P[m] = (sum0 + sum1) * (-1.0 / (double)m);
    }
}

/* ------------------------------------------------------------------------------------------------ series coefficients */

/* y_i = sum_m theta_(sign (m - first - i)) P_m and so on, four i at a time (theta is zero outside its K entries):
 * sign = -1, first = 0 gives the early series, where the index is m + i; sign = +1, first = 1 the late one. */
PLR_INLINE void correlate(const ranks *k, const lanes *P, const lanes *B, intptr_t low, intptr_t high, intptr_t terms,
                          const int late, const int relevant, lanes *y, lanes *c, lanes *e)
{
    for (intptr_t i = 0; i < terms; i += 4) {
        lanes sum_y[4] = {{0}}, sum_c[4] = {{0}}, sum_e[4] = {{0}};
        intptr_t begin = late && i + 1 > low ? i + 1 : low;
        intptr_t last = late ? k->K + i + 5 : k->K - i;
        intptr_t end = last < high ? last : high;
        for (intptr_t m = begin; m < end; m++) {
            lanes p = P[m], b = B[m];
            for (int n = 0; n < 4; n++) {
                intptr_t index = late ? m - 1 - i - n : m + i + n;
                sum_c[n] += k->delta[index] * b;
                if (relevant) {
                    sum_y[n] += k->theta[index] * p;
                    sum_e[n] += k->delta[late ? index - 1 : index] * p;
                }
            }
        }
        for (int n = 0; n < 4; n++) {
            c[i + n] = sum_c[n];
            y[i + n] = sum_y[n];
            e[i + n] = sum_e[n] * (double)(i + n + 1);
        }
    }
}

/* Y, C and E at z = -r (or -s) for a group of items at once; an irrelevant group needs only C. */
PLR_INLINE void horner(const lanes *y, const lanes *c, const lanes *e, intptr_t terms, const lanes *z, const int items,
                       const int relevant, lanes *Y, lanes *C, lanes *E)
{
    for (int n = 0; n < items; n++) {
        C[n] = c[terms - 1];
        if (relevant) {
            Y[n] = y[terms - 1];
            E[n] = e[terms - 1];
        }
    }
    for (intptr_t i = terms - 2; i >= 0; i--)
        for (int n = 0; n < items; n++) {
            C[n] = C[n] * z[n] + c[i];
            if (relevant) {
                Y[n] = Y[n] * z[n] + y[i];
                E[n] = E[n] * z[n] + e[i];
            }
        }
}

/* Add one item's integrand; Y, C, E come as q Y_j, q <delta, B / L_j>, q^2 <delta, P / L_j^2>. */
PLR_INLINE void add_item(double w, double rho, lanes t, lanes dt, lanes Y, lanes C, lanes E, const int relevant,
                         lanes *gradient, lanes *hessian)
{
    lanes x = w * t, weight = w * dt, X = t * (relevant ? C - (rho * w) * E : C);
    if (!relevant) {
        *gradient += weight * X;
        if (hessian)
            *hessian += weight * (1.0 - x) * X;
        return;
    }
    *gradient += weight * (rho * (1.0 - x) * Y + X);
    if (hessian)
        *hessian += weight * (rho * ((1.0 - x) * (1.0 - x) - x) * Y + (1.0 - x) * X);
}

/* Light items: the early series at every node. */
PLR_INLINE void add_light_items(const clocks *items, const ranks *k, integrals *at, intptr_t quartet, const int quartets,
                                lanes t, lanes dt, const int relevant, const int with_hessian)
{
    const intptr_t j = QUARTET * quartet;
    const int group = QUARTET * quartets;
    lanes z[2 * QUARTET], Y[2 * QUARTET] = {{0}}, C[2 * QUARTET], E[2 * QUARTET] = {{0}};
    double largest = largest_of_quartet(at->r + j);
    if (quartets > 1)
        largest = fmax(largest, largest_of_quartet(at->r + j + QUARTET));
    for (int n = 0; n < group; n++)
        z[n] = -at->r[j + n];
    horner(at->y, at->c, at->e, series_terms(largest, k->bits, k->K), z, group, relevant, Y, C, E);
    for (int n = 0; n < group; n++)
        add_item(items->w[j + n], items->rho[j + n], t, dt, Y[n], C[n], E[n], relevant, at->gradient + j + n,
                 with_hessian ? at->hessian + j + n : NULL);
}

/* Heavy items: early series at the nodes where r is small enough, late series at the others. */
PLR_INLINE void add_heavy_items(const clocks *items, const ranks *k, integrals *at, intptr_t quartet, intptr_t late_terms,
                                lanes t, lanes dt, const int relevant, const int with_hessian)
{
    const intptr_t j = QUARTET * quartet;
    lanes zero = {0}, Y[QUARTET] = {{0}}, C[QUARTET] = {{0}}, E[QUARTET] = {{0}}, z[QUARTET], s[QUARTET], late_ratio = {0};
    int_lanes early[QUARTET];
    double early_ratio = 0;
    int some_early = 0, some_late = 0;
    for (int n = 0; n < QUARTET; n++) {
        lanes r = at->r[j + n];
        early[n] = r <= k->most_early;
        z[n] = blend(early[n], -r, zero);
        s[n] = blend(early[n], zero, 1.0 / r);
        late_ratio = blend(s[n] > late_ratio, s[n], late_ratio);
        early_ratio = fmax(early_ratio, -z[n][0]);
        for (int lane = 1; lane < PLR_LANES; lane++)
            early_ratio = fmax(early_ratio, -z[n][lane]);
        some_early |= r[0] <= k->most_early;
        some_late |= !(last_lane(&r) <= k->most_early);
    }
    if (some_early) {
        horner(at->y, at->c, at->e, series_terms(early_ratio, k->bits, k->K), z, QUARTET, relevant, Y, C, E);
        for (int n = 0; n < QUARTET; n++) {
            Y[n] = blend(early[n], Y[n], zero);
            C[n] = blend(early[n], C[n], zero);
            E[n] = blend(early[n], E[n], zero);
        }
    }
    if (some_late) {
        lanes Y_late[QUARTET] = {{0}}, C_late[QUARTET], E_late[QUARTET] = {{0}}, minus_s[QUARTET];
        for (int n = 0; n < QUARTET; n++)
            minus_s[n] = -s[n];
        horner(at->y_late, at->c_late, at->e_late, series_terms(max_lanes(late_ratio), k->bits, late_terms), minus_s,
               QUARTET, relevant, Y_late, C_late, E_late);
        for (int n = 0; n < QUARTET; n++) {
            Y[n] += s[n] * Y_late[n];
            C[n] += s[n] * C_late[n];
            E[n] += s[n] * s[n] * E_late[n];
        }
    }
    for (int n = 0; n < QUARTET; n++)
        add_item(items->w[j + n], items->rho[j + n], t, dt, Y[n], C[n], E[n], relevant, at->gradient + j + n,
                 with_hessian ? at->hessian + j + n : NULL);
}

/* ------------------------------------------------------------------------------------------ one vector of nodes at once */

PLR_INLINE void include_quartet(const clocks *items, integrals *at, intptr_t quartet, intptr_t top, const int monic,
                                const int relevant)
{
    const intptr_t j = QUARTET * quartet;
    lanes q[QUARTET], p[QUARTET], a[QUARTET] = {{0}};
    for (int n = 0; n < QUARTET; n++) {
        q[n] = monic ? all_lanes(1) : 1.0 / (1.0 + at->r[j + n]);
        p[n] = monic ? at->r[j + n] : at->r[j + n] * q[n];
        if (relevant)
            a[n] = (items->rho[j + n] * items->w[j + n]) * q[n];
    }
    multiply_quartet(at->P, at->B, top, q, p, a, monic, relevant);
}

/* Add the integrands at the times t, with quadrature weights dt. */
PLR_INLINE void integrate_at(const clocks *items, const ranks *k, lanes t, lanes dt, integrals *at, const int with_gradient,
                             const int with_hessian)
{
    const intptr_t n_items = QUARTET * items->quartets, K = k->K;
    lanes late_ratio = {0};
    int any_late = 0;
    for (intptr_t j = 0; j < n_items; j++)
        at->r[j] = expm1_lanes(items->w[j] * t);
    /* Coefficients of P: the early series need K, the late ones as many more as they have terms. */
    for (int end = 0; end < 2; end++) {
        intptr_t from = end ? items->light_end : 0, to = end ? items->quartets : items->light_begin;
        for (intptr_t j = QUARTET * from; j < QUARTET * to; j++) {
            lanes r = at->r[j], s = 1.0 / r;
            s = keep(r > k->most_early, s);
            late_ratio = blend(s > late_ratio, s, late_ratio);
            any_late |= last_lane(&r) > k->most_early;
        }
    }
    intptr_t late_terms = 0, coefficients = K;
    if (any_late) {
        late_terms = series_terms(max_lanes(late_ratio), k->bits, n_items + 1);
        coefficients = K + late_terms + 2;
    }
    if (coefficients > n_items + 1)
        coefficients = n_items + 1;
    if (any_late && late_terms > coefficients)
        late_terms = coefficients;

    const double light_exponent = items->light_weight * last_lane(&t);
    const int monic = light_exponent < 600; /* exp(-600) and its inverse are far from underflow */
    lanes *restrict P = at->P, *restrict B = at->B;
    for (intptr_t m = -MARGIN; m < coefficients; m++)
        P[m] = B[m] = (lanes){0};
    P[0] = monic ? exp_lanes(-items->light_weight * t) : all_lanes(1);

    intptr_t small_begin = items->relevant, small_end = items->relevant, terms = 0, top = 0;
    if (monic && items->sorted) {
        small_begin = items->light_begin;
        small_end = items->light_end;
        while (small_begin < small_end && largest_of_quartet(at->r + QUARTET * small_begin) > SMALL)
            small_begin++;
        while (small_begin < small_end && largest_of_quartet(at->r + QUARTET * (small_end - 1)) > SMALL)
            small_end--;
        if (small_end - small_begin < FEWEST_SMALL)
            small_begin = small_end;
    }
    if (small_begin < small_end) {
        intptr_t border = items->relevant < small_begin ? small_begin : items->relevant;
        border = border > small_end ? small_end : border;
        for (intptr_t i = 0; i < coefficients; i++)
            at->s[i] = at->b[i] = (lanes){0};
        intptr_t terms_relevant = add_power_sums(items, k, small_begin, border, 1, coefficients, at);
        intptr_t terms_irrelevant = add_power_sums(items, k, border, small_end, 0, coefficients, at);
        terms = terms_relevant > terms_irrelevant ? terms_relevant : terms_irrelevant;
        multiply_by_power_sums(P, at->s, terms, coefficients);
        top = coefficients - 1;
        terms = terms_relevant;
    }
    for (intptr_t quartet = items->quartets - 1; quartet >= 0; quartet--) {
        if (quartet >= small_begin && quartet < small_end) {
            quartet = small_begin;
            continue;
        }
        top = top + QUARTET < coefficients - 1 ? top + QUARTET : coefficients - 1;
        const int light = monic && quartet >= items->light_begin && quartet < items->light_end;
        if (quartet >= items->relevant) {
            if (light)
                include_quartet(items, at, quartet, top, 1, 0);
            else
                include_quartet(items, at, quartet, top, 0, 0);
        } else {
            if (light)
                include_quartet(items, at, quartet, top, 1, 1);
            else
                include_quartet(items, at, quartet, top, 0, 1);
        }
    }
    for (intptr_t m = coefficients - 1; m >= 0 && terms > 0; m--) {
        lanes sum = {0};
        intptr_t most = m < terms - 1 ? m : terms - 1;
        for (intptr_t i = 0; i <= most; i++)
            sum += at->b[i] * P[m - i];
        B[m] += sum;
    }
    lanes value = {0};
    for (intptr_t m = 0; m < K && m < coefficients; m++)
        value += k->theta[m] * B[m];
    at->value += value * dt;
    if (!with_gradient)
        return;

    intptr_t early_terms = K;
    if (items->light_begin == 0 && items->light_end == items->quartets)
        early_terms = series_terms(last_lane(at->r + items->heaviest_light), k->bits, K);
    correlate(k, P, B, 0, coefficients, early_terms, 0, 1, at->y, at->c, at->e);
    if (any_late)
        correlate(k, P, B, 0, coefficients, late_terms, 1, 1, at->y_late, at->c_late, at->e_late);
    for (intptr_t quartet = 0; quartet < items->light_begin; quartet++) {
        if (quartet < items->relevant)
            add_heavy_items(items, k, at, quartet, late_terms, t, dt, 1, with_hessian);
        else
            add_heavy_items(items, k, at, quartet, late_terms, t, dt, 0, with_hessian);
    }
    intptr_t quartet = items->light_begin;
    for (; quartet < items->relevant && quartet < items->light_end; quartet++)
        add_light_items(items, k, at, quartet, 1, t, dt, 1, with_hessian);
    for (; quartet + 1 < items->light_end; quartet += 2)
        add_light_items(items, k, at, quartet, 2, t, dt, 0, with_hessian);
    for (; quartet < items->light_end; quartet++)
        add_light_items(items, k, at, quartet, 1, t, dt, 0, with_hessian);
    for (; quartet < items->quartets; quartet++) {
        if (quartet < items->relevant)
            add_heavy_items(items, k, at, quartet, late_terms, t, dt, 1, with_hessian);
        else
            add_heavy_items(items, k, at, quartet, late_terms, t, dt, 0, with_hessian);
    }
}

#endif
