"""Numbers, flags and choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plrank_fast._core.gradients.exact import SMALLEST_TOLERANCE
from plrank_fast._core.runtime import magnitudes as _magnitudes
from plrank_fast.validation.checks import shown

LARGEST_MAGNITUDE = 2.0**_magnitudes.LIMIT_EXPONENT
SMALLEST_MAGNITUDE = 1.0 / LARGEST_MAGNITUDE
LARGEST_COUNT = 2**59  # as many doubles can be addressed; the C interface has the same limit


def real(
    value: Any,
    name: str,
    *,
    above: float = -np.inf,
    at_least: float = -np.inf,
    below: float = np.inf,
    at_most: float = np.inf,
    or_nan: bool = False,
) -> float:
    """Return a finite float within these limits, from any type of real numbers but bool; with ``or_nan`` NaN too."""
    number = value
    if type(value) is not float:
        kind = getattr(getattr(value, "dtype", None), "kind", "f")
        refused = isinstance(value, (bool, str, complex)) or kind not in "fiu" or getattr(value, "ndim", 0) != 0
        if refused or not hasattr(value, "__float__"):
            raise TypeError(f"{name} must be a real number, got {shown(value)}")
        try:
            number = float(value)
        except OverflowError:  # an int beyond the range of a double
            number = np.inf if value > 0 else -np.inf
    if (-np.inf < number < below and number > above and at_least <= number <= at_most) or (or_nan and number != number):
        return number
    limits = [f"at least {at_least:g}"] if at_least > -np.inf else []
    limits += ["positive" if above == 0.0 else f"above {above:g}"] if above > -np.inf else []
    limits += [f"at most {at_most:g}" if at_most < np.inf else "finite" if below == np.inf else f"below {below:g}"]
    raise ValueError(f"{name} must be {' and '.join(limits)}{', or NaN' if or_nan else ''}, got {shown(value)}")


def count(value: Any, name: str, lowest: int, highest: int = LARGEST_COUNT) -> int:
    """Return an integer from ``lowest`` to ``highest``; bool and float are no integers."""
    number = integer(value, name)
    if not lowest <= number <= highest:
        limit = f"least {lowest}" if number < lowest else f"most {'2**59' if highest == LARGEST_COUNT else highest}"
        raise ValueError(f"{name} must be at {limit}, got {shown(number)}")
    return number


def ranks_that_count(cutoff: Any, longest: int = LARGEST_COUNT) -> int:
    """Return a cutoff, or the length of the longest list in place of None or of a number beyond it."""
    if isinstance(cutoff, (np.ndarray, Sequence)):
        given = f"{shown(cutoff)}: rank weights are taken by dcg and ndcg only"
        raise TypeError(f"cutoff must be None or an integer, got {given}")
    return longest if cutoff is None else min(count(cutoff, "cutoff", 0), longest)


def integer(value: Any, name: str, expected: str = "an integer") -> int:
    """Return a Python int, from any integer type but bool."""
    try:
        if not isinstance(value, (bool, np.bool_)):
            return int(value.__index__())
    except (AttributeError, TypeError):  # an array has the method, which fails unless it holds a single int
        pass
    whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    raise TypeError(f"{name} must be {expected}, got {shown(value)}{f': pass {int(value)}' if whole else ''}")


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
        raise error(f"{name} must be one of {listed}, got {shown(value)}")
    return value


def factor(value: Any, name: str) -> float:
    """Return a float from 2**-200 to 2**200, by which scores may be multiplied or divided."""
    return real(value, name, at_least=SMALLEST_MAGNITUDE, at_most=LARGEST_MAGNITUDE)


def relative_tolerance(value: Any, name: str = "rtol") -> float:
    """Return a tolerance that exact expectations can reach; below 1e-10 rounding errors dominate."""
    return real(value, name, at_least=SMALLEST_TOLERANCE, below=1.0)


def flag(value: Any, name: str) -> bool:
    """Return a bool; other types are refused."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)
