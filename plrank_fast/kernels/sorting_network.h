/* Sorting networks across samples: key k of sixteen samples stands in one row, and all sixteen are sorted at once by
 * compare-exchanges of whole rows. No branch depends on a key.
 *
 * Blocks that fit the registers are sorted by Batcher's odd-even merge sort, longer runs by bitonic merges (Batcher,
 * 1968). Only the smallest keys are wanted, so runs of that length are folded into one: the smallest m of two sorted
 * runs of m are min(a_i, b_{m-1-i}), a bitonic sequence.
 */
#ifndef PLR_SORTING_NETWORK_H
#define PLR_SORTING_NETWORK_H

#include "lockstep.h"
#include "vector_math.h"

/* Rows that fit the registers together: 16 of AVX-512's 32; with 16 registers 8 leave room for temporaries. */
#ifdef PLR_ISA_AVX512
#define PLR_BLOCK_ROWS 16
#else
#define PLR_BLOCK_ROWS 8
#endif

#define PLR_UNROLL _Pragma("GCC unroll 16")

PLR_INLINE void exchange(vec_i32 *low, vec_i32 *high)
{
    vec_i32 smaller = vec_min(*low, *high);
    *high = vec_max(*low, *high);
    *low = smaller;
}

/* Rows [start, start + distance) against the rows `distance` further on, and so on every second `distance` rows. */
PLR_INLINE void exchange_stage(vec_i32 *v, int n, int start, int distance)
{
    PLR_UNROLL
    for (int j = start; j + distance < n; j += 2 * distance) {
        PLR_UNROLL
        for (int i = 0; i < distance; i++)
            exchange(v + j + i, v + j + i + distance);
    }
}

/* Odd-even merge of the sorted halves of n rows; n is a power of two, at most 16. */
PLR_INLINE void merge_odd_even(vec_i32 *v, int n)
{
    exchange_stage(v, n, 0, n / 2);
    if (n > 8)
        exchange_stage(v, n, n / 4, n / 4);
    if (n > 4)
        exchange_stage(v, n, n > 8 ? n / 8 : n / 4, n > 8 ? n / 8 : n / 4);
    if (n > 2)
        exchange_stage(v, n, 1, 1);
}

PLR_INLINE void sort_rows(vec_i32 *v, int n)
{
    PLR_UNROLL
    for (int i = 0; i < n; i += 2)
        merge_odd_even(v + i, 2);
    PLR_UNROLL
    for (int i = 0; i < n; i += 4)
        merge_odd_even(v + i, 4);
    PLR_UNROLL
    for (int i = 0; i < n; i += 8)
        merge_odd_even(v + i, 8);
    if (n > 8)
        merge_odd_even(v, 16);
}

/* Sort a bitonic sequence of n rows; n is a power of two, at most 16. */
PLR_INLINE void sort_bitonic_rows(vec_i32 *v, int n)
{
    if (n > 8)
        exchange_stage(v, n, 0, 8);
    if (n > 4)
        exchange_stage(v, n, 0, 4);
    if (n > 2)
        exchange_stage(v, n, 0, 2);
    exchange_stage(v, n, 0, 1);
}

PLR_INLINE vec_i32 load_row(const int32_t *keys, size_t row) { return vec_load_i32(keys + PLR_LOCKSTEP * row); }
PLR_INLINE void store_row(int32_t *keys, size_t row, vec_i32 v) { vec_store_i32(keys + PLR_LOCKSTEP * row, v); }

/* The following work on the PLR_LANES_32 samples of one register; rows are PLR_LOCKSTEP keys apart. */

static void sort_block(int32_t *keys)
{
    vec_i32 v[PLR_BLOCK_ROWS];
    PLR_UNROLL
    for (int i = 0; i < PLR_BLOCK_ROWS; i++)
        v[i] = load_row(keys, i);
    sort_rows(v, PLR_BLOCK_ROWS);
    PLR_UNROLL
    for (int i = 0; i < PLR_BLOCK_ROWS; i++)
        store_row(keys, i, v[i]);
}

/* Rows i, i + spacing, ... of a bitonic sequence, `ways` of them: the first stages of its sort. */
PLR_INLINE void sort_across(int32_t *keys, size_t spacing, int ways)
{
    for (size_t i = 0; i < spacing; i++) {
        vec_i32 v[8];
        PLR_UNROLL
        for (int j = 0; j < ways; j++)
            v[j] = load_row(keys, i + j * spacing);
        sort_bitonic_rows(v, ways);
        PLR_UNROLL
        for (int j = 0; j < ways; j++)
            store_row(keys, i + j * spacing, v[j]);
    }
}

static void sort_bitonic(int32_t *keys, size_t m)
{
    if (m == PLR_BLOCK_ROWS) {
        vec_i32 v[PLR_BLOCK_ROWS];
        PLR_UNROLL
        for (int i = 0; i < PLR_BLOCK_ROWS; i++)
            v[i] = load_row(keys, i);
        sort_bitonic_rows(v, PLR_BLOCK_ROWS);
        PLR_UNROLL
        for (int i = 0; i < PLR_BLOCK_ROWS; i++)
            store_row(keys, i, v[i]);
        return;
    }
    size_t ways = m / PLR_BLOCK_ROWS < 8 ? m / PLR_BLOCK_ROWS : 8;
    if (ways == 2)
        sort_across(keys, m / 2, 2);
    else if (ways == 4)
        sort_across(keys, m / 4, 4);
    else
        sort_across(keys, m / 8, 8);
    for (size_t part = 0; part < m; part += m / ways)
        sort_bitonic(keys + PLR_LOCKSTEP * part, m / ways);
}

/* First stages of a merge: rows i, i + spacing, ... of either run. The larger keys, in reverse, are bitonic too. */
PLR_INLINE void merge_across(int32_t *keys, size_t m, int ways)
{
    size_t spacing = m / ways;
    for (size_t i = 0; i < spacing; i++) {
        vec_i32 low[8], high[8];
        int32_t *opposite = keys + PLR_LOCKSTEP * (m + spacing - 1 - i);
        PLR_UNROLL
        for (int j = 0; j < ways; j++) {
            low[j] = load_row(keys, i + j * spacing);
            high[j] = load_row(opposite, j * spacing);
        }
        PLR_UNROLL
        for (int j = 0; j < ways; j++)
            exchange(low + j, high + ways - 1 - j);
        if (ways > 1) {
            sort_bitonic_rows(low, ways);
            sort_bitonic_rows(high, ways);
        }
        PLR_UNROLL
        for (int j = 0; j < ways; j++) {
            store_row(keys, i + j * spacing, low[j]);
            store_row(opposite, j * spacing, high[j]);
        }
    }
}

/* Merge two sorted runs of m rows that follow each other. */
static void merge_runs(int32_t *keys, size_t m)
{
    size_t ways = m / PLR_BLOCK_ROWS < 8 ? m / PLR_BLOCK_ROWS : 8;
    if (ways == 1)
        merge_across(keys, m, 1);
    else if (ways == 2)
        merge_across(keys, m, 2);
    else if (ways == 4)
        merge_across(keys, m, 4);
    else
        merge_across(keys, m, 8);
    for (size_t part = 0; part < 2 * m; part += m / ways)
        sort_bitonic(keys + PLR_LOCKSTEP * part, m / ways);
}

/* Leave in the sorted run `keys` the m smallest of it and of the sorted run `others`. */
static void fold_run(int32_t *keys, const int32_t *others, size_t m)
{
    for (size_t i = 0; i < m; i++)
        store_row(keys, i, vec_min(load_row(keys, i), load_row(others, m - 1 - i)));
    sort_bitonic(keys, m);
}

/* Sort the smallest `wanted` of n rows to the front, for all samples. `wanted` is PLR_BLOCK_ROWS times a power of two;
 * the rows from n to the next multiple of `wanted` exist and hold INT32_MAX. */
PLR_INLINE void sort_smallest(int32_t *keys, size_t n, size_t wanted)
{
    for (int32_t *lanes = keys; lanes < keys + PLR_LOCKSTEP; lanes += PLR_LANES_32) {
        for (size_t i = 0; i < n; i += PLR_BLOCK_ROWS)
            sort_block(lanes + PLR_LOCKSTEP * i);
        for (size_t m = PLR_BLOCK_ROWS; m < wanted; m *= 2)
            for (size_t i = 0; i + m < n; i += 2 * m)
                merge_runs(lanes + PLR_LOCKSTEP * i, m);
        for (size_t i = wanted; i < n; i += wanted)
            fold_run(lanes, lanes + PLR_LOCKSTEP * i, wanted);
    }
}

#endif
