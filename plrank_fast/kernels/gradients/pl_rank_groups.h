/* PL-Rank-3 over groups of sixteen rankings, O(K) per ranking, or O(D + K) where rounding would be amplified. */
#ifndef PLR_PL_RANK_GROUPS_H
#define PLR_PL_RANK_GROUPS_H

#include "simd/isa.h"
#include "sampling/groups.h"

/* One query. */
typedef struct {
    size_t n_items;
    size_t cutoff;              /* ranks that count, K */
    const double *rank_weights; /* (cutoff,) theta */
    const double *relevance;    /* (n_items,) */
    const double *weights;      /* (n_items,) */
    double *gradient;           /* (n_items,) */
    double *odd;                /* (n_items,) terms that are still to be added to it; unused for many items */
    double total_weight;
    double limit;               /* of RI_K over PR_1, and of DR_K over theta_1, that is accurate enough */
    int may_be_peaked;          /* whether a ranking may exceed it */
    int is_peaked;              /* whether one has, since the caller set this to 0 */
    int is_signed;              /* whether any relevance or rank weight is negative; unused if none may exceed it */
    double total_risk[PLR_GROUP_SIZE];   /* sums over the rankings of each lane: of RI_K */
    double total_direct[PLR_GROUP_SIZE]; /* and of DR_K */
    double risk, direct, denominator;    /* the sums of both over all lanes, and what to divide the gradient by */
    int8_t *unplaced;              /* (samples side by side, plr_marks(n_items)) -1 for items not placed, else 0 */
    double *states;                /* (cutoff, PLR_STATE, samples side by side) */
} pl_rank_groups;

#define PLR_MOST_SAMPLES 8 /* side by side, at any SIMD level */
#define PLR_ODD_ITEMS 4096 /* among more items, neighbours seldom place the same one */
#define PLR_STATE 4 /* numbers of a rank: relevance and weight of its item, PR past it and 1 / S, by the pass forward */

/* Return the length of a row of marks, which whole registers read. */
static inline size_t plr_marks(size_t n_items)
{
    return (n_items + 7) / 8 * 8;
}

typedef struct {
    /* Add n_lanes (1 to 16) rankings of columns (cutoff, 16). */
    void (*add_group)(pl_rank_groups *pass, const int32_t *columns, size_t n_lanes);
    /* Add to the gradient of some items, which has their own terms, the part common to all, and divide it. */
    void (*add_common_part)(const pl_rank_groups *pass, size_t start, size_t stop);
} pl_rank_groups_kernels;

PLR_DECLARE_KERNELS(pl_rank_groups_kernels)

#endif
