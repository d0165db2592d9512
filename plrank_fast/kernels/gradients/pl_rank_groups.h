/* PL-Rank-3 over groups of sixteen rankings, O(K) per ranking backward, O(D) forward. */
#ifndef PLR_PL_RANK_GROUPS_H
#define PLR_PL_RANK_GROUPS_H

#include "simd/isa.h"
#include "sampling/groups.h"

/* One query. Unused rankings consist of a dummy item.
 *
 * Every item has a record, and the dummy has the last one. If the rankings can only place few of many items, there are
 * no records: relevance and weights of the items that a few rankings place are gathered, and terms are added to the
 * gradient one by one. */
typedef struct {
    size_t n_items;
    size_t cutoff;              /* ranks that count, K */
    const double *rank_weights; /* (cutoff,) theta */
    const double *relevance;    /* (n_items,) */
    double *weights;            /* (n_items,); changed while a kernel runs */
    double *records;            /* (n_items + 1, PLR_RECORD), all 0 for the dummy */
    double *gathered;           /* (cutoff, 2, samples side by side) relevance and weight of the items at each rank */
    double *gradient;           /* (n_items,) of `backward_scattered` */
    double total_weight;
    double total_risk[PLR_GROUP_SIZE];   /* sums over the rankings of each lane: of RI_K, */
    double total_direct[PLR_GROUP_SIZE]; /* of DR_K, */
    double first_reward[PLR_GROUP_SIZE]; /* and of the reward from rank 1 on; all by `backward` */
    int8_t *unplaced;           /* (n_items + 1, 16) -1 where `forward` finds an item not placed, else 0 */
    double left[PLR_GROUP_SIZE];   /* S_{K+1}, */
    double direct[PLR_GROUP_SIZE]; /* DR_K */
    double risk[PLR_GROUP_SIZE];   /* and RI_K of each ranking; all by `forward` */
    double *scratch;            /* (cutoff, 2, samples side by side) PR and S that `forward` keeps */
} pl_rank_groups;

#define PLR_RECORD 4 /* numbers of an item: relevance, weight, two sums of its terms */
#define PLR_MOST_SAMPLES 8 /* side by side, at any SIMD level */

typedef struct {
    /* Add n_lanes (1 to 16) rankings of columns (cutoff, 16), which are overwritten. */
    void (*backward)(pl_rank_groups *pass, int32_t *columns, size_t n_lanes);
    void (*forward)(pl_rank_groups *pass, int32_t *columns, size_t n_lanes);
    /* Do the same as `backward` without records; the columns need no dummies. */
    void (*backward_scattered)(pl_rank_groups *pass, const int32_t *columns, size_t n_lanes);
    /* Add to the gradient, which has the items' own terms, the part common to all, and divide it. */
    void (*add_common_part)(const pl_rank_groups *pass, double direct, double risk, double denominator);
} pl_rank_groups_kernels;

PLR_DECLARE_KERNELS(pl_rank_groups_kernels)

#endif
