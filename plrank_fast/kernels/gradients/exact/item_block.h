/* A panel's items, in the order that the evaluators want: relevant ones by falling weight, null items (w = 0) to fill
 * up the last quartet, irrelevant ones by rising weight. Heavy items are thus at both ends and light ones in the
 * middle, and the items for which less is to be computed stand together. */
#ifndef PLR_ITEM_BLOCK_H
#define PLR_ITEM_BLOCK_H

#include "simd/isa.h"

/* Items are worked off in quartets so that enough chains of multiply-adds run at once. */
#define QUARTET 4

typedef struct {
    intptr_t quartets;
    intptr_t relevant;               /* quartets with a relevant item come first */
    intptr_t light_begin, light_end; /* quartets whose odds never exceed those up to which series run upwards */
    double light_weight;             /* sum of w over them */
    int sorted;                      /* whether the order by weight is kept among the light ones too */
    double *w, *rho;                 /* weight and relevance; null items have none of either */
    intptr_t *item;                  /* item of the panel, -1 for null items */
    double *position;                /* with normal arrival times: f over sigma, very low for null items; else NULL */
} item_block;

#define order_items ISA(order_items)
#define sort_by_key ISA(sort_by_key)

/* Put n items of weights w and relevance rho into that order, by a counting sort on the weight: quarter octaves, or
 * only heavy and light. heavy: weight above which an item is heavy; key: room for n numbers. */
void order_items(intptr_t n, const double *w, const double *rho, double heavy, int sorted, uint16_t *key,
                 item_block *items);
/* Keys falling, and `order` alongside; stable. */
void sort_by_key(intptr_t n, double *key, intptr_t *order, double *key_buffer, intptr_t *order_buffer);

#endif
