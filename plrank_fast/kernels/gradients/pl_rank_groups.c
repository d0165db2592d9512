/* With PR_k the future reward and S_k the weight left at rank k (symbols of gradients/pl_rank.pyx), one ranking gives
 *
 *     g_d = PR_{r+1} + w_d (rho_d DR_r - RI_r),     [RI_r, DR_r] = sum over k <= r of [PR_k, theta_k] / S_k
 *
 * to the item at rank r; for an unplaced item r = K and PR = 0. There are two ways to sum it:
 *
 * backward: from rank K up, PR and S grow together with the sums of their quotients, which are then sums over the ranks
 * after r. The whole sums [RI_K, DR_K] are common to all items, so each ranking adds them to a total, and the finish
 * takes the difference. That difference cancels for items much heavier than the weight left at rank K; the caller
 * checks the totals and discards a result in which rounding is amplified too much.
 *
 * forward: one pass backward for PR and S, then one forward for sums over the ranks up to r. Nothing is subtracted.
 * Unplaced items are found by marks, in O(D) per ranking.
 *
 * A register holds one quantity of as many samples as it has lanes.
 */
#include "gradients/pl_rank_groups.h"
#include "simd/vectors.h"

#define VECTORS 2
#define SAMPLES (VECTORS * PLR_NARROW_LANES)

/* One number for each of the samples processed side by side. */
typedef struct {
    vec_narrow v[VECTORS];
} numbers;

/* Load register by register: GCC 12 would copy the struct through memory. */
PLR_INLINE numbers load_numbers(const double *from)
{
    numbers n;
    PLR_UNROLL
    for (int i = 0; i < VECTORS; i++)
        memcpy(&n.v[i], from + i * PLR_NARROW_LANES, sizeof n.v[i]);
    return n;
}

PLR_INLINE void store_numbers(double *to, const numbers *n)
{
    PLR_UNROLL
    for (int i = 0; i < VECTORS; i++)
        memcpy(to + i * PLR_NARROW_LANES, &n->v[i], sizeof n->v[i]);
}

PLR_INLINE void add_numbers(double *to, const numbers *n)
{
    numbers sum = load_numbers(to);
    PLR_UNROLL
    for (int i = 0; i < VECTORS; i++)
        sum.v[i] += n->v[i];
    store_numbers(to, &sum);
}

/* Return 1 / n by one division for both registers, because a division of 256 bits occupies the divider for 8 cycles.
 * The products of the numbers stay within a double's range. */
PLR_INLINE numbers reciprocals(const numbers *n)
{
    vec_narrow inverse = 1.0 / (n->v[0] * n->v[1]);
    return (numbers){{inverse * n->v[1], inverse * n->v[0]}};
}

/* Return the values of the items that the samples place at a rank; 0 for samples that no ranking uses. Callers make
 * n_lanes a constant where all are used, so that nothing branches. */
PLR_INLINE numbers gather(const double *values, const int32_t *items, size_t n_lanes)
{
    numbers n = {{{0}}};
    PLR_UNROLL
    for (size_t i = 0; i < SAMPLES; i++)
        if (i < n_lanes)
            n.v[i / PLR_NARROW_LANES][i % PLR_NARROW_LANES] = values[items[i]];
    return n;
}

/* Add to the sums of the items: every other sample has sums of its own, as neighbours often place the same item. */
PLR_INLINE void scatter(pl_rank_groups *pass, const int32_t *items, const numbers *terms, size_t n_lanes)
{
    double *sums[2] = {pass->gradient, pass->odd};
    PLR_UNROLL
    for (size_t i = 0; i < SAMPLES; i++)
        if (i < n_lanes)
            sums[i % 2][items[i]] += terms->v[i / PLR_NARROW_LANES][i % PLR_NARROW_LANES];
}

/* Process samples side by side: those of the columns, of which n_lanes are used. */
typedef void samples_step(pl_rank_groups *pass, const int32_t *columns, size_t first, size_t n_lanes);

PLR_INLINE void for_samples(samples_step step, pl_rank_groups *pass, const int32_t *columns, size_t n_lanes)
{
    size_t first = 0;
    for (; first + SAMPLES <= n_lanes; first += SAMPLES)
        step(pass, columns + first, first, SAMPLES);
    if (first < n_lanes)
        step(pass, columns + first, first, n_lanes - first);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Items that are not placed
 * --------------------------------------------------------------------------------------------------------------- */

#define NOTHING_SHARED 0x1p500 /* S of an unused ranking, whose reciprocal is finite */

/* Mark the items that the samples do not place, and return their weight, S_{K+1}. Each sample has a row of marks. */
PLR_INLINE numbers unplaced_weight(const pl_rank_groups *pass, const int32_t *columns, size_t first, size_t n_lanes)
{
    const size_t cutoff = pass->cutoff, n_items = pass->n_items, row = plr_marks(n_items);
    int8_t *marks = pass->unplaced + first * row;
    vec_f64 sums[SAMPLES] = {{0}};
    numbers left = {{{0}}};
    if (cutoff < n_items) {
        memset(marks, -1, SAMPLES * row);
        for (size_t k = 0; k < cutoff; k++)
            PLR_UNROLL
            for (size_t i = 0; i < SAMPLES; i++)
                if (i < n_lanes)
                    marks[i * row + (size_t)columns[k * PLR_GROUP_SIZE + i]] = 0;
        for (size_t d = 0; d < n_items; d += PLR_LANES) {
            const vec_f64 weight = vec_load_some(pass->weights + d, n_items - d, 0.0);
            PLR_UNROLL
            for (size_t i = 0; i < SAMPLES; i++)
                sums[i] += vec_keep(vec_load_masks(marks + i * row + d), weight);
        }
        PLR_UNROLL
        for (size_t i = 0; i < SAMPLES; i++)
            left.v[i / PLR_NARROW_LANES][i % PLR_NARROW_LANES] = vec_sum(sums[i]);
    }
    PLR_UNROLL
    for (size_t i = 0; i < SAMPLES; i++)
        if (i >= n_lanes)
            left.v[i / PLR_NARROW_LANES][i % PLR_NARROW_LANES] = NOTHING_SHARED;
    return left;
}

/* Add w_d (rho_d DR_K - RI_K) to each item for the rankings that do not place it, by the marks of `unplaced_weight`. */
static void add_unplaced(const pl_rank_groups *pass, size_t n_lanes)
{
    const size_t row = plr_marks(pass->n_items);
    for (size_t d = 0; d < pass->n_items; d += PLR_LANES) {
        const size_t n = pass->n_items - d;
        const vec_f64 weight = vec_load_some(pass->weights + d, n, 0.0);
        const vec_f64 relevance = vec_load_some(pass->relevance + d, n, 0.0);
        vec_f64 direct = {0}, risk = {0};
        for (size_t lane = 0; lane < n_lanes; lane++) {
            const vec_i64 unplaced = vec_load_masks(pass->unplaced + lane * row + d);
            direct += vec_keep(unplaced, vec_all(pass->direct[lane]));
            risk += vec_keep(unplaced, vec_all(pass->risk[lane]));
        }
        vec_store_some(
            pass->gradient + d,
            vec_load_some(pass->gradient + d, n, 0.0) + weight * (relevance * direct - risk), n);
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * Passes
 * --------------------------------------------------------------------------------------------------------------- */

/* Keep relevance and weight of the item at each rank in the states; return the weight that the samples place. */
PLR_INLINE numbers gather_ranks(pl_rank_groups *pass, const int32_t *columns, size_t n_lanes)
{
    numbers placed = {{{0}}};
    double *state = pass->states;
    for (size_t k = 0; k < pass->cutoff; k++, state += PLR_STATE * SAMPLES) {
        numbers relevance = gather(pass->relevance, columns + k * PLR_GROUP_SIZE, n_lanes);
        numbers weight = gather(pass->weights, columns + k * PLR_GROUP_SIZE, n_lanes);
        store_numbers(state, &relevance);
        store_numbers(state + SAMPLES, &weight);
        PLR_UNROLL
        for (int i = 0; i < VECTORS; i++)
            placed.v[i] += weight.v[i];
    }
    return placed;
}

/* Compute S_{K+1} as all minus placed, or directly where that would cancel. */
PLR_INLINE numbers left_over(pl_rank_groups *pass, const int32_t *columns, const numbers *placed, size_t n_lanes)
{
    numbers left;
    int cancelled = 0;
    PLR_UNROLL
    for (int i = 0; i < VECTORS; i++)
        left.v[i] = pass->total_weight - placed->v[i];
    PLR_UNROLL
    for (size_t i = 0; i < SAMPLES; i++) {
        const double of_sample = left.v[i / PLR_NARROW_LANES][i % PLR_NARROW_LANES];
        cancelled |= of_sample < 1e-3 * pass->total_weight; /* loses at most three digits of sixteen */
        if (i >= n_lanes)
            left.v[i / PLR_NARROW_LANES][i % PLR_NARROW_LANES] = NOTHING_SHARED;
    }
    return cancelled ? unplaced_weight(pass, columns, 0, n_lanes) : left;
}

PLR_INLINE void backward_some(pl_rank_groups *pass, const int32_t *columns, size_t first, size_t n_lanes)
{
    const double *rank_weights = pass->rank_weights;
    const numbers placed = gather_ranks(pass, columns, n_lanes);
    numbers left = left_over(pass, columns, &placed, n_lanes), after = {{{0}}}, risk = {{{0}}}, direct = {{{0}}};
    const double *state = pass->states + PLR_STATE * SAMPLES * pass->cutoff;
    for (size_t k = pass->cutoff; k-- > 0;) {
        state -= PLR_STATE * SAMPLES;
        const numbers relevance = load_numbers(state), weight = load_numbers(state + SAMPLES);
        numbers terms;
        PLR_UNROLL
        for (int i = 0; i < VECTORS; i++) {
            terms.v[i] = after.v[i] + weight.v[i] * (risk.v[i] - relevance.v[i] * direct.v[i]);
            after.v[i] += rank_weights[k] * relevance.v[i];
            left.v[i] += weight.v[i];
        }
        const numbers inverse = reciprocals(&left);
        PLR_UNROLL
        for (int i = 0; i < VECTORS; i++) {
            risk.v[i] += after.v[i] * inverse.v[i];
            direct.v[i] += rank_weights[k] * inverse.v[i];
        }
        scatter(pass, columns + k * PLR_GROUP_SIZE, &terms, n_lanes);
    }
    add_numbers(pass->total_risk + first, &risk);
    add_numbers(pass->total_direct + first, &direct);
    add_numbers(pass->first_reward + first, &after);
}

PLR_INLINE void forward_some(pl_rank_groups *pass, const int32_t *columns, size_t first, size_t n_lanes)
{
    const double *rank_weights = pass->rank_weights;
    numbers left = unplaced_weight(pass, columns, first, n_lanes), reward = {{{0}}}, risk = {{{0}}}, direct = {{{0}}};
    double *state = pass->states + PLR_STATE * SAMPLES * pass->cutoff;
    for (size_t k = pass->cutoff; k-- > 0;) {
        state -= PLR_STATE * SAMPLES;
        const numbers relevance = gather(pass->relevance, columns + k * PLR_GROUP_SIZE, n_lanes);
        const numbers weight = gather(pass->weights, columns + k * PLR_GROUP_SIZE, n_lanes);
        store_numbers(state, &relevance);
        store_numbers(state + SAMPLES, &weight);
        store_numbers(state + 2 * SAMPLES, &reward);
        PLR_UNROLL
        for (int i = 0; i < VECTORS; i++) {
            reward.v[i] += rank_weights[k] * relevance.v[i];
            left.v[i] += weight.v[i];
        }
        store_numbers(state + 3 * SAMPLES, &left);
    }
    for (size_t k = 0; k < pass->cutoff; k++, state += PLR_STATE * SAMPLES) {
        const vec_narrow theta = rank_weights[k] - (vec_narrow){0};
        const numbers relevance = load_numbers(state), weight = load_numbers(state + SAMPLES);
        const numbers after = load_numbers(state + 2 * SAMPLES);
        numbers terms;
        left = load_numbers(state + 3 * SAMPLES);
        const numbers inverse = reciprocals(&left);
        PLR_UNROLL
        for (int i = 0; i < VECTORS; i++) {
            risk.v[i] += reward.v[i] * inverse.v[i];
            direct.v[i] += theta * inverse.v[i];
            terms.v[i] = after.v[i] + weight.v[i] * (relevance.v[i] * direct.v[i] - risk.v[i]);
        }
        reward = after;
        scatter(pass, columns + k * PLR_GROUP_SIZE, &terms, n_lanes);
    }
    store_numbers(pass->direct + first, &direct);
    store_numbers(pass->risk + first, &risk);
}

static void backward(pl_rank_groups *pass, const int32_t *columns, size_t n_lanes)
{
    for_samples(backward_some, pass, columns, n_lanes);
}

static void forward(pl_rank_groups *pass, const int32_t *columns, size_t n_lanes)
{
    for_samples(forward_some, pass, columns, n_lanes);
    if (pass->cutoff < pass->n_items)
        add_unplaced(pass, n_lanes);
}

static void add_common_part(const pl_rank_groups *pass, double direct, double risk, double denominator)
{
    double *restrict gradient = pass->gradient, *restrict odd = pass->odd;
    const double *restrict weights = pass->weights, *restrict relevance = pass->relevance;
    for (size_t d = 0; d < pass->n_items; d++) {
        gradient[d] = (gradient[d] + odd[d] + weights[d] * (relevance[d] * direct - risk)) / denominator;
        odd[d] = 0.0;
    }
}

const pl_rank_groups_kernels ISA(pl_rank_groups_kernels) = {backward, forward, add_common_part};
