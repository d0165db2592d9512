/* How many threads a team can have, found out before OpenMP creates them: where one of its threads cannot be created
 * (address space, processes of the user or of the container), libgomp and libomp end the process.
 *
 * As many threads as the runtime lacks are created with stacks as large as its own, all there at the same time, and
 * ended. What has been possible is possible again a moment later, unless another thread or process takes it in between;
 * and glibc keeps stacks of ended threads for the next ones.
 */
#ifndef PLR_THREAD_PROBE_H
#define PLR_THREAD_PROBE_H

#include <pthread.h>
#include <stdlib.h>

/* Memory that the runtimes take for a team and for each of its threads, beside the stacks: far less than this. */
#define PLR_TEAM_BYTES ((size_t)1 << 20)
#define PLR_TEAM_BYTES_PER_THREAD ((size_t)64 << 10)
/* libomp's stacks are larger than it was told, by 128 bytes for every thread before; a kept one that is too small would
 * stand in the way of the one that is wanted. */
#define PLR_FURTHER_STACK_BYTES ((size_t)256 << 10)

static inline void *plr_wait_for(void *held)
{
    pthread_mutex_lock(held);
    pthread_mutex_unlock(held);
    return NULL;
}

/* How many of the `wanted` threads, with stacks of at least that size, can be there at the same time. */
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

/* Size of the team, at most `wanted`, that can be had in the region which the calling thread begins next.
 *
 * The threads of its last team wait for the next one, so that only a team that grows is looked into. (libgomp has a
 * pool for each thread that begins regions, and ends those that a smaller team leaves out.) Not seen is a smaller team
 * of another library that shares the runtime.
 */
static inline int plr_possible_team(int wanted, size_t stack_bytes)
{
#ifdef _OPENMP
    static __thread int last_team = 1;
    if (wanted > last_team)
        wanted = last_team + plr_possible_threads(wanted - last_team, stack_bytes);
    if (wanted > 1)
        last_team = wanted;
    return wanted;
#else
    (void)wanted;
    (void)stack_bytes;
    return 1;
#endif
}

#endif
