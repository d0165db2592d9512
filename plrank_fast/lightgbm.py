"""LightGBM on the gradient of expected NDCG: an objective and a metric for its native and its scikit-learn interface.

::

    lightgbm.train({"objective": Objective(), "lambda_l2": 1.0, "metric": "None"}, dataset, feval=Metric())
    LGBMRanker(objective=Objective(), reg_lambda=1.0, metric="None").fit(..., eval_metric=Metric())

Set ``lambda_l2`` (``reg_lambda`` in the scikit-learn interface) to 1: the objective's ``shrinkage`` is in units of it,
and LightGBM's default is 0. ``metric="None"`` switches off LightGBM's own metrics, which refuse labels that are not
integers.

`Ranker` is an ``LGBMRanker`` with this objective for searches and cross-validation of scikit-learn.

Groups come from the data set, and scores include its ``init_score``. LightGBM does not apply weights to custom
objectives, so they are applied here; they must be the same for all documents of a query.
"""

from __future__ import annotations

from copy import copy
from socket import gethostname
from typing import TYPE_CHECKING, Any
from warnings import warn
from weakref import WeakSet
from zlib import crc32

import numpy as np

from plrank_fast import validation
from plrank_fast._adapters import searches
from plrank_fast._core.runtime.arguments import same_numbers
from plrank_fast._shared.extras import import_extra
from plrank_fast.boosting import BoostingObjective, RankingMetric
from plrank_fast.offsets import offsets_from_group
from plrank_fast.validation import FloatArray, IntArray

if TYPE_CHECKING:
    import lightgbm
else:
    lightgbm = import_extra("lightgbm", "lightgbm")

__all__ = ["Metric", "Objective", "Ranker"]


def __dir__() -> list[str]:
    return __all__


GROUPS = "pass group= to lightgbm.Dataset or to fit"
FOLDS = "pass folds=sklearn.model_selection.GroupKFold(n) to lightgbm.cv"
CALLED = "(scores, lightgbm.Dataset), as by lightgbm.train, or (y_true, y_pred, weight, group), as by LGBMRanker"
OPTIONS = "pass gain, cutoff and metric to plrank_fast.lightgbm.Objective"
POSITIONS = "correct labels for the places of clicks by plrank_fast.off_policy.relevance_from_clicks"
OF_LAMBDARANK = ("label_gain", "lambdarank_truncation_level", "lambdarank_norm")  # parameters


class Objective(BoostingObjective):
    """An objective for ``lightgbm.train``, ``lightgbm.cv`` and ``LGBMRanker(objective=...)``.

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
        If the first tree has no split, as with ``bagging_by_query=True``, which LightGBM supports for its own
        objectives only; and if a data set that is not constructed before training has other such parameters
        (``label_gain``, ``lambdarank_truncation_level``), or a data set has ``position``.

    Notes
    -----
    ``lightgbm.cv`` keeps queries together for its own ranking objectives only: pass
    ``folds=sklearn.model_selection.GroupKFold(5)``. Objective and metric refuse folds that cut queries.

    LightGBM works on a copy of the objective, so each training starts at ``first_round``. To go on from ``init_model``
    with a sampled method, pass ``first_round=init_model.current_iteration()``: the result is then the model of a single
    training.
    """

    _library = "lightgbm"
    _dtype = np.float32
    _checked: WeakSet[Any]  # data sets of which parameters and queries have been looked at
    _machine: int | None  # the number of this one, if there are several
    _read: tuple[Any, ...]  # LightGBM's groups and weights of the last round, offsets and query weights

    def __call__(self, first: Any, second: Any, weight: Any = None, group: Any = None) -> tuple[FloatArray, FloatArray]:
        """Compute the derivatives of a round, from ``(scores, dataset)`` or ``(y_true, y_pred, weight, group)``.

        LightGBM's scikit-learn interface passes as many arguments as the call has parameters.
        """
        scores, labels, weight, group = _arguments(first, second, weight, group)
        read = self._read  # another thread may replace it
        if group is None or not (_same(group, read[0]) and _same(weight, read[1])):
            self._read = read = (*(copy(each) for each in (group, weight)), *_queries(group, weight))
        if _is_dataset(second) and second not in self._checked:
            _tell_of_unused(second)
            _refuse_cut_queries(second)
            self._checked.add(second)
        return self._round(scores, labels, *read[2:])

    def _state_of(self, booster: Any) -> int:
        self._machine = _machine_of(booster.params or {})
        self._has_sums = self._machine is None
        return int(booster.num_trees())

    def _has_split(self, booster: Any, state: int) -> bool:
        if booster.num_trees() == state:  # LightGBM keeps a tree without a split only as the very first
            return False
        (tree,) = booster.dump_model(num_iteration=1, start_iteration=booster.current_iteration() - 1)["tree_info"]
        return bool(tree["num_leaves"] > 1)

    def _forget(self) -> None:
        super()._forget()
        self._checked = WeakSet()
        self._read = (None, None)
        self._machine, self._has_sums = None, True

    def _first_query(self, n_queries: int) -> int:
        return (self._machine or 0) << 40  # numbers apart from all other machines'


class Metric(RankingMetric):
    """A metric for ``lightgbm.train(feval=...)``, ``lightgbm.cv`` and ``LGBMRanker.fit(eval_metric=...)``.

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

    _library = "lightgbm"

    def __call__(self, first: Any, second: Any, weight: Any = None, group: Any = None) -> tuple[str, float, bool]:
        """Return the name, the value, and True as higher is better; it takes the objective's arguments."""
        scores, labels, weight, group = _arguments(first, second, weight, group)
        if _is_dataset(second):
            _refuse_cut_queries(second)
        offsets, weights = _queries(group, weight)
        return self.name, self.evaluate(scores, labels, offsets, weights=weights), True


class Ranker(lightgbm.LGBMRanker):  # type: ignore[misc]
    """An ``lightgbm.LGBMRanker`` for scikit-learn's searches: it takes ``qid``, has a score, and nested parameters.

    Parameters
    ----------
    objective : Objective, optional
        ``Objective()`` by default. Its options are parameters too: ``set_params(objective__cutoff=5)``.
    reg_lambda : float
        Regularisation, in units of the objective's ``shrinkage``.
    metric : str
        LightGBM's own metrics, which "None" switches off.
    **parameters
        Other parameters of ``lightgbm.LGBMRanker``.

    Attributes
    ----------
    score_metric : RankingMetric, optional
        Metric of ``score`` in a subclass that has one, the same for all candidates of a search. By default it is
        NDCG@10 with the gain of the objective.

    Examples
    --------
    >>> from plrank_fast.lightgbm import Objective, Ranker
    >>> Ranker(objective=Objective(cutoff=3)).set_params(objective__cutoff=5).objective
    Objective(cutoff=5)
    """

    score_metric: RankingMetric | None = None
    _columns: Any  # of a ranker that was fitted on a frame

    def __init__(
        self,
        *,
        objective: Objective | None = None,
        reg_lambda: float = 1.0,
        metric: str = "None",
        **parameters: Any,
    ) -> None:
        super().__init__(objective=objective, reg_lambda=reg_lambda, metric=metric, **parameters)

    def set_params(self, **parameters: Any) -> Any:
        """Set parameters, and options of the objective by names that begin with ``objective__``."""
        options = {name: parameters.pop(name) for name in list(parameters) if name.startswith("objective__")}
        if options:
            objective: Any = parameters.get("objective", self.objective) or Objective()
            changes = {name.partition("__")[2]: value for name, value in options.items()}
            parameters["objective"] = type(objective)(**objective.__getstate__() | changes)
        return super().set_params(**parameters)

    def fit(self, X: Any, y: Any, *, qid: Any = None, sample_weight: Any = None, **options: Any) -> Any:
        """Fit to queries of consecutive rows, by ``qid`` or by LightGBM's ``group``, and its other options."""
        X, y = searches.checked_data(self, X, y)
        if qid is None and options.get("group") is None:
            searches.warn_of_one_query(y.size)
        if qid is not None or options.get("group") is None:
            options["group"] = np.diff(searches.offsets_of(qid, y.size))
        self.n_queries_: int = len(options["group"])
        if sample_weight is not None:
            sample_weight = validation.real_array(sample_weight, "sample_weight")
            searches.weights_of(sample_weight, offsets_from_group(options["group"]))
        if self.objective is None:
            self._objective = Objective()
        return super().fit(X, y, sample_weight=sample_weight, **options)

    def predict(self, X: Any, *arguments: Any, **options: Any) -> Any:
        """Score documents; the columns of a frame must be the same as in ``fit``, in the same order."""
        searches.require_fitted(self)
        return super().predict(searches.checked_features(self, X), *arguments, **options)

    def score(self, X: Any, y: Any, *, qid: Any = None, sample_weight: Any = None) -> float:
        """Compute the ``score_metric`` of the ranking by descending score; ``qid`` may be left out for one query."""
        scores = self.predict(X)
        searches.require_queries(qid, self.n_queries_)
        offsets = searches.offsets_of(qid, scores.size)
        weights = None if sample_weight is None else searches.weights_of(sample_weight, offsets)
        metric = self.score_metric or RankingMetric(gain=getattr(self.objective, "gain", "exponential"))
        return metric.evaluate(scores, y, offsets, weights=weights)

    @property
    def feature_names_in_(self) -> Any:
        """Names of the columns of the frame that the ranker was fitted on."""
        return self._columns

    @feature_names_in_.setter
    def feature_names_in_(self, names: Any) -> None:
        self._columns = names

    @feature_names_in_.deleter
    def feature_names_in_(self) -> None:
        del self._columns

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = tags.target_tags.positive_only = True
        return tags


def _is_dataset(value: Any) -> bool:
    return isinstance(value, lightgbm.Dataset)


def _arguments(first: Any, second: Any, weight: Any, group: Any) -> tuple[Any, Any, Any, Any]:
    """Return scores, labels, weights of documents and sizes of groups, from either form of LightGBM's calls."""
    if _is_dataset(second):
        return first, second.get_label(), second.get_weight(), second.get_group()
    validation.of_type(not hasattr(second, "get_label"), "arguments", CALLED, f"({type(second).__name__})")
    return second, first, weight, group


def _queries(group: Any, weight: Any) -> tuple[IntArray, FloatArray | None]:
    """Return offsets and query weights."""
    offsets = offsets_from_group(np.asarray(validation.groups_of(group, GROUPS)))
    return offsets, None if weight is None else validation.weights_of_queries(weight, offsets)


def _machine_of(parameters: dict[str, Any]) -> int | None:
    """Return the place in ``machines`` of the one that has our port, or, where several have it, a number by its name.

    LightGBM has no call that returns it. None stands for a training on a single machine.
    """
    machines = parameters.get("machines") or ()
    machines = machines.split(",") if isinstance(machines, str) else sorted(machines)
    if len(machines) < 2:
        return None
    port = str(parameters.get("local_listen_port"))
    places = [place for place, machine in enumerate(machines) if machine.rpartition(":")[2] == port]
    return places[0] if len(places) == 1 else len(machines) + crc32(gethostname().encode()) % 2**16


def _same(values: Any, kept: Any) -> bool:
    """Return whether the values equal the kept copy."""
    return values is kept is None or same_numbers(values, kept)


def _tell_of_unused(dataset: Any) -> None:
    """Warn of parameters and of positions without effect."""
    unused = [name for name in OF_LAMBDARANK if name in (dataset.params or {})]
    if unused:
        warn(f"{', '.join(unused)} only goes with LightGBM's own objectives: {OPTIONS}", stacklevel=3)
    if dataset.get_position() is not None:
        warn(f"position only goes with LightGBM's own objectives: {POSITIONS}", stacklevel=3)


def _refuse_cut_queries(dataset: Any) -> None:
    """Raise if ``dataset`` is a fold that cuts queries."""
    whole, rows = getattr(dataset, "reference", None), getattr(dataset, "used_indices", None)
    if whole is not None and rows is not None and whole.get_group() is not None:
        sizes = np.asarray(whole.get_group(), dtype=np.int64)
        taken = np.bincount(np.repeat(np.arange(sizes.size), sizes)[rows], minlength=sizes.size)
        whole_queries = (taken == 0) | (taken == sizes)
        validation.each(whole_queries, taken, "documents of each query in the data set", "be all or none", f": {FOLDS}")
