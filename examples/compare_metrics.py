"""Train boosted trees and a small network on the expectation of each metric, and judge all of them by each metric.

    python examples/compare_metrics.py mq2008=S1.txt,S2.txt,S3.txt graded300=train.txt,test.txt ...

Each set is a name and its LETOR files, which are joined; labels are lowered so that the lowest is 0. The queries of a
set are divided at random into folds, differently for each seed: one fold to test, one to choose the number of rounds or
epochs by the metric that judges, the others to train. Trees are LightGBM's with 31 leaves and a learning rate of 0.1;
the network has two layers of 32 units. Nothing is tuned. A row of the result compares a model that was trained on a
metric with other models by that metric: the mean over all queries of paired differences, each the mean over the seeds,
and its standard error over queries.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import plrank_fast as plr
from plrank_fast.data import RankingData, concatenate, load_letor, normalize_queries

CUTOFF, FOLDS = 10, 3
METRICS = "ndcg", "mrr", "success", "err", "ap"
TITLES = {"ndcg": "NDCG", "mrr": "MRR", "success": "hit rate", "err": "ERR", "ap": "AP"}
ROUNDS, CHECKS = {"trees": 100, "network": 40}, 20  # of trees, or epochs, and how often scores are taken
LAMBDARANK, WITH_L2 = "lambdarank", "lambdarank, lambda_l2=20"
TRAINED = {"trees": (*METRICS, LAMBDARANK, WITH_L2), "network": (*METRICS, LAMBDARANK)}

Scores = tuple[np.ndarray, np.ndarray]  # of the validation and of the test data


def trees(parts: list[RankingData], trained_on: str, highest: float, seed: int, rounds: int) -> Iterator[Scores]:
    """Yield the scores after every few rounds of boosting."""
    import lightgbm

    import plrank_fast.lightgbm

    options = {"max_label": highest} if trained_on == "err" else {}
    objective: Any = "lambdarank"
    if trained_on in METRICS:
        objective = plrank_fast.lightgbm.Objective(
            metric=trained_on, cutoff=CUTOFF, method="exact", n_threads=1, **options
        )
    parameters = {
        "objective": objective, "lambda_l2": {LAMBDARANK: 0.0, WITH_L2: 20.0}.get(trained_on, 1.0), "metric": "None",
        "num_leaves": 31, "learning_rate": 0.1, "seed": seed, "num_threads": 1, "verbosity": -1,
        "bagging_fraction": 0.8, "bagging_freq": 1, "feature_fraction": 0.8,
    }  # fmt: skip
    train, vali, test = parts
    dataset = lightgbm.Dataset(train.features, train.labels, group=np.diff(train.offsets))
    booster = lightgbm.train(parameters, dataset, rounds)
    scores = np.zeros(vali.n_docs), np.zeros(test.n_docs)
    every = max(1, rounds // CHECKS)
    for first in range(0, rounds, every):
        for part, sums in zip((vali, test), scores, strict=True):
            sums += booster.predict(part.features, start_iteration=first, num_iteration=every, raw_score=True)
        yield scores[0].copy(), scores[1].copy()


def network(parts: list[RankingData], trained_on: str, highest: float, seed: int, rounds: int) -> Iterator[Scores]:
    """Yield the scores after every few epochs of Adam."""
    import torch

    from plrank_fast.torch import expected_metric_loss

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    train, *others = (normalize_queries(part).features.astype(np.float32) for part in parts)
    net = torch.nn.Sequential(
        torch.nn.Linear(train.shape[1], 32), torch.nn.ReLU(), torch.nn.Linear(32, 32), torch.nn.ReLU(),
        torch.nn.Linear(32, 1),
    )  # fmt: skip
    optimizer = torch.optim.Adam(net.parameters(), lr=0.003)
    options = {"max_label": highest} if trained_on == "err" else {}
    rng = np.random.default_rng(seed)
    for epoch in range(rounds):
        order = rng.permutation(parts[0].n_queries)
        for first in range(0, order.size, 32):
            rows, offsets = parts[0].rows_of(order[first : first + 32])
            scores, labels = net(torch.from_numpy(train[rows]))[:, 0], parts[0].labels[rows]
            optimizer.zero_grad()
            if trained_on == LAMBDARANK:
                _, slopes = plr.losses.lambda_rank(
                    scores.detach().numpy(), labels, cutoff=CUTOFF, offsets=offsets, n_threads=1
                )
                scores.backward(torch.from_numpy(slopes / (offsets.size - 1)).float())
            else:
                loss = expected_metric_loss(
                    scores, labels, offsets, metric=trained_on, cutoff=CUTOFF, method="exact", rtol=1e-3, n_threads=1,
                    **options,
                )  # fmt: skip
                loss.backward()
            optimizer.step()
        if (epoch + 1) % max(1, rounds // CHECKS) == 0:
            with torch.no_grad():
                vali, test = (net(torch.from_numpy(features))[:, 0].double().numpy() for features in others)
            yield vali, test


TRAINERS: dict[str, Callable[..., Iterator[Scores]]] = {"trees": trees, "network": network}


def judged(metric: str, scores: np.ndarray, data: RankingData, highest: float) -> np.ndarray:
    """Compute a metric of each query."""
    if metric == "ndcg":
        return plr.ndcg(scores, plr.gains(data.labels), cutoff=CUTOFF, offsets=data.offsets)
    if metric == "err":
        return plr.err(scores, data.labels, CUTOFF, max_label=highest, offsets=data.offsets)
    function = getattr(plr, metric)
    return function(scores, data.labels, CUTOFF, offsets=data.offsets)


def load(paths: list[Path], most: int) -> RankingData:
    """Load all files as one set, with grades from 0, and at most so many of the queries whose rankings differ."""
    width = max(load_letor(path).n_features for path in paths)
    data = concatenate([load_letor(path, n_features=width) for path in paths])
    data = replace(data, labels=data.labels - data.labels.min())
    relevant = np.add.reduceat(data.labels > 0.0, data.offsets[:-1])
    useful = np.flatnonzero((relevant > 0) & (relevant < np.diff(data.offsets)))
    return data[np.sort(np.random.default_rng(0).permutation(useful)[:most])]


def run(data: RankingData, kind: str, trained_on: str, rounds: int, seed: int, fold: int) -> dict[str, np.ndarray]:
    """Train once; return the metrics of all queries, NaN for those that are not of the test fold."""
    of_query = np.random.default_rng(seed).permutation(data.n_queries) % FOLDS
    chosen = [of_query == fold, of_query == (fold + 1) % FOLDS]
    parts = [data[np.flatnonzero(mask)] for mask in (~(chosen[0] | chosen[1]), chosen[1], chosen[0])]
    highest = float(data.labels.max())
    path = list(TRAINERS[kind](parts, trained_on, highest, seed, rounds))
    results = {}
    for metric in METRICS:
        values = [judged(metric, vali, parts[1], highest).mean() for vali, _ in path]
        results[metric] = np.full(data.n_queries, np.nan)
        results[metric][chosen[0]] = judged(metric, path[int(np.argmax(values))][1], parts[2], highest)
    return results


def difference(ours: np.ndarray, other: np.ndarray) -> str:
    """Return the mean of paired differences and its standard error, in thousandths."""
    paired = 1000.0 * (ours - other)
    return f"{paired.mean():+.1f} ({paired.std(ddof=1) / np.sqrt(paired.size):.1f})"


def main(arguments: list[str] | None = None) -> dict[str, dict[str, dict[str, np.ndarray]]]:
    """Print a table for each kind of model and each set, and for all sets together; return the metrics of queries."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", help="NAME=FILE,FILE,...")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--folds", type=int, default=FOLDS, help=f"test folds, of {FOLDS}")
    parser.add_argument("--most-queries", type=int, default=600, help="queries of a set, drawn at random")
    parser.add_argument("--kinds", nargs="+", choices=list(TRAINERS), default=list(TRAINERS))
    parser.add_argument("--rounds", type=int, help="trees, and epochs of the network (default: 100, and 40)")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args(arguments)
    sets = {}
    for each in options.sets:
        name, _, paths = each.partition("=")
        sets[name] = load([Path(path) for path in paths.split(",")], options.most_queries)
    seeds, folds = zip(*itertools.product(range(options.seeds), range(options.folds)), strict=True)
    tables: dict[str, dict[str, dict[str, np.ndarray]]] = {}
    with ProcessPoolExecutor(options.processes, get_context("spawn")) as pool:
        each_run = map if options.processes == 1 else pool.map
        for kind in options.kinds:
            tables[kind] = {trained_on: {metric: np.zeros(0) for metric in METRICS} for trained_on in TRAINED[kind]}
            for name, data in sets.items():
                rows: dict[str, dict[str, np.ndarray]] = {}
                for trained_on in TRAINED[kind]:
                    one = partial(run, data, kind, trained_on, options.rounds or ROUNDS[kind])
                    found = list(each_run(one, seeds, folds))
                    tested = ~np.isnan([values["ndcg"] for values in found]).all(axis=0)
                    rows[trained_on] = {
                        metric: np.nanmean([values[metric][tested] for values in found], axis=0) for metric in METRICS
                    }
                    for metric, values in rows[trained_on].items():
                        tables[kind][trained_on][metric] = np.append(tables[kind][trained_on][metric], values)
                show(f"{kind}, {name}", rows)
            show(f"{kind}, all sets", tables[kind])
    return tables


def show(title: str, rows: dict[str, dict[str, np.ndarray]]) -> None:
    """Print the mean of each metric by what was trained on, and the differences that training on it makes."""
    print(f"\n{title}: {rows['ndcg']['ndcg'].size} queries\n")
    print("| trained on | " + " | ".join(f"{TITLES[metric]}@{CUTOFF}" for metric in METRICS) + " |")
    print("|---" * (1 + len(METRICS)) + "|")
    for trained_on, values in rows.items():
        means = " | ".join(f"{values[metric].mean():.4f}" for metric in METRICS)
        print(f"| {TITLES.get(trained_on, trained_on)} | {means} |")
    others = ["ndcg", *(name for name in rows if name not in METRICS)]
    print(
        "\n| trained and judged, thousandths | "
        + " | ".join(f"less {TITLES.get(name, name)}" for name in others)
        + " |"
    )
    print("|---" * (1 + len(others)) + "|")
    for metric in METRICS:
        cells = [difference(rows[metric][metric], rows[name][metric]) if name != metric else "" for name in others]
        print(f"| {TITLES[metric]}@{CUTOFF} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
