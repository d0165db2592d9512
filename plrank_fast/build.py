"""How this copy of the library was built and what it runs on."""

from __future__ import annotations

from typing import Any

from plrank_fast._core.runtime import simd as _simd
from plrank_fast._core.runtime import threads as _threads


def build_info() -> dict[str, Any]:
    """Compiler, flags, SIMD level and threads of this copy.

    Returns
    -------
    dict
        ``compiler`` and ``flags`` it was built with, ``simd_levels`` that were built, ``simd`` the one in use (the
        best that the processor has, or what the environment variable PLRANK_FAST_SIMD asks for), ``openmp``,
        ``checked`` (bounds checks compiled in) and ``n_threads``, the default number of threads.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.build_info()["simd"] in plr.build_info()["simd_levels"]
    True
    """
    return {**_simd.build_record(), "simd": _simd.level_name(), "n_threads": _threads.default_threads()}
