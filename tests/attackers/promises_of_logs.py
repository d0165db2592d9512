"""What is promised of estimates from logs and of rewards of whole rankings, as error over promise.

Weights of sessions are exponentials of differences of log-probabilities. So what is computed from them, term by term,
errs by at most 1e-12 of the sum of absolute terms, each times 1 and the absolute terms of its two log-probabilities,
the number of ranks included; where weights are divided by their sum, a term counts with the mean that is taken off.
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

import plrank_fast as plr
import ranking_oracle
from adversarial_problem import Problem
from error_ratios import OF_TERMS, Ratios, of_terms
from plrank_fast import off_policy

Rows = list[np.ndarray]
LIKELIEST = 138.0  # logarithm of the largest weight of a session that is asked for without a bound
FEW_SESSIONS = 5


@dataclasses.dataclass(frozen=True)
class Weights:
    """Importance weights of the ranks down to each, of one session: their logarithms, and what these are made of."""

    logs: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, logging_scores: np.ndarray, ranking: np.ndarray) -> Weights:
        new, old = (ranking_oracle.log_prob_of_prefixes(f, ranking) for f in (scores, logging_scores))
        return cls(new[0] - old[0], 1 + new[1] + old[1])


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


def of_estimate(
    name: str, estimate: off_policy.OffPolicyEstimate, value: ranking_oracle.Pair, gradient: ranking_oracle.Pair
) -> Ratios:
    return {name: of_terms(estimate.value, value), f"{name}'s gradient": of_terms(estimate.gradient, gradient)}


def shared_out(
    weights: np.ndarray, slopes: np.ndarray, sizes: np.ndarray, gains: np.ndarray, self_normalized: bool
) -> tuple[ranking_oracle.Pair, ranking_oracle.Pair]:
    """Value of some sessions, and the credit of each, with their absolute terms."""
    n = np.longdouble(gains.size)
    if not self_normalized:
        credit = slopes * gains / n
        terms = weights * gains / n
        return (terms.sum(), (np.abs(terms) * sizes).sum()), (credit, np.abs(credit) * sizes)
    share = weights / weights.sum()
    value, spread = (share * gains).sum(), (share * sizes).sum()
    most = np.abs(gains) + np.abs(value)
    lost = np.finfo(float).tiny / OF_TERMS * (weights > 0)  # a weight below it has fewer digits, or is 0
    size = ((share * sizes + lost / weights.sum()) * most).sum()
    credit = slopes / weights.sum() * (gains - value)
    return (value, size), (credit, (slopes * ((sizes + spread) * most + size) + lost * most) / weights.sum())


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
        weights = [Weights.of(scores, logging_scores, row) for row in rows]
        last = np.array([each.logs[-1] for each in weights])
        options = {"logging_scores": logging_scores, "n_threads": 1}
        for name, found in _of_whole_rankings(
            scores, rankings, rows, gains, last, np.array([each.sizes[-1] for each in weights]), options
        ).items():
            ratios[name] = max(ratios.get(name, 0.0), found)
        for name, found in _of_prefixes(scores, rankings, rows, of_ranks, weights, options).items():
            ratios[name] = max(ratios.get(name, 0.0), found)
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
        value, credit = shared_out(weights, slopes, sizes, gains.astype(np.longdouble), self_normalized)
        ranks = [np.ones(row.size, np.longdouble) for row in rows]
        gradient = ranking_oracle.credited(
            scores, rows, [c * one for c, one in zip(credit[0], ranks, strict=True)],
            [size * one for size, one in zip(credit[1], ranks, strict=True)],
        )  # fmt: skip
        estimate = off_policy.ips(
            scores, rankings, gains, clip=clip, self_normalized=self_normalized, **options
        )  # fmt: skip
        name = "ips" + ", self-normalized" * self_normalized + ", clipped" * (clip is not None)
        ratios |= of_estimate(name, estimate, value, gradient)
    return ratios


def _of_prefixes(scores, rankings, rows, of_ranks, weights: list[Weights], options) -> Ratios:
    largest = max(each.logs.max() for each in weights)
    ratios: Ratios = {}
    if largest > LIKELIEST:
        return ratios
    n_ranks = rankings.shape[1]
    for self_normalized in (False, True):
        value, size = np.longdouble(0), np.longdouble(0)
        credit, sizes = (np.zeros(rankings.shape, np.longdouble) for _ in range(2))
        for k in range(n_ranks):
            there = np.array([row.size > k for row in rows])
            if not there.any():
                continue
            some = [each for each, here in zip(weights, there, strict=True) if here]
            w, of_w = np.exp([each.logs[k] for each in some]), np.array([each.sizes[k] for each in some])
            if self_normalized and w.max() < np.exp(-LIKELIEST):
                return ratios
            part, of_part = shared_out(w, w, of_w, of_ranks[there, k].astype(np.longdouble), self_normalized)
            of_all = 1 if self_normalized else there.mean()
            value, size = value + of_all * part[0], size + of_all * part[1]
            credit[there, k], sizes[there, k] = of_all * of_part[0], of_all * of_part[1]
        down_to = [np.cumsum(part[:, ::-1], axis=1)[:, ::-1] for part in (credit, sizes)]  # each rank, from those below
        gradient = ranking_oracle.credited(
            scores, rows, *([of_row[: row.size] for of_row, row in zip(part, rows, strict=True)] for part in down_to)
        )
        estimate = off_policy.rips(scores, rankings, of_ranks, self_normalized=self_normalized, **options)
        ratios |= of_estimate("rips" + ", self-normalized" * self_normalized, estimate, (value, size), gradient)
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
    ratios: Ratios = {}
    r, w = worth.astype(np.longdouble), weights.astype(np.longdouble)

    def held(name: str, credit: np.ndarray, size: np.ndarray, got: np.ndarray, exponent: int = 0) -> None:
        ones = [np.ones(row.size, np.longdouble) for row in rows]
        best = ranking_oracle.credited(
            scores, rows, [c * one for c, one in zip(credit / len(rows), ones, strict=True)],
            [s * one for s, one in zip(size / len(rows), ones, strict=True)],
        )  # fmt: skip
        ratios[name] = of_terms(got, best, exponent)

    def gradient(**options) -> np.ndarray:
        return plr.policy_gradient(
            scores, rankings=rankings, rewards=np.ldexp(worth, of_relevance), n_threads=1, **options
        )

    others = [(r.sum() - r) / (r.size - 1), (np.abs(r).sum() - np.abs(r)) / (r.size - 1)]
    held("rewards", r, np.abs(r), gradient(), of_relevance)
    held("rewards, baseline", r - others[0], np.abs(r) + others[1], gradient(baseline=True), of_relevance)
    of_others = np.array([np.delete(w, i).sum() for i in range(r.size)])
    mean, size = (
        np.array([np.delete(w * part, i).sum() for i in range(r.size)]) / of_others for part in (r, np.abs(r))
    )
    got = gradient(baseline=True, importance_weights=weights)
    held("rewards, weights, baseline", w * (r - mean), w * (np.abs(r) + size), got, of_relevance)
    taken_off = predicted.astype(np.longdouble)
    got = gradient(baseline=np.ldexp(predicted, of_relevance))
    held("rewards, given baseline", r - taken_off, np.abs(r) + np.abs(taken_off), got, of_relevance)
    return ratios


def cost_of_sessions(problem: Problem) -> float:
    return 10.0 * FEW_SESSIONS * problem.n_docs**2 * problem.cutoff
