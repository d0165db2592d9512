"""The line that shows how training is going: share of the limit, metrics on the validation data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from plrank_fast._shared.progress_bar import make_bar
from plrank_fast.training.config import DISPARITY
from plrank_fast.training.loop import Observer, TrainingRun

LAYOUT = "{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}"


@contextmanager
def progress_bar(run: TrainingRun, *, quiet: bool = False) -> Iterator[Observer]:
    """Show a bar over the share of the run that is done and the latest metrics.

    Parameters
    ----------
    run : TrainingRun
        Whichever of its limits, epochs or minutes, comes first is the end of the bar.
    quiet : bool
        Show nothing.
    """
    bar = make_bar("train", 1.0, LAYOUT, initial=run.share_done, quiet=quiet)

    def observe(run: TrainingRun) -> None:
        latest = run.progress.history[-1]["vali"]
        ndcg = f"ndcg_{run.config.normalization}"
        shown = f"NDCG@{run.config.cutoff} {latest[ndcg]:.4f}"
        if run.config.objective == DISPARITY:
            shown += f", disparity {latest[DISPARITY]:.3g}"
        else:
            shown += f", expected {latest['expected_' + ndcg]:.4f}"
        bar.set_description_str(f"epoch {run.progress.epoch}", refresh=False)
        bar.set_postfix_str(shown, refresh=False)
        bar.update(run.share_done - bar.n)

    with bar:
        yield observe
        if run.progress.history:
            observe(run)  # minutes may be over before the first batch
