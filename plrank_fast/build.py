"""Version and build of this copy of the library, and the machine."""

from __future__ import annotations

from typing import Any

from plrank_fast._core.runtime import simd as _simd
from plrank_fast._core.runtime import threads as _threads

__version__ = "0.1.0"


def build_info() -> dict[str, Any]:
    """Return compiler, flags, SIMD level and threads of this copy of the library.

    Returns
    -------
    dict
        ``compiler`` and ``flags`` of the build, ``simd_levels`` that were built, ``simd`` the level in use (the best
        that the processor has, or the value of the environment variable PLRANK_FAST_SIMD), ``openmp``, ``checked``
        (whether bounds checks are compiled in) and ``n_threads``, the default number of threads.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.build_info()["simd"] in plr.build_info()["simd_levels"]
    True
    """
    return {**_simd.build_record(), "simd": _simd.level_name(), "n_threads": _threads.default_threads()}
