"""The result of a fit: strengths, their errors, probabilities of rankings, a table and a plot."""

from __future__ import annotations

import dataclasses
import html
import itertools
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from plrank_fast import validation
from plrank_fast._shared.pictures import new_figure
from plrank_fast.bucket_order import bucket_log_prob
from plrank_fast.strengths.draws import Stages
from plrank_fast.strengths.model import Model
from plrank_fast.strengths.observed import ordered, read
from plrank_fast.validation import FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclasses.dataclass(frozen=True, repr=False)
class FittedStrengths:
    """Strengths of items, and how well the rankings determine them.

    It unpacks into (strengths, standard_errors, covariance).

    Attributes
    ----------
    strengths : ndarray, shape (n_items,), float64
        The scores, or log-weights, of the items: their mean is 0, or the strength of the reference item is 0.
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
    draw_sizes : ndarray, shape (n_sizes,), int64, or None
        Sizes of tied sets that occur, with ``ties="davidson"``.
    log_deltas : ndarray, shape (n_sizes,), float64, or None
        Log weight of a tied set of each of these sizes, beside the mean of the strengths of its items.
    log_delta_covariance : ndarray, shape (n_sizes, n_sizes), float64, or None
        Covariance of ``log_deltas``.
    comparison_coefficients : ndarray, shape (n_features,), float64, or None
        Score that a unit of each of the ``comparison_features`` adds to an item in a ranking.
    comparison_covariance : ndarray, shape (n_features, n_features), float64, or None
        Covariance of these.
    groups : list of lists
        Names of the items between which differences are finite: one list, or several with ``undecided="groups"``. Then
        the strengths of each have the mean 0, and ``covariance`` is NaN across.
    above : ndarray, shape (n_groups, n_groups), bool
        Whether the items of a group come before those of another, and never the other way round.
    """

    strengths: FloatArray
    standard_errors: FloatArray
    covariance: FloatArray
    names: Sequence[Any]
    coefficients: FloatArray | None = None
    coefficient_covariance: FloatArray | None = None
    draw_sizes: IntArray | None = None
    log_deltas: FloatArray | None = None
    log_delta_covariance: FloatArray | None = None
    comparison_coefficients: FloatArray | None = None
    comparison_covariance: FloatArray | None = None
    groups: list[list[Any]] = dataclasses.field(default_factory=list)
    above: NDArray[np.bool_] | None = None
    _model: Model | None = dataclasses.field(default=None, compare=False)

    @staticmethod
    def of(model: Model, above: NDArray[np.bool_], values: FloatArray, covariance: FloatArray) -> FittedStrengths:
        """Return a fit with these values, which `Model.reported` has in its order."""
        n, k, c = model.n_items, *model.n_coefficients
        ends, groups = np.cumsum([0, n, k, c, values.size - n - k - c]), model.groups
        parts = [(values[a:b], covariance[a:b, a:b]) for a, b in itertools.pairwise(ends.tolist())]
        (strengths, own), of_items, of_comparisons, of_draws = parts
        if len(above) > 1:
            own = np.where(groups[:, np.newaxis] == groups, own, np.nan)
        errors = np.sqrt(np.maximum(np.diag(own), 0.0))
        fit = FittedStrengths(strengths, errors, own, model.names, above=above, _model=model)
        fit.groups.extend([model.names[i] for i in np.flatnonzero(groups == g).tolist()] for g in range(len(above)))
        more: dict[str, Any] = {}
        if k:
            more["coefficients"], more["coefficient_covariance"] = of_items
        if c:
            more["comparison_coefficients"], more["comparison_covariance"] = of_comparisons
        if model.likelihood.ties == "davidson":
            more["draw_sizes"] = model.likelihood.sizes[1:]
            more["log_deltas"], more["log_delta_covariance"] = of_draws
        return dataclasses.replace(fit, **more)

    def __iter__(self) -> Iterator[FloatArray]:
        """Yield strengths, standard errors and covariance."""
        return iter((self.strengths, self.standard_errors, self.covariance))

    def __repr__(self) -> str:
        """Return a text with the number of items and the strongest of them."""
        return f"FittedStrengths(n_items={len(self.names)}, strongest={self.names[int(self.strengths.argmax())]!r})"

    def intervals(self, confidence: float = 0.95) -> FloatArray:
        """Compute an interval for the strength of each item, from the normal approximation.

        Parameters
        ----------
        confidence : float
            Probability that such an interval holds the strength, between 0 and 1.

        Returns
        -------
        ndarray, shape (n_items, 2), float64
            Lower and upper end.
        """
        reach = _quantile(confidence) * self.standard_errors
        return np.column_stack([self.strengths - reach, self.strengths + reach])

    def predict(self, rankings: Any) -> FloatArray:
        """Compute the probability of each ranking among the items that it holds: of ``[a, b]``, that a comes first.

        With ``ties="davidson"``, that a comes first, and of ``[{a, b}]`` that they draw; the size of a tie that the fit
        did not see has the probability 0. Otherwise the order of tied items is unknown, so the probability of a ranking
        is the sum over all orders that agree with it, and the probability of a tie of all items is 1. Features of
        comparisons are equal. The probability is NaN for rankings of items of several ``groups``.

        Parameters
        ----------
        rankings : array or list of lists
            Rankings in any form that ``fit_strengths`` takes without buckets, by the same names or numbers.

        Returns
        -------
        ndarray, shape (n_rankings,), float64
        """
        _, rows = read(rankings, names=self.names)
        scores = self.strengths[rows.entries]
        if self.draw_sizes is not None and self.log_deltas is not None:
            stages = Stages(ordered(rows), np.append(1, self.draw_sizes))
            possible = np.isin(stages.groups, stages.sizes)
            known: FloatArray = np.exp(stages.slopes(self.strengths[stages.observed.entries], self.log_deltas)[0])
            known[stages.observed.ranking[~possible]] = 0.0
        else:
            known = np.exp(bucket_log_prob(scores, rows.places, offsets=rows.limits))
        if self._model is not None and len(self.groups) > 1:
            group = self._model.groups[rows.entries]
            known[rows.ranking[group != group[rows.limits[rows.ranking]]]] = np.nan
        return known

    def summary(self, confidence: float = 0.95) -> str:
        """Return a table of the items by descending strength, with standard errors and intervals."""
        head, *rows = self._rows(confidence)
        width = max(len(row[0]) for row in (head, *rows))
        return "\n".join(row[0].ljust(width) + "".join(f"{cell:>12}" for cell in row[1:]) for row in (head, *rows))

    def _repr_html_(self) -> str:
        """Return the table of `summary` for a notebook."""
        head, *rows = (map(html.escape, row) for row in self._rows(0.95))
        lines = [
            f"<tr><th>{'</th><th>'.join(head)}</th></tr>",
            *(f"<tr><td>{'</td><td>'.join(row)}</td></tr>" for row in rows),
        ]
        return f"<table>{''.join(lines)}</table>"

    def _rows(self, confidence: float) -> list[tuple[str, ...]]:
        """Return the texts of the table: its head, the items by descending strength, and the features."""
        values, errors, order = self.strengths, self.standard_errors, np.argsort(-self.strengths, kind="stable")
        labels = [str(self.names[i]) for i in order.tolist()]
        values, errors = values[order], errors[order]
        sizes = [] if self.draw_sizes is None else self.draw_sizes.tolist()
        for label, numbers, more, covariance in (
            ("feature", range(1 << 30), self.coefficients, self.coefficient_covariance),
            ("comparison feature", range(1 << 30), self.comparison_coefficients, self.comparison_covariance),
            ("log delta", sizes, self.log_deltas, self.log_delta_covariance),
        ):
            if more is not None and covariance is not None:
                labels += [f"({label} {number})" for number in numbers[: more.size]]
                values, errors = np.append(values, more), np.append(errors, np.sqrt(np.diag(covariance)))
        reach = _quantile(confidence) * errors
        columns = zip(values, errors, values - reach, values + reach, strict=True)
        texts = [tuple(f"{number:.4f}" for number in row) for row in columns]
        head = ("item", "strength", "std. error", f"{100 * confidence:g}% from", "to")
        return [head, *((label, *row) for label, row in zip(labels, texts, strict=True))]

    def plot(self, confidence: float = 0.95) -> Figure:
        """Draw the strengths with their intervals, the strongest item on top.

        Returns
        -------
        matplotlib.figure.Figure
        """
        order = np.argsort(self.strengths, kind="stable")
        reach = (self.intervals(confidence)[:, 1] - self.strengths)[order]
        size = (6.6, 1.2 + 0.22 * order.size)
        figure = new_figure(size)
        axes = figure.subplots()
        axes.errorbar(self.strengths[order], np.arange(order.size), xerr=reach, fmt="o", markersize=4, capsize=2)
        axes.set_yticks(np.arange(order.size), [str(self.names[i]) for i in order])
        axes.set_ylim(-0.6, order.size - 0.4)
        axes.set_xlabel(f"strength, with intervals of {100 * confidence:g}%")
        axes.grid(axis="x", alpha=0.3)
        return figure


def _quantile(confidence: float) -> float:
    """Return how many standard errors an interval of this confidence reaches to each side."""
    confidence = validation.real(confidence, "confidence", above=0.0, below=1.0)
    return NormalDist().inv_cdf(0.5 + 0.5 * confidence)
