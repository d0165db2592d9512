"""A ranking objective for boosted trees: the gradient to descend and a positive curvature.

A library of boosted trees minimises a loss. Each round it asks the objective for a gradient and a curvature of each
document at the present scores, sums them over the documents of a leaf, and gives the leaf the value -G / (H + lambda).
The loss here is minus the expected metric under Plackett-Luce, NDCG by default. Its Hessian diagonal does
not serve as a curvature: it is indefinite and sums to 0 at equal scores, where boosting starts, so that no tree ever
splits. ``curvature`` chooses the way to make a positive one.

Gradient and curvature are divided by the mean curvature of a document. They then depend neither on the scale of gains,
rank weights and query weights nor on how far training has come: a document counts as 1 on average, and regularisation
is in units of documents.

The module does not depend on any library; `plrank_fast.lightgbm`, `plrank_fast.xgboost` and `plrank_fast.catboost` are
its adapters. Boosted trees on stochastic rankings are due to Kang, de Rijke and Oosterhuis, "Estimating the
Hessian Matrix of Ranking Objectives for Stochastic Learning to Rank with Gradient Boosted Trees", SIGIR 2024.
"""

from __future__ import annotations

import json
import re
import sys
import zlib
from dataclasses import dataclass, field
from inspect import signature
from typing import Any
from warnings import warn
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plrank_fast import validation
from plrank_fast._core.gradients import curvature as _curvature
from plrank_fast._core.runtime.arguments import same_numbers
from plrank_fast._methods.cost_model import nanoseconds
from plrank_fast._methods.registry import AUTO, ESTIMATORS, EXACT, resolve_method
from plrank_fast._shared.openmp import threads_of
from plrank_fast.named_metrics import (
    SUMS_OVER_RANKS,
    LabelledMetric,
    check_metric,
    checked_scale,
    checked_ties,
    labelled_metric,
)
from plrank_fast.rank_weights import GRADES_OR_GAINS, Gain, checked_gain, gains_by
from plrank_fast.validation import FloatArray, IntArray

__all__ = ["BoostingObjective", "RankingMetric", "portable"]


def __dir__() -> list[str]:
    return __all__


ADAPTERS = "Objective or Metric of plrank_fast.lightgbm or plrank_fast.xgboost"
WITH_HESSIAN = (AUTO, *(name for name, method in ESTIMATORS.items() if method.has_hessian))
DEFAULT_CUTOFF = 10
AFFORDABLE = 200.0  # nanoseconds of a gradient per document; a round of trees takes 200 to 600
SMALLEST_SHRINKAGE, LARGEST_SHRINKAGE = 1e-20, 1e20  # libraries keep gradients in float32
NO_SPLIT = "a parameter keeps it from splitting (in LightGBM, bagging_by_query=True does so with any custom objective)"

FOR_SERVING = "an objective of plrank_fast, whose scores are sums of leaves"
PORTABLE = "a Booster of LightGBM or XGBoost or a fitted LGBMRanker (CatBoost's models are portable as they are)"

LEAST_CURVATURE = 1e-3  # share of the mean; leaves of documents without gradient must not divide by 0
FEW = 100  # documents
CALLERS = 4  # frames between an objective and the method of a booster that calls it
DATA_SETS_KEPT = 32  # data sets; a cross-validation uses as many as it has folds in turn


class Workers:
    """An objective or a metric of the processes that share a data set, each with whole queries: here a single process.

    The adapter of a library that trains on several processes overrides ``_added``, which all processes then call at
    once, and ``_first_query``.
    """

    _library = ""  # the one that calls, whose threads are borrowed
    _has_sums = True  # whether `_added` sums over the processes

    def _added(self, values: FloatArray) -> FloatArray:
        """Sum over the processes."""
        return values

    def _first_query(self, n_queries: int) -> int:
        """Return the number of this process's first query among the queries of all, for its random numbers."""
        return 0

    def __call__(self, *_: Any) -> Any:
        """Refuse to be called by a library that needs an adapter."""
        validation.of_type(False, "an objective or metric that a library calls", ADAPTERS, type(self).__name__)

    def __repr__(self) -> str:
        """Return a text with the ranks that count, and the settings that are not the defaults."""
        defaults, settings = signature(type(self)).parameters, dict(vars(self))
        rank_weights, cutoff = settings.pop("rank_weights"), settings.pop("cutoff") or DEFAULT_CUTOFF
        ranks = f"cutoff={cutoff}" if rank_weights is None else f"rank_weights=<{rank_weights.size} ranks>"
        known = ((name.lstrip("_"), value) for name, value in settings.items() if name.lstrip("_") in defaults)
        changed = (f"{name}={value!r}" for name, value in known if value != defaults[name].default)
        return f"{type(self).__name__}({', '.join([ranks, *changed])})"


class BoostingObjective(Workers):
    """Objective of boosted trees that optimises expected NDCG or another metric.

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

    Notes
    -----
    The objective keeps offsets, gains, ideal values and, for the sampled methods, the number of the round for each data
    set. A training that starts over, from the scores with which the last one began, starts at ``first_round`` again;
    pass ``round_number`` where scores return to these within a training, as with DART. The objectives of LightGBM and
    XGBoost count the rounds of each booster. A copy, by ``copy`` or ``pickle``, has the settings only. Trainings that
    run at the same time must not share an objective.

    Examples
    --------
    >>> from plrank_fast.boosting import BoostingObjective
    >>> objective = BoostingObjective(cutoff=2, shrinkage=1.0)
    >>> gradient, curvature = objective.derivatives([0.0, 0.0, 0.0, 0.0], [1, 0, 0, 2], offsets=[0, 2, 4])
    >>> gradient.round(3)  # to descend: negative for relevant documents
    array([-1.,  1.,  1., -1.])
    >>> curvature.round(3)
    array([1.001, 1.001, 1.001, 1.001])
    """

    _data_sets: list[_DataSet]  # the last used comes first
    _trainings: WeakKeyDictionary[Any, tuple[int, Any]]  # next round and state of each booster
    _dtype: Any = np.float64  # to which that library converts the derivatives

    @validation.hinted
    def __init__(
        self,
        *,
        metric: validation.MetricName = "ndcg",
        method: validation.Method = "auto",
        cutoff: int | None = None,
        rank_weights: ArrayLike | None = None,
        gain: Gain = "exponential",
        max_label: float | None = None,
        curvature: validation.Curvature = "gradient",
        shrinkage: float = 30.0,
        n_samples: int | None = None,
        rtol: float = 1e-3,
        seed: int = 0,
        first_round: int = 0,
        n_threads: int | None = None,
    ) -> None:
        validation.only_one({"cutoff": cutoff, "rank_weights": rank_weights}, needed=False)
        self.method: validation.Method = validation.choice(method, "method", validation.Method)
        self.curvature: validation.Curvature = validation.choice(curvature, "curvature", validation.Curvature)
        if hessian := self.curvature == "hessian":
            validation.choice(method, "method with curvature='hessian'", WITH_HESSIAN)
        self.metric = check_metric(
            metric, method=method, rank_weights=rank_weights, max_label=max_label, hessian=hessian
        )
        self.cutoff: int | None = None if cutoff is None else validation.count(cutoff, "cutoff", 1)
        self.rank_weights: FloatArray | None = (
            None if rank_weights is None else validation.real_array(rank_weights, "rank_weights")
        )
        self.gain = checked_gain(gain)
        self.max_label: float | None = checked_scale(max_label)
        self.shrinkage: float = validation.real(
            shrinkage, "shrinkage", above=SMALLEST_SHRINKAGE, below=LARGEST_SHRINKAGE
        )
        self.n_samples: int | None = None if n_samples is None else validation.count(n_samples, "n_samples", 1)
        self.rtol: float = validation.relative_tolerance(rtol)
        self.seed: int = validation.count(seed, "seed", 0)
        self.first_round: int = validation.count(first_round, "first_round", 0)
        self.n_threads: int | None = validation.threads(n_threads)
        self._forget()

    def derivatives(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        offsets: ArrayLike | None = None,
        *,
        weights: ArrayLike | None = None,
        round_number: int | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Compute the gradient and the curvature for a round of boosting.

        Parameters
        ----------
        scores : array_like, shape (n_docs,)
            Present scores.
        labels : array_like, shape (n_docs,)
            Grades, which ``gain`` turns into relevance.
        offsets : array_like of int, shape (n_queries + 1,), optional
            Where each query's documents start; a single query by default.
        weights : array_like, shape (n_queries,), optional
            Weight of each query, not negative.
        round_number : int, optional
            Number of the round, which determines the random numbers. By default the rounds of this data set are counted
            from ``first_round``; a number given here does not change the count.

        Returns
        -------
        gradient, curvature : ndarray, shape (n_docs,)
            The gradient to descend, and a curvature above 0, both in units of the mean curvature of a document times
            ``shrinkage``. In float64, but in float32 from the objectives of LightGBM and XGBoost.

        Warns
        -----
        UserWarning
            If all documents of each query have the same gain, so that there is nothing to learn.
        """
        is_plain = type(scores) is np.ndarray and scores.ndim == 1 and scores.dtype in (np.float64, np.float32)
        scores_: Any = scores if is_plain else validation.real_array(scores, "scores")  # the estimator reads it too
        data = self._data_set(labels, offsets, weights, scores_)
        rounds = data.rounds if round_number is not None else data.rounds.next(scores_, self.first_round)
        if round_number is None:
            round_number = rounds.number
        ascent, diagonal = self._raw_derivatives(scores_, data, validation.count(round_number, "round_number", 0))
        data.rounds = rounds
        summed = _curvature.total_curvature(ascent, diagonal, self.n_threads)
        total, number = self._added(np.array([summed, ascent.size]))
        least = LEAST_CURVATURE / self.shrinkage
        # Where there is nothing to learn, the gradient is 0.
        divisor = total / number * self.shrinkage if total > 0.0 else np.inf
        pair = np.empty((2, ascent.size), self._dtype)
        gradient, curvature = _curvature.divided(ascent, diagonal, divisor, least, self.n_threads, pair)
        return gradient, curvature

    def _round(
        self, scores: ArrayLike, labels: ArrayLike, offsets: IntArray, weights: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Compute the derivatives of the next round of the booster that calls; warn if its first tree has no split.

        A call by a user, in place of a booster, counts rounds as ``derivatives`` does.
        """
        booster = self._booster()
        number, state = None, None
        if booster is not None:
            number, state = self._trainings.get(booster) or (self.first_round, self._state_of(booster))
        with threads_of(self._library):
            gradient, curvature = self.derivatives(scores, labels, offsets, weights=weights, round_number=number)
        if number is not None:
            self._trainings[booster] = number + 1, state
            if number == self.first_round + 1 and gradient.any() and not self._has_split(booster, state):
                warn(f"the first tree has no split: {NO_SPLIT}", stacklevel=3)
        return gradient, curvature

    def _booster(self) -> Any:
        """Return the booster that has called the objective; libraries do not pass it."""
        kind = getattr(sys.modules.get(self._library), "Booster", ())
        frame = sys._getframe(3)
        for _ in range(CALLERS):
            if isinstance(caller := frame.f_locals.get("self"), kind):
                return caller
            if frame.f_back is None:
                break
            frame = frame.f_back
        return None

    def _state_of(self, booster: Any) -> Any:
        """Prepare a booster for its first round, and return what tells its first tree later."""

    def _has_split(self, booster: Any, state: Any) -> bool:
        """Return whether the tree of the first round, after which ``booster`` is, has a split."""
        return True

    def _raw_derivatives(
        self, scores: FloatArray, data: _DataSet, round_number: int
    ) -> tuple[FloatArray, FloatArray | None]:
        """Compute the gradient of the metric, to ascend, and the Hessian diagonal if the curvature needs it."""
        options: dict[str, Any] = {"offsets": data.offsets, "n_threads": self.n_threads}
        if data.method == EXACT:
            options["rtol"] = self.rtol
        else:
            seed = np.random.SeedSequence([self.seed, round_number])
            options["n_samples"] = self.n_samples or ESTIMATORS[data.method].n_samples
            options["rng"] = validation.DrawnKey(seed, data.first_query)
        if self.curvature == "gradient":
            return data.metric.gradient(scores, data.method, **options), None
        ascent, diagonal = data.metric.gradient(scores, data.method, hessian=True, **options)
        return ascent, diagonal

    def _data_set(
        self, labels: ArrayLike, offsets: ArrayLike | None, weights: ArrayLike | None, scores: FloatArray
    ) -> _DataSet:
        """Return the prepared data set of these labels, offsets and weights, and move it to the front."""
        given = [each for each in (labels, offsets, weights) if each is not None]
        if any(type(each) is not np.ndarray or each.dtype.kind not in "iuf" for each in given):
            labels, offsets, weights_ = _checked(labels, offsets, weights, scores, self.n_threads)
            weights = None if weights is None else weights_
        kept = self._data_sets  # another thread may replace the list, and none changes it
        same = (data for data in kept if data.same(labels, offsets, weights, scores))
        data = next(same, None) or self._prepared(
            labels, *_checked(labels, offsets, weights, scores, self.n_threads), weights is not None
        )
        if not kept or data is not kept[0]:
            self._data_sets = [data, *(each for each in kept if each is not data)][:DATA_SETS_KEPT]
        return data

    def _prepared(
        self, given: ArrayLike, labels: FloatArray, offsets: IntArray, weights: FloatArray, weighted: bool
    ) -> _DataSet:
        metric = _of_labels(self, labels, offsets)
        relevance, n_ranks = metric.relevance, metric.rank_weights.shape[-1]
        factor = _factor_of_queries(metric, offsets, self.metric == "ndcg", self.n_threads)
        if relevance.size and not factor.any():
            warn("labels hold no query with documents of different worth: there is nothing to learn", stacklevel=5)
        method: str = resolve_method(self.method, offsets, n_ranks)
        if self.metric not in SUMS_OVER_RANKS:
            method = EXACT
        elif self.method == "auto":
            cost = nanoseconds(EXACT, np.diff(offsets).astype(np.float64), n_ranks).sum()
            cost, documents = self._added(np.array([cost, relevance.size]))
            method = EXACT if cost <= AFFORDABLE * documents or not self._has_sums else "cmc"
        first_query = 0 if method == EXACT else self._first_query(offsets.size - 1)
        metric = metric.times(np.repeat(factor * weights, np.diff(offsets)))
        return _DataSet(np.array(given), offsets, weights, weighted, method, first_query, metric)

    def _forget(self) -> None:
        self._data_sets = []
        self._trainings = WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        """Return the settings only, with which a copy begins anew."""
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()


class RankingMetric(Workers):
    """Metric that evaluates the mean NDCG or another metric of a data set, for early stopping too.

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

    Examples
    --------
    >>> from plrank_fast.boosting import RankingMetric
    >>> metric = RankingMetric(cutoff=2)
    >>> metric.name
    'ndcg_plrank@2'
    >>> round(metric.evaluate([0.1, 0.9, 0.3, 0.2], [1, 0, 2, 0], offsets=[0, 2, 4]), 3)
    0.815
    """

    @validation.hinted
    def __init__(
        self,
        *,
        metric: validation.MetricName = "ndcg",
        cutoff: int | None = None,
        rank_weights: ArrayLike | None = None,
        gain: Gain = "exponential",
        max_label: float | None = None,
        expected: bool = False,
        ties: validation.RankTies = "index",
        empty: float = 0.0,
        rtol: float = 1e-4,
        name: str | None = None,
        n_threads: int | None = None,
    ) -> None:
        validation.only_one({"cutoff": cutoff, "rank_weights": rank_weights}, needed=False)
        self.metric = check_metric(metric, rank_weights=rank_weights, max_label=max_label)
        self.cutoff: int | None = None if cutoff is None else validation.count(cutoff, "cutoff", 1)
        self.rank_weights: FloatArray | None = (
            None if rank_weights is None else validation.real_array(rank_weights, "rank_weights")
        )
        self.gain = checked_gain(gain)
        self.max_label: float | None = checked_scale(max_label)
        self.expected: bool = validation.flag(expected, "expected")
        self.ties: validation.RankTies = checked_ties(ties, self.metric)
        self.empty: float = validation.real(empty, "empty")
        self.rtol: float = validation.relative_tolerance(rtol)
        self._name = None if name is None else _checked_name(name)
        self.n_threads: int | None = validation.threads(n_threads)

    @property
    def name(self) -> str:
        """Name under which values are reported, such as "ndcg_plrank@10" and "ndcg_plrank@10_linear".

        It is not the name of any library's own metric. Names that begin with "ndcg", "precision" and "map", the mean of
        average precision, are those that XGBoost knows to be maximised.
        """
        if self._name is not None:
            return self._name
        ranks = (self.cutoff or DEFAULT_CUTOFF) if self.rank_weights is None else self.rank_weights.size
        weights = "" if self.rank_weights is None else f"{zlib.crc32(self.rank_weights.tobytes()):08x}"
        gain = getattr(self.gain, "__name__", "gain").strip("<>") if callable(self.gain) else self.gain
        scale = "" if self.max_label is None else f"max_label={self.max_label:g}"
        empty = f"empty={self.empty:g}" if self.empty else ""
        ties = "" if self.ties == "index" else f"ties={self.ties}"
        options = (weights, "" if gain == "exponential" else gain, scale, ties, empty)
        of_queries = "map" if self.metric == "ap" else self.metric
        name = f"{of_queries}_{'expected' if self.expected else 'plrank'}@{ranks}"
        return "_".join([name, *filter(None, options)])

    def evaluate(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        offsets: ArrayLike | None = None,
        *,
        weights: ArrayLike | None = None,
    ) -> float:
        """Compute the mean over the queries, weighted by ``weights`` (n_queries,) if given."""
        scores_ = validation.real_array(scores, "scores", n_threads=self.n_threads)
        labels_, offsets_, weights_ = _checked(labels, offsets, weights, scores_, self.n_threads)
        metric = _of_labels(self, labels_, offsets_)
        with threads_of(self._library):
            validation.limited_gains(
                metric.relevance, "the gain of labels", offsets_, self.metric == "ndcg", self.n_threads
            )
            if self.expected:
                values = metric.expected(scores_, offsets=offsets_, rtol=self.rtol, n_threads=self.n_threads)
                if self.metric == "ndcg":
                    values = metric.over_ideal(values, offsets_, self.n_threads)
                values[np.isnan(metric.of_ranking(scores_, offsets_, self.n_threads, np.nan))] = self.empty
            else:
                values = metric.of_ranking(scores_, offsets_, self.n_threads, self.empty, self.ties)
        value, total = self._added(np.array([values @ weights_, weights_.sum()]))
        return float(value / total) if total > 0.0 else self.empty


def portable(booster: Any, form: validation.PortableForm = "booster") -> Any:
    """Copy a booster into a form that ONNX converters, treelite, SHAP and search engines read.

    Parameters
    ----------
    booster : lightgbm.Booster, lightgbm.LGBMRanker or xgboost.Booster
        Trained with an objective of this library. It is not changed.
    form : {"booster", "json"}
        "booster": a Booster of the same library, for onnxmltools, treelite and SHAP. LightGBM's states ``lambdarank``,
        as converters refuse a model without the name of an objective. XGBoost's has no feature names and keeps the name
        that XGBoost gives it, ``reg:squarederror``: of ``rank:ndcg``, onnxmltools makes a classifier. "json": the text
        of an XGBoost model named ``rank:ndcg`` with features of type "float", for plug-ins of search engines. Do not
        load it to convert it.

    Returns
    -------
    Booster or str
        The trees up to the best round of early stopping, or all.

    Raises
    ------
    ValueError
        If ``booster`` has an objective that transforms scores or linear trees, or categorical features in the form
        "json".

    Notes
    -----
    ``base_margin`` and ``init_score`` belong to data sets, not to models: add them to the scores. The time is linear in
    the size of the model.

    Examples
    --------
    >>> import lightgbm, numpy as np
    >>> from plrank_fast.boosting import portable
    >>> from plrank_fast.lightgbm import Objective
    >>> dataset = lightgbm.Dataset(np.arange(80.0).reshape(80, 1), np.arange(80) % 3, group=[40, 40])
    >>> booster = lightgbm.train({"objective": Objective(), "verbosity": -1, "metric": "None"}, dataset, 2)
    >>> portable(booster).dump_model()["objective"]
    'lambdarank'
    """
    validation.choice(form, "form", validation.PortableForm)
    booster = getattr(booster, "booster_", booster)
    for library, convert in (("lightgbm", _portable_of_lightgbm), ("xgboost", _portable_of_xgboost)):
        if isinstance(booster, getattr(sys.modules.get(library), "Booster", ())):
            return convert(booster, form)
    validation.of_type(False, "booster", PORTABLE, type(booster).__name__)


def _portable_of_lightgbm(booster: Any, form: str) -> Any:
    validation.require(form == "booster", f"form must be 'booster' for a model of LightGBM, got {form!r}")
    head, names, rest = booster.model_to_string().partition("\nfeature_names=")
    stated = re.search(r"^objective=(.*)", head, flags=re.MULTILINE)
    _own_objective(stated.group(1) if stated else "custom", ("custom", "lambdarank"))
    validation.require(
        "\nis_linear=1\n" not in rest, "booster must have no linear trees, which ONNX takes for constants"
    )
    head = head if stated else f"{head}\nobjective=lambdarank"
    head = re.sub(r"^objective=custom$", "objective=lambdarank", head, flags=re.MULTILINE)
    rest = re.sub(r"^\[objective: .*\]$", "[objective: lambdarank]", rest, flags=re.MULTILINE)
    return type(booster)(model_str=head + names + rest)


def _portable_of_xgboost(booster: Any, form: str) -> Any:
    _own_objective(json.loads(booster.save_config())["learner"]["objective"]["name"], ("reg:squarederror",))
    best = booster.attr("best_iteration")
    trees = booster[: booster.num_boosted_rounds() if best is None else int(best) + 1]
    if form == "booster":
        trees.feature_names = None
        return trees
    categorical = [index for index, kind in enumerate(booster.feature_types or ()) if kind == "c"]
    validation.require(not categorical, f"booster must have no categorical features for 'json', got {categorical}")
    model = json.loads(trees.save_raw("json"))
    learner = model["learner"]
    learner["feature_types"] = ["float"] * len(learner["feature_names"])
    learner["objective"] = {"name": "rank:ndcg", "lambdarank_param": {}}
    return json.dumps(model)


def _own_objective(name: str, own: tuple[str, ...]) -> None:
    validation.require(name in own, f"booster must be trained with {FOR_SERVING}, got {name!r}")


def _checked_name(name: str) -> str:
    """Return the name of a metric, which the libraries split at colons and white space."""
    validation.of_type(isinstance(name, str), "name", "a string", validation.shown(name))
    validation.require(re.fullmatch(r"[^\s:]+", name), f"name must have no white space and no colon, got {name!r}")
    return name


def _of_labels(of: BoostingObjective | RankingMetric, labels: FloatArray, offsets: IntArray) -> LabelledMetric:
    """Return the metric of the settings for these labels."""

    def relevance(labels: FloatArray) -> FloatArray:
        return gains_by(of.gain, labels, of.n_threads, GRADES_OR_GAINS)

    cutoff = DEFAULT_CUTOFF if of.cutoff is None else of.cutoff
    return labelled_metric(
        of.metric, labels, offsets, cutoff=cutoff, rank_weights=of.rank_weights, max_label=of.max_label,
        gain=relevance, n_threads=of.n_threads,
    )  # fmt: skip


def _factor_of_queries(metric: LabelledMetric, offsets: IntArray, by_ideal: bool, n_threads: int | None) -> FloatArray:
    """Return the factor of each query's gradient, (n_queries,).

    It is 1 over the ideal metric, or 1, and 0 where the ideal is 0 or all rankings of the query are equally good.
    """
    relevance = metric.relevance
    validation.limited_gains(relevance, "the gain of labels", offsets, by_ideal, n_threads)
    filled = np.diff(offsets) > 0
    starts = offsets[:-1][filled]
    counts = np.zeros(filled.size, dtype=np.bool_)
    counts[filled] = np.maximum.reduceat(relevance, starts) > np.minimum.reduceat(relevance, starts)
    if metric.name in ("precision", "recall", "success"):
        # All documents, or too few that are not relevant to fill the first ranks with them.
        counted = relevance == 0.0 if metric.name == "success" else np.ones(relevance.size, dtype=np.bool_)
        n_counted = np.add.reduceat(counted, starts, dtype=np.float64)
        counts[filled] &= n_counted >= metric.rank_weights.size + (metric.name != "success")
    factors = counts.astype(np.float64)
    return metric.over_ideal(factors, offsets, n_threads) if by_ideal else factors


def _checked(
    labels: ArrayLike, offsets: ArrayLike | None, weights: ArrayLike | None, scores: FloatArray, n_threads: int | None
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return labels, offsets, and weights of queries, 1 by default."""
    labels_ = validation.of_documents(labels, "labels", scores, n_threads=n_threads)
    offsets_ = validation.query_offsets(offsets, scores.size)
    n_queries = offsets_.size - 1
    weights_ = np.ones(n_queries)
    if weights is not None:
        weights_ = validation.weights_of(weights, "weights", n_queries, "queries")
    return labels_, offsets_, weights_


@dataclass
class _DataSet:
    """A data set as the caller passed it, and the metric to optimise, with the factors of queries."""

    labels: NDArray[Any]  # they keep their types, so that later rounds compare them without a conversion
    offsets: IntArray
    weights: FloatArray
    weighted: bool
    method: str
    first_query: int
    metric: LabelledMetric
    rounds: _Rounds = field(default_factory=lambda: _Rounds())  # replaced by each round

    def same(self, labels: ArrayLike, offsets: ArrayLike | None, weights: ArrayLike | None, scores: FloatArray) -> bool:
        """Return whether these are the same data, which need not be checked again."""
        return (
            self.weighted == (weights is not None)
            and self.labels.shape == scores.shape
            and same_numbers(self.labels, labels)
            and same_numbers(self.offsets, [0, scores.size] if offsets is None else offsets)
            and (weights is None or same_numbers(self.weights, weights))
        )


@dataclass(frozen=True)
class _Rounds:
    """The rounds of a data set so far, by which one that starts over is detected."""

    number: int = -1  # of the last one
    start: FloatArray | None = None  # scores of the first one
    moved: bool = False

    def next(self, scores: FloatArray, first_round: int) -> _Rounds:
        """Return the rounds with the one at these scores.

        A return to the scores of the first round, after others, is a new training. The same scores twice in a row are
        not: after a tree without a split the next round must have other random numbers.
        """
        at_start = (
            self.start is not None
            and same_numbers(scores[:FEW], self.start[:FEW])  # nearly always decides
            and same_numbers(scores, self.start)
        )
        if self.start is None or (at_start and self.moved):
            return _Rounds(first_round, scores.copy())
        return _Rounds(self.number + 1, self.start, self.moved or not at_start)
