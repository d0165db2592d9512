/* Rankings of very long lists by drawing with replacement: a guide table (Chen and Asau, 1974). */
#ifndef PLR_GUIDE_TABLE_H
#define PLR_GUIDE_TABLE_H

#include "simd/isa.h"
#include "random/random_stream.h"

#define PLR_ENDS_AT_ONCE 8 /* ends of a block of items, with which a draw compares */

typedef struct {
    size_t n_items;
    size_t cutoff;
    const double *weights;
    double total;       /* sum of weights */
    uint64_t *ends;     /* (n_items + PLR_ENDS_AT_ONCE,) where each item ends on a line of 2^62 units */
    int guide_bits;
    uint32_t *guide;    /* (2^guide_bits + 1,) number of blocks that end by j / 2^guide_bits of the line */
    uint64_t *seen;     /* (2^seen_bits,) hash table of the current ranking's items: ranking number << 32 | item */
    int seen_bits;
    uint64_t ranking;
    double *arrivals;   /* (cutoff,) for the race that finishes a ranking */
} guide_table;

typedef struct {
    /* Fill the table of the items; the members up to `total`, the sizes and the pointers are set. */
    void (*prepare)(guide_table *table);
    /* Draw n_lanes (1 to 16) rankings into columns (cutoff, 16). */
    void (*draw_group)(guide_table *table, uint64_t salt, uint64_t first_sample, size_t n_lanes, int32_t *columns);
    /* For tests: look up the items that the words draw. */
    void (*look_up)(const guide_table *table, const uint64_t *words, size_t n, int32_t *items);
} guide_table_kernels;

PLR_DECLARE_KERNELS(guide_table_kernels)

static inline int plr_bits_for(size_t n)
{
    int bits = 0;
    while (((size_t)1 << bits) < n)
        bits++;
    return bits;
}

#endif
