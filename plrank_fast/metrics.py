"""Metrics of the deterministic ranking: documents in descending order of score, the lower index first on ties."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import _metrics, _threads, validation
from plrank_fast.validation import FloatArray, IntArray

NORMALISATIONS = ("query", "dataset")


def _checked(
    scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike, offsets: ArrayLike | None, n_threads: int | None
) -> tuple[FloatArray, FloatArray, FloatArray, IntArray, int]:
    scores_ = validation.real_array(scores, "scores")
    relevance_ = validation.same_length(validation.real_array(relevance, "relevance"), "relevance", scores_)
    offsets_ = validation.query_offsets(offsets, scores_.size)
    weights = validation.weights_of_ranks(rank_weights, offsets_.size - 1)
    return scores_, relevance_, weights, offsets_, _threads.resolve_threads(validation.threads(n_threads))


def dcg(
    scores: ArrayLike,
    relevance: ArrayLike,
    rank_weights: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    n_threads: int | None = None,
) -> FloatArray:
    """Metric of each query's deterministic ranking, sum_k theta_k rho_{y_k}: DCG with the weights of DCG.

    Parameters
    ----------
    scores, relevance : array_like, shape (n_docs,)
        Ranked by descending score; of equal scores the document with the lower index comes first.
    rank_weights : array_like, shape (K,) or (n_queries, K)
        Weight of each rank, for instance ``dcg_weights(10)``.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_threads : int, optional
        None: all available processors.

    Returns
    -------
    ndarray, shape (n_queries,), float64
        0 for an empty query.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    O(D + K log K) per query: the K best are selected, not sorted.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.dcg([0.1, 0.9], [1, 0], plr.dcg_weights(2)).round(3)
    array([0.631])
    """
    scores_, relevance_, weights, offsets_, threads = _checked(scores, relevance, rank_weights, offsets, n_threads)
    result = np.zeros(offsets_.size - 1)
    _metrics.dcg(scores_, relevance_, weights, offsets_, threads, result)
    return result


def ndcg(
    scores: ArrayLike,
    relevance: ArrayLike,
    rank_weights: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    normalize: str = "query",
    empty: float = 0.0,
    n_threads: int | None = None,
) -> FloatArray | float:
    """DCG of the deterministic ranking as a share of the ideal one.

    Parameters
    ----------
    scores, relevance, rank_weights, offsets, n_threads
        As in ``dcg``. The ideal ranking is by descending relevance.
    normalize : {"query", "dataset"}
        "query": every query's DCG over its own ideal DCG. "dataset": total DCG over total ideal DCG, which weighs
        queries by how much there is to gain, as in the papers on PL-Rank.
    empty : float
        Value of a query whose ideal DCG is 0 (no relevant documents, or none at all): 0 in scikit-learn, 1 in
        LightGBM and XGBoost. With "dataset", the value if that holds for all queries.

    Returns
    -------
    ndarray, shape (n_queries,), float64, or a float with "dataset"

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> scores, labels, offsets = [0.1, 0.9, 0.3, 0.2], [1, 0, 2, 0], [0, 2, 4]
    >>> plr.ndcg(scores, plr.gains(labels), plr.dcg_weights(10), offsets=offsets).round(3)
    array([0.631, 1.   ])
    >>> round(plr.ndcg(scores, plr.gains(labels), plr.dcg_weights(10), offsets=offsets, normalize="dataset"), 3)
    0.908
    """
    validation.choice(normalize, "normalize", NORMALISATIONS)
    scores_, relevance_, weights, offsets_, threads = _checked(scores, relevance, rank_weights, offsets, n_threads)
    reached = np.zeros(offsets_.size - 1)
    ideal = np.zeros(offsets_.size - 1)
    _metrics.dcg(scores_, relevance_, weights, offsets_, threads, reached)
    _metrics.dcg(relevance_, relevance_, weights, offsets_, threads, ideal)
    if normalize == "dataset":
        return float(reached.sum() / ideal.sum()) if ideal.sum() != 0.0 else float(empty)
    return np.divide(reached, ideal, out=np.full_like(reached, float(empty)), where=ideal != 0.0)
