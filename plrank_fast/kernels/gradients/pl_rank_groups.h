/* PL-Rank-3 over groups of sixteen rankings, O(K) per ranking backward, O(D) forward. */
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
    double *odd;                /* (n_items,) terms that are still to be added to the gradient */
    double total_weight;
    double total_risk[PLR_GROUP_SIZE];   /* sums over the rankings of each lane: of RI_K, */
    double total_direct[PLR_GROUP_SIZE]; /* of DR_K, */
    double first_reward[PLR_GROUP_SIZE]; /* and of the reward from rank 1 on; all by `backward` */
    int8_t *unplaced;              /* (16, plr_marks(n_items)) -1 where a ranking does not place the item, else 0 */
    double direct[PLR_GROUP_SIZE]; /* DR_K of each ranking */
    double risk[PLR_GROUP_SIZE];   /* and RI_K, by `forward` */
    double *states;                /* (cutoff, PLR_STATE, samples side by side) */
} pl_rank_groups;

#define PLR_MOST_SAMPLES 8 /* side by side, at any SIMD level */
#define PLR_STATE 4 /* numbers of a rank: relevance and weight of its item, PR past it and S, by `forward` */

/* Return the length of a row of marks, which whole registers read. */
static inline size_t plr_marks(size_t n_items)
{
    return (n_items + 7) / 8 * 8;
}

typedef struct {
    /* Add n_lanes (1 to 16) rankings of columns (cutoff, 16). */
    void (*backward)(pl_rank_groups *pass, const int32_t *columns, size_t n_lanes);
    void (*forward)(pl_rank_groups *pass, const int32_t *columns, size_t n_lanes);
    /* Add to the gradient, which has the items' own terms, the part common to all, and divide it. */
    void (*add_common_part)(const pl_rank_groups *pass, double direct, double risk, double denominator);
} pl_rank_groups_kernels;

PLR_DECLARE_KERNELS(pl_rank_groups_kernels)

#endif
