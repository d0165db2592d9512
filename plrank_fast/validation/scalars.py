"""Numbers, flags and choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plrank_fast._core.runtime import magnitudes as _magnitudes

LARGEST_COUNT = 2**62
SMALLEST_TOLERANCE = 1e-10  # of exact expectations; the C interface has the same


def count(value: Any, name: str, lowest: int) -> int:
    """Return an integer of at least ``lowest``; bool and float are no integers."""
    number = integer(value, name)
    if number < lowest:
        raise ValueError(f"{name} must be at least {lowest}, got {number}")
    if number > LARGEST_COUNT:
        raise ValueError(f"{name} must be at most 2**62, got {number}")
    return number


def ranks_that_count(cutoff: Any) -> int | None:
    """Return a cutoff, None or an integer of at least 0."""
    if cutoff is not None and np.ndim(cutoff) > 0:
        raise TypeError(
            f"cutoff must be None or an integer, got an array of shape {np.shape(cutoff)}: rank weights are taken by "
            "dcg and ndcg only"
        )
    return None if cutoff is None else count(cutoff, "cutoff", 0)


def integer(value: Any, name: str) -> int:
    """Return a Python int, from any integer type but bool."""
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
        raise TypeError(f"{name} must be an integer, got {value!r}{f': pass {int(value)}' if whole else ''}")
    try:
        return int(value.__index__())
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}") from None


def threads(n_threads: Any) -> int | None:
    """Check ``n_threads``: None, or an integer other than 0."""
    if n_threads is None:
        return None
    number = integer(n_threads, "n_threads")
    if number == 0:
        raise ValueError("n_threads must be None, positive, or negative (-1: all processors), got 0")
    return max(-(2**30), min(number, 2**30))


def choice(value: Any, name: str, choices: Sequence[str]) -> str:
    """Return ``value`` if it is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(map(repr, choices))
        error = ValueError if isinstance(value, str) else TypeError
        raise error(f"{name} must be one of {listed}, got {value!r}")
    return value


def positive_real(value: Any, name: str) -> float:
    """Return a finite float > 0."""
    if isinstance(value, (bool, np.bool_, str)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    number = float(value)
    if not (0.0 < number < np.inf):
        raise ValueError(f"{name} must be positive and finite, got {number}")
    return number


def factor(value: Any, name: str) -> float:
    """Return a float from 2**-200 to 2**200, by which scores may be multiplied or divided."""
    number = positive_real(value, name)
    if not 2.0**-_magnitudes.LIMIT_EXPONENT <= number <= 2.0**_magnitudes.LIMIT_EXPONENT:
        raise ValueError(f"{name} must be from 2**-200 to 2**200, about 6e-61 to 2e60, got {number:g}")
    return number


def relative_tolerance(value: Any, name: str) -> float:
    """Return a float that exact expectations can hold as a relative error: below, rounding has its say."""
    number = positive_real(value, name)
    if not SMALLEST_TOLERANCE <= number < 1.0:
        raise ValueError(f"{name} must be at least {SMALLEST_TOLERANCE:g} and below 1, got {number:g}")
    return number


def at_least(value: Any, name: str, lowest: float) -> float:
    """Return a finite float that is not below ``lowest``."""
    if isinstance(value, (bool, np.bool_, str)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:  # an int beyond the range of a double
        number = np.inf if value > 0 else -np.inf
    if not lowest <= number < LARGEST_COUNT:
        raise ValueError(f"{name} must be at least {lowest:g} and finite, got {number}")
    return number


def below_one(value: Any, name: str) -> float:
    """Return a float of at least 0 and below 1."""
    number = at_least(value, name, 0.0)
    if number >= 1.0:
        raise ValueError(f"{name} must be below 1, got {number:g}")
    return number


def between(value: Any, name: str, lowest: float, highest: float) -> float:
    """Return a float that lies between the two, neither of them included."""
    number = positive_real(value, name)
    if not lowest < number < highest:
        raise ValueError(f"{name} must be between {lowest:g} and {highest:g}, got {number:g}")
    return number


def flag(value: Any, name: str) -> bool:
    """Return a bool; nothing else is taken for one."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def at_most(number: int, name: str, highest: int) -> int:
    """Return ``number`` if it is not above ``highest``."""
    if number > highest:
        raise ValueError(f"{name} must be at most {highest}, got {number}")
    return number
