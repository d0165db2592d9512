"""The readable NumPy twin of every kernel: one query at a time, written from the formulas.

These functions are the oracle of the tests and the "before" of the benchmarks. They take and return plain arrays of
one query, check nothing, and are exact while the scores lie within a few hundred nats of each other. Symbols: f scores,
w = exp(f), rho relevance, theta rank weights, y a ranking, N rankings, D documents, K ranks.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from math import erfc

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast.reference_losses import (
    approx_ndcg,
    lambda_loss,
    list_mle,
    pairwise_logistic,
    pointwise_logistic,
    pointwise_squared,
    rankings_by_label,
    soft_rank,
    softmax_cross_entropy,
)
from plrank_fast.reference_metrics import (
    average_precision,
    average_relevance_position,
    expected_reciprocal_rank,
    precision,
    rank_biased_precision,
    recall,
    reciprocal_rank,
    success,
    tie_averaged_dcg,
)
from plrank_fast.validation import FloatArray, IntArray

__all__ = [
    "all_rankings",
    "approx_ndcg",
    "average_precision",
    "average_relevance_position",
    "conditional_monte_carlo",
    "dcg",
    "exact_gradient",
    "exact_hessian_diagonal",
    "expectation",
    "expected_metric",
    "expected_reciprocal_rank",
    "gumbel_density",
    "lambda_loss",
    "list_mle",
    "metric",
    "normal_cdf",
    "normal_density",
    "pairwise_logistic",
    "pl_rank_1",
    "pl_rank_2",
    "pl_rank_3",
    "pointwise_logistic",
    "pointwise_squared",
    "policy_gradient",
    "precision",
    "rank_biased_precision",
    "ranking_log_prob",
    "rankings_by_label",
    "recall",
    "reciprocal_rank",
    "reward_from",
    "sample_rankings",
    "soft_rank",
    "softmax_cross_entropy",
    "stochastic_rank",
    "success",
    "tie_averaged_dcg",
    "weight_not_placed",
]

# ---------------------------------------------------------------------------------------------------------------------
# Rankings
# ---------------------------------------------------------------------------------------------------------------------


def sample_rankings(scores: FloatArray, n_samples: int, cutoff: int, rng: np.random.Generator) -> IntArray:
    """Draw rankings, (N, K): perturb with Gumbel noise, select the K best, sort them. O(N D)."""
    cutoff = min(cutoff, scores.size)
    arrivals = rng.standard_exponential((n_samples, scores.size)) * np.exp(scores.max() - scores)
    first = np.argpartition(arrivals, cutoff - 1, axis=1)[:, :cutoff]
    order = np.argsort(np.take_along_axis(arrivals, first, axis=1), axis=1)
    return np.take_along_axis(first, order, axis=1)


def all_rankings(n_docs: int) -> IntArray:
    """Every ranking of ``n_docs`` documents, (n_docs!, n_docs)."""
    return np.array(list(itertools.permutations(range(n_docs))), dtype=np.int64).reshape(-1, n_docs)


def weight_not_placed(scores: FloatArray, rankings: IntArray) -> FloatArray:
    """S_k = sum of w over the items not placed before rank k, (N, K), summed from the tail."""
    weights = np.exp(scores - scores.max())
    left_over = np.ones((len(rankings), scores.size), dtype=bool)
    np.put_along_axis(left_over, rankings, False, axis=1)
    after = np.where(left_over, weights, 0.0).sum(axis=1, keepdims=True)
    return after + np.cumsum(weights[rankings][:, ::-1], axis=1)[:, ::-1]


def ranking_log_prob(scores: FloatArray, rankings: IntArray) -> FloatArray:
    """Log-probability of each ranking, (N,): sum over ranks of f_{y_k} - log S_k."""
    shifted = scores - scores.max()
    result: FloatArray = (shifted[rankings] - np.log(weight_not_placed(scores, rankings))).sum(axis=1)
    return result


# ---------------------------------------------------------------------------------------------------------------------
# Metrics
# ---------------------------------------------------------------------------------------------------------------------


def metric(relevance: FloatArray, rank_weights: FloatArray, rankings: IntArray) -> FloatArray:
    """Metric of each ranking, (N,): sum over k of theta_k rho_{y_k}."""
    cutoff = min(rank_weights.size, rankings.shape[1])
    return relevance[rankings[:, :cutoff]] @ rank_weights[:cutoff]


def dcg(scores: FloatArray, relevance: FloatArray, rank_weights: FloatArray) -> float:
    """Metric of the ranking by descending score; of equal scores the lower index comes first."""
    return float(metric(relevance, rank_weights, np.argsort(-scores, kind="stable")[np.newaxis])[0])


def expected_metric(scores: FloatArray, relevance: FloatArray, rank_weights: FloatArray) -> float:
    """Compute the expected metric by enumeration of all rankings. O(D!)."""
    rankings = all_rankings(scores.size)
    return float(np.exp(ranking_log_prob(scores, rankings)) @ metric(relevance, rank_weights, rankings))


# ---------------------------------------------------------------------------------------------------------------------
# Gradients of the expected metric
# ---------------------------------------------------------------------------------------------------------------------


def exact_gradient(scores: FloatArray, relevance: FloatArray, rank_weights: FloatArray) -> FloatArray:
    """Gradient of the expected metric by enumeration: sum over y of pi(y) metric(y) d log pi(y) / df. O(D! D^2)."""
    rankings = all_rankings(scores.size)
    probabilities = np.exp(ranking_log_prob(scores, rankings))
    weights = np.exp(scores - scores.max())
    sums = weight_not_placed(scores, rankings)
    ranks = np.argsort(rankings, axis=1)
    # d log pi(y) / df_d = 1 - sum over k <= rank(d) of w_d / S_k
    inverse_sums = np.cumsum(1.0 / sums, axis=1)
    score_function = 1.0 - weights * np.take_along_axis(inverse_sums, ranks, axis=1)
    return (probabilities * metric(relevance, rank_weights, rankings)) @ score_function


def expectation(
    estimator: Callable[..., FloatArray], scores: FloatArray, relevance: FloatArray, rank_weights: FloatArray
) -> FloatArray:
    """Exact expectation of ``estimator(scores, relevance, rank_weights, rankings=...)`` over all rankings."""
    rankings = all_rankings(scores.size)
    probabilities = np.exp(ranking_log_prob(scores, rankings))
    total = np.zeros(scores.size)
    for probability, ranking in zip(probabilities, rankings, strict=True):
        total += probability * estimator(scores, relevance, rank_weights, rankings=ranking[np.newaxis])
    return total


def reward_from(relevance: FloatArray, rank_weights: FloatArray, rankings: IntArray) -> FloatArray:
    """PR_k = sum over x >= k of theta_x rho_{y_x}, (N, K + 1); the last column is 0."""
    placed = rank_weights * relevance[rankings]
    reward = np.cumsum(placed[:, ::-1], axis=1)[:, ::-1]
    return np.concatenate([reward, np.zeros((len(rankings), 1))], axis=1)


def pl_rank_1(scores: FloatArray, relevance: FloatArray, rank_weights: FloatArray, rankings: IntArray) -> FloatArray:
    """PL-Rank-1, mean over the rankings: PR_rank(d) - sum over k <= rank(d) of w_d / S_k PR_k. O(N D K)."""
    rank_weights, rankings = rank_weights[: scores.size], rankings[:, : rank_weights.size]
    weights = np.exp(scores - scores.max())
    reward = reward_from(relevance, rank_weights, rankings)
    sums = weight_not_placed(scores, rankings)
    gradient = np.zeros((len(rankings), scores.size))
    active = np.tile(weights, (len(rankings), 1))
    each = np.arange(len(rankings))
    for k in range(rankings.shape[1]):
        gradient -= active * (reward[:, k] / sums[:, k])[:, np.newaxis]
        gradient[each, rankings[:, k]] += reward[:, k]
        active[each, rankings[:, k]] = 0.0
    return gradient.mean(axis=0)


def pl_rank_2(scores: FloatArray, relevance: FloatArray, rank_weights: FloatArray, rankings: IntArray) -> FloatArray:
    """PL-Rank-2: PR_rank(d)+1 + sum over k <= rank(d) of w_d / S_k (theta_k rho_d - PR_k). O(N D K)."""
    rank_weights, rankings = rank_weights[: scores.size], rankings[:, : rank_weights.size]
    weights = np.exp(scores - scores.max())
    reward = reward_from(relevance, rank_weights, rankings)
    sums = weight_not_placed(scores, rankings)
    gradient = np.zeros((len(rankings), scores.size))
    active = np.tile(weights, (len(rankings), 1))
    each = np.arange(len(rankings))
    for k in range(rankings.shape[1]):
        share = rank_weights[k] * relevance - reward[:, k, np.newaxis]
        gradient += active / sums[:, k, np.newaxis] * share
        gradient[each, rankings[:, k]] += reward[:, k + 1]
        active[each, rankings[:, k]] = 0.0
    return gradient.mean(axis=0)


def pl_rank_3(scores: FloatArray, relevance: FloatArray, rank_weights: FloatArray, rankings: IntArray) -> FloatArray:
    """PL-Rank-3: PR_rank(d)+1 + w_d (rho_d DR_rank(d) - RI_rank(d)), the sums DR and RI over ranks shared. O(N D)."""
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
    """REINFORCE: rewards of whole rankings, or ``to_go`` from each rank on, times d log pi / df. O(N D K)."""
    rank_weights, rankings = rank_weights[: scores.size], rankings[:, : rank_weights.size]
    weights = np.exp(scores - scores.max())
    reward = reward_from(relevance, rank_weights, rankings)[:, :-1]
    advantage = reward if to_go else np.repeat(reward[:, :1], reward.shape[1], axis=1)
    if baseline:
        advantage = advantage - (advantage.sum(axis=0) - advantage) / (len(rankings) - 1)
    sums = weight_not_placed(scores, rankings)
    gradient = np.zeros((len(rankings), scores.size))
    active = np.tile(weights, (len(rankings), 1))
    each = np.arange(len(rankings))
    for k in range(rankings.shape[1]):
        gradient -= active * (advantage[:, k] / sums[:, k])[:, np.newaxis]
        gradient[each, rankings[:, k]] += advantage[:, k]
        active[each, rankings[:, k]] = 0.0
    return gradient.mean(axis=0)


def stochastic_rank(
    scores: FloatArray,
    relevance: FloatArray,
    rank_weights: FloatArray,
    noisy_scores: FloatArray,
    density: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """StochasticRank: mean over samples of sum over i != j of phi(u_i - f_j) c_k (rho_j - rho_i). O(N D K).

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
    """exp(-x - exp(-x)), the density of standard Gumbel noise; 0 where it underflows."""
    decay = np.exp(-np.maximum(x, -7.0))
    return np.exp(-x - decay, where=x > -7.0, out=np.zeros_like(x))


def normal_density(x: FloatArray) -> FloatArray:
    """Density of standard normal noise."""
    return np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi)


def normal_cdf(x: FloatArray) -> FloatArray:
    """Distribution function of standard normal noise, with full relative accuracy in its tail."""
    return 0.5 * np.array([erfc(y) for y in (np.sqrt(0.5) * -x).flat]).reshape(x.shape)


def conditional_monte_carlo(
    scores: FloatArray, relevance: FloatArray, rank_weights: FloatArray, rankings: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Gradient and Hessian diagonal by conditional Monte Carlo, mean over the rankings. O(N D K).

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


def exact_hessian_diagonal(scores: FloatArray, relevance: FloatArray, rank_weights: FloatArray) -> FloatArray:
    """Diagonal of the Hessian of the expected metric by enumeration. O(D! D^2).

    Sum over y of pi(y) metric(y) (s_d^2 + ds_d / df_d) with s_d = d log pi(y) / df_d.
    """
    rankings = all_rankings(scores.size)
    probabilities = np.exp(ranking_log_prob(scores, rankings))
    weights = np.exp(scores - scores.max())
    sums = weight_not_placed(scores, rankings)
    ranks = np.argsort(rankings, axis=1)
    chances = weights * np.take_along_axis(np.cumsum(1.0 / sums, axis=1), ranks, axis=1)
    squares = weights**2 * np.take_along_axis(np.cumsum(1.0 / sums**2, axis=1), ranks, axis=1)
    return (probabilities * metric(relevance, rank_weights, rankings)) @ ((1.0 - chances) ** 2 - chances + squares)


# ---------------------------------------------------------------------------------------------------------------------
# Without sampling
# ---------------------------------------------------------------------------------------------------------------------


def _leave_one_out(
    density: FloatArray, p: FloatArray, q: FloatArray, relevance: FloatArray, rank_weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Y_j and X_j (see ``pl_rank_exact``) and the value's integrand, for all times at once, without dividing.

    ``density`` is that of each item's arrival time: w q of exponential ones.

    Prefix products of ``L_j(z) = q_j + p_j z`` and of ``B`` going forward; their adjoints going backward.
    """
    n_nodes, n_items = q.shape
    cutoff = len(rank_weights)
    P = np.zeros((n_items + 1, n_nodes, cutoff))
    B = np.zeros((n_items + 1, n_nodes, cutoff))
    P[0, :, 0] = 1.0
    for j in range(n_items):
        a = (relevance[j] * density[:, j])[:, None]
        P[j + 1] = q[:, j, None] * P[j]
        P[j + 1, :, 1:] += p[:, j, None] * P[j, :, :-1]
        B[j + 1] = q[:, j, None] * B[j] + a * P[j]
        B[j + 1, :, 1:] += p[:, j, None] * B[j, :, :-1]
    alpha = np.tile(rank_weights, (n_nodes, 1))
    beta = np.zeros_like(alpha)
    X = np.empty((n_nodes, n_items))
    Y = np.empty((n_nodes, n_items))

    def minus_one(polynomial: FloatArray) -> FloatArray:
        shifted: FloatArray = -polynomial
        shifted[:, 1:] += polynomial[:, :-1]
        return shifted

    def transposed(j: int, adjoint: FloatArray) -> FloatArray:
        result: FloatArray = q[:, j, None] * adjoint
        result[:, :-1] += p[:, j, None] * adjoint[:, 1:]
        return result

    for j in range(n_items - 1, -1, -1):
        a = (relevance[j] * density[:, j])[:, None]
        Y[:, j] = (alpha * P[j]).sum(1)
        X[:, j] = (alpha * minus_one(B[j])).sum(1) + (beta * minus_one(P[j])).sum(1)
        beta = transposed(j, beta) + a * alpha
        alpha = transposed(j, alpha)
    return Y, X, B[n_items] @ rank_weights


def exact_by_trapezoid(
    scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike, step: float = 0.02
) -> tuple[float, FloatArray, FloatArray]:
    """Value, gradient and Hessian diagonal of one query by the trapezoid rule in ln t (exponentially convergent)."""
    scores = np.asarray(scores, float)
    relevance = np.asarray(relevance, float)
    n_items = len(scores)
    rank_weights = np.asarray(rank_weights, float)[:n_items]
    f = scores - scores.max()
    w = np.exp(f)
    value = 0.0
    gradient, hessian = np.zeros(n_items), np.zeros(n_items)
    times = np.exp(np.arange(-np.log(w.sum()) - 37.0, 4.0 - f.min(), step))
    for t in np.array_split(times, max(1, len(times) * n_items * len(rank_weights) // 2_000_000)):
        x = t[:, None] * w
        q = np.exp(-x)
        Y, X, integrand = _leave_one_out(w * q, 1.0 - q, q, relevance, rank_weights)
        dt = t * step
        value += float(dt @ integrand)
        gradient += dt @ (w * q * (relevance * (1 - x) * Y + t[:, None] * X))
        hessian += dt @ (w * q * (relevance * ((1 - x) ** 2 - x) * Y + t[:, None] * (1 - x) * X))
    return value, gradient, hessian


def exact_normal_by_trapezoid(
    scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike, sigma: float = 1.0, step: float = 0.05
) -> tuple[float, FloatArray, FloatArray]:
    """Value, gradient and Hessian diagonal for scores with normal noise, by the trapezoid rule in u. O(Q D K).

    Given that item j comes at u, the others are ahead of it with chances p = Phi((f - u) / sigma).
    """
    scores = np.asarray(scores, float) / sigma
    relevance = np.asarray(relevance, float)
    n_items = len(scores)
    rank_weights = np.asarray(rank_weights, float)[:n_items]
    value = 0.0
    gradient, hessian = np.zeros(n_items), np.zeros(n_items)
    points = np.arange(scores.min() - 9.0, scores.max() + 9.0, step)
    for u in np.array_split(points, max(1, len(points) * n_items * len(rank_weights) // 2_000_000)):
        y = u[:, None] - scores
        density = normal_density(y)
        Y, X, integrand = _leave_one_out(density, normal_cdf(-y), normal_cdf(y), relevance, rank_weights)
        value += step * float(integrand.sum())
        gradient += step * (density * (relevance * y * Y + X)).sum(axis=0)
        hessian += step * (density * (relevance * (y**2 - 1.0) * Y + y * X)).sum(axis=0)
    return value, gradient / sigma, hessian / sigma**2


def exact_by_subsets(
    scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike
) -> tuple[float, FloatArray, FloatArray]:
    """Value, gradient and Hessian diagonal of one query in extended precision, from all sets of items (D <= 14).

    With the set A left over and k items placed, item j of A is next with chance pi_j = w_j / sum of w over A, so ::

        V(A) = sum_j pi_j c_j,   c_j = theta_{k+1} rho_j + V(A without j)

    is what is still expected, and its derivatives by one score follow from those of the sets that are smaller by one
    item. No time, no integral, no difference of large numbers. O(2^D D^2).
    """
    scores = np.asarray(scores, np.longdouble)
    relevance = np.asarray(relevance, np.longdouble)
    n_items = len(scores)
    theta = np.asarray(rank_weights, np.longdouble)[:n_items]
    weights, items = np.exp(scores - scores.max()), np.arange(n_items)
    placed = np.arange(2**n_items)  # as bits
    n_placed = (placed[:, np.newaxis] >> items & 1).sum(axis=1)
    left_over = np.zeros(1, np.longdouble)
    for j in range(n_items):
        left_over = np.concatenate([left_over, left_over + weights[j]])
    left_over = left_over[::-1]
    value = np.zeros(2**n_items, np.longdouble)
    gradient, hessian = np.zeros((2, 2**n_items, n_items), np.longdouble)
    for k in reversed(range(len(theta))):
        here = placed[n_placed == k]
        chance = np.where(here[:, np.newaxis] >> items & 1, 0, weights / left_over[here, np.newaxis])
        following = here[:, np.newaxis] | 1 << items
        choice = theta[k] * relevance + value[following]
        value[here] = (chance * choice).sum(axis=1)
        gain = chance * (choice - value[here, np.newaxis])
        later = (chance[:, :, np.newaxis] * gradient[following]).sum(axis=1)
        gradient[here] = gain + later
        hessian[here] = (1 - chance) * gain - chance * (gradient[here] + later)
        hessian[here] += (chance[:, :, np.newaxis] * hessian[following]).sum(axis=1)
    return float(value[0]), gradient[0].astype(float), hessian[0].astype(float)


def exact_by_enumeration(
    scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """Value, gradient, Hessian diagonal and rank probabilities of one query by enumerating all rankings (D <= 7)."""
    scores = np.asarray(scores, float)
    relevance = np.asarray(relevance, float)
    n_items = len(scores)
    rank_weights = np.asarray(rank_weights, float)[:n_items]
    cutoff = len(rank_weights)
    value, gradient, hessian = 0.0, np.zeros(n_items), np.zeros(n_items)
    probabilities = np.zeros((n_items, cutoff))
    for ranking in itertools.permutations(range(n_items), cutoff):
        left = np.ones(n_items, bool)
        log_prob, score, curvature = 0.0, np.zeros(n_items), np.zeros(n_items)
        for item in ranking:
            f = np.where(left, scores, -np.inf)
            top = f.max()
            share = np.exp(f - top)
            log_prob += scores[item] - top - np.log(share.sum())
            share /= share.sum()
            score -= share
            score[item] += 1
            curvature -= share * (1 - share)
            left[item] = False
        probability = np.exp(log_prob)
        metric = rank_weights @ relevance[list(ranking)]
        value += probability * metric
        gradient += probability * metric * score
        hessian += probability * metric * (score**2 + curvature)
        probabilities[list(ranking), range(cutoff)] += probability
    return value, gradient, hessian, probabilities
