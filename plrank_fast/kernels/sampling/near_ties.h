/* From sorted keys to rankings: read the items, and sort near ties again by exact arrival times.
 *
 * Slot s of sample j is a candidate with a random word at words[s * slot_step + j * sample_step]; its item is at the
 * same index of `items`, or is s itself if `items` is NULL.
 */
#ifndef PLR_NEAR_TIES_H
#define PLR_NEAR_TIES_H

#include "sampling/arrival_keys.h"

typedef struct {
    key_format format;
    const int32_t *keys;    /* (n_sorted, 16), sorted */
    size_t n_sorted;        /* number of sorted rows; the candidates after them have larger keys, unsorted */
    size_t depth;           /* ranks to read */
    const uint32_t *words;
    const int32_t *items;
    size_t slot_step, sample_step;
    const double *weights;
    uint64_t salt, first_sample;
    double *arrivals;       /* room for the repair, as many as candidates */
    int32_t *order;         /* likewise */
    int32_t *columns;       /* OUT (depth, 16) */
} sorted_group;

PLR_INLINE size_t place_of(const sorted_group *group, size_t sample, size_t slot)
{
    return slot * group->slot_step + sample * group->sample_step;
}

PLR_INLINE int32_t item_of(const sorted_group *group, size_t sample, size_t slot)
{
    return group->items ? group->items[place_of(group, sample, slot)] : (int32_t)slot;
}

static double exact_arrival(const sorted_group *group, size_t sample, size_t slot)
{
    int32_t item = item_of(group, sample, slot);
    return exact_exponential(group->words[place_of(group, sample, slot)], group->salt, group->first_sample + sample,
                             item) /
           group->weights[item];
}

/* Sort slots by their exact arrival times, by insertion: runs are short, and all slots of a sample are seldom
 * sorted. */
static void sort_exactly(const sorted_group *group, size_t sample, int32_t *slots, size_t n)
{
    double *arrivals = group->arrivals;
    for (size_t i = 0; i < n; i++) {
        int32_t slot = slots[i];
        double arrival = exact_arrival(group, sample, slot);
        size_t j = i;
        for (; j > 0 && arrivals[j - 1] > arrival; j--) {
            arrivals[j] = arrivals[j - 1];
            slots[j] = slots[j - 1];
        }
        arrivals[j] = arrival;
        slots[j] = slot;
    }
}

/* Sort again every run of near ties in one sample with n_candidates slots. */
static void repair_sample(const sorted_group *group, size_t sample, size_t n_candidates)
{
    const uint32_t *keys = (const uint32_t *)group->keys + sample;
    int32_t *order = group->order;
    size_t known = group->n_sorted < n_candidates ? group->n_sorted : n_candidates;
    for (size_t start = 0, stop; start < group->depth; start = stop) {
        for (stop = start + 1; stop < known; stop++) {
            uint32_t here = keys[stop * PLR_GROUP_SIZE] >> group->format.slot_bits;
            uint32_t before = keys[(stop - 1) * PLR_GROUP_SIZE] >> group->format.slot_bits;
            if (here - before > group->format.nearest)
                break;
        }
        if (stop - start == 1)
            continue;
        int redo = stop == known && known < n_candidates; /* the run may continue among the unsorted candidates */
        size_t first = redo ? 0 : start;
        size_t n = redo ? n_candidates : stop - start;
        for (size_t i = 0; i < n; i++)
            order[i] = redo ? (int32_t)i : (int32_t)keys[(start + i) * PLR_GROUP_SIZE] & group->format.slot_mask;
        sort_exactly(group, sample, order, n);
        for (size_t i = 0; i < n && first + i < group->depth; i++)
            group->columns[(first + i) * PLR_GROUP_SIZE + sample] = item_of(group, sample, order[i]);
    }
}

/* Read the ranks from the keys, and mark the samples in which two neighbouring ranks, or the last and the next key, are
 * near ties; this may mark samples in which they are one unit further apart. Returns whether any sample is marked. */
PLR_INLINE int read_ranks(const sorted_group *group, int32_t near[PLR_GROUP_SIZE], size_t n_behind)
{
    const key_format format = group->format;
    const vec_u32 far = (vec_u32){0} + ((format.nearest + 1) << format.slot_bits);
    int any = 0;
    for (size_t lane = 0; lane < PLR_GROUP_SIZE; lane += PLR_LANES_32) {
        vec_u32 before = (vec_u32)load_row(group->keys + lane, 0), least = far;
        store_row(group->columns + lane, 0, (vec_i32)before & format.slot_mask);
        for (size_t k = 1; k < group->depth; k++) {
            vec_u32 key = (vec_u32)load_row(group->keys + lane, k);
            least = vec_min_u32(least, key - before);
            before = key;
            store_row(group->columns + lane, k, (vec_i32)key & format.slot_mask);
        }
        if (n_behind)
            least = vec_min_u32(least, (vec_u32)load_row(group->keys + lane, group->depth) - before);
        vec_i32 tied = least < far;
        vec_store_i32(near + lane, tied);
        any |= vec_any(tied);
    }
    if (group->items)
        for (size_t k = 0; k < group->depth; k++)
            for (size_t sample = 0; sample < PLR_GROUP_SIZE; sample++) {
                int32_t *slot = group->columns + k * PLR_GROUP_SIZE + sample;
                *slot = group->items[place_of(group, sample, *slot)];
            }
    return any;
}

#endif
