"""Compare boosted trees on expected NDCG with the ranking objectives of LightGBM, XGBoost and CatBoost on real data.

    python examples/compare_boosting.py RESULTS mq2008=S1.txt,S2.txt,S3.txt graded300=train.txt,test.txt ...

Each set is a name and its LETOR files, which are joined. There are 5 folds over queries (3 to train, 1 for validation,
1 for the test), and seeds for the sampling of rows and columns. All trees have at most 31 leaves (CatBoost: depth 5), a
learning rate of 0.1, and 80 % of rows and columns. Validation data choose the number of rounds and, in rows with
"best", the shrinkage of a library's own objective. RESULTS keeps a line of JSON for each run, which is not repeated.
"""

from __future__ import annotations

import argparse
import itertools
import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import plrank_fast as plr
import plrank_fast.catboost
import plrank_fast.lightgbm
import plrank_fast.xgboost
from plrank_fast.boosting import BoostingObjective, RankingMetric
from plrank_fast.data import RankingData, concatenate, load_letor

FOLDS = 5
PATIENCE = 50
BASELINE = "LightGBM lambdarank"
Outcome = tuple[np.ndarray, float, int]  # test scores, validation NDCG, rounds

# Each row of the table trains with a library, an objective and one of some shrinkages.
METHODS: dict[str, tuple[str, str, tuple[float, ...]]] = {
    BASELINE: ("lightgbm", "lambdarank", (0.0,)),
    "LightGBM lambdarank, best": ("lightgbm", "lambdarank", (0.0, 5.0, 20.0)),
    "LightGBM xendcg": ("lightgbm", "rank_xendcg", (0.0,)),
    "LightGBM xendcg, best": ("lightgbm", "rank_xendcg", (0.0, 5.0, 20.0)),
    "LightGBM, ours, exact": ("lightgbm", "exact", (1.0,)),
    "LightGBM, ours, cmc": ("lightgbm", "cmc", (1.0,)),
    "XGBoost rank:ndcg": ("xgboost", "rank:ndcg", (1.0,)),
    "XGBoost rank:ndcg, best": ("xgboost", "rank:ndcg", (1.0, 5.0, 20.0)),
    "XGBoost, ours, exact": ("xgboost", "exact", (1.0,)),
    "XGBoost, ours, cmc": ("xgboost", "cmc", (1.0,)),
    "CatBoost YetiRank": ("catboost", "YetiRank", (3.0,)),
    "CatBoost YetiRank, best": ("catboost", "YetiRank", (3.0, 20.0)),
    "CatBoost, ours, exact": ("catboost", "exact", (0.0,)),
    "CatBoost, ours, cmc": ("catboost", "cmc", (0.0,)),
}
OURS = ("exact", "cmc")


def sizes(data: RankingData) -> np.ndarray:
    """Return the number of documents of each query."""
    return np.diff(data.offsets)


def with_lightgbm(parts: list[RankingData], kind: str, shrinkage: float, seed: int, rounds: int) -> Outcome:
    """Train, choose rounds, score the test data."""
    import lightgbm

    train, vali, test = parts
    dataset = lightgbm.Dataset(train.features, train.labels, group=sizes(train))
    parameters = {
        "objective": plrank_fast.lightgbm.Objective(method=kind, seed=seed, n_threads=1) if kind in OURS else kind,
        "lambda_l2": shrinkage, "num_leaves": 31, "learning_rate": 0.1, "bagging_fraction": 0.8, "bagging_freq": 1,
        "feature_fraction": 0.8, "min_data_in_leaf": 20, "seed": seed, "num_threads": 1, "verbosity": -1,
        "metric": "None",
    }  # fmt: skip
    model = lightgbm.train(
        parameters, dataset, rounds,
        valid_sets=[dataset.create_valid(vali.features, vali.labels, group=sizes(vali))],
        feval=plrank_fast.lightgbm.Metric(n_threads=1),
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
    )  # fmt: skip
    best = model.best_score["valid_0"]["ndcg_plrank@10"]
    return np.asarray(model.predict(test.features)), best, model.best_iteration


def with_xgboost(parts: list[RankingData], kind: str, shrinkage: float, seed: int, rounds: int) -> Outcome:
    """Train, choose rounds, score the test data."""
    import xgboost

    matrices = [xgboost.DMatrix(part.features, part.labels) for part in parts]
    for matrix, part in zip(matrices, parts, strict=True):
        matrix.set_group(sizes(part))
    parameters = {
        "max_leaves": 31, "max_depth": 0, "grow_policy": "lossguide", "learning_rate": 0.1, "subsample": 0.8,
        "colsample_bytree": 0.8, "reg_lambda": shrinkage, "seed": seed, "nthread": 1, "disable_default_eval_metric": 1,
    }  # fmt: skip
    objective = plrank_fast.xgboost.Objective(method=kind, seed=seed, n_threads=1) if kind in OURS else None
    model = xgboost.train(
        parameters if objective else parameters | {"objective": kind}, matrices[0], rounds, obj=objective,
        evals=[(matrices[1], "vali")], custom_metric=plrank_fast.xgboost.Metric(n_threads=1), verbose_eval=False,
        callbacks=[xgboost.callback.EarlyStopping(PATIENCE, metric_name="ndcg_plrank@10", maximize=True)],
    )  # fmt: skip
    best = model.best_iteration + 1
    return model.predict(matrices[2], iteration_range=(0, best)), float(model.best_score), best


def with_catboost(parts: list[RankingData], kind: str, shrinkage: float, seed: int, rounds: int) -> Outcome:
    """Train, choose rounds, score the test data."""
    import catboost

    train, vali, test = (
        catboost.Pool(part.features, part.labels, group_id=np.repeat(np.arange(part.n_queries), sizes(part)))
        for part in parts
    )
    parameters = {
        "depth": 5, "learning_rate": 0.1, "rsm": 0.8, "bootstrap_type": "Bernoulli", "subsample": 0.8,
        "random_seed": seed, "thread_count": 1, "verbose": 0, "allow_writing_files": False,
    }  # fmt: skip
    metric = RankingMetric(n_threads=1)
    if kind in OURS:
        history: dict[str, list[float]] = {}
        model = plrank_fast.catboost.train(
            parameters, train, rounds, objective=BoostingObjective(method=kind, seed=seed, n_threads=1), metric=metric,
            eval_pool=vali, early_stopping_rounds=PATIENCE, evals_result=history,
        )  # fmt: skip
        return model.predict(parts[2].features), max(history[metric.name]), model.tree_count_
    model = catboost.CatBoost(parameters | {"loss_function": kind, "iterations": rounds, "l2_leaf_reg": shrinkage})
    model.fit(train)
    values = [metric.evaluate(scores, parts[1].labels, parts[1].offsets) for scores in model.staged_predict(vali)]
    best = int(np.argmax(values)) + 1
    return model.predict(test, ntree_end=best), max(values), best


TRAINERS: dict[str, Callable[..., Outcome]] = {
    "lightgbm": with_lightgbm,
    "xgboost": with_xgboost,
    "catboost": with_catboost,
}


def load(paths: list[Path]) -> RankingData:
    """Load all files as one set, with grades from 0."""
    width = max(load_letor(path).n_features for path in paths)
    data = concatenate([load_letor(path, n_features=width, dtype=np.float32) for path in paths])
    return replace(data, labels=data.labels - data.labels.min())


def some_queries(data: RankingData, queries: np.ndarray) -> RankingData:
    """Return a part of a data set."""
    rows, offsets = data.rows_of(queries)
    return replace(
        data, features=data.features[rows], labels=data.labels[rows], offsets=offsets, query_ids=data.query_ids[queries]
    )


class Results:
    """The results of all runs, as lines of JSON in a file and as a dictionary."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[str, Any] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                key, value = json.loads(line)
                self.known[key] = value

    def get(self, key: str, run: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result under ``key``; run it if it is not known."""
        if key not in self.known:
            self.known[key] = run(*arguments)
            with self.path.open("a") as file:
                file.write(json.dumps([key, self.known[key]]) + "\n")
        return self.known[key]


def one_run(
    data: RankingData, folds: list[np.ndarray], fold: int, library: str, kind: str, shrinkage: float, seed: int,
    rounds: int,
) -> dict[str, Any]:  # fmt: skip
    """Train once; return the validation NDCG and the test NDCG of each query."""
    held = (fold, (fold + 1) % FOLDS)
    train = np.sort(np.concatenate([folds[other] for other in range(FOLDS) if other not in held]))
    parts = [some_queries(data, queries) for queries in (train, folds[held[1]], folds[held[0]])]
    scores, vali, best = TRAINERS[library](parts, kind, shrinkage, seed, rounds)
    test = parts[2]
    values = plr.ndcg(scores, plr.gains(test.labels), plr.dcg_weights(10), offsets=test.offsets)
    return {"vali": vali, "rounds": best, "test": np.round(values, 6).tolist()}


def table(name: str, ndcgs: dict[str, np.ndarray]) -> None:
    """Lay out the rows of one set: NDCG@10, and the difference from the baseline with its standard error."""
    print(f"\n| {name} | NDCG@10 | to lambdarank | to lambdarank, best |")
    print("|---|---|---|---|")
    for method, values in ndcgs.items():
        cells = [f"{values.mean():.4f}"]
        for other in (BASELINE, f"{BASELINE}, best"):
            difference = values - ndcgs[other]
            error = difference.std(ddof=1) / np.sqrt(difference.size)
            cells.append("" if method == other else f"{difference.mean():+.4f} ± {error:.4f}")
        print(f"| {method} | " + " | ".join(cells) + " |")


def main() -> None:
    """Run the missing trainings and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="file for the results")
    parser.add_argument("sets", nargs="+", help="name=file,file,...")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=300, help="largest number of rounds")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    results = Results(arguments.results)
    methods = list(dict.fromkeys([BASELINE, f"{BASELINE}, best", *arguments.methods]))
    for name, files in (item.split("=", 1) for item in arguments.sets):
        data = load([Path(file) for file in files.split(",")])
        folds = np.array_split(np.random.default_rng(0).permutation(data.n_queries), FOLDS)
        folds = [np.sort(fold) for fold in folds]
        ndcgs = {}
        for method in methods:
            library, kind, shrinkages = METHODS[method]
            total = np.zeros(data.n_queries)
            for seed, fold in itertools.product(range(arguments.seeds), range(FOLDS)):
                runs = []
                for shrinkage in shrinkages:
                    key = f"{name} {library} {kind} {shrinkage} seed {seed} fold {fold} of {arguments.rounds}"
                    given = (data, folds, fold, library, kind, shrinkage, seed, arguments.rounds)
                    runs.append(results.get(key, one_run, *given))
                total[folds[fold]] += max(runs, key=lambda run: run["vali"])["test"]
            ndcgs[method] = total / arguments.seeds
        table(f"{name}, {data.n_queries} queries, {data.n_docs} documents", ndcgs)


if __name__ == "__main__":
    main()
