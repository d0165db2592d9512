"""Numbers in extended precision with the sums of their absolute terms, by which an error may be measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class Terms:
    """Totals and, of each, the sum of its absolute terms: sums add both, and products multiply both.

    Arrays that take part are exact, so that each number in them is a term.
    """

    __array_ufunc__ = None  # an array on the left leaves the operator to this class

    def __init__(self, total: Any, absolute: Any = None) -> None:
        self.total = np.asarray(total, np.longdouble)
        self.absolute = np.abs(self.total) if absolute is None else np.asarray(absolute, np.longdouble)

    def __add__(self, other: Any) -> Terms:
        other = of(other)
        return Terms(self.total + other.total, self.absolute + other.absolute)

    def __mul__(self, other: Any) -> Terms:
        other = of(other)
        return Terms(self.total * other.total, self.absolute * other.absolute)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Terms:
        return Terms(-self.total, self.absolute)

    def __sub__(self, other: Any) -> Terms:
        return self + -of(other)

    def __rsub__(self, other: Any) -> Terms:
        return of(other) - self

    def __truediv__(self, number: Any) -> Terms:
        return Terms(self.total / number, self.absolute / number)

    def __rmatmul__(self, matrix: np.ndarray) -> Terms:
        return Terms(matrix @ self.total, np.abs(matrix) @ self.absolute)

    def __getitem__(self, key: Any) -> Terms:
        return Terms(self.total[key], self.absolute[key])

    def sum(self, axis: int | None = None) -> Terms:
        return Terms(self.total.sum(axis=axis), self.absolute.sum(axis=axis))


def of(numbers: Any) -> Terms:
    """Take numbers for terms."""
    return numbers if isinstance(numbers, Terms) else Terms(numbers)


def stacked(parts: Sequence[Terms]) -> Terms:
    """Put numbers into an array."""
    return Terms([part.total for part in parts], [part.absolute for part in parts])


def mean(parts: Sequence[Terms]) -> Terms:
    return stacked(parts).sum(axis=0) / len(parts)
