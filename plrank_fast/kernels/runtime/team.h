/* Teams of threads beyond `prange`: times of threads, threads that the system lacks, and loops within a query. */
#ifndef PLR_TEAM_H
#define PLR_TEAM_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

#include "runtime/atomics.h"
#include "runtime/clock.h"
#include "runtime/parallel_loop.h"
#include "simd/denormals.h"

/* --- the times of a team's threads */

/* Times of one loop, in nanoseconds. The threads work in the calling thread's mode for denormal numbers. */
typedef struct {
    unsigned mode;
    int by_processor;      /* count the time that a thread had a processor: others may wait for one in a pass */
    double started;
    int64_t last_begun;    /* from the start until the last thread began */
    int64_t busy, busiest; /* sum over the threads, and the longest of them */
} team_times;

/* One thread's part in a loop. */
typedef struct {
    unsigned mode;
    double begun;
} team_part;

static inline void plr_raise(int64_t *largest, int64_t value)
{
    int64_t other = __atomic_load_n(largest, __ATOMIC_RELAXED);
    while (other < value &&
           !__atomic_compare_exchange_n(largest, &other, value, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static inline team_part plr_begin_part(team_times *times)
{
    const team_part part = {denormals_mode(), plr_nanoseconds()};
    restore_denormals(times->mode);
    plr_raise(&times->last_begun, (int64_t)(part.begun - times->started));
    return times->by_processor ? (team_part){part.mode, plr_processor_nanoseconds()} : part;
}

static inline void plr_end_part(team_times *times, const team_part *part)
{
    const double now = times->by_processor ? plr_processor_nanoseconds() : plr_nanoseconds();
    __atomic_fetch_add(&times->busy, (int64_t)(now - part->begun), __ATOMIC_RELAXED);
    plr_raise(&times->busiest, (int64_t)(now - part->begun));
    restore_denormals(part->mode);
}

/* --- passes that threads take one by one, where no `prange` can share them */

typedef struct {
    team_times times;
    loop_body body;
    void *argument;
    intptr_t next, stop, chunk;
    pthread_t caller;
    int others; /* threads that have joined it */
} shared_passes;

static inline void plr_take_passes(shared_passes *passes, int seat)
{
    const team_part part = plr_begin_part(&passes->times);
    intptr_t i;
    while ((i = __atomic_fetch_add(&passes->next, passes->chunk, __ATOMIC_RELAXED)) < passes->stop)
        for (const intptr_t end = i + passes->chunk; i < end && i < passes->stop; i++)
            passes->body(passes->argument, i, seat);
    plr_end_part(&passes->times, &part);
}

/* Share passes with the other threads of the caller's team, which wait at the end of its `prange` and take tasks there.
 * No thread is waited for that has not begun. */
static inline void plr_share_passes(shared_passes *passes, int seats)
{
#ifdef _OPENMP
#pragma omp taskgroup
    {
        for (int seat = 1; seat < seats; seat++) {
#pragma omp task firstprivate(passes, seat)
            plr_take_passes(passes, seat);
        }
        plr_take_passes(passes, 0);
    }
#else
    (void)seats;
    plr_take_passes(passes, 0);
#endif
}

/* --- threads that call us, each of which has teams of its own in an OpenMP runtime */

typedef struct {
    uintptr_t borrowed;    /* `GOMP_parallel` of another library's runtime on whose team it runs loops, or 0 */
    uintptr_t lender;      /* the last one of these */
    int own, of_lender;    /* the size of its latest team in our own runtime and in the lender's */
    double ended;          /* when its last team ended */
    double saved;          /* time by which its teams were faster than one thread, in all */
} calling_thread;

/* Where memory is short, a thread-local variable of a library ends the process: `callers` is a key of the system. */
static inline int plr_make_callers(pthread_key_t *callers)
{
    return pthread_key_create(callers, free);
}

/* Return the record of the calling thread, or NULL if there is no memory. */
static inline calling_thread *plr_caller(pthread_key_t callers)
{
    calling_thread *caller = pthread_getspecific(callers);
    if (!caller && (caller = calloc(1, sizeof *caller)) && pthread_setspecific(callers, caller)) {
        free(caller);
        return NULL;
    }
    return caller;
}

static inline void *plr_wait_and_end(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* Return how many of `wanted` threads the system can create now, by creating them: a runtime of OpenMP ends the process
 * if it cannot. */
static inline int plr_possible_threads(int wanted)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t *threads = malloc((size_t)wanted * sizeof *threads);
    sigset_t all, before;
    int n = 0;
    sigfillset(&all); /* signals are for threads that Python knows */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_mutex_lock(&gate);
    while (threads && n < wanted && pthread_create(threads + n, NULL, plr_wait_and_end, &gate) == 0)
        n++;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    free(threads);
    return n;
}

/* Return the size of the team that a thread can have instead of `wanted`: if it is larger than its `latest` team in the
 * same runtime, it has new threads. */
static inline int plr_possible_team(int *latest, int wanted)
{
    const int there = *latest > 1 ? *latest : 1;
    if (wanted > there)
        wanted = there + plr_possible_threads(wanted - there);
    return *latest = wanted;
}

/* Run the caller's loops on the teams of another runtime from now on, 0 for those of our own; return what was valid
 * before. A library that calls us has threads that spin for milliseconds where teams of our own would need to run. */
static inline uintptr_t plr_borrow(calling_thread *caller, uintptr_t parallel)
{
    const uintptr_t before = caller->borrowed;
    caller->borrowed = parallel;
    if (parallel && parallel != caller->lender)
        caller->lender = parallel, caller->of_lender = 0;
    return before;
}

static inline void plr_take_seat(void *passes_)
{
    shared_passes *passes = passes_;
    const int is_caller = pthread_equal(pthread_self(), passes->caller);
    plr_take_passes(passes, is_caller ? 0 : 1 + __atomic_fetch_add(&passes->others, 1, __ATOMIC_RELAXED));
}

static inline void plr_run_borrowed(uintptr_t parallel, shared_passes *passes, int size)
{
    passes->caller = pthread_self();
    ((void (*)(void (*)(void *), void *, unsigned, unsigned))parallel)(plr_take_seat, passes, (unsigned)size, 0);
}

#endif
