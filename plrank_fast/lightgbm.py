"""LightGBM on the gradient of expected NDCG: objectives and metrics for its native and its scikit-learn interface.

::

    lightgbm.train({"objective": objective(), "lambda_l2": 1.0, "metric": "None"}, dataset, feval=ndcg())
    LGBMRanker(objective=sklearn_objective(), reg_lambda=1.0, metric="None").fit(..., eval_metric=sklearn_ndcg())

``lambda_l2=1`` (``reg_lambda`` in the scikit-learn interface) is the shrinkage that the objective's units are made for;
LightGBM's default is none. ``metric="None"`` switches off its own metrics, which refuse labels that are not integers.

Groups come from the data set, and scores include its ``init_score``. Weights, which LightGBM does not apply to custom
objectives, are applied here; they must be the same for all documents of a query.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast.boosting import BoostingObjective, RankingMetric
from plrank_fast.extras import import_extra
from plrank_fast.offsets import offsets_from_group
from plrank_fast.validation import FloatArray, IntArray

GROUPS = "pass group= to lightgbm.Dataset or to fit"


def objective(**options: Any) -> DatasetObjective:
    """Make an objective for ``lightgbm.train(params={"objective": ...})`` and ``lightgbm.cv``.

    Parameters
    ----------
    **options
        Those of ``plrank_fast.boosting.BoostingObjective``.

    Returns
    -------
    callable
        ``(scores, dataset) -> (gradient, curvature)``.

    Raises
    ------
    ImportError
        If LightGBM is not installed.
    TypeError, ValueError
        If an option is not as described; and, in training, if the data set has no groups, or weights that differ within
        a query.

    Notes
    -----
    ``lightgbm.cv`` keeps queries together for its own ranking objectives only: pass
    ``folds=sklearn.model_selection.GroupKFold(5)``. Folds that cut queries are refused.

    ``lightgbm.train`` works on a copy of the objective, so each training starts at ``first_round``. To go on from
    ``init_model`` with a sampled method, pass ``first_round=init_model.current_iteration()``: then the model is the one
    that training in one go would have given.
    """
    import_extra("lightgbm", "lightgbm")
    return DatasetObjective(**options)


def sklearn_objective(**options: Any) -> ArrayObjective:
    """Make an objective for ``LGBMRanker(objective=...)``.

    Parameters, errors and notes are those of ``objective``.

    Returns
    -------
    callable
        ``(y_true, y_pred, weight, group) -> (gradient, curvature)``.
    """
    import_extra("lightgbm", "lightgbm")
    return ArrayObjective(**options)


def ndcg(**options: Any) -> DatasetMetric:
    """Make a metric for ``lightgbm.train(feval=...)``: mean NDCG of the ranking by descending score.

    Parameters
    ----------
    **options
        Those of ``plrank_fast.boosting.RankingMetric``, without ``expected``.

    Returns
    -------
    callable
        ``(scores, dataset) -> (name, value, True)``.
    """
    import_extra("lightgbm", "lightgbm")
    return DatasetMetric(expected=False, **options)


def expected_ndcg(**options: Any) -> DatasetMetric:
    """Make a metric for ``lightgbm.train(feval=...)``: mean expected NDCG under Plackett-Luce; see ``ndcg``."""
    import_extra("lightgbm", "lightgbm")
    return DatasetMetric(expected=True, **options)


def sklearn_ndcg(**options: Any) -> ArrayMetric:
    """Make a metric for ``LGBMRanker.fit(eval_metric=...)``; see ``ndcg``."""
    import_extra("lightgbm", "lightgbm")
    return ArrayMetric(expected=False, **options)


def sklearn_expected_ndcg(**options: Any) -> ArrayMetric:
    """Make a metric for ``LGBMRanker.fit(eval_metric=...)``; see ``expected_ndcg``."""
    import_extra("lightgbm", "lightgbm")
    return ArrayMetric(expected=True, **options)


class DatasetObjective(BoostingObjective):
    """The objective that ``objective`` returns."""

    _whole: WeakSet[Any]  # data sets that are known to hold whole queries

    def __call__(self, scores: FloatArray, dataset: Any) -> tuple[FloatArray, FloatArray]:
        """Derivatives of the round at ``scores``."""
        self._refuse_cut_queries(dataset)
        offsets, weights = _queries(dataset.get_group(), dataset.get_weight())
        return self.derivatives(scores, dataset.get_label(), offsets, weights=weights)

    def _refuse_cut_queries(self, dataset: Any) -> None:
        """Raise if ``dataset`` is a part of another one that has queries by halves; looked at once."""
        whole, rows = getattr(dataset, "reference", None), getattr(dataset, "used_indices", None)
        if whole is None or rows is None or dataset in self._whole or whole.get_group() is None:
            return
        sizes = np.asarray(whole.get_group(), dtype=np.int64)
        taken = np.bincount(np.repeat(np.arange(sizes.size), sizes)[rows], minlength=sizes.size)
        validation.whole_queries(taken, sizes, "pass folds=sklearn.model_selection.GroupKFold(n) to lightgbm.cv")
        self._whole.add(dataset)

    def _forget(self) -> None:
        super()._forget()
        self._whole = WeakSet()


class ArrayObjective(BoostingObjective):
    """The objective that ``sklearn_objective`` returns.

    LightGBM decides by the number of parameters of the call what to pass: here four.
    """

    def __call__(
        self, y_true: ArrayLike, y_pred: ArrayLike, weight: ArrayLike | None, group: ArrayLike | None
    ) -> tuple[FloatArray, FloatArray]:
        """Derivatives of the round at the scores ``y_pred``."""
        offsets, weights = _queries(group, weight)
        return self.derivatives(y_pred, y_true, offsets, weights=weights)


class DatasetMetric(RankingMetric):
    """The metric that ``ndcg`` and ``expected_ndcg`` return."""

    def __call__(self, scores: FloatArray, dataset: Any) -> tuple[str, float, bool]:
        """Name, value, and that higher is better."""
        offsets, weights = _queries(dataset.get_group(), dataset.get_weight())
        return self.name, self.evaluate(scores, dataset.get_label(), offsets, weights=weights), True


class ArrayMetric(RankingMetric):
    """The metric that ``sklearn_ndcg`` and ``sklearn_expected_ndcg`` return; it has four parameters, too."""

    def __call__(
        self, y_true: ArrayLike, y_pred: ArrayLike, weight: ArrayLike | None, group: ArrayLike | None
    ) -> tuple[str, float, bool]:
        """Name, value, and that higher is better."""
        offsets, weights = _queries(group, weight)
        return self.name, self.evaluate(y_pred, y_true, offsets, weights=weights), True


def _queries(group: ArrayLike | None, weight: ArrayLike | None) -> tuple[IntArray, FloatArray | None]:
    """Offsets and query weights from the sizes of groups and the weights of documents."""
    offsets = offsets_from_group(np.asarray(validation.groups_of(group, GROUPS)))
    return offsets, validation.weights_of_queries(weight, offsets)
