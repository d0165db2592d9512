/* OpenMP tells how many threads its settings allow the calling thread (OMP_NUM_THREADS, threadpoolctl), and whether it
 * is one of a team. Without OpenMP a call has one thread. */
#ifndef PLR_OPENMP_H
#define PLR_OPENMP_H

#ifdef _OPENMP
#include <omp.h>
#else
static inline int omp_get_max_threads(void) { return 1; }
static inline int omp_in_parallel(void) { return 1; } /* no loop has another thread */
#endif

#endif
