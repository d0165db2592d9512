/* PL-Rank-3 over rankings in lockstep, O(K) per ranking. */
#ifndef PLR_PLRANK_PASS_H
#define PLR_PLRANK_PASS_H

#include "isa.h"
#include "lockstep.h"

/* One query. Item n_items is a dummy: rankings that are not wanted consist of it. */
typedef struct {
    size_t n_items;
    size_t cutoff;              /* ranks that count, K */
    size_t depth;               /* ranks in the columns: cutoff, or all n_items */
    const double *rank_weights; /* (depth,) theta, 0 past the cutoff */
    const double *baseline;     /* (depth,) taken off the reward after each rank, or NULL */
    double *records;            /* (n_items + 1, record_length), all 0 for the dummy */
    double total_weight;
    double total_reward[PLR_LOCKSTEP]; /* sums over the rankings in each lane of reward / S and theta / S over ranks */
    double total_direct[PLR_LOCKSTEP];
    double first_reward[PLR_LOCKSTEP]; /* and of the reward from rank 1 on; by `backward` */
    double *states;             /* (depth + 1, 4, 16), scratch memory */
    size_t settle_after;        /* rankings after which the caller moves the sums on to the gradient */
    size_t unsettled;
    int inexact;                /* the caller found rounding amplified too much */
} plrank_pass;

/* A record of an item is [relevance, weight, sums of its terms ...]. Samples side by side often place the same item of a
 * short list, and an addition must wait for the one before it in memory: each of four neighbouring samples has a sum of
 * its own then, in the one cache line of the item, as long as the records stay in the first-level cache. */
#define PLR_CACHED_ITEMS 400

static inline size_t plr_record_length(size_t n_items)
{
    return n_items <= PLR_CACHED_ITEMS ? 8 : 4;
}

typedef struct {
    /* Add n_lanes (1 to 16) rankings of columns (depth, 16), which are overwritten. */
    void (*backward)(plrank_pass *pass, int32_t *columns, size_t n_lanes);
    void (*forward)(plrank_pass *pass, int32_t *columns, size_t n_lanes);
} plrank_pass_kernels;

PLR_DECLARE_KERNELS(plrank_pass_kernels)

#endif
