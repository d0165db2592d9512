"""Errors over their bounds: above 1 a bound fails. Many bounds are of the sums of absolute terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adversarial_problem import Problem

Ratios = dict[str, float]
OF_TERMS = 1e-12  # error of what is computed from given rankings or labels, of its absolute terms
OF_SUMS = 1e-8  # error of rank probabilities and their sums
LEAST = 1e-290  # below it a double has fewer digits


class Terms:
    """Totals in extended precision, each with the sum of its absolute terms: sums add both, products multiply both.

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


def ratio(error: float, bound: float) -> float:
    """Return error over bound, infinite for what is not a number."""
    return float(error / bound) if error < np.inf else np.inf


def of_norm(got: np.ndarray, best: np.ndarray, problem: Problem) -> float:
    """``pl_rank_exact``: rtol times the larger of the norm and max |theta| max |rho| / 1000."""
    scale = np.abs(problem.rank_weights[: problem.n_docs]).max() * np.abs(problem.relevance).max()
    return ratio(np.linalg.norm(got - best), problem.rtol * max(np.linalg.norm(best), 1e-3 * scale))


def of_terms(got: np.ndarray, best: Terms, exponent: int = 0) -> float:
    """Largest error of an item, over 1e-12 of the sum of its own absolute terms; ``exponent`` is of what was got.

    What was got is a double: where its exponent is negative, the least that it can tell is larger beside the best.
    """
    error = np.abs(np.ldexp(np.asarray(got).astype(np.longdouble), -exponent) - best.total)
    least = np.ldexp(np.longdouble(LEAST), max(0, -exponent))
    return ratio(float((error / (OF_TERMS * best.absolute + least)).max()), 1.0)
