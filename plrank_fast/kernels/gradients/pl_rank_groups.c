/* With PR_k the future reward and S_k the weight left at rank k (symbols of gradients/pl_rank.pyx), one ranking gives
 *
 *     g_d = PR_{r+1} + w_d (rho_d DR_r - RI_r),     [RI_r, DR_r] = sum over k <= r of [PR_k, theta_k] / S_k
 *
 * to the item at rank r; for an unplaced item r = K and PR = 0. From rank K up, PR and S grow together with the sums of
 * their quotients, which are then sums over the ranks after r. The whole sums [RI_K, DR_K] are common to all items, so
 * each ranking adds them to a total, and the finish takes the difference.
 *
 * That difference cancels for items much heavier than the weight left at rank K. What it leaves is at least the part of
 * the first rank, [PR_1, theta_1] / S_1, so that the whole sums over that part bound how much rounding is amplified.
 * Where relevance or rank weights are negative, magnitudes are summed as well. Samples that exceed the limit add
 * nothing by that pass. A pass forward over the ranks adds them, whose sums are those up to each rank, so that nothing
 * is subtracted; items that it does not place are found by marks, in O(D) per ranking. A caller who knows that no
 * ranking of the query exceeds the limit spares the checks.
 *
 * A register holds one quantity of as many samples as it has lanes.
 */
#include "gradients/pl_rank_groups.h"

#include <math.h>

#include "simd/vectors.h"

#define VECTORS 2
#define SAMPLES (VECTORS * PLR_NARROW_LANES)

/* One number for each of the samples processed side by side. */
typedef struct {
    vec_narrow v[VECTORS];
} numbers;

typedef PLR_VECTOR(int64_t, 8 * PLR_NARROW_LANES) narrow_bits;

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

/* Add to the sums of the items: every other sample has sums of its own, as neighbours often place the same item. Among
 * so many items that they rarely do there is one array, which saves two passes over the other. */
PLR_INLINE void scatter(pl_rank_groups *pass, const int32_t *items, const double *terms, size_t n_lanes)
{
    double *sums[2] = {pass->gradient, pass->n_items <= PLR_ODD_ITEMS ? pass->odd : pass->gradient};
    PLR_UNROLL
    for (size_t i = 0; i < SAMPLES; i++)
        if (i < n_lanes)
            sums[i % 2][items[i]] += terms[i];
}

/* ------------------------------------------------------------------------------------------------------------------
 * Items that are not placed
 * --------------------------------------------------------------------------------------------------------------- */

#define NOTHING_SHARED 0x1p500 /* S of an unused ranking, whose reciprocal is finite */

/* Mark the items that the samples do not place, and return their weight, S_{K+1}. Each sample has a row of marks,
 * which is only made if any item is not placed. */
PLR_INLINE numbers unplaced_weight(const pl_rank_groups *pass, const int32_t *columns, size_t n_lanes)
{
    const size_t cutoff = pass->cutoff, n_items = pass->n_items, row = plr_marks(n_items);
    int8_t *marks = pass->unplaced;
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

/* ------------------------------------------------------------------------------------------------------------------
 * The pass
 * --------------------------------------------------------------------------------------------------------------- */

/* Keep relevance and weight of the item at each rank in the states; return the weight that the samples place. */
PLR_INLINE numbers gather_ranks(pl_rank_groups *pass, const int32_t *columns, size_t n_lanes)
{
    const double *relevances = pass->relevance, *weights = pass->weights;
    const size_t cutoff = pass->cutoff;
    numbers placed = {{{0}}};
    double *state = pass->states;
    for (size_t k = 0; k < cutoff; k++, state += PLR_STATE * SAMPLES) {
        numbers relevance = gather(relevances, columns + k * PLR_GROUP_SIZE, n_lanes);
        numbers weight = gather(weights, columns + k * PLR_GROUP_SIZE, n_lanes);
        store_numbers(state, &relevance);
        store_numbers(state + SAMPLES, &weight);
        PLR_UNROLL
        for (int i = 0; i < VECTORS; i++)
            placed.v[i] += weight.v[i];
    }
    return placed;
}

/* Return S_{K+1}: all minus placed, or a direct sum where that would cancel. */
PLR_INLINE numbers left_over(const pl_rank_groups *pass, const int32_t *columns, const numbers *placed, size_t n_lanes)
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
    return cancelled && pass->may_be_peaked ? unplaced_weight(pass, columns, n_lanes) : left;
}

PLR_INLINE double sum_of(vec_narrow v)
{
    double sum = v[0];
    for (size_t i = 1; i < PLR_NARROW_LANES; i++)
        sum += v[i];
    return sum;
}

/* PR, RI and DR over some ranks, from one to the last or from the first to one. */
typedef struct {
    numbers reward, risk, direct;
} rank_sums;

PLR_INLINE void add_rank(rank_sums *sums, double rank_weight, const numbers *relevance, const numbers *inverse)
{
    PLR_UNROLL
    for (int i = 0; i < VECTORS; i++) {
        sums->reward.v[i] += rank_weight * relevance->v[i];
        sums->risk.v[i] += sums->reward.v[i] * inverse->v[i];
        sums->direct.v[i] += rank_weight * inverse->v[i];
    }
}

/* Return whether the samples keep the limit on average; not a number does not. */
PLR_INLINE int is_bounded(const pl_rank_groups *pass, const rank_sums *sums, size_t n_lanes)
{
    vec_narrow direct = {0}, excess = {0};
    PLR_UNROLL
    for (int i = 0; i < VECTORS; i++) {
        direct += sums->direct.v[i];
        excess += sums->risk.v[i] - pass->limit * sums->reward.v[i];
    }
    return sum_of(excess) <= 0.0 && sum_of(direct) <= pass->limit * (double)n_lanes * fabs(pass->rank_weights[0]);
}

/* Add samples side by side, of which n_lanes are used; return 0 and add nothing if they exceed the limit. */
PLR_INLINE int add_backward(pl_rank_groups *pass, const int32_t *columns, size_t first, size_t n_lanes,
                            const int is_signed)
{
    const double *rank_weights = pass->rank_weights;
    const numbers placed = gather_ranks(pass, columns, n_lanes);
    rank_sums sums = {{{{0}}}}, magnitudes = {{{{0}}}};
    double *state = pass->states + PLR_STATE * SAMPLES * pass->cutoff;
    numbers left = left_over(pass, columns, &placed, n_lanes);
    for (size_t k = pass->cutoff; k-- > 0;) {
        state -= PLR_STATE * SAMPLES;
        const numbers relevance = load_numbers(state), weight = load_numbers(state + SAMPLES);
        numbers terms, size;
        PLR_UNROLL
        for (int i = 0; i < VECTORS; i++) {
            terms.v[i] = sums.reward.v[i] + weight.v[i] * (sums.risk.v[i] - relevance.v[i] * sums.direct.v[i]);
            left.v[i] += weight.v[i];
            size.v[i] = (vec_narrow)((narrow_bits)relevance.v[i] & INT64_MAX); /* without its sign */
        }
        const numbers inverse = reciprocals(&left);
        add_rank(&sums, rank_weights[k], &relevance, &inverse);
        if (is_signed)
            add_rank(&magnitudes, fabs(rank_weights[k]), &size, &inverse);
        store_numbers(state, &terms);
    }
    if (pass->may_be_peaked && !is_bounded(pass, is_signed ? &magnitudes : &sums, n_lanes))
        return 0;
    state += PLR_STATE * SAMPLES * pass->cutoff;
    for (size_t k = pass->cutoff; k-- > 0;) {
        state -= PLR_STATE * SAMPLES;
        scatter(pass, columns + k * PLR_GROUP_SIZE, state, n_lanes);
    }
    add_numbers(pass->total_risk + first, &sums.risk);
    add_numbers(pass->total_direct + first, &sums.direct);
    return 1;
}

/* Add to the items that the samples do not place, which are marked, what RI_K and DR_K of each sample give them. */
PLR_INLINE void add_unplaced(pl_rank_groups *pass, const rank_sums *sums, size_t n_lanes)
{
    const size_t row = plr_marks(pass->n_items);
    double risks[SAMPLES], directs[SAMPLES];
    store_numbers(risks, &sums->risk);
    store_numbers(directs, &sums->direct);
    for (size_t d = 0; d < pass->n_items; d += PLR_LANES) {
        const size_t n = pass->n_items - d;
        const vec_f64 weight = vec_load_some(pass->weights + d, n, 0.0);
        const vec_f64 relevance = vec_load_some(pass->relevance + d, n, 0.0);
        vec_f64 direct = {0}, risk = {0};
        PLR_UNROLL
        for (size_t i = 0; i < SAMPLES; i++)
            if (i < n_lanes) {
                const vec_i64 mark = vec_load_masks(pass->unplaced + i * row + d);
                direct += vec_keep(mark, vec_all(directs[i]));
                risk += vec_keep(mark, vec_all(risks[i]));
            }
        vec_f64 gradient = vec_load_some(pass->gradient + d, n, 0.0) + weight * (relevance * direct - risk);
        vec_store_some(pass->gradient + d, gradient, n);
    }
}

/* Add samples side by side, of which n_lanes are used, whatever their rounding would be backward. */
PLR_INLINE void add_forward(pl_rank_groups *pass, const int32_t *columns, size_t n_lanes)
{
    const double *rank_weights = pass->rank_weights;
    rank_sums sums = {{{{0}}}};
    gather_ranks(pass, columns, n_lanes);
    numbers left = unplaced_weight(pass, columns, n_lanes), reward = {{{0}}};
    double *state = pass->states + PLR_STATE * SAMPLES * pass->cutoff;
    for (size_t k = pass->cutoff; k-- > 0;) {
        state -= PLR_STATE * SAMPLES;
        const numbers relevance = load_numbers(state), weight = load_numbers(state + SAMPLES);
        store_numbers(state + 2 * SAMPLES, &reward);
        PLR_UNROLL
        for (int i = 0; i < VECTORS; i++) {
            reward.v[i] += rank_weights[k] * relevance.v[i];
            left.v[i] += weight.v[i];
        }
        const numbers inverse = reciprocals(&left);
        store_numbers(state + 3 * SAMPLES, &inverse);
    }
    for (size_t k = 0; k < pass->cutoff; k++, state += PLR_STATE * SAMPLES) {
        const numbers relevance = load_numbers(state), weight = load_numbers(state + SAMPLES);
        const numbers after = load_numbers(state + 2 * SAMPLES), inverse = load_numbers(state + 3 * SAMPLES);
        numbers terms;
        PLR_UNROLL
        for (int i = 0; i < VECTORS; i++) {
            sums.risk.v[i] += reward.v[i] * inverse.v[i];
            sums.direct.v[i] += rank_weights[k] * inverse.v[i];
            terms.v[i] = after.v[i] + weight.v[i] * (relevance.v[i] * sums.direct.v[i] - sums.risk.v[i]);
        }
        reward = after;
        store_numbers(state, &terms);
        scatter(pass, columns + k * PLR_GROUP_SIZE, state, n_lanes);
    }
    if (pass->cutoff < pass->n_items)
        add_unplaced(pass, &sums, n_lanes);
}

/* Add samples side by side by the first pass that serves. Once a sample has exceeded the limit, others of its query
 * will, so the next ones go forward at once. */
PLR_INLINE void add_some(pl_rank_groups *pass, const int32_t *columns, size_t first, size_t n_lanes,
                         const int is_signed)
{
    if (!pass->is_peaked && add_backward(pass, columns, first, n_lanes, is_signed))
        return;
    pass->is_peaked = 1;
    add_forward(pass, columns, n_lanes);
}

PLR_INLINE void add_all(pl_rank_groups *pass, const int32_t *columns, size_t n_lanes, const int is_signed)
{
    size_t first = 0;
    for (; first + SAMPLES <= n_lanes; first += SAMPLES)
        add_some(pass, columns + first, first, SAMPLES, is_signed);
    if (first < n_lanes)
        add_some(pass, columns + first, first, n_lanes - first, is_signed);
}

static void add_group(pl_rank_groups *pass, const int32_t *columns, size_t n_lanes)
{
    if (pass->is_signed)
        add_all(pass, columns, n_lanes, 1);
    else
        add_all(pass, columns, n_lanes, 0);
}

static void add_common_part(const pl_rank_groups *pass, size_t start, size_t stop)
{
    const double direct = pass->direct, risk = pass->risk, denominator = pass->denominator;
    double *restrict gradient = pass->gradient, *restrict odd = pass->odd;
    const double *restrict weights = pass->weights, *restrict relevance = pass->relevance;
    if (pass->n_items <= PLR_ODD_ITEMS)
        for (size_t d = start; d < stop; d++) {
            gradient[d] += odd[d];
            odd[d] = 0.0;
        }
    for (size_t d = start; d < stop; d++)
        gradient[d] = (gradient[d] + weights[d] * (relevance[d] * direct - risk)) / denominator;
}

const pl_rank_groups_kernels ISA(pl_rank_groups_kernels) = {add_group, add_common_part};
