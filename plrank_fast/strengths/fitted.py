"""The result of a fit: strengths, their errors, probabilities of rankings, a table and a plot."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from plrank_fast import validation
from plrank_fast._shared.extras import import_extra
from plrank_fast._shared.pictures import new_figure
from plrank_fast.bucket_order import bucket_log_prob
from plrank_fast.strengths import resampled
from plrank_fast.strengths.draws import Stages
from plrank_fast.strengths.model import Model
from plrank_fast.strengths.observed import ordered, read
from plrank_fast.strengths.uncertainty import clusters_of, quantile
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
        For strengths with this origin: by default the inverse of the observed information. The variance of the
        difference of items i and j is ``covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]``, for any origin.
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
    degrees : float
        Degrees of freedom of intervals: one less than there are clusters, or inf for the normal distribution.
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
    degrees: float = np.inf
    _model: Model | None = dataclasses.field(default=None, compare=False)
    _parameters: FloatArray | None = dataclasses.field(default=None, compare=False)

    @staticmethod
    def of(
        model: Model, parameters: FloatArray, covariance: FloatArray, degrees: float, above: NDArray[np.bool_]
    ) -> FittedStrengths:
        """Return a fit with these parameters and their covariance."""
        values = model.reported(parameters[:, np.newaxis])[:, 0]
        covariance = model.reported(model.reported(covariance).T)
        n, k, c = model.n_items, *model.n_coefficients
        drawn, own, more = model.likelihood.ties == "davidson", covariance[:n, :n], list[Any]()
        for some, part in ((k, slice(n, n + k)), (c, slice(n + k, n + k + c)), (drawn, slice(n + k + c, None))):
            more.append((values[part], covariance[part, part]) if some else (None, None))
        (of_items, for_items), (of_comparisons, for_comparisons), (of_draws, for_draws) = more
        if len(above) > 1:
            own = np.where(model.groups[:, np.newaxis] == model.groups, own, np.nan)
        groups = [
            [model.names[i] for i in np.flatnonzero(model.groups == group).tolist()] for group in range(len(above))
        ]
        errors, sizes = np.sqrt(np.maximum(np.diag(own), 0.0)), model.likelihood.sizes[1:] if drawn else None
        return FittedStrengths(
            values[:n], errors, own, model.names, of_items, for_items, sizes, of_draws, for_draws, of_comparisons,
            for_comparisons, groups, above, degrees, model, parameters,
        )  # fmt: skip

    def __iter__(self) -> Iterator[FloatArray]:
        """Yield strengths, standard errors and covariance."""
        return iter((self.strengths, self.standard_errors, self.covariance))

    def __repr__(self) -> str:
        """Return a text with the number of items and the strongest of them."""
        return f"FittedStrengths(n_items={len(self.names)}, strongest={self.names[int(self.strengths.argmax())]!r})"

    def intervals(self, confidence: float = 0.95) -> FloatArray:
        """Compute an interval for the strength of each item, by the normal distribution, or t where there are clusters.

        Parameters
        ----------
        confidence : float
            Probability that such an interval holds the strength, between 0 and 1.

        Returns
        -------
        ndarray, shape (n_items, 2), float64
            Lower and upper end.
        """
        reach = quantile(confidence, self.degrees) * self.standard_errors
        return np.column_stack([self.strengths - reach, self.strengths + reach])

    def bootstrap(self, n: int = 1000, *, rng: validation.RandomState = None, clusters: Any = None) -> FloatArray:
        """Fit strengths to rankings that are drawn again from those of the fit, with replacement.

        Parameters
        ----------
        n : int
            Number of fits.
        rng : None, int, SeedSequence, BitGenerator or Generator
            Source of the random numbers. The same key gives the same bits for any number of threads; a generator is
            advanced by one draw, and None is fresh entropy.
        clusters : array_like, shape (n_rankings,), optional
            Judges or sessions: whole clusters are drawn, with all their rankings and weights. By default each ranking
            is drawn by itself, as often as its weight says, which must be a whole number.

        Returns
        -------
        ndarray, shape (n, n_items), float64
            Strengths of each fit. A row is NaN if its rankings do not determine them; a warning counts these.
        """
        model, parameters = self._of_fit("bootstrap")
        one = "bootstrap needs items that rankings connect, got"
        validation.require(len(self.groups) == 1, f"{one} {len(self.groups)} groups: fit each of them by itself")
        number, n = model.likelihood.observed.counts.size, validation.count(n, "n", 1)
        codes = None if clusters is None else clusters_of(clusters, number)[0]
        rng = np.random.default_rng(validation.check_random_state(rng))
        fits = model.reported(resampled.bootstrap(model, parameters, n, rng, codes))[: len(self.names)].T
        lost = int(np.isnan(fits[:, 0]).sum())
        if lost:
            problem = f"{lost:,} of {n:,} fits to rankings drawn again have no finite maximum, and are NaN"
            validation.warn(f"{problem}: a fit with a ridge has one")
        return fits

    def ranks(
        self, rule: validation.RankRule = "simultaneous", confidence: float = 0.95, *, rng: validation.RandomState = 0
    ) -> IntArray:
        """Compute an interval for the rank of each item: how many others are ahead of it for certain, and behind it.

        Parameters
        ----------
        rule : {"each", "simultaneous", "overlap"}
            Another item is ahead if it is stronger by more than the interval of the difference, and all intervals hold
            at once: those of all differences ("simultaneous", for the whole table), or those from one item ("each", for
            a statement about it alone). "overlap": if its interval does not overlap the one of the item, as on public
            leaderboards; the more items, the fewer such ranks are right.
        confidence : float
            Probability that the differences lie in these intervals, between 0 and 1.
        rng : None, int, SeedSequence, BitGenerator or Generator
            Source of the random numbers. The same key gives the same bits for any number of threads; a generator is
            advanced by one draw, and None is fresh entropy.

        Returns
        -------
        ndarray, shape (n_items, 2), int64
            The best and the worst rank; 1 is the first. It takes O(n_items^2) steps for each sample.
        """
        reach, rule = quantile(confidence, self.degrees), validation.choice(rule, "rule", validation.RankRule)
        model, _ = self._of_fit("ranks")
        ahead = np.zeros((1, 1), dtype=bool) if self.above is None else self.above
        generator = np.random.default_rng(validation.check_random_state(rng))
        certain = ahead[np.ix_(model.groups, model.groups)]
        of_fit = self.strengths, self.covariance, certain
        return resampled.ranks(*of_fit, rule, reach, confidence, self.degrees, generator)

    def _of_fit(self, method: str) -> tuple[Model, FloatArray]:
        """Return what was fitted, which a result that was put together by hand does not have."""
        whole = self._model is not None and self._parameters is not None
        validation.require(whole, f"{method} needs a result of fit_strengths")
        return cast("Model", self._model), cast("FloatArray", self._parameters)

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
        """Return the table of `summary` for a notebook, with a bar for each interval."""
        head, *rows = self._rows(0.95)
        ends = np.sort(self.intervals(), axis=0)
        low, width = float(ends[0, 0]), float(ends[-1, 1] - ends[0, 0]) or 1.0
        lines = [f"<tr><th>{'</th><th>'.join(map(html.escape, head))}</th><th></th></tr>"]
        for number, row in enumerate(rows):
            left, right = (100.0 * (float(cell) - low) / width for cell in row[3:])
            bar = f'<div style="margin-left:{left:.0f}%;width:{right - left:.1f}%;height:.7em;background:#888"></div>'
            cells = "</td><td>".join(map(html.escape, row))
            bar = bar if number < len(self.names) else ""
            lines.append(f'<tr><td>{cells}</td><td style="min-width:12em">{bar}</td></tr>')
        return f"<table>{''.join(lines)}</table>"

    def elo(
        self, scale: float = 400.0, base: float = 10.0, mean: float = 1000.0, confidence: float = 0.95
    ) -> FloatArray:
        """Convert strengths to ratings: ``scale`` points more are odds of ``base`` to 1, draws aside.

        Parameters
        ----------
        scale : float
            Points; above 0.
        base : float
            Odds; above 1.
        mean : float
            Rating of a strength of 0, which is the mean of all, or the strength of the reference.
        confidence : float
            Probability that an interval holds the rating, between 0 and 1.

        Returns
        -------
        ndarray, shape (n_items, 3), float64
            Rating, and the lower and upper end of its interval.
        """
        unit = validation.real(scale, "scale", above=0.0) / np.log(validation.real(base, "base", above=1.0))
        middle = validation.real(mean, "mean")
        return middle + unit * np.column_stack([self.strengths, self.intervals(confidence)])

    def to_frame(self, confidence: float = 0.95) -> Any:
        """Return a frame of pandas, strongest item first: strength, error, interval, rating and interval of ranks.

        Ranks are those of `ranks` with the rule "simultaneous".

        Returns
        -------
        pandas.DataFrame
            Columns item, strength, std_error, lower, upper, elo, best_rank and worst_rank.
        """
        pandas = import_extra("pandas", "pandas")
        lower, upper = self.intervals(confidence).T
        best, worst = self.ranks(confidence=confidence).T
        table = {"item": list(self.names), "strength": self.strengths, "std_error": self.standard_errors}
        table |= {"lower": lower, "upper": upper, "elo": self.elo()[:, 0], "best_rank": best, "worst_rank": worst}
        frame = pandas.DataFrame(table)
        return frame.iloc[np.argsort(-self.strengths, kind="stable")].reset_index(drop=True)

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
        reach = quantile(confidence, self.degrees) * errors
        columns = zip(values, errors, values - reach, values + reach, strict=True)
        texts = [tuple(f"{number:.4f}" for number in row) for row in columns]
        head = ("item", "strength", "std. error", f"{100 * confidence:g}% from", "to")
        return [head, *((label, *row) for label, row in zip(labels, texts, strict=True))]

    def plot(self, confidence: float = 0.95, ranks: validation.RankRule | None = None) -> Figure:
        """Draw the strengths with their intervals, the strongest item on top, and its ranks by a rule of `ranks`.

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
        labels = [str(self.names[i]) for i in order]
        if ranks is not None:
            places = self.ranks(ranks, confidence)[order].tolist()
            labels = [
                f"{label}  {a}" if a == b else f"{label}  {a}-{b}" for label, (a, b) in zip(labels, places, strict=True)
            ]
        axes.set_yticks(np.arange(order.size), labels)
        axes.set_ylim(-0.6, order.size - 0.4)
        axes.set_xlabel(f"strength, with intervals of {100 * confidence:g}%")
        axes.grid(axis="x", alpha=0.3)
        return figure
