"""Arrays of the measured cells, with the rounds of a cell as rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from plrank_fast.benchmarks.epoch_cost import Method
from plrank_fast.validation import FloatArray
from reproduction.published import method_of
from reproduction.results import Figures

GRID = 25  # times at which curves of different seeds are compared
# 97.5 % quantiles of Student's t for 1, 2, ... degrees of freedom, for few seeds.
STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14)


@dataclass(frozen=True)
class Costs:
    """Seconds of a method, a row for each round and a column for each cutoff or list length."""

    columns: tuple[int, ...]
    seconds: FloatArray
    numpy_seconds: FloatArray | None
    error: FloatArray | None


@dataclass(frozen=True)
class Curves:
    """Values of a metric, a row for each seed and a column for each of ``seconds``."""

    seconds: FloatArray
    values: FloatArray


def costs(cells: Iterable[Figures], part: str) -> dict[tuple[str, Method], Costs]:
    """Gather the cells of the part "cost" or "length" by set and method."""
    rows: dict[tuple[str, Method], list[Figures]] = defaultdict(list)
    for entry in cells:
        if entry["part"] == part and "method" in entry["cell"]:
            rows[entry["cell"].get("set", ""), method_of(entry["cell"])].append(entry)
    return {
        key: Costs(
            tuple(entries[0]["cell"]["cutoffs" if part == "cost" else "lengths"]),
            _stack(entries, "seconds"),
            _stack(entries, "numpy_seconds") if entries[0]["result"]["numpy_seconds"] else None,
            _stack(entries, "error") if "error" in entries[0]["result"] else None,
        )
        for key, entries in rows.items()
    }


def network_seconds(cells: Iterable[Figures]) -> dict[str, float]:
    """Return the seconds of the network's passes of an epoch by set, in the fastest round."""
    result: dict[str, float] = {}
    for entry in cells:
        if "network" in entry["cell"]:
            name, seconds = entry["cell"]["set"], entry["result"]["network_seconds"]
            result[name] = min(seconds, result.get(name, np.inf))
    return result


def curves(cells: Iterable[Figures], part: str, metric: str) -> dict[tuple[str, int, Method, str], Curves]:
    """Gather a part's training runs by set, cutoff, method and preset; a value holds until the next evaluation."""
    runs: dict[tuple[str, int, Method, str], list[Figures]] = defaultdict(list)
    for entry in cells:
        if entry["part"] == part:
            cell = entry["cell"]
            runs[cell["set"], cell["cutoff"], method_of(cell), cell.get("preset", "default")].append(entry)
    result = {}
    for key, entries in runs.items():
        limit = entries[0]["cell"]["train_seconds"]
        grid = limit * np.concatenate([[0.0], np.geomspace(0.05, 1.0, GRID - 1)])
        values = []
        for run in (entry["result"] for entry in entries):
            last = np.searchsorted(run["seconds"], grid, side="right") - 1
            last[-1] = len(run["seconds"]) - 1  # a run exceeds its end by up to a step
            values.append(np.asarray(run[metric], dtype=np.float64)[last])
        result[key] = Curves(grid, np.array(values))
    return result


def _stack(entries: list[Figures], name: str) -> FloatArray:
    return np.array([entry["result"][name] for entry in entries], dtype=np.float64)


@dataclass(frozen=True)
class Estimate:
    """A figure with an interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if not np.isfinite(self.low):
            return f"{self.value:.3g} (one seed, no interval)"
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


def over_rounds(values: Any, middle: Callable[[FloatArray], Any] = np.median) -> Estimate:
    """Return middle, minimum and maximum of the rounds: with disturbance by other programs, no standard error."""
    array = np.asarray(values, dtype=np.float64)
    return Estimate(float(middle(array)), float(array.min()), float(array.max()))


def over_seeds(values: Any) -> Estimate:
    """Return the mean of the seeds with its 95 % interval by Student's t, which is unknown for a single seed."""
    array = np.asarray(values, dtype=np.float64)
    if array.size < 2:
        return Estimate(float(array.mean()), -np.inf, np.inf)
    quantile = STUDENT[min(array.size - 1, len(STUDENT)) - 1]
    error = quantile * array.std(ddof=1) / np.sqrt(array.size)
    return Estimate(float(array.mean()), float(array.mean() - error), float(array.mean() + error))
