"""Error over bound of estimates from logs and of rewards of whole rankings.

Weights of sessions are exponentials of differences of log-probabilities. So what is computed from them, term by term,
errs by at most 1e-12 of the sum of absolute terms, each times 1 and the absolute terms of its two log-probabilities,
the number of ranks included; where weights are divided by their sum, a term counts with the mean that is taken off.
"""

from __future__ import annotations

import dataclasses

import numpy as np

import plrank_fast as plr
import ranking_reference
from adversarial_problem import Problem
from error_bounds import OF_TERMS, Ratios, Terms, of_terms, stacked
from plrank_fast import off_policy

Rows = list[np.ndarray]
LIKELIEST = 138.0  # logarithm of the largest weight of a session that is asked for without a bound
FEW_SESSIONS = 5


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
    lost = np.finfo(float).tiny / OF_TERMS * (weights > 0)  # a weight this far below the largest is less exact, or 0
    size = ((share * sizes + lost / weights.sum()) * most).sum()
    credit = slopes / weights.sum() * (gains - value)
    absolute = (slopes * ((sizes + spread) * most + size) + lost * most) / weights.sum()
    return Terms(value, size), Terms(credit, absolute)


def logs(problem: Problem, *, finer: bool = False) -> Ratios:
    """Estimates from a log, of a policy near the one that is evaluated and of one without preference."""
    problem = dataclasses.replace(problem, exponents=(0, 0, 0))
    scores, relevance = problem.passed_scores(), problem.relevance
    rankings, rows = sessions_of(problem)
    of_ranks = np.where(rankings >= 0, relevance[rankings] * plr.dcg_weights(problem.cutoff), 0.0)
    of_rankings = np.array([relevance[row].sum() for row in rows])
    # sessions and the rank that the gains of each come at: the last one, or one after another
    whole = [[(i, row.size - 1) for i, row in enumerate(rows)]]
    by_rank = [[(i, k) for i, row in enumerate(rows) if row.size > k] for k in range(max(row.size for row in rows))]
    ratios: Ratios = {}
    for logging_scores in (scores + np.clip(relevance, -3.0, 3.0), np.zeros(problem.n_docs)):
        new, old = ([ranking_reference.log_prob_of_prefixes(f, row) for row in rows] for f in (scores, logging_scores))
        weights = [a - b + Terms(0.0, 1.0) for a, b in zip(new, old, strict=True)]  # their logarithms
        middle = float(np.mean(sorted(each.total[-1] for each in weights)[-2:]))
        apart = min(abs(each.total[-1] - middle) for each in weights) > 1e-6 and abs(middle) < LIKELIEST
        clips = None, *([float(np.exp(middle))] if apart else [])
        for name, places, gains, clip in (
            *(("ips", whole, of_rankings, clip) for clip in clips),
            ("rips", by_rank, of_ranks, None),
        ):
            for self_normalized in (False, True):
                tops = [max(weights[i].total[k] for i, k in at) for at in places]
                if clip is None and max(tops) > LIKELIEST:
                    continue
                options = {"logging_scores": logging_scores, "self_normalized": self_normalized, "n_threads": 1}
                options |= {"clip": clip} if name == "ips" else {}
                got = getattr(off_policy, name)(scores, rankings, gains, **options)
                best = estimate(scores, rows, places, weights, gains, np.inf if clip is None else clip, self_normalized)
                title = name + ", self-normalized" * self_normalized + ", clipped" * (clip is not None)
                for part, number, terms in zip(
                    (title, f"{title}'s gradient"), (got.value, got.gradient), best, strict=True
                ):
                    ratios[part] = max(ratios.get(part, 0.0), of_terms(number, terms))
    return ratios


def estimate(scores, rows, places, weights, gains, clip, self_normalized) -> tuple[Terms, Terms]:
    """Value and gradient: the sum over ``places`` of what the sessions there give."""
    value, credit = Terms(0.0), [[Terms(0.0)] * row.size for row in rows]
    for at in places:
        logs_ = stacked([weights[i][k] for i, k in at])
        log_clip = np.log(np.longdouble(clip))
        logarithms = np.minimum(logs_.total, log_clip)
        w = np.exp(logarithms - (logarithms.max() if self_normalized else 0))
        of_sessions = np.array([gains[i] if gains.ndim == 1 else gains[i, k] for i, k in at])
        slopes = np.where(logs_.total < log_clip, w, 0)
        part, of_part = shared_out(w, slopes, logs_.absolute, of_sessions, self_normalized)
        of_all = len(at) / len(rows)
        value += of_all * part
        for place, (i, k) in enumerate(at):
            credit[i][k] = of_all * of_part[place]
    down_to = [np.triu(np.ones((row.size, row.size))) @ stacked(each) for row, each in zip(rows, credit, strict=True)]
    return value, ranking_reference.credited(scores, rows, down_to)


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
