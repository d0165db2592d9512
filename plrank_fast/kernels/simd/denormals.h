/* Numbers below the smallest normal one taken for zero, on processors that compute with them in microcode: there each
 * operation takes a hundred times as long. Of the calling thread. */
#ifndef PLR_DENORMALS_H
#define PLR_DENORMALS_H

#include "simd/isa.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* Returns what restore_denormals takes. */
static inline unsigned flush_denormals(void)
{
#if defined(__x86_64__)
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | _MM_FLUSH_ZERO_ON);
    return before;
#else
    return 0;
#endif
}

static inline void restore_denormals(unsigned before)
{
#if defined(__x86_64__)
    _mm_setcsr(before);
#else
    (void)before;
#endif
}

#endif
