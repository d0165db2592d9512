/* The product of the Hessian with a vector d: the derivative of the gradient when score j moves at the speed d_j.
 *
 * Time and nodes do not move, so the integrands of exact_panel.h are differentiated. With x_i = w_i t and
 *
 *     V = sum_i d_i x_i q_i P / L_i,     A = sum_i rho_i d_i w_i (1 - x_i) q_i P / L_i,
 *     W = sum_(i != k) a_i d_k x_k q_k P / (L_i L_k),
 *
 * the derivatives of P and B are (z - 1) V and A + (z - 1) W. Without item j, V, A and W stand for the same sums over
 * the other items, and <theta, (z - 1) V> = <delta, V>. So with epsilon_m = delta_(m+1) - delta_m
 *
 *     (Hd)_j = integral of w_j q_j { d_j [rho_j ((1 - x)^2 - x) Y_j + t (1 - x) X_j]
 *                                    + rho_j (1 - x) <delta, V> + t (<delta, A> + <epsilon, W>) } dt,     x = x_j.
 *
 * An item is divided out of the five polynomials in the order P, B, V, W, A, or is light and has a series in its odds.
 */
#ifndef PLR_HESSIAN_PRODUCT_H
#define PLR_HESSIAN_PRODUCT_H

#include "gradients/exact/exact_panel.h"
#include "gradients/exact/leave_one_out_division.h"
#include "gradients/exact/leave_one_out_series.h"
#include "gradients/exact/power_sums.h"

/* An item at a vector of nodes, and its shares in the polynomials: rho w in B, d x in V and W, and in A. */
typedef struct {
    lanes r, x;
    double w, rho, d, of_B;
    lanes of_V, of_A;
} moving_item;

PLR_INLINE moving_item item_at(const panel *p, intptr_t j, const node_vector *node)
{
    const double w = p->items.w[j], rho = p->items.rho[j], d = p->items.direction[j];
    const lanes x = w * node->time;
    return (moving_item){p->at->odds[j], x, w, rho, d, rho * w, d * x, (rho * w * d) * (1.0 - x)};
}

/* The polynomials without an item, times its q: coefficients of z^m. */
typedef struct {
    lanes P, B, V, W, A;
} coefficients;

/* Divide 1 + r z out upwards, from the coefficients of z^(m-1) to z^m. */
PLR_INLINE void step_up(const node_workspace *at, const moving_item *i, intptr_t m, lanes r, const int all,
                        coefficients *c)
{
    c->P = at->P[m] - r * c->P;
    c->B = (at->B[m] - i->of_B * c->P) - r * c->B;
    if (!all)
        return;
    c->V = (at->V[m] - i->of_V * c->P) - r * c->V;
    c->W = ((at->W[m] - i->of_V * c->B) - i->of_B * c->V) - r * c->W;
    c->A = (at->A[m] - i->of_A * c->P) - r * c->A;
}

/* Divide it out downwards, with s = 1 / r, from the coefficients of z^m to z^(m-1). */
PLR_INLINE void step_down(const node_workspace *at, const moving_item *i, intptr_t m, lanes s, const int all,
                          coefficients *c)
{
    if (all) {
        c->A = s * ((at->A[m] - i->of_A * c->P) - c->A);
        c->W = s * (((at->W[m] - i->of_V * c->B) - i->of_B * c->V) - c->W);
        c->V = s * ((at->V[m] - i->of_V * c->P) - c->V);
    }
    c->B = s * ((at->B[m] - i->of_B * c->P) - c->B);
    c->P = s * (at->P[m] - c->P);
}

/* The nodes at which an item is divided out upwards, and whether there are any for either direction. */
typedef struct {
    int_lanes early;
    int upwards, downwards;
} directions;

PLR_INLINE directions directions_of(const panel *p, const node_vector *node, lanes r)
{
    const double border = division_border(p, node->high, r[0], last_lane(&r));
    return (directions){r <= border, r[0] <= border, last_lane(&r) > border};
}

/* Add one item's shares in V, W and A. */
PLR_INLINE void add_shares_of_item(const node_workspace *at, const moving_item *i, const coefficients *c, intptr_t m)
{
    at->V[m] += i->of_V * c->P;
    at->W[m] += i->of_V * c->B;
    at->A[m] += i->of_A * c->P;
}

static void share_by_division(const panel *p, const node_vector *node, intptr_t j)
{
    const node_workspace *at = p->at;
    const moving_item all = item_at(p, j, node);
    const directions go = directions_of(p, node, all.r);
    if (go.upwards) {
        moving_item early = all;
        early.of_V = vec_keep(go.early, all.of_V);
        early.of_A = vec_keep(go.early, all.of_A);
        const lanes r = vec_keep(go.early, all.r);
        coefficients c = {{0}};
        for (intptr_t m = node->low; m < node->high; m++) {
            step_up(at, &early, m, r, 0, &c);
            add_shares_of_item(at, &early, &c, m);
        }
    }
    if (go.downwards) {
        moving_item late = all;
        late.of_V = vec_select(go.early, (lanes){0}, all.of_V);
        late.of_A = vec_select(go.early, (lanes){0}, all.of_A);
        const lanes s = vec_select(go.early, (lanes){0}, 1.0 / all.r);
        coefficients c = {{0}};
        for (intptr_t m = node->high - 1; m > node->low; m--) {
            step_down(at, &late, m, s, 0, &c);
            add_shares_of_item(at, &late, &c, m - 1);
        }
    }
}

/* Add the shares of light items by series: V = P v, A = P a and W = B v - P u, where v = sum d x / (1 + r z) and so
 * on, and u = sum rho w d x / (1 + r z)^2. */
static void share_by_series(const panel *p, const node_vector *node, intptr_t begin, intptr_t end)
{
    const node_workspace *at = p->at;
    lanes *const v = at->f, *const a = at->g, *const u = at->h;
    intptr_t longest = 0;
    for (intptr_t i = 0; i < node->high; i++)
        v[i] = a[i] = u[i] = (lanes){0};
    for (intptr_t j = begin; j < end; j++) {
        if (p->items.direction[j] == 0)
            continue;
        const moving_item item = item_at(p, j, node);
        const intptr_t terms = series_terms(last_lane(&item.r), p->ranks.bits, node->high);
        lanes power = vec_all(1);
        for (intptr_t i = 0; i < terms; i++) {
            v[i] += power * item.of_V;
            a[i] += power * item.of_A;
            u[i] -= power * item.of_V * ((double)(i + 1) * item.of_B);
            power *= -item.r;
        }
        longest = terms > longest ? terms : longest;
    }
    add_shares(at->V, at->P, v, longest, node->low, node->high);
    add_shares(at->A, at->P, a, longest, node->low, node->high);
    add_shares(at->W, at->B, v, longest, node->low, node->high);
    add_shares(at->W, at->P, u, longest, node->low, node->high);
}

/* Compute the coefficients of the series: i + 1 times those for squares in g, h and e, twice as many pairs in k. */
static void find_series_of_product(const panel *p, const node_vector *node, intptr_t terms)
{
    const node_workspace *at = p->at;
    const intptr_t low = node->low, top = node->top;
    for (intptr_t i = 0; i < terms; i++) {
        const double *theta = p->ranks.theta + i, *delta = p->ranks.delta + i;
        lanes y = {0}, c = {0}, e = {0}, n = {0}, f = {0}, g = {0}, h = {0}, k = {0};
        for (intptr_t m = low; m < top - i; m++) {
            const double epsilon = delta[m + 1] - delta[m];
            y += theta[m] * at->P[m];
            c += delta[m] * at->B[m];
            e += delta[m] * at->P[m];
            n += delta[m] * at->V[m];
            f += delta[m] * at->A[m] + epsilon * at->W[m];
            g += epsilon * at->B[m];
            h += epsilon * at->V[m];
            k += epsilon * at->P[m];
        }
        const double once = (double)(i + 1), twice = once * (double)(i + 2);
        at->y[i] = y, at->c[i] = c, at->n[i] = n, at->f[i] = f;
        at->e[i] = once * e, at->g[i] = once * g, at->h[i] = once * h, at->k[i] = twice * k;
    }
}

/* Compute V, W and A and the series of light items at a vector of nodes at which P and B are known. */
static void prepare_product(panel *p, const node_vector *node)
{
    const intptr_t light_begin = QUARTET * node->light_begin, light_end = QUARTET * node->light_end;
    for (intptr_t m = -MARGIN; m < node->high; m++)
        p->at->V[m] = p->at->W[m] = p->at->A[m] = (lanes){0};
    if (node->light_odds >= 0)
        share_by_series(p, node, light_begin, light_end);
    for (intptr_t j = 0; j < QUARTET * p->items.quartets; j++) {
        const int light = j >= light_begin && j < light_end;
        if (!light && p->items.direction[j] != 0 && !cancellation_requested(p->cancellation, (double)node->high))
            share_by_division(p, node, j);
    }
    if (node->light_odds >= 0)
        find_series_of_product(p, node, terms_of_series(p, node, node->light_odds));
}

/* Contributions of the polynomials without an item to its integrands: q times Y_j, X_j, <delta, V> and <delta, A> +
 * <epsilon, W>. */
typedef struct {
    lanes Y, X, V, F;
} item_gains;

PLR_INLINE void gain(const rank_block *ranks, intptr_t m, const coefficients *c, item_gains *g)
{
    const double delta = ranks->delta[m];
    g->Y += ranks->theta[m] * c->P;
    g->X += delta * c->B;
    g->V += delta * c->V;
    g->F += delta * c->A + (ranks->delta[m + 1] - delta) * c->W;
}

static item_gains gains_by_division(const panel *p, const node_vector *node, const moving_item *item)
{
    const directions go = directions_of(p, node, item->r);
    item_gains early = {{0}}, late = {{0}};
    if (go.upwards) {
        const lanes r = vec_keep(go.early, item->r);
        coefficients c = {{0}};
        for (intptr_t m = node->low; m < node->top; m++) {
            step_up(p->at, item, m, r, 1, &c);
            gain(&p->ranks, m, &c, &early);
        }
    }
    if (go.downwards) {
        const lanes s = vec_select(go.early, (lanes){0}, 1.0 / item->r);
        coefficients c = {{0}};
        intptr_t m = node->high - 1;
        for (; m > p->ranks.K; m--)
            step_down(p->at, item, m, s, 1, &c);
        for (; m > node->low; m--) {
            step_down(p->at, item, m, s, 1, &c);
            gain(&p->ranks, m - 1, &c, &late);
        }
    }
    return (item_gains){vec_select(go.early, early.Y, late.Y), vec_select(go.early, early.X, late.X),
                        vec_select(go.early, early.V, late.V), vec_select(go.early, early.F, late.F)};
}

static item_gains gains_by_series(const panel *p, const node_vector *node, const moving_item *item)
{
    const node_workspace *at = p->at;
    const lanes z = -item->r;
    lanes y = {0}, c = {0}, e = {0}, n = {0}, f = {0}, g = {0}, h = {0}, k = {0};
    for (intptr_t i = terms_of_series(p, node, last_lane(&item->r)) - 1; i >= 0; i--) {
        y = y * z + at->y[i];
        c = c * z + at->c[i];
        e = e * z + at->e[i];
        n = n * z + at->n[i];
        f = f * z + at->f[i];
        g = g * z + at->g[i];
        h = h * z + at->h[i];
        k = k * z + at->k[i];
    }
    const lanes of_V = item->of_V;
    return (item_gains){y, c - item->of_B * e, n - of_V * e,
                        f - item->of_A * e - of_V * g - item->of_B * (h - of_V * k)};
}

/* Add the integrands of quartets [begin, end): the gradient, and the product in place of the Hessian diagonal. */
static void add_product(panel *p, const node_vector *node, intptr_t begin, intptr_t end)
{
    const lanes t = node->time;
    for (intptr_t j = QUARTET * begin; j < QUARTET * end; j++) {
        if (p->items.item[j] < 0 || cancellation_requested(p->cancellation, (double)p->ranks.K))
            continue;
        const int light = j >= QUARTET * node->light_begin && j < QUARTET * node->light_end;
        const moving_item item = item_at(p, j, node);
        const item_gains gains = light ? gains_by_series(p, node, &item) : gains_by_division(p, node, &item);
        const lanes left = 1.0 - item.x, weight = item.w * node->weight;
        p->sums.gradient[j] += weight * (item.rho * left * gains.Y + t * gains.X);
        p->sums.hessian[j] += weight * (item.d * (item.rho * (left * left - item.x) * gains.Y + t * left * gains.X) +
                                        item.rho * left * gains.V + t * gains.F);
    }
}

#endif
