"""The result of a fit: strengths, their errors, probabilities of rankings, a table and a plot."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

from plrank_fast import validation
from plrank_fast._shared.extras import import_extra
from plrank_fast.bucket_order import bucket_log_prob
from plrank_fast.strengths.observed import read
from plrank_fast.validation import FloatArray


@dataclasses.dataclass(frozen=True, repr=False)
class FittedStrengths:
    """Strengths of items, and how well the rankings determine them.

    It unpacks into (strengths, standard_errors, covariance).

    Attributes
    ----------
    strengths : ndarray, shape (n_items,), float64
        The scores, or log-weights, of the items: their mean is 0, or that of the reference item.
    standard_errors : ndarray, shape (n_items,), float64
        Square roots of the diagonal of ``covariance``.
    covariance : ndarray, shape (n_items, n_items), float64
        Inverse of the observed information, for strengths with this origin. The variance of the difference of items i
        and j is ``covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]``, for any origin.
    names : list or range
        Names of the items: numbers from 0 if rankings hold these.
    coefficients : ndarray, shape (n_features,), float64, or None
        Strength for each unit of a feature.
    coefficient_covariance : ndarray, shape (n_features, n_features), float64, or None
        Covariance of the coefficients.
    """

    strengths: FloatArray
    standard_errors: FloatArray
    covariance: FloatArray
    names: Sequence[Any]
    coefficients: FloatArray | None = None
    coefficient_covariance: FloatArray | None = None

    def __iter__(self) -> Iterator[FloatArray]:
        """Yield strengths, standard errors and covariance."""
        return iter((self.strengths, self.standard_errors, self.covariance))

    def __repr__(self) -> str:
        """Return a text with the number of items and the strongest of them."""
        return f"FittedStrengths(n_items={len(self.names)}, strongest={self.names[int(self.strengths.argmax())]!r})"

    def intervals(self, level: float = 0.95) -> FloatArray:
        """Compute an interval for the strength of each item, from the normal approximation.

        Parameters
        ----------
        level : float
            Probability that such an interval holds the strength, between 0 and 1.

        Returns
        -------
        ndarray, shape (n_items, 2), float64
            Lower and upper end.
        """
        level = validation.real(level, "level", above=0.0, below=1.0)
        reach = NormalDist().inv_cdf(0.5 + 0.5 * level) * self.standard_errors
        return np.column_stack([self.strengths - reach, self.strengths + reach])

    def predict(self, rankings: Any) -> FloatArray:
        """Compute the probability of each ranking among the items that it holds: of ``[a, b]``, that a comes first.

        Parameters
        ----------
        rankings : array or list of lists
            Rankings in any form that ``fit_strengths`` takes without buckets, by the same names or numbers.

        Returns
        -------
        ndarray, shape (n_rankings,), float64
        """
        _, rows = read(rankings, names=self.names)
        chances: FloatArray = np.exp(bucket_log_prob(self.strengths[rows.entries], rows.places, offsets=rows.limits))
        return chances

    def summary(self, level: float = 0.95) -> str:
        """Return a table of the items by descending strength, with standard errors and intervals."""
        ends, order = self.intervals(level), np.argsort(-self.strengths, kind="stable")
        head = ("item", "strength", "std. error", f"{100 * level:g}% from", "to")
        rows = [(str(self.names[i]), self.strengths[i], self.standard_errors[i], *ends[i]) for i in order.tolist()]
        if self.coefficients is not None and self.coefficient_covariance is not None:
            errors = np.sqrt(np.diag(self.coefficient_covariance))
            reach = NormalDist().inv_cdf(0.5 + 0.5 * level) * errors
            rows += [
                (f"(feature {k})", value, errors[k], value - reach[k], value + reach[k])
                for k, value in enumerate(self.coefficients.tolist())
            ]
        width = max(len(row[0]) for row in [head, *rows])
        lines = [f"{head[0]:{width}}" + "".join(f"{name:>12}" for name in head[1:])]
        lines += [f"{row[0]:{width}}" + "".join(f"{number:12.4f}" for number in row[1:]) for row in rows]
        return "\n".join(lines)

    def plot(self, level: float = 0.95) -> Any:
        """Draw the strengths with their intervals, the strongest item on top.

        Returns
        -------
        matplotlib.figure.Figure
        """
        order = np.argsort(self.strengths, kind="stable")
        reach = (self.intervals(level)[:, 1] - self.strengths)[order]
        size = (6.6, 1.2 + 0.22 * order.size)
        figure = import_extra("matplotlib.figure", "train").Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        axes.errorbar(self.strengths[order], np.arange(order.size), xerr=reach, fmt="o", markersize=4, capsize=2)
        axes.set_yticks(np.arange(order.size), [str(self.names[i]) for i in order])
        axes.set_ylim(-0.6, order.size - 0.4)
        axes.set_xlabel(f"strength, with intervals of {100 * level:g}%")
        axes.grid(axis="x", alpha=0.3)
        return figure
