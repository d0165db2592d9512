"""Primitives of all checks: conditions of a call or of each entry of an array; numbers, flags and choices."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from plrank_fast._core.runtime import magnitudes as _magnitudes

Function = TypeVar("Function", bound=Callable[..., Any])

LARGEST_MAGNITUDE: float = _magnitudes.LARGEST_MAGNITUDE
SMALLEST_MAGNITUDE: float = 1.0 / LARGEST_MAGNITUDE
SMALLEST_TOLERANCE: float = _magnitudes.SMALLEST_TOLERANCE
LARGEST_COUNT: int = _magnitudes.LARGEST_COUNT
HINTS = {  # name in Python's error of a call: what to pass for the first of these that the function has
    "rank_weights": {"rank_weights": "dcg_weights(10)"},
    "cutoff": {"rank_weights": "dcg_weights(cutoff)"},
    "k": {"cutoff": "k", "rank_weights": "dcg_weights(k)"},
    "qid": {"offsets": "offsets_from_qid(qid)"},
    "group": {"offsets": "offsets_from_group(group)", "qid": "numpy.repeat(range(len(group)), group)"},
    "mask": {"offsets": "offsets_from_group(mask.sum(axis=1)) and each array[mask]"},
    "seed": {"rng": "seed"},
    "random_state": {"rng": "random_state", "seed": "random_state"},
    "n_jobs": {"n_threads": "n_jobs"},
    "offsets": {"qid": "numpy.repeat(range(len(offsets) - 1), numpy.diff(offsets))"},
}


def shown(value: Any) -> str:
    """Return a short text of a value for a message, without the entries of an array or thousands of digits."""
    if isinstance(value, int) and value.bit_length() > 64:
        return f"an integer of {value.bit_length()} bits"
    text = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) and value.ndim else repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def require(holds: Any, message: str, error: type[Exception] = ValueError) -> None:
    """Raise ``error`` unless the condition holds; the message is formatted in either case, so keep it short."""
    if not holds:
        raise error(message)


def each(holds: NDArray[np.bool_], array: NDArray[Any], name: str, must: str, why: str = "") -> NDArray[Any]:
    """Return ``array`` if the condition holds for all of its entries; the message names the first violation."""
    if not holds.all():
        first = tuple(int(i) for i in np.argwhere(~holds)[0])
        at = first[0] if len(first) == 1 else first
        raise ValueError(f"{name} must {must}, got {array[first]} at index {at}{why}")
    return array


def of_type(holds: bool, name: str, expected: str, got: Any) -> None:
    """Raise TypeError unless ``holds``, the result of the caller's type check."""
    require(holds, f"{name} must be {expected}, got {got}", TypeError)


def given(value: Any, name: str, where: str) -> Any:
    """Return an argument that must not be None; ``where`` is such as " for rewards" or ", or rewards"."""
    require(value is not None, f"{name} must be given{where}, got None")
    return value


def hinted(function: Function) -> Function:
    """Let ``function`` answer a call that does not fit its signature with the argument to pass.

    The wrapper takes up to half a microsecond, so functions that may be called once a query go without it.
    """

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except TypeError as error:
            if error.__traceback__ and error.__traceback__.tb_next is None:  # the call itself has failed
                hint_at_argument(error, function, given=args)
            raise

    return call  # type: ignore[return-value]


def hint_at_argument(
    error: TypeError, function: Callable[..., Any], further: Iterable[str] = (), given: Sequence[Any] = ()
) -> None:
    """Add the argument to pass to Python's error of a call that does not fit ``function``.

    ``further`` are names that the function takes beside its signature, ``given`` the positional arguments.
    """
    signature = inspect.signature(function).parameters
    parameters = [*signature, *further]
    hints = [
        f": pass {name}={value}"
        for wrong, others in HINTS.items()
        for name, value in others.items()
        if f"'{wrong}'" in str(error) and name in parameters
    ]
    # Python 3.13 and later ask this themselves
    if not hints and (unknown := re.search("unexpected keyword argument '([^']*)'$", str(error))):
        hints = [f". Did you mean '{name}'?" for name in difflib.get_close_matches(unknown[1], parameters, 1)]
    owner = inspect.unwrap(function).__globals__.get(function.__qualname__.rpartition(".")[0])
    if "positional argument" in str(error) and "__call__" in dir(owner):  # a class in place of its instance
        hints = [": pass these to an instance, not to the class"]
    named = [name for name, each in signature.items() if each.kind == each.KEYWORD_ONLY]
    places = sum(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in signature.values())
    if named and isinstance(next(iter(given[places:]), None), (str, int, float)):
        hints = [f": pass options by name, such as {named[0]}="]
    said = re.sub(r"\. Did you mean '[^']*'\?$", "", str(error)) if hints else str(error)
    error.args = ("".join([said, *hints[:1]]),)


def known_settings(settings: Iterable[str], known: Iterable[str], function: Callable[..., Any]) -> None:
    """Refuse a keyword argument that is none of the ``known`` ones, as Python refuses it where they are written out."""
    for name in set(settings).difference(known):
        error = TypeError(f"{function.__name__}() got an unexpected keyword argument '{name}'")
        hint_at_argument(error, function, known)
        raise error


def goes_with(value: Any, name: str, used: bool, setting: str) -> None:
    """Refuse an argument that is not None where a setting leaves it without effect."""
    if value is not None and not used:
        raise ValueError(f"{name} only goes with {setting}, got {shown(value)}")


def only_one(arguments: dict[str, Any], needed: bool = True) -> tuple[str, Any]:
    """Return the name and the value of the argument that is not None, of which there must be one, or at most one."""
    names = list(arguments)
    present = [(name, value) for name, value in arguments.items() if value is not None]
    require(len(present) < 2, f"only one of {' and '.join(names)} may be given, got both")
    require(present or not needed, f"{names[0]} must be given, or {names[-1]}, got None")
    return present[0] if present else (names[0], None)


def groups_of(groups: Any, remedy: str) -> Any:
    """Return the groups of a library's data set, which must exist."""
    known = groups is not None and np.size(groups) > 0
    require(known, f"the data set has no groups, and a ranking objective needs to know its queries: {remedy}")
    return groups


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
        if refused or not hasattr(value, "__float__") or getattr(value, "requires_grad", False):
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
    if type(value) is int and lowest <= value <= highest:
        return value
    number = integer(value, name)
    if not lowest <= number <= highest:
        limit = f"least {lowest}" if number < lowest else f"most {'2**59' if highest == LARGEST_COUNT else highest}"
        raise ValueError(f"{name} must be at {limit}, got {shown(number)}")
    return number


def ranks_that_count(cutoff: Any, longest: int = LARGEST_COUNT) -> int:
    """Return a cutoff, or the length of the longest list in place of None or of a number beyond it."""
    if type(cutoff) is not int and isinstance(cutoff, (np.ndarray, Sequence)) and np.ndim(cutoff):
        given = f"{shown(cutoff)}: rank weights are taken by dcg and ndcg only"
        raise TypeError(f"cutoff must be None or an integer, got {given}")
    return longest if cutoff is None else min(count(cutoff, "cutoff", 0), longest)


def ranks(cutoff: Any) -> int:
    """Return a cutoff, or -1 for None."""
    return -1 if cutoff is None else ranks_that_count(cutoff)


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


def choice(value: Any, name: str, choices: Any) -> Any:
    """Return ``value``, as a plain str, if it is one of ``choices``: names, or a type of ``choices.py``."""
    choices = getattr(choices, "__args__", choices)  # get_args takes a microsecond
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(map(repr, choices))
        error = ValueError if isinstance(value, str) else TypeError
        raise error(f"{name} must be one of {listed}, got {shown(value)}")
    return str(value)


def factor(value: Any, name: str) -> float:
    """Return a float from 2**-200 to 2**200, by which scores may be multiplied or divided."""
    if type(value) is float and SMALLEST_MAGNITUDE <= value <= LARGEST_MAGNITUDE:
        return value
    number = real(value, name, above=0.0)
    in_range = SMALLEST_MAGNITUDE <= number <= LARGEST_MAGNITUDE
    require(in_range, f"{name} must be from 2**-200 to 2**200, about 6e-61 to 2e60, got {shown(value)}")
    return number


def relative_tolerance(value: Any) -> float:
    """Return a tolerance that exact expectations can reach; below 1e-10 rounding errors dominate."""
    if type(value) is float and SMALLEST_TOLERANCE <= value < 1.0:
        return value
    return real(value, "rtol", at_least=SMALLEST_TOLERANCE, below=1.0)


def flag(value: Any, name: str) -> bool:
    """Return a bool; other types are refused."""
    if value is True or value is False:
        return value
    if not isinstance(value, np.bool_):
        raise TypeError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)
