"""Compare the test NDCG@10 of all training methods after the same seconds, with the papers' network and several seeds.

    python examples/compare_methods.py FOLDER [--seconds 5] [--seeds 5] [--methods pl_rank_3 lambda_rank ...]

FOLDER holds mq2008/S1.txt, S2.txt, S3.txt (train, validation, test) and graded300/train.txt, test.txt (every fifth
training query is for validation). All methods use Adam, and the validation data choose the best epoch by each method's
objective. The program prints a table in Markdown. Cheaper methods reach more epochs.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import plrank_fast as plr
from plrank_fast._methods.registry import ESTIMATORS
from plrank_fast.data import RankingData, load_letor, normalize_queries
from plrank_fast.training.config import LOSSES, TrainingConfig
from plrank_fast.training.evaluation import evaluate_scores
from plrank_fast.training.sources import Splits, with_columns
from plrank_fast.training.trainer import TrainingRun

CUTOFF = 10
SAMPLES = {"cmc": 1}  # rankings per query and gradient of the sampled methods, 100 for the others


def some_queries(data: RankingData, queries: np.ndarray, name: str) -> RankingData:
    """Return a part of a data set."""
    rows, offsets = data.rows_of(queries)
    return replace(
        data,
        features=data.features[rows],
        labels=data.labels[rows],
        offsets=offsets,
        query_ids=data.query_ids[queries],
        name=name,
    )


def load(folder: Path, name: str) -> Splits:
    """Load training, validation and test data, normalised within queries."""
    files = ("S1.txt", "S2.txt", "S3.txt") if name == "mq2008" else ("train.txt", "test.txt")
    parts = [load_letor(folder / name / file, dtype=np.float32) for file in files]
    widest = max(part.n_features for part in parts)
    parts = [normalize_queries(with_columns(part, widest)) for part in parts]
    if len(parts) == 2:
        every = np.arange(parts[0].n_queries)
        parts[:1] = [some_queries(parts[0], every[every % 5 != 0], "train"), some_queries(parts[0], every[::5], "vali")]
    return dict(zip(("train", "vali", "test"), parts, strict=True))


def ndcg_on_test(method: str, splits: Splits, seed: int, seconds: float, learning_rate: float) -> tuple[float, int]:
    """Train for some seconds; return NDCG@10 on the test data and the number of epochs."""
    config = TrainingConfig(
        method=method, cutoff=CUTOFF, samples=SAMPLES.get(method, 100), objective="query", optimizer="adam",
        learning_rate=learning_rate, batch_queries=32, seed=seed,
    )  # fmt: skip
    run = TrainingRun(config, None, splits, None, minutes=seconds / 60, n_threads=1)
    run.train()
    run.network.set_weights(run.best_weights)
    scores = run.network.scores(splits["test"].features)
    metrics = evaluate_scores(scores, splits["test"].labels, splits["test"].offsets, cutoff=CUTOFF)
    return metrics["ndcg_query"], run.progress.epoch


def cost_per_query(method: str, splits: Splits) -> float:
    """Return the microseconds of the gradient per training query, on one thread, for scores of unit variance."""
    from plrank_fast.training.loss import gradient

    train = splits["train"]
    scores = np.random.default_rng(0).normal(size=train.n_docs)
    relevance, weights = plr.gains(train.labels), plr.dcg_weights(CUTOFF)
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        gradient(
            method, scores, relevance, weights, offsets=train.offsets, n_samples=SAMPLES.get(method, 100),
            rng=np.random.SeedSequence(0), n_threads=1, labels=train.labels,
        )  # fmt: skip
        best = min(best, time.perf_counter() - start)
    return 1e6 * best / train.n_queries


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=5.0, help="seconds of training for each method and seed")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--learning-rate", type=float, default=0.003)
    parser.add_argument("--data", nargs="+", default=["mq2008", "graded300"])
    parser.add_argument("--methods", nargs="+", default=[*ESTIMATORS, *LOSSES])
    arguments = parser.parse_args()
    sets = {name: load(arguments.folder, name) for name in arguments.data}
    print("| method | " + " | ".join(f"{name}: NDCG@10, epochs, µs per query" for name in sets) + " |")
    print("|---|" + "---|" * len(sets))
    for method in arguments.methods:
        cells = []
        for splits in sets.values():
            runs = [
                ndcg_on_test(method, splits, seed, arguments.seconds, arguments.learning_rate)
                for seed in range(arguments.seeds)
            ]
            values = np.array([value for value, _ in runs])
            error = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else float("nan")
            epochs = np.mean([epoch for _, epoch in runs])
            cells.append(f"{values.mean():.4f} ± {error:.4f}, {epochs:.0f}, {cost_per_query(method, splits):.1f}")
        print(f"| `{method}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
