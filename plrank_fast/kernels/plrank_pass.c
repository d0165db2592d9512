/* With PR_k and S_k the reward and the remaining weight from rank k on (symbols of _plrank.pyx), one ranking gives
 *
 *     g_d = PR_{r+1} + w_d (rho_d DR_r - RI_r),     [RI_r, DR_r] = sum over k <= r of [PR_k, theta_k] / S_k
 *
 * to the item at rank r, and the same with r = K, PR = 0 to an item that is not placed. Two ways to sum it:
 *
 * backward: one pass from rank K up, in which [PR, S] and [RI, DR] grow together; the latter are then sums over the
 * ranks after r. What they leave out is common to all items, so each ranking adds its whole [RI_K, DR_K] to a total and
 * the finish takes the difference. 0.8 to 1.2 ns per placed item. That difference cancels for items much heavier than
 * what is left at rank K; the caller looks at the totals and does not use a result in which rounding is amplified too much.
 *
 * forward: over complete rankings, back for [PR, S], then forth for sums over the ranks up to r. Nothing is
 * subtracted; 0.9 to 1.4 ns per item.
 *
 * In sums[d] stand the sums over rankings of [RI, DR, PR_{r+1}, -] at the item's rank.
 */
#include <math.h>

#include "plrank_pass.h"
#include "lockstep.h"
#include "vector_math.h"

#define SAMPLES 8
/* Two samples of 256 bits are faster than four of 512 (0.80 against 0.95 ns per item): three ports take the former, and
 * the shuffles that put each item's four sums together are half as many. */
#define PASS_LANES (PLR_LANES < 4 ? PLR_LANES : 4)
#define PER_VECTOR (PASS_LANES / 2)
#define VECTORS (SAMPLES / PER_VECTOR)
#define UNROLL _Pragma("GCC unroll 8")

typedef double two __attribute__((vector_size(16)));
typedef double four __attribute__((vector_size(32)));

typedef double vec __attribute__((vector_size(8 * PASS_LANES)));
typedef uint64_t mask __attribute__((vector_size(8 * PASS_LANES)));

/* Two numbers for each of the samples. */
typedef struct {
    vec v[VECTORS];
} pairs;

PLR_INLINE two load_two(const double *from)
{
    two v;
    memcpy(&v, from, sizeof v);
    return v;
}

PLR_INLINE pairs load_pairs(const double *from)
{
    pairs state;
    UNROLL
    for (int i = 0; i < VECTORS; i++)
        memcpy(&state.v[i], from + i * PASS_LANES, sizeof state.v[i]);
    return state;
}

PLR_INLINE void store_pairs(double *to, const pairs *state)
{
    UNROLL
    for (int i = 0; i < VECTORS; i++)
        memcpy(to + i * PASS_LANES, &state->v[i], sizeof state->v[i]);
}

PLR_INLINE void add_two(double *to, two v)
{
    v += load_two(to);
    memcpy(to, &v, sizeof v);
}

PLR_INLINE void add_four(double *to, four v)
{
    four sum;
    memcpy(&sum, to, sizeof sum);
    sum += v;
    memcpy(to, &sum, sizeof sum);
}

PLR_INLINE double *sums_of(double *sums, int32_t item, int sample, int copies)
{
    return sums + 4 * ((size_t)item * copies + sample % copies);
}

/* What depends on the number of samples in a vector: joining pairs, adding [first, second] to the items' sums, and the
 * masks of the shuffles. */
#if PLR_LANES >= 4
#define EVEN_OF_A_ODD_OF_B {0, 5, 2, 7}
#define ODD_OF_BOTH {1, 5, 3, 7}
#define TWICE_EVEN {0, 0, 2, 2}
#define TWICE_ODD {1, 1, 3, 3}

PLR_INLINE vec join(const double *table, const int32_t *items)
{
    return __builtin_shufflevector(load_two(table + 2 * (size_t)items[0]), load_two(table + 2 * (size_t)items[1]), 0, 1,
                                   2, 3);
}

PLR_INLINE void add_to_sums(double *sums, const int32_t *items, int sample, int copies, vec first, vec second)
{
    add_four(sums_of(sums, items[0], sample, copies), __builtin_shufflevector(first, second, 0, 1, 4, 5));
    add_four(sums_of(sums, items[1], sample + 1, copies), __builtin_shufflevector(first, second, 2, 3, 6, 7));
}
#else
#define EVEN_OF_A_ODD_OF_B {0, 3}
#define ODD_OF_BOTH {1, 3}
#define TWICE_EVEN {0, 0}
#define TWICE_ODD {1, 1}

PLR_INLINE vec join(const double *table, const int32_t *items)
{
    return load_two(table + 2 * (size_t)items[0]);
}

PLR_INLINE void add_to_sums(double *sums, const int32_t *items, int sample, int copies, vec first, vec second)
{
    add_two(sums_of(sums, items[0], sample, copies), first);
    add_two(sums_of(sums, items[0], sample, copies) + 2, second);
}
#endif

/* ------------------------------------------------------------------------------------------------------------------
 * One rank of eight samples
 * --------------------------------------------------------------------------------------------------------------- */

/* [PR, S] += [theta rho, w] of the items at a rank. */
PLR_INLINE void add_items(const plrank_pass *pass, const int32_t *items, size_t rank, pairs *state)
{
    const vec ones = 1.0 + (vec){0};
    vec scale = __builtin_shuffle(pass->rank_weights[rank] + (vec){0}, ones, (mask)EVEN_OF_A_ODD_OF_B);
    UNROLL
    for (int i = 0; i < VECTORS; i++)
        state->v[i] += join(pass->items, items + i * PER_VECTOR) * scale;
}

/* [PR - b, S] with the baseline b of a rank. */
PLR_INLINE pairs lower(const plrank_pass *pass, size_t rank, const pairs *state, int with_baseline)
{
    pairs lowered = *state;
    if (with_baseline) {
        const vec zeros = {0};
        vec baseline = __builtin_shuffle(pass->baseline[rank] + zeros, zeros, (mask)EVEN_OF_A_ODD_OF_B);
        UNROLL
        for (int i = 0; i < VECTORS; i++)
            lowered.v[i] -= baseline;
    }
    return lowered;
}

/* [RI, DR] += [PR, theta] / S: one division for two vectors of samples. */
PLR_INLINE void add_shares(const plrank_pass *pass, size_t rank, const pairs *state, pairs *shares)
{
    vec theta = pass->rank_weights[rank] + (vec){0};
    UNROLL
    for (int i = 0; i < VECTORS; i += 2) {
        vec inverse = 1.0 / __builtin_shuffle(state->v[i], state->v[i + 1], (mask)ODD_OF_BOTH);
        shares->v[i] += __builtin_shuffle(state->v[i], theta, (mask)EVEN_OF_A_ODD_OF_B) *
                        __builtin_shuffle(inverse, (mask)TWICE_EVEN);
        shares->v[i + 1] += __builtin_shuffle(state->v[i + 1], theta, (mask)EVEN_OF_A_ODD_OF_B) *
                            __builtin_shuffle(inverse, (mask)TWICE_ODD);
    }
}

PLR_INLINE void add_to_items(plrank_pass *pass, const int32_t *items, int copies, const pairs *shares,
                             const pairs *state)
{
    UNROLL
    for (int i = 0; i < VECTORS; i++)
        add_to_sums(pass->sums, items + i * PER_VECTOR, i * PER_VECTOR, copies, shares->v[i], state->v[i]);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Eight rankings
 * --------------------------------------------------------------------------------------------------------------- */

/* Weight of the items that one ranking leaves over, summed directly. */
static double unplaced_weight(plrank_pass *pass, const int32_t *column)
{
    double *items = pass->items;
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    size_t d = 0;
    for (size_t k = 0; k < pass->cutoff; k++)
        items[2 * (size_t)column[k * PLR_LOCKSTEP] + 1] *= -1.0;
    for (; d + 4 <= pass->n_items; d += 4)
        for (int i = 0; i < 4; i++)
            sum[i] += items[2 * (d + i) + 1] > 0.0 ? items[2 * (d + i) + 1] : 0.0;
    for (; d < pass->n_items; d++)
        sum[0] += items[2 * d + 1] > 0.0 ? items[2 * d + 1] : 0.0;
    for (size_t k = 0; k < pass->cutoff; k++)
        items[2 * (size_t)column[k * PLR_LOCKSTEP] + 1] *= -1.0;
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* [PR, S] past the last rank. Where a ranking is not wanted S is infinite, so that it shares out nothing. */
PLR_INLINE pairs start(const double left_over[SAMPLES], size_t n_lanes)
{
    double sums[2 * SAMPLES] = {0.0};
    for (size_t lane = 0; lane < SAMPLES; lane++)
        sums[2 * lane + 1] = lane < n_lanes ? left_over[lane] : INFINITY;
    return load_pairs(sums);
}

/* S_{K+1} of each sample, from the ranks past the cutoff if there are any, else as all minus placed. */
PLR_INLINE pairs left_over(plrank_pass *pass, const int32_t *columns, size_t n_lanes)
{
    const int complete = pass->depth > pass->cutoff || pass->cutoff == pass->n_items;
    const double *items = pass->items;
    double sum[SAMPLES] = {0.0};
    for (size_t k = complete ? pass->cutoff : 0; k < pass->depth; k++)
        UNROLL
        for (int lane = 0; lane < SAMPLES; lane++)
            sum[lane] += items[2 * (size_t)columns[k * PLR_LOCKSTEP + lane] + 1];
    if (!complete) {
        for (size_t lane = 0; lane < SAMPLES && lane < n_lanes; lane++) {
            sum[lane] = pass->total_weight - sum[lane];
            if (sum[lane] < 1e-3 * pass->total_weight) /* three digits of sixteen lost, and no more */
                sum[lane] = unplaced_weight(pass, columns + lane);
        }
    }
    return start(sum, n_lanes);
}

PLR_INLINE void add_totals(plrank_pass *pass, const pairs *shares, const pairs *state)
{
    double sums[2 * SAMPLES], first[2 * SAMPLES];
    store_pairs(sums, shares);
    store_pairs(first, state);
    for (int lane = 0; lane < SAMPLES; lane++) {
        pass->total_reward += sums[2 * lane];
        pass->total_direct += sums[2 * lane + 1];
        pass->first_reward += first[2 * lane];
    }
}

PLR_INLINE void backward_eight(plrank_pass *pass, const int32_t *columns, size_t n_lanes, int copies,
                              int with_baseline)
{
    pairs state = left_over(pass, columns, n_lanes);
    pairs shares = {{{0}}};
    for (size_t k = pass->cutoff; k-- > 0;) {
        const int32_t *items = columns + k * PLR_LOCKSTEP;
        pairs after = lower(pass, k, &state, with_baseline);
        add_to_items(pass, items, copies, &shares, &after);
        add_items(pass, items, k, &state);
        pairs here = lower(pass, k, &state, with_baseline);
        add_shares(pass, k, &here, &shares);
    }
    add_totals(pass, &shares, &state);
}

PLR_INLINE void forward_eight(plrank_pass *pass, const int32_t *columns, size_t n_lanes, int copies,
                              int with_baseline)
{
    const double nothing[SAMPLES] = {0.0};
    pairs state = start(nothing, n_lanes), shares = {{{0}}};
    double *states = pass->states;
    store_pairs(states + 2 * SAMPLES * pass->depth, &state);
    for (size_t k = pass->depth; k-- > 0;) {
        add_items(pass, columns + k * PLR_LOCKSTEP, k, &state);
        store_pairs(states + 2 * SAMPLES * k, &state);
    }
    for (size_t k = 0; k < pass->depth; k++) {
        pairs here = load_pairs(states + 2 * SAMPLES * k);
        pairs after = load_pairs(states + 2 * SAMPLES * (k + 1));
        here = lower(pass, k, &here, with_baseline);
        after = lower(pass, k, &after, with_baseline);
        add_shares(pass, k, &here, &shares);
        add_to_items(pass, columns + k * PLR_LOCKSTEP, copies, &shares, &after);
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * Sixteen rankings
 * --------------------------------------------------------------------------------------------------------------- */

/* The loops above with the number of copies, and whether there is a baseline, known to the compiler. */
#define SPECIALISE(pass_of_eight)                                                        \
    const size_t copies = plr_pass_copies(pass->n_items);                                \
    for (size_t first = 0; first < n_lanes; first += SAMPLES) {                          \
        if (pass->baseline && copies == 4)                                               \
            pass_of_eight(pass, columns + first, n_lanes - first, 4, 1);                 \
        else if (pass->baseline)                                                         \
            pass_of_eight(pass, columns + first, n_lanes - first, 1, 1);                 \
        else if (copies == 4)                                                            \
            pass_of_eight(pass, columns + first, n_lanes - first, 4, 0);                 \
        else                                                                             \
            pass_of_eight(pass, columns + first, n_lanes - first, 1, 0);                 \
    }

static void backward(plrank_pass *pass, const int32_t *columns, size_t n_lanes)
{
    SPECIALISE(backward_eight)
}

static void forward(plrank_pass *pass, const int32_t *columns, size_t n_lanes)
{
    SPECIALISE(forward_eight)
}

const plrank_pass_kernels ISA(plrank_pass_kernels) = {backward, forward};
