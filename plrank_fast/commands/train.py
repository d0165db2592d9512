"""The command ``train``."""

from __future__ import annotations

import argparse
import json
import shlex
from contextlib import ExitStack, nullcontext
from dataclasses import fields
from functools import partial
from pathlib import Path
from threading import Timer
from typing import Any

from plrank_fast._shared.extras import import_extra
from plrank_fast._shared.files import locked_folder, write_atomically
from plrank_fast._shared.interruption import EXIT_STATUS, deferred_interrupt
from plrank_fast._shared.pictures import png_of
from plrank_fast._shared.progress_bar import make_bar
from plrank_fast.commands.options import add_parameters, add_reading, some_path
from plrank_fast.training.config import DEFAULT_EPOCHS, PRESETS, TrainingConfig, describe_preset, with_tuples
from plrank_fast.training.model import MODEL
from plrank_fast.training.sources import Source
from plrank_fast.validation import threads

DEFAULT_OUTPUT = "runs/train"
RESULTS, PICTURE = "results.json", "learning_curve.png"  # beside the checkpoint
PATIENT_SECONDS = 2.0  # the loading of data is told after this time
LIMITS, RUN_SETTINGS = ("epochs", "minutes"), ("patience", "n_threads", "checkpoint_seconds")


def add_train(commands: Any) -> None:
    """Add the command ``train`` to the subparsers of the command line."""
    # No option has a default here: those that were not given are absent, so `--resume` knows the given ones.
    parser = commands.add_parser(
        "train",
        help="train a scoring network by the gradient of an expected ranking metric",
        description="Train a neural ranker; write its checkpoint, model, results and learning curve to a folder.",
        epilog="Presets: " + "; ".join(f"{name}: {describe_preset(name)}" for name in PRESETS) + ".",
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    data = parser.add_argument_group("data (files or a profile)")
    add_parameters(data, Source)
    add_reading(data)
    settings = parser.add_argument_group("settings, which determine the result")
    add_parameters(settings, TrainingConfig)
    as_they_are = {"dest": "normalize_features", "action": "store_false"}
    settings.add_argument("--no-normalize-features", help="leave features as they are", **as_they_are)
    run = parser.add_argument_group("run")
    run.add_argument(
        "--epochs", type=int, metavar="N", help=f"epochs in all (default {DEFAULT_EPOCHS}, or no limit with --minutes)"
    )
    run.add_argument("--minutes", type=float, metavar="M", help="stop after this time, including time before a resume")
    patience = "stop after this number of epochs without a better one"
    run.add_argument("--patience", type=int, metavar="N", help=patience)
    run.add_argument("--output", type=some_path, metavar="FOLDER", help=f"output folder (default {DEFAULT_OUTPUT})")
    run.add_argument("--overwrite", action="store_true", help="replace an earlier run in the folder")
    resume = "continue the run in this folder; its settings hold"
    run.add_argument("--resume", type=some_path, metavar="FOLDER", help=resume)
    seconds = "seconds between checkpoints, which are written at epoch ends (default 10)"
    run.add_argument("--checkpoint-seconds", type=float, metavar="S", help=seconds)
    run.add_argument("--threads", dest="n_threads", type=int, metavar="N", help="gradient threads (default: all)")
    run.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=train, parser=parser)


def train(arguments: argparse.Namespace) -> int:
    """Run the command ``train``."""
    given = vars(arguments)
    threads(given.get("n_threads"))
    program = arguments.parser.prog
    for module in ("torch", "tqdm", "matplotlib.figure"):  # a missing library is reported now, not after the training
        import_extra(module, "train")

    from plrank_fast.training.ranks import ranks_of_launcher
    from plrank_fast.training.results import PROGRESS, show_progress, summarize

    with ExitStack() as until_reported:
        ranks = until_reported.enter_context(ranks_of_launcher())
        if ranks.count > 1:
            arguments.parser.prog = f"{program} (rank {ranks.rank} of {ranks.count})"  # errors show it
        given.setdefault("n_threads", ranks.n_threads)
        quiet = "quiet" in given or not ranks.first
        loading = Timer(PATIENT_SECONDS, print, ["loading the data ..."], {"flush": True})
        until_reported.callback(loading.cancel)
        if not quiet:
            loading.start()
        run = (_resumed_run if "resume" in given else _new_run)(given, until_reported, ranks)
        loading.cancel()
        method = run.loss.method
        if method != run.config.method and not quiet:
            print(f"method: {method}, chosen by what it costs at these list lengths and cutoff {run.config.cutoff}")
        interrupted = until_reported.enter_context(deferred_interrupt())
        try:
            with make_bar("train", 1.0, PROGRESS, initial=run.share_done, quiet=quiet) as bar:
                stopped = run.train(interrupted=interrupted, observer=partial(show_progress, bar))
                show_progress(bar, run)  # the time may be over before the first batch
            results = summarize(run, stopped)
        except ConnectionError as error:
            resume = f"{program} --resume {shlex.quote(str(run.folder))}"
            raise ConnectionError(f"{error}; to go on from the last checkpoint: {resume}") from error
        if ranks.first:
            _report(run, results, program)
    return EXIT_STATUS if stopped == "interrupted" else 0


def _new_run(given: dict[str, Any], until_reported: ExitStack, ranks: Any) -> Any:
    from plrank_fast.training.checkpoint import CHECKPOINT
    from plrank_fast.training.trainer import TrainingRun

    config, source = TrainingConfig.from_preset(**_settings(TrainingConfig, given)), Source(**_settings(Source, given))
    # The default counts as given, so that an error about the folder names the option.
    folder = Path(given.setdefault("output", DEFAULT_OUTPUT))

    cache = given.get("cache")

    def occupy() -> None:
        until_reported.enter_context(locked_folder(folder))
        if (folder / CHECKPOINT).exists() and "overwrite" not in given:
            raise ValueError(
                f"output {folder} already holds a run: continue it with --resume {folder}, replace it with "
                "--overwrite, or choose another folder with --output"
            )

    exists = folder.is_dir()
    if folder.exists() and not exists:
        raise ValueError(f"output {folder} is not a folder")
    if ranks.first and exists:
        occupy()
    with ranks.one_before_others() if cache else nullcontext():
        splits = source.load(normalize=config.normalize_features, cache=cache)
    limits = _pick(given, *LIMITS) or {"epochs": DEFAULT_EPOCHS}
    run = TrainingRun(config, source, splits, folder, **limits, **_pick(given, *RUN_SETTINGS), ranks=ranks)
    if ranks.first and not exists:
        folder.mkdir(parents=True, exist_ok=True)
        occupy()  # another run may have begun and ended while the data were loaded
    return run


def _resumed_run(given: dict[str, Any], until_reported: ExitStack, ranks: Any) -> Any:
    from plrank_fast.training.checkpoint import CHECKPOINT
    from plrank_fast.training.trainer import TrainingRun

    folder = Path(given["resume"])
    for name in ("output", "overwrite"):
        if name in given:
            raise ValueError(f"{name} does not go with --resume, which continues in its own folder")
    if ranks.first and (folder / CHECKPOINT).exists():
        until_reported.enter_context(locked_folder(folder))
    run = TrainingRun.resume(folder, **_pick(given, "cache", *LIMITS, *RUN_SETTINGS), ranks=ranks)
    assert run.source is not None
    for kind, earlier in ((TrainingConfig, run.config), (Source, run.source)):
        for name, value in _settings(kind, given).items():
            if value != getattr(earlier, name):
                raise ValueError(f"{name} contradicts the run in {folder}, which has {getattr(earlier, name)!r}")
    return run


def _pick(given: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: given[name] for name in names if name in given}


def _settings(kind: type[Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return the given arguments that are fields of a dataclass."""
    return with_tuples(_pick(given, *(field.name for field in fields(kind))))


def _report(run: Any, results: dict[str, Any], program: str) -> None:
    from plrank_fast.training.results import results_table

    model = run.best_model()
    model.save(run.folder / MODEL)
    write_atomically(run.folder / RESULTS, (json.dumps(results, indent=2, allow_nan=False) + "\n").encode())
    write_atomically(run.folder / PICTURE, png_of(model.plot(), dpi=120))
    print(f"\n{results_table(results, run.config)}\n")
    for what, name in (("learning curve", PICTURE), ("results", RESULTS), ("model", MODEL)):
        print(f"{what + ':':16}{run.folder / name}")
    if run.batch:
        stopped = f"epoch {run.progress.epoch + 1} stopped after {run.batch} of {len(run.batches)} batches"
        print(f"{stopped}, and begins anew")
    # A limit that was reached also holds after a resume.
    further = {
        "interrupted": "",
        "patience": f" --patience {2 * (run.limits.patience or 1)}",
        "epochs": f" --epochs {2 * max(1, run.progress.epoch)}",
        "minutes": f" --minutes {2 * run.progress.total_seconds / 60:.3g}",
    }
    print(f"to continue:    {program} --resume {shlex.quote(str(run.folder))}{further[results['stopped']]}")
