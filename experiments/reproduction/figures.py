"""The pictures of the report, drawn with matplotlib, and their captions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plrank_fast._shared.pictures import add_legend, new_panels, set_ticks
from plrank_fast.benchmarks.epoch_cost import CUTOFFS, SAMPLES, Method
from plrank_fast.training.config import describe_preset
from plrank_fast.validation import FloatArray
from reproduction import published
from reproduction.results import Figures
from reproduction.summary import Curves, costs, curves

NAMES = {"yahoo": "Yahoo", "mslr": "MSLR", "istella": "Istella"}


def cost_panels(cells: Sequence[Figures], part: str, xlabel: str, ylabel: str) -> Any:
    """Draw the cost against K or D: a column per set, ours above and NumPy's with the paper's figures below."""
    measured = costs(cells, part)
    shapes = list(dict.fromkeys(shape for shape, _ in measured))
    figure, panels = new_panels(2, len(shapes), 3.4, 3.3, sharex="col", sharey="col")  # one scale shows the gain
    figure.set_layout_engine("constrained", h_pad=0.06)
    for (above, below), shape in zip(panels.T, shapes, strict=True):
        rows = {method: row for (of, method), row in measured.items() if of == shape}
        for method, row in rows.items():
            _band(above, row.columns, row.seconds, method)
            if row.numpy_seconds is not None:
                _band(below, row.columns, row.numpy_seconds, method)
            if paper := published.published_minutes(method, shape):
                style = {**_style(method), "linestyle": ":", "linewidth": 1, "label": None}
                below.plot(CUTOFFS, 60 * np.array(paper), alpha=0.6, markersize=2.5, **style)
        for panel, source in ((above, "this library"), (below, "NumPy and paper" if shape else "NumPy")):
            panel.set(xscale="log", yscale="log", title=f"{_name(shape)}: {source}".lstrip(": "))
            set_ticks(panel, next(iter(rows.values())).columns)
        below.set_xlabel(xlabel)
    for panel in panels[:, 0]:
        panel.set_ylabel(ylabel)
    add_legend(figure, panels)
    return figure


def training_curves(
    cells: Sequence[Figures], part: str, metric: str, label: str = "NDCG@K", relative: bool = False
) -> Any:
    """Draw Figure 2: a row per cutoff, a column per set; ``relative`` to the untrained network's value."""
    measured = curves(cells, part, metric)
    if relative:
        measured = {key: replace(row, values=row.values / row.values[:, :1]) for key, row in measured.items()}
    sets, cutoffs = list(dict.fromkeys(key[0] for key in measured)), sorted({key[1] for key in measured})
    figure, panels = new_panels(len(cutoffs), len(sets), 3.6, 2.5 if len(cutoffs) > 1 else 3.3)
    for row, cutoff in zip(panels, cutoffs, strict=True):
        for panel, name in zip(row, sets, strict=True):
            shown = [
                (curve, _style(method, preset))
                for (in_set, at, method, preset), curve in measured.items()
                if (in_set, at) == (name, cutoff)
            ]
            if shown:
                _draw_curves(panel, shown)
            if shown and not relative:
                _focus(panel, [curve.values for curve, _ in shown])
            panel.set_title(f"{_name(name)}, K = {cutoff}" + ("" if shown else ": not measured"))
        row[0].set_ylabel(label)
    for panel in panels[-1]:
        panel.set_xlabel("seconds of training")
    add_legend(figure, panels)
    return figure


def _name(name: str) -> str:
    return NAMES.get(name, name.rstrip("/").rpartition("/")[2])


def _style(method: Method, preset: str = "default") -> dict[str, Any]:
    many = method.n_samples == SAMPLES[1]
    return {
        "color": method.color,
        "linestyle": ("--" if many else "-") if preset == "default" else ("-." if many else ":"),
        "marker": "s" if many else "o",
        "linewidth": 1.6,
        "label": method.title if preset == "default" else f"{method.title}, {preset}",
    }


def _band(panel: Any, columns: Sequence[int], values: FloatArray, method: Method) -> None:
    """Draw the median of the rounds, with minimum and maximum as a band."""
    style = _style(method)
    panel.plot(columns, np.median(values, axis=0), markersize=3, **style)
    panel.fill_between(columns, values.min(axis=0), values.max(axis=0), color=style["color"], alpha=0.15, lw=0)


def _draw_curves(panel: Any, shown: Sequence[tuple[Curves, dict[str, Any]]]) -> None:
    """Draw means of the seeds with bands of one standard error; the left edge is the untrained network.

    Each seed has its own data, on which all methods do better or worse together; the bands exclude this variation.
    """
    seeds = min(len(curve.values) for curve, _ in shown)
    level = np.mean([curve.values[:seeds] for curve, _ in shown], axis=0)
    for curve, style in shown:
        seconds = np.concatenate([curve.seconds[1:2] * 0.7, curve.seconds[1:]])
        mean = curve.values[:seeds].mean(axis=0)
        panel.plot(seconds, mean, **{**style, "marker": None})
        if seeds > 1:
            error = (curve.values[:seeds] - level).std(axis=0, ddof=1) / np.sqrt(seeds)
            panel.fill_between(seconds, mean - error, mean + error, color=style["color"], alpha=0.12, lw=0)
    end = shown[0][0].seconds[-1]
    panel.set_xscale("log")
    set_ticks(panel, [float(f"{end * share:.2g}") for share in (0.05, 0.1, 0.2, 0.5, 1.0)])


def _focus(panel: Any, values: list[FloatArray]) -> None:
    """Limit the axis to the range in which methods differ: from the worst at the end of the first third upwards."""
    means = np.array([value.mean(axis=0) for value in values])
    low, high = float(means[:, means.shape[1] // 3 :].min()), float(means.max())
    margin = max(0.15 * (high - low), 0.005)
    panel.set_ylim(low - margin, high + margin)


@dataclass(frozen=True)
class Picture:
    """A figure of the report, with the arguments of the function that draws it, which begin with the part."""

    draw: Callable[..., Any]
    arguments: tuple[Any, ...]
    title: str
    caption: str


FIGURES = {  # by the names of their files
    "figure_1": Picture(
        cost_panels,
        ("cost", "cutoff K", "seconds per epoch"),
        "Cost of the gradients of an epoch against the cutoff K",
        "Median of the rounds; the band runs from the least to the greatest. Dashed: N = 1000. Above this library, "
        "below NumPy on the same machine and, thin and dotted, the minutes that the paper prints "
        f"({published.HARDWARE}; they include the network's passes). Both rows of a column have one scale.",
    ),
    "figure_1_list_length": Picture(
        cost_panels,
        ("length", "list length D", "seconds per query"),
        "Cost against the length of the list",
        "One query, one cutoff. NumPy's estimators touch every document for each ranking; here PL-Rank-3 does not.",
    ),
    "figure_2": Picture(
        training_curves,
        ("curves", "ndcg_dataset"),
        "Test NDCG@K of the deterministic ranking against training seconds",
        "Normalised by data set. Means of the seeds, each with data of its own, and one standard error either way, "
        "without what all methods of a seed share. The statements above use 95 % intervals of differences by seed.",
    ),
    "figure_2_expected": Picture(
        training_curves,
        ("curves", "expected_ndcg_dataset", "expected NDCG@K"),
        "Expected test NDCG@K against training seconds",
        "The methods optimise it: the mean over the rankings of the policy.",
    ),
    "settings": Picture(
        training_curves,
        ("settings", "ndcg_dataset"),
        "The published code's settings beside ours",
        f"Solid and dashed: the default preset; with dots: sigir22, {describe_preset('sigir22')}. "
        "Where the lines with dots lie together, a difference between papers is one of settings and not of estimators.",
    ),
    "disparity": Picture(
        training_curves,
        ("disparity", "disparity", "squared disparity, share of the untrained", True),
        "Remaining disparity of exposure (the experiment of SIGIR 2021)",
        "Mean over the test queries of the squared disparity of expected exposure, as a share of that of the "
        "untrained network.",
    ),
}
