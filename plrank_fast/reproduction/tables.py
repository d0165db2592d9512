"""The figures as tables: rows of plain values by heading, where None is an empty cell."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import numpy as np

from plrank_fast.benchmarks.epoch_cost import CUTOFFS
from plrank_fast.reproduction import published
from plrank_fast.reproduction.results import Figures
from plrank_fast.reproduction.summary import costs, curves, network_seconds, over_seeds


def to_csv(table: Sequence[Figures]) -> str:
    """Format a table as comma-separated values, with the headings."""
    text = io.StringIO()
    writer = csv.DictWriter(text, table[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue()


def minutes_per_epoch(cells: Sequence[Figures]) -> list[Figures]:
    """Make Table 2: a row for each set, method, N and K; minutes include the network's passes, which have a column."""
    network = network_seconds(cells)
    rows = []
    for (shape, method), measured in costs(cells, "cost").items():
        paper = dict(zip(CUTOFFS, published.published_minutes(method, shape), strict=False))
        passes = network.get(shape, 0.0)
        for cutoff, own, in_numpy, error in measured.by_column():
            rows.append({
                "set": shape,
                "method": method.title,
                "K": cutoff,
                "minutes": (own.value + passes) / 60,
                "minutes_least": (own.low + passes) / 60,
                "minutes_most": (own.high + passes) / 60,
                "gradient_seconds": own.value,
                "network_seconds": passes,
                "numpy_minutes": None if in_numpy is None else (in_numpy + passes) / 60,
                "paper_minutes": paper.get(cutoff),
                "times_faster_than_numpy": None if in_numpy is None else in_numpy / own.value,
                "relative_error": error,
            })  # fmt: skip
    return rows


def seconds_by_length(cells: Sequence[Figures]) -> list[Figures]:
    """Make the table of the second half of Figure 1."""
    return [
        {
            "method": method.title,
            "D": length,
            "seconds": own.value,
            "seconds_least": own.low,
            "seconds_most": own.high,
            "numpy_seconds": in_numpy,
        }
        for (_, method), measured in costs(cells, "length").items()
        for length, own, in_numpy, _ in measured.by_column()
    ]


def learning_curves(cells: Sequence[Figures], part: str, *metrics: str) -> list[Figures]:
    """Make the learning curves: a row for each set, K, method, settings and time, with half of the interval."""
    rows = []
    for metric in metrics:
        for (name, cutoff, method, preset), curve in curves(cells, part, metric).items():
            run = {"set": name, "K": cutoff, "method": method.title, "settings": preset, "metric": metric}
            for seconds, values in zip(curve.seconds, curve.values.T, strict=True):
                mean = over_seeds(values)
                error = mean.high - mean.value if np.isfinite(mean.high) else None
                figures = {"seconds": seconds, "mean": mean.value, "half_width_95": error, "seeds": len(values)}
                rows.append(run | figures)
    return rows


def all_tables(cells: Sequence[Figures]) -> dict[str, list[Figures]]:
    """Return every table that has rows, by the name of its file."""
    ndcg = ("ndcg_dataset", "expected_ndcg_dataset")
    tables = {
        "table_2": minutes_per_epoch(cells),
        "figure_1_list_length": seconds_by_length(cells),
        "figure_2": learning_curves(cells, "curves", *ndcg),
        "settings": learning_curves(cells, "settings", *ndcg),
        "disparity": learning_curves(cells, "disparity", "disparity"),
    }
    return {name: table for name, table in tables.items() if table}
