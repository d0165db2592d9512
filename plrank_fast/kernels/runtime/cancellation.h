/* Cancellation of a long computation whose caller has been interrupted. */
#ifndef PLR_CANCELLATION_H
#define PLR_CANCELLATION_H

#include <stddef.h>

/* The computation calls `interrupted`, unless it is NULL, now and then. Once that has returned nonzero, `requested`
 * stays set, nothing more is computed and the outputs are undefined. */
typedef struct cancellation {
    int (*interrupted)(void);
    int requested;
    double work; /* done since the last call of `interrupted` */
    const struct cancellation *of_caller; /* state of the thread that calls `interrupted`; NULL in that thread itself */
} cancellation;

#define WORK_BETWEEN_LOOKS 5e6 /* about a twentieth of a second */

/* Add `work` and return whether to stop. One unit of work is a vector of coefficients for four items. */
static inline int cancellation_requested(cancellation *state, double work)
{
    if (state->of_caller)
        return state->requested = __atomic_load_n(&state->of_caller->requested, __ATOMIC_RELAXED);
    if (!state->interrupted)
        return 0;
    state->work += work;
    if (state->work > WORK_BETWEEN_LOOKS && !state->requested) {
        state->work = 0;
        __atomic_store_n(&state->requested, state->interrupted(), __ATOMIC_RELAXED);
    }
    return state->requested;
}

/* Return the state that a thread of the team uses: `state` itself for thread 0, for others `own`, which follows it. */
static inline cancellation *cancellation_of_thread(cancellation *state, int thread, cancellation *own)
{
    if (thread == 0)
        return state;
    *own = (cancellation){.of_caller = state, .requested = __atomic_load_n(&state->requested, __ATOMIC_RELAXED)};
    return own;
}

#endif
