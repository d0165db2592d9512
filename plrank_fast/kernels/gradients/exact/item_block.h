/* The items of a panel, in the order of the evaluators: relevant ones by descending weight, null items that
 * complete the last quartet, irrelevant ones by ascending weight. So heavy items are at both ends and light ones in the
 * middle, and the items that cost less are adjacent. */
#ifndef PLR_ITEM_BLOCK_H
#define PLR_ITEM_BLOCK_H

#include <string.h>

#include "simd/isa.h"

/* Items are processed in quartets so that enough chains of multiply-adds run at once. */
#define QUARTET 4

/* Items or quartets [begin, end). */
typedef struct {
    intptr_t begin, end;
} item_range;

typedef struct {
    intptr_t quartets;
    intptr_t relevant;               /* quartets with a relevant item come first */
    double *w, *rho;                 /* weight, or score if items have no rate (law.h), and relevance */
    intptr_t *item;                  /* index in the query, -1 for null items */
    double *direction;               /* direction of a product with the Hessian, 0 for null items; else NULL */
    double *stop;                    /* chance that a reader stops there, 0 for null items; unused if none does */
} item_block;

#define CLASSES 256 /* weights in quarter octaves, the last of which includes all lighter ones */

/* Return the number of quarter octaves below 1. */
static inline int64_t quarter_octave(double w)
{
    const int64_t one = (int64_t)1023 << 2; /* exponent and two bits of the mantissa of 1.0 */
    int64_t word;
    memcpy(&word, &w, sizeof word);
    word = one - (word >> 50);
    return word < CLASSES - 1 ? word : CLASSES - 1;
}

/* Return the places of the quartets of n items. */
static inline intptr_t whole_quartets(intptr_t n)
{
    return (n + QUARTET - 1) / QUARTET * QUARTET;
}

/* Put n items of weights w, relevance rho and `w_or_score` into that order, by a counting sort on quarter octaves of
 * the weight; `key` has room for n numbers. With `apart`, no quartet has relevant and irrelevant items. */
static void order_items(intptr_t n, const double *w, const double *w_or_score, const double *rho,
                        const intptr_t *query_item, int apart, uint16_t *key, item_block *items)
{
    intptr_t counts[2 * CLASSES] = {0}, *irrelevant = counts, *relevant = counts + CLASSES, n_relevant = 0;
    int64_t lightest = 0;
    for (intptr_t j = 0; j < n; j++) {
        const int64_t k = quarter_octave(w[j]);
        const int is_relevant = rho[j] != 0;
        lightest = k > lightest ? k : lightest;
        key[j] = (uint16_t)(k + CLASSES * is_relevant);
        counts[key[j]]++;
        n_relevant += is_relevant;
    }
    const intptr_t first = apart ? whole_quartets(n_relevant) : 0;
    const intptr_t total = first + whole_quartets(apart ? n - n_relevant : n);
    intptr_t front = 0, back = total;
    for (int64_t k = 0; k <= lightest; k++) { /* turn counts into places, heavy classes outermost */
        const intptr_t relevant_here = relevant[k];
        back -= irrelevant[k];
        irrelevant[k] = back;
        relevant[k] = front;
        front += relevant_here;
    }
    for (intptr_t j = front; j < back; j++) {
        items->item[j] = -1;
        items->w[j] = items->rho[j] = 0;
    }
    for (intptr_t j = 0; j < n; j++) {
        const intptr_t to = counts[key[j]]++;
        items->item[to] = query_item[j];
        items->w[to] = w_or_score[j];
        items->rho[to] = rho[j];
    }
    items->quartets = total / QUARTET;
    items->relevant = (front + QUARTET - 1) / QUARTET;
}

/* Sort `key` in descending order and permute `order` likewise; stable. A bottom-up merge sort. */
static void sort_by_key(intptr_t n, double *key, intptr_t *order, double *key_buffer, intptr_t *order_buffer)
{
    for (intptr_t width = 1; width < n; width *= 2) {
        for (intptr_t begin = 0; begin < n; begin += 2 * width) {
            intptr_t middle = begin + width < n ? begin + width : n, end = middle + width < n ? middle + width : n;
            intptr_t a = begin, b = middle;
            for (intptr_t to = begin; to < end; to++) {
                intptr_t from = b >= end || (a < middle && key[a] >= key[b]) ? a++ : b++;
                key_buffer[to] = key[from];
                order_buffer[to] = order[from];
            }
        }
        memcpy(key, key_buffer, n * sizeof *key);
        memcpy(order, order_buffer, n * sizeof *order);
    }
}

#endif
