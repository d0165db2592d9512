/* A race of exponential clocks in double precision: the slow, certain way to draw ranks. */
#ifndef PLR_RACE_H
#define PLR_RACE_H

#include "clock_keys.h"
#include "lockstep.h"

/* The n earliest clocks so far, in order; their items stand in a column of a group. */
typedef struct {
    double *clocks;
    int32_t *column;
    size_t wanted, n;
} race;

static inline void enter_race(race *r, double clock, int32_t item)
{
    if (r->n == r->wanted && clock >= r->clocks[r->n - 1])
        return;
    size_t j = r->n < r->wanted ? r->n++ : r->n - 1;
    for (; j > 0 && r->clocks[j - 1] > clock; j--) {
        r->clocks[j] = r->clocks[j - 1];
        r->column[j * PLR_LOCKSTEP] = r->column[(j - 1) * PLR_LOCKSTEP];
    }
    r->clocks[j] = clock;
    r->column[j * PLR_LOCKSTEP] = item;
}

/* Fill the ranks of one ranking from `placed` to the cutoff by a race of all items that are not placed. */
static inline void finish_by_race(const double *weights, size_t n_items, size_t placed, size_t cutoff, uint64_t salt,
                                  uint64_t sample, double *clocks, int32_t *column)
{
    race r = {clocks, column + placed * PLR_LOCKSTEP, cutoff - placed, 0};
    for (size_t d = 0; d < n_items; d++) {
        const uint64_t bits = plr_mix64(~salt + (sample << 32 | d) * UINT64_C(0x9e3779b97f4a7c15));
        const double clock = exact_exponential((uint32_t)(bits >> 32), bits, sample, d) / weights[d];
        if (r.n == r.wanted && clock >= r.clocks[r.n - 1])
            continue;
        int is_placed = 0;
        for (size_t k = 0; k < placed; k++)
            is_placed |= column[k * PLR_LOCKSTEP] == (int32_t)d;
        if (!is_placed)
            enter_race(&r, clock, (int32_t)d);
    }
}

#endif
