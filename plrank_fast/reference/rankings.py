"""Rankings of one query, their probabilities and their metrics."""

from __future__ import annotations

import itertools

import numpy as np

from plrank_fast.validation import FloatArray, IntArray

__all__ = [
    "all_rankings", "bucket_log_prob", "dcg", "expected_metric", "exposure", "metric", "ranking_log_prob",
    "ranking_log_prob_gradient", "sample_rankings", "weight_not_placed",
]  # fmt: skip


def sample_rankings(scores: FloatArray, n_samples: int, cutoff: int, rng: np.random.Generator) -> IntArray:
    """Draw rankings, (N, K): perturb with Gumbel noise, select the K best, sort them. O(N D)."""
    cutoff = min(cutoff, scores.size)
    arrivals = rng.standard_exponential((n_samples, scores.size)) * np.exp(scores.max() - scores)
    first = np.argpartition(arrivals, cutoff - 1, axis=1)[:, :cutoff]
    order = np.argsort(np.take_along_axis(arrivals, first, axis=1), axis=1)
    return np.take_along_axis(first, order, axis=1)


def all_rankings(n_docs: int) -> IntArray:
    """Return every ranking of ``n_docs`` documents, (n_docs!, n_docs)."""
    return np.array(list(itertools.permutations(range(n_docs))), dtype=np.int64).reshape(-1, n_docs)


def ranking_log_prob_gradient(scores: FloatArray, rankings: IntArray) -> FloatArray:
    """Compute the derivative of log-probabilities by the scores, (N, D): 1 if placed, less the probability per rank.

    A ranking may end early, with -1 after its last item.
    """
    gradient = np.zeros((len(rankings), scores.size), np.result_type(scores, float))
    for ranking, row in zip(rankings, gradient, strict=True):
        left = np.ones(scores.size, dtype=bool)
        for item in ranking[ranking >= 0]:
            weights = np.exp(np.where(left, scores - scores[left].max(), -np.inf))
            row -= weights / weights.sum()
            row[item] += 1.0
            left[item] = False
    return gradient


def weight_not_placed(scores: FloatArray, rankings: IntArray) -> FloatArray:
    """Compute S_k = sum of w over the items not placed before rank k, (N, K), summed from the tail."""
    weights = np.exp(scores - scores.max())
    left_over = np.ones((len(rankings), scores.size), dtype=bool)
    np.put_along_axis(left_over, rankings, False, axis=1)
    after = np.where(left_over, weights, 0.0).sum(axis=1, keepdims=True)
    return after + np.cumsum(weights[rankings][:, ::-1], axis=1)[:, ::-1]


def ranking_log_prob(scores: FloatArray, rankings: IntArray) -> FloatArray:
    """Compute the log-probability of each ranking, (N,): sum over ranks of f_{y_k} - log S_k."""
    shifted = scores - scores.max()
    result: FloatArray = (shifted[rankings] - np.log(weight_not_placed(scores, rankings))).sum(axis=1)
    return result


def bucket_log_prob(scores: FloatArray, buckets: IntArray) -> float:
    """Compute the log-probability of a ranking with ties by recursion over the 2^n subsets of each bucket of n."""
    result = 0.0
    for number in np.unique(buckets):
        left = scores[buckets >= number]
        weights = np.exp(left - left.max())
        tied = np.flatnonzero(buckets[buckets >= number] == number)
        placed = np.zeros(2**tied.size)  # chance that the members of a subset come first, in any order
        placed[0] = 1.0
        for subset in range(1, placed.size):
            inside = [k for k in range(tied.size) if subset >> k & 1]
            outside = np.delete(weights, tied[inside]).sum()
            for k in inside:
                placed[subset] += placed[subset & ~(1 << k)] * weights[tied[k]] / (outside + weights[tied[k]])
        result += np.log(placed[-1])
    return float(result)


def metric(relevance: FloatArray, rank_weights: FloatArray, rankings: IntArray) -> FloatArray:
    """Compute the metric of each ranking, (N,): sum over k of theta_k rho_{y_k}."""
    cutoff = min(rank_weights.size, rankings.shape[1])
    return relevance[rankings[:, :cutoff]] @ rank_weights[:cutoff]


def exposure(n_docs: int, rank_weights: FloatArray, rankings: IntArray) -> FloatArray:
    """Average over the rankings the rank weight that each document gets, (n_docs,). O(N K)."""
    cutoff = min(rank_weights.size, rankings.shape[1])
    result = np.zeros(n_docs)
    for ranking in rankings:
        result[ranking[:cutoff]] += rank_weights[:cutoff]
    return result / len(rankings)


def dcg(scores: FloatArray, relevance: FloatArray, rank_weights: FloatArray) -> float:
    """Compute the metric of the ranking by descending score; of equal scores the lower index comes first."""
    return float(metric(relevance, rank_weights, np.argsort(-scores, kind="stable")[np.newaxis])[0])


def expected_metric(scores: FloatArray, relevance: FloatArray, rank_weights: FloatArray) -> float:
    """Compute the expected metric by enumeration of all rankings. O(D!)."""
    rankings = all_rankings(scores.size)
    return float(np.exp(ranking_log_prob(scores, rankings)) @ metric(relevance, rank_weights, rankings))
