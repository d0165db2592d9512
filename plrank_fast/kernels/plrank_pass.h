/* PL-Rank-3 over rankings in lockstep: eight samples at once, O(K) per ranking. */
#ifndef PLR_PLRANK_PASS_H
#define PLR_PLRANK_PASS_H

#include "isa.h"

/* One query. Item n_items is a dummy: rankings that are not wanted consist of it. */
typedef struct {
    size_t n_items;
    size_t cutoff;              /* ranks that count, K */
    size_t depth;               /* ranks in the columns: cutoff, or all n_items */
    const double *rank_weights; /* (depth,) theta, 0 past the cutoff */
    const double *baseline;     /* (depth,) taken off the reward after each rank, or NULL */
    double *items;              /* (n_items + 1, 2) relevance and weight; 0 for the dummy */
    double *sums;               /* (n_items + 1, copies, 4) sums over rankings that place the item: see plrank_pass.c */
    double total_weight;
    double total_reward;        /* sums over all rankings of reward / S and theta / S over their ranks */
    double total_direct;
    double first_reward;        /* sum over all rankings of the reward from rank 1 on; by `backward` */
    double *states;             /* (depth + 1, 8, 2), for `forward` only */
    size_t settle_after;        /* rankings after which the caller moves the sums on to the gradient */
    size_t unsettled;
    int inexact;                /* the caller found rounding amplified too much */
} plrank_pass;

/* Samples side by side often place the same item of a short list, and an addition must wait for the one before it in
 * memory: each of four neighbouring samples has sums of its own then, as long as all of them stay in the first-level
 * cache. Sampling included it saves 7 % at D = 24, K = 10 and 16 % at D = 120, K = 100. */
#define PLR_COPIED_ITEMS 160

static inline size_t plr_pass_copies(size_t n_items)
{
    return n_items <= PLR_COPIED_ITEMS ? 4 : 1;
}

typedef struct {
    /* Add n_lanes (1 to 16) rankings of columns (depth, 16). */
    void (*backward)(plrank_pass *pass, const int32_t *columns, size_t n_lanes);
    void (*forward)(plrank_pass *pass, const int32_t *columns, size_t n_lanes);
} plrank_pass_kernels;

PLR_DECLARE_KERNELS(plrank_pass_kernels)

#endif
