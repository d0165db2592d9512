"""What is promised of estimates from logs and of rewards of whole rankings, as error over promise.

Weights of sessions are exponentials of differences of log-probabilities. So what is computed from them, term by term,
errs by at most 1e-12 of the sum of absolute terms, each times 1 and the absolute terms of its two log-probabilities,
the number of ranks included; where weights are divided by their sum, a term counts with the mean that is taken off.
What is exact in expectation, ``doubly_robust``, ``iips`` and ``pseudo_inverse``, has the 1e-8 of the functions that it
is made of, over the logging policy's chance of an item at a rank, or as least squares amplify it.
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

import plrank_fast as plr
import ranking_oracle
from adversarial_problem import Problem
from error_ratios import LEAST, OF_SUMS, OF_TERMS, Ratios, of_terms, ratio
from plrank_fast import off_policy, rewards

Rows = list[np.ndarray]
LIKELIEST = 600.0  # logarithm of the largest weight of a session that is asked for without a bound
MODERATE = 1.5  # largest of the logging policy's scores where its chances are divided by
FEW_SESSIONS, BLOCK = 5, 256


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
    return ratios | _of_clicks(problem, rankings, rows)


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


def _of_clicks(problem: Problem, rankings: np.ndarray, rows: Rows) -> Ratios:
    """Relevance from clicks, and the number of sessions that weights are worth."""
    rng = np.random.default_rng(problem.seed + 1)
    clicks = rng.integers(0, 2, rankings.shape)
    alpha, beta = off_policy.trust_bias(problem.cutoff)
    prior, exposed = np.tanh(problem.relevance), 1e-3 + np.abs(problem.relevance)
    total = np.zeros((2, problem.n_docs), np.longdouble)
    for row, clicked in zip(rows, clicks, strict=True):
        surplus = np.array([clicked[: row.size], -beta[: row.size], -alpha[: row.size] * prior[row]], np.longdouble)
        total[0, row] += surplus.sum(axis=0)
        total[1, row] += np.abs(surplus).sum(axis=0)
    total = total / (len(rows) * exposed) + np.array([prior, np.abs(prior)])
    got = off_policy.relevance_from_clicks(
        rankings, clicks, exposed, examination=alpha, noise=beta, predicted=prior
    )  # fmt: skip
    weights = np.exp(3 * problem.relevance)
    largest = weights.astype(np.longdouble) / weights.max()
    sessions = largest.sum() ** 2 / np.square(largest).sum()
    return {
        "relevance_from_clicks": of_terms(got, (total[0], total[1])),
        "effective_sample_size": of_terms(off_policy.effective_sample_size(weights), (sessions, sessions)),
    }


def rewards_of_rankings(problem: Problem, *, finer: bool = False) -> Ratios:
    """Policy gradients of given and of drawn rankings with what each is worth; the rewards that the library makes."""
    of_relevance = int(np.clip(problem.exponents[0], -300, 300))
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
    return ratios | _of_drawn(problem, scores) | _made_rewards(problem, rankings, rows)


def _of_drawn(problem: Problem, scores: np.ndarray) -> Ratios:
    """What the reward function was shown is what counts: blocks of 256 and the rest."""
    n_samples = BLOCK + 3 if problem.cutoff * problem.n_docs <= 200 else 7
    shown: Rows = []

    def worth(rankings: np.ndarray) -> np.ndarray:
        shown.extend(rankings.copy())
        return problem.relevance[rankings].sum(axis=1)

    options = {"cutoff": problem.cutoff, "n_samples": n_samples, "rng": problem.seed, "n_threads": 1}
    got = plr.policy_gradient(scores, reward=worth, baseline=True, **options)
    value, error = rewards.expected_reward(scores, lambda rankings: problem.relevance[rankings].sum(axis=1), **options)
    r = np.array([problem.relevance[row].astype(np.longdouble).sum() for row in shown])
    largest = np.abs(problem.relevance).astype(np.longdouble)[np.array(shown)].sum(axis=1).max()
    credit = np.repeat(((r - r.mean()) / (r.size - 1))[:, np.newaxis], problem.cutoff, axis=1)
    best = ranking_oracle.credited(scores, shown, credit, np.full(credit.shape, 4 * largest / (r.size - 1)))
    spread = np.sqrt(np.square(r - r.mean()).sum() / (r.size - 1) / r.size)
    return {
        "reward": of_terms(got, best),
        "expected_reward": of_terms(value[0], (r.mean(), largest)),
        "expected_reward's error": of_terms(error[0], (spread, largest)),
    }


def _made_rewards(problem: Problem, rankings: np.ndarray, rows: Rows) -> Ratios:
    """The rewards of ``plrank_fast.rewards``, against loops down the ranks; all are at most 1, which is their scale."""
    grades = np.minimum(np.abs(problem.relevance), 30.0)
    satisfied = plr.gains(grades).astype(np.longdouble) / (plr.gains(grades).max() + 1)
    first, any_, stops = [], [], []
    for row in rows:
        found = np.flatnonzero(problem.relevance[row] > 0)
        first.append(1 / (1 + found[0]) if found.size else 0.0)
        any_.append(float(found.size > 0))
        looking, value = np.longdouble(1), np.longdouble(0)
        for k, item in enumerate(row):
            value += looking * satisfied[item] / (k + 1)
            looking *= 1 - satisfied[item]
        stops.append(value)
    made = {
        "reciprocal_rank": (rewards.reciprocal_rank(problem.relevance), np.array(first)),
        "success": (rewards.success(problem.relevance), np.array(any_)),
        "err": (rewards.err(grades), np.array(stops)),
    }
    return {name: of_terms(reward(rankings), (best, np.ones(best.size))) for name, (reward, best) in made.items()}


def logs_of_all_rankings(problem: Problem, *, finer: bool = False) -> Ratios:
    """Estimates are unbiased: their mean over all logs of one session is the value, where rewards are sums over ranks.

    So it is with their gradients. The batch has a query for each ranking that a session may show.
    """
    scores = problem.scores
    logging_scores = np.clip(problem.relevance, -MODERATE, MODERATE)
    cutoff, n_docs = problem.cutoff, problem.n_docs
    rankings = np.array(list(itertools.permutations(range(n_docs), cutoff)))
    pairs = [[ranking_oracle.log_prob(f, ranking) for ranking in rankings] for f in (scores, logging_scores)]
    new, old = (np.exp(np.array([total for total, _ in part])) for part in pairs)
    sizes = 1 + sum(np.array([absolute for _, absolute in part]) + cutoff for part in pairs)
    at_ranks = np.add.outer(problem.relevance, np.cos(np.arange(cutoff)))
    of_ranks = at_ranks[rankings, np.arange(cutoff)]
    gains = of_ranks.sum(axis=1)
    value = (new * gains).sum()
    gradient, absolute = ranking_oracle.credited(
        scores, rankings, *(np.repeat(part[:, np.newaxis], cutoff, axis=1) for part in (
            new * gains, new * np.abs(of_ranks).sum(axis=1) * sizes))
    )  # fmt: skip
    repeats = len(rankings)
    options = {"offsets": n_docs * np.arange(repeats + 1), "n_threads": 1}
    batch = np.tile(scores, repeats), rankings[:, np.newaxis]
    logging = {"logging_scores": np.tile(logging_scores, repeats)}

    def error(estimate: off_policy.OffPolicyEstimate, of_value: float, of_gradient: np.ndarray | float) -> float:
        mean = (old * estimate.numerators.sum(axis=1)).sum()
        slopes = repeats * (old @ estimate.gradient.reshape(repeats, n_docs))
        of_slopes = np.abs(slopes - gradient) / (of_gradient + LEAST)
        return max(ratio(float(abs(mean - value)), float(of_value + LEAST)), ratio(float(of_slopes.max()), 1.0))

    terms = OF_TERMS * (new * np.abs(of_ranks).sum(axis=1) * sizes).sum()
    each, every = gains[:, np.newaxis], of_ranks[:, np.newaxis]
    chances = np.zeros((2, n_docs, cutoff), np.longdouble)
    for ranking, *both in zip(rankings, new, old, strict=True):
        chances[:, ranking, np.arange(cutoff)] += np.array(both)[:, np.newaxis]
    predicted = np.abs(problem.relevance).max() * np.abs(problem.rank_weights[:cutoff]).sum()
    robust = off_policy.doubly_robust(
        *batch, each, np.tile(problem.relevance, repeats), problem.rank_weights, **options, **logging
    )  # fmt: skip
    correction = OF_TERMS * (new * predicted * sizes).sum() * cutoff
    of_cells = (np.abs(at_ranks) * (1 + chances[0] / chances[1])).sum()
    by_cells = (np.abs(at_ranks) * (1 + 1 / chances[1])).sum()
    places = rankings * cutoff + np.arange(cutoff)
    shown = np.zeros((repeats, n_docs * cutoff))
    np.put_along_axis(shown, places, 1.0, axis=1)
    moments = (shown.T * old.astype(float)) @ shown
    inverse = np.linalg.pinv(moments, rcond=1e-9, hermitian=True)
    values = np.linalg.eigvalsh(moments)
    least = values[values > 1e-9].min()
    amplified = (OF_SUMS + 1e-14 / least) * (old * np.abs(gains) * np.abs(shown @ inverse).sum(axis=1)).sum()
    return {
        "mean of ips": error(off_policy.ips(*batch, each, **options, **logging), terms, OF_TERMS * absolute),
        "mean of rips": error(
            off_policy.rips(*batch, every, **options, **logging), terms, OF_TERMS * absolute.max() * cutoff
        ),
        "mean of iips": error(
            off_policy.iips(*batch, every, **options, **logging), OF_SUMS * of_cells, OF_SUMS * by_cells
        ),
        "mean of doubly_robust": error(
            robust, terms + correction + OF_SUMS * predicted,
            OF_TERMS * absolute + correction + OF_SUMS * predicted,
        ),
        "mean of pseudo_inverse": error(
            off_policy.pseudo_inverse(*batch, each, **options, **logging), amplified, amplified
        ),
    }  # fmt: skip


def cost_of_sessions(problem: Problem) -> float:
    return 10.0 * FEW_SESSIONS * problem.n_docs**2 * problem.cutoff
