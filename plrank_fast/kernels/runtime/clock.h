/* A monotonic clock. */
#ifndef PLR_CLOCK_H
#define PLR_CLOCK_H

#include <time.h>

static inline double plr_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

#endif
