"""CatBoost's symmetric trees on the gradient of expected NDCG.

CatBoost calls an objective written in Python with blocks of at most 1000 documents and without their groups, even for
data with groups, so a ranking objective cannot be passed to it. `train` therefore fits one tree at a time: it passes
each round's Newton step, -gradient / curvature, as the residual of a weighted regression. The value of a leaf is then
the same as in boosting with this gradient and curvature,

    -sum gradient / (sum curvature + l2_leaf_reg * mean curvature),

and ``l2_leaf_reg`` is in units of average documents by CatBoost's own definition.

Each tree is a model of its own. CatBoost turns a category of many values into statistics of the labels, for its own
losses only of documents that come earlier in a random order. Here the splits are found by such statistics, but the
scores at which the next gradient is computed use the statistics of all documents, the document's own label included.
Categories of rare values therefore help less: in two runs on 300 generated queries a category of 1000 values raised the
NDCG@10 by .005, and YetiRank's by .024; one of 100 values by .028 and .037, and one of 8 by .029 and .032. With a
``one_hot_max_size`` of at least the number of values there are no statistics.
"""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from plrank_fast import validation
from plrank_fast._adapters import searches
from plrank_fast._adapters.searches import BaseEstimator
from plrank_fast._shared.extras import import_extra
from plrank_fast.boosting import BoostingObjective, RankingMetric
from plrank_fast.offsets import offsets_from_qid
from plrank_fast.validation import FloatArray, IntArray

if TYPE_CHECKING:
    import catboost
else:
    catboost = import_extra("catboost", "catboost")

__all__ = ["Ranker", "cv", "train"]


def __dir__() -> list[str]:
    return __all__


GROUPS = "pass group_id= to catboost.Pool"
GROUP_WEIGHTS = (
    "pool must not have group_weight, which cannot be read: pass weight=, the weight of each document's query"
)
WEIGHT_ROUNDING = 1e-5  # CatBoost keeps weights in float32

# With these settings one tree of CatBoost's is a Newton step: one step per leaf, without an average to start from.
ONE_TREE: dict[str, Any] = {"loss_function": "RMSE", "iterations": 1, "verbose": 0}
NEWTON_STEP: dict[str, Any] = {
    "boosting_type": "Plain",
    "boost_from_average": False,
    "leaf_estimation_method": "Newton",
    "leaf_estimation_iterations": 1,
}
# Scores of splits have no noise, because it would not fade over the rounds as it does within CatBoost.
DEFAULTS: dict[str, Any] = {
    "learning_rate": 0.1,
    "random_strength": 0.0,
    "allow_writing_files": False,
    "iterations": 100,
    "random_seed": 0,
    "od_type": "Iter",
}
FEATURE_KINDS = ("cat_features", "text_features", "embedding_features")
OWN = ("_history", "_kinds", "_metadata_request", "_n_features", "feature_names_in_", "n_queries_")  # kept in pickles
OF_PRINTING = ("verbose", "verbose_eval", "silent", "logging_level", "metric_period")
# These are parameters of whole models, which a training of single trees cannot apply.
OF_MODELS = (
    *("od_pval", "custom_metric", "best_model_min_trees", "eval_fraction"),
    *("save_snapshot", "snapshot_file", "snapshot_interval"),
    *("model_shrink_rate", "model_shrink_mode", "langevin", "diffusion_temperature", "posterior_sampling"),
    *("first_feature_use_penalties", "per_object_feature_penalties"),
)


def train(
    parameters: dict[str, Any],
    pool: Any,
    num_boost_round: int | None = None,
    *,
    objective: BoostingObjective | None = None,
    eval_pool: Any = None,
    metric: RankingMetric | None = None,
    early_stopping_rounds: int | None = None,
    init_model: Any = None,
    evals_result: dict[str, list[float]] | None = None,
) -> Any:
    """Boost CatBoost's trees on a ranking objective.

    Parameters
    ----------
    parameters : dict
        Parameters of ``catboost.CatBoost`` by any of their names, but those that only apply to whole models.
        ``loss_function``, ``eval_metric``, ``iterations`` and ``early_stopping_rounds`` may be given here or passed as
        ``objective``, ``metric``, ``num_boost_round`` and ``early_stopping_rounds``. By default ``learning_rate`` is
        0.1, ``l2_leaf_reg`` the objective's shrinkage, and nothing is printed.
    pool : catboost.Pool
        Documents with labels and ``group_id``. Weights, if it has any, come from ``weight=``, the same for all
        documents of a query: CatBoost hides ``group_weight``, which is refused. Scores start from its ``baseline``. It
        is not changed.
    num_boost_round : int, optional
        Number of trees; 100 by default.
    objective : BoostingObjective, optional
        ``BoostingObjective()`` by default.
    eval_pool : catboost.Pool, optional
        Documents on which ``metric`` is reported each round.
    metric : RankingMetric, optional
        NDCG@10 with the gain of the objective by default.
    early_stopping_rounds : int, optional
        Stop when the metric of ``eval_pool`` has not risen for this many rounds, and keep the trees up to its best.
    init_model : catboost.CatBoost, optional
        A model of ``train`` to go on from. Rounds are counted from the number of its trees, so that the result is the
        model of a single training up to rounding.
    evals_result : dict, optional
        Receives the metric of each round, a list under the metric's name.

    Returns
    -------
    catboost.CatBoost
        The sum of the trees.

    Raises
    ------
    catboost.CatBoostError
        If CatBoost refuses a parameter, or a parameter is given by two names.

    Notes
    -----
    Every tree is a call of CatBoost, which takes a few to some tens of milliseconds more than in CatBoost's own loop.
    """
    given = {"num_boost_round": num_boost_round, "objective": objective, "eval_metric": metric}
    given |= {"early_stopping_rounds": early_stopping_rounds}
    settings = _settings(parameters, {name: value for name, value in given.items() if value is not None})
    objective, metric = settings.pop("loss_function"), settings.pop("eval_metric")
    rounds, patience = settings.pop("iterations"), settings.pop("od_wait", None)
    use_best, every = settings.pop("use_best_model", patience is not None), settings.pop("metric_period")
    if patience is not None or use_best:
        validation.given(eval_pool, "eval_pool", " for early_stopping_rounds and use_best_model")
    seed, threads = settings.pop("random_seed"), settings.get("thread_count", -1)
    labels, offsets, weights, scores = _read(pool, init_model)
    evaluation = None if eval_pool is None else _read(eval_pool, init_model)
    history: list[float] = [] if evals_result is None else evals_result.setdefault(metric.name, [])
    history.clear()

    steps = pool.slice(np.arange(labels.size))  # a pool of our own, whose weights and baseline may change
    if not steps.is_quantized():
        steps.quantize(**{name: settings[name] for name in signature(steps.quantize).parameters if name in settings})
    # CatBoost finds leaves by categories of two values in the caller's pool alone, and in a quantised pool faster.
    for_leaves = pool if pool.get_cat_feature_indices() else steps
    baseline = [[0.0] for _ in labels]  # CatBoost reads an array, which set_baseline makes, a tenth as fast
    trees: list[Any] = []
    best = 0
    first = objective.first_round + (0 if init_model is None else init_model.tree_count_)
    for number in range(first, first + rounds):
        gradient, curvature = objective.derivatives(scores, labels, offsets, weights=weights, round_number=number)
        steps.set_weight(curvature.tolist())  # it reads an array half as fast
        for row, value in zip(baseline, (labels + gradient / curvature).tolist(), strict=True):
            row[0] = value  # the residual is label less baseline
        steps._set_baseline(baseline)
        tree = _Tree({**settings, **ONE_TREE, "random_seed": seed + number})
        tree.fit(steps)
        if not trees:  # group weights would multiply the steps' weights
            total = curvature.sum()
            validation.require(abs(sum(tree.get_leaf_weights()) - total) <= WEIGHT_ROUNDING * total, GROUP_WEIGHTS)
        trees.append(tree)
        scores += _values(tree, for_leaves, threads)
        if evaluation is not None:
            eval_labels, eval_offsets, eval_weights, eval_scores = evaluation
            eval_scores += _values(tree, eval_pool, threads)
            history.append(metric.evaluate(eval_scores, eval_labels, eval_offsets, weights=eval_weights))
            if every and len(trees) % every == 0:
                print(f"{number}:\t{metric.name}: {history[-1]:.7f}")
            if history[-1] > history[best]:
                best = len(history) - 1
            if patience is not None and len(history) - 1 - best >= patience:
                break
    if use_best:
        trees = trees[: best + 1]
    return catboost.sum_models(trees if init_model is None else [init_model, *trees])


@validation.hinted
def cv(
    parameters: dict[str, Any],
    pool: Any,
    num_boost_round: int | None = None,
    *,
    fold_count: int = 3,
    partition_random_seed: int = 0,
    metric: RankingMetric | None = None,
    **options: Any,
) -> dict[str, FloatArray]:
    """Cross-validate `train` on folds of whole queries.

    Parameters
    ----------
    parameters : dict
        Parameters of ``catboost.CatBoost`` by any of their names, but those that only apply to whole models.
        ``loss_function``, ``eval_metric``, ``iterations`` and ``early_stopping_rounds`` may be given here or passed as
        ``objective``, ``metric``, ``num_boost_round`` and ``early_stopping_rounds``. By default ``learning_rate`` is
        0.1, ``l2_leaf_reg`` the objective's shrinkage, and nothing is printed.
    pool : catboost.Pool
        Documents with labels and ``group_id``. Weights, if it has any, come from ``weight=``, the same for all
        documents of a query: CatBoost hides ``group_weight``, which is refused. Scores start from its ``baseline``. It
        is not changed.
    num_boost_round : int, optional
        Number of trees; 100 by default.
    fold_count : int
        Number of folds, at most the number of queries. Each is the test set once.
    partition_random_seed : int
        Seed of the assignment of queries to folds.
    metric : RankingMetric, optional
        NDCG@10 with the gain of the objective by default.
    **options
        ``objective`` and ``init_model``, passed on to `train`.

    Returns
    -------
    dict of str to ndarray, shape (num_boost_round,)
        Mean and standard deviation of the metric over the folds: "test-ndcg_plrank@10-mean" and "-std".
    """
    _, offsets, _, _ = _read(pool, None)
    folds = validation.count(fold_count, "fold_count", 2, offsets.size - 1)
    seed = validation.count(partition_random_seed, "partition_random_seed", 0)
    order = np.random.default_rng(seed).permutation(offsets.size - 1)
    fold_of_rows = np.repeat(order % folds, np.diff(offsets))
    histories: list[dict[str, list[float]]] = [{} for _ in range(folds)]
    for fold, history in enumerate(histories):
        parts = (pool.slice(np.flatnonzero(fold_of_rows != fold)), pool.slice(np.flatnonzero(fold_of_rows == fold)))
        train(parameters, parts[0], num_boost_round, eval_pool=parts[1], metric=metric, evals_result=history, **options)
    ((name, _),) = histories[0].items()
    values = np.array([history[name] for history in histories])
    return {f"test-{name}-mean": values.mean(axis=0), f"test-{name}-std": values.std(axis=0, ddof=1)}


def _settings(parameters: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters by CatBoost's names, with defaults, after checking the parameters of `train`."""
    for name in given:
        validation.require(
            name not in parameters, f"{name} must be given once, got it as an argument and in parameters"
        )
    settings = {name: value for name, value in (parameters | given).items() if value is not None}
    catboost.core._process_synonyms(settings)
    objective = settings.setdefault("loss_function", BoostingObjective())
    validation.of_type(isinstance(objective, BoostingObjective), "objective", "a BoostingObjective", repr(objective))
    metric = settings.setdefault("eval_metric", RankingMetric(gain=objective.gain))
    validation.of_type(isinstance(metric, RankingMetric), "metric", "a RankingMetric", repr(metric))
    settings = {**DEFAULTS, "l2_leaf_reg": objective.shrinkage, **NEWTON_STEP, **settings}
    for name, value in (NEWTON_STEP | {"od_type": "Iter"} | dict.fromkeys(OF_MODELS)).items():
        only = "cannot be used" if value is None else f"must be {value!r}"
        got = settings.get(name, value)
        validation.require(got == value, f"{name} {only} where trees are fitted one at a time, got {got!r}")
    for name, lowest in (("iterations", 1), ("od_wait", 1), ("random_seed", 0)):
        if name in settings:
            validation.count(settings[name], name, lowest)
    silent = settings.pop("logging_level", "Silent") == "Silent"
    verbose = settings.pop("verbose", 0 if silent else 1)
    settings["metric_period"] = settings.get("metric_period", verbose) if verbose else 0
    del settings["od_type"]
    return settings


class _Tree(catboost.CatBoost):  # type: ignore[misc]
    """A model whose ``fit`` ends when the tree is grown.

    CatBoost's own ``fit`` goes on to compute the importances of the features, for which it starts and ends a team of
    threads, whatever ``thread_count`` is. That costs little once for each model, but not once for each tree, and on a
    busy machine its wait for the threads has been seen to last forever.
    """

    def get_feature_importance(self, *_: Any, **__: Any) -> None:
        return None


def _values(tree: Any, pool: Any, threads: int) -> FloatArray:
    """Return what a model of one tree adds to each document's score, without the pool's baseline."""
    values: FloatArray = np.asarray(tree.get_leaf_values(), dtype=np.float64)
    return values[np.asarray(tree.calc_leaf_indexes(pool, thread_count=threads))[:, 0]]


def _read(pool: Any, init_model: Any) -> tuple[FloatArray, IntArray, FloatArray | None, FloatArray]:
    """Return labels, offsets, weights of queries and initial scores."""
    labels = validation.real_array(np.asarray(pool.get_label(), dtype=np.float64), "labels")
    offsets = offsets_from_qid(validation.groups_of(pool.get_group_id_hash(), GROUPS))
    weights = validation.weights_of_queries(np.asarray(pool.get_weight()), offsets)
    if init_model is not None:
        return labels, offsets, weights, np.array(init_model.predict(pool))  # CatBoost adds the baseline
    baseline = np.asarray(pool.get_baseline(), dtype=np.float64)
    return labels, offsets, weights, baseline.ravel() if baseline.size else np.zeros(labels.size)


class Ranker(catboost.CatBoostRanker, BaseEstimator):  # type: ignore[misc]
    """A ``catboost.CatBoostRanker`` whose ``fit`` calls `train`, with the interface of scikit-learn.

    Parameters
    ----------
    loss_function : BoostingObjective, optional
        ``BoostingObjective()`` by default.
    eval_metric : RankingMetric, optional
        NDCG@10 with the gain of ``loss_function`` by default.
    **parameters
        Parameters of ``catboost.CatBoostRanker`` that `train` takes.
    """

    _n_features: int  # of a ranker that was fitted

    def __init__(self, **parameters: Any) -> None:
        catboost.CatBoost.__init__(self, parameters)
        self._history: dict[str, list[float]] = {}
        self._kinds: dict[str, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_own": {name: vars(self)[name] for name in OWN if name in vars(self)}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state["_own"])
        super().__setstate__({name: value for name, value in state.items() if name != "_own"})

    def get_params(self, **_: Any) -> dict[str, Any]:
        """Return the parameters themselves, which ``sklearn.base.clone`` needs; CatBoost's own returns copies."""
        return dict(self._init_params)

    def fit(
        self,
        X: Any,
        y: Any = None,
        group_id: Any = None,
        *,
        sample_weight: Any = None,
        eval_set: Any = None,
        early_stopping_rounds: int | None = None,
        init_model: Any = None,
        verbose: bool | int | None = None,
        **pool_options: Any,
    ) -> Any:
        """Fit to a ``catboost.Pool``, or to the arguments of one; ``eval_set`` is a pool or ``(X, y, group_id)``."""
        settings = {name: value for name, value in self.get_params().items() if name not in FEATURE_KINDS}
        if verbose is not None:
            settings = {name: value for name, value in settings.items() if name not in OF_PRINTING}
            settings["verbose"] = verbose
        kinds = {name: (self.get_params() | pool_options).get(name) for name in FEATURE_KINDS}
        self._kinds = {name: columns for name, columns in kinds.items() if columns is not None}
        if not isinstance(X, catboost.Pool):
            weights = [pool_options.pop(name, None) for name in ("weight", "group_weight")]
            sample_weight = next((each for each in (sample_weight, *weights) if each is not None), None)
            X = self._pool(X, y, group_id, sample_weight, fits=True, **pool_options)
        if eval_set is not None and not isinstance(eval_set, catboost.Pool):
            fits = isinstance(eval_set, tuple) and len(eval_set) == 3
            got = type(eval_set).__name__ + (f" of {len(eval_set)}" if isinstance(eval_set, tuple) else "")
            validation.of_type(fits, "eval_set", "a catboost.Pool or (X, y, group_id)", got)
            eval_set = self._pool(*eval_set)
        self._history = {}
        trained = train(
            settings, X, eval_pool=eval_set, init_model=init_model,
            early_stopping_rounds=early_stopping_rounds, evals_result=self._history,
        )  # fmt: skip
        self.n_features_in_ = X.num_col()
        self.n_queries_: int = len(set(X.get_group_id_hash()))
        return self.load_model(blob=trained._serialize_model())

    def predict(self, X: Any, *arguments: Any, **options: Any) -> Any:
        """Score documents; the columns of a frame must be the same as in ``fit``, in the same order."""
        searches.require_fitted(self)
        if not isinstance(X, catboost.Pool):
            X = searches.checked_features(self, X, self._others(X))
        return super().predict(X, *arguments, **options)

    def score(self, X: Any, y: Any = None, group_id: Any = None, sample_weight: Any = None) -> float:
        """Compute the ``eval_metric``, NDCG@10 by default, where ``catboost.CatBoostRanker`` has another NDCG."""
        if not isinstance(X, catboost.Pool):
            searches.require_queries(group_id, getattr(self, "n_queries_", 0), "group_id")
            X = self._pool(X, y, group_id, sample_weight)
        labels, offsets, weights, scores = _read(X, self)
        metric = _settings(self.get_params(), {})["eval_metric"]
        return metric.evaluate(scores, labels, offsets, weights=weights)

    def _pool(
        self, X: Any, y: Any, group_id: Any, sample_weight: Any = None, fits: bool = False, **options: Any
    ) -> Any:
        """Return a pool of documents with labels, after the checks of ``fit`` or ``predict``."""
        if fits:
            X, y = searches.checked_data(self, X, y, self._others(X))
        else:
            X, y = searches.checked_features(self, X, self._others(X)), validation.unmasked(y, "y")
        n_docs = len(y)
        if fits and group_id is None:
            searches.warn_of_one_query(n_docs, "group_id")
        offsets = searches.offsets_of(group_id, n_docs, "group_id")
        if sample_weight is not None:
            sample_weight = np.repeat(searches.weights_of(sample_weight, offsets), np.diff(offsets))
        # CatBoost takes 1 and "1" for one group, and refuses numbers in floating point
        groups = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
        return catboost.Pool(X, y, group_id=groups, weight=sample_weight, **self._kinds | options)

    def _others(self, X: Any) -> list[Any]:
        """Return the columns of categories, texts and embeddings, by name where ``X`` is a frame."""
        names = validation.column_names(X, "X")
        listed = [each for columns in self._kinds.values() for each in columns]
        return [each if names is None or isinstance(each, str) else names[each] for each in listed]

    def get_evals_result(self) -> dict[str, dict[str, list[float]]]:
        """Return the metric of each round on ``eval_set``, in CatBoost's form."""
        return {"validation": self._history} if any(self._history.values()) else {}

    def get_best_score(self) -> dict[str, dict[str, float]]:
        """Return the highest value of the metric on ``eval_set``, in CatBoost's form."""
        return {
            name: {of: max(values) for of, values in kept.items()} for name, kept in self.get_evals_result().items()
        }

    def get_best_iteration(self) -> int | None:
        """Return the round of that value, the first of equals; None without an ``eval_set``."""
        values = next(iter(self._history.values()), [])
        return values.index(max(values)) if values else None

    @property
    def n_features_in_(self) -> int:
        """Features seen in ``fit``."""
        return self._n_features

    @n_features_in_.setter
    def n_features_in_(self, number: int) -> None:
        self._n_features = number

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = tags.regressor_tags = None
        tags.target_tags.positive_only = True
        return tags
