/* The items of a panel, in the order of the evaluators: relevant ones by descending weight, null items (w = 0) that
 * complete the last quartet, irrelevant ones by ascending weight. So heavy items are at both ends and light ones in the
 * middle, and the items that cost less are adjacent. */
#ifndef PLR_ITEM_BLOCK_H
#define PLR_ITEM_BLOCK_H

#include "simd/isa.h"

/* Items are processed in quartets so that enough chains of multiply-adds run at once. */
#define QUARTET 4

typedef struct {
    intptr_t quartets;
    intptr_t relevant;               /* quartets with a relevant item come first */
    intptr_t light_begin, light_end; /* quartets whose odds never exceed the limit of series */
    double light_weight;             /* sum of w over them */
    double *w, *rho;                 /* weight and relevance; both are 0 for null items */
    intptr_t *item;                  /* index in the panel, -1 for null items */
    double *direction;               /* of a product with the Hessian, 0 for null items; else NULL */
    double *position;                /* with normal arrival times: f over sigma, very low for null items; else NULL */
} item_block;

#define order_items ISA(order_items)
#define sort_by_key ISA(sort_by_key)

/* Put n items of weights w and relevance rho into that order, by a counting sort on quarter octaves of the weight. An
 * item is heavy if its weight is above `heavy`; `key` has room for n numbers. */
void order_items(intptr_t n, const double *w, const double *rho, double heavy, uint16_t *key, item_block *items);
/* Sort `key` in descending order and permute `order` likewise; stable. */
void sort_by_key(intptr_t n, double *key, intptr_t *order, double *key_buffer, intptr_t *order_buffer);

#endif
