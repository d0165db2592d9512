"""Error over bound of estimates from logs and of rewards of whole rankings.

Weights of sessions are exponentials of differences of log-probabilities. So what is computed from them, term by term,
errs by at most 1e-12 of the sum of absolute terms, each times 1 and the absolute terms of its two log-probabilities,
the number of ranks included; where weights are divided by their sum, a term counts with the mean that is taken off.
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

import plrank_fast as plr
import ranking_reference
from adversarial_problem import Problem
from error_bounds import OF_TERMS, Ratios, Terms, of_terms, stacked
from plrank_fast import off_policy

Rows = list[np.ndarray]
LIKELIEST = 138.0  # logarithm of the largest weight of a session that is asked for without a bound
FEW_SESSIONS = 5


def log_weights(scores: np.ndarray, logging_scores: np.ndarray, ranking: np.ndarray) -> Terms:
    """Logarithms of a session's importance weights, of the ranks down to each."""
    new, old = (ranking_reference.log_prob_of_prefixes(f, ranking) for f in (scores, logging_scores))
    return new - old + Terms(0.0, 1.0)


def sessions_of(problem: Problem) -> tuple[np.ndarray, Rows]:
    """Rankings as a log holds them, one of them cut short and filled with -1, and without what is filled."""
    rankings = ranking_rows(problem, FEW_SESSIONS)
    rankings[-1, max(1, problem.cutoff // 2) :] = -1
    return rankings, [ranking[ranking >= 0] for ranking in rankings]


def ranking_rows(problem: Problem, n_rankings: int) -> np.ndarray:
    """Likely rankings, absurd ones, and the reverse of the likeliest."""
    rng = np.random.default_rng(problem.seed)
    likeliest = np.argsort(-problem.scores, kind="stable")
    kinds = [
        lambda: likeliest,
        lambda: likeliest[::-1],
        lambda: rng.permutation(problem.n_docs),
        lambda: np.argsort(-problem.scores - rng.gumbel(size=problem.n_docs)),
        lambda: np.roll(likeliest, rng.integers(problem.n_docs)),
    ]
    chosen = rng.integers(len(kinds), size=n_rankings)
    return np.array([kinds[kind]()[: problem.cutoff] for kind in chosen])


def of_estimate(name: str, estimate: off_policy.OffPolicyEstimate, value: Terms, gradient: Terms) -> Ratios:
    return {name: of_terms(estimate.value, value), f"{name}'s gradient": of_terms(estimate.gradient, gradient)}


def shared_out(
    weights: np.ndarray, slopes: np.ndarray, sizes: np.ndarray, gains: np.ndarray, self_normalized: bool
) -> tuple[Terms, Terms]:
    """Value of some sessions, and the credit of each; ``sizes`` are the terms of the logarithms of their weights."""
    gains = gains.astype(np.longdouble)
    if not self_normalized:
        value, credit = weights * gains / gains.size, slopes * gains / gains.size
        return Terms(value, np.abs(value) * sizes).sum(), Terms(credit, np.abs(credit) * sizes)
    share = weights / weights.sum()
    value, spread = (share * gains).sum(), (share * sizes).sum()
    most = np.abs(gains) + np.abs(value)
    lost = np.finfo(float).tiny / OF_TERMS * (weights > 0)  # a weight below it has fewer digits, or is 0
    size = ((share * sizes + lost / weights.sum()) * most).sum()
    credit = slopes / weights.sum() * (gains - value)
    absolute = (slopes * ((sizes + spread) * most + size) + lost * most) / weights.sum()
    return Terms(value, size), Terms(credit, absolute)


def logs(problem: Problem, *, finer: bool = False) -> Ratios:
    """Estimates from a log, of a policy near the one that is evaluated and of one without preference."""
    problem = dataclasses.replace(problem, exponents=(0, 0, 0))
    scores, relevance = problem.passed_scores(), problem.relevance
    rankings, rows = sessions_of(problem)
    bias = plr.dcg_weights(problem.cutoff)
    of_ranks = np.where(rankings >= 0, relevance[rankings] * bias, 0.0)
    gains = np.array([relevance[row].sum() for row in rows])
    ratios: Ratios = {}
    for logging_scores in (scores + np.clip(relevance, -3.0, 3.0), np.zeros(problem.n_docs)):
        weights = [log_weights(scores, logging_scores, row) for row in rows]
        options = {"logging_scores": logging_scores, "n_threads": 1}
        last = stacked([each[-1] for each in weights])
        found = _of_whole_rankings(scores, rankings, rows, gains, last.total, last.absolute, options)
        found |= _of_prefixes(scores, rankings, rows, of_ranks, weights, options)
        ratios |= {name: max(ratios.get(name, 0.0), ratio) for name, ratio in found.items()}
    return ratios


def _of_whole_rankings(scores, rankings, rows, gains, logs_, sizes, options) -> Ratios:
    ratios: Ratios = {}
    in_order = np.sort(logs_)
    middle = float(in_order[-2:].mean())
    apart = np.abs(np.expm1(logs_ - middle)).min() > 1e-6 and abs(middle) < LIKELIEST
    for clip, self_normalized in itertools.product((None, float(np.exp(middle)) if apart else None), (False, True)):
        bound = np.inf if clip is None else np.longdouble(clip)
        if (clip is None and in_order[-1] > LIKELIEST) or (self_normalized and in_order[-1] < -LIKELIEST):
            continue
        weights = np.minimum(np.exp(np.minimum(logs_, 10_000)), bound)
        slopes = np.where(weights < bound, weights, 0)
        value, credit = shared_out(weights, slopes, sizes, gains, self_normalized)
        gradient = ranking_reference.credited(
            scores, rows, [credit[i] * np.ones(row.size) for i, row in enumerate(rows)]
        )
        estimate = off_policy.ips(scores, rankings, gains, clip=clip, self_normalized=self_normalized, **options)
        name = "ips" + ", self-normalized" * self_normalized + ", clipped" * (clip is not None)
        ratios |= of_estimate(name, estimate, value, gradient)
    return ratios


def _of_prefixes(scores, rankings, rows, of_ranks, weights: list[Terms], options) -> Ratios:
    ratios: Ratios = {}
    if max(each.total.max() for each in weights) > LIKELIEST:
        return ratios
    for self_normalized in (False, True):
        value, credit = Terms(0.0), [[] for _ in rows]
        for k in range(rankings.shape[1]):
            there = [i for i, row in enumerate(rows) if row.size > k]
            if not there:
                break
            of_rank = stacked([weights[i][k] for i in there])
            w = np.exp(of_rank.total)
            if self_normalized and w.max() < np.exp(-LIKELIEST):
                return ratios
            of_all = 1 if self_normalized else len(there) / len(rows)
            part, of_part = shared_out(w, w, of_rank.absolute, of_ranks[there, k], self_normalized)
            value += of_all * part
            for i, one in zip(there, range(len(there)), strict=True):
                credit[i].append(of_all * of_part[one])
        # each rank, from those below
        down_to = [
            np.triu(np.ones((row.size, row.size))) @ stacked(each) for row, each in zip(rows, credit, strict=True)
        ]
        gradient = ranking_reference.credited(scores, rows, down_to)
        estimate = off_policy.rips(scores, rankings, of_ranks, self_normalized=self_normalized, **options)
        ratios |= of_estimate("rips" + ", self-normalized" * self_normalized, estimate, value, gradient)
    return ratios


def rewards_of_rankings(problem: Problem, *, finer: bool = False) -> Ratios:
    """Policy gradients of given rankings with a reward for each, and with each kind of baseline."""
    of_relevance = problem.exponents[0]
    problem = dataclasses.replace(problem, exponents=(0, 0, 0))
    scores = problem.passed_scores()
    rankings, rows = sessions_of(problem)
    worth = np.array([problem.relevance[row] @ plr.dcg_weights(row.size) for row in rows])
    weights = np.exp(4 * np.resize(problem.relevance, len(rows)))
    predicted = np.resize(problem.relevance, len(rows))[::-1].copy()
    r, w = Terms(worth), weights.astype(np.longdouble)
    others = [np.delete(np.arange(len(rows)), i) for i in range(len(rows))]
    of_others = stacked([r[rest].sum() / rest.size for rest in others])
    weighted = stacked([(w[rest] * r[rest]).sum() / w[rest].sum() for rest in others])
    ratios: Ratios = {}
    for name, credit, options in (
        ("rewards", r, {}),
        ("rewards, baseline", r - of_others, {"baseline": True}),
        ("rewards, weights, baseline", w * (r - weighted), {"baseline": True, "importance_weights": weights}),
        ("rewards, given baseline", r - predicted, {"baseline": np.ldexp(predicted, of_relevance)}),
    ):
        best = ranking_reference.credited(scores, rows, [credit[i] * np.ones(row.size) for i, row in enumerate(rows)])
        got = plr.policy_gradient(
            scores, rankings=rankings, rewards=np.ldexp(worth, of_relevance), n_threads=1, **options
        )
        ratios[name] = of_terms(got, best / len(rows), of_relevance)
    return ratios
