/* One draw: a uniform number names a point of the cumulative weight of blocks; the guide leads to a block at or just
 * before it, and a second number picks an item in the block. Every step waits for memory, so draws go through it
 * together, each step fetching what the next one needs: 20 ns a draw at 1e4 items, 60 to 100 at
 * 1e6, and no pass over them.
 */
#include "sampling/guide_table.h"

#include "sampling/race.h"

static void prepare(guide_table *table)
{
    const size_t n = table->n_items, n_blocks = plr_guide_blocks(n);
    double before = 0.0;
    table->n_blocks = n_blocks;
    table->guide_bits = plr_bits_for(n_blocks);
    table->cumulative[0] = 0.0;
    for (size_t b = 0; b < n_blocks; b++) {
        const double *w = table->weights + b * PLR_GUIDE_BLOCK;
        double sum[4] = {0.0, 0.0, 0.0, 0.0};
        size_t length = n - b * PLR_GUIDE_BLOCK < PLR_GUIDE_BLOCK ? n - b * PLR_GUIDE_BLOCK : PLR_GUIDE_BLOCK;
        for (size_t i = 0; i < length; i++)
            sum[i % 4] += w[i];
        before += (sum[0] + sum[1]) + (sum[2] + sum[3]);
        table->cumulative[b + 1] = before;
    }
    const size_t entries = (size_t)1 << table->guide_bits;
    const double width = before / (double)entries;
    for (size_t j = 0, b = 0; j < entries; j++) {
        while (b + 1 < n_blocks && table->cumulative[b + 1] <= (double)j * width)
            b++;
        /* one block early where rounding might have gone past it; the draw walks on */
        table->guide[j] = (uint32_t)(b > 0 ? b - (table->cumulative[b] >= (double)j * width) : 0);
    }
    memset(table->seen, 0, sizeof *table->seen << table->seen_bits);
    table->ranking = 0;
}

static inline double uniform(uint64_t word)
{
    return ((double)(word >> 11) + 0.5) * 0x1p-53;
}

/* Items of n draws; words[i] picks the block and words[i + 16 of its row] the item. */
static void draw_items(const guide_table *table, const uint64_t *words, size_t n_rows, int32_t *items)
{
    const double total = table->cumulative[table->n_blocks];
    const size_t n = n_rows * PLR_GROUP_SIZE;
    const int shift = 64 - table->guide_bits;
#define WORD(i, second) \
    words[(i) / PLR_GROUP_SIZE * 2 * PLR_GROUP_SIZE + (second) * PLR_GROUP_SIZE + (i) % PLR_GROUP_SIZE]
#define ENTRY(i) (shift < 64 ? WORD(i, 0) >> shift : 0)
    for (size_t i = 0; i < n; i++)
        __builtin_prefetch(table->guide + ENTRY(i));
    for (size_t i = 0; i < n; i++) {
        items[i] = (int32_t)table->guide[ENTRY(i)];
        __builtin_prefetch(table->cumulative + items[i] + 1);
    }
    for (size_t i = 0; i < n; i++) {
        size_t b = (size_t)items[i];
        double at = uniform(WORD(i, 0)) * total;
        while (b + 1 < table->n_blocks && table->cumulative[b + 1] <= at)
            b++;
        items[i] = (int32_t)b;
        __builtin_prefetch(table->weights + b * PLR_GUIDE_BLOCK);
        __builtin_prefetch(table->weights + b * PLR_GUIDE_BLOCK + 8);
    }
    for (size_t i = 0; i < n; i++) {
        size_t first = (size_t)items[i] * PLR_GUIDE_BLOCK, chosen = 0;
        size_t length = table->n_items - first < PLR_GUIDE_BLOCK ? table->n_items - first : PLR_GUIDE_BLOCK;
        const double *w = table->weights + first;
        double sums[PLR_GUIDE_BLOCK], sum = 0.0;
        for (size_t k = 0; k < PLR_GUIDE_BLOCK; k++) {
            sum += k < length ? w[k] : 0.0;
            sums[k] = sum;
        }
        double at = uniform(WORD(i, 1)) * sum;
        for (size_t k = 0; k < PLR_GUIDE_BLOCK - 1; k++)
            chosen += sums[k] <= at;
        items[i] = (int32_t)(first + (chosen < length ? chosen : length - 1));
    }
#undef WORD
#undef ENTRY
}

/* Whether an item is new to the ranking at hand; it no longer is afterwards. */
static inline int see(guide_table *table, int32_t item)
{
    const uint64_t entry = table->ranking << 32 | (uint32_t)item;
    const size_t mask = ((size_t)1 << table->seen_bits) - 1;
    size_t at = (size_t)((uint32_t)item * UINT32_C(2654435769)) >> (32 - table->seen_bits);
    for (; table->seen[at] >> 32 == table->ranking; at = (at + 1) & mask)
        if (table->seen[at] == entry)
            return 0;
    table->seen[at] = entry;
    return 1;
}

static void draw_group(guide_table *table, plr_stream *stream, uint64_t salt, uint64_t first_sample, size_t n_lanes,
                       int32_t *columns)
{
    const size_t cutoff = table->cutoff;
    size_t placed[PLR_GROUP_SIZE] = {0}, drawn = 0, least = 0;
    while (least < cutoff && drawn < 8 * cutoff + 64) {
        const size_t rows = cutoff - least;
        for (size_t row = 0; row < rows; row++)
            for (size_t step = 0; step < 2 * PLR_GROUP_SIZE; step += PLR_STREAM_LANES)
                plr_stream_next(stream, table->words + row * 2 * PLR_GROUP_SIZE + step);
        draw_items(table, table->words, rows, table->items);
        least = cutoff;
        for (size_t lane = 0; lane < n_lanes; lane++) {
            if (placed[lane] == cutoff)
                continue;
            table->ranking++;
            for (size_t k = 0; k < placed[lane]; k++)
                see(table, columns[k * PLR_GROUP_SIZE + lane]);
            for (size_t row = 0; row < rows && placed[lane] < cutoff; row++) {
                int32_t item = table->items[row * PLR_GROUP_SIZE + lane];
                columns[placed[lane] * PLR_GROUP_SIZE + lane] = item;
                placed[lane] += (size_t)see(table, item);
            }
            least = placed[lane] < least ? placed[lane] : least;
        }
        drawn += rows;
    }
    for (size_t lane = 0; lane < n_lanes; lane++)
        if (placed[lane] < cutoff)
            finish_by_race(table->weights, table->n_items, placed[lane], cutoff, salt, first_sample + lane,
                           table->arrivals, columns + lane);
}

const guide_table_kernels ISA(guide_table_kernels) = {prepare, draw_group};
