"""Check that generated sets are harder for a linear model than for a network, and for a network than for trees.

    python examples/generated_sets.py [--shapes mslr yahoo istella] [--seeds 0 1 2] [--epochs 40]

The program prints the mean NDCG@10 over held-out queries of ridge regression, of the network of the PL-Rank papers and
of LightGBM's lambdarank. All see the same training queries, and validation queries choose the network's best epoch and
the number of trees. It needs PyTorch, scikit-learn and LightGBM.
"""

import argparse

import lightgbm
import numpy as np
from sklearn.linear_model import Ridge

import plrank_fast as plr
from plrank_fast.data import generate, normalize_queries
from plrank_fast.training.config import TrainingConfig
from plrank_fast.training.network import set_model_threads
from plrank_fast.training.trainer import TrainingRun

SPLITS = ("train", "vali", "test")
# Training queries and features, enough to keep a network from memorising its training queries.
SIZES = {"mslr": (150, None), "yahoo": (1500, 150), "istella": (200, None)}
STEPS = 20  # of the network in each epoch
TREES, PATIENCE = 300, 20
TREE_OPTIONS = {
    "objective": "lambdarank", "metric": "ndcg", "eval_at": [10], "num_leaves": 15, "min_data_in_leaf": 20,
    "num_threads": 1, "seed": 0, "verbose": -1,
}  # fmt: skip


def quality(scores, data):
    """Return NDCG@10, the mean over queries."""
    return plr.ndcg(scores, plr.gains(data.labels), cutoff=10, offsets=data.offsets).mean()


def network_scores(parts, shape, epochs):
    """Return the scores of the network at its best epoch on the validation queries."""
    steps = max(1, parts["train"].n_queries // STEPS)
    config = TrainingConfig(batch_queries=steps, learning_rate=0.02, objective="dataset")
    run = TrainingRun(config, None, {name: parts[name] for name in ("train", "vali")}, None, epochs=epochs)
    run.train()
    run.network.set_weights(run.best_weights)
    return run.network.scores(parts["test"].features)


def tree_scores(parts):
    """Return the scores of LightGBM with the number of trees that is best on the validation queries."""
    train, vali = (
        lightgbm.Dataset(d.features, d.labels, group=d.list_lengths) for d in (parts["train"], parts["vali"])
    )
    stop = lightgbm.early_stopping(PATIENCE, verbose=False)
    model = lightgbm.train(TREE_OPTIONS, train, TREES, valid_sets=[vali], callbacks=[stop])
    return model.predict(parts["test"].features)


def compare(shape, seed, n_queries=None, n_features=None, epochs=40):
    """Return NDCG@10 of the linear model, the network and the trees."""
    n_queries, n_features = n_queries or SIZES[shape][0], n_features or SIZES[shape][1]
    parts = {
        split: normalize_queries(generate(shape, n_queries, seed=seed, split=split, n_features=n_features))
        for split in SPLITS
    }
    linear = Ridge(1.0).fit(parts["train"].features, parts["train"].labels)
    scores = [
        linear.predict(parts["test"].features).astype(np.float64),
        network_scores(parts, shape, epochs),
        tree_scores(parts),
    ]
    return [quality(each, parts["test"]) for each in scores]


def main(arguments=None):
    """Print a row for each shape and seed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shapes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--queries", type=int, help="training queries, for other sizes than in the documents")
    parser.add_argument("--features", type=int)
    parser.add_argument("--epochs", type=int, default=40, help="of the network")
    options = parser.parse_args(arguments)
    set_model_threads(1)
    print(f"{'shape':8} {'seed':>4} {'linear':>7} {'network':>7} {'trees':>7}")
    rows = {}
    for shape in options.shapes:
        for seed in options.seeds:
            row = compare(shape, seed, options.queries, options.features, options.epochs)
            rows[shape, seed] = row
            print(f"{shape:8} {seed:4} {row[0]:7.3f} {row[1]:7.3f} {row[2]:7.3f}", flush=True)
    return rows


if __name__ == "__main__":
    main()
