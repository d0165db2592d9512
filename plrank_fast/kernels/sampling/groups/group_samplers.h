/* Samplers that draw a group of sixteen rankings at a time, behind one interface. Each has a .c file of its name, which
 * says how it draws. */
#ifndef PLR_GROUP_SAMPLERS_H
#define PLR_GROUP_SAMPLERS_H

#include "random/random_stream.h"
#include "runtime/parallel_loop.h"
#include "sampling/groups.h"
#include "simd/isa.h"

typedef struct {
    size_t n_items;
    size_t cutoff;          /* ranks to draw, at most n_items */
    const double *weights;  /* weight of each item, 1 at most */
    double total;           /* their sum */
    parallel_loop loop;     /* by which threads may prepare the guide table together */
    /* The slot table reads these: */
    double mean_draws;      /* mean number of draws that a ranking takes, */
    double deviation;       /* its standard deviation, */
    double draws_per_item;  /* and mean number of draws for the last item */
    /* The threshold sampler reads this: */
    double deadline;        /* enough items arrive before it in all but one of some thousand rankings */
} group_query;

typedef struct {
    /* Return the bytes of a sampler, which do not shrink as queries grow. */
    size_t (*size)(size_t n_items, size_t cutoff);
    /* Prepare a sampler for a query in so many bytes, on a cache line; it starts there. */
    void (*prepare)(void *sampler, const group_query *query);
    /* Draw the rankings of samples first_sample, ... of a block into columns (cutoff, 16). At least the first n_lanes
     * (1 to 16) are defined, and they do not depend on n_lanes. */
    void (*draw_group)(void *sampler, plr_stream *stream, uint64_t salt, uint64_t first_sample, size_t n_lanes,
                       int32_t *columns);
} group_kernels;

typedef group_kernels network_kernels;
typedef group_kernels slot_table_kernels;
typedef group_kernels threshold_kernels;
typedef struct {
    group_kernels sampler;
    /* Return the bytes of a sampler that shares the table of another one. */
    size_t (*own_size)(size_t cutoff);
    /* Prepare a sampler that draws from the table of a prepared one: it takes no time, and next to no memory. */
    void (*share)(void *sampler, const void *prepared);
    /* For tests: look up the items that n words draw. */
    void (*look_up)(const void *sampler, const uint64_t *words, size_t n, int32_t *items);
} guide_table_kernels;

PLR_DECLARE_KERNELS(network_kernels)
PLR_DECLARE_KERNELS(slot_table_kernels)
PLR_DECLARE_KERNELS(threshold_kernels)
PLR_DECLARE_KERNELS(guide_table_kernels)

#define PLR_NETWORK_ITEMS 1024
#define PLR_FLOAT_SPREAD 72.0 /* nats from the lightest to the heaviest item whose times fit a float32: 104 octaves */
#define PLR_SLOT_ITEMS 4096 /* most items of the slot table: 2^16 slots are 16 for each */
#define PLR_FEW_ROWS 160 /* expected rows of draws up to which the slot table serves */
#define PLR_THRESHOLD_CANDIDATES 1024 /* most candidates of a ranking that the sorting network sorts */

/* Return the mean number of candidates of a ranking by threshold; there is room for six standard deviations more. */
static inline double plr_mean_candidates(size_t cutoff)
{
    return (double)cutoff + 3.3 * __builtin_sqrt((double)cutoff) + 2.0;
}

static inline size_t plr_most_candidates(size_t cutoff)
{
    double mean = plr_mean_candidates(cutoff);
    return ((size_t)(mean + 6.0 * __builtin_sqrt(mean)) + 15) / 16 * 16;
}

/* Return the draws of a ranking after which the guide table lets a slow race complete it. */
static inline size_t plr_guide_draws(size_t cutoff)
{
    return 8 * cutoff + 64;
}

/* Take the next piece of a sampler's memory; pieces start on cache lines. Memory from 0 on only measures. */
static inline void *plr_take(uintptr_t *next, size_t bytes)
{
    uintptr_t piece = *next;
    *next += (bytes + 63) / 64 * 64;
    return (void *)piece;
}

#endif
