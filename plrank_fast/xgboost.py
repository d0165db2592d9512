"""XGBoost on the gradient of expected NDCG: an objective and a metric for ``xgboost.train`` and ``xgboost.cv``.

::

    parameters = {"learning_rate": 0.1, "disable_default_eval_metric": True}
    xgboost.train(parameters, matrix, 100, obj=Objective(), custom_metric=Metric(), evals=[(vali, "vali")])

XGBoost's default metric is the root mean squared error, and it ends the process where a matrix has query weights. The
objective switches it off in its first round, whether or not the parameters do.

The objective's units suit XGBoost's defaults, ``reg_lambda=1`` and ``min_child_weight=1``. Groups come from the matrix,
best by ``matrix.set_group(np.diff(plrank_fast.offsets_from_qid(qid)))``: its own ``qid=`` is taken modulo 2**32 and
without fractions, and a query in two batches of a ``DataIter`` becomes two. Scores include its ``base_margin``. The
objective applies weights, one for each query, as XGBoost does not apply them to custom objectives.

``XGBRanker`` refuses objectives that are functions, and passes no queries to metrics: use ``xgboost.train``.

With ``xgboost.dask.train`` workers exchange sums, so that objective and metrics equal those in one process up to
rounding. The partitions must hold whole queries, which `plrank_fast.dask` ensures.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plrank_fast import validation
from plrank_fast._shared.extras import import_extra
from plrank_fast.boosting import BoostingObjective, RankingMetric, Workers
from plrank_fast.validation import FloatArray, IntArray

__all__ = ["Metric", "Objective"]


def __dir__() -> list[str]:
    return __all__


GROUPS = (
    "call set_group(numpy.diff(plrank_fast.offsets_from_qid(qid))) of the matrix, whose qid= keeps 32 bits of a number"
)


class _Workers(Workers):
    """The workers of a training by ``xgboost.dask`` or another of its distributed front ends."""

    _library = "xgboost"

    def _added(self, values: FloatArray) -> FloatArray:
        collective = import_extra("xgboost.collective", "xgboost")
        return collective.allreduce(values, collective.Op.SUM) if collective.is_distributed() else values

    def _first_query(self, n_queries: int) -> int:
        collective = import_extra("xgboost.collective", "xgboost")
        counts = np.zeros(collective.get_world_size())
        counts[rank := collective.get_rank()] = n_queries
        return int(self._added(counts)[:rank].sum())


class Objective(_Workers, BoostingObjective):
    """An objective for ``xgboost.train(obj=...)`` and ``xgboost.cv``.

    Parameters
    ----------
    metric : {"ndcg", "dcg", "precision", "recall", "mrr", "err", "success", "ap"}
        Metric whose expectation is maximised, at K ranks: NDCG of gains, DCG, which weights queries by their ideal DCG,
        precision, recall, the reciprocal rank of the first relevant document (MRR), expected reciprocal rank (ERR),
        success (whether one of the K is relevant, the hit rate), or average precision. Labels above 0 are relevant.
        Queries for which all rankings are equally good have gradient 0.
    method : str
        Estimator of the gradient, by the names of ``value_and_gradient``. Sampled estimators draw fresh rankings each
        round. "auto" is the exact one where it takes less time than a round of trees, which it does on lists of some 50
        documents or more with a cutoff of 10, and otherwise one sample of "cmc". "mrr", "err", "success" and "ap" need
        the exact one.
    cutoff : int, optional
        Ranks that count, K; 10 by default.
    rank_weights : array_like, shape (K,), optional
        Other weights of ranks for "ndcg" and "dcg", in place of ``cutoff``; not negative for "ndcg".
    gain : {"exponential", "linear"} or callable
        Gain of a label in "ndcg" and "dcg": 2**label - 1, the label itself, or a function from all labels to as many
        gains.
    max_label : float, optional
        Highest grade of the scale in "err"; by default the highest of the labels, of each worker if there are several.
    curvature : {"gradient", "hessian"}
        Positive curvature to use. "gradient": the absolute value of the gradient. "hessian": the larger of that and the
        absolute Hessian diagonal.
    shrinkage : float
        Divisor of gradient and curvature: a regularisation of 1 (``reg_lambda=1`` of XGBoost, its default, and
        ``lambda_l2=1`` of LightGBM) then counts as ``shrinkage`` average documents.
    n_samples : int, optional
        Rankings for each query and round of the sampled methods: by default 1 for "cmc" and 100 for the others.
    rtol : float
        Accuracy of "exact".
    seed : int
        Seed of the rankings that the sampled methods draw. With the number of the round it determines all bits.
    first_round : int
        Number of the round with which training begins: the number of finished rounds, to resume a training.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Warns
    -----
    UserWarning
        If the first tree has no split.

    Notes
    -----
    To go on from ``xgb_model`` with a sampled method and a new objective, pass
    ``first_round=xgb_model.num_boosted_rounds()``. XGBoost keeps scores in float32 and sums them anew when training
    goes on, so the result is the model of a single training up to rounding.
    """

    _dtype = np.float32

    def __call__(self, scores: FloatArray, matrix: Any) -> tuple[FloatArray, FloatArray]:
        """Compute the derivatives of the round at ``scores``."""
        return self._round(np.ravel(scores), *_read(matrix, "obj"))

    def _state_of(self, booster: Any) -> None:
        booster.set_param("disable_default_eval_metric", 1)

    def _has_split(self, booster: Any, state: None) -> bool:
        return not booster.get_dump()[-1].startswith("0:leaf=")


class Metric(_Workers, RankingMetric):
    """A metric for ``xgboost.train(custom_metric=...)`` and ``xgboost.cv``.

    Early stopping infers from the name that higher is better where ``metric`` is "ndcg", "precision" or "ap", whose
    name begins with "map". For the others pass ``maximize=True`` to ``xgboost.train``, or XGBoost minimises them.

    Parameters
    ----------
    metric : {"ndcg", "dcg", "precision", "recall", "mrr", "err", "success", "ap"}
        Metric to report, at K ranks: NDCG or DCG of gains, precision, recall, the reciprocal rank of the first relevant
        document (MRR), expected reciprocal rank (ERR), success (whether one of the K is relevant, the hit rate), or
        average precision. Labels above 0 are relevant.
    cutoff : int, optional
        Ranks that count, K; 10 by default.
    rank_weights : array_like, shape (K,), optional
        Other weights of ranks for "ndcg" and "dcg", in place of ``cutoff``; not negative for "ndcg".
    gain : {"exponential", "linear"} or callable
        Gain of a label in "ndcg" and "dcg": 2**label - 1, the label itself, or a function from all labels to as many
        gains.
    max_label : float, optional
        Highest grade of the scale in "err"; by default the highest of the labels, of each worker if there are several.
    expected : bool
        False: the metric of the ranking by descending score, equal scores in the order of the file. True: its
        expectation over rankings drawn from Plackett-Luce, which is what training optimises.
    ties : {"index", "average"}
        "average": the mean over all orders of equal scores, for metrics that are sums over ranks: "ndcg", "dcg",
        "precision" and "recall". "index": the order of the file, which flatters a constant model where rows are sorted
        by label.
    empty : float
        Value of a query without relevant documents: 0 in scikit-learn, 1 in LightGBM and XGBoost.
    rtol : float
        Accuracy of the expectation.
    name : str, optional
        Name under which values are reported. By default it has the options that are not the defaults, functions by
        their names and rank weights by a checksum, so that values of different metrics are told apart.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.
    """

    def __call__(self, scores: FloatArray, matrix: Any) -> tuple[str, float]:
        """Return name and value."""
        labels, offsets, weights = _read(matrix, "custom_metric")
        return self.name, self.evaluate(np.ravel(scores), labels, offsets, weights=weights)


def _read(matrix: Any, argument: str) -> tuple[FloatArray, IntArray, FloatArray | None]:
    """Return labels, offsets and query weights; with groups XGBoost only accepts one weight for each."""
    matrices = import_extra("xgboost", "xgboost").DMatrix
    expected = f"an xgboost.DMatrix, as xgboost.train({argument}=...) passes and XGBRanker does not"
    validation.of_type(isinstance(matrix, matrices), "the second argument", expected, type(matrix).__name__)
    labels, weights = matrix.get_label(), matrix.get_weight()
    if labels.size == 0:  # a worker that got no partition
        return labels, np.zeros(1, dtype=np.int64), None
    offsets = np.asarray(validation.groups_of(matrix.get_uint_info("group_ptr"), GROUPS)).astype(np.int64)
    return labels, offsets, weights if weights.size else None
