/* How a long computation finds out that nobody wants its result any more (Ctrl-C). */
#ifndef PLR_CANCELLATION_H
#define PLR_CANCELLATION_H

#include <stddef.h>

/* `interrupted`, unless it is NULL, is asked now and then. Once it has said yes, `requested` stays set, nothing more is
 * computed and the outputs mean nothing. */
typedef struct cancellation {
    int (*interrupted)(void);
    int requested;
    double work; /* since it was last asked */
    const struct cancellation *of_caller; /* that of the thread which asks, for the others of its team; or NULL */
} cancellation;

#define WORK_BETWEEN_LOOKS 5e6 /* about a twentieth of a second */

/* Whether to stop, after so much more work: one unit is a vector of coefficients for four items. */
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

/* For a thread of the team of the one whose `state` this is: that, or one in `own` which follows it. */
static inline cancellation *cancellation_of_thread(cancellation *state, int thread, cancellation *own)
{
    if (thread == 0)
        return state;
    *own = (cancellation){.of_caller = state, .requested = __atomic_load_n(&state->requested, __ATOMIC_RELAXED)};
    return own;
}

#endif
