/* Clocks, in nanoseconds. */
#ifndef PLR_CLOCK_H
#define PLR_CLOCK_H

#include <time.h>

static inline double plr_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static inline double plr_nanoseconds(void)
{
    return plr_clock(CLOCK_MONOTONIC);
}

/* Return for how long the calling thread has had a processor: a system call, which takes .1 to .3 microseconds. */
static inline double plr_processor_nanoseconds(void)
{
    return plr_clock(CLOCK_THREAD_CPUTIME_ID);
}

#endif
