"""The gradients that training can use, by name: estimators of the expected metric, and losses of given labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plrank_fast import losses
from plrank_fast._methods import registry
from plrank_fast._methods.registry import ESTIMATORS, METHODS

LOSSES = tuple(name for name in losses.__all__ if name != "exposure_matching")  # which takes no labels
AVAILABLE = (*METHODS, *LOSSES)
WITH_CUTOFF = ("lambda_rank", "lambda_loss", "soft_rank")  # of NDCG; list_mle takes the likelihood of all ranks
WITH_TIES = ("list_mle",)  # breaks ties of labels at random in each step, as a model would learn the file's order


def resolve_method(method: str, offsets: npt.NDArray[np.int64], cutoff: int) -> str:
    """Return the name of the loss or estimator ``method``; the cost model chooses "auto" for these lists."""
    return method if method in LOSSES else registry.resolve_method(method, offsets, cutoff)


def gradient(
    method: str,
    scores: npt.NDArray[np.float64],
    relevance: npt.NDArray[np.float64],
    rank_weights: npt.NDArray[np.float64],
    *,
    offsets: npt.NDArray[np.int64],
    n_samples: int,
    rng: np.random.SeedSequence,
    n_threads: int | None,
    labels: npt.NDArray[np.float64] | None = None,
    first_query: int = 0,
) -> npt.NDArray[np.float64]:
    """Compute the gradient of the expected metric, or minus that of a loss, summed over the queries.

    ``method`` is a name that `resolve_method` returns. Losses take ``labels`` in place of ``relevance``. Methods
    without sampling use neither ``n_samples`` nor ``rng``; ``list_mle`` breaks ties of labels at random by ``rng``.
    """
    if method in LOSSES:
        options: dict[str, Any] = {"cutoff": rank_weights.size} if method in WITH_CUTOFF else {}
        if method in WITH_TIES:
            options |= {"ties": "random", "rng": rng, "first_query": first_query}
        loss: Any = getattr(losses, method)
        descent: npt.NDArray[np.float64] = loss(scores, labels, offsets=offsets, n_threads=n_threads, **options)[1]
        return -descent
    estimator = ESTIMATORS[method]
    sampling = {} if estimator.n_samples == 0 else {"n_samples": n_samples, "rng": rng, "first_query": first_query}
    result: npt.NDArray[np.float64] = estimator.function(
        scores, relevance, rank_weights, offsets=offsets, n_threads=n_threads, **sampling
    )
    return result
