/* Rankings of very long lists by drawing with replacement: a guide table (Chen and Asau, 1974).
 *
 * Items share a line of 2^62 units in proportion to their weights, and a draw is a point on it: the upper bits of one
 * random word. The guide names the first block of eight items that may hold the point, and comparisons with the ends of
 * these items count how many lie before it. Ends are integers, so they are the same at every SIMD level, and each item
 * has its probability to 2^-62.
 *
 * A draw waits for memory twice, for the guide and for a line of ends. The draws of a ranking wait together, because
 * all of them prefetch first.
 */
#include "sampling/groups/group_samplers.h"
#include "sampling/race.h"

#define LINE_BITS 62
#define AT_LEAST 8   /* draws looked up together, */
#define AT_MOST 128  /* and at most so many */
#define ENDS_AT_ONCE 8 /* ends of a block of items, with which a draw compares */

typedef struct {
    group_query query;
    uint64_t *ends;     /* (n_items + ENDS_AT_ONCE,) where each item ends on a line of 2^62 units */
    int guide_bits;
    uint32_t *guide;    /* (2^guide_bits + 1,) number of blocks that end by j / 2^guide_bits of the line */
    uint64_t *seen;     /* (2^seen_bits,) hash table of the current ranking's items: ranking number << 32 | item */
    int seen_bits;
    uint64_t ranking;
    double *arrivals;   /* (cutoff,) for the race that finishes a ranking */
} guide_table;

static int bits_for(size_t n)
{
    int bits = 0;
    while ((size_t)1 << bits < n)
        bits++;
    return bits;
}

/* Lay out what drawing writes to, which each thread has for itself. */
static uintptr_t lay_out_own(guide_table *table, uintptr_t memory, size_t cutoff)
{
    uintptr_t next = memory;
    plr_take(&next, sizeof *table);
    table->seen_bits = bits_for(plr_guide_draws(cutoff)); /* it is at most an eighth full */
    table->seen = plr_take(&next, sizeof(uint64_t) << table->seen_bits);
    table->arrivals = plr_take(&next, cutoff * sizeof(double));
    return next;
}

static size_t lay_out(guide_table *table, uintptr_t memory, size_t n_items, size_t cutoff)
{
    uintptr_t next = lay_out_own(table, memory, cutoff);
    table->guide_bits = bits_for(n_items / 4 + 2);
    table->ends = plr_take(&next, (n_items + ENDS_AT_ONCE) * sizeof(uint64_t));
    table->guide = plr_take(&next, (((size_t)1 << table->guide_bits) + 1) * sizeof(uint32_t));
    return next - memory;
}

static size_t size(size_t n_items, size_t cutoff)
{
    guide_table table;
    return lay_out(&table, 0, n_items, cutoff);
}

static size_t own_size(size_t cutoff)
{
    guide_table table;
    return lay_out_own(&table, 0, cutoff);
}

static void forget_rankings(guide_table *table)
{
    memset(table->seen, 0, sizeof *table->seen << table->seen_bits);
    table->ranking = 0;
}

static void share(void *table_, const void *prepared)
{
    guide_table *table = table_;
    memcpy(table, prepared, sizeof *table);
    lay_out_own(table, (uintptr_t)table, table->query.cutoff);
    forget_rankings(table);
}

static void prepare(void *table_, const group_query *query)
{
    guide_table *table = table_;
    lay_out(table, (uintptr_t)table, query->n_items, query->cutoff);
    table->query = *query;
    const double *weights = query->weights;
    const size_t n = query->n_items, n_guides = (size_t)1 << table->guide_bits;
    const int shift = LINE_BITS - table->guide_bits;
    const uint64_t line = UINT64_C(1) << LINE_BITS, round_up = (UINT64_C(1) << shift) - 1;
    const double scale = (double)line / query->total;
    uint64_t sum = 0;
    size_t d = 0;
    memset(table->guide, 0, (n_guides + 1) * sizeof *table->guide);
    for (size_t block = 0; block < n / ENDS_AT_ONCE; block++) {
        for (size_t i = 0; i < ENDS_AT_ONCE; i++, d++)
            table->ends[d] = sum += (uint64_t)(int64_t)(weights[d] * scale);
        const uint64_t end = sum < line ? sum : line; /* the sum has rounding of its own */
        table->guide[(end + round_up) >> shift] = (uint32_t)block + 1; /* the last block that ends there counts */
    }
    for (; d < n; d++)
        table->ends[d] = sum += (uint64_t)(int64_t)(weights[d] * scale);
    for (d = n - 1; d < n + ENDS_AT_ONCE; d++)
        table->ends[d] = line;
    for (size_t j = 1; j <= n_guides; j++)
        table->guide[j] = table->guide[j] > table->guide[j - 1] ? table->guide[j] : table->guide[j - 1];
    forget_rankings(table);
}

static void look_up(const void *table_, const uint64_t *words, size_t n, int32_t *items)
{
    const guide_table *table = table_;
    const uint64_t *ends = table->ends;
    const uint32_t *guide = table->guide;
    const int shift = 64 - table->guide_bits;
    for (size_t i = 0; i < n; i++)
        __builtin_prefetch(guide + (words[i] >> shift));
    for (size_t i = 0; i < n; i++) {
        items[i] = (int32_t)(guide[words[i] >> shift] * ENDS_AT_ONCE);
        __builtin_prefetch(ends + items[i]);
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t point = words[i] >> (64 - LINE_BITS), *end = ends + items[i];
        size_t passed;
        do {
            passed = 0;
            PLR_UNROLL
            for (int j = 0; j < ENDS_AT_ONCE; j++)
                passed += end[j] <= point;
            end += passed;
        } while (passed == ENDS_AT_ONCE);
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
    const size_t cutoff = table->query.cutoff;
    size_t placed = 0, n;
    table->ranking++;
    for (size_t drawn = 0; drawn < plr_guide_draws(cutoff) && placed < cutoff; drawn += n) {
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
        finish_by_race(&table->query, placed, salt, sample, table->arrivals, column);
}

static void draw_group(void *table, plr_stream *stream, uint64_t salt, uint64_t first_sample, size_t n_lanes,
                       int32_t *columns)
{
    (void)stream;
    for (size_t lane = 0; lane < n_lanes; lane++)
        draw(table, salt, first_sample + lane, columns + lane);
}

const guide_table_kernels ISA(guide_table_kernels) = {{size, prepare, draw_group}, own_size, share, look_up};
