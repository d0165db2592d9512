/* Sorting networks across samples: one row holds key k of sixteen samples, and compare-exchanges of whole rows sort all
 * sixteen at once. No branch depends on a key.
 *
 * Blocks that fit the registers are sorted by Batcher's odd-even merge sort, longer runs by bitonic merges (Batcher,
 * 1968). Only the smallest keys are needed, so runs of that length are folded into one: the smallest m of two sorted
 * runs of m are min(a_i, b_{m-1-i}), a bitonic sequence.
 *
 * Keys are the bits of positive, normal floats, which have the same order as integers: AVX-512 computes minima of
 * floats on two ports and minima of integers on one, and SSE2 has no minima of integers.
 */
#ifndef PLR_SORTING_NETWORK_H
#define PLR_SORTING_NETWORK_H

#include "sampling/groups.h"
#include "simd/vectors.h"

/* Rows that are sorted together: half of the registers of AVX-512. With the 16 registers of other levels some rows stay
 * in memory, which costs no more than the merges that blocks of 8 need. */
#define PLR_BLOCK_ROWS 16

#define PLR_NO_KEY 0x7f800000 /* infinity, after all keys */

PLR_INLINE void exchange(vec_f32 *low, vec_f32 *high)
{
    vec_f32 smaller = vec_min_f32(*low, *high);
    *high = vec_max_f32(*low, *high);
    *low = smaller;
}

/* One stage of Batcher's odd-even merge sort of n rows, at most 32: in every run of 2 run_length rows, whose halves are
 * sorted, exchange rows `distance` apart. Rows past n would hold PLR_NO_KEY and never move. */
PLR_INLINE void odd_even_stage(vec_f32 *v, int n, int run_length, int distance)
{
    const int first = distance % run_length;
    PLR_UNROLL
    for (int i = 0; i < 32; i++)
        if (i >= first && i + distance < n && (i - first) % (2 * distance) < distance &&
            i / (2 * run_length) == (i + distance) / (2 * run_length))
            exchange(v + i, v + i + distance);
}

PLR_INLINE void sort_rows(vec_f32 *v, int n)
{
    odd_even_stage(v, n, 1, 1);
    odd_even_stage(v, n, 2, 2);
    odd_even_stage(v, n, 2, 1);
    odd_even_stage(v, n, 4, 4);
    odd_even_stage(v, n, 4, 2);
    odd_even_stage(v, n, 4, 1);
    odd_even_stage(v, n, 8, 8);
    odd_even_stage(v, n, 8, 4);
    odd_even_stage(v, n, 8, 2);
    odd_even_stage(v, n, 8, 1);
    odd_even_stage(v, n, 16, 16);
    odd_even_stage(v, n, 16, 8);
    odd_even_stage(v, n, 16, 4);
    odd_even_stage(v, n, 16, 2);
    odd_even_stage(v, n, 16, 1);
}

/* Exchange rows [0, distance) with those `distance` further on, and so on for each 2 * distance rows. */
PLR_INLINE void exchange_stage(vec_f32 *v, int n, int distance)
{
    PLR_UNROLL
    for (int i = 0; i + distance < n; i++)
        if (i % (2 * distance) < distance)
            exchange(v + i, v + i + distance);
}

/* Sort a bitonic sequence of n rows; n is a power of two, at most 16. */
PLR_INLINE void sort_bitonic_rows(vec_f32 *v, int n)
{
    if (n > 8)
        exchange_stage(v, n, 8);
    if (n > 4)
        exchange_stage(v, n, 4);
    if (n > 2)
        exchange_stage(v, n, 2);
    exchange_stage(v, n, 1);
}

PLR_INLINE vec_i32 load_row(const int32_t *keys, size_t row) { return vec_load_i32(keys + PLR_GROUP_SIZE * row); }
PLR_INLINE void store_row(int32_t *keys, size_t row, vec_i32 v) { vec_store_i32(keys + PLR_GROUP_SIZE * row, v); }

/* The following functions sort the PLR_LANES_32 samples of one register; rows are PLR_GROUP_SIZE keys apart. */

PLR_INLINE void load_rows(vec_f32 *v, const int32_t *keys, int n)
{
    PLR_UNROLL
    for (int i = 0; i < n; i++)
        v[i] = (vec_f32)load_row(keys, i);
}

PLR_INLINE void store_rows(int32_t *keys, const vec_f32 *v, int n)
{
    PLR_UNROLL
    for (int i = 0; i < n; i++)
        store_row(keys, i, (vec_i32)v[i]);
}

PLR_INLINE void sort_in_registers(int32_t *keys, int n)
{
    vec_f32 v[32];
    load_rows(v, keys, n);
    sort_rows(v, n);
    store_rows(keys, v, n);
}

/* Leave in the sorted block `keys` the smallest keys of it and of an unsorted block, which is not changed. */
static void fold_block(int32_t *keys, const int32_t *others)
{
    vec_f32 v[PLR_BLOCK_ROWS];
    load_rows(v, others, PLR_BLOCK_ROWS);
    sort_rows(v, PLR_BLOCK_ROWS);
    PLR_UNROLL
    for (int i = 0; i < PLR_BLOCK_ROWS; i++)
        v[i] = vec_min_f32(v[i], (vec_f32)load_row(keys, PLR_BLOCK_ROWS - 1 - i));
    sort_bitonic_rows(v, PLR_BLOCK_ROWS);
    store_rows(keys, v, PLR_BLOCK_ROWS);
}

/* Sort a list that fits the registers, or nearly so: 132 compare-exchanges for 24 rows, where blocks of 16 take 206. */
static void sort_short_list(int32_t *keys, size_t n)
{
    if (n <= 8)
        sort_in_registers(keys, 8);
    else if (n <= 16)
        sort_in_registers(keys, 16);
    else if (n <= 24)
        sort_in_registers(keys, 24);
    else
        sort_in_registers(keys, 32);
}

PLR_INLINE void sort_bitonic_block(int32_t *keys)
{
    vec_f32 v[PLR_BLOCK_ROWS];
    load_rows(v, keys, PLR_BLOCK_ROWS);
    sort_bitonic_rows(v, PLR_BLOCK_ROWS);
    store_rows(keys, v, PLR_BLOCK_ROWS);
}

/* Number of equally spaced rows of a run of m that take part in the stages that join its blocks, at most eight. */
#define PLR_WAYS(m) ((m) / PLR_BLOCK_ROWS < 8 ? (m) / PLR_BLOCK_ROWS : 8)

/* Call a function whose last argument is the number of ways for m rows, as a constant for the compiler. */
#define PLR_WITH_WAYS(m, function, ...)      \
    do {                                     \
        if (PLR_WAYS(m) == 1)                \
            function(__VA_ARGS__, 1);        \
        else if (PLR_WAYS(m) == 2)           \
            function(__VA_ARGS__, 2);        \
        else if (PLR_WAYS(m) == 4)           \
            function(__VA_ARGS__, 4);        \
        else                                 \
            function(__VA_ARGS__, 8);        \
    } while (0)

/* Run the first stages of a bitonic sort on rows i, i + spacing, ... of a run of m. */
PLR_INLINE void sort_across(int32_t *keys, size_t m, int ways)
{
    const size_t spacing = m / ways;
    for (size_t i = 0; i < spacing; i++) {
        vec_f32 v[8];
        PLR_UNROLL
        for (int j = 0; j < ways; j++)
            v[j] = (vec_f32)load_row(keys, i + j * spacing);
        sort_bitonic_rows(v, ways);
        PLR_UNROLL
        for (int j = 0; j < ways; j++)
            store_row(keys, i + j * spacing, (vec_i32)v[j]);
    }
}

/* Run the remaining stages of the bitonic sort of a run of m. */
static void sort_parts(int32_t *keys, size_t m)
{
    const size_t size = m <= 8 * PLR_BLOCK_ROWS ? PLR_BLOCK_ROWS : m / 8;
    for (int32_t *part = keys; part < keys + PLR_GROUP_SIZE * m; part += PLR_GROUP_SIZE * size)
        if (size == PLR_BLOCK_ROWS) {
            sort_bitonic_block(part);
        } else {
            PLR_WITH_WAYS(size, sort_across, part, size);
            sort_parts(part, size);
        }
}

/* Run the first stages of a merge on rows i, i + spacing, ... of two sorted runs of m. The smaller keys go to `keys`
 * and the larger ones to `others`, if these are wanted; both are bitonic then, the larger ones in reverse. */
PLR_INLINE void merge_across(int32_t *keys, int32_t *others, size_t m, int both, int ways)
{
    const size_t spacing = m / ways;
    for (size_t i = 0; i < spacing; i++) {
        vec_f32 low[8], high[8];
        int32_t *opposite = others + PLR_GROUP_SIZE * (spacing - 1 - i);
        PLR_UNROLL
        for (int j = 0; j < ways; j++) {
            low[j] = (vec_f32)load_row(keys, i + j * spacing);
            high[j] = (vec_f32)load_row(opposite, j * spacing);
        }
        PLR_UNROLL
        for (int j = 0; j < ways; j++)
            exchange(low + j, high + ways - 1 - j);
        sort_bitonic_rows(low, ways);
        if (both)
            sort_bitonic_rows(high, ways);
        PLR_UNROLL
        for (int j = 0; j < ways; j++) {
            store_row(keys, i + j * spacing, (vec_i32)low[j]);
            if (both)
                store_row(opposite, j * spacing, (vec_i32)high[j]);
        }
    }
}

/* Merge two sorted runs of m rows that follow each other. */
static void merge_runs(int32_t *keys, size_t m)
{
    int32_t *others = keys + PLR_GROUP_SIZE * m;
    PLR_WITH_WAYS(m, merge_across, keys, others, m, 1);
    sort_parts(keys, m);
    sort_parts(others, m);
}

/* Leave in the sorted run `keys` the m smallest keys of it and of the sorted run `others`, which is not changed. */
static void fold_run(int32_t *keys, int32_t *others, size_t m)
{
    PLR_WITH_WAYS(m, merge_across, keys, others, m, 0);
    sort_parts(keys, m);
}

/* Sort the `wanted` smallest of n rows to the front, for all samples. `wanted` is PLR_BLOCK_ROWS times a power of two;
 * the rows from n to the next multiple of `wanted` exist and hold PLR_NO_KEY. */
PLR_INLINE void sort_keys(int32_t *keys, size_t n, size_t wanted)
{
    for (int32_t *lanes = keys; lanes < keys + PLR_GROUP_SIZE; lanes += PLR_LANES_32) {
        if (n <= 2 * PLR_BLOCK_ROWS) {
            sort_short_list(lanes, n);
            continue;
        }
        if (wanted == PLR_BLOCK_ROWS) {
            sort_short_list(lanes, PLR_BLOCK_ROWS);
            for (size_t i = PLR_BLOCK_ROWS; i < n; i += PLR_BLOCK_ROWS)
                fold_block(lanes, lanes + PLR_GROUP_SIZE * i);
            continue;
        }
        for (size_t i = 0; i < n; i += PLR_BLOCK_ROWS)
            sort_short_list(lanes + PLR_GROUP_SIZE * i, PLR_BLOCK_ROWS);
        for (size_t m = PLR_BLOCK_ROWS; m < wanted; m *= 2)
            for (size_t i = 0; i + m < n; i += 2 * m)
                merge_runs(lanes + PLR_GROUP_SIZE * i, m);
        for (size_t i = wanted; i < n; i += wanted)
            fold_run(lanes, lanes + PLR_GROUP_SIZE * i, wanted);
    }
}

#endif
