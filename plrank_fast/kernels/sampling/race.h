/* A race of exponential arrivals in double precision: the slow, exact way to draw ranks. */
#ifndef PLR_RACE_H
#define PLR_RACE_H

#include "sampling/arrival_keys.h"
#include "sampling/groups/group_samplers.h"

/* The n earliest arrivals so far, in order; their items are in a column of a group. */
typedef struct {
    double *arrivals;
    int32_t *column;
    size_t wanted, n;
} race;

static inline void enter_race(race *r, double arrival, int32_t item)
{
    if (r->n == r->wanted && arrival >= r->arrivals[r->n - 1])
        return;
    size_t j = r->n < r->wanted ? r->n++ : r->n - 1;
    for (; j > 0 && r->arrivals[j - 1] > arrival; j--) {
        r->arrivals[j] = r->arrivals[j - 1];
        r->column[j * PLR_GROUP_SIZE] = r->column[(j - 1) * PLR_GROUP_SIZE];
    }
    r->arrivals[j] = arrival;
    r->column[j * PLR_GROUP_SIZE] = item;
}

/* Fill the ranks of one ranking from `placed` to the cutoff by a race of all items not yet placed. */
static inline void finish_by_race(const group_query *query, size_t placed, uint64_t salt, uint64_t sample,
                                  double *arrivals, int32_t *column)
{
    race r = {arrivals, column + placed * PLR_GROUP_SIZE, query->cutoff - placed, 0};
    for (size_t d = 0; d < query->n_items; d++) {
        const uint64_t bits = plr_mix64(~salt + (sample << 32 | d) * PLR_GOLDEN_RATIO);
        const double arrival = exact_exponential((uint32_t)(bits >> 32), bits, sample, d) / query->weights[d];
        if (r.n == r.wanted && arrival >= r.arrivals[r.n - 1])
            continue;
        int is_placed = 0;
        for (size_t k = 0; k < placed; k++)
            is_placed |= column[k * PLR_GROUP_SIZE] == (int32_t)d;
        if (!is_placed)
            enter_race(&r, arrival, (int32_t)d);
    }
}

#endif
