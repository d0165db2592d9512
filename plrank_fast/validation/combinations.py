"""Arguments that go with each other, and those that do not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast.validation.scalars import shown


def excluded(value: Any, name: str, other: str, why: str) -> None:
    """Refuse an argument that was given beside another one, which leaves no meaning to it."""
    if value is not None:
        raise ValueError(f"{name} must not be given with {other}, {why}")


def goes_with(value: Any, name: str, used: bool, setting: str) -> None:
    """Refuse an argument that was given where a setting leaves it without effect."""
    if value is not None and not used:
        raise ValueError(f"{name} only goes with {setting}, got {shown(value)}")


def function(value: Any, name: str) -> Any:
    """Return ``value`` if it can be called."""
    if not callable(value):
        raise TypeError(f"{name} must be a function, got {shown(value)}")
    return value


def only_one(arguments: dict[str, Any]) -> None:
    """Raise if more than one of these arguments, by name, is not None."""
    given = [name for name, value in arguments.items() if value is not None]
    if len(given) > 1:
        raise ValueError(f"only one of {' and '.join(given)} may be given, got both")


def given_once(arguments: dict[str, Any], parameters: dict[str, Any]) -> None:
    """Raise if one of the arguments, by name, is a key of ``parameters``, too."""
    for name in arguments:
        if name in parameters:
            raise ValueError(f"{name} must be given once, got it as an argument and in parameters")


def only_as(parameters: dict[str, Any], name: str, value: Any) -> None:
    """Refuse a parameter of another library that has to be ``value``, or absent if that is None."""
    if parameters.get(name, value) != value:
        only = "cannot be used" if value is None else f"must be {value!r}"
        raise ValueError(f"{name} {only} where trees are fitted one at a time, got {parameters[name]!r}")


def groups_of(groups: ArrayLike | None, remedy: str) -> ArrayLike:
    """Return what a library holds of its data set's groups, if it holds any."""
    if groups is None or np.size(groups) == 0:
        raise ValueError(f"the data set has no groups, and a ranking objective needs to know its queries: {remedy}")
    return groups


def required(value: Any, name: str, by: str) -> Any:
    """Return ``value`` if there is one; argument ``by`` needs it."""
    if value is None:
        raise ValueError(f"{name} must be given for {by}, got None")
    return value


def instead_of(value: Any, name: str, other: str) -> Any:
    """Return ``value`` if there is one; the caller has found that ``other`` was not given in its place."""
    if value is None:
        raise ValueError(f"{name} must be given, or {other}")
    return value


def given_with_rankings(values: Any, rankings: Any) -> None:
    """Check that the noise of a ranking is given where the ranking is."""
    if values is None and rankings is not None:
        raise ValueError("sampled_values must be given with sampled_rankings: the noise counts, not only the order")


def of_type(holds: bool, name: str, expected: str, got: Any) -> None:
    """Raise unless an argument is of the type expected: for types of which only another library can tell."""
    if not holds:
        raise TypeError(f"{name} must be {expected}, got {got}")


def constant(differentiated: bool, name: str, must_not: str, remedy: str) -> None:
    """Refuse an argument by which a library would differentiate, and find 0 in silence."""
    if differentiated:
        raise TypeError(f"{name} must not {must_not}: pass {remedy}")
