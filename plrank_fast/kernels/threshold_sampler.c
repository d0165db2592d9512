/* The K clocks that ring first are sought among the candidates, those that ring before a deadline t. Whether a clock
 * does is a comparison of its random word with an integer, 2^32 exp(-w t): no logarithm for the others, which are most.
 * If the K-th candidate rings clearly before the deadline the others cannot come before it. Otherwise, or if there are
 * too many candidates, the ranking is drawn again from the same words with every clock in double precision.
 */
#include "threshold_sampler.h"
#include "near_ties.h"
#include "race.h"

static int prepare(threshold_sampler *sampler)
{
    const size_t n = sampler->n_items, padded = (n + 15) / 16 * 16;
    const double wanted = plr_mean_candidates(sampler->cutoff);
    double total = 0.0, time, arrived = 0.0;
    if (wanted > 0.8 * (double)n)
        return 0;
    for (size_t d = 0; d < n; d++)
        total += sampler->weights[d];
    /* Newton's method on the concave sum of 1 - exp(-w t), which approaches the root from below */
    time = wanted / total;
    for (int iteration = 0; iteration < 30; iteration++) {
        double rate = 0.0;
        arrived = 0.0;
        for (size_t d = 0; d < n; d += PLR_LANES) {
            vec_f64 w = {0};
            memcpy(&w, sampler->weights + d, (n - d < PLR_LANES ? n - d : PLR_LANES) * sizeof(double));
            vec_f64 silent = vec_exp(vec_clamp(w * -time, -708.0));
            for (int lane = 0; lane < PLR_LANES; lane++) {
                arrived += 1.0 - silent[lane];
                rate += w[lane] * silent[lane];
            }
        }
        if (arrived > 0.98 * wanted)
            break;
        time += (wanted - arrived) / rate;
    }
    if (!(arrived > 0.98 * wanted && time < 1e30))
        return 0;
    sampler->deadline = time;
    memset(sampler->items, 0, (16 * (sampler->most_candidates + 16) + 1024) * sizeof *sampler->items);
    sampler->largest_mean = 1.0f;
    for (size_t d = 0; d < padded; d += PLR_LANES) {
        vec_f64 w = {0};
        if (d < n)
            memcpy(&w, sampler->weights + d, (n - d < PLR_LANES ? n - d : PLR_LANES) * sizeof(double));
        vec_f64 threshold = vec_exp(vec_clamp(w * -time, -708.0)) * 0x1p32;
        for (size_t lane = 0; lane < PLR_LANES; lane++) {
            size_t item = d + lane;
            float mean = item < n ? (float)(1.0 / w[lane]) : INFINITY;
            sampler->thresholds[item] =
                item < n && threshold[lane] < 0x1p32 - 1 ? (uint32_t)threshold[lane] : UINT32_MAX;
            sampler->means[item] = mean;
            if (item < n && mean > sampler->largest_mean)
                sampler->largest_mean = mean;
        }
    }
    const float scale = make_key_format(sampler->most_candidates, sampler->largest_mean).scale;
    for (size_t d = 0; d < padded; d++)
        sampler->means[d] *= scale;
    return 1;
}

/* Append the candidates among sixteen items to a ranking's. */
PLR_INLINE size_t append(const threshold_sampler *sampler, plr_lanes step, size_t first_item, uint32_t *words,
                         int32_t *items, size_t n)
{
#ifdef PLR_ISA_AVX512
    /* compression has no generic vector form; a ranking of D = 316, K = 10 takes 120 ns,
     * with the loop below 390 */
    const __m512i sixteen = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i word = (__m512i)step.part[0];
    __mmask16 rings = _mm512_cmpge_epu32_mask(word, _mm512_loadu_si512(sampler->thresholds + first_item));
    __m512i item = _mm512_add_epi32(sixteen, _mm512_set1_epi32((int)first_item));
    _mm512_storeu_si512(words + n, _mm512_maskz_compress_epi32(rings, word));
    _mm512_storeu_si512(items + n, _mm512_maskz_compress_epi32(rings, item));
    return n + (size_t)__builtin_popcount(rings);
#else
    uint32_t word[16];
    memcpy(word, &step, sizeof word);
    for (size_t i = 0; i < 16; i++) {
        words[n] = word[i];
        items[n] = (int32_t)(first_item + i);
        n += word[i] >= sampler->thresholds[first_item + i];
    }
    return n;
#endif
}

/* Candidates of one ranking, followed by words that are not rare; more than most_candidates if there is no
 * room for them. */
static size_t find_candidates(const threshold_sampler *sampler, plr_stream_state *state, uint32_t *words,
                              int32_t *items)
{
    size_t n = 0;
    for (size_t d = 0; d < sampler->n_items; d += 16) {
        size_t at = n < sampler->most_candidates ? n : sampler->most_candidates;
        n += append(sampler, plr_stream_step(state), d, words, items, at) - at;
    }
    /* the padding's threshold is reached by one word in 4e9; its items are the last */
    while (n > 0 && n <= sampler->most_candidates && (size_t)items[n - 1] >= sampler->n_items)
        n--;
    if (n <= sampler->most_candidates)
        for (size_t i = 0; i < 16; i++)
            words[n + i] = UINT32_C(1) << 30;
    return n;
}

PLR_INLINE vec_f32 gather(const float *table, const int32_t *at)
{
#if defined(PLR_ISA_AVX512)
    return (vec_f32)_mm512_i32gather_ps(_mm512_loadu_si512(at), table, 4);
#else
    vec_f32 v;
    for (int lane = 0; lane < PLR_LANES_32; lane++)
        v[lane] = table[at[lane]];
    return v;
#endif
}

/* Keys of one ranking's candidates, one column of the group's; up to a register's width of rows behind them is
 * spoilt. */
static void make_keys(const threshold_sampler *sampler, const sorted_group *group, size_t sample, size_t n,
                      int32_t *keys)
{
    const uint32_t *words = group->words + sample * group->sample_step;
    const int32_t *items = group->items + sample * group->sample_step;
    vec_i32 slot, rarest = (vec_i32){0} + INT32_MAX;
    for (int lane = 0; lane < PLR_LANES_32; lane++)
        slot[lane] = lane;
    for (size_t i = 0; i < n; i += PLR_LANES_32) {
        int32_t key[PLR_LANES_32];
        vec_f32 clock = exponential_clock(vec_load_i32((const int32_t *)words + i), &rarest);
        clock *= gather(sampler->means, items + i);
        vec_store_i32(key, clock_key(clock, group->format.shift, group->format.slot_mask, slot));
        PLR_UNROLL
        for (size_t lane = 0; lane < PLR_LANES_32; lane++)
            keys[(i + lane) * PLR_LOCKSTEP + sample] = key[lane];
        slot += PLR_LANES_32;
    }
    if (vec_any(rarest < PLR_RARE_WORD))
        for (size_t i = 0; i < n; i++)
            if (is_rare_word(words[i]))
                keys[i * PLR_LOCKSTEP + sample] = exact_key(group->format, exact_clock(group, sample, i), (int32_t)i);
}

/* Draw one ranking from the same words with all clocks in double precision. */
static void draw_exactly(const threshold_sampler *sampler, plr_stream_state state, uint64_t salt, uint64_t sample,
                         int32_t *column)
{
    race r = {sampler->exact, column, sampler->cutoff, 0};
    uint32_t word[16];
    for (size_t d = 0; d < sampler->n_items; d++) {
        if (d % 16 == 0) {
            plr_lanes step = plr_stream_step(&state);
            memcpy(word, &step, sizeof word);
        }
        enter_race(&r, exact_exponential(word[d % 16], salt, sample, d) / sampler->weights[d], (int32_t)d);
    }
}

static void draw_group(threshold_sampler *sampler, plr_stream *stream, uint64_t salt, uint64_t first_sample,
                       int32_t *columns)
{
    const size_t cutoff = sampler->cutoff, row = sampler->most_candidates + 16;
    size_t n_candidates[PLR_LOCKSTEP], most = 0, n_sorted = PLR_BLOCK_ROWS;
    plr_stream_state states[PLR_LOCKSTEP], state = plr_stream_load(stream);
    int32_t *keys = sampler->keys;
    sorted_group group = {make_key_format(sampler->most_candidates, sampler->largest_mean), keys, 0, cutoff,
                          sampler->words, sampler->items, 1, row, sampler->weights, salt, first_sample,
                          sampler->exact, sampler->order, columns};
    while (n_sorted < cutoff + 1)
        n_sorted *= 2;
    group.n_sorted = n_sorted;
    for (size_t sample = 0; sample < PLR_LOCKSTEP; sample++) {
        states[sample] = state;
        n_candidates[sample] = find_candidates(sampler, &state, sampler->words + sample * row,
                                               sampler->items + sample * row);
        if (n_candidates[sample] > sampler->most_candidates)
            n_candidates[sample] = 0;
        most = n_candidates[sample] > most ? n_candidates[sample] : most;
    }
    plr_stream_store(stream, &state);
    /* all columns equally long */
    size_t padded = (most + n_sorted - 1) / n_sorted * n_sorted;
    padded = padded > 0 ? padded : n_sorted;
    for (size_t sample = 0; sample < PLR_LOCKSTEP; sample++) {
        make_keys(sampler, &group, sample, n_candidates[sample], keys);
        for (size_t i = n_candidates[sample]; i < padded; i++)
            keys[i * PLR_LOCKSTEP + sample] = PLR_NO_KEY;
    }
    sort_smallest(keys, most, n_sorted);

    int32_t near[PLR_LOCKSTEP];
    const uint32_t deadline = (uint32_t)exact_key(group.format, sampler->deadline, 0) >> group.format.slot_bits;
    read_ranks(&group, near, 1);
    for (size_t sample = 0; sample < PLR_LOCKSTEP; sample++) {
        uint32_t last = (uint32_t)keys[(cutoff - 1) * PLR_LOCKSTEP + sample] >> group.format.slot_bits;
        if (n_candidates[sample] < cutoff || last + group.format.nearest >= deadline)
            draw_exactly(sampler, states[sample], salt, first_sample + sample, columns + sample);
        else if (near[sample])
            repair_sample(&group, sample, n_candidates[sample]);
    }
}

const threshold_kernels ISA(threshold_kernels) = {prepare, draw_group};
