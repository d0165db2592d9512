"""The line that shows how training is going."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from plrank_fast.extras import import_extra
from plrank_fast.training.loop import Observer, TrainingRun


@contextmanager
def progress_bar(run: TrainingRun, *, quiet: bool = False) -> Iterator[Observer]:
    """Show a bar over the batches, with NDCG on validation and the time split between gradient and network.

    Parameters
    ----------
    run : TrainingRun
        Its epochs are the length of the bar; without that limit there is a count and no bar.
    quiet : bool
        Show nothing.
    """
    per_epoch = run.batches_per_epoch
    bar = import_extra("tqdm", "train").tqdm(
        total=None if run.epochs is None else run.epochs * per_epoch,
        initial=run.progress.epoch * per_epoch + run.progress.batch,
        unit="batch",
        disable=quiet,
        # a log file gets a line now and then, a terminal a live one
        mininterval=0.2 if sys.stderr.isatty() else 5.0,
        dynamic_ncols=True,
    )
    metric = f"ndcg_{run.config.normalization}"

    def observe(run: TrainingRun) -> None:
        progress = run.progress
        spent = {
            what: progress.seconds[what] + sum(entry["seconds"][what] for entry in progress.history)
            for what in ("gradient", "model")
        }
        share = spent["gradient"] / max(sum(spent.values()), 1e-9)
        latest = progress.history[-1]["vali"]
        disparity = f", disparity {latest['disparity']:.3g}" if "disparity" in latest else ""
        bar.set_postfix_str(
            f"epoch {progress.epoch}, NDCG@{run.config.cutoff} {latest[metric]:.4f} "
            f"(expected {latest['expected_' + metric]:.4f}){disparity}, "
            f"time {share:.0%} gradient {1 - share:.0%} network",
            refresh=False,
        )
        bar.update(progress.epoch * per_epoch + progress.batch - bar.n)

    with bar:
        yield observe
