"""Loops run on the threads of the library that calls ours, if it has OpenMP.

GCC's OpenMP lets its threads spin for milliseconds after their last loop. Threads of our own would have to share the
processors with them. A runtime that cannot create a thread ends the process, so only the calling thread borrows. jaxlib
is not linked to any.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from collections.abc import Iterator

from plrank_fast._core.runtime.teams import borrow_team

LOADED_BY = {"lightgbm": "lightgbm.basic", "xgboost": "xgboost.core"}


@functools.cache
def parallel_of(library: str) -> int:
    """Return the address of ``GOMP_parallel`` in the OpenMP runtime that a library has loaded, or 0 without one."""
    handle = getattr(sys.modules.get(LOADED_BY.get(library, "")), "_LIB", None)
    if library == "torch":
        handle = ctypes.CDLL(sys.modules["torch._C"].__file__)
    parallel = getattr(handle, "GOMP_parallel", None)
    return 0 if parallel is None else ctypes.cast(parallel, ctypes.c_void_p).value or 0


@contextlib.contextmanager
def threads_of(library: str) -> Iterator[None]:
    """Run loops on the threads of a library within the context, if they are OpenMP's."""
    before = borrow_team(parallel_of(library))
    try:
        yield
    finally:
        borrow_team(before)
