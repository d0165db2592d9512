"""Error over bound of metrics of a ranking, and of what sums over all rankings of few documents show to be exact.

References are the definitions in extended precision: metrics by sorting, the others by a row for every ranking.
"""

from __future__ import annotations

import itertools

import numpy as np

import plrank_fast as plr
from adversarial_problem import Problem
from error_bounds import OF_SUMS, OF_TERMS, Ratios, Terms, of_terms, ratio
from plrank_fast import off_policy, rewards

FARTHEST = 12.0  # scores whose exposures are asked for; beyond it they are too near to a limit
LEAST_SHOWN = 1e-6  # probability under the log, which is known to 1e-8
MOST_SESSIONS = 5


def metrics(problem: Problem, *, finer: bool = False) -> Ratios:
    """Every metric of a ranking by score; grades, chances and subtopics are made from the problem's relevance."""
    scores, relevance, rank_weights = problem.scores, problem.relevance, problem.rank_weights
    rng, cutoff = np.random.default_rng(problem.seed), problem.cutoff
    order = np.argsort(-scores, kind="stable")
    rank = np.arange(1, scores.size + 1)
    theta = np.zeros(scores.size, np.longdouble)
    theta[:cutoff] = rank_weights[:cutoff]
    grades = np.clip(np.round(4 * relevance / max(np.abs(relevance).max(), 1e-300)), 0, 4)
    found, gains = grades[order] > 0, np.abs(relevance).astype(np.longdouble)
    n_found, first = max(1, found.sum()), found[:cutoff]
    mean_of_tied = [relevance[scores == scores[d]].astype(np.longdouble).mean() for d in order]
    tied = Terms(mean_of_tied, [np.abs(relevance[scores == scores[d]]).mean() for d in order])
    ideal = (np.sort(gains)[::-1] * np.sort(np.abs(theta))[::-1]).sum()
    chance = (np.exp2(grades[order][:cutoff].astype(np.longdouble)) - 1) / 16
    looking = np.append(1, np.cumprod(1 - chance)[:-1])
    persistence, subtopics = rng.uniform(0.1, 0.95), rng.integers(0, 2, size=(scores.size, 3))
    total = grades[order][:cutoff].sum()
    plain, options = (scores, grades), {"offsets": [0, scores.size], "n_threads": 1}
    of_k = {"cutoff": cutoff, **options}
    pairs = {
        "dcg": (plr.dcg(scores, relevance, rank_weights, **options), (theta * Terms(relevance[order])).sum()),
        "dcg of ties": (
            plr.dcg(scores, relevance, rank_weights, ties="average", **options), (theta * tied).sum(),
        ),
        "ndcg": (
            plr.ndcg(scores, np.abs(relevance), np.abs(rank_weights), **options),
            (np.abs(theta) * gains[order]).sum() / (ideal or 1),
        ),
        "precision": (plr.precision(*plain, **of_k), np.longdouble(first.sum()) / cutoff),
        "recall": (plr.recall(*plain, **of_k), np.longdouble(first.sum()) / n_found),
        "ap": (
            plr.ap(*plain, **of_k),
            ((np.cumsum(first) / rank[:cutoff].astype(np.longdouble))[first]).sum() / n_found,
        ),
        "mrr": (
            plr.mrr(*plain, **of_k), 1 / np.longdouble(rank[:cutoff][first][0]) if first.any() else 0
        ),
        "success": (plr.success(*plain, **of_k), first.any()),
        "err": (plr.err(*plain, max_label=4, **of_k), (looking * chance / rank[:cutoff]).sum()),
        "rbp": (
            plr.rbp(*plain, persistence=persistence, **of_k),
            (1 - np.longdouble(persistence))
            * (np.longdouble(persistence) ** (rank[:cutoff] - 1) * grades[order][:cutoff]).sum(),
        ),
        "average_relevance_position": (
            plr.average_relevance_position(*plain, **of_k),
            np.longdouble((rank[:cutoff] * grades[order][:cutoff]).sum()) / max(total, 1),
        ),
        "alpha_ndcg": (
            rewards.alpha_ndcg(subtopics)([order[:cutoff]]),
            novelty(subtopics, order[:cutoff]) / max(novelty(subtopics, greedy(subtopics, cutoff)), 1e-300),
        ),
    }  # fmt: skip
    return {
        name: of_terms(got[0], best if isinstance(best, Terms) else Terms(best)) for name, (got, best) in pairs.items()
    }


def novelty(subtopics: np.ndarray, ranking: np.ndarray) -> np.longdouble:
    """Discounted gain of a ranking, in which a topic counts half as much each time: no ideal depends on a rounding."""
    shown = subtopics[ranking].astype(np.longdouble)
    gain = (shown * np.longdouble(0.5) ** (np.cumsum(shown, axis=0) - shown)).sum(axis=1)
    return (gain / np.log2(np.arange(2, len(ranking) + 2).astype(np.longdouble))).sum()


def greedy(subtopics: np.ndarray, n_ranks: int) -> np.ndarray:
    """The document with the largest gain at each rank, the first of equal ones."""
    worth, left = np.ones(subtopics.shape[1]), list(range(len(subtopics)))
    for k in range(n_ranks):
        best = max(left[k:], key=lambda d: (subtopics[d] @ worth, -d))
        left.remove(best)
        left.insert(k, best)
        worth = worth * np.where(subtopics[best] > 0, 0.5, 1.0)
    return np.array(left[:n_ranks])


def log_choices(scores: np.ndarray, rankings: np.ndarray) -> np.ndarray:
    """Log-probability of each rank's item among those left over, of rows of rankings; nearly certain ones in full."""
    f = scores.astype(np.longdouble)
    left = np.ones((len(rankings), scores.size), bool)
    result = np.empty(rankings.shape, np.longdouble)
    rows = np.arange(len(rankings))
    for k, items in enumerate(rankings.T):
        left[rows, items] = False
        others = np.where(left, f, -np.inf)
        top = np.maximum(others.max(axis=1), f[items])
        rest = np.exp(others - top[:, np.newaxis]).sum(axis=1)
        near = f[items] > others.max(axis=1) - 5000
        result[:, k] = np.where(
            near,
            -np.log1p(rest / np.exp(np.maximum(f[items] - top, -5000))),
            f[items] - top - np.log(np.maximum(rest, 1)),
        )
    return result


def of_all_rankings(problem: Problem, *, finer: bool = False) -> Ratios:
    """Entropy, divergence, scores for exposures, and estimates from logs, of a handful of documents."""
    scores, relevance = problem.scores, problem.relevance
    rng, n_docs, cutoff = np.random.default_rng(problem.seed), problem.n_docs, problem.cutoff
    others = scores[rng.permutation(n_docs)] * rng.uniform(0, 2)
    every = np.array(list(itertools.permutations(range(n_docs), cutoff)))
    log_p, log_q = log_choices(scores, every), log_choices(others, every)
    chances = np.exp(log_p.sum(axis=1))
    policy, other = plr.PlackettLuce(scores, n_threads=1), plr.PlackettLuce(others)
    # The divergence is a sum over ranks of divergences of choices, whose terms have either sign.
    apart = Terms(chances @ (log_p - log_q).sum(axis=1), chances @ (np.abs(log_p - log_q) + 1e-3 * -log_p).sum(axis=1))
    ratios = {
        "entropy": of_terms(policy.entropy(cutoff, rng=0)[0][0], Terms(chances @ -log_p.sum(axis=1))),
        "kl": of_terms(policy.kl(other, cutoff, rng=0)[0][0], apart),
    }

    def at_rank(scores: np.ndarray) -> np.ndarray:
        result = np.zeros((n_docs, cutoff), np.longdouble)
        of_rows = np.exp(log_choices(scores, every).sum(axis=1))
        for k in range(cutoff):
            np.add.at(result[:, k], every[:, k], of_rows)
        return result

    theta = np.sort(np.abs(problem.rank_weights[:cutoff]))[::-1]
    near = np.clip(scores - scores.mean(), -FARTHEST / 2, FARTHEST / 2)
    target = at_rank(near) @ theta
    try:
        found = at_rank(plr.scores_for_exposure(target.astype(float), theta, n_threads=1)) @ theta
        ratios["scores_for_exposure"] = ratio(float(np.abs(found - target).max()), float(OF_SUMS * theta.sum()))
    except ValueError:  # too near to a limit
        pass
    new, old = at_rank(scores), at_rank(near)
    shown = every[rng.integers(len(every), size=MOST_SESSIONS)]
    gains = rng.normal(size=shown.shape)
    at_shown = tuple(array[shown, np.arange(cutoff)] for array in (new, old))
    if at_shown[1].min() > LEAST_SHOWN:
        got = off_policy.iips(scores, shown, gains, logging_scores=near, n_threads=1).value
        weights = at_shown[0] / at_shown[1]
        bound = OF_SUMS * (np.abs(gains) * (1 + weights) / at_shown[1]).sum() / len(shown)
        ratios["iips"] = ratio(float(abs(got - (weights * gains).sum() / len(shown))), float(bound))
    log_weights = log_choices(scores, shown).sum(axis=1) - log_choices(near, shown).sum(axis=1)
    if log_weights.max() < 100:
        n_weights = int(rng.integers(1, n_docs + 2))
        theta = rng.normal(size=n_weights)[:n_docs]
        counted = min(cutoff, theta.size)
        predicted = (relevance[shown[:, :counted]] * theta[:counted]).sum(axis=1)
        of_shown = gains[:, 0] - predicted
        best = ((new[:, :counted] @ theta[:counted]) * relevance).sum() + (np.exp(log_weights) * of_shown).mean()
        got = off_policy.doubly_robust(
            scores, shown, gains[:, 0], relevance, theta, logging_scores=near, n_threads=1
        ).value
        bound = OF_SUMS * np.abs(theta).sum() * np.abs(relevance).max()
        sizes = 1 + np.abs(log_weights) + 2 * FARTHEST * cutoff
        bound += OF_TERMS * (np.exp(log_weights) * sizes * (np.abs(gains[:, 0]) + np.abs(predicted))).mean()
        ratios["doubly_robust"] = ratio(float(abs(got - best)), float(bound))
    return ratios
