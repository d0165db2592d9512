/* What OpenMP is asked where it is there: how many threads a call may have by default, and whether it comes from inside
 * somebody else's parallel region. The library's own threads are those of `team.h`. */
#ifndef PLR_OPENMP_H
#define PLR_OPENMP_H

#ifdef _OPENMP
#include <omp.h>
#else
static inline int omp_get_max_threads(void) { return 1; }
static inline int omp_in_parallel(void) { return 0; }
#endif

#endif
