"""CatBoost's symmetric trees on the gradient of expected NDCG.

CatBoost calls an objective written in Python with blocks of at most 1000 documents and without their groups, even for
data with groups, so a ranking objective cannot be passed to it. What it does allow is to fit one tree at a time.
`train` hands it each round's Newton step, -gradient / curvature, as the residual of a weighted regression; the value of
a leaf is then what boosting with that gradient and curvature gives,

    -sum gradient / (sum curvature + l2_leaf_reg * mean curvature),

and ``l2_leaf_reg`` is in units of average documents by CatBoost's own definition.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plrank_fast import validation
from plrank_fast.boosting import BoostingObjective, RankingMetric
from plrank_fast.extras import import_extra
from plrank_fast.offsets import offsets_from_qid
from plrank_fast.validation import FloatArray, IntArray

GROUPS = "pass group_id= to catboost.Pool"

# What makes one tree of CatBoost's a Newton step: nothing is averaged in beforehand, and there is one step per leaf.
NEWTON_STEP: dict[str, Any] = {
    "loss_function": "RMSE",
    "iterations": 1,
    "boosting_type": "Plain",
    "boost_from_average": False,
    "leaf_estimation_method": "Newton",
    "leaf_estimation_iterations": 1,
}
# Which of the parameters belong to the borders of features, which are drawn once for all trees.
QUANTIZATION = ("border_count", "max_bin", "feature_border_type", "nan_mode", "ignored_features", "input_borders")
# Noise on the scores of splits is left out, because it would not fade over the rounds as it does within CatBoost.
DEFAULTS: dict[str, Any] = {"learning_rate": 0.1, "random_strength": 0.0, "allow_writing_files": False, "verbose": 0}


def train(
    parameters: dict[str, Any],
    pool: Any,
    num_boost_round: int = 100,
    *,
    objective: BoostingObjective | None = None,
    eval_pool: Any = None,
    metric: RankingMetric | None = None,
    early_stopping_rounds: int | None = None,
    evals_result: dict[str, list[float]] | None = None,
) -> Any:
    """Boost CatBoost's trees on a ranking objective.

    Parameters
    ----------
    parameters : dict
        Parameters of ``catboost.CatBoost``; those of one regression step (``NEWTON_STEP``) are set here. By default
        ``learning_rate`` is 0.1 and ``l2_leaf_reg`` the objective's shrinkage.
    pool : catboost.Pool
        Documents with labels and ``group_id``. Weights, if it has any, must be the same for all documents of a query.
        Scores start from its ``baseline``. It is not changed.
    num_boost_round : int
        Number of trees.
    objective : BoostingObjective, optional
        ``BoostingObjective()`` by default.
    eval_pool : catboost.Pool, optional
        Documents on which ``metric`` is reported each round.
    metric : RankingMetric, optional
        ``RankingMetric()`` by default, which is ``NDCG@10``.
    early_stopping_rounds : int, optional
        Stop when the metric of ``eval_pool`` has not risen for so many rounds, and keep the trees up to its best.
    evals_result : dict, optional
        Filled with the metric of each round, a list under the metric's name.

    Returns
    -------
    catboost.CatBoost
        The sum of the trees.

    Raises
    ------
    ImportError
        If CatBoost is not installed.
    TypeError, ValueError
        If an argument is not as described, or a pool has no groups.

    Notes
    -----
    Every tree is a call of CatBoost, which takes a few to some tens of milliseconds more than a tree of its
    own loop. Its ordered boosting and its weights of groups are not available.
    """
    catboost = import_extra("catboost", "catboost")
    rounds = validation.count(num_boost_round, "num_boost_round", 1)
    patience = None
    if early_stopping_rounds is not None:
        patience = validation.count(early_stopping_rounds, "early_stopping_rounds", 1)
        validation.required(eval_pool, "eval_pool", "early_stopping_rounds")
    objective = BoostingObjective() if objective is None else objective
    metric = RankingMetric() if metric is None else metric
    labels, offsets, weights, scores = _read(pool)
    settings = {**DEFAULTS, "l2_leaf_reg": objective.shrinkage, **parameters, **NEWTON_STEP}
    seed = validation.count(settings.pop("random_seed", 0), "random_seed", 0)
    threads = settings.get("thread_count", -1)
    new_tree = _model_without_importances(catboost)
    evaluation = None if eval_pool is None else _read(eval_pool)
    history: list[float] = [] if evals_result is None else evals_result.setdefault(metric.name, [])
    history.clear()

    steps = pool.slice(np.arange(labels.size))  # a pool of our own, whose weights and baseline may change
    if not steps.is_quantized():
        steps.quantize(**{name: settings[name] for name in QUANTIZATION if name in settings})
    trees: list[Any] = []
    best = 0
    for number in range(objective.first_round, objective.first_round + rounds):
        gradient, curvature = objective.derivatives(scores, labels, offsets, weights=weights, round_number=number)
        steps.set_weight(curvature)
        steps.set_baseline((labels + gradient / curvature)[:, np.newaxis])  # residual: label less baseline
        tree = new_tree({**settings, "random_seed": seed + number})
        tree.fit(steps)
        trees.append(tree)
        scores += _values(tree, steps, threads)
        if evaluation is not None:
            eval_labels, eval_offsets, eval_weights, eval_scores = evaluation
            eval_scores += _values(tree, eval_pool, threads)
            history.append(metric.evaluate(eval_scores, eval_labels, eval_offsets, weights=eval_weights))
            if history[-1] > history[best]:
                best = len(history) - 1
            if patience is not None and len(history) - 1 - best >= patience:
                break
    if patience is not None:
        trees = trees[: best + 1]
    return catboost.sum_models(trees)


def _model_without_importances(catboost: Any) -> Any:
    """Class of models whose ``fit`` ends when the tree is there.

    CatBoost's own goes on to the importances of the features, for which it starts and ends a team of threads, whatever
    ``thread_count`` says. That is nearly nothing for a model, but here it would be once for each tree, and there its
    wait for the end of the threads was once seen to last for ever, on a busy machine.
    """

    class Model(catboost.CatBoost):  # type: ignore[misc]
        def get_feature_importance(self, *_: Any, **__: Any) -> None:
            return None

    return Model


def _values(tree: Any, pool: Any, threads: int) -> FloatArray:
    """What a model of one tree adds to each document's score, whatever the pool's baseline."""
    values: FloatArray = np.asarray(tree.get_leaf_values(), dtype=np.float64)
    return values[np.asarray(tree.calc_leaf_indexes(pool, thread_count=threads))[:, 0]]


def _read(pool: Any) -> tuple[FloatArray, IntArray, FloatArray | None, FloatArray]:
    """Labels, offsets, weights of queries and scores to begin with."""
    labels = validation.real_array(np.asarray(pool.get_label(), dtype=np.float64), "labels")
    offsets = offsets_from_qid(validation.groups_of(pool.get_group_id_hash(), GROUPS))
    weights = validation.weights_of_queries(np.asarray(pool.get_weight()), offsets)
    baseline = np.asarray(pool.get_baseline(), dtype=np.float64)
    return labels, offsets, weights, baseline.ravel() if baseline.size else np.zeros(labels.size)
