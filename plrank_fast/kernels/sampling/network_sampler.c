#include "sampling/network_sampler.h"
#include "sampling/near_ties.h"

static void prepare(network_sampler *sampler)
{
    size_t wanted = sampler->cutoff < sampler->n_items ? sampler->cutoff + 1 : sampler->n_items;
    sampler->n_sorted = PLR_BLOCK_ROWS;
    while (sampler->n_sorted < wanted)
        sampler->n_sorted *= 2;
    sampler->largest_mean = 1.0f;
    for (size_t d = 0; d < sampler->n_items; d++) {
        sampler->means[d] = (float)(1.0 / sampler->weights[d]);
        sampler->largest_mean = sampler->means[d] > sampler->largest_mean ? sampler->means[d] : sampler->largest_mean;
    }
    const float scale = make_key_format(sampler->n_items, sampler->largest_mean).scale;
    for (size_t d = 0; d < sampler->n_items; d++)
        sampler->means[d] *= scale;
}

/* Replace the keys of words that are almost 0 or 2^32, from 64 bits. About 1 group of 16 x 120 in 17 has one. */
static void replace_rare_keys(const sorted_group *group, int32_t *keys, size_t n_items)
{
    for (size_t d = 0; d < n_items; d++) {
        const uint32_t *words = group->words + d * PLR_GROUP_SIZE;
        int any = 0;
        for (size_t sample = 0; sample < PLR_GROUP_SIZE; sample++)
            any |= is_rare_word(words[sample]);
        if (any)
            for (size_t sample = 0; sample < PLR_GROUP_SIZE; sample++)
                if (is_rare_word(words[sample]))
                    keys[d * PLR_GROUP_SIZE + sample] =
                        exact_key(group->format, exact_arrival(group, sample, d), (int32_t)d);
    }
}

/* Compute the keys of all items from their words; return the least distance of a word from 0 or 2^32. This loop is
 * separate from the one that draws the words: with 16 registers, the generator's state would displace the constants of
 * the logarithm. */
PLR_INLINE vec_i32 make_keys(const network_sampler *sampler, int shift, int32_t slot_mask)
{
    vec_i32 rarest = (vec_i32){0} + INT32_MAX;
    for (size_t lane = 0; lane < PLR_GROUP_SIZE; lane += PLR_LANES_32) {
        vec_i32 slot = {0};
        for (size_t d = 0; d < sampler->n_items; d++) {
            vec_i32 word = load_row((int32_t *)sampler->words + lane, d);
            vec_f32 arrival = exponential_f32(word, &rarest) * sampler->means[d];
            store_row(sampler->keys + lane, d, arrival_key(arrival, shift, slot_mask, slot));
            slot += 1;
        }
    }
    return rarest;
}

static void draw_group(network_sampler *sampler, plr_stream *stream, uint64_t salt, uint64_t first_sample,
                       int32_t *columns)
{
    const size_t n = sampler->n_items, cutoff = sampler->cutoff;
    const key_format format = make_key_format(n, sampler->largest_mean);
    const sorted_group group = {format, sampler->keys, sampler->n_sorted, cutoff, sampler->words, NULL, PLR_GROUP_SIZE,
                                1, sampler->weights, salt, first_sample, sampler->exact, sampler->order, columns};
    int32_t *keys = sampler->keys;
    plr_stream_state state = plr_stream_load(stream);
    for (size_t d = 0; d < n; d++) {
        plr_lanes step = plr_stream_step_32(&state);
        memcpy(sampler->words + d * PLR_GROUP_SIZE, &step, sizeof step);
    }
    plr_stream_store(stream, &state);
    vec_i32 rarest =
        format.shift == 2 ? make_keys(sampler, 2, format.slot_mask) : make_keys(sampler, 1, format.slot_mask);
    if (vec_any(rarest < PLR_RARE_WORD))
        replace_rare_keys(&group, keys, n);
    size_t padded = (n + sampler->n_sorted - 1) / sampler->n_sorted * sampler->n_sorted;
    for (size_t i = n * PLR_GROUP_SIZE; i < padded * PLR_GROUP_SIZE; i++)
        keys[i] = PLR_NO_KEY;

    sort_smallest(keys, n, sampler->n_sorted);

    int32_t near[PLR_GROUP_SIZE];
    if (read_ranks(&group, near, cutoff < n))
        for (size_t sample = 0; sample < PLR_GROUP_SIZE; sample++)
            if (near[sample])
                repair_sample(&group, sample, n);
}

const network_kernels ISA(network_kernels) = {prepare, draw_group};
