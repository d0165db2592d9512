/* A loop that a kernel shares among the threads of its caller: kernels do not use OpenMP themselves. */
#ifndef PLR_PARALLEL_LOOP_H
#define PLR_PARALLEL_LOOP_H

#include <stdint.h>

#include "runtime/cancellation.h"
#include "simd/denormals.h"

/* Pass i of a loop, run by a thread of the team; thread 0 is the one that calls `run`. */
typedef void (*loop_body)(void *argument, intptr_t i, int thread);

typedef struct {
    void (*run)(loop_body body, void *argument, intptr_t n, int n_threads); /* NULL: run the passes one after another */
    int n_threads;
} parallel_loop;

/* Number of threads that may work on a loop at the same time; workspaces need room for each. */
static inline int threads_of(const parallel_loop *loop)
{
    return loop->run && loop->n_threads > 1 ? loop->n_threads : 1;
}

/* Each thread has its own mode for denormal numbers: the threads of a team take over that of the caller. */
typedef struct {
    loop_body body;
    void *argument;
    unsigned mode;
} pass_in_mode;

static inline void run_in_mode(void *pass, intptr_t i, int thread)
{
    const pass_in_mode *of_caller = pass;
    const unsigned before = denormals_mode();
    restore_denormals(of_caller->mode);
    of_caller->body(of_caller->argument, i, thread);
    restore_denormals(before);
}

/* Run all n passes in any order: no pass may read what another writes. */
static inline void run_loop(const parallel_loop *loop, loop_body body, void *argument, intptr_t n)
{
    if (threads_of(loop) > 1 && n > 1) {
        pass_in_mode pass = {body, argument, denormals_mode()};
        loop->run(run_in_mode, &pass, n, loop->n_threads);
        return;
    }
    for (intptr_t i = 0; i < n; i++)
        body(argument, i, 0);
}

#endif
