"""A trained network on disk, with all that scoring new documents takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plrank_fast.training.archive import read_archive, write_archive
from plrank_fast.training.loop import TrainingRun
from plrank_fast.training.network import ScoringNetwork


def save_model(path: Path, run: TrainingRun) -> None:
    """Write the best network of a run; equal runs give equal bytes.

    Parameters
    ----------
    path : Path
        Replaced in one step.
    run : TrainingRun
        Whose best weights to keep.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    header = {
        "n_features": run.splits.train.n_features,
        "config": run.config.to_json(),
        "epoch": run.progress.best_epoch,
        "train": run.splits.train.name,
    }
    write_archive(path, "model", header, run.best_weights)


def load_model(path: Path) -> tuple[ScoringNetwork, dict[str, Any]]:
    """Read a network that `save_model` wrote.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    network : ScoringNetwork
    header : dict
        ``n_features``, ``config`` (the settings it was trained with), ``epoch``, ``train`` (name of its data).

    Raises
    ------
    ValueError
        If the file is damaged, of another version, or no model.
    OSError
        If it cannot be read.
    """
    header, weights = read_archive(path, "model")
    network = ScoringNetwork(header["n_features"], tuple(header["config"]["hidden"]), seed=0)
    network.set_weights(weights)
    return network, header
