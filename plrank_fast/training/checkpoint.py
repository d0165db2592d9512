"""The checkpoint of a run: its state at the last epoch end, with settings, limits and fingerprints of the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from plrank_fast._shared.archive import Arrays, interpreting, read_archive, require_arrays, write_archive
from plrank_fast.training.config import TrainingConfig, with_tuples
from plrank_fast.training.evaluation import Metrics
from plrank_fast.training.model import read_history, weights_like
from plrank_fast.training.network import ScoringNetwork
from plrank_fast.training.sources import Source
from plrank_fast.validation import count, real

CHECKPOINT = "checkpoint.plrank"  # its name in the folder of a run


class Limits(NamedTuple):
    """The limits that end a run."""

    epochs: int | None
    minutes: float | None
    patience: int | None

    @classmethod
    def checked(cls, epochs: Any, minutes: Any, patience: Any) -> Limits:
        """Return limits, of which there must be a number of epochs or of minutes."""
        if epochs is None and minutes is None:
            raise ValueError("epochs or minutes must be given")
        return cls(
            None if epochs is None else count(epochs, "epochs", 0),
            None if minutes is None else real(minutes, "minutes", above=0.0),
            None if patience is None else count(patience, "patience", 1),
        )


@dataclass
class Progress:
    """Progress of a run up to the end of an epoch, which with the weights is its whole state.

    ``total_seconds`` are those of the run, an epoch that was stopped included. ``history`` has the metrics on the
    validation data, of the untrained network and after each epoch, so that an epoch's number is their index.
    """

    epoch: int = 0
    total_seconds: float = 0.0
    history: list[Metrics] = field(default_factory=list)
    best_epoch: int = 0

    @classmethod
    def read(cls, values: Any, config: TrainingConfig) -> Progress:
        """Return the progress in a file of a run of these settings."""
        progress = cls(**values)
        progress.history = read_history(progress.history, config)
        count(progress.epoch, "epoch", 0)
        real(progress.total_seconds, "total_seconds", at_least=0.0)
        count(progress.best_epoch, "best_epoch", 0, progress.epoch)
        if len(progress.history) != progress.epoch + 1:
            raise ValueError(f"its history has {len(progress.history)} entries, where epoch {progress.epoch} ended")
        return progress


class Checkpoint(NamedTuple):
    """The contents of the file."""

    config: TrainingConfig
    source: Source
    limits: Limits
    fingerprints: Mapping[str, str]
    progress: Progress
    state: Arrays

    def write(self, folder: Path) -> None:
        """Replace the file in one step."""
        header = {**self.limits._asdict(), "fingerprints": self.fingerprints, "progress": vars(self.progress)}
        header |= {"config": asdict(self.config), "source": asdict(self.source)}
        write_archive(folder / CHECKPOINT, "checkpoint", header, self.state)

    @classmethod
    def read(cls, folder: Path) -> Checkpoint:
        """Read the file and check all that a run needs of it; ValueError names the file."""
        path = folder / CHECKPOINT
        header, state = read_archive(path, "checkpoint")
        with interpreting(path, "checkpoint"):
            config = TrainingConfig(**with_tuples(header["config"]))
            progress = Progress.read(header["progress"], config)
            limits = Limits.checked(header["epochs"], header["minutes"], header["patience"])
            _check_state(state, config, progress.epoch)
            source = Source(**with_tuples(header["source"]))
            return cls(config, source, limits, dict(header["fingerprints"]), progress, state)


def _check_state(state: Arrays, config: TrainingConfig, epoch: int) -> None:
    """Check the arrays of a run of these settings: weights, and the optimizer's moments after an epoch."""
    n_features = state["network/0.weight"].shape[1]
    weights = weights_like(n_features, config.hidden)
    like = {f"{group}/{name}": array for group in ("network", "best") for name, array in weights.items()}
    require_arrays({name: array for name, array in state.items() if not name.startswith("optimizer/")}, like)
    if epoch > 0:
        moments = ScoringNetwork(n_features, config).moments_after_a_step()
        like |= {f"optimizer/{name}": array for name, array in moments.items()}
    require_arrays(state, like)
