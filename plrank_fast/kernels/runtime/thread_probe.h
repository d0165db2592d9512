/* Find out how many threads a team can have before OpenMP creates them. If the system cannot create one of them (limits
 * of the address space, or of processes per user or container), libgomp and libomp end the process.
 *
 * The probe creates as many threads as the runtime lacks, with stacks as large as its own, all at the same time, and
 * ends them. Creating them again a moment later succeeds, unless another thread or process takes the resources in
 * between; glibc keeps the stacks of ended threads for the next ones.
 */
#ifndef PLR_THREAD_PROBE_H
#define PLR_THREAD_PROBE_H

#include <pthread.h>
#include <stdlib.h>

/* The runtimes take far less memory than this for a team and for each of its threads, stacks excluded. */
#define PLR_TEAM_BYTES ((size_t)1 << 20)
#define PLR_TEAM_BYTES_PER_THREAD ((size_t)64 << 10)
/* libomp makes each stack larger than requested, by 128 bytes for every earlier thread. A stack that glibc keeps but
 * that is too small would occupy the address space that the larger one needs. */
#define PLR_FURTHER_STACK_BYTES ((size_t)256 << 10)

static inline void *plr_wait_for(void *held)
{
    pthread_mutex_lock(held);
    pthread_mutex_unlock(held);
    return NULL;
}

/* Return how many of the `wanted` threads, with stacks of at least that size, can exist at the same time. */
static inline int plr_possible_threads(int wanted, size_t stack_bytes)
{
    pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
    pthread_attr_t attributes;
    size_t usual_bytes;
    int n = 0;
    pthread_t *threads = malloc(wanted * sizeof *threads);
    void *team = malloc(PLR_TEAM_BYTES + wanted * PLR_TEAM_BYTES_PER_THREAD);
    if (threads != NULL && team != NULL && pthread_attr_init(&attributes) == 0) {
        if (pthread_attr_getstacksize(&attributes, &usual_bytes) == 0 && usual_bytes > stack_bytes)
            stack_bytes = usual_bytes;
        pthread_attr_setstacksize(&attributes, stack_bytes + PLR_FURTHER_STACK_BYTES);
        pthread_mutex_lock(&held);
        while (n < wanted && pthread_create(threads + n, &attributes, plr_wait_for, &held) == 0)
            n++;
        pthread_mutex_unlock(&held);
        for (int i = 0; i < n; i++)
            pthread_join(threads[i], NULL);
        pthread_attr_destroy(&attributes);
    }
    free(team);
    free(threads);
    return n;
}

/* Return the size of the team, at most `wanted`, that the calling thread can have after one of size `last_team`.
 *
 * The threads of its last team wait for the next one, so only a team that grows is probed. (libgomp has a pool for each
 * thread that begins regions, and ends those that a smaller team leaves out.) The probe does not see a smaller team of
 * another library that shares the runtime.
 */
static inline int plr_possible_team(int last_team, int wanted, size_t stack_bytes)
{
#ifdef _OPENMP
    if (wanted > last_team)
        wanted = last_team + plr_possible_threads(wanted - last_team, stack_bytes);
    return wanted;
#else
    (void)last_team;
    (void)wanted;
    (void)stack_bytes;
    return 1;
#endif
}

#endif
