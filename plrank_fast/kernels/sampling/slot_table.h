/* Rankings by drawing with replacement from a table of slots and skipping items that are already placed. */
#ifndef PLR_SLOT_TABLE_H
#define PLR_SLOT_TABLE_H

#include "simd/isa.h"
#include "random/random_stream.h"

#define PLR_SLOT_ITEMS 4096 /* most items: a table of 2^16 slots has 16 for each */
#define PLR_SLOTS_AT_ONCE 32 /* that filling writes at once */
#define PLR_MOST_COMPARED 192 /* rows of draws: a slow race then completes the rankings */
#define PLR_FEW_ROWS 160 /* expected rows up to which the table serves */

typedef struct {
    size_t n_items;
    size_t cutoff;
    const double *weights;
    double total;        /* sum of weights */
    double mean_draws;    /* mean number of draws that a ranking takes, and its standard deviation */
    double deviation;
    double draws_per_item; /* mean number of draws for the last item */
    int slot_bits;
    size_t first_rows;   /* drawn before the first check whether they suffice; an even number */
    uint32_t *slots;     /* (2^slot_bits + PLR_SLOTS_AT_ONCE + 1,), see slot_table.c */
    double *ends;        /* (n_items,) where each item's share of the line of slots ends, in 2^-16 of a slot */
    uint32_t *draws;     /* (PLR_MOST_COMPARED, 16) */
    uint32_t *twins;     /* likewise */
    double *arrivals;    /* (cutoff,) for the race that finishes a ranking */
} slot_table;

typedef struct {
    /* Compute the other numbers from those up to slot_bits. */
    void (*prepare)(slot_table *table);
    /* Draw sixteen rankings into columns (cutoff, 16). */
    void (*draw_group)(slot_table *table, plr_stream *stream, uint64_t salt, uint64_t first_sample, int32_t *columns);
} slot_table_kernels;

PLR_DECLARE_KERNELS(slot_table_kernels)

/* Return the log of the best number of slots: more slots leave fewer draws undecided, and take longer to fill. With
 * twelve slots for each of 316 items, 0.03 % of the draws are undecided at a standard deviation of 1, and 2 % at 3,
 * where twice as many slots still save a fifth of the time. */
static inline int plr_slot_bits(size_t n_items, int peaked)
{
    const size_t wanted = (peaked ? 24 : 12) * n_items;
    int bits = 8;
    while ((size_t)1 << bits < wanted && bits < 16)
        bits++;
    return bits;
}

#endif
