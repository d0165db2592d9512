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

PLR_INLINE void unplaced_items(const conditional_ranking *ranking, const double *weights, const double *relevance,
                               size_t vectors, double *gradient, double *hessian, int with_hessian)
{
    state s[WIDE];
    vec_f64 w[WIDE], rho[WIDE];
    for (size_t v = 0; v < vectors; v++) {
        s[v] = new_state();
        w[v] = vec_load(weights + v * PLR_LANES);
        rho[v] = vec_load(relevance + v * PLR_LANES);
    }
    for (size_t j = 0; j < ranking->cutoff; j++)
        for (size_t v = 0; v < vectors; v++)
            s[v] = step(s[v], w[v] * ranking->inverse_sums[j], rho[v] - ranking->means[j], ranking->drops[j],
                        with_hessian);
    for (size_t v = 0; v < vectors; v++) {
        vec_store(gradient + v * PLR_LANES, s[v].gradient);
        if (with_hessian)
            vec_store(hessian + v * PLR_LANES, s[v].hessian);
    }
}

/* Return whether to stop before some more vectors; each takes a nanosecond per rank. */
PLR_INLINE int stopped(const conditional_ranking *ranking, double vectors)
{
    return cancellation_requested(ranking->stop, 0.1 * vectors * (double)ranking->cutoff);
}

/* Compute each item by itself, in O(n K). The arrays hold n rounded up to whole vectors. */
static void unplaced_one_by_one(const conditional_ranking *ranking, const double *weights, const double *relevance,
                                size_t n, double *gradient, double *hessian)
{
    for (size_t i = 0, vectors; i < n; i += vectors * PLR_LANES) {
        vectors = i + WIDE * PLR_LANES <= n ? WIDE : 1;
        if (stopped(ranking, (double)vectors))
            return;
        if (vectors == WIDE && hessian)
            unplaced_items(ranking, weights + i, relevance + i, WIDE, gradient + i, hessian + i, 1);
        else if (vectors == WIDE)
            unplaced_items(ranking, weights + i, relevance + i, WIDE, gradient + i, NULL, 0);
        else if (hessian)
            unplaced_items(ranking, weights + i, relevance + i, 1, gradient + i, hessian + i, 1);
        else
            unplaced_items(ranking, weights + i, relevance + i, 1, gradient + i, NULL, 0);
    }
}

/* For many items and ranks: the gradient of an item is rho G(w) - M(w). G(w) / w and M(w) / w are smooth functions of
 * its weight, polynomials of degree K, but close to exp(-w sum 1/S). They are interpolated at Chebyshev nodes in [0,
 * heaviest], so that an item costs O(NODES). Dividing by w keeps the relative accuracy of light items. */
enum { NODES = 32 };

/* Compute the Chebyshev coefficients of values[i] = f(x_i). Returns whether the last ones are negligible, so that f is
 * resolved. */
static int chebyshev(const double *nodes, const double *values, double *coefficients)
{
    double before[NODES], now[NODES], total = 0, tail = 0;
    for (int i = 0; i < NODES; i++) {
        before[i] = nodes[i]; /* T_{-1} = T_1 */
        now[i] = 1.0;
    }
    for (int k = 0; k < NODES; k++) {
        double sum = 0;
        for (int i = 0; i < NODES; i++)
            sum += values[i] * now[i];
        coefficients[k] = sum * (k ? 2.0 : 1.0) / NODES;
        for (int i = 0; i < NODES; i++) {
            double next = 2.0 * nodes[i] * now[i] - before[i];
            before[i] = now[i];
            now[i] = next;
        }
        total += fabs(coefficients[k]);
        if (k >= NODES - 4)
            tail += fabs(coefficients[k]);
    }
    return tail <= 1e-14 * total;
}

/* Evaluate two series at once by Clenshaw's recurrence. */
PLR_INLINE void evaluate_series(const double *first, const double *second, vec_f64 x, vec_f64 *value_1,
                                vec_f64 *value_2)
{
    vec_f64 zero = {0}, a1 = zero, a2 = zero, b1 = zero, b2 = zero, twice = 2.0 * x;
    for (int k = NODES - 1; k > 0; k--) {
        vec_f64 a = twice * a1 - a2 + first[k], b = twice * b1 - b2 + second[k];
        a2 = a1, a1 = a;
        b2 = b1, b1 = b;
    }
    *value_1 = x * a1 - a2 + first[0];
    *value_2 = x * b1 - b2 + second[0];
}

static int unplaced_by_interpolation(const conditional_ranking *ranking, const double *weights,
                                     const double *relevance, size_t n, double heaviest, double *gradient,
                                     double *hessian)
{
    const double pi = 3.14159265358979323846;
    double nodes[NODES], at[NODES], rho[NODES], value[2][2][NODES], series[2][2][NODES];
    double scale = 0; /* largest mean: G is the difference of the results for rho = scale and rho = 0 */
    for (size_t j = 0; j < ranking->cutoff; j++)
        scale = fabs(ranking->means[j]) > scale ? fabs(ranking->means[j]) : scale;
    scale = scale > 0 ? scale : 1.0;
    for (int i = 0; i < NODES; i++) {
        nodes[i] = cos(pi * (i + 0.5) / NODES);
        at[i] = heaviest * (1.0 + nodes[i]) / 2.0;
    }
    for (int probe = 0; probe < 2; probe++) {
        for (int i = 0; i < NODES; i++)
            rho[i] = probe ? scale : 0.0;
        unplaced_one_by_one(ranking, at, rho, NODES, value[0][probe], hessian ? value[1][probe] : NULL);
    }
    for (int order = 0; order < (hessian ? 2 : 1); order++) {
        for (int i = 0; i < NODES; i++) {
            value[order][1][i] = (value[order][1][i] - value[order][0][i]) / (scale * at[i]);
            value[order][0][i] /= at[i];
        }
        for (int part = 0; part < 2; part++)
            if (!chebyshev(nodes, value[order][part], series[order][part]))
                return 0;
    }
    for (size_t i = 0; i < n; i += PLR_LANES) {
        vec_f64 w = vec_load(weights + i), x = w * (2.0 / heaviest) - 1.0, slope, level;
        evaluate_series(series[0][1], series[0][0], x, &slope, &level);
        vec_store(gradient + i, w * (vec_load(relevance + i) * slope + level));
        if (hessian) {
            evaluate_series(series[1][1], series[1][0], x, &slope, &level);
            vec_store(hessian + i, w * (vec_load(relevance + i) * slope + level));
        }
    }
    return 1;
}

static void unplaced(const conditional_ranking *ranking, const double *weights, const double *relevance, size_t n,
                     double heaviest, double *gradient, double *hessian)
{
    if (plr_conditional_interpolates(n, ranking->cutoff) && heaviest > 0 &&
        unplaced_by_interpolation(ranking, weights, relevance, n, heaviest, gradient, hessian))
        return;
    unplaced_one_by_one(ranking, weights, relevance, n, gradient, hessian);
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

static void placed(const conditional_ranking *ranking, const double *weights, const double *relevance, size_t first,
                   size_t n, double *gradient, double *hessian)
{
    for (size_t i = 0; i < n && !stopped(ranking, 2.0); i += PLR_LANES) {
        if (hessian)
            placed_items(ranking, weights + i, relevance + i, first + i, gradient + i, hessian + i, 1);
        else
            placed_items(ranking, weights + i, relevance + i, first + i, gradient + i, NULL, 0);
    }
}

static void sum(const double *weights, const double *relevance, size_t n, double *weight, double *gain)
{
    vec_f64 total = {0}, gained = {0};
    for (size_t i = 0; i < n; i += PLR_LANES) {
        vec_f64 w = vec_load(weights + i);
        total += w;
        gained += w * vec_load(relevance + i);
    }
    *weight = vec_sum(total);
    *gain = vec_sum(gained);
}

const conditional_kernels ISA(conditional_kernels) = {unplaced, placed, sum};
