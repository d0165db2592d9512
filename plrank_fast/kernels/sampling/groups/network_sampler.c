/* Rankings of up to 1024 items by their arrival times and a sorting network, a group of sixteen samples at a time. */
#include "sampling/groups/group_samplers.h"
#include "sampling/near_ties.h"

typedef struct {
    group_query query;
    size_t n_sorted;       /* rows that the network sorts: all, or a power of two above the cutoff */
    float *means;          /* 1 / weight, scaled for the keys */
    float largest_mean;
    uint32_t *words;       /* (n_items, 16) random words of the group */
    int32_t *keys;         /* (n_items rounded up to a power of two, 16) */
    double *exact;         /* (n_items,) */
    int32_t *order;        /* (n_items,) */
} network_sampler;

static size_t lay_out(network_sampler *sampler, uintptr_t memory, size_t n_items)
{
    uintptr_t next = memory;
    size_t rows = PLR_BLOCK_ROWS;
    while (rows < n_items)
        rows *= 2;
    plr_take(&next, sizeof *sampler);
    sampler->means = plr_take(&next, n_items * sizeof(float));
    sampler->exact = plr_take(&next, n_items * sizeof(double));
    sampler->order = plr_take(&next, n_items * sizeof(int32_t));
    sampler->words = plr_take(&next, n_items * PLR_GROUP_SIZE * sizeof(uint32_t));
    sampler->keys = plr_take(&next, rows * PLR_GROUP_SIZE * sizeof(int32_t));
    return next - memory;
}

static size_t size(size_t n_items, size_t cutoff)
{
    network_sampler sampler;
    (void)cutoff;
    return lay_out(&sampler, 0, n_items < PLR_NETWORK_ITEMS ? n_items : PLR_NETWORK_ITEMS);
}

static void prepare(void *sampler_, const group_query *query)
{
    network_sampler *sampler = sampler_;
    lay_out(sampler, (uintptr_t)sampler, query->n_items);
    sampler->query = *query;
    size_t wanted = sampler->query.cutoff < sampler->query.n_items ? sampler->query.cutoff + 1 : sampler->query.n_items;
    sampler->n_sorted = PLR_BLOCK_ROWS;
    while (sampler->n_sorted < wanted)
        sampler->n_sorted *= 2;
    sampler->largest_mean = 1.0f;
    for (size_t d = 0; d < sampler->query.n_items; d++) {
        sampler->means[d] = (float)(1.0 / sampler->query.weights[d]);
        sampler->largest_mean = sampler->means[d] > sampler->largest_mean ? sampler->means[d] : sampler->largest_mean;
    }
    const float scale = make_key_format(sampler->query.n_items, sampler->largest_mean).scale;
    for (size_t d = 0; d < sampler->query.n_items; d++)
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
        for (size_t d = 0; d < sampler->query.n_items; d++) {
            vec_i32 word = load_row((int32_t *)sampler->words + lane, d);
            vec_f32 arrival = exponential_f32(word, &rarest) * sampler->means[d];
            store_row(sampler->keys + lane, d, arrival_key(arrival, shift, slot_mask, slot));
            slot += 1;
        }
    }
    return rarest;
}

static void draw_group(void *sampler_, plr_stream *stream, uint64_t salt, uint64_t first_sample, size_t n_lanes,
                       int32_t *columns)
{
    const network_sampler *sampler = sampler_;
    (void)n_lanes;
    const size_t n = sampler->query.n_items, cutoff = sampler->query.cutoff;
    const key_format format = make_key_format(n, sampler->largest_mean);
    const sorted_group group = {format, sampler->keys, sampler->n_sorted, cutoff, sampler->words, NULL, PLR_GROUP_SIZE,
                                1, sampler->query.weights, salt, first_sample, sampler->exact, sampler->order, columns};
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

    sort_keys(keys, n, sampler->n_sorted);

    int32_t near[PLR_GROUP_SIZE];
    if (read_ranks(&group, near, cutoff < n))
        for (size_t sample = 0; sample < PLR_GROUP_SIZE; sample++)
            if (near[sample])
                repair_sample(&group, sample, n);
}

const network_kernels ISA(network_kernels) = {size, prepare, draw_group};
