"""The pictures of the report, drawn with matplotlib."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from plrank_fast._shared.extras import import_extra
from plrank_fast.reproduction import published
from plrank_fast.reproduction.cells import Figures
from plrank_fast.reproduction.methods import Method
from plrank_fast.reproduction.summary import Curves, costs, curves
from plrank_fast.validation import FloatArray

# Each estimator has a colour (distinguishable for the colour-blind), and N = 1000 a dash.
COLORS = {
    "stochastic_rank": "#D55E00",
    "pl_rank_2": "#E69F00",
    "pl_rank_3": "#0072B2",
    "pl_rank_1": "#56B4E9",
    "pl_rank_cmc": "#009E73",
    "pl_rank_exact": "#111111",
    "policy_gradient": "#CC79A7",
    "placement_policy_gradient": "#8C6BB1",
}
NAMES = {"yahoo": "Yahoo", "mslr": "MSLR", "istella": "Istella"}


def all_figures(cells: Sequence[Figures]) -> dict[str, Any]:
    """Draw every figure for which there are cells, by the name of its file."""
    parts: dict[str, list[Figures]] = {}
    for cell in cells:
        parts.setdefault(cell["part"], []).append(cell)
    drawn: dict[str, Any] = {}
    if any("method" in cell["cell"] for cell in parts.get("cost", [])):
        drawn["figure_1"] = cost_against_cutoff(parts["cost"])
        drawn["error_against_cost"] = error_against_cost(parts["cost"])
    if "length" in parts:
        drawn["figure_1_list_length"] = cost_against_length(parts["length"])
    if "curves" in parts:
        drawn["figure_2"] = ndcg_grid(parts["curves"], "ndcg_dataset", "NDCG@K")
        drawn["figure_2_expected"] = ndcg_grid(parts["curves"], "expected_ndcg_dataset", "expected NDCG@K")
    if "settings" in parts:
        drawn["settings"] = settings_panels(parts["settings"])
    if "disparity" in parts:
        drawn["disparity"] = disparity_panels(parts["disparity"])
    return drawn


def rendered(figure: Any, kind: str) -> bytes:
    """Return the contents of a picture's file, "png" or "svg"; equal figures give equal bytes."""
    picture = io.BytesIO()
    matplotlib = import_extra("matplotlib", "train")
    with matplotlib.rc_context({"svg.hashsalt": "plrank-fast"}):
        figure.savefig(picture, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    return picture.getvalue()


def cost_against_cutoff(cells: Sequence[Figures]) -> Any:
    """Draw Figure 1: a panel per set, ours above and NumPy's with the paper's figures below."""
    measured = costs(cells, "cutoffs")
    shapes = list(dict.fromkeys(shape for shape, _ in measured))
    figure, panels = _panels(2, len(shapes), 3.4, 3.3, sharex=True)
    figure.set_layout_engine("constrained", h_pad=0.06)
    for column, shape in enumerate(shapes):
        for (of, method), row in measured.items():
            if of != shape:
                continue
            _band(panels[0, column], row.columns, row.seconds, method)
            if row.numpy_seconds is not None:
                _band(panels[1, column], row.columns, row.numpy_seconds, method)
            paper = published.MINUTES.get((shape, method.estimator, method.n_samples))
            if paper is not None:
                panels[1, column].plot(
                    published.CUTOFFS, 60 * np.array(paper), color=COLORS[method.estimator], linestyle=":", alpha=0.6,
                    linewidth=1, marker="o" if method.n_samples == published.SAMPLES[0] else "s", markersize=2.5,
                )  # fmt: skip
        panels[0, column].set_title(f"{_name(shape)}: this library")
        panels[1, column].set_title(f"{_name(shape)}: NumPy and paper")
        for panel in panels[:, column]:
            panel.set(xscale="log", yscale="log")
            _ticks(panel, next(row.columns for (of, _), row in measured.items() if of == shape))
        panels[1, column].set_xlabel("cutoff K")
        low = min(panels[row, column].get_ylim()[0] for row in (0, 1))
        high = max(panels[row, column].get_ylim()[1] for row in (0, 1))
        for panel in panels[:, column]:
            panel.set_ylim(low, high)  # one scale, so that a column shows what the library gains
    for panel in panels[:, 0]:
        panel.set_ylabel("seconds per epoch")
    _legend(figure, panels)
    return figure


def cost_against_length(cells: Sequence[Figures]) -> Any:
    """Draw the second half of Figure 1: cost against the list length at one cutoff."""
    measured = costs(cells, "lengths")
    figure, panels = _panels(1, 2, 4.6, 3.6, sharey=True)
    for (_, method), row in measured.items():
        _band(panels[0, 0], row.columns, 1e6 * row.seconds, method)
        if row.numpy_seconds is not None:
            _band(panels[0, 1], row.columns, 1e6 * row.numpy_seconds, method)
    cutoff = cells[0]["cell"]["cutoff"]
    for panel, title in zip(panels[0], ("this library", "NumPy"), strict=True):
        panel.set(xscale="log", yscale="log", xlabel="list length D", title=f"{title}, K = {cutoff}")
        _ticks(panel, cells[0]["cell"]["lengths"])
    panels[0, 0].set_ylabel("microseconds per query")
    _legend(figure, panels)
    return figure


def error_against_cost(cells: Sequence[Figures]) -> Any:
    """Draw the relative error of a gradient against its cost, a point for each cutoff."""
    measured = {key: row for key, row in costs(cells, "cutoffs").items() if row.error is not None}
    shapes = list(dict.fromkeys(shape for shape, _ in measured))
    figure, panels = _panels(1, len(shapes), 3.4, 3.3, sharey=True)
    for column, shape in enumerate(shapes):
        panel = panels[0, column]
        for (of, method), row in measured.items():
            if of != shape or row.error is None:
                continue
            error = np.median(row.error, axis=0)
            seconds = np.median(row.seconds, axis=0)
            panel.plot(seconds, error, **_style(method))
            panel.scatter(seconds, error, s=6 + 40 * np.arange(1, len(seconds) + 1) / len(seconds), **_marker(method))
        panel.set(xscale="log", yscale="log", xlabel="seconds per epoch", title=_name(shape))
        panel.grid(alpha=0.25)
    panels[0, 0].set_ylabel("relative error of a gradient")
    _legend(figure, panels)
    return figure


def ndcg_grid(cells: Sequence[Figures], metric: str, label: str) -> Any:
    """Draw Figure 2: a row per cutoff, a column per set; bands are one standard error over the seeds."""
    measured = curves(cells, metric)
    sets = list(dict.fromkeys(key[0] for key in measured))
    cutoffs = sorted({key[1] for key in measured})
    figure, panels = _panels(len(cutoffs), len(sets), 3.6, 2.5)
    for row, cutoff in enumerate(cutoffs):
        for column, name in enumerate(sets):
            panel = panels[row, column]
            shown = {key[2]: curve for key, curve in measured.items() if key[:2] == (name, cutoff)}
            _draw_curves(panel, [(curve, _style(method)) for method, curve in shown.items()])
            _focus(panel, [curve.values for curve in shown.values()])
            panel.set_title(f"{_name(name)}, K = {cutoff}")
            if column == 0:
                panel.set_ylabel(label)
            if row == len(cutoffs) - 1:
                panel.set_xlabel("seconds of training")
    _legend(figure, panels)
    return figure


def settings_panels(cells: Sequence[Figures]) -> Any:
    """Draw the methods with the default settings and with those of the published code."""
    measured = curves(cells, "ndcg_dataset")
    sets = list(dict.fromkeys(key[0] for key in measured))
    figure, panels = _panels(1, len(sets), 3.6, 3.2)
    for column, name in enumerate(sets):
        panel, shown = panels[0, column], []
        for (of, _, method, preset), curve in measured.items():
            if of == name:
                style = _style(method)
                style["label"] = f"{style['label']}, {preset}"
                style["linestyle"] = "-" if preset == "default" else ":"
                style["alpha"] = 0.5 if method.n_samples == published.SAMPLES[1] else 1.0
                shown.append((curve, style))
        _draw_curves(panel, shown)
        panel.set(title=_name(name), xlabel="seconds of training")
    panels[0, 0].set_ylabel(f"NDCG@{cells[0]['cell']['cutoff']}")
    _legend(figure, panels)
    return figure


def disparity_panels(cells: Sequence[Figures]) -> Any:
    """Draw the remaining disparity of exposure, as a share of the untrained network's."""
    measured = curves(cells, "disparity")
    sets = list(dict.fromkeys(key[0] for key in measured))
    figure, panels = _panels(1, len(sets), 4.4, 3.4)
    for column, name in enumerate(sets):
        panel = panels[0, column]
        shares = {
            key[2]: Curves(curve.seconds, curve.values / curve.values[:, :1], curve.epochs)
            for key, curve in measured.items()
            if key[0] == name
        }
        _draw_curves(panel, [(curve, _style(method)) for method, curve in shares.items()])
        panel.set(title=_name(name), xlabel="seconds of training")
    panels[0, 0].set_ylabel("squared disparity, share of the untrained")
    _legend(figure, panels)
    return figure


def _panels(rows: int, columns: int, width: float, height: float, **shared: bool) -> tuple[Any, Any]:
    # A Figure without pyplot needs no window system and changes no global state.
    figure = import_extra("matplotlib.figure", "train").Figure(
        figsize=(max(width * columns, 6.0), height * rows + 0.6), layout="constrained"
    )
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def _name(name: str) -> str:
    return NAMES.get(name, name.rstrip("/").rpartition("/")[2])


def _style(method: Method) -> dict[str, Any]:
    return {
        "color": COLORS[method.estimator],
        "linestyle": "--" if method.n_samples == published.SAMPLES[1] else "-",
        "linewidth": 1.6,
        "label": method.title,
    }


def _marker(method: Method) -> dict[str, Any]:
    return {"color": COLORS[method.estimator], "marker": "s" if method.n_samples == published.SAMPLES[1] else "o"}


def _band(panel: Any, columns: Sequence[int], values: FloatArray, method: Method) -> None:
    """Draw the median of the rounds, with minimum and maximum as a band."""
    panel.plot(columns, np.median(values, axis=0), marker=".", **_style(method))
    panel.fill_between(
        columns, values.min(axis=0), values.max(axis=0), color=COLORS[method.estimator], alpha=0.15, lw=0
    )


def _draw_curves(panel: Any, shown: Sequence[tuple[Curves, dict[str, Any]]]) -> None:
    """Draw means of the seeds with bands of one standard error; the left edge is the untrained network.

    Each seed has its own data, on which all methods do better or worse together; the bands exclude this variation.
    """
    seeds = min(len(curve.values) for curve, _ in shown)
    level = np.mean([curve.values[:seeds] for curve, _ in shown], axis=0)
    for curve, style in shown:
        seconds = np.concatenate([curve.seconds[1:2] * 0.7, curve.seconds[1:]])
        mean = curve.values[:seeds].mean(axis=0)
        panel.plot(seconds, mean, **style)
        if seeds > 1:
            error = (curve.values[:seeds] - level).std(axis=0, ddof=1) / np.sqrt(seeds)
            panel.fill_between(seconds, mean - error, mean + error, color=style["color"], alpha=0.12, lw=0)
    end = shown[0][0].seconds[-1]
    panel.set_xscale("log")
    _ticks(panel, [float(f"{end * share:.2g}") for share in (0.05, 0.1, 0.2, 0.5, 1.0)])


def _focus(panel: Any, values: list[FloatArray]) -> None:
    """Limit the axis to the range in which methods differ: from the worst at the end of the first third upwards."""
    means = np.array([value.mean(axis=0) for value in values])
    low, high = float(means[:, means.shape[1] // 3 :].min()), float(means.max())
    margin = max(0.15 * (high - low), 0.005)
    panel.set_ylim(low - margin, high + margin)


def _ticks(panel: Any, places: Sequence[float]) -> None:
    panel.set_xticks(list(places), labels=[f"{place:g}" for place in places])
    panel.minorticks_off()
    panel.grid(alpha=0.25)


def _legend(figure: Any, panels: Any) -> None:
    """Draw one legend under all panels."""
    handles: dict[str, Any] = {}
    for panel in np.ravel(panels):
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    columns = max(2, int(figure.get_size_inches()[0] / 2.1))
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=columns, frameon=False, fontsize="small"
    )
