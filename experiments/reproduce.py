"""Repeat the experiments of the SIGIR 2022 paper, and write a report with its figures and ours.

``docs/benchmarks.md`` describes them. They need PyTorch, matplotlib and tqdm, as training on the command line does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from plrank_fast.__main__ import Parser, run_command
from plrank_fast._shared.extras import import_extra
from plrank_fast._shared.files import locked_folder
from plrank_fast._shared.interruption import EXIT_STATUS, deferred_interrupt
from plrank_fast._shared.progress_bar import make_bar
from plrank_fast.benchmarks.epoch_cost import CUTOFFS
from plrank_fast.commands.options import add_list, some_path
from plrank_fast.data import PROFILES
from plrank_fast.validation import count, real
from reproduction import experiment, report
from reproduction.learning import find_folds
from reproduction.results import ResultsFile

LAYOUT = "{desc} {percentage:3.0f}%|{bar}| {elapsed}{postfix}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiments that the arguments ask for, by default the process's own, and return the exit status."""
    parser = Parser(
        description="Measure cost, learning curves and disparity of all methods; write Table 2, pictures and an HTML "
        "report to a folder. The same command continues a run that was stopped.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=60.0,
        metavar="M",
        help="total time, in which as much is measured as fits (default %(default)s)",
    )
    parser.add_argument(
        "--output", type=some_path, default="runs/reproduce", metavar="FOLDER", help="default %(default)s"
    )
    add_list(parser, "parts", experiment.SHARES, "experiments", experiment.SHARES)
    add_list(parser, "shapes", PROFILES, "data shapes", PROFILES)
    add_list(parser, "cutoffs", CUTOFFS, "cutoffs K")
    folds = "train on train.txt, vali.txt and test.txt in this folder or in its folds"
    parser.add_argument("--data", type=some_path, metavar="FOLDER", help=folds)
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier run in the folder")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=reproduce, parser=parser)
    return run_command(parser, argv)


def reproduce(arguments: argparse.Namespace) -> int:
    """Measure within the given time, and write the report."""
    for module in ("torch", "tqdm", "matplotlib.figure"):  # a missing library is reported now, not after an hour
        import_extra(module, "train")
    real(arguments.minutes, "minutes", above=0.0)
    for cutoff in arguments.cutoffs:
        count(cutoff, "cutoffs", 1)
    folder = Path(arguments.output)
    path = folder / experiment.RESULTS
    if arguments.data:
        find_folds(arguments.data)
    settings = {  # they determine the cells: a continued run must have the same
        "minutes": arguments.minutes,
        "parts": [name for name in experiment.SHARES if name in arguments.parts],
        "sets": list(dict.fromkeys(arguments.shapes)),
        "data": arguments.data,
        "cutoffs": sorted(set(arguments.cutoffs)),
    }
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as until_reported:
        until_reported.enter_context(locked_folder(folder))
        if arguments.overwrite:
            path.unlink(missing_ok=True)
        results = ResultsFile(path, settings)
        interrupted = until_reported.enter_context(deferred_interrupt())
        parts = experiment.plan(settings)
        with make_bar("train", 1.0, LAYOUT, quiet=arguments.quiet) as bar:

            def show(part: Any, share: float) -> None:
                bar.set_description_str(part.name, refresh=False)
                bar.set_postfix_str(f"{len(results.of(part.name))} cells", refresh=False)
                bar.update(max(0.0, min(1.0, share) - bar.n))

            finished = experiment.run_parts(arguments.minutes, parts, results, interrupted=interrupted, observer=show)
        report.write_report(folder, settings, parts, results)
    print(f"report:   {folder / report.REPORT}")
    print(f"figures:  {path}, with the pictures in the same folder")
    if not finished:
        print("interrupted: the report shows the results so far; the same command continues")
    return 0 if finished else EXIT_STATUS


if __name__ == "__main__":
    sys.exit(main())
