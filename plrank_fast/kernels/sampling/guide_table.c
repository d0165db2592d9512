/* Items share a line of 2^62 units in proportion to their weights, and a draw is a point on it: the upper bits of one
 * random word. The guide names the first block of eight items that may hold the point, and comparisons with the ends of
 * these items count how many lie before it. Ends are integers, so they are the same at every SIMD level, and each item
 * has its probability to 2^-62.
 *
 * A draw waits for memory twice, for the guide and for a line of ends. The draws of a ranking wait together, because
 * all of them prefetch first.
 */
#include "sampling/guide_table.h"

#include "sampling/race.h"

#define LINE_BITS 62
#define AT_LEAST 8   /* draws looked up together, */
#define AT_MOST 128  /* and at most so many */

static void prepare(guide_table *table)
{
    const size_t n = table->n_items, n_guides = (size_t)1 << table->guide_bits;
    const int shift = LINE_BITS - table->guide_bits;
    const uint64_t line = UINT64_C(1) << LINE_BITS, round_up = (UINT64_C(1) << shift) - 1;
    const double scale = (double)line / table->total;
    uint64_t sum = 0;
    size_t d = 0;
    memset(table->guide, 0, (n_guides + 1) * sizeof *table->guide);
    for (size_t block = 0; block < n / PLR_ENDS_AT_ONCE; block++) {
        for (size_t i = 0; i < PLR_ENDS_AT_ONCE; i++, d++)
            table->ends[d] = sum += (uint64_t)(int64_t)(table->weights[d] * scale);
        const uint64_t end = sum < line ? sum : line; /* the sum has rounding of its own */
        table->guide[(end + round_up) >> shift] = (uint32_t)block + 1; /* the last block that ends there counts */
    }
    for (; d < n; d++)
        table->ends[d] = sum += (uint64_t)(int64_t)(table->weights[d] * scale);
    for (d = n - 1; d < n + PLR_ENDS_AT_ONCE; d++)
        table->ends[d] = line;
    for (size_t j = 1; j <= n_guides; j++)
        table->guide[j] = table->guide[j] > table->guide[j - 1] ? table->guide[j] : table->guide[j - 1];
    memset(table->seen, 0, sizeof *table->seen << table->seen_bits);
    table->ranking = 0;
}

static void look_up(const guide_table *table, const uint64_t *words, size_t n, int32_t *items)
{
    const uint64_t *ends = table->ends;
    const uint32_t *guide = table->guide;
    const int shift = 64 - table->guide_bits;
    for (size_t i = 0; i < n; i++)
        __builtin_prefetch(guide + (words[i] >> shift));
    for (size_t i = 0; i < n; i++) {
        items[i] = (int32_t)(guide[words[i] >> shift] * PLR_ENDS_AT_ONCE);
        __builtin_prefetch(ends + items[i]);
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t point = words[i] >> (64 - LINE_BITS), *end = ends + items[i];
        size_t passed;
        do {
            passed = 0;
            PLR_UNROLL
            for (int j = 0; j < PLR_ENDS_AT_ONCE; j++)
                passed += end[j] <= point;
            end += passed;
        } while (passed == PLR_ENDS_AT_ONCE);
        items[i] = (int32_t)(end - ends);
    }
}

/* Return whether an item is new to the current ranking, and mark it as seen. */
PLR_INLINE int see(guide_table *table, int32_t item)
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

/* Draw one ranking from words of its own, as many at once as ranks are missing. */
static void draw(guide_table *table, uint64_t salt, uint64_t sample, int32_t *column)
{
    const uint64_t own = plr_mix64(salt ^ PLR_GOLDEN_RATIO) + (sample << 32);
    const size_t cutoff = table->cutoff;
    size_t placed = 0, n;
    table->ranking++;
    for (size_t drawn = 0; drawn < 8 * cutoff + 64 && placed < cutoff; drawn += n) {
        uint64_t words[AT_MOST];
        int32_t items[AT_MOST];
        n = cutoff - placed < AT_LEAST ? AT_LEAST : cutoff - placed < AT_MOST ? cutoff - placed : AT_MOST;
        for (size_t i = 0; i < n; i++)
            words[i] = plr_mix64((own + drawn + i) * PLR_GOLDEN_RATIO);
        look_up(table, words, n, items);
        for (size_t i = 0; i < n && placed < cutoff; i++) {
            column[placed * PLR_GROUP_SIZE] = items[i];
            placed += (size_t)see(table, items[i]);
        }
    }
    if (placed < cutoff)
        finish_by_race(table->weights, table->n_items, placed, cutoff, salt, sample, table->arrivals, column);
}

static void draw_group(guide_table *table, uint64_t salt, uint64_t first_sample, size_t n_lanes, int32_t *columns)
{
    for (size_t lane = 0; lane < n_lanes; lane++)
        draw(table, salt, first_sample + lane, columns + lane);
}

const guide_table_kernels ISA(guide_table_kernels) = {prepare, draw_group, look_up};
