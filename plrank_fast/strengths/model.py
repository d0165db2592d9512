"""The likelihood with a prior and features, and its maximum by Newton's method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plrank_fast import validation
from plrank_fast.strengths.information import inverse_of_positive
from plrank_fast.strengths.likelihood import Likelihood
from plrank_fast.validation import FloatArray, IntArray

MOST_STEPS = 1000
STANDS = 5e-7  # the largest difference of strengths in a last step; the information changes by as much of itself
NEAR = 1e-6  # square of the length of a step in standard errors
LEAST_GAIN = 0.25  # of a step, relative to what its slope promises
ROUNDING = 1e-12  # of a sum of log-probabilities, relative to it
MOST_INFLATION = 1e10  # of a variance by the other parameters, over what it would be if they were known
MOST_AT_ONCE = 1_500  # equations that one call of NumPy solves
MOST_NAMED = 3
FEW = 200  # equations, below which elimination takes less time than products
MOST_PRODUCTS = 30
SOLVED = 1e-22  # square of what is left of equations, relative to it


class Model:
    """The penalised log-likelihood of coefficients of features, strengths of items, or both, and then of the rest.

    The rest are coefficients of comparisons and log deltas. Weights of rankings and the ridge are in units of the
    largest weight, and features in units of their largest distance from the mean, so that neither changes what can be
    computed. The mean of the strengths of a group is open to the likelihood: it is 0, or the strength of the item
    ``origin`` is.
    """

    likelihood: Likelihood
    names: Sequence[Any]
    columns: FloatArray | None
    free: bool
    units: FloatArray
    penalty: FloatArray
    means: FloatArray
    groups: IntArray
    origin: int
    n_items: int
    n_coefficients: tuple[int, int]
    unit: float

    def __init__(
        self, likelihood: Likelihood, names: Sequence[Any], columns: FloatArray | None, units: FloatArray, ridge: float,
        means: FloatArray, groups: IntArray, origin: int,
    ) -> None:  # fmt: skip
        self.likelihood, self.unit, self.n_items = likelihood, likelihood.unit, likelihood.n_items
        self.names, self.groups, self.origin = names, groups, origin
        self.columns, self.free = columns, columns is None or ridge > 0.0
        k = 0 if columns is None else columns.shape[1]
        before, after = np.zeros(k), np.zeros(likelihood.n_features + likelihood.n_draws)
        n_free = self.n_items if self.free else 0
        self.penalty = np.concatenate([before, np.full(n_free, ridge / self.unit), after])
        self.means = np.concatenate([before, means[:n_free], after])
        self.units = np.concatenate([np.ones(self.n_items), units, np.ones(likelihood.n_draws)])[:, np.newaxis]
        self.n_coefficients = k, likelihood.n_features

    def strengths(self, parameters: FloatArray) -> FloatArray:
        """Return the strengths that belong to parameters."""
        return self.of_strengths(parameters[:, np.newaxis])[:, 0]

    def of_strengths(self, rows: FloatArray) -> FloatArray:
        """Multiply by the matrix that turns parameters into strengths."""
        if self.columns is None:
            return rows
        k = self.columns.shape[1]
        explained: FloatArray = self.columns @ rows[:k]
        rest = rows[k:].copy() if self.free else np.concatenate([0.0 * explained, rows[k:]])
        rest[: self.n_items] = rest[: self.n_items] + explained
        return rest

    def of_parameters(self, rows: FloatArray) -> FloatArray:
        """Multiply by the transpose of that matrix."""
        if self.columns is None:
            return rows
        explained: FloatArray = self.columns.T @ rows[: self.n_items]
        return np.concatenate([explained, rows if self.free else rows[self.n_items :]])

    def value_and_gradient(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return what is maximised, and its gradient."""
        value, gradient = self.likelihood.value_and_gradient(self.strengths(parameters))
        off = parameters - self.means
        gradient = self.of_parameters(gradient[:, np.newaxis])[:, 0] - self.penalty * off
        return value - 0.5 * float(self.penalty @ off**2), gradient

    def information(self, parameters: FloatArray) -> FloatArray:
        """Return the information, in which the mean of free strengths is held."""
        information = self.likelihood.information(self.strengths(parameters))
        information = self.of_parameters(self.of_parameters(information).T)
        information[np.diag_indices_from(information)] += self.penalty
        if self.columns is None:  # the strengths of a group may move together: what holds them is taken out later
            n, one = self.n_items, not self.groups.any()
            held = (float(np.diag(information)[:n].mean()) or 1.0) / n
            information[:n, :n] += held if one else held * (self.groups[:, np.newaxis] == self.groups)
        return information

    def step(self, parameters: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return Newton's step."""
        information = self.information(parameters)
        step = _conjugate(information, gradient)
        if step is not None:
            return step
        if parameters.size > MOST_AT_ONCE:  # in steps between which Ctrl-C is heard
            return self.inverse_information(parameters) @ gradient
        try:
            step = np.asarray(np.linalg.solve(information, gradient))
        except np.linalg.LinAlgError:
            step = np.full_like(gradient, np.nan)
        if not (np.isfinite(step).all() and step @ gradient >= 0.0):
            self.inverse_information(parameters)  # its message
        return step

    def inverse_information(self, parameters: FloatArray) -> FloatArray:
        """Invert the information."""
        information = self.information(parameters)
        scale = np.sqrt(np.maximum(np.diag(information), 1e-300))
        inverse = inverse_of_positive(information / scale / scale[:, np.newaxis])
        inflation = np.diag(inverse)
        weak = not (np.isfinite(inflation).all() and inflation.min() > 0.0 and inflation.max() < MOST_INFLATION)
        far = inflation * self.likelihood.least() > MOST_INFLATION * scale**2  # than a few times one over a weight
        weak = weak or bool((far & (self.penalty == 0.0)).any())
        if weak:
            self.refuse(np.nan_to_num(np.abs(inflation), nan=1e99) / np.maximum(scale, 1e-75) ** 2)
        return inverse / scale / scale[:, np.newaxis]

    def labels(self) -> list[str]:
        """Return names of parameters, for messages and tables."""
        of_items, of_comparisons = self.n_coefficients
        labels = [f"feature {k}" for k in range(of_items)] + [f"item {name!r}" for name in self.names if self.free]
        labels += [f"comparison feature {k}" for k in range(of_comparisons)]
        return labels + [f"log delta {size}" for size in self.likelihood.sizes[1:].tolist()]

    def reported(self, rows: FloatArray) -> FloatArray:
        """Multiply by the matrix that turns parameters into strengths, coefficients in their own units, and deltas."""
        n, theta = self.n_items, self.of_strengths(rows)
        sizes, order = np.bincount(self.groups), np.argsort(self.groups, kind="stable")
        anchors = np.add.reduceat(theta[order], np.cumsum(sizes) - sizes, axis=0) / sizes[:, np.newaxis]
        if self.origin >= 0:
            anchors[self.groups[self.origin]] = theta[self.origin]
        own = theta[:n] - anchors[self.groups]
        return np.concatenate([own, rows[: self.n_coefficients[0]], theta[n:]]) / self.units

    def maximum(self, start: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return the parameters of largest penalised likelihood, and the inverse of the information there.

        What is maximised is concave, so Newton's steps, halved until they gain enough, lead from equal strengths to its
        maximum, however far the means of a prior are apart.
        """
        parameters = np.zeros(self.means.size) if start is None else start
        value, gradient = self.value_and_gradient(parameters)
        before = np.inf
        for _ in range(MOST_STEPS):
            step = self.step(parameters, gradient)
            rise, moves = float(gradient @ step), self.strengths(step)
            length = float(np.ptp(moves[: self.n_items])) + float(np.abs(moves[self.n_items :]).sum())
            new = self.value_and_gradient(parameters + step)
            while new[0] < value + LEAST_GAIN * rise and rise > ROUNDING * abs(value):
                step, rise = 0.5 * step, 0.5 * rise
                new = self.value_and_gradient(parameters + step)
            parameters, (value, gradient) = parameters + step, new
            # Where rounding of the gradient is all that is left, steps do not get shorter.
            if length < STANDS or (length >= before and rise * self.unit < NEAR**2):
                inverse = self.inverse_information(parameters)
                self.likelihood.forget()
                return parameters, inverse
            before = length if rise * self.unit < NEAR else np.inf
        self.refuse(np.abs(parameters))
        return parameters, np.zeros((0, 0))

    def refuse(self, how_open: FloatArray) -> None:
        """Raise an error that names what the rankings determine too weakly."""
        how_open = np.minimum(how_open, 1e99)
        labels = [self.labels()[i] for i in np.flatnonzero(how_open > 1e-3 * how_open.max())]
        others = [label for label in labels if not label.startswith("item")]
        more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
        what = ", ".join(others[:MOST_NAMED]) + more or "the strengths"
        remedy = "a larger ridge" if self.penalty.any() else "a ridge"
        draws = "ties='unknown', as draws need a cycle of items with more wins than draws"
        remedy = f"{remedy}, or {draws}" if self.likelihood.n_draws else remedy
        of_items, of_comparisons = self.n_coefficients
        start = how_open.size - self.likelihood.n_draws - of_comparisons
        weak = how_open[start:][:of_comparisons] > 1e-3 * how_open.max()
        remedy = "fewer features, without constant columns or sums of others" if of_items or of_comparisons else remedy
        if weak.any() and not self.groups.any():
            column = int(weak.argmax())
            values = self.likelihood.observed.features[:, column] * self.units[self.n_items + of_items + column]
            row = int(np.abs(values).argmax())
            remedy += f" and of items, which give comparison_features[{row}, {column}] = {values[row]:g}"
        validation.require(False, f"the rankings determine {what} too weakly, or at infinity only: pass {remedy}")


def _conjugate(matrix: FloatArray, right: FloatArray) -> FloatArray | None:
    """Solve equations by conjugate gradients, or return None if some products with the matrix do not do."""
    if right.size < FEW:
        return None
    solution, rest, scale = np.zeros_like(right), right, 1.0 / np.maximum(np.diag(matrix), 1e-300)
    direction = scale * rest
    size = before = float(rest @ direction)
    for _ in range(MOST_PRODUCTS):
        if size <= SOLVED * before:
            return solution
        along = matrix @ direction
        length = size / float(direction @ along)
        solution, rest = solution + length * direction, rest - length * along
        scaled = scale * rest
        size, last = float(rest @ scaled), size
        direction = scaled + size / last * direction
    return None
