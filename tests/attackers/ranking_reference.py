"""Reference values of estimators for given rankings: their formulas term by term in extended precision.

Shares w_d / S_k are taken relative to the heaviest item that is left over, so no distance of the scores is too large.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from error_bounds import Terms, mean, stacked


def shares(scores: np.ndarray, ranking: np.ndarray) -> np.ndarray:
    """w_d / S_k for each rank k and each item d left over, 0 for the others; (K, D)."""
    left_over = np.ones(scores.size, bool)
    result = np.zeros((len(ranking), scores.size), np.longdouble)
    for k, item in enumerate(ranking):
        of_these = scores[left_over].astype(np.longdouble)
        weights = np.exp(of_these - of_these.max())
        result[k, left_over] = weights / weights.sum()
        left_over[item] = False
    return result


def log_prob(scores: np.ndarray, ranking: np.ndarray) -> Terms:
    """Log-probability of a ranking, itself and as the sum of its terms."""
    left_over = np.ones(scores.size, bool)
    total, absolute = np.longdouble(0), np.longdouble(0)
    for item in ranking:
        others = scores[left_over].astype(np.longdouble)
        distance = np.longdouble(scores[item]) - others.max()
        rest = np.log(np.exp(others - others.max()).sum())
        left_over[item] = False
        if distance > -10_000:  # near-certain choices are told from certain ones
            total -= np.log1p(np.exp(scores[left_over].astype(np.longdouble) - scores[item]).sum())
        else:
            total += distance - rest
        absolute += abs(distance) + rest
    return Terms(total, absolute)


def log_prob_of_prefixes(scores: np.ndarray, ranking: np.ndarray) -> Terms:
    """Log-probability of the ranks down to each, with as many ulps of 1 as ranks among the absolute terms."""
    parts = [log_prob(scores, ranking[: k + 1]) for k in range(len(ranking))]
    return stacked(parts) + Terms(0.0, 1 + np.arange(len(ranking)))


def places(scores: np.ndarray, ranking: np.ndarray) -> np.ndarray:
    """1 where an item has a rank, (D, K)."""
    return np.arange(scores.size)[:, np.newaxis] == ranking


def rewards(relevance: np.ndarray, rank_weights: np.ndarray, ranking: np.ndarray) -> Terms:
    """PR_k for each rank and one more."""
    placed = Terms(rank_weights.astype(np.longdouble) * relevance[ranking])
    return np.triu(np.ones((len(ranking) + 1, len(ranking)))) @ placed


def metric(relevance: np.ndarray, rank_weights: np.ndarray, rankings: np.ndarray) -> Terms:
    """Mean metric."""
    return mean([rewards(relevance, rank_weights, ranking)[0] for ranking in rankings])


def pl_rank(
    variant: int, scores: np.ndarray, relevance: np.ndarray, rank_weights: np.ndarray, rankings: np.ndarray
) -> Terms:
    """PL-Rank-1, 2 and 3."""
    own = np.outer(rank_weights.astype(np.longdouble), relevance) * (variant != 1)

    def of_one(ranking: np.ndarray) -> Terms:
        reward, share = rewards(relevance, rank_weights, ranking), shares(scores, ranking)
        later = reward[:-1] if variant == 1 else reward[1:]
        return (share * (own - reward[:-1, np.newaxis])).sum(axis=0) + places(scores, ranking) @ later

    return mean([of_one(ranking) for ranking in rankings])


def policy_gradient(
    scores: np.ndarray,
    relevance: np.ndarray,
    rank_weights: np.ndarray,
    rankings: np.ndarray,
    *,
    to_go: bool,
    baseline: bool,
) -> Terms:
    """REINFORCE on whole rankings, or on placements (``to_go``), each with the baseline of the others or without."""
    ranks = np.arange(rankings.shape[1])
    credit = [rewards(relevance, rank_weights, ranking)[ranks * to_go] for ranking in rankings]
    if baseline:
        credit = [one - mean(credit[:i] + credit[i + 1 :]) for i, one in enumerate(credit)]
    return credited(scores, rankings, credit) / len(rankings)


def log_prob_gradient(scores: np.ndarray, rankings: np.ndarray, cotangent: np.ndarray) -> Terms:
    """Sum of the gradients of the rankings' log-probabilities, each times a number."""
    return credited(scores, rankings, np.repeat(cotangent[:, np.newaxis], rankings.shape[1], axis=1))


def credited(scores: np.ndarray, rankings: Sequence[np.ndarray], credit: Sequence[Terms | np.ndarray]) -> Terms:
    """Sum over rankings i and ranks k of ``credit[i][k]`` d log P(y_k | what stands above) / df."""
    pairs = [(ranking, Terms(0.0) + one) for ranking, one in zip(rankings, credit, strict=True)]
    return sum(places(scores, ranking) @ one - shares(scores, ranking).T @ one for ranking, one in pairs)


def conditional_monte_carlo(
    scores: np.ndarray, relevance: np.ndarray, rank_weights: np.ndarray, rankings: np.ndarray, items: Iterable[int]
) -> tuple[Terms, Terms]:
    """Gradient and Hessian diagonal of ``pl_rank_cmc`` of some items, each taken out of the ranking in turn.

    The largest absolute terms of these items stand for each one's terms.
    """
    rank_weights = rank_weights.astype(np.longdouble)
    drops = rank_weights - np.append(rank_weights[1:], 0)

    def of_one(ranking: np.ndarray, d: int) -> Terms:
        before = np.append(ranking[ranking != d], d)[: rank_weights.size]  # the last of them is not looked at any more
        share = shares(scores, before)
        chance, rest = share[:, d], np.delete(share, d, axis=1).sum(axis=1)
        not_yet = np.cumprod(np.append(np.longdouble(1), rest[:-1]))
        part = drops[: len(before)] * not_yet * (relevance[d] - share @ Terms(relevance))
        chances = np.cumsum(chance)
        spread = np.cumsum(chance * rest) - Terms(chances**2)
        return stacked([(part * chances).sum(), (part * spread).sum()])

    both = mean([stacked([of_one(ranking, d) for d in items]) for ranking in rankings])
    return Terms(both.total[:, 0], both.absolute[:, 0].max()), Terms(both.total[:, 1], both.absolute[:, 1].max())


def pl_rank_hessian(scores: np.ndarray, relevance: np.ndarray, rank_weights: np.ndarray, rankings: np.ndarray) -> Terms:
    """Hessian diagonal of ``pl_rank_3``: X s + dX / df with X the gradient of one ranking, s its score function."""

    def of_one(ranking: np.ndarray) -> Terms:
        share, placed = shares(scores, ranking), places(scores, ranking)
        reward = rewards(relevance, rank_weights, ranking)
        excess = share * (np.outer(rank_weights.astype(np.longdouble), relevance) - reward[:-1, np.newaxis])
        slope = placed.sum(axis=1) - Terms(share.sum(axis=0))
        return (excess.sum(axis=0) + placed @ reward[1:]) * slope + ((1 - Terms(share)) * excess).sum(axis=0)

    return mean([of_one(ranking) for ranking in rankings])
