#include "network_sampler.h"
#include "clock_keys.h"

typedef struct {
    network_sampler *sampler;
    key_format format;
    uint64_t salt, first_sample;
    int32_t *columns;
} group;

static double exact_clock(const group *g, size_t lane, size_t item)
{
    const network_sampler *sampler = g->sampler;
    return exact_exponential(sampler->words[item * PLR_LOCKSTEP + lane], g->salt, g->first_sample + lane, item) /
           sampler->weights[item];
}

/* Clocks from words that are almost 0 or 2^32, out of 64 bits. About 1 group of 16 x 120 in 17 has one. */
static void replace_rare_keys(const group *g)
{
    const network_sampler *sampler = g->sampler;
    for (size_t d = 0; d < sampler->n_items; d++) {
        for (size_t lane = 0; lane < PLR_LOCKSTEP; lane++) {
            uint32_t word = sampler->words[d * PLR_LOCKSTEP + lane];
            if (word + PLR_RARE_WORD >= 2 * PLR_RARE_WORD)
                continue;
            float clock = (float)exact_clock(g, lane, d);
            int32_t bits;
            memcpy(&bits, &clock, sizeof bits);
            int32_t above = bits > g->format.lowest ? bits - g->format.lowest : 0;
            sampler->keys[d * PLR_LOCKSTEP + lane] =
                (int32_t)(((uint32_t)above << g->format.shift) & ~(uint32_t)g->format.slot_mask) | (int32_t)d;
        }
    }
}

/* Sort items by their exact clocks (insertion: runs are short, and all items of a sample are seldom asked for). */
static void sort_exactly(const group *g, size_t lane, int32_t *items, size_t n)
{
    double *clocks = g->sampler->exact;
    for (size_t i = 0; i < n; i++) {
        int32_t item = items[i];
        double clock = exact_clock(g, lane, item);
        size_t j = i;
        for (; j > 0 && clocks[j - 1] > clock; j--) {
            clocks[j] = clocks[j - 1];
            items[j] = items[j - 1];
        }
        clocks[j] = clock;
        items[j] = item;
    }
}

/* Order again, exactly, every run of near ties in one sample. */
static void repair_sample(const group *g, size_t lane)
{
    const network_sampler *sampler = g->sampler;
    const uint32_t *keys = (const uint32_t *)sampler->keys + lane;
    int32_t *order = sampler->order;
    size_t known = sampler->n_sorted < sampler->n_items ? sampler->n_sorted : sampler->n_items;
    for (size_t start = 0, stop; start < sampler->depth; start = stop) {
        for (stop = start + 1; stop < known; stop++) {
            uint32_t here = keys[stop * PLR_LOCKSTEP] >> g->format.slot_bits;
            uint32_t before = keys[(stop - 1) * PLR_LOCKSTEP] >> g->format.slot_bits;
            if (here - before > g->format.nearest)
                break;
        }
        if (stop - start == 1)
            continue;
        int redo = stop == known && known < sampler->n_items; /* the run may go on among the unsorted */
        size_t first = redo ? 0 : start;
        size_t n = redo ? sampler->n_items : stop - start;
        for (size_t i = 0; i < n; i++)
            order[i] = redo ? (int32_t)i : (int32_t)keys[(start + i) * PLR_LOCKSTEP] & g->format.slot_mask;
        sort_exactly(g, lane, order, n);
        for (size_t i = 0; i < n && first + i < sampler->depth; i++)
            g->columns[(first + i) * PLR_LOCKSTEP + lane] = order[i];
    }
}

static void draw_group(network_sampler *sampler, plr_stream *stream, uint64_t salt, uint64_t first_sample,
                       int32_t *columns)
{
    const size_t n = sampler->n_items, depth = sampler->depth;
    const group g = {sampler, make_key_format(n, sampler->largest_mean), salt, first_sample, columns};
    int32_t *keys = sampler->keys;
    plr_stream_state state = plr_stream_load(stream);
    for (size_t d = 0; d < n; d++) {
        plr_lanes step = plr_stream_step(&state);
        memcpy(sampler->words + d * PLR_LOCKSTEP, &step, sizeof step);
    }
    plr_stream_store(stream, &state);
    /* a loop of its own: with 16 registers the generator's state would push the constants of the logarithm out */
    vec_i32 rarest = (vec_i32){0} + INT32_MAX;
    for (size_t lane = 0; lane < PLR_LOCKSTEP; lane += PLR_LANES_32) {
        vec_i32 slot = {0};
        for (size_t d = 0; d < n; d++) {
            vec_i32 word = load_row((int32_t *)sampler->words + lane, d);
            vec_f32 clock = exponential_clock(word, &rarest) * sampler->means[d];
            store_row(keys + lane, d, clock_key(g.format, clock, slot));
            slot += 1;
        }
    }
    if (vec_any(rarest < PLR_RARE_WORD))
        replace_rare_keys(&g);
    size_t padded = (n + sampler->n_sorted - 1) / sampler->n_sorted * sampler->n_sorted;
    for (size_t i = n * PLR_LOCKSTEP; i < padded * PLR_LOCKSTEP; i++)
        keys[i] = INT32_MAX;

    sort_smallest(keys, n, sampler->n_sorted);

    vec_u32 tied[PLR_LOCKSTEP / PLR_LANES_32] = {0};
    for (size_t lane = 0; lane < PLR_LOCKSTEP; lane += PLR_LANES_32) {
        vec_u32 before = (vec_u32){0} - (1 << 16);
        vec_i32 near = {0};
        /* rank `depth` itself matters too: the item there may belong before it */
        for (size_t k = 0; k < depth + (depth < n); k++) {
            vec_i32 key = load_row(keys + lane, k);
            vec_u32 value = (vec_u32)key >> g.format.slot_bits;
            near |= value - before <= g.format.nearest;
            before = value;
            if (k < depth)
                vec_store_i32(columns + k * PLR_LOCKSTEP + lane, key & g.format.slot_mask);
        }
        tied[lane / PLR_LANES_32] = (vec_u32)near;
    }
    for (size_t lane = 0; lane < PLR_LOCKSTEP; lane++)
        if (tied[lane / PLR_LANES_32][lane % PLR_LANES_32])
            repair_sample(&g, lane);
}

static void prepare(network_sampler *sampler)
{
    size_t wanted = sampler->depth < sampler->n_items ? sampler->depth + 1 : sampler->n_items;
    sampler->n_sorted = PLR_BLOCK_ROWS;
    while (sampler->n_sorted < wanted)
        sampler->n_sorted *= 2;
    sampler->largest_mean = 1.0f;
    for (size_t d = 0; d < sampler->n_items; d++) {
        float mean = (float)(1.0 / sampler->weights[d]);
        sampler->means[d] = mean;
        sampler->largest_mean = mean > sampler->largest_mean ? mean : sampler->largest_mean;
    }
}

const network_kernels ISA(network_kernels) = {prepare, draw_group};
