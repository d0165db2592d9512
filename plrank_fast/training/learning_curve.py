"""The picture of quality by epoch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plrank_fast._shared.pictures import new_panels
from plrank_fast.named_metrics import TITLES
from plrank_fast.training.config import DATASET, DISPARITY, TrainingConfig
from plrank_fast.training.evaluation import Metrics


def learning_curve(history: Sequence[Metrics], config: TrainingConfig, best_epoch: int, title: str) -> Any:
    """Draw the metrics on the validation data, of the untrained network and after each epoch, as a figure."""
    figure, ((panel,),) = new_panels(1, 1, 6.6, 3.6)
    of_ranking = "ndcg_query" if config.metric == "ndcg" else config.metric
    quantity = f"{TITLES[config.metric]}@{config.cutoff}"
    curves = {of_ranking: "deterministic ranking", f"expected_{of_ranking}": "expected"}
    if config.normalization == DATASET:
        curves["expected_ndcg_dataset"] = "expected dataset NDCG"
    if config.objective == DISPARITY:
        curves, quantity = {DISPARITY: DISPARITY}, DISPARITY
    for metric, name in curves.items():
        values = [metrics[metric] for metrics in history]
        shown = f"{name} (untrained {values[0]:.3f})"
        panel.plot(range(len(values)), values, label=shown, marker="." if len(values) < 40 else None)
    chosen = f"best by {config.quality_name}"
    panel.axvline(best_epoch, color="0.7", linewidth=1, zorder=0, label=chosen)
    panel.set(xlabel="epoch", title=title)
    panel.set_ylabel(f"mean {quantity} of validation queries", labelpad=8)
    panel.legend(loc="upper left", bbox_to_anchor=(0, -0.14), ncols=2, frameon=False, fontsize="small")
    panel.grid(alpha=0.3)
    panel.xaxis.get_major_locator().set_params(integer=True)
    return figure
