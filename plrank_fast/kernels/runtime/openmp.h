/* OpenMP tells how many threads its settings allow the calling thread (OMP_NUM_THREADS, threadpoolctl), and whether it
 * is one of a team. Without OpenMP nothing is known of either. */
#ifndef PLR_OPENMP_H
#define PLR_OPENMP_H

#ifdef _OPENMP
#include <omp.h>
#else
#include <limits.h>
static inline int omp_get_max_threads(void) { return INT_MAX; }
static inline int omp_in_parallel(void) { return 0; }
#endif

#endif
