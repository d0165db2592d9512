/* Rankings of very long lists by drawing with replacement: a guide table (Chen and Asau, 1974) over a tree of
 * weights. */
#ifndef PLR_GUIDE_TABLE_H
#define PLR_GUIDE_TABLE_H

#include "simd/isa.h"
#include "random/random_stream.h"

#define PLR_NODE_CHILDREN 16
#define PLR_TREE_ITEMS (PLR_NODE_CHILDREN * PLR_NODE_CHILDREN) /* below one root */
#define PLR_ENDS_AT_ONCE 8 /* ends that a draw compares with */

typedef struct {
    size_t n_items;
    size_t cutoff;
    const double *weights;
    size_t draws_at_first; /* of each ranking, before the first check whether they suffice */
    size_t n_trees;
    double *cumulative;  /* (n_trees + 1,) weight before each tree */
    int32_t *ends;       /* (n_trees + PLR_ENDS_AT_ONCE,) where each ends, in 2^-32 of the total, less 2^31 */
    int guide_bits;
    uint32_t *guide;     /* (2^guide_bits,) number of trees that end before j / 2^guide_bits of the total */
    int16_t *roots;      /* (n_trees, 16) where children end, in 2^-16 of the node, less 2^15 */
    int16_t *leaves;     /* (n_trees, 16, 16) likewise, for items */
    double *last;        /* (PLR_TREE_ITEMS,) weights of the last tree, padded with 0 */
    uint64_t *seen;      /* (2^seen_bits,) hash table of the current ranking's items: ranking number << 32 | item */
    int seen_bits;
    uint64_t ranking;
    int32_t *items;      /* (16, plr_most_at_first) drawn at first */
    double *arrivals;    /* (cutoff,) for the race that finishes a ranking */
} guide_table;

typedef struct {
    void (*prepare)(guide_table *table);
    /* Draw n_lanes (1 to 16) rankings into columns (cutoff, 16). */
    void (*draw_group)(guide_table *table, plr_stream *stream, uint64_t salt, uint64_t first_sample, size_t n_lanes,
                       int32_t *columns);
    /* For tests: look up the items that the words draw. */
    void (*look_up)(const guide_table *table, const uint64_t *words, size_t n, uint64_t salt, int32_t *items);
} guide_table_kernels;

PLR_DECLARE_KERNELS(guide_table_kernels)

static inline int plr_bits_for(size_t n)
{
    int bits = 0;
    while (((size_t)1 << bits) < n)
        bits++;
    return bits;
}

static inline size_t plr_guide_trees(size_t n_items)
{
    return (n_items + PLR_TREE_ITEMS - 1) / PLR_TREE_ITEMS;
}

static inline int plr_guide_bits(size_t n_items)
{
    return 1 + plr_bits_for(plr_guide_trees(n_items));
}

/* Return the largest value of draws_at_first. */
static inline size_t plr_most_at_first(size_t cutoff)
{
    return 2 * cutoff + 16;
}

#endif
