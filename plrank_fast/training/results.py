"""Results of a run: the progress and the table on the screen, and the results file."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from plrank_fast import __version__
from plrank_fast._shared.extras import import_extra
from plrank_fast.data import RankingData
from plrank_fast.named_metrics import TITLES
from plrank_fast.training.config import DATASET, DISPARITY, DROP, TrainingConfig, describe_preset
from plrank_fast.training.evaluation import Metrics
from plrank_fast.training.network import ScoringNetwork
from plrank_fast.training.trainer import TrainingRun

PROGRESS = "{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}"
UNTRAINED = "no epoch has ended, so the model is the untrained network"
SPLIT_TITLES = {"vali": "validation", "test": "test"}


def show_progress(bar: Any, run: TrainingRun) -> None:
    """Show the progress of the run on the bar, and the latest NDCG and objective on the validation data."""
    latest, config = run.progress.history[-1], run.config
    shown = {f"NDCG@{config.cutoff}": latest["ndcg_query"], config.quality_name: latest[config.chosen_by]}
    bar.set_description_str(f"epoch {run.progress.epoch}", refresh=False)
    bar.set_postfix_str(", ".join(f"{name} {value:.4g}" for name, value in shown.items()), refresh=False)
    bar.update(run.share_done - bar.n)


def summarize(run: TrainingRun, stopped: str) -> dict[str, Any]:
    """Evaluate the best and the untrained network on all held-out data, and collect the results, ready for JSON.

    All ranks of the run must call this together. The network of the run gets the best weights.
    """
    history = run.progress.history
    untrained = ScoringNetwork(run.splits["train"].n_features, run.config).weights()
    held_out = {name: part for name, part in run.splits.items() if name != "train"}
    metrics: dict[str, dict[str, Metrics]] = {name: {} for name in held_out}
    for state, weights in (("untrained", untrained), ("trained", run.best_weights)):
        run.network.set_weights(weights)
        for name, part in held_out.items():
            metrics[name][state] = run.evaluate(part)
    values = [run.config.quality(metrics) for metrics in history]
    return {
        "config": asdict(run.config),
        "source": asdict(run.source) if run.source else None,
        "data": {name: _described(part) for name, part in run.splits.items()},
        "stopped": stopped,
        "epochs": run.progress.epoch,
        "best_epoch": run.progress.best_epoch,
        "still_improving": len(values) > 1 and values[-1] > max(values[:-1]),
        "metrics": metrics,
        "seconds": run.progress.total_seconds,
        "method": run.loss.method,
        "history": history,
        "environment": {
            "plrank_fast": __version__,
            "numpy": np.__version__,
            "torch": import_extra("torch", "train").__version__,
            "threads": run.n_threads,
            "processes": run.ranks.count,
        },
    }


def _described(data: RankingData) -> dict[str, Any]:
    counts = {"queries": data.n_queries, "documents": data.n_docs, "features": data.n_features}
    return {**counts, "without_relevant": queries_without_relevant(data), "name": data.name}


def results_table(results: Mapping[str, Any], config: TrainingConfig) -> str:
    """Format the outcome of a run of these settings, the result of `summarize`, in several lines."""
    rows = [
        (SPLIT_TITLES[split], f"best epoch ({results['best_epoch']})" if state == "trained" else state, metrics)
        for split, states in results["metrics"].items()
        for state, metrics in states.items()
    ]
    data = results["data"]
    train = data["train"]
    empty = [(SPLIT_TITLES[name], data[name]["without_relevant"], data[name]["queries"]) for name in results["metrics"]]
    best = "lowest" if config.objective == DISPARITY else "highest"
    lines = [
        f"{results['method']} on {train['name']}: {train['queries']} queries, {train['documents']} documents, "
        f"{results['epochs']} epochs in {results['seconds']:.1f} s",
        "",
        metrics_table(rows, config, config.cutoff),
        empty_queries(config.empty, empty),
        "",
        textwrap.fill(settings_line(config), 100, subsequent_indent="  "),
        f"the best epoch has the {best} {config.quality_name} on the validation data",
        *(["", "the best epoch is the last: train longer"] if results["still_improving"] else []),
        *([] if results["epochs"] else ["", f"{UNTRAINED}: train longer"]),
    ]
    return "\n".join(lines)


def queries_without_relevant(data: RankingData) -> int:
    """Count the queries without a label above 0."""
    relevant_before = np.concatenate([[0], np.cumsum(data.labels > 0)])
    return int((np.diff(relevant_before[data.offsets]) == 0).sum())


def empty_queries(empty: float | str, counts: list[tuple[str, int, int]]) -> str:
    """Describe the NDCG, and the number and treatment of queries without relevant documents."""
    meaning = "left out" if empty == DROP else f"counted as {empty:g}"
    shares = ", ".join(f"{few} of {all_queries} ({title})" for title, few, all_queries in counts)
    return f"NDCG: mean over queries; those without relevant documents are {meaning}: {shares}"


def settings_line(config: TrainingConfig) -> str:
    """Describe the settings of the run: the preset, its title, and the differences from it."""
    changes = ", ".join(f"{name} {value}" for name, value in config.changed().items())
    about = f"settings: preset {config.preset}: {describe_preset(config.preset)}"
    return f"{about}; changed: {changes}" if changes else about


def metrics_table(rows: list[tuple[str, str, Metrics]], config: TrainingConfig, cutoff: int) -> str:
    """Format metrics, one row for each (data, network): NDCG, and the objective if it is another one."""
    columns = {"ndcg_query": f"NDCG@{cutoff}", "expected_ndcg_query": "expected"}
    if config.normalization == DATASET:
        columns |= {"ndcg_dataset": f"dataset NDCG@{cutoff}", "expected_ndcg_dataset": "expected"}
    for name in TITLES:
        if any(name in metrics for _, _, metrics in rows):
            columns |= {name: f"{TITLES[name]}@{cutoff}", f"expected_{name}": "expected"}
    if any(DISPARITY in metrics for _, _, metrics in rows):
        columns[DISPARITY] = DISPARITY
    left = max(len(first) for first, _, _ in rows)
    right = max(len(second) for _, second, _ in rows)
    lines = [f"{'':{left}}  {'':{right}}  " + "  ".join(f"{title:>9}" for title in columns.values())]
    for first, second, metrics in rows:
        shown = [
            format(metrics[name], ".4g" if name == DISPARITY else ".4f").rjust(max(9, len(title)))
            for name, title in columns.items()
        ]
        lines.append(f"{first:{left}}  {second:{right}}  " + "  ".join(shown))
    return "\n".join(lines)
