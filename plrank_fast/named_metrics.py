"""The metrics that people report, by their names, as what the kernels compute for labels.

All but average precision have the form ``sum_k theta_k rho_{y_k} prod_{i < k} (1 - stop_{y_i})``:

=============== ====================================== ==================== =======
metric          relevance rho                          rank weight theta_k  stop_probability
=============== ====================================== ==================== =======
``ndcg, dcg``   gain of the label                      1 / log2(k + 1)      0
``precision``   1 if the document is relevant          1 / K                0
``recall``      1 / (relevant ones) if it is relevant  1                    0
``mrr``         1 if the document is relevant          1 / k                rho
``success``     1 if the document is relevant          1                    rho
``err``         (2**label - 1) / 2**max_label          1 / k                rho
=============== ====================================== ==================== =======

A document is relevant if its label is above 0. There is a value and a gradient for each query; the mean over the
queries, the ideal DCG of NDCG and the weights of queries are up to the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast._methods.registry import AUTO, ESTIMATORS, EXACT
from plrank_fast.metrics import dcg_or_share, ideal_dcg, of_relevance
from plrank_fast.probabilities import expected_ap, expected_metric
from plrank_fast.rank_weights import LARGEST_LABEL, dcg_weights_of_lists, precision_weights, satisfaction
from plrank_fast.validation import FloatArray, IntArray, MetricName
from plrank_fast.value_and_gradient import value_and_gradient

METRICS = get_args(MetricName)
TITLES = {metric: metric.upper() for metric in METRICS} | {
    "precision": "precision", "recall": "recall", "success": "success", "ap": "average precision",
}  # fmt: skip
WITH_GAINS = ("ndcg", "dcg")
SUMS_OVER_RANKS = (*WITH_GAINS, "precision", "recall")
OF_SAMPLING = ("n_samples", "rng")


class LabelledMetric(NamedTuple):
    """A metric and the labels of a batch, as the kernels take them; methods take the ``offsets`` and other options."""

    name: MetricName
    relevance: FloatArray
    rank_weights: FloatArray
    stop: FloatArray | None
    cutoff: int | None
    factors: FloatArray | float = 1.0  # they multiply documents' gradients where relevance does not hold them

    def times(self, factors: FloatArray) -> LabelledMetric:
        """Return the metric whose gradient has these factors, (n_docs,), the same for all documents of a query."""
        if self.name == "ap":
            return self._replace(factors=factors)
        return self._replace(relevance=self.relevance * factors)

    def of_documents(self, rows: IntArray) -> LabelledMetric:
        """Return the metric of the documents of some whole queries, with the same rank weights."""
        return self._replace(relevance=self.relevance[rows], stop=None if self.stop is None else self.stop[rows])

    def over_ideal(self, values: FloatArray | float, offsets: IntArray, n_threads: int | None = None) -> FloatArray:
        """Divide a value of each query, or of all, by the query's ideal DCG; 0 where that is 0."""
        ideal = ideal_dcg(self.relevance, self.rank_weights, offsets=offsets, n_threads=n_threads)
        return np.divide(values, ideal, out=np.zeros_like(ideal), where=ideal > 0.0)

    def of_ranking(
        self,
        scores: FloatArray,
        offsets: IntArray,
        n_threads: int | None = None,
        empty: float = 0.0,
        ties: validation.RankTies = "index",
    ) -> FloatArray:
        """Compute the metric of each query's ranking by descending score, for NDCG as a share of the ideal.

        ``empty`` is the value of a query without documents and, but for DCG, of one without relevant documents.
        """
        if self.name in WITH_GAINS:
            theta, over_ideal = self.rank_weights, self.name == "ndcg"
            return dcg_or_share(scores, self.relevance, theta, None, offsets, ties, n_threads, over_ideal, empty)
        values = of_relevance(self.name, scores, self.relevance, self.cutoff, offsets, n_threads, empty)
        if ties == "index":
            return values
        means = dcg_or_share(scores, self.relevance, self.rank_weights, None, offsets, ties, n_threads)
        without = of_relevance(self.name, scores, self.relevance, self.cutoff, offsets, n_threads, np.nan)
        return np.where(np.isnan(without), values, means)

    def expected(self, scores: FloatArray, **options: Any) -> FloatArray:
        """Compute the expectation of each query, with the options of `expected_metric`."""
        if self.name == "ap":
            return expected_ap(scores, self.relevance, self.cutoff, **options)
        return expected_metric(scores, self.relevance, self.rank_weights, **self._stop(), **options)

    def value_and_gradient(self, scores: FloatArray, method: Any, **options: Any) -> tuple[FloatArray, FloatArray]:
        """Compute the expectation of each query and the gradient of their sum."""
        if self.name == "ap":
            exact = {name: value for name, value in options.items() if name not in OF_SAMPLING}
            return expected_ap(scores, self.relevance, self.cutoff, gradient=True, **exact)
        options |= self._stop()
        return value_and_gradient(scores, self.relevance, self.rank_weights, method=method, **options)

    def gradient(self, scores: FloatArray, method: str, **options: Any) -> Any:
        """Compute the gradient of the sum, with the Hessian diagonal if ``hessian=True`` is among the options."""
        if self.name == "ap":
            return self.factors * self.value_and_gradient(scores, method, **options)[1]
        return ESTIMATORS[method].function(scores, self.relevance, self.rank_weights, **self._stop(), **options)

    def _stop(self) -> dict[str, Any]:
        return {} if self.stop is None else {"stop_probability": self.stop}


def check_metric(
    metric: Any, *, method: str = AUTO, rank_weights: Any = None, max_label: float | None = None, hessian: bool = False
) -> MetricName:
    """Return the name of a metric, after a check that the other options go with it."""
    name: MetricName = validation.choice(metric, "metric", MetricName)
    validation.goes_with(rank_weights, "rank_weights", name in WITH_GAINS, "metric='ndcg' or 'dcg'")
    validation.goes_with(max_label, "max_label", name == "err", "metric='err'")
    exact = name in SUMS_OVER_RANKS or method in (AUTO, EXACT)
    validation.require(exact, f"method must be 'exact' or 'auto' with metric={name!r}, got {method!r}")
    validation.require(not hessian or name != "ap", "curvature must be 'gradient' with metric='ap', got 'hessian'")
    return name


def checked_ties(ties: Any, metric: MetricName) -> validation.RankTies:
    """Return the order of equal scores, of which only sums over ranks have a mean."""
    order: validation.RankTies = validation.choice(ties, "ties", validation.RankTies)
    can_be_averaged = order == "index" or metric in SUMS_OVER_RANKS
    validation.require(can_be_averaged, f"ties must be 'index' with metric={metric!r}, got {ties!r}")
    return order


def checked_scale(max_label: float | None) -> float | None:
    """Return the highest grade of the scale of ERR, if it is given."""
    if max_label is None:
        return None
    return validation.real(max_label, "max_label", at_least=0.0, at_most=LARGEST_LABEL)


def labelled_metric(
    metric: MetricName,
    labels: FloatArray,
    offsets: IntArray,
    *,
    cutoff: int | None,
    gain: Callable[[FloatArray], FloatArray],
    rank_weights: ArrayLike | None = None,
    max_label: float | None = None,
    name: str = "labels",
    n_threads: int | None = 1,
) -> LabelledMetric:
    """Return a metric of labels, which are an argument called ``name``; cutoff None stands for all ranks."""
    stop = None
    if metric in WITH_GAINS:
        relevance = gain(labels)
        if rank_weights is not None:
            theta = validation.weights_of_ranks(rank_weights, offsets)
            theta = theta[0] if len(theta) == 1 else theta
        else:
            theta = dcg_weights_of_lists(cutoff, offsets)
        return LabelledMetric(metric, relevance, theta, stop, cutoff)
    n_ranks = validation.ranks_that_count(cutoff, validation.longest_list(offsets))
    if metric == "err":
        relevance, divisor = satisfaction(labels, max_label, name, n_threads)
        relevance /= divisor
    else:
        relevance = (labels > 0.0).astype(np.float64)
    if metric == "recall":
        query = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
        relevance /= np.maximum(np.bincount(query, relevance), 1.0)[query]
    if metric in ("mrr", "success", "err"):
        stop = relevance
    theta = np.ones(n_ranks) if metric in ("success", "recall") else 1.0 / np.arange(1, n_ranks + 1)
    if metric == "precision" and cutoff is not None:
        theta = precision_weights(cutoff)[:n_ranks]
    elif metric == "precision":
        lengths = np.diff(offsets)[:, np.newaxis]
        theta = np.broadcast_to(1.0 / np.maximum(lengths, 1), (lengths.size, n_ranks))
    return LabelledMetric(metric, relevance, theta, stop, cutoff)
