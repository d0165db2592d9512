"""The gradient with respect to the scores of a batch: of an expected metric, the disparity, or a loss of labels."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

import plrank_fast as plr
from plrank_fast import fairness, losses, validation
from plrank_fast._methods import registry
from plrank_fast._methods.registry import ESTIMATORS
from plrank_fast.data import RankingData
from plrank_fast.named_metrics import SUMS_OVER_RANKS, LabelledMetric, labelled_metric
from plrank_fast.rank_weights import GRADES_OR_GAINS, gains_by
from plrank_fast.training.batches import Batch
from plrank_fast.training.config import DATASET, DCG, DISPARITY, LOSSES, TrainingConfig
from plrank_fast.validation import Gain

WITH_CUTOFF = ("lambda_rank", "lambda_loss", "soft_rank")  # of NDCG; list_mle takes the likelihood of all ranks
WITH_GAIN = (*WITH_CUTOFF, "approx_ndcg")
WITH_TIES = ("list_mle",)  # breaks ties of labels at random in each step, as a model would learn the file's order


class Loss:
    """The objective of ``config`` for the queries of ``data``, which training ascends.

    ``highest`` is the highest grade of the scale.
    """

    def __init__(self, config: TrainingConfig, data: RankingData, highest: float | None, n_threads: int) -> None:
        self.method: str = resolve_method(config.method, data.offsets, config.cutoff, config.metric)
        self.metric: LabelledMetric = _metric_of_training(config, data, highest)
        self._config, self._n_queries, self._n_threads = config, data.n_queries, n_threads

    def ascent(self, scores: npt.NDArray[np.float64], batch: Batch) -> npt.NDArray[np.float64]:
        """Compute the gradient for the scores of a batch, summed over its queries."""
        config, metric = self._config, self.metric.of_documents(batch.rows)
        settings: dict[str, Any] = {
            "offsets": batch.offsets,
            "n_samples": config.samples_in_step(batch.epoch, batch.number, self._n_queries),
            "rng": validation.DrawnKey(batch.rng, batch.first_query),
            "n_threads": self._n_threads,
        }
        if config.objective == DISPARITY:
            settings |= {"method": self.method}
            return -fairness.disparity_gradient(scores, metric.relevance, metric.rank_weights, **settings)[1]
        return gradient(self.method, scores, metric, labels=batch.labels, gain=config.gain, **settings)


def _metric_of_training(config: TrainingConfig, data: RankingData, highest: float | None) -> LabelledMetric:
    """Return the metric of the training data, with gains over the ideal DCG for NDCG.

    Disparity is proportional to the square of merit and decreases with the number of documents. Merit is scaled so that
    the mean disparity of the training queries at equal scores is 1, which suits the step length of NDCG.
    """
    name: Any = config.metric
    gain = partial(gains_by, config.gain, why=GRADES_OR_GAINS)
    metric = labelled_metric(name, data.labels, data.offsets, cutoff=config.cutoff, gain=gain, max_label=highest)
    if not (data.labels > 0.0).any():
        raise ValueError(f"labels of {data.name} must include a relevant document (above 0)")
    if config.objective == DCG or name != "ndcg":
        return metric
    relevance, rank_weights = metric.relevance, metric.rank_weights
    ideal = plr.ideal_dcg(relevance, rank_weights, offsets=data.offsets)
    if config.normalization == DATASET:
        ideal = np.full(data.n_queries, ideal.mean())
    relevance /= np.repeat(np.where(ideal > 0, ideal, 1.0), data.list_lengths)
    if config.objective == DISPARITY:
        equal = plr.exposure(np.zeros(data.n_docs), rank_weights, offsets=data.offsets)
        mean = fairness.disparity(equal, relevance, offsets=data.offsets)[0].mean()
        relevance /= np.sqrt(mean) if mean > 0 else 1.0
    return metric


def resolve_method(method: str, offsets: npt.NDArray[np.int64], cutoff: int, metric: str = "ndcg") -> str:
    """Return the name of the loss or estimator ``method``; the cost model chooses "auto" for these lists."""
    if method in LOSSES:
        return method
    return registry.resolve_method(method, offsets, cutoff) if metric in SUMS_OVER_RANKS else registry.EXACT


def gradient(
    method: str,
    scores: npt.NDArray[np.float64],
    metric: LabelledMetric,
    *,
    offsets: npt.NDArray[np.int64],
    n_samples: int,
    rng: np.random.SeedSequence,
    n_threads: int | None,
    labels: npt.NDArray[np.float64] | None = None,
    gain: Gain = "exponential",
) -> npt.NDArray[np.float64]:
    """Compute the gradient of the expected metric, or the negative gradient of a loss, summed over the queries.

    ``method`` is a name that `resolve_method` returns. Losses take ``labels`` and their ``gain`` in place of a metric.
    Methods without sampling use neither ``n_samples`` nor ``rng``; ``list_mle`` breaks ties at random by ``rng``.
    """
    if method in LOSSES:
        options: dict[str, Any] = {"cutoff": metric.rank_weights.size} if method in WITH_CUTOFF else {}
        if method in WITH_GAIN:
            options["gain"] = gain
        if method in WITH_TIES:
            options |= {"ties": "random", "rng": rng}
        loss: Any = getattr(losses, method)
        descent: npt.NDArray[np.float64] = loss(scores, labels, offsets=offsets, n_threads=n_threads, **options)[1]
        return -descent
    sampling = {"n_samples": n_samples, "rng": rng}
    result: npt.NDArray[np.float64] = metric.gradient(
        scores, method, offsets=offsets, n_threads=n_threads, **(sampling if ESTIMATORS[method].n_samples else {})
    )
    return result
