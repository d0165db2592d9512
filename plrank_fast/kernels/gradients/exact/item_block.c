#include "gradients/exact/item_block.h"

#include <string.h>

#define CLASSES 256 /* of weights: quarter octaves, the last of which includes all lighter ones */

/* Return the number of quarter octaves below 1. */
static inline int64_t quarter_octave(double w)
{
    const int64_t one = (int64_t)1023 << 2; /* exponent and two bits of the mantissa of 1.0 */
    int64_t word;
    memcpy(&word, &w, sizeof word);
    word = one - (word >> 50);
    return word < CLASSES - 1 ? word : CLASSES - 1;
}

/* Turn the counts of the classes into the places of their first items, from `place` on. With `falling`, heavy classes
 * come first. *n_heavy gets the number of items in the classes up to the last heavy one. */
static inline void turn_into_places(intptr_t *counts, int classes, int64_t last_heavy, const int falling,
                                    intptr_t place, intptr_t *n_heavy)
{
    *n_heavy = 0;
    for (int i = 0; i < classes; i++) {
        const int k = falling ? i : classes - 1 - i;
        const intptr_t count = counts[k];
        counts[k] = place;
        place += count;
        if (k <= last_heavy)
            *n_heavy += count;
    }
}

void order_items(intptr_t n, const double *w, const double *rho, double heavy, uint16_t *key, item_block *items)
{
    intptr_t counts[2 * CLASSES] = {0}, *irrelevant = counts, *relevant = counts + CLASSES, n_relevant = 0;
    const int64_t last_heavy = heavy >= 1 ? -1 : quarter_octave(heavy);
    int64_t lightest = 0;
    for (intptr_t j = 0; j < n; j++) {
        const int64_t k = quarter_octave(w[j]);
        const int is_relevant = rho[j] != 0;
        lightest = k > lightest ? k : lightest;
        n_relevant += is_relevant;
        key[j] = (uint16_t)(k + CLASSES * is_relevant);
        counts[key[j]]++;
    }
    const int classes = (int)lightest + 1;
    const intptr_t total = (n + QUARTET - 1) / QUARTET * QUARTET;
    intptr_t heavy_relevant, heavy_irrelevant;
    turn_into_places(relevant, classes, last_heavy, 1, 0, &heavy_relevant);
    turn_into_places(irrelevant, classes, last_heavy, 0, n_relevant + total - n, &heavy_irrelevant);
    for (intptr_t j = n_relevant; j < n_relevant + total - n; j++) {
        items->item[j] = -1;
        items->w[j] = items->rho[j] = 0;
    }
    for (intptr_t j = 0; j < n; j++) {
        const intptr_t to = counts[key[j]]++;
        items->item[to] = j;
        items->w[to] = w[j];
        items->rho[to] = rho[j];
    }
    items->quartets = total / QUARTET;
    items->relevant = (n_relevant + QUARTET - 1) / QUARTET;
    items->light_begin = (heavy_relevant + QUARTET - 1) / QUARTET;
    items->light_end = (total - heavy_irrelevant) / QUARTET;
    if (items->light_end < items->light_begin)
        items->light_end = items->light_begin;
    items->light_weight = 0;
    for (intptr_t j = QUARTET * items->light_begin; j < QUARTET * items->light_end; j++)
        items->light_weight += items->w[j];
}

/* A bottom-up merge sort. */
void sort_by_key(intptr_t n, double *key, intptr_t *order, double *key_buffer, intptr_t *order_buffer)
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
