/* A pool of threads, which share the loops that other threads of the process begin.
 *
 * A loop is open to every thread of the pool from when it begins until its last pass has been taken. The thread that
 * began it waits only for those that have joined it, so one that comes too late costs nothing. Threads without work
 * spin for as long as waking them takes, then sleep: OpenMP's spin for milliseconds, in which the teams of another
 * runtime (PyTorch and XGBoost bring their own) wait for the processors.
 */
#ifndef PLR_THREAD_POOL_H
#define PLR_THREAD_POOL_H

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>

#include "runtime/atomics.h"
#include "runtime/clock.h"
#include "runtime/thread_team.h"

#define PLR_POOL_THREADS 1024
#define PLR_OPEN_LOOPS 8                 /* A loop that begins while so many are open has one thread. */
#define PLR_POOL_STACK ((size_t)4 << 20) /* The deepest kernel takes some 100 kB of it. */

/* The state of a place: whether its loop is open, how many threads may still join, and how many have not left. */
#define PLR_IS_OPEN ((uint32_t)1 << 31)
#define PLR_ONE_SEAT ((uint32_t)1 << 16)
#define PLR_SEATS ((uint32_t)0x7fff0000)
#define PLR_INSIDE ((uint32_t)0xffff)

typedef struct {
    int taken;       /* by a thread that has begun a loop */
    uint32_t state;
    team_loop *loop; /* valid for threads that have joined it */
    int sleeping;    /* whether the thread that began it sleeps until the others have left */
    pthread_mutex_t mutex;
    pthread_cond_t all_left;
} loop_place;

typedef struct {
    struct thread_pool *pool;
    int asleep;
    double signalled; /* when it was woken */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
} pool_thread;

typedef struct thread_pool {
    loop_place places[PLR_OPEN_LOOPS];
    pool_thread threads[PLR_POOL_THREADS];
    int n_threads;
    pthread_mutex_t growing;
    double waking; /* of all threads that sleep: twice the time from a signal until a thread looks for work */
    double ended;  /* when the last loop ended */
} thread_pool;

static inline void plr_make_pool(thread_pool *pool)
{
    for (int i = 0; i < PLR_OPEN_LOOPS; i++) {
        pthread_mutex_init(&pool->places[i].mutex, NULL);
        pthread_cond_init(&pool->places[i].all_left, NULL);
    }
    pthread_mutex_init(&pool->growing, NULL);
    plr_set(&pool->waking, 1e5); /* until it is measured */
    plr_set(&pool->ended, -1e300);
}

static inline void plr_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* --- threads of the pool */

/* Wake up to `most` threads that sleep. */
static inline void plr_wake(thread_pool *pool, int most)
{
    const int n_threads = __atomic_load_n(&pool->n_threads, __ATOMIC_ACQUIRE);
    for (int i = 0; i < n_threads && most > 0; i++) {
        pool_thread *thread = pool->threads + i;
        if (!__atomic_load_n(&thread->asleep, __ATOMIC_SEQ_CST))
            continue;
        pthread_mutex_lock(&thread->mutex);
        if (thread->asleep) {
            thread->signalled = plr_nanoseconds();
            __atomic_store_n(&thread->asleep, 0, __ATOMIC_SEQ_CST);
            pthread_cond_signal(&thread->wake);
            most--;
        }
        pthread_mutex_unlock(&thread->mutex);
    }
}

/* Wake sleepers for a loop. Each thread wakes as many as the root of those that are missing, which wake the rest: so
 * waking takes two steps, and none of them takes long. */
static inline void plr_wake_for(thread_pool *pool, const loop_place *place)
{
    const uint32_t state = __atomic_load_n(&place->state, __ATOMIC_SEQ_CST);
    const double seats = (state & PLR_SEATS) / PLR_ONE_SEAT;
    if (state & PLR_IS_OPEN)
        plr_wake(pool, (int)ceil(sqrt(seats)));
}

static inline int plr_can_be_joined(uint32_t state)
{
    return (state & PLR_IS_OPEN) && (state & PLR_SEATS);
}

/* Take a seat, if there is one: the loop stays valid until the thread has left. */
static inline int plr_join(loop_place *place)
{
    uint32_t state = __atomic_load_n(&place->state, __ATOMIC_SEQ_CST);
    while (plr_can_be_joined(state))
        if (__atomic_compare_exchange_n(
                &place->state, &state, state - PLR_ONE_SEAT + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            return 1;
    return 0;
}

/* Leave a loop of which all passes are taken. */
static inline void plr_leave(loop_place *place)
{
    __atomic_fetch_and(&place->state, PLR_INSIDE, __ATOMIC_SEQ_CST);
    if ((__atomic_sub_fetch(&place->state, 1, __ATOMIC_SEQ_CST) & PLR_INSIDE) == 0 &&
        __atomic_load_n(&place->sleeping, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&place->mutex);
        pthread_cond_signal(&place->all_left);
        pthread_mutex_unlock(&place->mutex);
    }
}

/* Work on open loops; return whether there were any. */
static inline int plr_work(thread_pool *pool)
{
    int found = 0;
    for (loop_place *place = pool->places; place < pool->places + PLR_OPEN_LOOPS; place++)
        if (plr_join(place)) {
            found = 1;
            plr_wake_for(pool, place);
            plr_take_part(place->loop, 1 + __atomic_fetch_add(&place->loop->taken, 1, __ATOMIC_RELAXED));
            plr_leave(place);
        }
    return found;
}

static inline int plr_is_work(const thread_pool *pool)
{
    for (int i = 0; i < PLR_OPEN_LOOPS; i++)
        if (plr_can_be_joined(__atomic_load_n(&pool->places[i].state, __ATOMIC_SEQ_CST)))
            return 1;
    return 0;
}

/* Sleep until there is work. A thread that begins a loop opens it before it looks for sleepers, and a sleeper looks for
 * work after it has said that it sleeps: one of them sees the other. */
static inline void plr_sleep(thread_pool *pool, pool_thread *thread)
{
    double signalled = 0.0;
    pthread_mutex_lock(&thread->mutex);
    __atomic_store_n(&thread->asleep, 1, __ATOMIC_SEQ_CST);
    if (plr_is_work(pool))
        __atomic_store_n(&thread->asleep, 0, __ATOMIC_SEQ_CST);
    while (thread->asleep) {
        pthread_cond_wait(&thread->wake, &thread->mutex);
        signalled = thread->signalled;
    }
    pthread_mutex_unlock(&thread->mutex);
    if (signalled > 0.0) {
        const double waking = 2.0 * (plr_nanoseconds() - signalled), before = plr_get(&pool->waking);
        plr_set(&pool->waking, before + 0.125 * ((waking < 4.0 * before ? waking : 4.0 * before) - before));
    }
}

static inline void *plr_live(void *thread)
{
    thread_pool *pool = ((pool_thread *)thread)->pool;
    for (;;) {
        const double idle_since = plr_nanoseconds();
        int found;
        while (!(found = plr_work(pool)) && plr_nanoseconds() - idle_since < plr_get(&pool->waking))
            for (int i = 0; i < 8 && !plr_is_work(pool); i++)
                plr_relax();
        if (!found)
            plr_sleep(pool, thread);
    }
    return NULL;
}

/* Return how many threads a team of at most `wanted` can have: as many as the system lets the pool create. */
static inline int plr_possible_team(thread_pool *pool, int wanted)
{
    int n = __atomic_load_n(&pool->n_threads, __ATOMIC_ACQUIRE);
    if (wanted <= n + 1)
        return wanted;
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_t id;
    pthread_mutex_lock(&pool->growing);
    sigfillset(&all); /* signals are for threads that Python knows */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_attr_init(&attributes) == 0) {
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attributes, PLR_POOL_STACK);
        for (n = pool->n_threads; n + 1 < wanted && n < PLR_POOL_THREADS; n++) {
            pool_thread *thread = pool->threads + n;
            thread->pool = pool;
            pthread_mutex_init(&thread->mutex, NULL);
            pthread_cond_init(&thread->wake, NULL);
            if (pthread_create(&id, &attributes, plr_live, thread) != 0)
                break;
            __atomic_store_n(&pool->n_threads, n + 1, __ATOMIC_RELEASE);
        }
        pthread_attr_destroy(&attributes);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_mutex_unlock(&pool->growing);
    return wanted < n + 1 ? wanted : n + 1;
}

/* --- threads that begin loops */

static inline void plr_wait_for_others(thread_pool *pool, loop_place *place)
{
    const double since = plr_nanoseconds();
    while (__atomic_load_n(&place->state, __ATOMIC_SEQ_CST) & PLR_INSIDE) {
        if (plr_nanoseconds() - since < plr_get(&pool->waking)) {
            for (int i = 0; i < 8; i++)
                plr_relax();
            continue;
        }
        __atomic_store_n(&place->sleeping, 1, __ATOMIC_SEQ_CST);
        pthread_mutex_lock(&place->mutex);
        while (__atomic_load_n(&place->state, __ATOMIC_SEQ_CST) & PLR_INSIDE)
            pthread_cond_wait(&place->all_left, &place->mutex);
        pthread_mutex_unlock(&place->mutex);
        __atomic_store_n(&place->sleeping, 0, __ATOMIC_SEQ_CST);
    }
}

/* Share a loop among at most `size` threads; `together`, for tests: begin once all have joined it. */
static inline void plr_run_team(thread_pool *pool, team_loop *loop, int size, int together)
{
    loop_place *place = pool->places, *end = pool->places + PLR_OPEN_LOOPS;
    int untaken = 0;
    while (place < end &&
           !__atomic_compare_exchange_n(&place->taken, &untaken, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        place++, untaken = 0;
    if (place == end) {
        plr_take_part(loop, 0);
        return;
    }
    place->loop = loop;
    __atomic_store_n(&place->state, PLR_IS_OPEN | (uint32_t)(size - 1) * PLR_ONE_SEAT, __ATOMIC_SEQ_CST);
    plr_wake_for(pool, place);
    while (together && plr_can_be_joined(__atomic_load_n(&place->state, __ATOMIC_SEQ_CST))) {
        plr_wake(pool, size);
        sched_yield();
    }
    plr_take_part(loop, 0);
    __atomic_fetch_and(&place->state, PLR_INSIDE, __ATOMIC_SEQ_CST);
    plr_wait_for_others(pool, place);
    plr_set(&pool->ended, plr_nanoseconds());
    __atomic_store_n(&place->taken, 0, __ATOMIC_RELEASE);
}

/* --- teams of a library that calls us, whose threads spin for milliseconds on the processors that we would need */

/* `GOMP_parallel` of GCC's runtime, which LLVM's has too. */
typedef void (*openmp_parallel)(void (*body)(void *), void *argument, unsigned n_threads, unsigned flags);

typedef struct {
    uintptr_t parallel; /* 0: none are borrowed */
    pthread_t caller;   /* other threads would have to create a team of that runtime, which may end the process */
} borrowed_threads;

static inline uintptr_t plr_borrow(borrowed_threads *threads, uintptr_t parallel)
{
    const uintptr_t before = threads->parallel;
    threads->caller = pthread_self();
    __atomic_store_n(&threads->parallel, parallel, __ATOMIC_RELEASE);
    return before;
}

/* Return the address of `GOMP_parallel` if the calling thread has borrowed threads, else 0. */
static inline uintptr_t plr_borrowed(const borrowed_threads *threads)
{
    const uintptr_t parallel = __atomic_load_n(&threads->parallel, __ATOMIC_ACQUIRE);
    return parallel != 0 && pthread_equal(pthread_self(), threads->caller) ? parallel : 0;
}

typedef struct {
    team_loop *loop;
    pthread_t caller;
} borrowed_loop;

static inline void plr_take_borrowed_part(void *borrowed)
{
    const borrowed_loop *of = borrowed;
    const int is_caller = pthread_equal(pthread_self(), of->caller);
    plr_take_part(of->loop, is_caller ? 0 : 1 + __atomic_fetch_add(&of->loop->taken, 1, __ATOMIC_RELAXED));
}

static inline void plr_run_borrowed_team(uintptr_t parallel, team_loop *loop, int size)
{
    borrowed_loop borrowed = {loop, pthread_self()};
    ((openmp_parallel)parallel)(plr_take_borrowed_part, &borrowed, (unsigned)size, 0);
}

#endif
