/* Flush denormal numbers to zero in the calling thread, on processors that compute with them in microcode: there each
 * operation takes a hundred times as long. */
#ifndef PLR_DENORMALS_H
#define PLR_DENORMALS_H

#include "simd/isa.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* Return the current mode, the argument of restore_denormals. */
static inline unsigned denormals_mode(void)
{
#if defined(__x86_64__)
    return _mm_getcsr();
#else
    return 0;
#endif
}

static inline void restore_denormals(unsigned mode)
{
#if defined(__x86_64__)
    _mm_setcsr(mode);
#else
    (void)mode;
#endif
}

/* Flush denormal results to zero from now on; return the previous mode. */
static inline unsigned flush_denormals(void)
{
    const unsigned before = denormals_mode();
#if defined(__x86_64__)
    _mm_setcsr(before | _MM_FLUSH_ZERO_ON);
#endif
    return before;
}

#endif
