/* The items of a query in blocks, which threads share: sums over a long list are over blocks first, so that they do not
 * depend on the number of threads. */
#ifndef PLR_LIST_BLOCKS_H
#define PLR_LIST_BLOCKS_H

#include "gradients/exact/exact_query.h"
#include "gradients/exact/item_block.h"

#define ITEMS_OF_BLOCK 8192

static inline intptr_t blocks_of_list(intptr_t D)
{
    return (D + ITEMS_OF_BLOCK - 1) / ITEMS_OF_BLOCK;
}

static inline item_range block_of_list(intptr_t D, intptr_t block)
{
    const intptr_t begin = block * ITEMS_OF_BLOCK, next = begin + ITEMS_OF_BLOCK;
    return (item_range){begin, next < D ? next : D};
}

/* The results of a pass over the list: up to six sums of each block. */
#define SUMS_OF_BLOCK 6
typedef struct {
    double sum[SUMS_OF_BLOCK];
} block_sums;

/* Return the sums over all blocks, in the order of the list. */
static inline block_sums sum_blocks(const block_sums *of_block, intptr_t blocks)
{
    block_sums all = of_block[0];
    for (intptr_t block = 1; block < blocks; block++)
        for (int i = 0; i < SUMS_OF_BLOCK; i++)
            all.sum[i] += of_block[block].sum[i];
    return all;
}

#endif
