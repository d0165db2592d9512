"""Reference implementations of the losses in NumPy: one query at a time, (value, gradient), from the definitions.

``plrank_fast.reference`` re-exports them. Symbols: f scores, y labels, g gains, D documents, K ranks that count;
sigmoid(x) is 1 / (1 + exp(-x)) and softplus(x) = log(1 + exp(x)).
"""

from __future__ import annotations

import itertools
from math import erf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plrank_fast.reference.metrics import ideal_dcg
from plrank_fast.validation import FloatArray, IntArray

Loss = tuple[float, FloatArray]

__all__ = [
    "approx_ndcg", "lambda_loss", "list_mle", "pairwise_logistic", "pointwise_logistic", "pointwise_squared",
    "rankings_by_label", "soft_rank", "softmax_cross_entropy",
]  # fmt: skip


def softplus(x: FloatArray) -> FloatArray:
    """Compute log(1 + exp(x))."""
    return np.logaddexp(0.0, x)


def sigmoid(x: FloatArray) -> FloatArray:
    """Compute 1 / (1 + exp(-x))."""
    return np.exp(-softplus(-x))


def ranks_by(values: FloatArray) -> IntArray:
    """Return the rank of each document from 0, by descending value; of equal values the lower index comes first."""
    ranks = np.empty(values.size, dtype=np.int64)
    ranks[np.argsort(-values, kind="stable")] = np.arange(values.size)
    return ranks


def discounts_to(cutoff: int, n_docs: int) -> FloatArray:
    """Return 1 / log2(rank + 1) of the first ``cutoff`` ranks, 0 for the others."""
    discounts = 1.0 / np.log2(np.arange(n_docs) + 2.0)
    discounts[cutoff:] = 0.0
    return discounts


def pointwise_squared(scores: FloatArray, labels: FloatArray) -> Loss:
    """Compute the sum of (f_d - y_d)^2."""
    return float(((scores - labels) ** 2).sum()), 2.0 * (scores - labels)


def pointwise_logistic(scores: FloatArray, labels: FloatArray) -> Loss:
    """Compute the sum of softplus(f_d) - y_d f_d."""
    return float((labels * softplus(-scores) + (1.0 - labels) * softplus(scores)).sum()), sigmoid(scores) - labels


def softmax_cross_entropy(scores: FloatArray, labels: FloatArray) -> Loss:
    """Compute minus the sum of p_d log softmax(f)_d with p = y / sum(y)."""
    if labels.sum() == 0.0:
        return 0.0, np.zeros(scores.size)
    log_softmax = scores - np.logaddexp.reduce(scores)
    share = labels / labels.sum()
    return float(-(share * log_softmax).sum()), np.exp(log_softmax) - share


def rankings_by_label(labels: FloatArray) -> list[IntArray]:
    """Return every ranking by descending label, one for each way to order equal labels."""
    groups = [np.flatnonzero(labels == label) for label in np.unique(labels)[::-1]]
    orders = itertools.product(*(itertools.permutations(group) for group in groups))
    return [np.array([*itertools.chain.from_iterable(order)], dtype=np.int64) for order in orders]


def list_mle(scores: FloatArray, labels: FloatArray, cutoff: int, ranking: IntArray | None = None) -> Loss:
    """Compute minus the log-probability of the first K ranks of a ranking by label, ties by index. O(D K)."""
    order = np.argsort(-labels, kind="stable") if ranking is None else ranking
    value, gradient = 0.0, np.zeros(scores.size)
    for k in range(min(cutoff, scores.size)):
        left_over = order[k:]
        log_sum = np.logaddexp.reduce(scores[left_over])
        value += log_sum - scores[order[k]]
        gradient[left_over] += np.exp(scores[left_over] - log_sum)
        gradient[order[k]] -= 1.0
    return float(value), gradient


def weighted_pairs(scores: FloatArray, better: NDArray[Any], weights: FloatArray, slope: float) -> Loss:
    """Sum weight_ij softplus(-slope (f_i - f_j)) over the pairs with y_i > y_j, the weights held fixed. O(D^2)."""
    ahead = slope * (scores[:, np.newaxis] - scores)
    weights = np.where(better, weights, 0.0)
    push = slope * weights * sigmoid(-ahead)
    return float((weights * softplus(-ahead)).sum()), push.sum(axis=0) - push.sum(axis=1)


def pairwise_logistic(scores: FloatArray, labels: FloatArray, slope: float) -> Loss:
    """Sum softplus(-slope (f_i - f_j)) over the pairs with y_i > y_j. O(D^2)."""
    return weighted_pairs(
        scores, (labels[:, np.newaxis] > labels).astype(np.float64), np.ones((scores.size, scores.size)), slope
    )


def lambda_loss(
    scores: FloatArray, gains: FloatArray, cutoff: int, slope: float, mu: float, truncation: str = "metric"
) -> Loss:
    """Compute LambdaLoss (NDCG-Loss2++), with mu = 0 LambdaRank in natural logarithms. O(D^2).

    Pairs of which at least one is among the first K are weighted by ``|g_i - g_j|`` / ideal DCG times
    ``|discount_i - discount_j| + mu |1 / log2(1 + m) - 1 / log2(2 + m)|``, where ``m = |rank_i - rank_j|``. Discounts
    past the cutoff are 0 with the truncation "metric", and as in DCG with "pairs".
    """
    ideal = ideal_dcg(gains, discounts_to(cutoff, gains.size))
    if ideal == 0.0:
        return 0.0, np.zeros(scores.size)
    ranks = ranks_by(scores)
    discount = discounts_to(cutoff if truncation == "metric" else scores.size, scores.size)[ranks]
    apart = np.abs(ranks[:, np.newaxis] - ranks)
    distance = 1.0 / np.log2(1.0 + np.maximum(apart, 1)) - 1.0 / np.log2(2.0 + np.maximum(apart, 1))
    counts = np.minimum(ranks[:, np.newaxis], ranks) < cutoff
    weights = (
        np.abs(gains[:, np.newaxis] - gains) / ideal * (np.abs(discount[:, np.newaxis] - discount) + mu * distance)
    )
    return weighted_pairs(
        scores, (gains[:, np.newaxis] > gains).astype(np.float64), np.where(counts, weights, 0.0), slope
    )


def approx_ndcg(scores: FloatArray, gains: FloatArray, temperature: float) -> Loss:
    """Compute 1 minus the NDCG at smooth ranks 1 + sum over j != i of sigmoid((f_j - f_i) / T). O(D^2)."""
    ideal = ideal_dcg(gains, discounts_to(gains.size, gains.size))
    if ideal == 0.0:
        return 0.0, np.zeros(scores.size)
    above = sigmoid((scores - scores[:, np.newaxis]) / temperature)
    np.fill_diagonal(above, 0.0)
    rank = 1.0 + above.sum(axis=1)
    value = 1.0 - (gains / ideal / np.log2(1.0 + rank)).sum()
    by_rank = gains / ideal * np.log(2.0) / ((1.0 + rank) * np.log(1.0 + rank) ** 2)
    slopes = by_rank[:, np.newaxis] * above * (1.0 - above) / temperature
    return float(value), slopes.sum(axis=0) - slopes.sum(axis=1)


def soft_rank(scores: FloatArray, gains: FloatArray, cutoff: int, deviation: float) -> Loss:
    """Compute 1 minus the NDCG@K expected if each document lost to the others independently. O(D^3 K).

    Document j is beaten by i with probability Phi((f_i - f_j) / (deviation sqrt 2)). The derivative by one of these
    probabilities comes from the distribution of the ranks without it.
    """
    ideal = ideal_dcg(gains, discounts_to(cutoff, gains.size))
    if ideal == 0.0:
        return 0.0, np.zeros(scores.size)
    discounts = discounts_to(cutoff, scores.size)
    scale = deviation * np.sqrt(2.0)
    value, gradient = 1.0, np.zeros(scores.size)
    for j in np.flatnonzero(gains):
        others = np.delete(np.arange(scores.size), j)
        x = (scores[others] - scores[j]) / scale
        beat = np.array([0.5 * (1.0 + erf(v / np.sqrt(2.0))) for v in x])
        density = np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi) / scale
        value -= gains[j] / ideal * (rank_distribution(beat) @ discounts)
        without = rank_distribution(np.where(np.eye(others.size), 0.0, beat))[:, :-1]  # a row without each
        slopes = gains[j] / ideal * density * (without @ (discounts[1:] - discounts[:-1]))
        gradient[others] -= slopes
        gradient[j] += slopes.sum()
    return float(value), gradient


def rank_distribution(beat: FloatArray) -> FloatArray:
    """Return the probabilities of 0, 1, ... defeats from independent probabilities of each, for every row."""
    distribution = np.ones((*beat.shape[:-1], 1))
    none = np.zeros_like(distribution)
    for chance in np.moveaxis(beat, -1, 0)[..., np.newaxis]:
        kept, beaten = distribution * (1.0 - chance), distribution * chance
        distribution = np.append(kept, none, axis=-1) + np.append(none, beaten, axis=-1)
    return distribution
