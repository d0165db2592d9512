"""A trained network on disk, with all that scoring new documents takes."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from plrank_fast.training.archive import interpreting, read_archive, write_archive
from plrank_fast.training.config import TrainingConfig
from plrank_fast.training.loop import TrainingRun
from plrank_fast.training.network import ScoringNetwork, n_weights
from plrank_fast.validation import count


def save_model(path: str | os.PathLike[str], run: TrainingRun) -> None:
    """Write the best network of a run; equal runs give equal bytes.

    Parameters
    ----------
    path : path-like
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


def load_model(path: str | os.PathLike[str]) -> tuple[ScoringNetwork, dict[str, Any]]:
    """Read a network that `save_model` wrote.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    network : ScoringNetwork
    header : dict
        ``n_features``, ``config`` (the settings it was trained with), ``epoch``, ``train`` (name of its data).

    Raises
    ------
    ValueError
        Naming the file, if it is damaged, of another version, or no model.
    OSError
        If it cannot be read.
    """
    header, weights = read_archive(path, "model")
    with interpreting(path, "model"):
        n_features, hidden = (
            count(header["n_features"], "n_features", 1),
            TrainingConfig.from_json(header["config"]).hidden,
        )
        count(header["epoch"], "epoch", 0)
        if not isinstance(header["train"], str):
            raise TypeError(f"train must be a name, got {header['train']!r}")
        # before the network is built, which may be larger than the machine
        expected = n_weights(n_features, hidden)
        held = sum(array.size for array in weights.values())
        if held != expected:
            raise ValueError(f"its header describes a network of {expected} weights, it holds {held}")
        network = ScoringNetwork(n_features, hidden, seed=0)
        network.set_weights(weights)
        if not all(np.isfinite(array).all() for array in weights.values()):
            raise ValueError("its weights are not all finite")
    return network, header
