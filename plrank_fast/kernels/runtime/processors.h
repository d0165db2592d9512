/* The processors that this process may use. */
#ifndef PLR_PROCESSORS_H
#define PLR_PROCESSORS_H

#ifdef __linux__
#include <sched.h>

/* Return the number of processors in the affinity mask, of up to 8192; 0 if that is not known. */
static inline int plr_processors(void)
{
    cpu_set_t mask[8192 / CPU_SETSIZE];
    CPU_ZERO_S(sizeof mask, mask); /* the kernel fills what it has */
    return sched_getaffinity(0, sizeof mask, mask) == 0 ? CPU_COUNT_S(sizeof mask, mask) : 0;
}
#else
static inline int plr_processors(void) { return 0; }
#endif

#endif
