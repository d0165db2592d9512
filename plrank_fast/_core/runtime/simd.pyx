"""The choice of the instruction set that the kernels use, made once at import.

It is the highest level that was built and that the processor supports. ``PLRANK_FAST_SIMD=baseline|avx2|avx512``
requests a lower one; a request above the highest level is lowered to it.
"""

import json
import os

from plrank_fast._core.runtime.buffers cimport data_of

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

cdef extern from "simd/vector_functions.h" nogil:
    ctypedef struct vector_functions_kernels:
        void (*evaluate)(int function, const double *x, double *first, double *second, size_t n) noexcept nogil
    const vector_functions_kernels *vector_functions_kernels_at(int level)
    enum:
        PLR_VECTOR_EXP
        PLR_VECTOR_EXP_FLUSH
        PLR_VECTOR_EXPM1
        PLR_VECTOR_ROUGH_EXP2
        PLR_VECTOR_LOG
        PLR_VECTOR_LOG1P_UNIT
        PLR_VECTOR_ROUGH_LOG
        PLR_VECTOR_ROUGH_ROOTS
        PLR_VECTOR_NORMAL_TAIL
        PLR_VECTOR_SIN_COS

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


# ---------------------------------------------------------------------------------------------------------------------
# For tests
# ---------------------------------------------------------------------------------------------------------------------

VECTOR_FUNCTIONS = {
    "exp": PLR_VECTOR_EXP,
    "exp_flush": PLR_VECTOR_EXP_FLUSH,
    "expm1": PLR_VECTOR_EXPM1,
    "rough_exp2": PLR_VECTOR_ROUGH_EXP2,
    "log": PLR_VECTOR_LOG,
    "log1p_unit": PLR_VECTOR_LOG1P_UNIT,
    "rough_log": PLR_VECTOR_ROUGH_LOG,
    "rough_roots": PLR_VECTOR_ROUGH_ROOTS,
    "normal_tail": PLR_VECTOR_NORMAL_TAIL,
    "sin_cos": PLR_VECTOR_SIN_COS,
}


def evaluate_vector_function(name, level, x, first, second):
    """Evaluate a function of ``kernels/simd/vector_math.h`` at each ``x``, whose length must be a multiple of 8.

    The processor must support ``level``; a function with one result sets ``second`` to 0.
    """
    vector_functions_kernels_at(LEVELS.index(level)).evaluate(
        VECTOR_FUNCTIONS[name], <const double *>data_of(x), <double *>data_of(first), <double *>data_of(second), x.size)
