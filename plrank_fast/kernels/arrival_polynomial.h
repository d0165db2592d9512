/* The integrands of the exact gradient: polynomials in z whose coefficient of z^m belongs to m arrivals.
 *
 * At time t item j has rung with chance p_j = 1 - exp(-w_j t), q_j = 1 - p_j. With L_j(z) = q_j + p_j z and
 * a_j = rho_j w_j q_j,
 *
 *     P = prod_j L_j,   B = sum_j a_j P / L_j,   <theta, B> = sum_m theta_(m+1) B_m,   E[metric] = integral of <theta, B> dt
 *     dE/df_j   = integral of  w_j q_j { rho_j (1 - x) Y_j + t X_j } dt,                      x = w_j t
 *     d2E/df_j2 = integral of  w_j q_j { rho_j [(1 - x)^2 - x] Y_j + t (1 - x) X_j } dt
 *     Y_j = <theta, P / L_j>,   X_j = <delta, B / L_j - a_j P / L_j^2>
 *     delta_m = theta_(m+1) - theta_m, theta_(K+1) = 0
 *
 * with polynomials cut after K terms. What is left without j has two forms. In terms of r_j = p_j / q_j = expm1(x),
 *
 *     q_j Y_j = sum_i (-r_j)^i y_i,   y_i = sum_m theta_(m+i) P_m,
 *     q_j X_j = sum_i (-r_j)^i c_i - rho_j w_j sum_i (-r_j)^i e_i,
 *         c_i = sum_m delta_(m+i) B_m,   e_i = (i+1) sum_m delta_(m+i) P_m:
 *
 * polynomials in r_j whose coefficients all items share. A relevant item costs three Horner schemes, an irrelevant one
 * (rho = 0) only that of c, and they stop where r^i no longer matters, which is soon for a light item. Heavy items, and
 * all items when there are too few of them to share coefficients, divide: P / L_j by the recurrence
 * x_m = P_m - r_j x_(m-1) upwards, or in terms of s_j = 1 / r_j downwards where r_j is large; likewise B.
 * Items are worked off in quartets so that enough chains of multiply-adds run at once; lanes are quadrature nodes.
 *
 * Normal clocks: item j rings at -u_j, u_j normal around its score f_j, so that p_j = Phi(y), y = f_j + t (in units of
 * sigma). Only what depends on the clock itself is another: the hazard h_j (density of ringing over q_j), which is w_j
 * above, and its derivatives by the score,
 *
 *     a_j = rho_j h_j q_j,   dE/df_j = integral of  h_j q_j { rho_j (-y) Y_j + X_j } dt
 *     d2E/df_j2 = integral of  h_j q_j { rho_j (y^2 - 1) Y_j - y X_j } dt
 */
#ifndef PLR_ARRIVAL_POLYNOMIAL_H
#define PLR_ARRIVAL_POLYNOMIAL_H

#include <math.h>

#include "vector_math.h"

#define QUARTET 4
#define SMALL 0.3       /* largest r of an item that may enter P through power sums */
#define FEWEST_SMALL 5  /* quartets from which power sums are cheaper than products */
#define BANDED_FROM 32  /* rank weights from which looking for negligible coefficients pays */
#define MARGIN 8 /* zeros before and after theta, delta and the coefficients of P and B */

/* Items of one integral, in the order: relevant ones by falling weight, null items (w = 0) to fill up the last quartet,
 * irrelevant ones by rising weight. Heavy items are thus at both ends and light ones in the middle. */
typedef struct {
    intptr_t quartets;
    intptr_t relevant;               /* quartets with a relevant item come first */
    intptr_t light_begin, light_end; /* quartets whose r never exceeds most_early */
    double light_weight;             /* sum of w over them */
    int sorted;                      /* whether the order by weight is kept among the light ones too */
    const double *w, *rho;
    const double *place;             /* of normal clocks: f over sigma, very low for null items */
    /* Nodes that stand in for a crowd of light items (crowd.h); a multiple of QUARTET, usually none. */
    intptr_t crowd;
    const double *crowd_w, *crowd_mass, *crowd_rho_mass; /* rho_mass has the factor w in it */
    double crowd_weight;             /* sum of w over the items they stand for */
} clocks;

typedef struct {
    intptr_t K;
    const double *theta, *delta; /* K entries, MARGIN zeros on either side */
    double most_early;           /* largest r for which powers of r may be used upwards, >= 1 */
    double bits;                 /* a series stops after -log2 of its ratio has added up to this */
    int divide_all;
    intptr_t most_coefficients;  /* that there is room for: more than any band has */
} ranks;

typedef struct {
    lanes *r;                   /* of each item */
    lanes *hazard;              /* of each item; only of normal clocks, those of exponential ones are w */
    lanes *P, *B;               /* coefficients, MARGIN zeros before them */
    lanes *y, *c, *e;           /* coefficients of the polynomials in r */
    lanes *s, *b;               /* power sums */
    lanes *gradient, *hessian;  /* of each item; hessian may be NULL */
    lanes *check;               /* of each item: the gradient's integrand against the finest pattern of the nodes */
    lanes mark;                 /* that pattern, at the nodes of now */
    double unresolved;          /* sum of squares of check, over all panels */
    int watched;                /* whether all panels have one */
    lanes *crowd_r;             /* of each node of the crowd, and what its items get back (see add_crowd) */
    lanes *crowd_plain, *crowd_relevant, *crowd_plain_hessian, *crowd_relevant_hessian;
    lanes value;
    patience *patience;
} integrals;

/* Whether to give up, after so many more coefficients of a quartet; asked about every twentieth of a second. */
PLR_INLINE int give_up(patience *p, double work)
{
    if (!p->interrupted)
        return 0;
    p->work += work;
    if (p->work > 5e6 && !p->stopped) {
        p->work = 0;
        p->stopped = p->interrupted();
    }
    return p->stopped;
}

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
    double a = larger(last_lane(r), last_lane(r + 1)), b = larger(last_lane(r + 2), last_lane(r + 3));
    return larger(a, b);
}

PLR_INLINE lanes hazard_of(const clocks *items, const integrals *at, intptr_t j, const int normal)
{
    return normal ? at->hazard[j] : vec_all(items->w[j]);
}

/* ----------------------------------------------------------------------------------------------- P and B */

/* Multiply P (and B = sum a P / L) by four factors q + p z, coefficients low to top; monic: all q are 1. */
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

/* Add power sums of light items: s_i = sum mass (-r)^i, b_i = sum share (-r)^i, share = rho w; returns the number of
 * terms that matter. share is rho h for normal clocks. mass is NULL where all are 1; share is rho_mass where that is
 * given. */
PLR_INLINE intptr_t add_power_sums(const ranks *k, intptr_t items, const lanes *r, const double *w, const lanes *hazard,
                                   const double *rho, const double *mass, const double *rho_mass, const int relevant,
                                   const int normal, intptr_t most, integrals *at)
{
    intptr_t longest = 1;
    for (intptr_t j = 0; j < items; j += QUARTET) {
        const intptr_t terms = series_terms(largest_of_quartet(r + j), k->bits, most);
        longest = terms > longest ? terms : longest;
        lanes power[QUARTET], ratio[QUARTET], share[QUARTET];
        double number[QUARTET];
        for (int n = 0; n < QUARTET; n++) {
            ratio[n] = -r[j + n];
            power[n] = ratio[n];
            number[n] = mass ? mass[j + n] : 1;
            if (relevant)
                share[n] = normal     ? rho[j + n] * hazard[j + n]
                           : rho_mass ? vec_all(rho_mass[j + n])
                                      : vec_all(rho[j + n] * w[j + n]);
        }
        if (relevant)
            at->b[0] += (share[0] + share[1]) + (share[2] + share[3]);
        for (intptr_t i = 1; i < terms; i++) {
            if (mass)
                at->s[i] += (number[0] * power[0] + number[1] * power[1]) +
                            (number[2] * power[2] + number[3] * power[3]);
            else
                at->s[i] += (power[0] + power[1]) + (power[2] + power[3]);
            if (relevant)
                at->b[i] += (share[0] * power[0] + share[1] * power[1]) + (share[2] * power[2] + share[3] * power[3]);
            for (int n = 0; n < QUARTET; n++)
                power[n] *= ratio[n];
        }
    }
    return longest;
}

/* P, a constant before, times prod (1 + r z) from the power sums of r (Newton): m P_m = -sum_i s_i P_(m-i). */
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

/* ----------------------------------------------------------------------------------- all items without one */

/* y_i = sum_m theta_(m+i) P_m and so on for low <= m < high, four i at a time (theta is zero past its K entries). */
PLR_INLINE void correlate(const ranks *k, const integrals *at, intptr_t low, intptr_t high, intptr_t terms)
{
    const lanes *restrict P = at->P, *restrict B = at->B;
    lanes *restrict y = at->y, *restrict c = at->c, *restrict e = at->e;
    for (intptr_t i = 0; i < terms; i += 4) {
        lanes sum_y[4] = {{0}}, sum_c[4] = {{0}}, sum_e[4] = {{0}};
        const double *theta = k->theta + i, *delta = k->delta + i;
        const intptr_t end = k->K - i < high ? k->K - i : high;
        for (intptr_t m = low; m < end; m++)
            for (int n = 0; n < 4; n++) {
                sum_c[n] += delta[m + n] * B[m];
                sum_y[n] += theta[m + n] * P[m];
                sum_e[n] += delta[m + n] * P[m];
            }
        for (int n = 0; n < 4; n++) {
            c[i + n] = sum_c[n];
            y[i + n] = sum_y[n];
            e[i + n] = sum_e[n] * (double)(i + n + 1);
        }
    }
}

/* What is asked for beside the value and the gradient. */
enum { VALUE_ALONE = -1, NOTHING_ELSE, CHECK, HESSIAN };

/* Add the integrand of one item; qY = q_j Y_j, qX = q_j X_j. */
PLR_INLINE void add_item(const clocks *items, intptr_t j, lanes t, lanes dt, lanes qY, lanes qX, const int relevant,
                         const int extra, const int normal, integrals *at)
{
    const double w = items->w[j], rho = items->rho[j];
    lanes gradient, hessian;
    if (normal) {
        const lanes y = items->place[j] + t, weight = at->hazard[j] * dt;
        gradient = weight * (relevant ? qX - rho * y * qY : qX);
        hessian = weight * (relevant ? rho * (y * y - 1.0) * qY - y * qX : -y * qX);
    } else {
        const lanes x = w * t, weight = w * dt, X = t * qX, rest = (1.0 - x) * X;
        gradient = weight * (relevant ? rho * (1.0 - x) * qY + X : X);
        hessian = weight * (relevant ? rho * ((1.0 - x) * (1.0 - x) - x) * qY + rest : rest);
    }
    at->gradient[j] += gradient;
    if (extra == CHECK)
        at->check[j] += at->mark * gradient;
    if (extra == HESSIAN)
        at->hessian[j] += hessian;
}

/* Y, C and E, the polynomials with coefficients y, c and e, for a group of items; only C if they are irrelevant. */
PLR_INLINE void evaluate_polynomials(const integrals *at, intptr_t terms, const lanes *z, const int group, const int relevant,
                                     lanes *Y, lanes *C, lanes *E)
{
    const lanes *restrict y = at->y, *restrict c = at->c, *restrict e = at->e;
    for (int n = 0; n < group; n++) {
        Y[n] = y[terms - 1];
        C[n] = c[terms - 1];
        E[n] = e[terms - 1];
    }
    for (intptr_t i = terms - 2; i >= 0; i--)
        for (int n = 0; n < group; n++) {
            C[n] = C[n] * z[n] + c[i];
            if (relevant) {
                Y[n] = Y[n] * z[n] + y[i];
                E[n] = E[n] * z[n] + e[i];
            }
        }
}

/* A group of light items: polynomials in r. */
PLR_INLINE void add_by_polynomial(const clocks *items, const ranks *k, integrals *at, intptr_t quartet, const int quartets,
                                  lanes t, lanes dt, const int relevant, const int extra, const int normal)
{
    enum { MOST = 2 * QUARTET };
    const int group = QUARTET * quartets;
    const intptr_t j = QUARTET * quartet;
    double largest = largest_of_quartet(at->r + j);
    if (quartets > 1)
        largest = larger(largest, largest_of_quartet(at->r + j + QUARTET));
    lanes z[MOST], Y[MOST], C[MOST], E[MOST];
    for (int n = 0; n < group; n++)
        z[n] = -at->r[j + n];
    evaluate_polynomials(at, series_terms(largest, k->bits, k->K), z, group, relevant, Y, C, E);
    for (int n = 0; n < group; n++)
        add_item(items, j + n, t, dt, Y[n],
                 relevant ? C[n] - (items->rho[j + n] * hazard_of(items, at, j + n, normal)) * E[n] : C[n], relevant,
                 extra, normal, at);
}

/* What items of weight w get back, over w: plain + rho relevant; Hessian diagonal likewise. */
PLR_INLINE void add_crowd(const clocks *items, const ranks *k, integrals *at, lanes t, lanes dt, const int extra)
{
    for (intptr_t j = 0; j < items->crowd; j += QUARTET) {
        const intptr_t terms = series_terms(largest_of_quartet(at->crowd_r + j), k->bits, k->K);
        lanes z[QUARTET], Y[QUARTET], C[QUARTET], E[QUARTET];
        for (int n = 0; n < QUARTET; n++)
            z[n] = -at->crowd_r[j + n];
        evaluate_polynomials(at, terms, z, QUARTET, 1, Y, C, E);
        for (int n = 0; n < QUARTET; n++) {
            const lanes x = items->crowd_w[j + n] * t;
            at->crowd_plain[j + n] += dt * t * C[n];
            at->crowd_relevant[j + n] += dt * ((1.0 - x) * Y[n] - x * E[n]);
            if (extra == HESSIAN) {
                at->crowd_plain_hessian[j + n] += dt * t * (1.0 - x) * C[n];
                at->crowd_relevant_hessian[j + n] += dt * (((1.0 - x) * (1.0 - x) - x) * Y[n] - (1.0 - x) * x * E[n]);
            }
        }
    }
}

/* Upwards: x = P / (1 + r z), v = (B - rho w x) / (1 + r z) over the coefficients low to high. */
PLR_INLINE void divide_upwards(const ranks *k, const integrals *at, intptr_t low, intptr_t high, const lanes *r,
                               const lanes *a, const int group, const int relevant, lanes *qY, lanes *qX)
{
    enum { MOST = 2 * QUARTET };
    const lanes *restrict P = at->P, *restrict B = at->B;
    lanes x[MOST] = {{0}}, v[MOST] = {{0}};
    const intptr_t end = high < k->K ? high : k->K;
    for (intptr_t m = low; m < end; m++)
        for (int n = 0; n < group; n++) {
            if (relevant) {
                x[n] = P[m] - r[n] * x[n];
                v[n] = (B[m] - r[n] * v[n]) - a[n] * x[n];
                qY[n] += k->theta[m] * x[n];
            } else {
                v[n] = B[m] - r[n] * v[n];
            }
            qX[n] += k->delta[m] * v[n];
        }
}

/* Downwards: u = P / (z + s), v = (B - rho w s u) / (z + s); s u and s v are x and v from above. */
PLR_INLINE void divide_downwards(const ranks *k, const integrals *at, intptr_t low, intptr_t high, const lanes *s,
                                 const lanes *a, const int group, const int relevant, lanes *qY, lanes *qX)
{
    enum { MOST = 2 * QUARTET };
    const lanes *restrict P = at->P, *restrict B = at->B;
    lanes u[MOST] = {{0}}, v[MOST] = {{0}}, Y[MOST] = {{0}}, X[MOST] = {{0}}, as[MOST];
    for (int n = 0; n < group; n++)
        as[n] = relevant ? a[n] * s[n] : s[n];
    intptr_t m = high - 1;
    const intptr_t last = low > 1 ? low : 1;
    for (; m > k->K && m >= last; m--)
        for (int n = 0; n < group; n++) {
            v[n] = B[m] - s[n] * v[n];
            if (relevant) {
                v[n] -= as[n] * u[n];
                u[n] = P[m] - s[n] * u[n];
            }
        }
    for (; m >= last; m--)
        for (int n = 0; n < group; n++) {
            v[n] = B[m] - s[n] * v[n];
            if (relevant) {
                v[n] -= as[n] * u[n];
                u[n] = P[m] - s[n] * u[n];
                Y[n] += k->theta[m - 1] * u[n];
            }
            X[n] += k->delta[m - 1] * v[n];
        }
    for (int n = 0; n < group; n++) {
        qX[n] += s[n] * X[n];
        if (relevant)
            qY[n] += s[n] * Y[n];
    }
}

/* A group of any items: upwards at the nodes where r is small enough, downwards at the others. */
PLR_INLINE void add_by_division(const clocks *items, const ranks *k, integrals *at, intptr_t quartet, const int quartets,
                                intptr_t low, intptr_t high, lanes t, lanes dt, const int relevant, const int extra,
                                const int normal)
{
    enum { MOST = 2 * QUARTET };
    const int group = QUARTET * quartets;
    const intptr_t j = QUARTET * quartet;
    const lanes zero = {0};
    lanes qY[MOST] = {{0}}, qX[MOST] = {{0}}, r[MOST], s[MOST], a[MOST];
    int_lanes early[MOST];
    double first = INFINITY, last = 0;
    for (int n = 0; n < group; n++) {
        r[n] = at->r[j + n];
        a[n] = items->rho[j + n] * hazard_of(items, at, j + n, normal);
        first = smaller(first, r[n][0]);
        last = larger(last, last_lane(r + n));
    }
    /* Both directions are safe while 1 / most_early < r < most_early: with all coefficients at hand, one of them often
       serves all lanes. */
    const double border = k->divide_all && last > k->most_early && first * k->most_early >= 1 ? 0 : k->most_early;
    const int upwards = first <= border, downwards = last > border;
    for (int n = 0; n < group; n++)
        early[n] = r[n] <= border;
    if (upwards) {
        for (int n = 0; n < group; n++)
            s[n] = vec_keep(early[n], r[n]);
        divide_upwards(k, at, low, high, s, a, group, relevant, qY, qX);
        for (int n = 0; n < group && downwards; n++) {
            qY[n] = vec_keep(early[n], qY[n]);
            qX[n] = vec_keep(early[n], qX[n]);
        }
    }
    if (downwards) {
        for (int n = 0; n < group; n++)
            s[n] = vec_select(early[n], zero, 1.0 / r[n]);
        divide_downwards(k, at, low, high, s, a, group, relevant, qY, qX);
    }
    for (int n = 0; n < group; n++)
        add_item(items, j + n, t, dt, qY[n], qX[n], relevant, extra, normal, at);
}

/* -------------------------------------------------------------------------------- one vector of nodes at once */

PLR_INLINE void include_quartet(const clocks *items, integrals *at, intptr_t quartet, intptr_t low, intptr_t top,
                                const int monic, const int relevant, const int normal)
{
    const intptr_t j = QUARTET * quartet;
    lanes q[QUARTET], p[QUARTET], a[QUARTET] = {{0}};
    for (int n = 0; n < QUARTET; n++) {
        q[n] = monic ? vec_all(1) : 1.0 / (1.0 + at->r[j + n]);
        p[n] = monic ? at->r[j + n] : at->r[j + n] * q[n];
        if (relevant)
            a[n] = (items->rho[j + n] * hazard_of(items, at, j + n, normal)) * q[n];
    }
    multiply_quartet(at->P, at->B, low, top, q, p, a, monic, relevant);
}

/* The coefficients of P, low to high, outside which its mass is below 2^-bits (Bernstein, at the first and last node). */
PLR_INLINE void find_band(const clocks *items, const integrals *at, double bits, intptr_t *low, intptr_t *high)
{
    lanes arrivals = {0}, variance = {0};
    for (intptr_t j = 0; j < QUARTET * items->quartets; j++) {
        lanes q = 1.0 / (1.0 + at->r[j]), p = at->r[j] * q;
        arrivals += p;
        variance += p * q;
    }
    for (intptr_t j = 0; j < items->crowd; j++) {
        lanes q = 1.0 / (1.0 + at->crowd_r[j]), p = items->crowd_mass[j] * (at->crowd_r[j] * q);
        arrivals += p;
        variance += p * q;
    }
    const double z2 = 2 * 0.6931471805599453 * bits;
    double below = arrivals[0] - z2 / 6 - sqrt(z2 * z2 / 36 + z2 * variance[0]);
    double v = last_lane(&variance), above = last_lane(&arrivals) + z2 / 6 + sqrt(z2 * z2 / 36 + z2 * v);
    *low = below > 1 ? (intptr_t)below - 1 : 0;
    *high = above + 2 < (double)*high ? (intptr_t)(above + 2) : *high;
}

/* r and hazard of normal clocks; beyond y = 37, where q is e^-690, a clock has rung all the same. */
PLR_INLINE void ring_normal_clocks(const clocks *items, lanes t, integrals *at)
{
    for (intptr_t j = 0; j < QUARTET * items->quartets; j++) {
        lanes y = items->place[j] + t, density;
        y = vec_select(y < 37.0, y, vec_all(37.0));
        const lanes tail = vec_normal_tail(vec_abs(y), &density);
        const int_lanes early = y < 0.0;
        const lanes inverse_q = 1.0 / vec_select(early, 1.0 - tail, tail);
        at->r[j] = vec_select(early, tail, 1.0 - tail) * inverse_q;
        at->hazard[j] = density * inverse_q;
    }
}

/* Product of q over light items, whose r is known; 0 where it underflows. */
PLR_INLINE lanes all_silent(const clocks *items, const integrals *at)
{
    lanes inverse[QUARTET];
    for (int n = 0; n < QUARTET; n++)
        inverse[n] = vec_all(1);
    for (intptr_t quartet = items->light_begin; quartet < items->light_end; quartet++)
        for (int n = 0; n < QUARTET; n++)
            inverse[n] *= 1.0 + at->r[QUARTET * quartet + n];
    return 1.0 / ((inverse[0] * inverse[1]) * (inverse[2] * inverse[3]));
}

/* Compute r of each item and the coefficients of P and B that matter at the times t, which are *low to *high; none if
 * all ranks are filled by then. The light quartets of *items are those of these times on return. */
PLR_INLINE void arrivals_of(clocks *items, const ranks *k, lanes t, integrals *at, intptr_t *band_low,
                            intptr_t *band_high, const int normal)
{
    clocks here = *items;
    const intptr_t n_items = QUARTET * here.quartets, K = k->K;
    if (normal) {
        ring_normal_clocks(&here, t, at);
    } else if (last_lane(&t) < 700) {
        for (intptr_t j = 0; j < n_items; j++)
            at->r[j] = vec_expm1(here.w[j] * t);
    } else { /* w <= 1, so that only now e^(w t) may overflow; beyond e^700 an item has rung all the same */
        for (intptr_t j = 0; j < n_items; j++) {
            lanes x = here.w[j] * t;
            at->r[j] = vec_expm1(vec_select(x < 700.0, x, vec_all(700.0)));
        }
    }
    for (intptr_t j = 0; j < here.crowd; j++)
        at->crowd_r[j] = vec_expm1(here.crowd_w[j] * t);
    /* At early nodes more items are light. */
    while (here.light_begin > 0 && largest_of_quartet(at->r + QUARTET * (here.light_begin - 1)) <= k->most_early) {
        here.light_begin--;
        for (int n = 0; n < QUARTET; n++)
            here.light_weight += here.w[QUARTET * here.light_begin + n];
    }
    while (here.light_end < here.quartets && largest_of_quartet(at->r + QUARTET * here.light_end) <= k->most_early) {
        for (int n = 0; n < QUARTET; n++)
            here.light_weight += here.w[QUARTET * here.light_end + n];
        here.light_end++;
    }
    /* Divisions upwards need K coefficients; those downwards as many more as it takes to forget how they started. */
    intptr_t coefficients = K, low = 0;
    const intptr_t most = here.crowd ? k->most_coefficients : n_items;
    double smallest_r = INFINITY; /* that is divided by downwards */
    for (intptr_t j = 0; j < n_items; j++) {
        if (j == QUARTET * here.light_begin)
            j = QUARTET * here.light_end;
        if (j == n_items)
            break;
        const double *r = (const double *)(at->r + j);
        for (int lane = PLR_LANES - 1; lane >= 0 && r[lane] > k->most_early; lane--)
            smallest_r = smaller(smallest_r, r[lane]);
    }
    if (smallest_r < INFINITY)
        coefficients = k->divide_all ? n_items + 1 : K + 1 + series_terms(1 / smallest_r, k->bits, most);
    if (coefficients > most + 1)
        coefficients = most + 1;
    if (K >= BANDED_FROM || coefficients > K + BANDED_FROM)
        find_band(items, at, k->bits, &low, &coefficients);
    if (coefficients > k->most_coefficients)
        coefficients = k->most_coefficients;
    items->light_begin = here.light_begin;
    items->light_end = here.light_end;
    *band_low = low;
    *band_high = coefficients;
    if (low >= K)
        return;

    const double light_weight = here.light_weight + here.crowd_weight;
    const lanes silent = normal ? all_silent(&here, at) : vec_exp_flush(-light_weight * t);
    /* far from underflow; a crowd sees to it itself */
    const int monic = normal ? last_lane(&silent) > 1e-260 : here.crowd || light_weight * last_lane(&t) < 600;
    lanes *restrict P = at->P, *restrict B = at->B;
    for (intptr_t m = -MARGIN; m < coefficients; m++)
        P[m] = B[m] = (lanes){0};
    P[0] = monic ? silent : vec_all(1);

    intptr_t small_begin = here.relevant, small_end = here.relevant, terms = 0, top = 0;
    if (monic && here.sorted) {
        small_begin = here.light_begin;
        small_end = here.light_end;
        while (small_begin < small_end && largest_of_quartet(at->r + QUARTET * small_begin) > SMALL)
            small_begin++;
        while (small_begin < small_end && largest_of_quartet(at->r + QUARTET * (small_end - 1)) > SMALL)
            small_end--;
        if (small_end - small_begin < FEWEST_SMALL)
            small_begin = small_end;
    }
    if (small_begin < small_end || here.crowd) {
        intptr_t border = here.relevant < small_begin ? small_begin : here.relevant;
        border = border > small_end ? small_end : border;
        for (intptr_t i = 0; i < coefficients; i++)
            at->s[i] = at->b[i] = (lanes){0};
        const intptr_t first = QUARTET * small_begin, middle = QUARTET * border, last = QUARTET * small_end;
        terms = add_power_sums(k, middle - first, at->r + first, here.w + first, at->hazard + first, here.rho + first, NULL,
                               NULL, 1, normal, coefficients, at);
        intptr_t all_terms = add_power_sums(k, last - middle, at->r + middle, NULL, NULL, NULL, NULL, NULL, 0, normal,
                                            coefficients, at);
        if (here.crowd) {
            const intptr_t more = add_power_sums(k, here.crowd, at->crowd_r, NULL, NULL, NULL, here.crowd_mass,
                                                 here.crowd_rho_mass, 1, 0, coefficients, at);
            terms = more > terms ? more : terms;
        }
        multiply_by_power_sums(P, at->s, terms > all_terms ? terms : all_terms, coefficients);
        top = coefficients - 1;
    }
    intptr_t left = here.quartets - (small_end - small_begin);
    for (intptr_t quartet = here.quartets - 1; quartet >= 0; quartet--) {
        if (quartet >= small_begin && quartet < small_end) {
            quartet = small_begin;
            continue;
        }
        if (give_up(at->patience, (double)coefficients))
            return;
        left--;
        top = top + QUARTET < coefficients - 1 ? top + QUARTET : coefficients - 1;
        const intptr_t bottom = low > QUARTET * left ? low - QUARTET * left : 0;
        const int light = monic && quartet >= here.light_begin && quartet < here.light_end;
        if (quartet >= here.relevant) {
            if (light)
                include_quartet(items, at, quartet, bottom, top, 1, 0, normal);
            else
                include_quartet(items, at, quartet, bottom, top, 0, 0, normal);
        } else {
            if (light)
                include_quartet(items, at, quartet, bottom, top, 1, 1, normal);
            else
                include_quartet(items, at, quartet, bottom, top, 0, 1, normal);
        }
    }
    for (intptr_t m = coefficients - 1; m >= low && terms > 0; m--) {
        lanes sum = {0};
        const intptr_t most = m < terms - 1 ? m : terms - 1;
        for (intptr_t i = 0; i <= most; i++)
            sum += at->b[i] * P[m - i];
        B[m] += sum;
    }
}

static void exponential_arrivals_at(clocks *items, const ranks *k, lanes t, integrals *at, intptr_t *low, intptr_t *high)
{
    arrivals_of(items, k, t, at, low, high, 0);
}

static void normal_arrivals_at(clocks *items, const ranks *k, lanes t, integrals *at, intptr_t *low, intptr_t *high)
{
    arrivals_of(items, k, t, at, low, high, 1);
}

/* Add the integrands at the times t, with quadrature weights dt. */
PLR_INLINE void integrate_at(const clocks *all, const ranks *k, lanes t, lanes dt, integrals *at, const int extra,
                             const int normal)
{
    clocks here = *all;
    const clocks *items = &here;
    const intptr_t K = k->K;
    intptr_t low, coefficients;
    if (normal)
        normal_arrivals_at(&here, k, t, at, &low, &coefficients);
    else
        exponential_arrivals_at(&here, k, t, at, &low, &coefficients);
    if (low >= K)
        return;
    lanes value = {0};
    for (intptr_t m = low; m < K && m < coefficients; m++)
        value += k->theta[m] * at->B[m];
    at->value += value * dt;
    if (extra == VALUE_ALONE)
        return;

    if (k->divide_all)
        here.light_begin = here.light_end = 0;
    intptr_t longest = 0;
    for (intptr_t quartet = here.light_begin; quartet < here.light_end; quartet++) {
        intptr_t terms_here = series_terms(largest_of_quartet(at->r + QUARTET * quartet), k->bits, K);
        longest = terms_here > longest ? terms_here : longest;
    }
    for (intptr_t j = 0; j < here.crowd; j += QUARTET) {
        intptr_t terms_here = series_terms(largest_of_quartet(at->crowd_r + j), k->bits, K);
        longest = terms_here > longest ? terms_here : longest;
    }
    correlate(k, at, low, coefficients, longest);
    if (here.crowd)
        add_crowd(items, k, at, t, dt, extra);
    intptr_t quartet = 0;
    while (quartet < here.quartets && !give_up(at->patience, (double)K)) {
        const int light = quartet >= here.light_begin && quartet < here.light_end, relevant = quartet < here.relevant;
        const int alike_end = !light && quartet < here.light_begin ? here.light_begin : light ? here.light_end : here.quartets;
        const int pair = !relevant && quartet + 1 < alike_end;
        if (light && relevant)
            add_by_polynomial(items, k, at, quartet, 1, t, dt, 1, extra, normal);
        else if (light && pair)
            add_by_polynomial(items, k, at, quartet, 2, t, dt, 0, extra, normal);
        else if (light)
            add_by_polynomial(items, k, at, quartet, 1, t, dt, 0, extra, normal);
        else if (relevant)
            add_by_division(items, k, at, quartet, 1, low, coefficients, t, dt, 1, extra, normal);
        else if (pair)
            add_by_division(items, k, at, quartet, 2, low, coefficients, t, dt, 0, extra, normal);
        else
            add_by_division(items, k, at, quartet, 1, low, coefficients, t, dt, 0, extra, normal);
        quartet += 1 + pair;
    }
}

/* -------------------------------------------------------------------------------------- rank probabilities */

/* P at the times t, kept for all items to divide by their factors. */
typedef struct {
    lanes t, dt;
    intptr_t low, high;
    lanes *P;
} arrivals;

/* P(rank of j = m + 1) = integral of w_j q_j [z^m] P / L_j dt for the four items of a quartet; K sums of each item. */
PLR_INLINE void place_quartet(const clocks *items, const ranks *k, intptr_t quartet, const arrivals *nodes, intptr_t blocks,
                              lanes *restrict sums)
{
    const intptr_t K = k->K;
    const lanes zero = {0};
    const double *w = items->w + QUARTET * quartet;
    for (intptr_t m = 0; m < QUARTET * K; m++)
        sums[m] = zero;
    for (intptr_t block = 0; block < blocks; block++) {
        const lanes *restrict P = nodes[block].P;
        const intptr_t low = nodes[block].low, end = nodes[block].high < K ? nodes[block].high : K;
        lanes r[QUARTET], s[QUARTET], weight[QUARTET], x[QUARTET];
        int_lanes early[QUARTET];
        double first = INFINITY, last = 0;
        for (int n = 0; n < QUARTET; n++) {
            lanes exponent = w[n] * nodes[block].t;
            r[n] = vec_expm1(vec_select(exponent < 700.0, exponent, vec_all(700.0)));
            first = smaller(first, r[n][0]);
            last = larger(last, last_lane(r + n));
        }
        const double border = k->divide_all && last > k->most_early && first * k->most_early >= 1 ? 0 : k->most_early;
        for (int n = 0; n < QUARTET; n++) {
            early[n] = r[n] <= border;
            s[n] = vec_keep(early[n], r[n]);
            weight[n] = vec_keep(early[n], w[n] * nodes[block].dt);
            x[n] = zero;
        }
        if (first <= border)
            for (intptr_t m = low; m < end; m++)
                for (int n = 0; n < QUARTET; n++) {
                    x[n] = P[m] - s[n] * x[n];
                    sums[QUARTET * m + n] += weight[n] * x[n];
                }
        if (!(last > border))
            continue;
        for (int n = 0; n < QUARTET; n++) {
            s[n] = vec_select(early[n], zero, 1.0 / r[n]);
            weight[n] = s[n] * (w[n] * nodes[block].dt);
            x[n] = zero;
        }
        intptr_t m = nodes[block].high - 1;
        const intptr_t down_to = low > 1 ? low : 1;
        for (; m > K && m >= down_to; m--)
            for (int n = 0; n < QUARTET; n++)
                x[n] = P[m] - s[n] * x[n];
        for (; m >= down_to; m--)
            for (int n = 0; n < QUARTET; n++) {
                x[n] = P[m] - s[n] * x[n];
                sums[QUARTET * (m - 1) + n] += weight[n] * x[n];
            }
    }
}

#endif
