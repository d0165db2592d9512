"""The figures as tables: CSV for programs, rows for the report."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plrank_fast.reproduction import published
from plrank_fast.reproduction.cells import Figures
from plrank_fast.reproduction.summary import costs, curves, network_seconds, over_rounds, over_seeds


@dataclass(frozen=True)
class Table:
    """A heading for each column, and rows of plain values; None is an empty cell."""

    headings: tuple[str, ...]
    rows: list[tuple[object, ...]]

    def to_csv(self) -> str:
        """Format a table as comma-separated values, with the headings."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.headings)
        writer.writerows(self.rows)
        return text.getvalue()


def minutes_per_epoch(cells: Sequence[Figures]) -> Table:
    """Make Table 2: a row for each set, method, N and K; minutes include the network's passes, which have a column."""
    cells = [cell for cell in cells if cell["part"] == "cost"]
    network = network_seconds(cells)
    rows: list[tuple[object, ...]] = []
    for (shape, method), row in costs(cells, "cutoffs").items():
        paper = published.MINUTES.get((shape, method.estimator, method.n_samples))
        passes = network.get(shape, 0.0)
        for i, cutoff in enumerate(row.columns):
            own = over_rounds(row.seconds[:, i])
            twin = None if row.numpy_seconds is None else over_rounds(row.numpy_seconds[:, i]).value
            at = published.CUTOFFS.index(cutoff) if cutoff in published.CUTOFFS else None
            rows.append((
                *(shape, method.title, cutoff, (own.value + passes) / 60, (own.low + passes) / 60),
                *((own.high + passes) / 60, own.value, passes),
                None if twin is None else (twin + passes) / 60,
                None if paper is None or at is None else paper[at],
                None if twin is None else twin / own.value,
                None if row.error is None else float(np.median(row.error[:, i])),
            ))  # fmt: skip
    return Table(
        ("set", "method", "K", "minutes", "minutes_least", "minutes_most", "gradient_seconds", "network_seconds",
         "numpy_minutes", "paper_minutes", "times_faster_than_numpy", "relative_error"), rows
    )  # fmt: skip


def seconds_by_length(cells: Sequence[Figures]) -> Table:
    """Make the table of the second half of Figure 1."""
    rows: list[tuple[object, ...]] = []
    for (_, method), row in costs([cell for cell in cells if cell["part"] == "length"], "lengths").items():
        for i, length in enumerate(row.columns):
            own = over_rounds(row.seconds[:, i])
            twin = None if row.numpy_seconds is None else over_rounds(row.numpy_seconds[:, i]).value
            rows.append((method.title, length, own.value, own.low, own.high, twin))
    return Table(("method", "D", "seconds", "seconds_least", "seconds_most", "numpy_seconds"), rows)


def learning_curves(cells: Sequence[Figures], part: str, metrics: Sequence[str]) -> Table:
    """Make the learning curves: a row for each set, K, method, settings and time, with half of the interval."""
    cells = [cell for cell in cells if cell["part"] == part]
    rows: list[tuple[object, ...]] = []
    for metric in metrics:
        for (name, cutoff, method, preset), curve in curves(cells, metric).items():
            for i, seconds in enumerate(curve.seconds):
                value = over_seeds(curve.values[:, i])
                error = value.high - value.value if np.isfinite(value.high) else None
                rows.append(
                    (name, cutoff, method.title, preset, metric, seconds, value.value, error, len(curve.values))
                )
    return Table(("set", "K", "method", "settings", "metric", "seconds", "mean", "half_width_95", "seeds"), rows)


def all_tables(cells: Sequence[Figures]) -> dict[str, Table]:
    """Return every table that has rows, by the name of its file."""
    ndcg = ("ndcg_dataset", "expected_ndcg_dataset")
    tables = {
        "table_2": minutes_per_epoch(cells),
        "figure_1_list_length": seconds_by_length(cells),
        "figure_2": learning_curves(cells, "curves", ndcg),
        "settings": learning_curves(cells, "settings", ndcg),
        "disparity": learning_curves(cells, "disparity", ("disparity",)),
    }
    return {name: table for name, table in tables.items() if table.rows}
