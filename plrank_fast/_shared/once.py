"""Attributes that are computed when they are first read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property  # noqa: TID251
else:

    class cached_property:
        """``functools.cached_property`` without the lock that it has before Python 3.12.

        All objects of a class share that lock. If a thread holds it during a fork, it is never released in the child.
        """

        def __init__(self, function: Callable[[Any], Any]) -> None:
            self.function, self.__doc__ = function, function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            """Return the value, which becomes an attribute of the object and is read from there from now on."""
            if instance is None:
                return self
            value = instance.__dict__[self.name] = self.function(instance)
            return value


__all__ = ["cached_property"]
