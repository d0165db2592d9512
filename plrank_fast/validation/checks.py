"""Primitives of all checks: a condition on a call as a whole, or on each entry of an array."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

HINTS = {  # for names in Python's error of a call: what to pass for the first of these that the function has
    "rank_weights": {"rank_weights": "dcg_weights(10)"},
    "cutoff": {"rank_weights": "dcg_weights(cutoff)"},
    "k": {"cutoff": "k", "rank_weights": "dcg_weights(k)"},
    "qid": {"offsets": "offsets_from_qid(qid)"},
    "group": {"offsets": "offsets_from_group(group)", "qid": "numpy.repeat(range(len(group)), group)"},
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
    """Raise TypeError unless an argument is of the type expected, which the caller has found out."""
    require(holds, f"{name} must be {expected}, got {got}", TypeError)


def given(value: Any, name: str, where: str) -> Any:
    """Return an argument that must not be None; ``where`` is such as " for rewards" or ", or rewards"."""
    require(value is not None, f"{name} must be given{where}, got None")
    return value


def hint_at_argument(error: TypeError, parameters: tuple[str, ...]) -> None:
    """Add to Python's error of a call, to a function with these parameters, the argument to pass."""
    hints = [
        f": pass {name}={value}"
        for wrong, others in HINTS.items()
        for name, value in others.items()
        if f"'{wrong}'" in str(error) and name in parameters
    ]
    error.args = ("".join([str(error), *hints[:1]]),)


def refuse_unknown(arguments: dict[str, Any]) -> NoReturn:
    """Refuse keyword arguments that a calling function does not have."""
    code = sys._getframe(1).f_code
    error = TypeError(f"{code.co_qualname}() got an unexpected keyword argument {next(iter(arguments))!r}")
    hint_at_argument(error, code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
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
