"""The gradients that training can use, by name: estimators of the expected metric, and losses of given labels."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from plrank_fast import losses
from plrank_fast._methods import registry
from plrank_fast._methods.registry import ESTIMATORS
from plrank_fast.named_metrics import SUMS_OVER_RANKS, LabelledMetric
from plrank_fast.validation import LossName

LOSSES = get_args(LossName)
WITH_CUTOFF = ("lambda_rank", "lambda_loss", "soft_rank")  # of NDCG; list_mle takes the likelihood of all ranks
WITH_TIES = ("list_mle",)  # breaks ties of labels at random in each step, as a model would learn the file's order


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
    first_query: int = 0,
) -> npt.NDArray[np.float64]:
    """Compute the gradient of the expected metric, or minus that of a loss, summed over the queries.

    ``method`` is a name that `resolve_method` returns. Losses take ``labels`` in place of a metric. Methods
    without sampling use neither ``n_samples`` nor ``rng``; ``list_mle`` breaks ties of labels at random by ``rng``.
    """
    if method in LOSSES:
        options: dict[str, Any] = {"cutoff": metric.rank_weights.size} if method in WITH_CUTOFF else {}
        if method in WITH_TIES:
            options |= {"ties": "random", "rng": rng, "first_query": first_query}
        loss: Any = getattr(losses, method)
        descent: npt.NDArray[np.float64] = loss(scores, labels, offsets=offsets, n_threads=n_threads, **options)[1]
        return -descent
    sampling = {"n_samples": n_samples, "rng": rng, "first_query": first_query}
    result: npt.NDArray[np.float64] = metric.gradient(
        scores, method, offsets=offsets, n_threads=n_threads, **(sampling if ESTIMATORS[method].n_samples else {})
    )
    return result
