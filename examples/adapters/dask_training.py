"""Train XGBoost and LightGBM on the expected NDCG on a Dask cluster, with partitions of whole queries.

python examples/adapters/dask_training.py
"""

import dask.array as da
import lightgbm
import numpy as np
import xgboost.dask
from dask.distributed import Client

import plrank_fast as plr
from plrank_fast import lightgbm as of_lightgbm
from plrank_fast import xgboost as of_xgboost
from plrank_fast.dask import group_sizes, query_numbers, whole_queries


def queries(n_queries=80, seed=0):
    """Make features, grades and the query of each document, in partitions that may split queries."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), rng.integers(5, 30, size=n_queries))
    X = rng.normal(size=(qid.size, 6))
    y = np.clip(np.rint(X[:, 0] - X[:, 1] + rng.normal(size=qid.size) / 2), 0, 3)
    rows = qid.size // 4
    return da.from_array(qid, rows), da.from_array(X, (rows, -1)), da.from_array(y, rows)


def main(**cluster):
    with Client(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", **cluster) as client:
        qid, X, y = whole_queries(*queries())  # now no query is in two partitions
        matrix = xgboost.dask.DaskDMatrix(client, X, y, qid=query_numbers(qid))
        trained = xgboost.dask.train(client, {"learning_rate": 0.1}, matrix, 30, obj=of_xgboost.Objective())
        ranker = lightgbm.DaskLGBMRanker(
            objective=of_lightgbm.Objective(), client=client, tree_learner="data", n_estimators=30,
            min_child_samples=5, reg_lambda=1.0, metric="None", verbosity=-1,
        )  # fmt: skip
        ranker.fit(X, y, group=group_sizes(qid))
        features, grades, offsets = X.compute(), y.compute(), plr.offsets_from_qid(qid.compute())
    scores = {
        "untrained": np.zeros(grades.size),
        "XGBoost": trained["booster"].predict(xgboost.DMatrix(features)),
        "LightGBM": ranker.booster_.predict(features),
    }
    return {name: plr.ndcg(each, plr.gains(grades), cutoff=10, offsets=offsets).mean() for name, each in scores.items()}


if __name__ == "__main__":
    for name, ndcg in main().items():
        print(f"{name:10} NDCG@10 {ndcg:.3f}")
