"""Results of a run: the table on the screen, the results file, and the picture of quality by epoch."""

from __future__ import annotations

import json
import os
import platform
import textwrap
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from plrank_fast import __version__
from plrank_fast._shared.extras import import_extra
from plrank_fast._shared.files import write_atomically
from plrank_fast._shared.pictures import png_of
from plrank_fast.data import RankingData
from plrank_fast.named_metrics import TITLES
from plrank_fast.training.config import DATASET, DISPARITY, DROP, TrainingConfig, describe_preset, with_tuples
from plrank_fast.training.evaluation import Metrics
from plrank_fast.training.learning_curve import learning_curve
from plrank_fast.training.network import ScoringNetwork
from plrank_fast.training.trainer import ACTIVITIES, TrainingRun

PROGRESS = "{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}"
SPLIT_TITLES = {"vali": "validation", "test": "test"}


def show_progress(bar: Any, run: TrainingRun) -> None:
    """Show the progress of the run on the bar, and the latest metrics on the validation data."""
    latest = run.progress.history[-1]
    shown = f"NDCG@{run.config.cutoff} {latest['ndcg_query']:.4f}"
    if run.config.metric != "ndcg":
        metric = run.config.metric
        shown = f"{TITLES[metric]}@{run.config.cutoff} {latest[metric]:.4f}"
        shown += f", expected {latest[f'expected_{metric}']:.4f}"
    elif run.config.objective == DISPARITY:
        shown += f", disparity {latest[DISPARITY]:.3g}"
    elif run.config.normalization == DATASET:
        shown += f", dataset NDCG {latest['expected_ndcg_dataset']:.4f}"
    else:
        shown += f", expected {latest['expected_ndcg_query']:.4f}"
    bar.set_description_str(f"epoch {run.progress.epoch}", refresh=False)
    bar.set_postfix_str(shown, refresh=False)
    bar.update(run.share_done - bar.n)


def summarize(run: TrainingRun, stopped: str) -> dict[str, Any]:
    """Evaluate the best and the untrained network on all held-out data, and collect the results, ready for JSON.

    All ranks of the run must call this together. The network of the run gets the best weights.
    """
    history = run.progress.history
    untrained = ScoringNetwork(
        run.splits["train"].n_features, run.config.hidden, run.config.seed, run.config.initialization
    ).weights()
    held_out = {name: part for name, part in run.splits.items() if name != "train"}
    metrics: dict[str, dict[str, Metrics]] = {name: {} for name in held_out}
    for state, weights in (("untrained", untrained), ("trained", run.best_weights)):
        run.network.set_weights(weights)
        for name, part in held_out.items():
            metrics[name][state] = run.evaluate(part)
    values = [run.config.quality(metrics) for metrics in history]
    seconds = run.progress.seconds
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
        "seconds_by_activity": {**seconds, "other": run.progress.total_seconds - sum(seconds.values())},
        "method": run.method,
        "history": history,
        "environment": {
            "plrank_fast": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "torch": import_extra("torch", "train").__version__,
            "threads": run.n_threads,
            "processes": run.ranks.count,
        },
    }


def _described(data: RankingData) -> dict[str, Any]:
    counts = {"queries": data.n_queries, "documents": data.n_docs, "features": data.n_features}
    return {**counts, "without_relevant": queries_without_relevant(data), "name": data.name}


def write_json(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Write plain values as readable JSON, replacing an earlier file in one step."""
    write_atomically(path, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())


def results_table(results: Mapping[str, Any]) -> str:
    """Format the outcome of a run, the result of `summarize`, in several lines."""
    rows = [
        (SPLIT_TITLES[split], f"best epoch ({results['best_epoch']})" if state == "trained" else state, metrics)
        for split, states in results["metrics"].items()
        for state, metrics in states.items()
    ]
    data, config = results["data"], TrainingConfig(**with_tuples(results["config"]))
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
        f"the best epoch is that of the {best} {config.quality_name} on the validation data",
        *(["", "the best epoch is the last: train longer"] if results["still_improving"] else []),
        "",
        time_table(results),
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
    changes = ", ".join(f"{name} {_plain(value)}" for name, value in config.changed().items())
    about = f"settings: preset {config.preset}: {describe_preset(config.preset)}"
    return f"{about}; changed: {changes}" if changes else about


def _plain(value: object) -> str:
    return " ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)


def time_table(results: Mapping[str, Any]) -> str:
    """Format the time of a run by activity; the rows add up to the whole."""
    totals, epochs = results["seconds_by_activity"], results["epochs"]
    names = {**ACTIVITIES, "other": "other"}
    width = max(map(len, names.values()))
    lines = [f"{'seconds':{width}}  {'in all':>9} {'an epoch':>9}"]
    for name, seconds in [(names[what], totals[what]) for what in names] + [("all", results["seconds"])]:
        lines.append(f"{name:{width}}  {seconds:9.2f} {seconds / max(1, epochs):9.4f}")
    return "\n".join(lines)


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


def draw_learning_curve(path: str | os.PathLike[str], results: Mapping[str, Any]) -> None:
    """Draw the learning curve into a PNG file, from the results of `summarize`."""
    config = TrainingConfig(**with_tuples(results["config"]))
    title = f"{results['method']}, {results['data']['train']['name']}"
    write_atomically(path, png_of(learning_curve(results["history"], config, results["best_epoch"], title), dpi=120))
