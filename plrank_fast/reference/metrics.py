"""Reference implementations of the metrics of a ranking by score; ``plrank_fast.reference`` re-exports them.

Each takes the scores and the relevance of one query with at least one document, and a cutoff K of at least 1.
"""

from __future__ import annotations

import numpy as np

from plrank_fast.validation import FloatArray

__all__ = [
    "average_precision", "average_relevance_position", "expected_reciprocal_rank", "ideal_dcg", "precision",
    "rank_biased_precision", "recall", "reciprocal_rank", "success", "tie_averaged_dcg",
]  # fmt: skip


def in_order(scores: FloatArray, values: FloatArray, cutoff: int) -> FloatArray:
    """Return the values of the first K documents by descending score; of equal scores the lower index comes first."""
    first: FloatArray = values[np.argsort(-scores, kind="stable")][:cutoff]
    return first


def tie_averaged_dcg(scores: FloatArray, relevance: FloatArray, rank_weights: FloatArray) -> float:
    """Average the metric over all orders of equal scores: each document counts as the mean of those tied with it."""
    _, tied_with = np.unique(scores, return_inverse=True)
    worth = np.bincount(tied_with, relevance) / np.bincount(tied_with)
    first = in_order(scores, worth[tied_with], rank_weights.size)
    return float(rank_weights[: first.size] @ first)


def ideal_dcg(relevance: FloatArray, rank_weights: FloatArray) -> float:
    """Sum the highest gain times the highest weight, the next times the next; ranks past the last document are none."""
    weights = np.sort(rank_weights[: relevance.size])[::-1]
    return float(np.sort(relevance)[::-1][: weights.size] @ weights)


def precision(scores: FloatArray, relevance: FloatArray, cutoff: int) -> float:
    """Compute the share of K ranks that hold a relevant document."""
    return float((in_order(scores, relevance, cutoff) > 0).sum() / cutoff)


def recall(scores: FloatArray, relevance: FloatArray, cutoff: int) -> float:
    """Compute the share of the relevant documents that are found; 0 if there are none."""
    return float((in_order(scores, relevance, cutoff) > 0).sum() / max(1, (relevance > 0).sum()))


def average_precision(scores: FloatArray, relevance: FloatArray, cutoff: int) -> float:
    """Compute the mean precision at the ranks of the relevant documents; those not found count 0."""
    found = in_order(scores, relevance, cutoff) > 0
    precisions = np.cumsum(found) / np.arange(1, found.size + 1)
    return float(precisions[found].sum() / max(1, (relevance > 0).sum()))


def reciprocal_rank(scores: FloatArray, relevance: FloatArray, cutoff: int) -> float:
    """Return one over the rank of the first relevant document; 0 if none is found."""
    ranks = np.flatnonzero(in_order(scores, relevance, cutoff) > 0) + 1
    return float(1 / ranks[0]) if ranks.size else 0.0


def success(scores: FloatArray, relevance: FloatArray, cutoff: int) -> float:
    """Return 1 if a relevant document is found, else 0."""
    return float((in_order(scores, relevance, cutoff) > 0).any())


def expected_reciprocal_rank(scores: FloatArray, chances: FloatArray, cutoff: int) -> float:
    """Sum P(stop at rank) / rank; ``chances`` are the probabilities that a document satisfies the user."""
    chance = in_order(scores, chances, cutoff)
    still_looking = np.concatenate([[1.0], np.cumprod(1.0 - chance)[:-1]])
    return float((still_looking * chance / np.arange(1, chance.size + 1)).sum())


def rank_biased_precision(scores: FloatArray, relevance: FloatArray, cutoff: int, persistence: float) -> float:
    """Compute (1 - p) times the sum over ranks of p^(k - 1) rho_{y_k}."""
    first = in_order(scores, relevance, cutoff)
    return float((1.0 - persistence) * persistence ** np.arange(first.size) @ first)


def average_relevance_position(scores: FloatArray, relevance: FloatArray, cutoff: int) -> float:
    """Compute the mean rank, weighted by relevance; 0 if there is none."""
    first = in_order(scores, relevance, cutoff)
    return float(np.arange(1, first.size + 1) @ first / first.sum()) if first.sum() > 0 else 0.0
