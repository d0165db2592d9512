"""The choice of the instruction set that the kernels use, made once at import.

It is the highest level that was built and that the processor supports. ``PLRANK_FAST_SIMD=baseline|avx2|avx512``
requests a lower one; a request above the highest level is lowered to it.
"""

import json
import os

cdef extern from *:
    """
    #if defined(__x86_64__)
    static int plr_processor_level(void)
    {
        __builtin_cpu_init();
        if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2"))
            return 0;
        if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512cd") ||
            !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq") ||
            !__builtin_cpu_supports("avx512vl"))
            return 1;
        return 2;
    }
    #else
    static int plr_processor_level(void) { return 0; }
    #endif
    """
    int plr_processor_level()
    const char *PLR_BUILD_INFO

LEVELS = ("baseline", "avx2", "avx512")

cdef int _level = 0


cdef int simd_level() noexcept nogil:
    return _level


def build_record():
    """Return compiler, flags, levels built and OpenMP, as ``setup.py`` recorded them when it compiled this copy."""
    return json.loads(PLR_BUILD_INFO.decode())


def level_name():
    """Return the name of the SIMD level in use."""
    return LEVELS[_level]


def _choose_level():
    global _level
    built = build_record()["simd_levels"]
    available = [level for level in LEVELS[: plr_processor_level() + 1] if level in built]
    best = available[len(available) - 1]
    wanted = os.environ.get("PLRANK_FAST_SIMD", "") or best
    if wanted not in LEVELS:
        raise ImportError(f"PLRANK_FAST_SIMD must be one of {', '.join(LEVELS)}, got {wanted!r}")
    _level = min(LEVELS.index(wanted), LEVELS.index(best))


_choose_level()
