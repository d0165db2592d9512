/* Memory, time, and the record that the threads of a team keep of the team. */
#ifndef PLR_THREAD_TEAM_H
#define PLR_THREAD_TEAM_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "runtime/number_of_thread.h"
#include "runtime/openmp.h"

/* Allocate large blocks on huge pages if the system grants them: without them, the gradient of one query of a million
 * documents spends a third of its time on page faults, and takes twice as long. */
static inline void *plr_allocate(size_t size)
{
    char *memory = malloc(size);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    const size_t page = (size_t)4 << 10;
    if (memory != NULL && size >= (size_t)8 << 20) {
        size_t skipped = (page - (size_t)memory % page) % page;
        madvise(memory + skipped, (size - skipped) / page * page, MADV_HUGEPAGE);
    }
#endif
    return memory;
}

static inline void *plr_exchange(void **place, void *block)
{
    return __atomic_exchange_n(place, block, __ATOMIC_ACQ_REL);
}

static inline void plr_count(long long *number)
{
    __atomic_fetch_add(number, 1, __ATOMIC_RELAXED);
}

static inline double plr_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

/* The running team, as its threads see it: its size, the set of threads (modulo 64) that have been given work, and for
 * the current round their number and when the last of them began. Each thread has the size of the last team that it
 * began, and the last round that it saw. */
typedef struct {
    int size;
    uint64_t workers;
    int round, begun;
    double last_begun;
    double pause, pause_ends; /* length and end of the last pause, in which short rounds have no team */
    number_of_thread last_team, round_seen;
} thread_team;

static inline void plr_make_numbers(thread_team *team)
{
    plr_make_number(&team->last_team);
    plr_make_number(&team->round_seen);
}

static inline void plr_new_round(thread_team *team)
{
    __atomic_fetch_add(&team->round, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&team->begun, 0, __ATOMIC_RELAXED);
}

/* Return whether at least n_threads have begun in this round, all before `moment`; teams of other Python threads count
 * as well. */
static inline int plr_began_by(const thread_team *team, int n_threads, double moment)
{
    double last;
    __atomic_load(&team->last_begun, &last, __ATOMIC_RELAXED);
    return __atomic_load_n(&team->begun, __ATOMIC_RELAXED) >= n_threads && last < moment;
}

static inline double plr_get(const double *number)
{
    double value;
    __atomic_load(number, &value, __ATOMIC_RELAXED);
    return value;
}

static inline void plr_set(double *number, double value)
{
    __atomic_store(number, &value, __ATOMIC_RELAXED);
}

static inline void plr_note_beginning(thread_team *team)
{
    const int round = __atomic_load_n(&team->round, __ATOMIC_RELAXED);
    if (plr_own(&team->round_seen) == round)
        return;
    plr_set_own(&team->round_seen, round);
    double now = plr_nanoseconds();
    __atomic_store(&team->last_begun, &now, __ATOMIC_RELAXED);
    __atomic_fetch_add(&team->begun, 1, __ATOMIC_RELAXED);
}

static inline int plr_enter_team(thread_team *team)
{
    const int size = omp_get_num_threads(), thread = omp_get_thread_num();
    const uint64_t worker = (uint64_t)1 << thread % 64;
    if (__atomic_load_n(&team->size, __ATOMIC_RELAXED) < size)
        __atomic_store_n(&team->size, size, __ATOMIC_RELAXED);
    if (!(__atomic_load_n(&team->workers, __ATOMIC_RELAXED) & worker))
        __atomic_fetch_or(&team->workers, worker, __ATOMIC_RELAXED);
    plr_note_beginning(team);
    return thread;
}

#endif
