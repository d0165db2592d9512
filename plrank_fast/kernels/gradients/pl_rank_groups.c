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

/* ------------------------------------------------------------------------------------------------------------------
 * Items of a rank
 * --------------------------------------------------------------------------------------------------------------- */

/* Records of the items at a rank. Columns hold their offsets in bytes, which addressing adds at no cost. Records have
 * If the items are not `recorded`, the first address is that of the gathered numbers. */
typedef struct {
    double *item[SAMPLES];
} records;

PLR_INLINE records records_at(const pl_rank_groups *pass, const int32_t *columns, size_t rank, int recorded)
{
    const int32_t *distances = columns + rank * PLR_GROUP_SIZE;
    records at;
    if (!recorded) {
        at.item[0] = pass->gathered + rank * 2 * SAMPLES;
        return at;
    }
    PLR_UNROLL
    for (int i = 0; i < SAMPLES; i++) {
        at.item[i] = (double *)((char *)pass->records + (uint32_t)distances[i]);
        __asm__("" : "+r"(at.item[i])); /* otherwise GCC keeps base, offset and sum, and runs out of registers */
    }
    return at;
}

/* Pairs are [relevance, weight]; a register holds those of two samples, or of one where that fills it. */
#if PLR_NARROW_LANES == 4
#define FIRST_OF_PAIRS 0, 4, 2, 6
#define SECOND_OF_PAIRS 1, 5, 3, 7
#else
#define FIRST_OF_PAIRS 0, 2
#define SECOND_OF_PAIRS 1, 3
#endif

PLR_INLINE void load_items(const records *at, numbers *relevance, numbers *weight, int recorded)
{
    if (!recorded) {
        *relevance = load_numbers(at->item[0]);
        *weight = load_numbers(at->item[0] + SAMPLES);
        return;
    }
    PLR_UNROLL
    for (int i = 0; i < VECTORS; i++) {
        double *const *item = at->item + i * PLR_NARROW_LANES;
        vec_narrow even = vec_load_pairs(item[0], item[PLR_NARROW_LANES - 2]);
        vec_narrow odd = vec_load_pairs(item[1], item[PLR_NARROW_LANES - 1]);
        relevance->v[i] = __builtin_shufflevector(even, odd, FIRST_OF_PAIRS);
        weight->v[i] = __builtin_shufflevector(even, odd, SECOND_OF_PAIRS);
    }
}

/* Add to one sum of each sample's item, two at a time, in the order that is cheapest to load, split and store: even
 * and odd samples have sums of their own, as neighbours often place the same item of a short list.
 * Without records terms overwrite relevance, which is no longer needed. */
PLR_INLINE void add_terms(const records *at, const numbers *terms, int recorded)
{
    if (!recorded) {
        store_numbers(at->item[0], terms);
        return;
    }
    PLR_UNROLL
    for (int i = 0; i < SAMPLES; i += 2) {
        double *first = at->item[i] + 2, *second = at->item[i + 1] + 3;
        vec_pair sum = {*first, *second};
        sum += vec_pair_at(terms->v[i / PLR_NARROW_LANES], i % PLR_NARROW_LANES);
        *first = sum[0];
        *second = sum[1];
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * The weight left over
 * --------------------------------------------------------------------------------------------------------------- */

#define NOTHING_SHARED 0x1p500 /* S of an unused ranking, whose reciprocal is finite */

/* Negate the weights of the items that one ranking places. */
static void negate_weights(pl_rank_groups *pass, const int32_t *column, int recorded)
{
    const size_t distance = recorded ? PLR_RECORD * sizeof(double) : 1;
    for (size_t k = 0; k < pass->cutoff; k++)
        pass->weights[(uint32_t)column[k * PLR_GROUP_SIZE] / distance] *= -1.0;
}

/* Return the weight of the items that one ranking leaves over, summed directly. */
static double unplaced_weight(pl_rank_groups *pass, const int32_t *column, int recorded)
{
    double sum = 0.0;
    negate_weights(pass, column, recorded);
    for (size_t d = 0; d < pass->n_items; d++)
        sum += pass->weights[d] > 0.0 ? pass->weights[d] : 0.0;
    negate_weights(pass, column, recorded);
    return sum;
}

/* Return the weight left over as all minus placed, and sum it directly where that would cancel. */
PLR_INLINE numbers all_minus_placed(pl_rank_groups *pass, const int32_t *columns, size_t n_lanes, int recorded)
{
    numbers relevance, weight, left = {{{0}}};
    if (pass->cutoff == pass->n_items)
        return left;
    for (size_t k = 0; k < pass->cutoff; k++) {
        records at = records_at(pass, columns, k, recorded);
        load_items(&at, &relevance, &weight, recorded);
        PLR_UNROLL
        for (int i = 0; i < VECTORS; i++)
            left.v[i] += weight.v[i];
    }
    vec_narrow_i64 cancelled = {0};
    PLR_UNROLL
    for (int i = 0; i < VECTORS; i++) {
        left.v[i] = pass->total_weight - left.v[i];
        cancelled |= left.v[i] < 1e-3 * pass->total_weight; /* loses at most three digits of sixteen */
    }
    if (vec_narrow_any(cancelled)) {
        double sum[SAMPLES];
        store_numbers(sum, &left);
        for (size_t lane = 0; lane < SAMPLES && lane < n_lanes; lane++)
            if (sum[lane] < 1e-3 * pass->total_weight)
                sum[lane] = unplaced_weight(pass, columns + lane, recorded);
        left = load_numbers(sum);
    }
    return left;
}

/* Set the numbers of the samples side by side that no ranking uses. */
PLR_INLINE void set_unused(numbers *all, size_t n_lanes, double value)
{
    if (n_lanes < SAMPLES) {
        double each[SAMPLES];
        store_numbers(each, all);
        for (size_t lane = n_lanes; lane < SAMPLES; lane++)
            each[lane] = value;
        *all = load_numbers(each);
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * Items that are not placed
 * --------------------------------------------------------------------------------------------------------------- */

/* Marks are sixteen bytes for each item, set for the rankings that do not place it. With marks, sums over items or over
 * rankings are sums of whole registers; with columns, the items of a rank would be gathered and scattered one by
 * one. */

#define GROUP_VECTORS PLR_MASKS_OF_16

/* One number for each ranking of the group. */
typedef struct {
    vec_f64 v[GROUP_VECTORS];
} group_numbers;

static void mark_unplaced(const pl_rank_groups *pass, const int32_t *columns)
{
    memset(pass->unplaced, -1, (pass->n_items + 1) * PLR_GROUP_SIZE);
    for (size_t k = 0; k < pass->cutoff; k++)
        PLR_UNROLL
        for (size_t lane = 0; lane < PLR_GROUP_SIZE; lane++)
            pass->unplaced[(size_t)columns[k * PLR_GROUP_SIZE + lane] * PLR_GROUP_SIZE + lane] = 0;
}

PLR_INLINE void add_weight(group_numbers *sum, const pl_rank_groups *pass, size_t item)
{
    vec_i64 unplaced[GROUP_VECTORS];
    vec_load_masks(unplaced, pass->unplaced + item * PLR_GROUP_SIZE);
    PLR_UNROLL
    for (int i = 0; i < GROUP_VECTORS; i++)
        sum->v[i] += vec_keep(unplaced[i], vec_all(pass->weights[item]));
}

/* Compute S_{K+1} of each ranking. */
static void sum_unplaced(pl_rank_groups *pass)
{
    group_numbers even = {{{0}}}, odd = {{{0}}}; /* two sums, because an addition must wait for the one before it */
    size_t d = 0;
    for (; d + 1 < pass->n_items; d += 2) {
        add_weight(&even, pass, d);
        add_weight(&odd, pass, d + 1);
    }
    if (d < pass->n_items)
        add_weight(&even, pass, d);
    PLR_UNROLL
    for (int i = 0; i < GROUP_VECTORS; i++)
        vec_store(pass->left + i * PLR_LANES, even.v[i] + odd.v[i]);
}

/* Add w_d (rho_d DR_K - RI_K) to each item for the rankings that do not place it. */
static void add_unplaced(const pl_rank_groups *pass)
{
    group_numbers direct, risk;
    PLR_UNROLL
    for (int i = 0; i < GROUP_VECTORS; i++) {
        direct.v[i] = vec_load(pass->direct + i * PLR_LANES);
        risk.v[i] = vec_load(pass->risk + i * PLR_LANES);
    }
    const int8_t *marks = pass->unplaced;
    double *sums = pass->records + 2;
    for (size_t d = 0; d < pass->n_items; d++, marks += PLR_GROUP_SIZE, sums += PLR_RECORD) {
        const vec_f64 relevance = vec_all(pass->relevance[d]);
        vec_i64 unplaced[GROUP_VECTORS];
        vec_load_masks(unplaced, marks);
        vec_f64 sum = {0};
        PLR_UNROLL
        for (int i = 0; i < GROUP_VECTORS; i++)
            sum += vec_keep(unplaced[i], relevance * direct.v[i] - risk.v[i]);
        vec_pair own = vec_pair_sum(sum);
        own = vec_load_pair(sums) + pass->weights[d] * own;
        memcpy(sums, &own, sizeof own);
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * Passes
 * --------------------------------------------------------------------------------------------------------------- */

PLR_INLINE void backward_some(pl_rank_groups *pass, const int32_t *columns, size_t first, size_t n_lanes, int recorded)
{
    const double *rank_weights = pass->rank_weights;
    columns += first;
    numbers left = all_minus_placed(pass, columns, n_lanes, recorded);
    set_unused(&left, n_lanes, NOTHING_SHARED);
    numbers inverse = {{{0}}};
    numbers after = {{{0}}}, risk = {{{0}}}, direct = {{{0}}};
    for (size_t k = pass->cutoff; k-- > 0;) {
        records at = records_at(pass, columns, k, recorded);
        numbers relevance, weight, terms;
        load_items(&at, &relevance, &weight, recorded);
        PLR_UNROLL
        for (int i = 0; i < VECTORS; i++) {
            terms.v[i] = after.v[i] + weight.v[i] * (risk.v[i] - relevance.v[i] * direct.v[i]);
            after.v[i] += rank_weights[k] * relevance.v[i];
            left.v[i] += weight.v[i];
        }
        inverse = reciprocals(&left);
        PLR_UNROLL
        for (int i = 0; i < VECTORS; i++) {
            risk.v[i] += after.v[i] * inverse.v[i];
            direct.v[i] += rank_weights[k] * inverse.v[i];
        }
        add_terms(&at, &terms, recorded);
    }
    add_numbers(pass->total_risk + first, &risk);
    add_numbers(pass->total_direct + first, &direct);
    add_numbers(pass->first_reward + first, &after);
}

PLR_INLINE void forward_some(pl_rank_groups *pass, const int32_t *columns, size_t first, size_t n_lanes)
{
    const double *rank_weights = pass->rank_weights;
    double *states = pass->scratch; /* [PR_{k+1}, S_k] of each rank */
    columns += first;
    numbers relevance, weight;
    numbers left = load_numbers(pass->left + first);
    set_unused(&left, n_lanes, NOTHING_SHARED);
    numbers reward = {{{0}}}, risk = {{{0}}}, direct = {{{0}}};
    for (size_t k = pass->cutoff; k-- > 0;) {
        records at = records_at(pass, columns, k, 1);
        load_items(&at, &relevance, &weight, 1);
        store_numbers(states + 2 * SAMPLES * k, &reward);
        PLR_UNROLL
        for (int i = 0; i < VECTORS; i++) {
            reward.v[i] += rank_weights[k] * relevance.v[i];
            left.v[i] += weight.v[i];
        }
        store_numbers(states + 2 * SAMPLES * k + SAMPLES, &left);
    }
    for (size_t k = 0; k < pass->cutoff; k++) {
        const vec_narrow theta = rank_weights[k] - (vec_narrow){0};
        records at = records_at(pass, columns, k, 1);
        numbers terms, after = load_numbers(states + 2 * SAMPLES * k);
        left = load_numbers(states + 2 * SAMPLES * k + SAMPLES);
        numbers inverse = reciprocals(&left);
        load_items(&at, &relevance, &weight, 1);
        PLR_UNROLL
        for (int i = 0; i < VECTORS; i++) {
            risk.v[i] += reward.v[i] * inverse.v[i];
            direct.v[i] += theta * inverse.v[i];
            terms.v[i] = after.v[i] + weight.v[i] * (relevance.v[i] * direct.v[i] - risk.v[i]);
        }
        reward = after;
        add_terms(&at, &terms, 1);
    }
    /* The backward pass needs none of this: it is kept only if theta_1 / S_1, a factor of every item, is far larger. */
    set_unused(&direct, n_lanes, 0);
    store_numbers(pass->direct + first, &direct);
    store_numbers(pass->risk + first, &risk);
}

/* Replace items by the offsets of their records in bytes. */
static void scale_columns(const pl_rank_groups *pass, int32_t *columns)
{
    for (size_t i = 0; i < pass->cutoff * PLR_GROUP_SIZE; i++)
        columns[i] *= (int32_t)(PLR_RECORD * sizeof(double));
}

static void backward(pl_rank_groups *pass, int32_t *columns, size_t n_lanes)
{
    scale_columns(pass, columns);
    for (size_t first = 0; first < n_lanes; first += SAMPLES)
        backward_some(pass, columns, first, n_lanes - first, 1);
}

static void forward(pl_rank_groups *pass, int32_t *columns, size_t n_lanes)
{
    const int some_unplaced = pass->cutoff < pass->n_items;
    memset(pass->left, 0, sizeof pass->left);
    memset(pass->direct, 0, sizeof pass->direct); /* for samples side by side none of which is used */
    memset(pass->risk, 0, sizeof pass->risk);
    if (some_unplaced) {
        mark_unplaced(pass, columns);
        sum_unplaced(pass);
    }
    scale_columns(pass, columns);
    for (size_t first = 0; first < n_lanes; first += SAMPLES)
        forward_some(pass, columns, first, n_lanes - first);
    if (some_unplaced)
        add_unplaced(pass);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Without records
 * --------------------------------------------------------------------------------------------------------------- */

/* Items are scattered over memory, and their loads do not wait for one another. */
static void gather(pl_rank_groups *pass, const int32_t *columns, size_t n_lanes)
{
    double *to = pass->gathered;
    for (size_t k = 0; k < pass->cutoff; k++, to += 2 * SAMPLES, columns += PLR_GROUP_SIZE)
        for (size_t lane = 0; lane < SAMPLES; lane++) {
            to[lane] = lane < n_lanes ? pass->relevance[columns[lane]] : 0.0;
            to[SAMPLES + lane] = lane < n_lanes ? pass->weights[columns[lane]] : 0.0;
        }
}

static void scatter(pl_rank_groups *pass, const int32_t *columns, size_t n_lanes)
{
    const double *from = pass->gathered;
    for (size_t k = 0; k < pass->cutoff; k++, from += 2 * SAMPLES, columns += PLR_GROUP_SIZE)
        for (size_t lane = 0; lane < n_lanes; lane++)
            pass->gradient[columns[lane]] += from[lane];
}

static void backward_scattered(pl_rank_groups *pass, const int32_t *columns, size_t n_lanes)
{
    for (size_t first = 0; first < n_lanes; first += SAMPLES) {
        const size_t length = n_lanes - first < SAMPLES ? n_lanes - first : SAMPLES;
        gather(pass, columns + first, length);
        backward_some(pass, columns, first, length, 0);
        scatter(pass, columns + first, length);
    }
}

static void add_common_part(const pl_rank_groups *pass, double direct, double risk, double denominator)
{
    double *restrict gradient = pass->gradient;
    const double *restrict weights = pass->weights, *restrict relevance = pass->relevance;
    for (size_t d = 0; d < pass->n_items; d++)
        gradient[d] = (gradient[d] + weights[d] * (relevance[d] * direct - risk)) / denominator;
}

const pl_rank_groups_kernels ISA(pl_rank_groups_kernels) = {backward, forward, backward_scattered, add_common_part};
