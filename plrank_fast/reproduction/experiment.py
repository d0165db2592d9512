"""The experiment: its parts in turn within a budget of time, results kept after every cell, and the report."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import plrank_fast as plr
from plrank_fast import __version__
from plrank_fast._shared.extras import import_extra
from plrank_fast._shared.files import write_atomically
from plrank_fast.reproduction import cost, learning
from plrank_fast.reproduction.cells import Figures, Part
from plrank_fast.reproduction.results_file import ResultsFile

RESULTS, REPORT = "results.jsonl", "report.html"
# These are the parts' shares of the time; time that one does not use goes to those after it.
SHARES = {"cost": 0.25, "length": 0.07, "curves": 0.5, "settings": 0.08, "disparity": 0.1}

Observer = Callable[[Part, float], None]


@dataclass(frozen=True)
class Settings:
    """Settings that determine the cells; a continued run must have the same."""

    minutes: float
    parts: tuple[str, ...]  # names from `SHARES`
    sets: tuple[str, ...]  # profiles
    data: str | None  # folder with LETOR files, for training in place of generated data
    cutoffs: tuple[int, ...]


def plan(settings: Settings) -> list[Part]:
    """Set up the parts, with training runs as long as the budget allows."""
    shapes, cutoffs = list(settings.sets), list(settings.cutoffs)
    sets = [settings.data] if settings.data else shapes
    fewer = [name for name in sets if name != "istella"] or sets
    places = {
        "curves": (sets, cutoffs),
        "settings": (fewer, [learning.CUTOFF]),
        "disparity": (fewer, [learning.CUTOFF]),
    }
    budget = 60 * settings.minutes / sum(SHARES[name] for name in settings.parts)
    parts = []
    for name in settings.parts:
        if name == "cost":
            parts.append(cost.cost_part(shapes, cutoffs))
        elif name == "length":
            parts.append(cost.length_part())
        else:
            parts.append(learning.training_part(name, *places[name], budget * SHARES[name]))
    return parts


def run_parts(
    settings: Settings,
    parts: list[Part],
    results: ResultsFile,
    *,
    interrupted: Callable[[], bool] = lambda: False,
    observer: Observer = lambda part, share: None,
) -> bool:
    """Measure the cells that are left, and return whether no interrupt ended it.

    A part continues by whole rounds until its share of the budget is spent, time before a kill included. ``observer``
    is called after every cell with the part and the share of the budget that is spent, which may pass 1.
    """
    total = sum(SHARES[part.name] for part in parts)
    budget = 60 * settings.minutes
    allowed = 0.0
    for part in parts:
        allowed += budget * SHARES[part.name] / total
        for number in range(part.most_rounds):
            spent = sum(results.seconds(other.name) for other in parts[: parts.index(part) + 1])
            # A round begins if at least half of it fits.
            expected = results.seconds(part.name) / max(1, number)
            if number >= part.least_rounds and spent + 0.5 * expected > allowed:
                break
            for cell in part.cells:
                if results.has(part.name, number, cell):
                    continue
                if interrupted():
                    return False
                start = time.perf_counter()
                result = part.measure(cell, number)
                results.add(part.name, number, cell, result, time.perf_counter() - start)
                observer(part, sum(results.seconds(other.name) for other in parts) / max(budget, 1.0))
    return True


def write_report(folder: Path, settings: Settings, parts: list[Part], results: ResultsFile) -> None:
    """Write tables, pictures and the page from the cells measured so far."""
    from plrank_fast.reproduction.figures import all_figures, rendered
    from plrank_fast.reproduction.findings import all_findings
    from plrank_fast.reproduction.report import html_report
    from plrank_fast.reproduction.tables import all_tables

    tables = all_tables(results.cells)
    for name, table in tables.items():
        write_atomically(folder / f"{name}.csv", table.to_csv().encode())
    pictures = {}
    for name, figure in all_figures(results.cells).items():
        for kind in ("svg", "png"):
            pictures[name] = rendered(figure, kind)
            write_atomically(folder / f"{name}.{kind}", pictures[name])
    about = {**about_this_machine(), **asdict(settings)}
    page = html_report(all_findings(results.cells), pictures, tables, about, progress_of(parts, results))
    write_atomically(folder / REPORT, page.encode())


def progress_of(parts: list[Part], results: ResultsFile) -> list[Figures]:
    """Return the progress of each part."""
    progress = []
    for part in parts:
        done = len(results.of(part.name))
        rounds = -(-done // len(part.cells))
        progress.append({
            "title": part.title,
            "rounds": done // len(part.cells),
            "cells": done,
            "of": len(part.cells) * max(part.least_rounds, rounds),
            "seconds": results.seconds(part.name),
        })  # fmt: skip
    return progress


def about_this_machine() -> dict[str, Any]:
    """Return versions, processor and build."""
    build = plr.build_info()
    return {
        "plrank-fast": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": import_extra("torch", "train").__version__,
        "matplotlib": import_extra("matplotlib", "train").__version__,
        "machine": f"{_processor()}, {os.cpu_count()} processors, {platform.system()} {platform.machine()}",
        "build": ", ".join(f"{name} {value}" for name, value in build.items()),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown processor"
