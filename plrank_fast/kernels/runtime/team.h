/* Loops that a team works off: the calling thread, and helpers that join it while there is something to do.
 *
 * The caller begins at once and waits for nobody: a helper that gets no processor in time finds the loop closed, and the
 * caller has done everything. At the end it waits only for what helpers have begun. OpenMP's parallel region ends with
 * a barrier for the whole team instead, so that beside a busy process a call of two milliseconds took ten times as long
 * with two threads as with one: the second thread had to be given a time slice to say that it had nothing to do.
 *
 * Helpers are kept for the next loop, asleep. Where one cannot be created (address space, processes of the user or of
 * the container), the team is smaller. A forked child has none and must not ask for any.
 */
#ifndef PLR_TEAM_H
#define PLR_TEAM_H

#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define PLR_HELPER_STACK ((size_t)4 << 20)
/* How long the caller stays awake for helpers that finish what they have begun: to wake up costs about as much. */
#define PLR_AWAKE_NS 5e4

typedef struct plr_loop {
    void (*body)(const void *call, intptr_t index, char *workspace);
    const void *call;
    intptr_t next; /* index that has not been started */
    intptr_t stop;
    intptr_t chunk; /* indices in a row that one thread takes */
    char *memory;   /* workspace of the caller; those of its helpers follow, `stride` bytes apart */
    size_t stride;
    /* the team */
    int seats;  /* helpers that may still join */
    int joined; /* that have */
    int inside; /* that have not left yet */
    fenv_t arithmetic;
    pthread_cond_t changed;
    struct plr_loop *further;
} plr_loop;

/* The helpers of a process. Every loop is promised its seats by helpers of its own, so that a caller who insists on a
 * whole team gets it, whatever others do at the same time. */
typedef struct {
    pthread_mutex_t lock; /* of all but the last two, and of the teams of loops */
    pthread_cond_t called;
    plr_loop *open;
    int helpers;
    int promised;
    /* for tests: the largest team since it was asked last, and which of its threads (modulo 64) have been given work */
    int largest_team;
    uint64_t workers;
} plr_pool;

#define PLR_EMPTY_POOL {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, 0, 0, 0, 0}

static inline double plr_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static inline void plr_work(plr_pool *pool, plr_loop *loop, int thread)
{
    const uint64_t worker = (uint64_t)1 << thread % 64;
    for (;;) {
        const intptr_t start = __atomic_fetch_add(&loop->next, loop->chunk, __ATOMIC_RELAXED);
        if (start >= loop->stop)
            return;
        if (!(__atomic_load_n(&pool->workers, __ATOMIC_RELAXED) & worker))
            __atomic_fetch_or(&pool->workers, worker, __ATOMIC_RELAXED);
        const intptr_t stop = loop->stop - start < loop->chunk ? loop->stop : start + loop->chunk;
        for (intptr_t i = start; i < stop; i++)
            loop->body(loop->call, i, loop->memory + thread * loop->stride);
    }
}

/* What a helper does all its life. */
static inline void *plr_help(void *pool_)
{
    plr_pool *pool = pool_;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        plr_loop *loop = pool->open;
        while (loop != NULL && loop->seats == 0)
            loop = loop->further;
        if (loop == NULL) {
            pthread_cond_wait(&pool->called, &pool->lock);
            continue;
        }
        const int thread = ++loop->joined;
        __atomic_store_n(&loop->inside, loop->inside + 1, __ATOMIC_RELAXED);
        if (--loop->seats == 0)
            pthread_cond_signal(&loop->changed);
        pthread_mutex_unlock(&pool->lock);
        fesetenv(&loop->arithmetic); /* rounding, and whether subnormal numbers are flushed, as for the caller */
        plr_work(pool, loop, thread);
        pthread_mutex_lock(&pool->lock);
        __atomic_store_n(&loop->inside, loop->inside - 1, __ATOMIC_RELEASE);
        if (loop->inside == 0)
            pthread_cond_signal(&loop->changed);
    }
    return NULL;
}

/* Whether there is one more. Signals are for the threads that were there before; faults are everybody's own. */
static inline int plr_new_helper(plr_pool *pool)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t blocked, before;
    int created = 0;
    if (pthread_attr_init(&attributes) != 0)
        return 0;
    sigfillset(&blocked);
    sigdelset(&blocked, SIGSEGV);
    sigdelset(&blocked, SIGBUS);
    sigdelset(&blocked, SIGFPE);
    sigdelset(&blocked, SIGILL);
    sigdelset(&blocked, SIGABRT);
    if (pthread_attr_setstacksize(&attributes, PLR_HELPER_STACK) == 0 &&
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
        pthread_sigmask(SIG_SETMASK, &blocked, &before) == 0) {
        created = pthread_create(&thread, &attributes, plr_help, pool) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_attr_destroy(&attributes);
    pool->helpers += created;
    return created;
}

static inline void plr_open(plr_pool *pool, plr_loop *loop, int seats, int whole_team)
{
    fegetenv(&loop->arithmetic);
    pthread_cond_init(&loop->changed, NULL);
    pthread_mutex_lock(&pool->lock);
    while (pool->helpers < pool->promised + seats && plr_new_helper(pool))
        ;
    if (seats > pool->helpers - pool->promised)
        seats = pool->helpers - pool->promised;
    pool->promised += seats;
    loop->seats = seats;
    loop->further = pool->open;
    pool->open = loop;
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < seats; i++)
        pthread_cond_signal(&pool->called);
    if (whole_team) {
        pthread_mutex_lock(&pool->lock);
        while (loop->seats > 0)
            pthread_cond_wait(&loop->changed, &pool->lock);
        pthread_mutex_unlock(&pool->lock);
    }
}

/* Nobody joins any more, and those who have are done when this returns. */
static inline void plr_close(plr_pool *pool, plr_loop *loop)
{
    plr_loop **place = &pool->open;
    pthread_mutex_lock(&pool->lock);
    while (*place != loop)
        place = &(*place)->further;
    *place = loop->further;
    pool->promised -= loop->seats + loop->joined;
    if (loop->inside > 0) {
        pthread_mutex_unlock(&pool->lock);
        const double asleep = plr_nanoseconds() + PLR_AWAKE_NS;
        while (__atomic_load_n(&loop->inside, __ATOMIC_ACQUIRE) > 0 && plr_nanoseconds() < asleep)
            ;
        pthread_mutex_lock(&pool->lock);
    }
    while (loop->inside > 0)
        pthread_cond_wait(&loop->changed, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    pthread_cond_destroy(&loop->changed);
}

/* Work off a loop by the calling thread and at most `size` - 1 helpers; how many threads that were. With `whole_team`,
 * for tests, the caller does not begin before all helpers that can be had are there. */
static inline int plr_run_loop(plr_pool *pool, plr_loop *loop, int size, int whole_team)
{
    loop->joined = loop->inside = loop->seats = 0;
#ifndef _OPENMP
    size = 1;
#endif
    if (size > 1)
        plr_open(pool, loop, size - 1, whole_team);
    plr_work(pool, loop, 0);
    if (size > 1)
        plr_close(pool, loop);
    size = 1 + loop->joined;
    if (__atomic_load_n(&pool->largest_team, __ATOMIC_RELAXED) < size)
        __atomic_store_n(&pool->largest_team, size, __ATOMIC_RELAXED);
    return size;
}

#endif
