"""The command ``bench``: the cost of an epoch of gradients against the cutoff K, beside that of NumPy.

The seconds are those of one thread for an epoch over a data set of a public set's shape, measured on a sample of
queries with its list lengths and scaled up. Every ratio is taken within one run: our call and that of the reference
implementation are timed in turn, and the fastest of each counts.
"""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import plrank_fast as plr
from plrank_fast._shared.extras import import_extra
from plrank_fast._shared.files import refuse_overwriting, write_atomically
from plrank_fast._shared.interruption import EXIT_STATUS
from plrank_fast._shared.methods import ESTIMATORS
from plrank_fast._shared.progress_bar import make_bar
from plrank_fast.commands import claims
from plrank_fast.commands.options import some_path
from plrank_fast.commands.timing import ONE_ANSWER, seconds_per_epoch
from plrank_fast.data import PROFILES
from plrank_fast.reproduction.workloads import Workload
from plrank_fast.validation import count, real

METHODS = ("pl_rank_3", "pl_rank_cmc", "pl_rank_exact")
LAYOUT = "{n_fmt}/{total_fmt} cells |{bar}| {elapsed}<{remaining}{postfix}"
CUTOFFS, SAMPLES = (5, 10, 25, 50, 100), (100, 1000)


@dataclass(frozen=True)
class Cell:
    """One measurement: seconds per epoch of a method, and of NumPy's PL-Rank-3 with the same N and K."""

    shape: str
    method: str
    n_samples: int
    cutoff: int
    seconds: float
    numpy_seconds: float

    @property
    def ratio(self) -> float:
        """The speed-up over NumPy's PL-Rank-3."""
        return self.numpy_seconds / self.seconds


def plan(arguments: argparse.Namespace) -> list[tuple[str, str, int, int]]:
    """List shape, method, N and K of every cell that the arguments ask for."""
    return [
        (shape, method, n_samples, cutoff)
        for shape in arguments.shapes
        for method in arguments.methods
        for n_samples in ([max(arguments.samples)] if method in ONE_ANSWER else arguments.samples)
        for cutoff in arguments.cutoffs
    ]


def cells(arguments: argparse.Namespace) -> Iterator[Cell]:
    """Measure every cell of the plan."""
    workload: dict[str, Workload] = {}
    for shape, method, n_samples, cutoff in plan(arguments):
        if shape not in workload:  # one at a time: they can be large
            workload = {shape: Workload.of_profile(shape, arguments.queries, arguments.spread)}
        timed = seconds_per_epoch(method, n_samples, cutoff, workload[shape], arguments.seconds)
        yield Cell(shape, method, n_samples, cutoff, *timed)


def table(measured: list[Cell], cutoffs: list[int]) -> str:
    """Lay out seconds per epoch and, in brackets, the speed-up over NumPy's PL-Rank-3, with a column per cutoff."""
    lines = []
    for shape in dict.fromkeys(cell.shape for cell in measured):
        lines += ["", f"{shape}, seconds per epoch on one thread (times faster than NumPy's PL-Rank-3)"]
        lines.append(f"{'method':<16}{'N':>6}" + "".join(f"{f'K = {cutoff}':>18}" for cutoff in cutoffs))
        rows = [cell for cell in measured if cell.shape == shape]
        for method, n_samples in dict.fromkeys((cell.method, cell.n_samples) for cell in rows):
            row = {cell.cutoff: cell for cell in rows if (cell.method, cell.n_samples) == (method, n_samples)}
            shown = [f"{row[k].seconds:.3g} ({row[k].ratio:.3g})" if k in row else "" for k in cutoffs]
            taken = ONE_ANSWER.get(method, n_samples)
            lines.append(f"{method:<16}{taken or '-':>6}" + "".join(f"{text:>18}" for text in shown))
        for n_samples in sorted({cell.n_samples for cell in rows}):
            in_numpy = {cell.cutoff: cell.numpy_seconds for cell in rows if cell.n_samples == n_samples}
            shown = [f"{in_numpy[k]:.3g}" if k in in_numpy else "" for k in cutoffs]
            lines.append(f"{'NumPy PL-Rank-3':<16}{n_samples:>6}" + "".join(f"{text:>18}" for text in shown))
    return "\n".join(lines[1:])


def draw(measured: list[Cell]) -> bytes:
    """Draw cost against K with a panel per shape, and return the content of the PNG file."""
    figure_module = import_extra("matplotlib.figure", "bench")
    shapes = list(dict.fromkeys(cell.shape for cell in measured))
    figure = figure_module.Figure(figsize=(5 * len(shapes), 4.2), layout="constrained")
    panels = figure.subplots(1, len(shapes), squeeze=False, sharey=True)[0]
    for panel, shape in zip(panels, shapes, strict=True):
        rows = [cell for cell in measured if cell.shape == shape]
        for method, n_samples in dict.fromkeys((cell.method, cell.n_samples) for cell in rows):
            line = [cell for cell in rows if (cell.method, cell.n_samples) == (method, n_samples)]
            label = method if method in ONE_ANSWER else f"{method}, N = {n_samples}"
            panel.plot([c.cutoff for c in line], [c.seconds for c in line], marker=".", label=label)
        for n_samples, style in zip(sorted({cell.n_samples for cell in rows}), (":", "--", "-."), strict=False):
            in_numpy = {cell.cutoff: cell.numpy_seconds for cell in rows if cell.n_samples == n_samples}
            points = zip(*sorted(in_numpy.items()), strict=True)
            panel.plot(*points, "k" + style, label=f"NumPy PL-Rank-3, N = {n_samples}")
        panel.set(xscale="log", yscale="log", xlabel="cutoff K", title=shape)
        panel.set_xticks(sorted({c.cutoff for c in rows}), labels=[str(k) for k in sorted({c.cutoff for c in rows})])
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("seconds per epoch, one thread")
    panels[-1].legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    return picture.getvalue()


def add_bench(commands: Any) -> None:
    """Add the command ``bench`` to the subparsers of the command line."""
    parser = commands.add_parser(
        "bench",
        help="measure the cost of an epoch of gradients against the cutoff, and compare it with NumPy",
        description="Time sampling and gradients on one thread, and print seconds per epoch and ratios. "
        "--picture draws them.",
        allow_abbrev=False,
    )
    shapes, methods, samples = list(PROFILES), list(ESTIMATORS), list(SAMPLES)
    parser.add_argument(
        "--shapes", nargs="+", choices=shapes, default=shapes, help="data sets whose list lengths to use (default: all)"
    )
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=methods,
        default=list(METHODS),
        help="gradients to measure (default: %(default)s)",
    )
    parser.add_argument(
        "--cutoffs",
        nargs="+",
        type=int,
        default=list(CUTOFFS),
        metavar="K",
        help="cutoffs to measure (default: %(default)s)",
    )
    parser.add_argument(
        "--samples", nargs="+", type=int, default=samples, metavar="N", help="rankings per query (default: %(default)s)"
    )
    parser.add_argument("--queries", type=int, default=96, metavar="N", help="queries to measure (default %(default)s)")
    parser.add_argument(
        "--spread",
        type=float,
        default=1.0,
        metavar="STD",
        help="standard deviation of the scores (default %(default)s)",
    )
    parser.add_argument("--seconds", type=float, default=0.2, metavar="S", help="time per cell (default %(default)s)")
    parser.add_argument("--picture", type=some_path, metavar="PNG", help="draw cost against K into this file")
    parser.add_argument("--json", type=some_path, metavar="FILE", help="write the figures into this file")
    parser.add_argument("--claims", action="store_true", help="measure the figures of README and docs and print both")
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command ``bench``; Ctrl-C keeps the cells that were measured."""
    for name in ("cutoffs", "samples", "queries"):
        for number in np.ravel(getattr(arguments, name)):
            count(number, name, 1)
    for name in ("spread", "seconds"):
        real(getattr(arguments, name), name, at_least=0.0)
    if arguments.claims:
        for line in claims.report(arguments.seconds):
            print(line, flush=True)
        return 0
    written = {name: [path] for name in ("json", "picture") if (path := getattr(arguments, name))}
    refuse_overwriting([], **written)
    if arguments.picture:
        import_extra("matplotlib.figure", "bench")  # a missing library is reported now, not after the measurement
    measured: list[Cell] = []
    status = 0
    try:
        with make_bar("bench", len(plan(arguments)), LAYOUT, leave=False) as progress:
            for cell in cells(arguments):
                measured.append(cell)
                progress.set_postfix_str(
                    f"{cell.shape} {cell.method} K = {cell.cutoff}: {cell.ratio:.0f} times", refresh=False
                )
                progress.update()
    except KeyboardInterrupt:
        if not measured:
            raise
        status = EXIT_STATUS
        print("interrupted; the cells below were measured")
    info = plr.build_info()
    print(f"SIMD {info['simd']}, {info['compiler']}, scores of standard deviation {arguments.spread:g}\n")
    print(table(measured, arguments.cutoffs))
    if arguments.json:
        content = {"build": info, "cells": [asdict(cell) for cell in measured]}
        write_atomically(arguments.json, json.dumps(content).encode())
    if arguments.picture:
        write_atomically(arguments.picture, draw(measured))
        print(f"\npicture: {arguments.picture}")
    else:
        print("\nto draw a picture, add --picture FILE.png")
    return status
