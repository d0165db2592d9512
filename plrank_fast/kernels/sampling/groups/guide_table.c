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
#define LINE (UINT64_C(1) << LINE_BITS)
#define RANGE 32768  /* items that a thread enters at a time, whole blocks */
#define AT_LEAST 8   /* draws looked up together, */
#define AT_MOST 128  /* and at most so many */
#define ENDS_AT_ONCE 8 /* ends of a block of items, with which a draw compares */

typedef struct {
    group_query query;
    uint64_t *ends;     /* (n_items + ENDS_AT_ONCE,) where each item ends on a line of 2^62 units */
    int guide_bits;
    uint32_t *guide;    /* (2^guide_bits + 1,) number of blocks that end by j / 2^guide_bits of the line */
    double scale;       /* units of a weight of 1 */
    intptr_t n_ranges;
    uint64_t *sums;     /* (n_ranges,) units before each range */
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

static intptr_t ranges_of(size_t n_items)
{
    return (intptr_t)((n_items + RANGE - 1) / RANGE);
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
    table->sums = plr_take(&next, (size_t)ranges_of(n_items) * sizeof(uint64_t));
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

/* Return the units of a weight. They are integers, so the sum of a range is the same in any order. */
PLR_INLINE uint64_t units(double weight, double scale)
{
    return (uint64_t)(int64_t)(weight * scale);
}

/* Set sums[i + 1] to the units of range i, one of at most RANGE items. */
static void measure_range(void *table_, intptr_t i, int thread)
{
    guide_table *table = table_;
    const double *weights = table->query.weights + (size_t)i * RANGE, scale = table->scale;
    uint64_t sum = 0;
    (void)thread;
    for (size_t d = 0; d < RANGE; d++)
        sum += units(weights[d], scale);
    table->sums[i + 1] = sum;
}

/* Return the first point of the guide that is not before an end on the line, whose sum has rounding of its own. */
PLR_INLINE size_t point_after(const guide_table *table, uint64_t end)
{
    const int shift = LINE_BITS - table->guide_bits;
    return (size_t)(((end < LINE ? end : LINE) + (UINT64_C(1) << shift) - 1) >> shift);
}

/* Fill the ends of a range of items, and the guide from its first end to the first end of the next range. */
static void fill_range(void *table_, intptr_t i, int thread)
{
    guide_table *table = table_;
    const int is_last = i + 1 == table->n_ranges;
    const size_t n = table->query.n_items, stop = is_last ? n : ((size_t)i + 1) * RANGE;
    const double *weights = table->query.weights, scale = table->scale;
    uint64_t sum = table->sums[i], *ends = table->ends;
    size_t d = (size_t)i * RANGE;
    const size_t first = point_after(table, sum);
    const size_t last = is_last ? ((size_t)1 << table->guide_bits) + 1 : point_after(table, table->sums[i + 1]);
    uint32_t *guide = table->guide, blocks = (uint32_t)(d / ENDS_AT_ONCE);
    (void)thread;
    memset(guide + first, 0, (last - first) * sizeof *guide);
    if (first < last)
        guide[first] = blocks;
    for (; d + ENDS_AT_ONCE <= stop; blocks++) {
        for (size_t j = 0; j < ENDS_AT_ONCE; j++, d++)
            ends[d] = sum += units(weights[d], scale);
        const size_t point = point_after(table, sum);
        if (point < last)
            guide[point] = blocks + 1; /* the last block that ends there counts */
    }
    for (; d < stop; d++)
        ends[d] = sum += units(weights[d], scale);
    for (size_t j = first + 1; j < last; j++)
        guide[j] = guide[j] > guide[j - 1] ? guide[j] : guide[j - 1];
    if (is_last)
        for (d = n - 1; d < n + ENDS_AT_ONCE; d++)
            ends[d] = LINE;
}

static void prepare(void *table_, const group_query *query)
{
    guide_table *table = table_;
    lay_out(table, (uintptr_t)table, query->n_items, query->cutoff);
    table->query = *query;
    table->scale = (double)LINE / query->total;
    table->n_ranges = threads_of(&query->loop) > 1 ? ranges_of(query->n_items) : 1;
    run_loop(&query->loop, measure_range, table, table->n_ranges - 1);
    table->sums[0] = 0;
    for (intptr_t i = 1; i < table->n_ranges; i++)
        table->sums[i] += table->sums[i - 1];
    run_loop(&query->loop, fill_range, table, table->n_ranges);
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
