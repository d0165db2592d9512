/* Rankings by arrival times, of which only the early ones are computed.
 *
 * The sampler looks for the K items that arrive first among the candidates, the items that may arrive before a deadline
 * t. A comparison of 16 random bits with 2^16 exp(-w t) tells whether an item is a candidate: most items are not and
 * need no logarithm, and one step of the stream serves 32 items. Candidates get 16 more bits. If the K-th of them
 * arrives clearly before the deadline, no other item precedes it. Otherwise, or if there are too many candidates, the
 * ranking is drawn again from the same bits with every arrival time in double precision.
 *
 * A candidate is one integer, bits << 16 | item, so that comparing and packing take one instruction each; `thresholds`
 * hold 2^16 exp(-w t) << 16. Items are therefore numbered within chunks of 2^15.
 */
#include "sampling/groups/group_samplers.h"
#include "sampling/near_ties.h"
#include "sampling/race.h"
#include "simd/vector_math.h"

#define CHUNK ((size_t)1 << 15)
#define NEVER UINT32_MAX /* the threshold of the padding, above every candidate */
#define STEP 32          /* items that one step of the stream has bits for */

typedef struct {
    group_query query;
    size_t most_candidates; /* a multiple of 16 */
    uint32_t *thresholds;   /* (n_items rounded up to 32,) see above */
    float *means;           /* likewise, 1 / weight, scaled for the keys */
    key_format format;
    uint32_t *found;        /* (16, most_candidates + 64) the candidates of each ranking */
    uint32_t *words;        /* likewise, words of 32 bits */
    int32_t *items;         /* likewise, and 1024 more, for the padding after the candidates */
    int32_t *keys;          /* (most_candidates rounded up to a power of two, 16) */
    double *exact;          /* (max(most_candidates, cutoff),) */
    int32_t *order;         /* likewise */
} threshold_sampler;

static size_t lay_out(threshold_sampler *sampler, uintptr_t memory, size_t n_items, size_t cutoff)
{
    /* at most as many candidates as the network sorts; longer cutoffs have other samplers */
    const size_t most = plr_most_candidates(cutoff);
    const size_t candidates = most < PLR_THRESHOLD_CANDIDATES ? most : PLR_THRESHOLD_CANDIDATES;
    const size_t rows = PLR_GROUP_SIZE * (candidates + 64);
    size_t sorted = PLR_BLOCK_ROWS;
    uintptr_t next = memory;
    while (sorted < candidates)
        sorted *= 2;
    plr_take(&next, sizeof *sampler);
    sampler->most_candidates = candidates;
    sampler->means = plr_take(&next, (n_items + STEP) * sizeof(float));
    sampler->thresholds = plr_take(&next, (n_items + STEP) * sizeof(uint32_t));
    sampler->found = plr_take(&next, rows * sizeof(uint32_t));
    sampler->words = plr_take(&next, rows * sizeof(uint32_t));
    sampler->items = plr_take(&next, (rows + 1024) * sizeof(int32_t));
    sampler->keys = plr_take(&next, sorted * PLR_GROUP_SIZE * sizeof(int32_t));
    sampler->exact = plr_take(&next, candidates * sizeof(double));
    sampler->order = plr_take(&next, candidates * sizeof(int32_t));
    return next - memory;
}

static size_t size(size_t n_items, size_t cutoff)
{
    threshold_sampler sampler;
    return lay_out(&sampler, 0, n_items, cutoff);
}

/* Set thresholds and means of as many items as a register holds doubles; return the means before scaling. */
PLR_INLINE vec_f64 describe_items(const threshold_sampler *sampler, size_t first, vec_f64 weight)
{
    vec_f64 mean = 1.0 / weight;
    vec_f64 waiting = vec_exp_flush(weight * -sampler->query.deadline) * 0x1p16;
    /* 1 - 2^-16 may be too low, but not too high */
    waiting = vec_min_f64(waiting, vec_all(65535.0));
    vec_half_i32 threshold = __builtin_convertvector(waiting, vec_half_i32) << 16;
    vec_half_f32 half = __builtin_convertvector(mean, vec_half_f32);
    memcpy(sampler->thresholds + first, &threshold, sizeof threshold);
    memcpy(sampler->means + first, &half, sizeof half);
    return mean;
}

static void prepare(void *sampler_, const group_query *query)
{
    threshold_sampler *sampler = sampler_;
    lay_out(sampler, (uintptr_t)sampler, query->n_items, query->cutoff);
    sampler->query = *query;
    const size_t n = query->n_items, padded = (n + STEP - 1) / STEP * STEP;
    vec_f64 largest = vec_all(1.0);
    for (size_t d = 0; d < n; d += PLR_LANES) {
        vec_f64 mean = describe_items(sampler, d, vec_load_some(sampler->query.weights + d, n - d, 1.0));
        largest = vec_max_f64(mean, largest);
    }
    for (size_t d = n; d < padded; d++)
        sampler->thresholds[d] = NEVER;
    sampler->format = make_key_format(sampler->most_candidates, (float)vec_largest(largest));
    for (size_t d = 0; d < n; d++)
        sampler->means[d] *= sampler->format.scale;
}

/* Append those among a register's candidates that reach their thresholds. */
PLR_INLINE size_t append(uint32_t *found, size_t n, vec_u32 candidate, const uint32_t *thresholds)
{
#if defined(PLR_ISA_AVX512)
    /* packing has no generic vector form */
    __mmask16 may_arrive = _mm512_cmpge_epu32_mask((__m512i)candidate, _mm512_loadu_si512(thresholds));
    _mm512_storeu_si512(found + n, _mm512_maskz_compress_epi32(may_arrive, (__m512i)candidate));
    return n + (size_t)__builtin_popcount(may_arrive);
#elif defined(PLR_ISA_AVX2)
    /* the indices of the wanted lanes, as bytes, form the permutation */
    __m256i threshold = _mm256_loadu_si256((const __m256i *)thresholds);
    __m256i reached = _mm256_cmpeq_epi32(_mm256_max_epu32((__m256i)candidate, threshold), (__m256i)candidate);
    uint64_t lanes = (uint64_t)_mm256_movemask_ps((__m256)reached);
    uint64_t wanted = _pext_u64(UINT64_C(0x0706050403020100), _pdep_u64(lanes, UINT64_C(0x0101010101010101)) * 0xff);
    __m256i order = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)wanted));
    _mm256_storeu_si256((__m256i *)(found + n), _mm256_permutevar8x32_epi32((__m256i)candidate, order));
    return n + (size_t)__builtin_popcount((unsigned)lanes);
#else
    for (size_t i = 0; i < PLR_LANES_32; i++) {
        found[n] = candidate[i];
        n += candidate[i] >= thresholds[i];
    }
    return n;
#endif
}

/* Find the candidates among n_items of a chunk, in order; return their number, which exceeds `room` if they do not
 * fit. */
PLR_INLINE size_t find_in_chunk(plr_stream_state *state, const uint32_t *thresholds, size_t n_items, uint32_t *found,
                                size_t room)
{
    size_t n = 0;
    vec_u32 item = {0};
    for (uint32_t lane = 0; lane < PLR_LANES_32; lane++)
        item[lane] = lane;
    for (size_t d = 0; d < n_items; d += STEP) {
        plr_lanes step = plr_stream_step_32(state);
        n = n <= room ? n : room + 1;
        for (int part = 0; part < PLR_STREAM_PARTS; part++) {
            n = append(found, n, (vec_u32)step.part[part] << 16 | item, thresholds + d + part * PLR_LANES_32);
            item += PLR_LANES_32;
        }
        for (int part = 0; part < PLR_STREAM_PARTS; part++) {
            n = append(found, n, ((vec_u32)step.part[part] & 0xffff0000) | item,
                       thresholds + d + PLR_GROUP_SIZE + part * PLR_LANES_32);
            item += PLR_LANES_32;
        }
    }
    return n;
}

/* Find all candidates of one ranking, and the first items of their chunks. Returns their number, or 0 if they do not
 * fit. */
PLR_INLINE size_t find_candidates(const threshold_sampler *sampler, plr_stream_state *state, uint32_t *found,
                                  int32_t *items)
{
    size_t n = 0;
    for (size_t first = 0; first < sampler->query.n_items; first += CHUNK) {
        const size_t left = sampler->query.n_items - first, before = n;
        n += find_in_chunk(state, sampler->thresholds + first, left < CHUNK ? left : CHUNK, found + n,
                           sampler->most_candidates - n);
        if (n > sampler->most_candidates)
            return 0;
        for (size_t i = before; i < n; i++)
            items[i] = (int32_t)first;
    }
    return n;
}

/* Transpose rows of sixteen keys, a square of a register's width at a time: first halves of rows that far apart change
 * places, then quarters, and so on. */
#define KEPT(lane, distance) ((lane) & (distance) ? PLR_LANES_32 + (lane) - (distance) : (lane))
#define MOVED(lane, distance) ((lane) & (distance) ? PLR_LANES_32 + (lane) : (lane) + (distance))
#define CHANGE_PLACES(v, distance)                                  \
    PLR_UNROLL                                                      \
    for (int i = 0; i < PLR_LANES_32; i++)                          \
        if (!(i & (distance))) {                                    \
            vec_i32 a = v[i], b = v[i + (distance)];                \
            v[i] = vec_shuffle_i32(a, b, KEPT, distance);           \
            v[i + (distance)] = vec_shuffle_i32(a, b, MOVED, distance); \
        }

PLR_INLINE void transpose(const int32_t *square, int32_t *transposed)
{
    for (size_t row = 0; row < PLR_GROUP_SIZE; row += PLR_LANES_32)
        for (size_t column = 0; column < PLR_GROUP_SIZE; column += PLR_LANES_32) {
            vec_i32 v[PLR_LANES_32];
            PLR_UNROLL
            for (int i = 0; i < PLR_LANES_32; i++)
                v[i] = load_row(square + column, row + i);
#if PLR_LANES_32 > 8
            CHANGE_PLACES(v, 8)
#endif
#if PLR_LANES_32 > 4
            CHANGE_PLACES(v, 4)
#endif
            CHANGE_PLACES(v, 2)
            CHANGE_PLACES(v, 1)
            PLR_UNROLL
            for (int i = 0; i < PLR_LANES_32; i++)
                store_row(transposed + row, column + i, v[i]);
        }
}

/* Make n_rows rows of keys for the candidates of all rankings of the group, the largest number that a ranking has:
 * words of 32 bits, items and arrival times, sixteen candidates at a time. No branch depends on the other numbers. */
PLR_INLINE void make_candidate_keys(const threshold_sampler *sampler, const sorted_group *group,
                                    plr_stream_state *state, const uint32_t *n_candidates, size_t n_rows,
                                    int32_t *keys)
{
    vec_i32 rarest = (vec_i32){0} + INT32_MAX, slot;
    for (int lane = 0; lane < PLR_LANES_32; lane++)
        slot[lane] = lane;
    for (size_t first = 0; first < n_rows; first += PLR_GROUP_SIZE) {
        int32_t square[PLR_GROUP_SIZE * PLR_GROUP_SIZE];
        for (size_t sample = 0; sample < PLR_GROUP_SIZE; sample++) {
            plr_lanes step = plr_stream_step_32(state);
            for (int part = 0; part < PLR_STREAM_PARTS; part++) {
                const size_t at = sample * group->sample_step + first + part * PLR_LANES_32;
                vec_i32 here = slot + part * PLR_LANES_32;
                vec_i32 behind = (vec_i32)(here >= (int32_t)n_candidates[sample]);
                vec_i32 candidate = vec_load_i32((const int32_t *)sampler->found + at);
                candidate = (candidate & ~behind) | (behind & 1 << 30);
                vec_i32 item = candidate & 0xffff;
                vec_i32 word = candidate ^ item ^ ((vec_i32)step.part[part] & 0xffff);
                item += vec_load_i32(group->items + at) & ~behind;
                vec_f32 mean = (vec_f32)vec_gather(sampler->means, (vec_u32)item);
                vec_f32 arrival = exponential_f32(word, &rarest) * mean;
                vec_store_i32((int32_t *)sampler->words + at, word);
                vec_store_i32(sampler->items + at, item);
                vec_i32 key = arrival_key(arrival, group->format.shift, group->format.slot_mask, here);
                vec_store_i32(square + sample * PLR_GROUP_SIZE + part * PLR_LANES_32,
                              (key & ~behind) | (behind & PLR_NO_KEY));
            }
        }
        transpose(square, keys + first * PLR_GROUP_SIZE);
        slot += PLR_GROUP_SIZE;
    }
    if (vec_any(rarest < PLR_RARE_WORD))
        for (size_t sample = 0; sample < PLR_GROUP_SIZE; sample++)
            for (size_t i = 0; i < n_candidates[sample]; i++)
                if (is_rare_word(group->words[sample * group->sample_step + i]))
                    keys[i * PLR_GROUP_SIZE + sample] =
                        exact_key(group->format, exact_arrival(group, sample, i), (int32_t)i);
}

/* Draw one ranking again with all arrival times in double precision, from the same 16 bits of each item, the same 16
 * further bits of each candidate (unless `unseen`, when they did not fit), and new bits for the rest. */
static void draw_exactly(const threshold_sampler *sampler, plr_stream_state state, const sorted_group *group,
                         size_t sample, int unseen)
{
    race r = {sampler->exact, group->columns + sample, sampler->query.cutoff, 0};
    const uint32_t *words = group->words + sample * group->sample_step;
    const uint64_t number = group->first_sample + sample;
    uint32_t step[PLR_GROUP_SIZE];
    for (size_t d = 0; d < sampler->query.n_items; d++) {
        const uint32_t in_chunk = (uint32_t)(d % CHUNK);
        if (in_chunk % STEP == 0) {
            plr_lanes lanes = plr_stream_step_32(&state);
            memcpy(step, &lanes, sizeof step);
        }
        uint32_t word = step[d % PLR_GROUP_SIZE];
        word = in_chunk / PLR_GROUP_SIZE % 2 == 0 ? word << 16 : word & 0xffff0000;
        if (!unseen && (word | in_chunk) >= sampler->thresholds[d])
            word = *words++;
        else
            word |= (uint32_t)(plr_mix64(~group->salt + (number << 32 | d)) >> 48);
        enter_race(&r, exact_exponential(word, group->salt, number, d) / sampler->query.weights[d], (int32_t)d);
    }
}

static void draw_group(void *sampler_, plr_stream *stream, uint64_t salt, uint64_t first_sample, size_t n_lanes,
                       int32_t *columns)
{
    const threshold_sampler *sampler = sampler_;
    (void)n_lanes;
    const size_t cutoff = sampler->query.cutoff, row = sampler->most_candidates + 64;
    size_t most = 0, n_sorted = PLR_BLOCK_ROWS;
    uint32_t n_candidates[PLR_GROUP_SIZE];
    plr_stream_state states[PLR_GROUP_SIZE], state = plr_stream_load(stream);
    int32_t *keys = sampler->keys;
    while (n_sorted < cutoff + 1)
        n_sorted *= 2;
    sorted_group group = {sampler->format, keys, n_sorted, cutoff, sampler->words, sampler->items, 1, row,
                          sampler->query.weights, salt, first_sample, sampler->exact, sampler->order, columns};
    for (size_t sample = 0; sample < PLR_GROUP_SIZE; sample++) {
        states[sample] = state;
        size_t n = find_candidates(sampler, &state, sampler->found + sample * row, sampler->items + sample * row);
        n_candidates[sample] = (uint32_t)n;
        most = n > most ? n : most;
    }
    most = (most + PLR_GROUP_SIZE - 1) / PLR_GROUP_SIZE * PLR_GROUP_SIZE;
    make_candidate_keys(sampler, &group, &state, n_candidates, most, keys);
    plr_stream_store(stream, &state);
    for (size_t i = most; i % n_sorted != 0 || i == 0; i++)
        for (size_t lane = 0; lane < PLR_GROUP_SIZE; lane += PLR_LANES_32)
            store_row(keys + lane, i, (vec_i32){0} + PLR_NO_KEY);
    sort_keys(keys, most, n_sorted);

    int32_t near[PLR_GROUP_SIZE];
    const uint32_t deadline = (uint32_t)exact_key(group.format, sampler->query.deadline, 0) >> group.format.slot_bits;
    read_ranks(&group, near, 1);
    for (size_t sample = 0; sample < PLR_GROUP_SIZE; sample++) {
        uint32_t last = (uint32_t)keys[(cutoff - 1) * PLR_GROUP_SIZE + sample] >> group.format.slot_bits;
        if (n_candidates[sample] < cutoff || last + group.format.nearest >= deadline)
            draw_exactly(sampler, states[sample], &group, sample, n_candidates[sample] == 0);
        else if (near[sample])
            repair_sample(&group, sample, n_candidates[sample]);
    }
}

const threshold_kernels ISA(threshold_kernels) = {size, prepare, draw_group};
