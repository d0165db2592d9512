/* For item d and the order of the others, with q_j the probability that d comes at place j if it has not come before:
 *
 *     F_j = product over i < j of (1 - q_i)       d has not come before place j
 *     A_j = sum over i <= j of q_i                so that d(F_{j+1}) / df_d = -F_{j+1} A_j
 *     B_j = sum over i <= j of q_i (1 - q_i)      = d(A_j) / df_d
 *     gradient = sum_j drop_j F_j A_j (rho_d - mean_j)
 *     hessian  = sum_j drop_j F_j (B_j - A_j^2) (rho_d - mean_j)
 *
 * where mean_j is the mean of rho over all remaining items, including d, weighted by w. */
#include "gradients/conditional.h"
#include "simd/vectors.h"

#include <math.h>

#define WIDE 4 /* vectors in flight, to hide the latency of the recurrences */

PLR_INLINE void vec_add_some(double *to, vec_f64 v, size_t count)
{
    vec_store_some(to, vec_load_some(to, count, 0.0) + v, count);
}

typedef struct {
    vec_f64 not_yet, chances, spread, gradient, hessian;
} state;

PLR_INLINE state new_state(void)
{
    vec_f64 zero = {0};
    return (state){vec_all(1.0), zero, zero, zero, zero};
}

/* Add place j, where the item comes next with probability q and its advantage over the mean is rho - mean. */
PLR_INLINE state step(state s, vec_f64 q, vec_f64 advantage, double drop, int with_hessian)
{
    s.chances += q;
    vec_f64 share = drop * s.not_yet * advantage;
    s.gradient += share * s.chances;
    if (with_hessian) {
        s.spread += q - q * q;
        s.hessian += share * (s.spread - s.chances * s.chances);
    }
    s.not_yet -= s.not_yet * q;
    return s;
}

/* Add to the gradients of n items, in as many vectors. */
PLR_INLINE void add_unplaced_items(const conditional_ranking *ranking, const double *weights, const double *relevance,
                                   size_t vectors, size_t n, double *gradient, double *hessian, int with_hessian)
{
    state s[WIDE];
    vec_f64 w[WIDE], rho[WIDE];
    for (size_t v = 0; v < vectors; v++) {
        s[v] = new_state();
        w[v] = vec_load_some(weights + v * PLR_LANES, n - v * PLR_LANES, 0.0);
        rho[v] = vec_load_some(relevance + v * PLR_LANES, n - v * PLR_LANES, 0.0);
    }
    for (size_t j = 0; j < ranking->cutoff; j++)
        for (size_t v = 0; v < vectors; v++)
            s[v] = step(s[v], w[v] * ranking->inverse_sums[j], rho[v] - ranking->means[j], ranking->drops[j],
                        with_hessian);
    for (size_t v = 0; v < vectors; v++) {
        vec_add_some(gradient + v * PLR_LANES, s[v].gradient, n - v * PLR_LANES);
        if (with_hessian)
            vec_add_some(hessian + v * PLR_LANES, s[v].hessian, n - v * PLR_LANES);
    }
}

/* Return whether to stop before some more vectors; each takes a nanosecond per rank. */
PLR_INLINE int stopped(const conditional_ranking *ranking, double vectors)
{
    return cancellation_requested(ranking->stop, 0.1 * vectors * (double)ranking->cutoff);
}

/* Compute each item by itself, in O(n K). */
PLR_INLINE void add_one_by_one(const conditional_ranking *ranking, const double *weights, const double *relevance,
                               size_t n, double *gradient, double *hessian, int with_hessian)
{
    size_t i = 0;
    for (; i + WIDE * PLR_LANES <= n && !stopped(ranking, WIDE); i += WIDE * PLR_LANES)
        add_unplaced_items(ranking, weights + i, relevance + i, WIDE, WIDE * PLR_LANES, gradient + i,
                           with_hessian ? hessian + i : NULL, with_hessian);
    for (; i < n && !stopped(ranking, 1.0); i += PLR_LANES)
        add_unplaced_items(ranking, weights + i, relevance + i, 1, n - i, gradient + i,
                           with_hessian ? hessian + i : NULL, with_hessian);
}

/* For many items and ranks: the gradient of an item is rho G(w) - M(w). G(w) / w and M(w) / w are smooth functions of
 * its weight, polynomials of degree K, but close to exp(-w sum 1/S). They are interpolated at Chebyshev nodes in [0,
 * heaviest], so that an item costs O(PLR_NODES). Dividing by w keeps the relative accuracy of light items. */
/* Compute the Chebyshev coefficients of values[i] = f(x_i). Returns whether the last ones are negligible, so that f is
 * resolved. */
static int chebyshev(const double *nodes, const double *values, double *coefficients)
{
    double before[PLR_NODES], now[PLR_NODES], total = 0, tail = 0;
    for (int i = 0; i < PLR_NODES; i++) {
        before[i] = nodes[i]; /* T_{-1} = T_1 */
        now[i] = 1.0;
    }
    for (int k = 0; k < PLR_NODES; k++) {
        double sum = 0;
        for (int i = 0; i < PLR_NODES; i++)
            sum += values[i] * now[i];
        coefficients[k] = sum * (k ? 2.0 : 1.0) / PLR_NODES;
        for (int i = 0; i < PLR_NODES; i++) {
            double next = 2.0 * nodes[i] * now[i] - before[i];
            before[i] = now[i];
            now[i] = next;
        }
        total += fabs(coefficients[k]);
        if (k >= PLR_NODES - 4)
            tail += fabs(coefficients[k]);
    }
    return tail <= 1e-14 * total;
}

/* Evaluate two series at once by Clenshaw's recurrence. */
PLR_INLINE void evaluate_series(const double *first, const double *second, vec_f64 x, vec_f64 *value_1,
                                vec_f64 *value_2)
{
    vec_f64 zero = {0}, a1 = zero, a2 = zero, b1 = zero, b2 = zero, twice = 2.0 * x;
    for (int k = PLR_NODES - 1; k > 0; k--) {
        vec_f64 a = twice * a1 - a2 + first[k], b = twice * b1 - b2 + second[k];
        a2 = a1, a1 = a;
        b2 = b1, b1 = b;
    }
    *value_1 = x * a1 - a2 + first[0];
    *value_2 = x * b1 - b2 + second[0];
}

static int interpolate(const conditional_ranking *ranking, double heaviest, int with_hessian,
                       conditional_series *series)
{
    const double pi = 3.14159265358979323846;
    double nodes[PLR_NODES], at[PLR_NODES], rho[PLR_NODES], value[2][2][PLR_NODES] = {{{0}}};
    double scale = 0; /* largest mean: G is the difference of the results for rho = scale and rho = 0 */
    for (size_t j = 0; j < ranking->cutoff; j++)
        scale = fabs(ranking->means[j]) > scale ? fabs(ranking->means[j]) : scale;
    scale = scale > 0 ? scale : 1.0;
    series->heaviest = heaviest;
    for (int i = 0; i < PLR_NODES; i++) {
        nodes[i] = cos(pi * (i + 0.5) / PLR_NODES);
        at[i] = heaviest * (1.0 + nodes[i]) / 2.0;
    }
    for (int probe = 0; probe < 2; probe++) {
        for (int i = 0; i < PLR_NODES; i++)
            rho[i] = probe ? scale : 0.0;
        if (with_hessian)
            add_one_by_one(ranking, at, rho, PLR_NODES, value[0][probe], value[1][probe], 1);
        else
            add_one_by_one(ranking, at, rho, PLR_NODES, value[0][probe], NULL, 0);
    }
    for (int order = 0; order < (with_hessian ? 2 : 1); order++) {
        for (int i = 0; i < PLR_NODES; i++) {
            value[order][1][i] = (value[order][1][i] - value[order][0][i]) / (scale * at[i]);
            value[order][0][i] /= at[i];
        }
        if (!chebyshev(nodes, value[order][1], series->slope[order]) ||
            !chebyshev(nodes, value[order][0], series->level[order]))
            return 0;
    }
    return 1;
}

PLR_INLINE void add_by_series(const double *slopes, const double *levels, vec_f64 w, vec_f64 rho, double heaviest,
                              double *sums, size_t n)
{
    vec_f64 slope, level;
    evaluate_series(slopes, levels, w * (2.0 / heaviest) - 1.0, &slope, &level);
    vec_add_some(sums, w * (rho * slope + level), n);
}

static void add_unplaced(const conditional_ranking *ranking, const conditional_series *series, const double *weights,
                         const double *relevance, size_t n, double *gradient, double *hessian)
{
    if (!series) {
        if (hessian)
            add_one_by_one(ranking, weights, relevance, n, gradient, hessian, 1);
        else
            add_one_by_one(ranking, weights, relevance, n, gradient, NULL, 0);
        return;
    }
    for (size_t i = 0; i < n; i += PLR_LANES) {
        vec_f64 w = vec_load_some(weights + i, n - i, 0.0), rho = vec_load_some(relevance + i, n - i, 0.0);
        add_by_series(series->slope[0], series->level[0], w, rho, series->heaviest, gradient + i, n - i);
        if (hessian)
            add_by_series(series->slope[1], series->level[1], w, rho, series->heaviest, hessian + i, n - i);
    }
}

/* Lanes are consecutive ranks. Up to its own rank, the ranking without an item is the ranking itself; from there on the
 * others have moved up by one, and the item is added to the sums. */
PLR_INLINE void placed_items(const conditional_ranking *ranking, const double *weights, const double *relevance,
                             size_t first, double *gradient, double *hessian, int with_hessian)
{
    vec_f64 w = vec_load(weights), rho = vec_load(relevance), own_rank;
    state s = new_state();
    for (int lane = 0; lane < PLR_LANES; lane++)
        own_rank[lane] = (double)(first + lane);
    for (size_t j = 0; j < ranking->cutoff; j++) {
        vec_f64 q, mean, before = w * ranking->inverse_sums[j];
        if (j < first) {
            q = before;
            mean = vec_all(ranking->means[j]);
        } else {
            vec_f64 inverse = 1.0 / (ranking->sums[j + 1] + w);
            vec_f64 beside = (ranking->gains[j + 1] + w * rho) * inverse;
            vec_i64 not_reached = own_rank > (double)j;
            q = vec_select(not_reached, before, w * inverse);
            mean = vec_select(not_reached, vec_all(ranking->means[j]), beside);
        }
        s = step(s, q, rho - mean, ranking->drops[j], with_hessian);
    }
    vec_store(gradient, s.gradient);
    if (with_hessian)
        vec_store(hessian, s.hessian);
}

static void placed(const conditional_ranking *ranking, const double *weights, const double *relevance, double *gradient,
                   double *hessian)
{
    for (size_t k = 0; k < ranking->cutoff && !stopped(ranking, 2.0); k += PLR_LANES) {
        if (hessian)
            placed_items(ranking, weights + k, relevance + k, k, gradient + k, hessian + k, 1);
        else
            placed_items(ranking, weights + k, relevance + k, k, gradient + k, NULL, 0);
    }
}

static conditional_sums sum(const double *weights, const double *relevance, size_t n)
{
    vec_f64 total = {0}, gained = {0}, heaviest = {0};
    for (size_t i = 0; i < n; i += PLR_LANES) {
        vec_f64 w = vec_load_some(weights + i, n - i, 0.0);
        total += w;
        gained += w * vec_load_some(relevance + i, n - i, 0.0);
        heaviest = vec_max_f64(w, heaviest);
    }
    return (conditional_sums){vec_sum(total), vec_sum(gained), vec_largest(heaviest)};
}

const conditional_kernels ISA(conditional_kernels) = {interpolate, add_unplaced, placed, sum};
