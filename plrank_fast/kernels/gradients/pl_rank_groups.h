/* PL-Rank-3 over groups of sixteen rankings, O(K) per ranking backward, O(D) forward. */
#ifndef PLR_PL_RANK_GROUPS_H
#define PLR_PL_RANK_GROUPS_H

#include "simd/isa.h"
#include "sampling/groups.h"

/* One query. Unused rankings consist of a dummy item.
 *
 * Every item has a record, and the dummy has the last one. If the rankings can only place few of many items, there are
 * no records: relevance and weights of the items that a few rankings place are gathered, and terms are noted in the
 * order in which they arise, to be added to their items at the end. */
typedef struct {
    size_t n_items;
    size_t cutoff;              /* ranks that count, K */
    size_t depth;               /* ranks in the columns: cutoff, or all n_items */
    const double *rank_weights; /* (depth,) theta, 0 past the cutoff */
    const double *relevance;    /* (n_items,) */
    double *weights;            /* (n_items,); changed while a kernel runs */
    double *records;            /* (n_items + 1, record_length), all 0 for the dummy */
    double *gathered;           /* (cutoff, 2, samples side by side) relevance and weight of the items at each rank */
    int32_t *placed;            /* (2, rankings, cutoff) the items placed so far, */
    double *terms;              /* (2, rankings, cutoff) their terms, */
    size_t n_placed;            /* and their number; the caller sorts them into the other half */
    size_t *starts;             /* scratch of that sort */
    double total_weight;
    double total_risk[PLR_GROUP_SIZE];   /* sums over the rankings of each lane: of RI_K, */
    double total_direct[PLR_GROUP_SIZE]; /* of DR_K, */
    double first_reward[PLR_GROUP_SIZE]; /* and of the reward from rank 1 on; all by `backward` */
    int8_t *unplaced;           /* (n_items + 1, 16) -1 where `forward` finds an item not placed, else 0 */
    double left[PLR_GROUP_SIZE];   /* S_{K+1}, */
    double direct[PLR_GROUP_SIZE]; /* DR_K */
    double risk[PLR_GROUP_SIZE];   /* and RI_K of each ranking; all by `forward` where columns end at the cutoff */
    double *scratch;            /* (cutoff, 2, samples side by side) PR and S that `forward` keeps */
} pl_rank_groups;

/* A record of an item is [relevance, weight, sums of its terms ...]. Samples side by side often place the same item of
 * a short list, and an addition in memory must wait for the one before it. So each of four neighbouring samples has its
 * own sum, all in the item's cache line, as long as the records fit the first-level cache. */
#define PLR_CACHED_ITEMS 400

static inline size_t plr_record_length(size_t n_items)
{
    return n_items <= PLR_CACHED_ITEMS ? 8 : 4;
}

#define PLR_MOST_SAMPLES 8 /* side by side, at any SIMD level */

/* Noted terms are added for one part of the list after another, so that the gradient of a part stays in the cache. */
#define PLR_PART_BITS 17

typedef struct {
    /* Add n_lanes (1 to 16) rankings of columns (depth, 16), which are overwritten. */
    void (*backward)(pl_rank_groups *pass, int32_t *columns, size_t n_lanes);
    void (*forward)(pl_rank_groups *pass, int32_t *columns, size_t n_lanes);
    /* Do the same as `backward` without records; the columns need no dummies. */
    void (*backward_noting)(pl_rank_groups *pass, const int32_t *columns, size_t n_lanes);
} pl_rank_groups_kernels;

PLR_DECLARE_KERNELS(pl_rank_groups_kernels)

#endif
