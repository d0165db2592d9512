/* Rankings by drawing with replacement from a table of slots and passing over items that are placed already. */
#ifndef PLR_SLOT_TABLE_H
#define PLR_SLOT_TABLE_H

#include "isa.h"
#include "random_stream.h"

#define PLR_SLOT_ITEMS 4096 /* most items: a table of 2^16 slots still leaves 97 % of the draws to one look-up */

typedef struct {
    size_t n_items;
    size_t cutoff;
    const double *weights;
    double total;        /* of the weights */
    size_t n_slots;      /* a power of two, at most 2^16 */
    uint16_t *slots;     /* (n_slots + 64,) an item, or n_items for what the whole slots of all items leave over */
    double *left_over;   /* (n_items,) what whole slots leave over of each item, cumulative */
    uint16_t *guide;     /* (n_items + 4,) where to start looking in it for j / n_items of the sum */
    uint8_t *stamps;     /* (2, n_items, 8) the group that last placed the item */
    uint8_t group;
    uint16_t *words;     /* (a step more than most_rows, 16) */
    size_t most_rows;    /* draws per ranking before it is finished by a race of clocks */
    double *clocks;      /* (cutoff,) for that race */
} slot_table;

typedef struct {
    void (*prepare)(slot_table *table, size_t n_samples);
    /* Draw sixteen rankings into columns (most_rows + 2, 16); the ranks past the cutoff hold nothing of use. */
    void (*draw_group)(slot_table *table, plr_stream *stream, uint64_t salt, uint64_t first_sample, int32_t *columns);
} slot_table_kernels;

PLR_DECLARE_KERNELS(slot_table_kernels)

/* Slots that pay: more make look-ups in one step likelier, and take longer to fill. */
static inline size_t plr_slot_count(size_t n_items, size_t cutoff, size_t n_samples)
{
    size_t per_item = cutoff * n_samples >= 4096 ? 16 : 8;
    size_t n_slots = 1 << 10;
    while (n_slots < per_item * n_items && n_slots < 1 << 16)
        n_slots *= 2;
    return n_slots;
}

static inline size_t plr_slot_rows(size_t cutoff)
{
    return 8 * cutoff + 64;
}

#endif
