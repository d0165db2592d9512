"""Measure the time of a round of boosting with our objective over one with the library's own ranking objective.

    python examples/time_rounds.py [mq2008=S1.txt,S2.txt,S3.txt ...] [--lengths 8 1000]

Sets are a name and LETOR files; lengths belong to generated lists. Rounds of both take turns in one process on one
thread. A ratio compares the medians of the faster half of the rounds, in processor time. LightGBM's own objectives
are lambdarank and rank_xendcg, XGBoost's is rank:ndcg, CatBoost's YetiRank.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import catboost
import lightgbm
import numpy as np
import xgboost
from compare_boosting import load

import plrank_fast.catboost
import plrank_fast.lightgbm
import plrank_fast.xgboost
from plrank_fast.boosting import BoostingObjective
from plrank_fast.data import RankingData

LENGTHS = (8, 16, 32, 64, 128, 256, 512, 1000)
Round = Callable[[], object]


def generated(length: int, n_docs: int, n_features: int) -> RankingData:
    """Generate lists of one length with grades 0 to 4, on which five features depend."""
    rng = np.random.default_rng(length)
    n_queries = max(2, n_docs // length)
    features = rng.normal(size=(n_queries * length, n_features)).astype(np.float32)
    labels = np.digitize(features[:, :5].sum(axis=1) / 2 + rng.normal(size=len(features)), [0.05, 1.0, 2.0, 2.6])
    offsets = np.arange(n_queries + 1) * length
    return RankingData(features, labels.astype(np.float64), offsets, np.arange(n_queries), f"lists of {length}")


def of_lightgbm(data: RankingData, ours: bool, own: str) -> Round:
    """Return a function that runs a round of LightGBM with our objective, or with one of its own."""
    parameters = {"objective": "none" if ours else own, "lambda_l2": float(ours), "num_leaves": 31}
    parameters |= {"learning_rate": 0.1, "num_threads": 1, "verbosity": -1, "metric": "None"}
    dataset = lightgbm.Dataset(data.features, data.labels, group=np.diff(data.offsets))
    booster = lightgbm.Booster(parameters, dataset)
    objective = plrank_fast.lightgbm.Objective(n_threads=1) if ours else None
    return lambda: booster.update(fobj=objective)


def of_xgboost(data: RankingData, ours: bool) -> Round:
    """Return a function that runs a round of XGBoost."""
    parameters = {"max_leaves": 31, "max_depth": 0, "grow_policy": "lossguide", "learning_rate": 0.1, "nthread": 1}
    matrix = xgboost.DMatrix(data.features, data.labels)
    matrix.set_group(np.diff(data.offsets))
    booster = xgboost.Booster(parameters if ours else parameters | {"objective": "rank:ndcg"}, [matrix])
    objective = plrank_fast.xgboost.Objective(n_threads=1) if ours else None
    numbers = iter(range(10**6))
    return lambda: booster.update(matrix, next(numbers), objective)


def of_catboost(data: RankingData, ours: bool) -> Round:
    """Return a function that runs ten rounds of CatBoost with the start of a training: it has no single rounds."""
    parameters = {"depth": 5, "learning_rate": 0.1, "thread_count": 1, "verbose": 0, "allow_writing_files": False}
    query = np.repeat(np.arange(data.n_queries), np.diff(data.offsets))
    pool = catboost.Pool(data.features, data.labels, group_id=query)
    pool.quantize()
    if ours:
        objective = BoostingObjective(n_threads=1)
        return lambda: plrank_fast.catboost.train(parameters, pool, 10, objective=objective)
    return lambda: catboost.CatBoost(parameters | {"loss_function": "YetiRank", "iterations": 10}).fit(pool)


def ratio(data: RankingData, rounds_of: Callable[[RankingData, bool], Round], turns: int) -> float:
    """Return the time of our objective over the time of the library's own."""
    seconds = np.zeros((turns, 2))
    both = [rounds_of(data, ours) for ours in (False, True)]
    for turn in range(turns):
        for column, one_round in enumerate(both):
            start = time.process_time()
            one_round()
            seconds[turn, column] = time.process_time() - start
    own, ours = np.median(np.sort(seconds, axis=0)[: (turns + 1) // 2], axis=0)
    return float(ours / own)


def main() -> None:
    """Print a row for each set or length."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", help="name=file,file,...")
    parser.add_argument("--lengths", nargs="*", type=int, default=LENGTHS, help="lengths of generated lists")
    parser.add_argument("--docs", type=int, default=16_000)
    parser.add_argument("--features", type=int, default=40)
    parser.add_argument("--turns", type=int, default=40)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    print("| | lambdarank | rank_xendcg | rank:ndcg | YetiRank |\n|---|---|---|---|---|")
    named = [item.split("=", 1) for item in arguments.sets]
    sets = [(name, load([Path(file) for file in files.split(",")])) for name, files in named]
    sets += [(length, generated(length, arguments.docs, arguments.features)) for length in arguments.lengths]
    for name, data in sets:
        peers = [partial(of_lightgbm, own="lambdarank"), partial(of_lightgbm, own="rank_xendcg"), of_xgboost]
        cells = [ratio(data, peer, arguments.turns) for peer in peers]
        cells.append(ratio(data, of_catboost, max(3, arguments.turns // 10)))
        print(f"| {name} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
