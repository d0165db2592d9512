"""Reference values of the losses: their definitions term by term in extended precision, as (value, gradient).

Gains and discounts are the doubles of ``plrank_fast.gains`` and ``dcg_weights``.
"""

from __future__ import annotations

import numpy as np
from scipy import special

import plrank_fast as plr
import ranking_reference
from error_bounds import Terms
from plrank_fast.reference.losses import ranks_by

Loss = tuple[Terms, Terms]
SQRT_PI = np.sqrt(np.longdouble("3.14159265358979323846264338327950288"))
LN_2 = np.log(np.longdouble(2))
FARTHEST = 11000.0  # e to the minus this is still a number in extended precision


def softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + exp(x))."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.minimum(np.abs(x), FARTHEST)))


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x))."""
    small = np.exp(-np.minimum(np.abs(x), FARTHEST))
    return np.where(x > 0, 1, small) / (1 + small)


def normal_tail(x: np.ndarray) -> np.ndarray:
    """P(Z > x sqrt 2) for normal Z: the function for doubles, and its slope times the argument's rounding error."""
    near = np.clip(x, -30, 30)
    rounded = near.astype(float)
    slope = -np.exp(-np.square(rounded.astype(np.longdouble))) / SQRT_PI
    return special.erfc(rounded).astype(np.longdouble) / 2 + slope * (near - rounded)


def ideal_dcg(gains: np.ndarray, cutoff: int) -> np.longdouble:
    best = np.sort(gains)[::-1][:cutoff].astype(np.longdouble)
    return (best * plr.dcg_weights(best.size)).sum()


def nothing(n_docs: int) -> Loss:
    return Terms(0.0), Terms(np.zeros(n_docs))


def pointwise(scores: np.ndarray, labels: np.ndarray, kind: str) -> Loss:
    """Squared differences, or cross-entropy."""
    f, y = scores.astype(np.longdouble), labels.astype(np.longdouble)
    if kind == "squared":
        return Terms(np.square(f - y)).sum(), 2 * (Terms(f) - y)
    return Terms(y * softplus(-f) + (1 - y) * softplus(f)).sum(), Terms(sigmoid(f)) - y


def softmax_cross_entropy(scores: np.ndarray, labels: np.ndarray) -> Loss:
    """Labels over their sum are a distribution over the first document."""
    f, y = scores.astype(np.longdouble), labels.astype(np.longdouble)
    if not y.any():
        return nothing(f.size)
    below, y = f.max() - f, y / y.max()
    share = y / y.sum()
    weights = np.exp(-np.minimum(below, FARTHEST))
    value = Terms(share * (below + np.log(weights.sum()))).sum() + Terms(0.0, 1.0)  # a logarithm errs by an ulp of 1
    return value, Terms(weights / weights.sum()) - share


def list_mle(scores: np.ndarray, labels: np.ndarray, cutoff: int) -> Loss:
    """Minus the log-probability of the first ranks by label; of equal labels the lower index comes first."""
    ranking = np.argsort(-labels, kind="stable")[:cutoff]
    value = Terms(0.0, ranking.size) - ranking_reference.log_prob(scores, ranking)  # a logarithm errs by an ulp of 1
    return value, ranking_reference.log_prob_gradient(scores, ranking[np.newaxis], np.array([-1.0]))


def weighted_pairs(scores: np.ndarray, weights: Terms, slope: float) -> Loss:
    """Sum over pairs of ``weights[i, j]`` softplus(-slope (f_i - f_j))."""
    f = scores.astype(np.longdouble)
    behind = np.longdouble(slope) * (f - f[:, np.newaxis])
    push = weights * (sigmoid(behind) * np.longdouble(slope))
    return (weights * softplus(behind)).sum(), push.sum(axis=0) - push.sum(axis=1)


def pairwise_logistic(scores: np.ndarray, labels: np.ndarray, slope: float) -> Loss:
    """Every pair of unequal labels."""
    return weighted_pairs(scores, Terms(labels[:, np.newaxis] > labels), slope)


def lambda_loss(
    scores: np.ndarray, labels: np.ndarray, cutoff: int, slope: float, mu: float, truncation: str = "metric"
) -> Loss:
    """LambdaLoss, and with ``mu`` of 0 LambdaRank, in natural logarithms; a difference of gains has two terms."""
    gains, ranks = plr.gains(labels).astype(np.longdouble), ranks_by(scores)
    table = plr.dcg_weights(scores.size + 1).astype(np.longdouble)
    discounts = table[ranks]
    if truncation == "metric":
        discounts = np.where(ranks < cutoff, discounts, 0)
    counts = (gains[:, np.newaxis] > gains) & (np.minimum.outer(ranks, ranks) < cutoff)
    if not counts.any():
        return nothing(scores.size)
    distance = np.maximum(np.abs(np.subtract.outer(ranks, ranks)), 1)
    worth = np.abs(np.subtract.outer(discounts, discounts)) + mu * (table[distance - 1] - table[distance])
    worth = np.where(counts, worth / ideal_dcg(gains / gains.max(), cutoff) / gains.max(), 0)
    return weighted_pairs(scores, worth * (Terms(gains[:, np.newaxis]) - gains), slope)


def approx_ndcg(scores: np.ndarray, labels: np.ndarray, temperature: float) -> Loss:
    """One minus NDCG at smooth ranks."""
    f, gains = scores.astype(np.longdouble), plr.gains(labels).astype(np.longdouble)
    if not gains.any():
        return nothing(f.size)
    gains = gains / gains.max()
    gains = gains / ideal_dcg(gains, gains.size)
    behind = (f - f[:, np.newaxis]) / np.longdouble(temperature)
    beaten, beats = sigmoid(behind), sigmoid(-behind)
    np.fill_diagonal(beaten, 0)
    ranks = 1 + beaten.sum(axis=1)
    terms = gains * LN_2 / np.log1p(ranks)
    by_rank = terms / ((1 + ranks) * np.log1p(ranks))
    slopes = by_rank[:, np.newaxis] * beaten * beats / np.longdouble(temperature)
    return 1 - Terms(terms).sum(), Terms(slopes.sum(axis=0)) - slopes.sum(axis=1)


def soft_rank(scores: np.ndarray, labels: np.ndarray, cutoff: int, sigma: float) -> Loss:
    """One minus the expected NDCG if a document lost to each other independently.

    The derivative by one of the chances to lose comes from the distribution of the rank over those before it, and from
    what each rank is worth once those after it have been met: nothing is divided. As an absolute term of the gradient
    counts the derivative if another defeat cost a whole discount of 1: chances of ranks are sums of products that have
    absolute errors, not relative ones.
    """
    f, gains = scores.astype(np.longdouble), plr.gains(labels).astype(np.longdouble)
    gradient = np.zeros((2, f.size), np.longdouble)
    if not gains.any():
        return nothing(f.size)
    gains = gains / gains.max()
    gains = gains / ideal_dcg(gains, cutoff)
    worth = np.zeros(f.size + 1, np.longdouble)
    worth[:cutoff] = plr.dcg_weights(f.size + 1)[:cutoff]
    expected = np.longdouble(0)
    for j in np.flatnonzero(gains):
        others = np.delete(np.arange(f.size), j)
        x = (f[others] - f[j]) / (2 * np.longdouble(sigma))
        lose, win = normal_tail(-x), normal_tail(x)
        density = np.exp(-np.minimum(np.square(x), FARTHEST)) / (2 * np.longdouble(sigma) * SQRT_PI)
        after = np.empty((others.size + 1, f.size + 1), np.longdouble)
        after[-1] = worth
        for i in range(others.size - 1, -1, -1):
            after[i] = win[i] * after[i + 1] + lose[i] * np.append(after[i + 1][1:], 0)
        rank = np.zeros(f.size + 1, np.longdouble)
        rank[0] = 1
        for i, other in enumerate(others):
            drop = (rank[:-1] * (after[i + 1][1:] - after[i + 1][:-1])).sum()
            slope = gains[j] * density[i] * np.array([drop, 1.0], np.longdouble)
            gradient[:, other] += slope * (-1, 1)
            gradient[:, j] += slope
            rank[1:], rank[0] = win[i] * rank[1:] + lose[i] * rank[:-1], win[i] * rank[0]
        expected += gains[j] * (rank @ worth)
    return 1 - Terms(expected), Terms(*gradient)
