"""Gradients estimated from sampled rankings of one query, from the formulas of their papers."""

from __future__ import annotations

from collections.abc import Callable
from math import erfc

import numpy as np

from plrank_fast.reference.rankings import weight_not_placed
from plrank_fast.validation import FloatArray, IntArray

__all__ = [
    "gumbel_density", "normal_cdf", "normal_density", "pl_rank_1", "pl_rank_2", "pl_rank_3", "pl_rank_cmc",
    "policy_gradient", "reward_from", "stochastic_rank",
]  # fmt: skip


def reward_from(relevance: FloatArray, rank_weights: FloatArray, rankings: IntArray) -> FloatArray:
    """Compute PR_k = sum over x >= k of theta_x rho_{y_x}, (N, K + 1); the last column is 0."""
    placed = rank_weights * relevance[rankings]
    reward = np.cumsum(placed[:, ::-1], axis=1)[:, ::-1]
    return np.concatenate([reward, np.zeros((len(rankings), 1))], axis=1)


def sum_over_choices(scores: FloatArray, rankings: IntArray, gains: FloatArray, own: FloatArray) -> FloatArray:
    """Average own_rank(d) + sum over k <= rank(d) of w_d / S_k gains_kd: own (N, K), gains (N, K, D or 1). O(N D K)."""
    sums = weight_not_placed(scores, rankings)
    gradient = np.zeros((len(rankings), scores.size))
    active = np.tile(np.exp(scores - scores.max()), (len(rankings), 1))
    each = np.arange(len(rankings))
    for k in range(rankings.shape[1]):
        gradient += active / sums[:, k, np.newaxis] * gains[:, k]
        gradient[each, rankings[:, k]] += own[:, k]
        active[each, rankings[:, k]] = 0.0
    return gradient.mean(axis=0)


def pl_rank_1(scores: FloatArray, relevance: FloatArray, rank_weights: FloatArray, rankings: IntArray) -> FloatArray:
    """Estimate with PL-Rank-1 the mean of PR_rank(d) - sum over k <= rank(d) of w_d / S_k PR_k. O(N D K)."""
    return policy_gradient(scores, relevance, rank_weights, rankings, to_go=True)


def pl_rank_2(scores: FloatArray, relevance: FloatArray, rank_weights: FloatArray, rankings: IntArray) -> FloatArray:
    """Estimate with PL-Rank-2: PR_rank(d)+1 + sum over k <= rank(d) of w_d / S_k (theta_k rho_d - PR_k). O(N D K)."""
    rank_weights, rankings = rank_weights[: scores.size], rankings[:, : rank_weights.size]
    reward = reward_from(relevance, rank_weights, rankings)
    gains = np.multiply.outer(rank_weights[: rankings.shape[1]], relevance) - reward[:, :-1, np.newaxis]
    return sum_over_choices(scores, rankings, gains, reward[:, 1:])


def pl_rank_3(scores: FloatArray, relevance: FloatArray, rank_weights: FloatArray, rankings: IntArray) -> FloatArray:
    """Estimate with PL-Rank-3: PR_rank(d)+1 + w_d (rho_d DR_rank(d) - RI_rank(d)), with shared sums. O(N D)."""
    rank_weights, rankings = rank_weights[: scores.size], rankings[:, : rank_weights.size]
    weights = np.exp(scores - scores.max())
    reward = reward_from(relevance, rank_weights, rankings)
    sums = weight_not_placed(scores, rankings)
    direct = np.cumsum(rank_weights / sums, axis=1)
    risk = np.cumsum(reward[:, :-1] / sums, axis=1)
    gradient = weights * (relevance * direct[:, -1:] - risk[:, -1:])
    placed = reward[:, 1:] + weights[rankings] * (relevance[rankings] * direct - risk)
    np.put_along_axis(gradient, rankings, placed, axis=1)
    return gradient.mean(axis=0)


def policy_gradient(
    scores: FloatArray,
    relevance: FloatArray,
    rank_weights: FloatArray,
    rankings: IntArray,
    *,
    to_go: bool = False,
    baseline: bool = False,
) -> FloatArray:
    """Estimate with REINFORCE: rewards of rankings, or ``to_go`` from each rank on, times d log pi / df. O(N D K)."""
    rank_weights, rankings = rank_weights[: scores.size], rankings[:, : rank_weights.size]
    reward = reward_from(relevance, rank_weights, rankings)[:, :-1]
    advantage = reward if to_go else np.repeat(reward[:, :1], reward.shape[1], axis=1)
    if baseline:
        advantage = advantage - (advantage.sum(axis=0) - advantage) / (len(rankings) - 1)
    return sum_over_choices(scores, rankings, -advantage[:, :, np.newaxis], advantage)


def stochastic_rank(
    scores: FloatArray,
    relevance: FloatArray,
    rank_weights: FloatArray,
    noisy_scores: FloatArray,
    density: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """Estimate with StochasticRank the mean of sum over i != j of phi(u_i - f_j) c_k (rho_j - rho_i). O(N D K).

    ``noisy_scores`` u are (N, D), c_k = theta_k - theta_{k+1}, and k <= K is the rank that i has without j: its own
    rank, or one less if j stands above it.
    """
    n_docs, cutoff = scores.size, min(rank_weights.size, scores.size)
    drops = np.append(rank_weights[:cutoff] - np.append(rank_weights[1:cutoff], 0.0), 0.0)
    first = np.argsort(-noisy_scores, axis=1)[:, : cutoff + 1]
    placed_at = np.full(noisy_scores.shape, n_docs)
    np.put_along_axis(placed_at, first, np.arange(first.shape[1])[np.newaxis], axis=1)
    gradient = np.zeros(n_docs)
    for k in range(first.shape[1]):
        item = first[:, k, np.newaxis]
        densities = density(np.take_along_axis(noisy_scores, item, axis=1) - scores)
        drop = np.where(placed_at < k, drops[k - 1], drops[k])
        gradient += (densities * drop * (relevance - relevance[item])).sum(axis=0)
    return gradient / len(noisy_scores)


def gumbel_density(x: FloatArray) -> FloatArray:
    """Compute exp(-x - exp(-x)), the density of standard Gumbel noise; 0 where it underflows."""
    decay = np.exp(-np.maximum(x, -7.0))
    return np.exp(-x - decay, where=x > -7.0, out=np.zeros_like(x))


def normal_density(x: FloatArray) -> FloatArray:
    """Compute the density of standard normal noise."""
    return np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi)


def normal_cdf(x: FloatArray) -> FloatArray:
    """Compute the distribution function of standard normal noise, with full relative accuracy in its tail."""
    return 0.5 * np.array([erfc(y) for y in (np.sqrt(0.5) * -x).flat]).reshape(x.shape)


def pl_rank_cmc(
    scores: FloatArray, relevance: FloatArray, rank_weights: FloatArray, rankings: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Estimate gradient and Hessian diagonal by conditional Monte Carlo, mean over the rankings. O(N D K).

    Item d is taken out of a ranking; at place j the others left over, and d, have the sums S_j and R_j of w and w rho.
    """
    cutoff = min(rank_weights.size, scores.size)
    drops = rank_weights[:cutoff] - np.append(rank_weights[1:cutoff], 0.0)
    weights = np.exp(scores - scores.max())
    gradient, hessian = np.zeros((2, scores.size))
    for ranking in rankings:
        for d in range(scores.size):
            left_over = np.ones(scores.size, dtype=bool)
            not_yet, chances, spread = 1.0, 0.0, 0.0
            others = [item for item in ranking if item != d]
            for j in range(cutoff):
                total = weights[left_over].sum()
                mean = (weights * relevance)[left_over].sum() / total
                chance = weights[d] / total
                chances += chance
                spread += chance * (1.0 - chance)
                share = drops[j] * not_yet * (relevance[d] - mean)
                gradient[d] += share * chances
                hessian[d] += share * (spread - chances**2)
                not_yet *= 1.0 - chance
                if j < len(others):
                    left_over[others[j]] = False
    return gradient / len(rankings), hessian / len(rankings)
