/* OpenMP if the compiler has it, else one thread. A child that was forked after a parallel region also has one thread:
 * libgomp's pool of threads does not survive a fork, and the child's next region would wait for it for ever. */
#ifndef PLR_OPENMP_H
#define PLR_OPENMP_H

#ifdef _OPENMP
#include <omp.h>
#else
static inline int omp_get_max_threads(void) { return 1; }
static inline int omp_get_num_threads(void) { return 1; }
static inline int omp_get_thread_num(void) { return 0; }
static inline int omp_in_parallel(void) { return 0; }
#endif

#endif
