/* Rankings of very long lists by drawing with replacement through a guide table (Chen and Asau, 1974). */
#ifndef PLR_GUIDE_TABLE_H
#define PLR_GUIDE_TABLE_H

#include "simd/isa.h"
#include "random/random_stream.h"

#define PLR_GUIDE_BLOCK 16 /* items to one entry of the cumulative weights */

typedef struct {
    size_t n_items;
    size_t cutoff;
    const double *weights;
    size_t n_blocks;
    double *cumulative;  /* (n_blocks + 1,) weight before each block */
    int guide_bits;
    uint32_t *guide;     /* (2^guide_bits,) the block in which j / 2^guide_bits of the weight is reached */
    uint64_t *seen;      /* (2^seen_bits,) items of the ranking at hand, hashed: ranking number << 32 | item */
    int seen_bits;
    uint64_t ranking;
    uint64_t *words;     /* (cutoff, 2, 16) */
    int32_t *items;      /* (cutoff, 16) */
    double *arrivals;    /* (cutoff,) for the race that finishes a ranking */
} guide_table;

typedef struct {
    void (*prepare)(guide_table *table);
    /* Draw n_lanes (1 to 16) rankings into columns (cutoff, 16). */
    void (*draw_group)(guide_table *table, plr_stream *stream, uint64_t salt, uint64_t first_sample, size_t n_lanes,
                       int32_t *columns);
} guide_table_kernels;

PLR_DECLARE_KERNELS(guide_table_kernels)

static inline int plr_bits_for(size_t n)
{
    int bits = 0;
    while (((size_t)1 << bits) < n)
        bits++;
    return bits;
}

static inline size_t plr_guide_blocks(size_t n_items)
{
    return (n_items + PLR_GUIDE_BLOCK - 1) / PLR_GUIDE_BLOCK;
}

#endif
