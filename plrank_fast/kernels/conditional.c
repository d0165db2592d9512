/* For item d and the order of the others, with q_j the chance that d comes next at place j if it has not come before:
 *
 *     F_j = product over i < j of (1 - q_i)       d has not come before place j
 *     A_j = sum over i <= j of q_i                so that d(F_{j+1}) / df_d = -F_{j+1} A_j
 *     B_j = sum over i <= j of q_i (1 - q_i)      = d(A_j) / df_d
 *     gradient = sum_j drop_j F_j A_j (rho_d - mean_j)
 *     hessian  = sum_j drop_j F_j (B_j - A_j^2) (rho_d - mean_j)
 *
 * where mean_j is the mean of rho over all items still there, d included, weighted by w. */
#include "conditional.h"
#include "vector_math.h"

#define WIDE 4 /* vectors in flight: hides the latency of the recurrences */

typedef struct {
    vec_f64 not_yet, chances, spread, gradient, hessian;
} state;

PLR_INLINE state begin(void)
{
    vec_f64 zero = {0};
    return (state){zero + 1.0, zero, zero, zero, zero};
}

/* Place j, where the item is next with chance q and its advantage over the mean is rho - mean. */
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
        s[v] = begin();
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

/* The arrays hold n rounded up to whole vectors. */
static void unplaced(const conditional_ranking *ranking, const double *weights, const double *relevance, size_t n,
                     double *gradient, double *hessian)
{
    size_t i = 0;
    if (hessian) {
        for (; i + WIDE * PLR_LANES <= n; i += WIDE * PLR_LANES)
            unplaced_items(ranking, weights + i, relevance + i, WIDE, gradient + i, hessian + i, 1);
        for (; i < n; i += PLR_LANES)
            unplaced_items(ranking, weights + i, relevance + i, 1, gradient + i, hessian + i, 1);
    } else {
        for (; i + WIDE * PLR_LANES <= n; i += WIDE * PLR_LANES)
            unplaced_items(ranking, weights + i, relevance + i, WIDE, gradient + i, NULL, 0);
        for (; i < n; i += PLR_LANES)
            unplaced_items(ranking, weights + i, relevance + i, 1, gradient + i, NULL, 0);
    }
}

/* Lanes are consecutive ranks. Before its own rank an item sees the ranking as it is; from there on the others have
 * moved up by one, and it stands beside them. */
PLR_INLINE void placed_items(const conditional_ranking *ranking, const double *weights, const double *relevance,
                             size_t first, double *gradient, double *hessian, int with_hessian)
{
    vec_f64 w = vec_load(weights), rho = vec_load(relevance), own_rank;
    state s = begin();
    for (int lane = 0; lane < PLR_LANES; lane++)
        own_rank[lane] = (double)(first + lane);
    for (size_t j = 0; j < ranking->cutoff; j++) {
        vec_f64 q, mean, before = w * ranking->inverse_sums[j];
        if (j < first) {
            q = before;
            mean = ranking->means[j] + (vec_f64){0};
        } else {
            vec_f64 inverse = 1.0 / (ranking->sums[j + 1] + w);
            vec_f64 beside = (ranking->gains[j + 1] + w * rho) * inverse;
            vec_i64 not_reached = own_rank > (double)j;
            q = vec_select(not_reached, before, w * inverse);
            mean = vec_select(not_reached, ranking->means[j] + (vec_f64){0}, beside);
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
    for (size_t i = 0; i < n; i += PLR_LANES) {
        if (hessian)
            placed_items(ranking, weights + i, relevance + i, first + i, gradient + i, hessian + i, 1);
        else
            placed_items(ranking, weights + i, relevance + i, first + i, gradient + i, NULL, 0);
    }
}

const conditional_kernels ISA(conditional_kernels) = {unplaced, placed};
