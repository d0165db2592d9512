/* A race of exponential clocks in double precision: the slow, certain way to draw ranks. */
#ifndef PLR_RACE_H
#define PLR_RACE_H

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

#endif
