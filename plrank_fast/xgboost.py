"""XGBoost on the gradient of expected NDCG: an objective and metrics for ``xgboost.train`` and ``xgboost.cv``.

::

    xgboost.train({"learning_rate": 0.1}, matrix, 100, obj=objective(), custom_metric=ndcg(), evals=[(vali, "vali")])

The objective's units are made for XGBoost's defaults, ``reg_lambda=1`` and ``min_child_weight=1``. Groups come from the
matrix (``qid=`` or ``set_group``), and scores include its ``base_margin``. Weights, one for each query as XGBoost has
it for ranking, are applied; XGBoost itself does not apply them to custom objectives.

``XGBRanker`` refuses objectives that are functions: use ``xgboost.train``.

With ``xgboost.dask.train`` objective and metrics are those of one process up to rounding, as workers exchange sums; the
partitions must hold whole queries, which `plrank_fast.dask` ensures.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plrank_fast import validation
from plrank_fast.boosting import BoostingObjective, RankingMetric, Workers
from plrank_fast.extras import import_extra
from plrank_fast.validation import FloatArray, IntArray

GROUPS = "pass qid= to xgboost.DMatrix, or call its set_group"


def objective(**options: Any) -> MatrixObjective:
    """Make an objective for ``xgboost.train(obj=...)`` and ``xgboost.cv``.

    Parameters
    ----------
    **options
        Those of ``plrank_fast.boosting.BoostingObjective``.

    Returns
    -------
    callable
        ``(scores, matrix) -> (gradient, curvature)``.

    Raises
    ------
    ImportError
        If XGBoost is not installed.
    TypeError, ValueError
        If an option is not as described; and, in training, if the matrix has no groups.

    Notes
    -----
    To go on from ``xgb_model`` with a sampled method and a new objective, pass
    ``first_round=xgb_model.num_boosted_rounds()``. XGBoost keeps scores in float32, and sums them anew when training
    goes on: the model is that of training in one go up to rounding.
    """
    import_extra("xgboost", "xgboost")
    return MatrixObjective(**options)


def ndcg(**options: Any) -> MatrixMetric:
    """Make a metric for ``xgboost.train(custom_metric=...)``: mean NDCG of the ranking by descending score.

    Early stopping infers from the name, which begins with "ndcg", that higher is better.

    Parameters
    ----------
    **options
        Those of ``plrank_fast.boosting.RankingMetric``, without ``expected``.

    Returns
    -------
    callable
        ``(scores, matrix) -> (name, value)``.
    """
    import_extra("xgboost", "xgboost")
    return MatrixMetric(expected=False, **options)


def expected_ndcg(**options: Any) -> MatrixMetric:
    """Make a metric for ``xgboost.train(custom_metric=...)``: mean expected NDCG under Plackett-Luce; see ``ndcg``."""
    import_extra("xgboost", "xgboost")
    return MatrixMetric(expected=True, **options)


class _Workers(Workers):
    """The workers of a training by ``xgboost.dask`` or another of its distributed front ends."""

    def _added(self, values: FloatArray) -> FloatArray:
        collective = import_extra("xgboost.collective", "xgboost")
        return collective.allreduce(values, collective.Op.SUM) if collective.is_distributed() else values

    def _largest(self, value: float) -> float:
        collective = import_extra("xgboost.collective", "xgboost")
        return (
            float(collective.allreduce(np.array([value]), collective.Op.MAX)[0])
            if collective.is_distributed()
            else value
        )

    def _place(self) -> tuple[int, ...]:
        collective = import_extra("xgboost.collective", "xgboost")
        return (collective.get_rank(),) if collective.is_distributed() else ()


class MatrixObjective(_Workers, BoostingObjective):
    """The objective that ``objective`` returns."""

    def __call__(self, scores: FloatArray, matrix: Any) -> tuple[FloatArray, FloatArray]:
        """Derivatives of the round at ``scores``."""
        offsets, weights = _queries(matrix)
        return self.derivatives(np.ravel(scores), matrix.get_label(), offsets, weights=weights)


class MatrixMetric(_Workers, RankingMetric):
    """The metric that ``ndcg`` and ``expected_ndcg`` return."""

    def __call__(self, scores: FloatArray, matrix: Any) -> tuple[str, float]:
        """Name and value."""
        offsets, weights = _queries(matrix)
        return self.name, self.evaluate(np.ravel(scores), matrix.get_label(), offsets, weights=weights)


def _queries(matrix: Any) -> tuple[IntArray, FloatArray | None]:
    """Offsets and query weights; with groups XGBoost takes no other weights than one for each."""
    if matrix.num_row() == 0:  # a worker that got no partition
        return np.zeros(1, dtype=np.int64), None
    offsets = np.asarray(validation.groups_of(matrix.get_uint_info("group_ptr"), GROUPS)).astype(np.int64)
    weights = matrix.get_weight()
    return offsets, weights if weights.size else None
