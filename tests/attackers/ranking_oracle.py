"""What estimators should give for given rankings: their formulas term by term in extended precision.

Each function returns a sum and the sum of its absolute terms, which is what an error may be measured by. Shares w_d /
S_k are taken relative to the heaviest item that is left over, so no distance of the scores is too large.
"""

from __future__ import annotations

import numpy as np

Pair = tuple[np.ndarray, np.ndarray]


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


def log_prob(scores: np.ndarray, ranking: np.ndarray) -> Pair:
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
    return total, absolute


def log_prob_of_prefixes(scores: np.ndarray, ranking: np.ndarray) -> Pair:
    """Log-probability of the ranks down to each, with as many ulps of 1 as ranks among the absolute terms."""
    parts = [log_prob(scores, ranking[: k + 1]) for k in range(len(ranking))]
    return np.array([total for total, _ in parts]), np.array([size + k + 1 for k, (_, size) in enumerate(parts)])


def _reward(relevance: np.ndarray, rank_weights: np.ndarray, ranking: np.ndarray) -> np.ndarray:
    """PR_k for each rank and one more, and the same of absolute terms; (2, K + 1)."""
    placed = rank_weights.astype(np.longdouble) * relevance[ranking].astype(np.longdouble)
    both = np.zeros((2, len(ranking) + 1), np.longdouble)
    both[:, :-1] = np.cumsum(np.array([placed, np.abs(placed)])[:, ::-1], axis=1)[:, ::-1]
    return both


def metric(relevance: np.ndarray, rank_weights: np.ndarray, rankings: np.ndarray) -> Pair:
    """Mean metric."""
    rewards = np.array([_reward(relevance, rank_weights, ranking)[:, 0] for ranking in rankings])
    total, absolute = rewards.mean(axis=0)
    return total, absolute


def pl_rank(
    variant: int, scores: np.ndarray, relevance: np.ndarray, rank_weights: np.ndarray, rankings: np.ndarray
) -> Pair:
    """PL-Rank-1, 2 and 3."""
    total, absolute = np.zeros((2, scores.size), np.longdouble)
    relevance, rank_weights = relevance.astype(np.longdouble), rank_weights.astype(np.longdouble)
    for ranking in rankings:
        reward, size = _reward(relevance, rank_weights, ranking)
        share = shares(scores, ranking)
        own = np.outer(rank_weights, relevance) * (variant != 1)
        total += (share * (own - reward[:-1, np.newaxis])).sum(axis=0)
        absolute += (share * (np.abs(own) + size[:-1, np.newaxis])).sum(axis=0)
        later = slice(0, -1) if variant == 1 else slice(1, None)
        total[ranking] += reward[later]
        absolute[ranking] += size[later]
    return total / len(rankings), absolute / len(rankings)


def policy_gradient(
    scores: np.ndarray,
    relevance: np.ndarray,
    rank_weights: np.ndarray,
    rankings: np.ndarray,
    *,
    to_go: bool,
    baseline: bool,
) -> Pair:
    """REINFORCE on whole rankings, or on placements (``to_go``), each with the baseline of the others or without."""
    both = np.array([_reward(relevance, rank_weights, ranking)[:, :-1] for ranking in rankings])
    if not to_go:
        both = np.repeat(both[:, :, :1], rankings.shape[1], axis=2)
    advantage, size = both[:, 0], both[:, 1]
    if baseline:
        advantage = advantage - (advantage.sum(axis=0) - advantage) / (len(rankings) - 1)
        size = size + (size.sum(axis=0) - size) / (len(rankings) - 1)
    total, absolute = credited(scores, rankings, advantage, size)
    return total / len(rankings), absolute / len(rankings)


def log_prob_gradient(scores: np.ndarray, rankings: np.ndarray, cotangent: np.ndarray) -> Pair:
    """Sum of the gradients of the rankings' log-probabilities, each times a number."""
    credit = np.repeat(cotangent.astype(np.longdouble)[:, np.newaxis], rankings.shape[1], axis=1)
    return credited(scores, rankings, credit, np.abs(credit))


def credited(scores: np.ndarray, rankings: np.ndarray, credit: np.ndarray, size: np.ndarray) -> Pair:
    """Sum over rankings i and ranks k of ``credit[i, k]`` d log P(y_k | what stands above) / df."""
    total, absolute = np.zeros((2, scores.size), np.longdouble)
    for ranking, of_ranks, most in zip(rankings, credit, size, strict=True):
        share = shares(scores, ranking)
        total -= of_ranks @ share
        absolute += most @ share
        total[ranking] += of_ranks
        absolute[ranking] += most
    return total, absolute


def conditional_monte_carlo(
    scores: np.ndarray, relevance: np.ndarray, rank_weights: np.ndarray, rankings: np.ndarray
) -> tuple[Pair, Pair]:
    """Gradient and Hessian diagonal of ``pl_rank_cmc``, with each item taken out of the ranking in turn."""
    relevance, rank_weights = relevance.astype(np.longdouble), rank_weights.astype(np.longdouble)
    drops = rank_weights - np.append(rank_weights[1:], 0)
    total, absolute = np.zeros((2, 2, scores.size), np.longdouble)
    for ranking in rankings:
        for d in range(scores.size):
            others = ranking[ranking != d]
            before = np.append(others, d)[: rank_weights.size]  # the last of them is not looked at any more
            share = shares(scores, before)
            mean, mean_size = share @ relevance, share @ np.abs(relevance)
            chance = share[:, d]
            rest = np.delete(share, d, axis=1).sum(axis=1)
            not_yet = np.cumprod(np.append(np.longdouble(1), rest[:-1]))
            chances, spread = np.cumsum(chance), np.cumsum(chance * rest)
            part = drops[: len(before)] * not_yet
            total[0, d] += (part * chances * (relevance[d] - mean)).sum()
            absolute[0, d] += (np.abs(part) * chances * (abs(relevance[d]) + mean_size)).sum()
            total[1, d] += (part * (spread - chances**2) * (relevance[d] - mean)).sum()
            absolute[1, d] += (np.abs(part) * (spread + chances**2) * (abs(relevance[d]) + mean_size)).sum()
    total, absolute = total / len(rankings), absolute / len(rankings)
    return (total[0], absolute[0]), (total[1], absolute[1])


def pl_rank_hessian(scores: np.ndarray, relevance: np.ndarray, rank_weights: np.ndarray, rankings: np.ndarray) -> Pair:
    """Hessian diagonal of ``pl_rank_3``: X s + dX / df with X the gradient of one ranking, s that of its log-prob."""
    total, absolute = np.zeros((2, scores.size), np.longdouble)
    relevance, rank_weights = relevance.astype(np.longdouble), rank_weights.astype(np.longdouble)
    for ranking in rankings:
        share = shares(scores, ranking)
        reward, size = _reward(relevance, rank_weights, ranking)
        own = np.outer(rank_weights, relevance)
        excess, most = own - reward[:-1, np.newaxis], np.abs(own) + size[:-1, np.newaxis]
        gradient, largest = (share * excess).sum(axis=0), (share * most).sum(axis=0)
        gradient[ranking] += reward[1:]
        largest[ranking] += size[1:]
        placed = np.zeros(scores.size)
        placed[ranking] = 1.0
        total += gradient * (placed - share.sum(axis=0)) + (share * (1 - share) * excess).sum(axis=0)
        absolute += largest * (placed + share.sum(axis=0)) + (share * (1 + share) * most).sum(axis=0)
    return total / len(rankings), absolute / len(rankings)
