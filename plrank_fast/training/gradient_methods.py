"""The gradient estimators that training can use, by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import plrank_fast as plr
from plrank_fast.cost_model import choose_method

SAMPLED = (
    *("pl_rank_3", "pl_rank_2", "pl_rank_1", "pl_rank_cmc"),
    *("stochastic_rank", "policy_gradient", "placement_policy_gradient"),
)
SAMPLE_FREE = ("pl_rank_exact",)
AUTO = "auto"  # exact or one conditioned sample, by what they cost on the data


def available_methods() -> tuple[str, ...]:
    """Names of the estimators that this build of the library has."""
    return (AUTO, *(name for name in (*SAMPLED, *SAMPLE_FREE) if hasattr(plr, name)))


def resolve_method(method: str, offsets: npt.NDArray[np.int64], cutoff: int) -> str:
    """Name the estimator behind ``method``: itself, or for "auto" what the cost model chooses for these lists."""
    return choose_method(offsets, cutoff) if method == AUTO else method


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
) -> npt.NDArray[np.float64]:
    """Gradient of the expected metric, summed over the queries, with respect to the scores.

    Parameters
    ----------
    method : str
        One of `available_methods`, but not "auto".
    scores, relevance : ndarray, shape (n_docs,)
        Of all queries of the batch, one after another.
    rank_weights : ndarray, shape (K,)
        Weight of each rank.
    offsets : ndarray of int64, shape (n_queries + 1,)
        Where queries begin and end.
    n_samples, rng
        Not used by methods without sampling.
    n_threads : int or None
        As everywhere in the library; the result does not depend on it.

    Returns
    -------
    ndarray of float64, shape (n_docs,)
        Direction of ascent.
    """
    estimator: Any = getattr(plr, method)
    sampling = {} if method in SAMPLE_FREE else {"n_samples": n_samples, "rng": rng}
    result: npt.NDArray[np.float64] = estimator(
        scores, relevance, rank_weights, offsets=offsets, n_threads=n_threads, **sampling
    )
    return result
