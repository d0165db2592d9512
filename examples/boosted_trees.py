"""Train boosted trees on expected NDCG and with LightGBM's own objective, and print NDCG@10 on test data.

    python examples/boosted_trees.py TRAIN VALI TEST      # LETOR files
    python examples/boosted_trees.py                      # a generated set

Needs ``pip install ".[lightgbm]"``.
"""

from __future__ import annotations

import argparse
from typing import Any

import lightgbm
import numpy as np

import plrank_fast as plr
from plrank_fast.data import RankingData, generate, load_letor
from plrank_fast.lightgbm import Metric, Objective


def load(paths: list[str], queries: int) -> list[RankingData]:
    """Load training, validation and test data, with the columns of the first."""
    if not paths:
        return [generate("yahoo", queries, n_features=60, split=split) for split in ("train", "vali", "test")]
    train = load_letor(paths[0])
    return [train, *(load_letor(path, n_features=train.n_features) for path in paths[1:])]


def train(parameters: dict[str, Any], parts: list[RankingData], rounds: int) -> lightgbm.Booster:
    """Boost until the NDCG@10 of the validation data has not improved for 50 rounds."""
    data, vali, _ = parts
    dataset = lightgbm.Dataset(data.features, data.labels, group=np.diff(data.offsets))
    return lightgbm.train(
        {"verbosity": -1, "metric": "None", "learning_rate": 0.1} | parameters,
        dataset,
        rounds,
        valid_sets=[dataset.create_valid(vali.features, vali.labels, group=np.diff(vali.offsets))],
        feval=Metric(cutoff=10),
        callbacks=[lightgbm.early_stopping(50, verbose=False)],
    )


def main() -> None:
    """Train and print both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="LETOR files: train, validation, test")
    parser.add_argument("--queries", type=int, default=500, help="queries of each part of the generated set")
    parser.add_argument("--rounds", type=int, default=500)
    arguments = parser.parse_args()
    if len(arguments.files) not in (0, 3):
        parser.error(f"pass three files or none, got {len(arguments.files)}")
    parts = load(arguments.files, arguments.queries)
    test = parts[2]
    for name, parameters in (
        ("expected NDCG", {"objective": Objective(), "lambda_l2": 1.0}),
        ("lambdarank", {"objective": "lambdarank"}),
    ):
        booster = train(parameters, parts, arguments.rounds)
        values = plr.ndcg(
            booster.predict(test.features), plr.gains(test.labels), plr.dcg_weights(10), offsets=test.offsets
        )
        print(f"{name:14} NDCG@10 {np.mean(values):.4f} after {booster.best_iteration} rounds")


if __name__ == "__main__":
    main()
