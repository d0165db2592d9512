"""Loops run on the threads of the library that calls ours, if it has an OpenMP runtime of its own.

GCC's OpenMP lets its threads spin for milliseconds after their last loop, and a team of ours would have to share the
processors with them. Libraries that are linked to the same runtime as ours have the same threads; jaxlib has none.
"""

from __future__ import annotations

import ctypes
import functools
import sys

from plrank_fast._core.runtime import teams

LOADED_BY = {"lightgbm": "lightgbm.basic", "xgboost": "xgboost.core"}


@functools.cache
def parallel_of(library: str) -> int:
    """Return the address of ``GOMP_parallel`` in a library's OpenMP runtime, or 0 if it has none but ours."""
    handle = getattr(sys.modules.get(LOADED_BY.get(library, "")), "_LIB", None)
    if library == "torch":
        handle = ctypes.CDLL(sys.modules["torch._C"].__file__)
    theirs, ours = (_address(each) for each in (handle, ctypes.CDLL(teams.__file__)))
    return 0 if theirs == ours else theirs


def _address(handle: ctypes.CDLL | None) -> int:
    parallel = getattr(handle, "GOMP_parallel", None)
    return 0 if parallel is None else ctypes.cast(parallel, ctypes.c_void_p).value or 0


class threads_of:  # a call of a function to its users; a generator takes a microsecond more
    """Run loops on the threads of a library within the context, if they are OpenMP's."""

    __slots__ = ("before", "library")

    def __init__(self, library: str) -> None:
        self.library = library

    def __enter__(self) -> None:
        self.before = teams.borrow_teams(parallel_of(self.library))

    def __exit__(self, *_: object) -> None:
        teams.borrow_teams(self.before)
