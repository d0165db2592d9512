"""The picture of a run: NDCG or disparity on the validation data, and the time by activity, by epoch."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from plrank_fast._shared.extras import import_extra
from plrank_fast._shared.files import write_atomically
from plrank_fast.training.config import DATASET, TrainingConfig
from plrank_fast.training.loop import ACTIVITIES


def draw_learning_curve(path: str | os.PathLike[str], results: Mapping[str, Any]) -> None:
    """Draw the learning curve into a PNG file, from the results of `plrank_fast.training.report.summarize`."""
    figure_module = import_extra("matplotlib.figure", "train")
    config, history = results["config"], results["history"]
    epochs = [entry["epoch"] for entry in history]
    # A Figure without pyplot needs no window system and changes no global state.
    figure = figure_module.Figure(figsize=(11, 4.2), layout="constrained")
    quality, cost = figure.subplots(1, 2, width_ratios=[3, 2])

    curves = {"disparity": ("disparity", "C2")}
    label = "squared disparity of exposure on validation"
    if config["objective"] != "disparity":
        curves = {"ndcg_query": ("deterministic ranking", "C0"), "expected_ndcg_query": ("expected", "C1")}
        if TrainingConfig.from_json(config).normalization == DATASET:
            curves["expected_ndcg_dataset"] = ("expected dataset NDCG", "C2")
        label = f"NDCG@{config['cutoff']} on validation, mean over queries"
    # The legend has the untrained network, which would flatten the curves on the axis.
    first = 1 if len(history) > 1 else 0
    for metric, (title, style) in curves.items():
        untrained, *_ = values = [entry["vali"][metric] for entry in history]
        label_of_curve = f"{title} (untrained {untrained:.3f})"
        marker = "." if len(epochs) < 40 else None
        quality.plot(epochs[first:], values[first:], style, label=label_of_curve, marker=marker)
    quality.axvline(results["best_epoch"], color="0.7", linewidth=1, zorder=0, label="best epoch")
    quality.set(
        xlabel="epoch",
        ylabel=label,
        title=f"{results['method']}, {results['data']['train']['name']}",
    )
    below_axes = (0, -0.14)
    quality.legend(loc="upper left", bbox_to_anchor=below_axes, ncols=2, frameon=False)
    quality.grid(alpha=0.3)

    trained = history[1:]
    seconds = [[entry["seconds"][what] for entry in trained] for what in ACTIVITIES]
    if trained:
        # Each epoch has a bar of the same width, as its cost belongs to the whole epoch.
        below = np.cumsum([np.zeros(len(trained)), *seconds[:-1]], axis=0)
        for what, height, bottom in zip(ACTIVITIES.values(), seconds, below, strict=True):
            cost.bar(epochs[1:], height, width=1.0, bottom=bottom, label=what)
        cost.legend(loc="upper left", bbox_to_anchor=below_axes, ncols=2, frameon=False)
    cost.set(xlabel="epoch", ylabel="seconds", title="time per epoch")
    cost.set_ylim(bottom=0)
    cost.grid(alpha=0.3)

    for panel in (quality, cost):
        panel.xaxis.get_major_locator().set_params(integer=True)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    write_atomically(path, picture.getvalue())
