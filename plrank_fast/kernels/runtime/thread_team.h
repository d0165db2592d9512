/* A loop whose passes the threads of a team share, and what its threads measure. */
#ifndef PLR_THREAD_TEAM_H
#define PLR_THREAD_TEAM_H

#include <stdint.h>

#include "runtime/clock.h"
#include "runtime/parallel_loop.h"
#include "simd/denormals.h"

/* The largest team, and the set of its threads (modulo 64) that have been given work, for tests. */
typedef struct {
    int size;
    uint64_t workers;
} team_record;

/* A thread takes `chunk` consecutive passes at a time. Seat 0 is that of the calling thread, whose mode for denormal
 * numbers all take over; `taken` others have joined it. Times are in nanoseconds. */
typedef struct {
    loop_body body;
    void *argument;
    intptr_t next, stop, chunk;
    int taken;
    unsigned mode;
    double started;
    int by_processor;       /* whether to ask how long threads had a processor: others may wait for one in a pass */
    int64_t last_begun;     /* time from the start to the beginning of the last thread that joined */
    int64_t busy, busiest;  /* time that passes took of all threads, and of the one that had most */
    team_record *record;
} team_loop;

static inline void plr_note_worker(team_record *record, int seat)
{
    const uint64_t worker = (uint64_t)1 << seat % 64;
    if (!(__atomic_load_n(&record->workers, __ATOMIC_RELAXED) & worker))
        __atomic_fetch_or(&record->workers, worker, __ATOMIC_RELAXED);
}

static inline void plr_note_size(team_record *record, int size)
{
    if (__atomic_load_n(&record->size, __ATOMIC_RELAXED) < size)
        __atomic_store_n(&record->size, size, __ATOMIC_RELAXED);
}

static inline void plr_take_passes(team_loop *loop, int seat)
{
    const unsigned before = denormals_mode();
    intptr_t i;
    restore_denormals(loop->mode);
    while ((i = __atomic_fetch_add(&loop->next, loop->chunk, __ATOMIC_RELAXED)) < loop->stop) {
        const intptr_t end = loop->stop - i < loop->chunk ? loop->stop : i + loop->chunk;
        plr_note_worker(loop->record, seat);
        for (; i < end; i++)
            loop->body(loop->argument, i, seat);
    }
    restore_denormals(before);
}

static inline void plr_raise(int64_t *largest, int64_t value)
{
    int64_t other = __atomic_load_n(largest, __ATOMIC_RELAXED);
    while (other < value &&
           !__atomic_compare_exchange_n(largest, &other, value, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* Do the part of the thread that has this seat. */
static inline void plr_take_part(team_loop *loop, int seat)
{
    double begun = plr_nanoseconds();
    plr_raise(&loop->last_begun, (int64_t)(begun - loop->started));
    if (__atomic_load_n(&loop->next, __ATOMIC_RELAXED) < loop->stop) {
        if (loop->by_processor)
            begun = plr_processor_nanoseconds();
        plr_take_passes(loop, seat);
        const int64_t busy = (int64_t)((loop->by_processor ? plr_processor_nanoseconds() : plr_nanoseconds()) - begun);
        __atomic_fetch_add(&loop->busy, busy, __ATOMIC_RELAXED);
        plr_raise(&loop->busiest, busy);
    }
}

#endif
