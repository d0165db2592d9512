/* A loop that a kernel shares among the threads of its caller's team. */
#ifndef PLR_PARALLEL_LOOP_H
#define PLR_PARALLEL_LOOP_H

#include <stdint.h>

#include "runtime/cancellation.h"

/* Pass i of a loop, run by a thread of the team; thread 0 is the one that calls `run`. */
typedef void (*loop_body)(void *argument, intptr_t i, int thread);

typedef struct parallel_loop {
    /* NULL: run the passes one after another */
    void (*run)(const struct parallel_loop *loop, loop_body body, void *argument, intptr_t n);
    int n_threads; /* as many may take part */
} parallel_loop;

/* Number of threads that may work on a loop at the same time; workspaces need room for each. */
static inline int threads_of(const parallel_loop *loop)
{
    return loop->run && loop->n_threads > 1 ? loop->n_threads : 1;
}

/* Run all n passes in any order: no pass may read what another writes. */
static inline void run_loop(const parallel_loop *loop, loop_body body, void *argument, intptr_t n)
{
    if (threads_of(loop) > 1 && n > 1) {
        loop->run(loop, body, argument, n);
        return;
    }
    for (intptr_t i = 0; i < n; i++)
        body(argument, i, 0);
}

#endif
