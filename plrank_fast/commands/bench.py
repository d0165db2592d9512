"""The command ``bench``: the cost of an epoch of gradients against the cutoff K, beside NumPy's.

The seconds are for an epoch on one thread over a data set of a public set's shape, measured on a sample of queries with
its list lengths and scaled up. Every ratio is taken within one run: our call and the reference implementation are timed
in turn, and the fastest of each counts.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import plrank_fast as plr
from plrank_fast._methods.registry import ESTIMATORS
from plrank_fast._shared.extras import import_extra
from plrank_fast._shared.files import write_atomically
from plrank_fast._shared.interruption import EXIT_STATUS
from plrank_fast._shared.pictures import add_legend, new_panels, png_of, set_ticks
from plrank_fast._shared.progress_bar import make_bar
from plrank_fast.benchmarks import claims
from plrank_fast.benchmarks.epoch_cost import CUTOFFS, SAMPLES, Method, Workload, seconds_per_epoch
from plrank_fast.commands.options import add_list, some_path
from plrank_fast.data import PROFILES
from plrank_fast.validation import count, real

METHODS = ("pl_rank_3", "cmc", "exact")
LAYOUT = "{n_fmt}/{total_fmt} cells |{bar}| {elapsed}<{remaining}{postfix}"
IN_NUMPY = "NumPy PL-Rank-3"

Place = tuple[str, str, int, int]  # shape, method, N and K of a cell
Cells = dict[Place, tuple[float, float]]  # seconds, and NumPy's for PL-Rank-3 with the same N and K
Rows = dict[str, dict[int, tuple[float, float]]]  # seconds and the speed-up, by title and cutoff


def plan(arguments: argparse.Namespace) -> list[Place]:
    """List every cell that the arguments ask for."""
    return [
        (shape, method, n_samples, cutoff)
        for shape in arguments.shapes
        for method in arguments.methods
        for n_samples in ([max(arguments.samples)] if ESTIMATORS[method].n_samples <= 1 else arguments.samples)
        for cutoff in arguments.cutoffs
    ]


def rows(cells: Cells) -> dict[str, Rows]:
    """Return seconds, and the speed-up over NumPy's PL-Rank-3, by shape, by title, and by cutoff."""
    result: dict[str, Rows] = {shape: {} for shape, *_ in cells}
    for (shape, method, n_samples, cutoff), (own, in_numpy) in cells.items():
        result[shape].setdefault(Method.of(method, n_samples).title, {})[cutoff] = own, in_numpy / own
    for (shape, _, n_samples, cutoff), (_, in_numpy) in cells.items():
        result[shape].setdefault(f"{IN_NUMPY}, N = {n_samples}", {})[cutoff] = in_numpy, 1.0
    return result


def table(cells: Cells, cutoffs: list[int]) -> str:
    """Lay out seconds per epoch and, in brackets, the speed-up over NumPy's PL-Rank-3, with a column per cutoff."""
    lines = []
    for shape, methods in rows(cells).items():
        lines += ["", f"{shape}, seconds per epoch on one thread (times faster than NumPy's PL-Rank-3)"]
        lines.append(f"{'':<26}" + "".join(f"{f'K = {cutoff}':>18}" for cutoff in cutoffs))
        for title, row in methods.items():
            form = "{:.3g}" if title.startswith(IN_NUMPY) else "{:.3g} ({:.3g})"
            shown = [form.format(*row[k]) if k in row else "" for k in cutoffs]
            lines.append(f"{title:<26}" + "".join(f"{text:>18}" for text in shown))
    return "\n".join(lines[1:])


def draw(cells: Cells) -> bytes:
    """Draw cost against K with a panel per shape, and return the content of the PNG file."""
    by_shape = rows(cells)
    figure, panels = new_panels(1, len(by_shape), 5.0, 3.6, sharey=True)
    for panel, (shape, methods) in zip(panels[0], by_shape.items(), strict=True):
        for title, row in methods.items():
            points = sorted((cutoff, seconds) for cutoff, (seconds, _) in row.items())
            panel.plot(*zip(*points, strict=True), ".:" if title.startswith(IN_NUMPY) else ".-", label=title)
        panel.set(xscale="log", yscale="log", xlabel="cutoff K", title=shape)
        set_ticks(panel, sorted({place[3] for place in cells}))
    panels[0, 0].set_ylabel("seconds per epoch, one thread")
    add_legend(figure, panels)
    return png_of(figure)


def add_bench(commands: Any) -> None:
    """Add the command ``bench`` to the subparsers of the command line."""
    parser = commands.add_parser(
        "bench",
        help="measure the cost of an epoch of gradients against the cutoff, and compare it with NumPy",
        description="Time sampling and gradients on one thread, and print seconds per epoch and ratios. "
        "--picture draws them.",
        allow_abbrev=False,
    )
    add_list(parser, "shapes", PROFILES, "data sets whose list lengths to use", PROFILES)
    add_list(parser, "methods", METHODS, "gradients to measure", ESTIMATORS)
    add_list(parser, "cutoffs", CUTOFFS, "cutoffs K to measure")
    add_list(parser, "samples", SAMPLES, "rankings per query")
    parser.add_argument("--queries", type=int, default=96, metavar="N", help="queries to measure (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.2, metavar="S", help="time per cell (default %(default)s)")
    parser.add_argument("--picture", type=some_path, metavar="PNG", help="draw cost against K into this file")
    parser.add_argument("--claims", action="store_true", help="measure the figures of README and docs and print both")
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command ``bench``; Ctrl-C keeps the cells that were measured."""
    for name in ("cutoffs", "samples", "queries"):
        for number in np.ravel(getattr(arguments, name)):
            count(number, name, 1)
    real(arguments.seconds, "seconds", at_least=0.0)
    if arguments.claims:
        for line in claims.report(arguments.seconds):
            print(line, flush=True)
        return 0
    if arguments.picture:
        import_extra("matplotlib.figure", "bench")  # a missing library is reported now, not after the measurement
    measured: Cells = {}
    workload: dict[str, Workload] = {}
    status, places = 0, plan(arguments)
    try:
        with make_bar("bench", len(places), LAYOUT, leave=False) as progress:
            for place in places:
                shape, method, n_samples, cutoff = place
                if shape not in workload:  # one at a time: they can be large
                    workload = {shape: Workload.of_profile(shape, arguments.queries)}
                ours, in_numpy = Method.of(method, n_samples), Method("pl_rank_3", n_samples)
                own, other = seconds_per_epoch(ours, workload[shape], cutoff, arguments.seconds, in_numpy)
                measured[place] = own, other
                progress.set_postfix_str(f"{shape} {method} K = {cutoff}: {other / own:.0f} times", refresh=False)
                progress.update()
    except KeyboardInterrupt:
        if not measured:
            raise
        status = EXIT_STATUS
        print("interrupted; the cells below were measured")
    info = plr.build_info()
    print(f"SIMD {info['simd']}, {info['compiler']}, scores of standard deviation 1\n")
    print(table(measured, arguments.cutoffs))
    if arguments.picture:
        write_atomically(arguments.picture, draw(measured))
        print(f"\npicture: {arguments.picture}")
    else:
        print("\nto draw a picture, add --picture FILE.png")
    return status
