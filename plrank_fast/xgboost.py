"""XGBoost on the gradient of expected NDCG: an objective and a metric for ``xgboost.train`` and ``xgboost.cv``.

::

    parameters = {"learning_rate": 0.1, "disable_default_eval_metric": True}
    xgboost.train(parameters, matrix, 100, obj=Objective(), custom_metric=Metric(), evals=[(vali, "vali")])

XGBoost's default metric is the root mean squared error, and it ends the process where a matrix has query weights. The
objective switches it off in its first round, whether or not the parameters do.

The objective's units suit XGBoost's defaults, ``reg_lambda=1`` and ``min_child_weight=1``. Groups come from the matrix
(``qid=`` or ``set_group``), and scores include its ``base_margin``. The objective applies weights, one for each query,
as XGBoost does not apply them to custom objectives.

``XGBRanker`` refuses objectives that are functions, and passes no queries to metrics: use ``xgboost.train``.

With ``xgboost.dask.train`` workers exchange sums, so that objective and metrics are those of one process up to
rounding. The partitions must hold whole queries, which `plrank_fast.dask` ensures.
"""

from __future__ import annotations

import sys
from typing import Any
from weakref import WeakSet

import numpy as np

from plrank_fast import validation
from plrank_fast._shared.extras import import_extra
from plrank_fast.boosting import BoostingObjective, RankingMetric, Workers
from plrank_fast.validation import FloatArray, IntArray
from plrank_fast.validation.parameters import with_parameters

GROUPS = "pass qid= to xgboost.DMatrix, or call its set_group"


class _Workers(Workers):
    """The workers of a training by ``xgboost.dask`` or another of its distributed front ends."""

    def _added(self, values: FloatArray) -> FloatArray:
        collective = import_extra("xgboost.collective", "xgboost")
        return collective.allreduce(values, collective.Op.SUM) if collective.is_distributed() else values

    def _place(self) -> tuple[int, ...]:
        collective = import_extra("xgboost.collective", "xgboost")
        return (collective.get_rank(),) if collective.is_distributed() else ()


@with_parameters(BoostingObjective.__doc__)
class Objective(_Workers, BoostingObjective):
    """An objective for ``xgboost.train(obj=...)`` and ``xgboost.cv``.

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

    _library = "xgboost"
    _seen: WeakSet[Any]  # boosters without the default metric

    def __call__(self, scores: FloatArray, matrix: Any) -> tuple[FloatArray, FloatArray]:
        """Compute the derivatives of the round at ``scores``."""
        booster = sys._getframe(1).f_locals.get("self")  # XGBoost passes it to no objective
        if isinstance(booster, import_extra("xgboost", "xgboost").Booster) and booster not in self._seen:
            booster.set_param("disable_default_eval_metric", 1)
            self._seen.add(booster)
        return self._round(np.ravel(scores), *_read(matrix, "obj"))

    def _forget(self) -> None:
        super()._forget()
        self._seen = WeakSet()


@with_parameters(RankingMetric.__doc__)
class Metric(_Workers, RankingMetric):
    """A metric for ``xgboost.train(custom_metric=...)`` and ``xgboost.cv``.

    Early stopping infers from the name, which begins with "ndcg", that higher is better.
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
