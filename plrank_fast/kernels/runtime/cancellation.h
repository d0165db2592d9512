/* How a long computation finds out that nobody wants its result any more (Ctrl-C). */
#ifndef PLR_CANCELLATION_H
#define PLR_CANCELLATION_H

/* `interrupted`, unless it is NULL, is asked now and then. Once it has said yes, `requested` stays set, nothing more is
 * computed and the outputs mean nothing. */
typedef struct {
    int (*interrupted)(void);
    int requested;
    double work; /* since it was last asked */
} cancellation;

#define WORK_BETWEEN_LOOKS 5e6 /* about a twentieth of a second */

/* Whether to stop, after so much more work: one unit is a vector of coefficients for four items. */
static inline int cancellation_requested(cancellation *state, double work)
{
    if (!state->interrupted)
        return 0;
    state->work += work;
    if (state->work > WORK_BETWEEN_LOOKS && !state->requested) {
        state->work = 0;
        state->requested = state->interrupted();
    }
    return state->requested;
}

#endif
