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

void order_items(intptr_t n, const double *w, const double *rho, double heavy, uint16_t *key, item_block *items)
{
    intptr_t counts[2 * CLASSES] = {0}, *irrelevant = counts, *relevant = counts + CLASSES;
    const int64_t last_heavy = heavy >= 1 ? -1 : quarter_octave(heavy);
    int64_t lightest = 0;
    for (intptr_t j = 0; j < n; j++) {
        const int64_t k = quarter_octave(w[j]);
        const int is_relevant = rho[j] != 0;
        lightest = k > lightest ? k : lightest;
        key[j] = (uint16_t)(k + CLASSES * is_relevant);
        counts[key[j]]++;
    }
    const intptr_t total = (n + QUARTET - 1) / QUARTET * QUARTET;
    intptr_t front = 0, back = total, light_front = 0, light_back = total;
    for (int64_t k = 0; k <= lightest; k++) { /* turn counts into places, heavy classes outermost */
        const intptr_t n_relevant = relevant[k];
        back -= irrelevant[k];
        irrelevant[k] = back;
        relevant[k] = front;
        front += n_relevant;
        if (k <= last_heavy) {
            light_front = front;
            light_back = back;
        }
    }
    for (intptr_t j = front; j < back; j++) {
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
    items->relevant = (front + QUARTET - 1) / QUARTET;
    items->light_begin = (light_front + QUARTET - 1) / QUARTET;
    items->light_end = light_back / QUARTET;
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
