"""Error over bound of the log-probability of rankings with ties, for 2 to 10,000 tied documents at any distance.

The reference is the trapezoid rule in extended precision over the logarithm of the arrival time of the bucket's last
document. The integrand is analytic for imaginary parts below pi / 2 and log-concave, so the rule converges
exponentially in the inverse of its step, and its nodes end where nothing is left of the integrand.
"""

from __future__ import annotations

import numpy as np

import plrank_fast as plr
from adversarial_problem import Problem
from error_bounds import Ratios, ratio

MOST_TIED = 10_000
OF_TIES = 1e-10
STEP = 0.12  # at most; half of pi over it is 82 nats of error
LOOKS = 60  # times at once, or two for each nat: derivatives of thousands of likely documents arise within a few nats
LEAST_SHARE = np.finfo(np.longdouble).tiny
NOTHING = 150.0  # nats below the largest integrand
LEAST_DERIVATIVE = 1e-295  # it keeps ten digits of a normal number
MOST_LIKELY = 690.0  # log-odds, beyond which derivatives are no normal numbers


def log_integrand(
    time: np.ndarray, log_odds: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logarithm of the integrand at ln t, and for each log-odds w t and the share x / (exp(x) - 1) of a document."""
    log_x = log_odds[:, np.newaxis] + time
    x = np.exp(np.clip(log_x, -11_000, 9))  # e to the minus e^9 is 0 beside 1, and a number
    arrived = np.where(log_x < -40, log_x, np.log(-np.expm1(-x)))
    share = x / np.expm1(x)
    return time - np.exp(time) + counts @ arrived, x, share


def times(log_odds: np.ndarray, counts: np.ndarray, *, finer: bool, derived: bool = False) -> np.ndarray:
    """Equal steps over all times at which the integrand, or its product with all shares together, is something.

    The times looked at are narrowed down to these as long as that makes them many fewer.
    """
    low, high = min(0.0, -float(log_odds[0])) - NOTHING - 5.0, float(np.log1p(counts.sum())) + 5.0
    before = np.inf
    while high - low < 0.9 * before:
        before, looks = high - low, max(LOOKS, int(2 * (high - low)))
        time = np.linspace(low, high, looks).astype(np.longdouble)
        height, _, share = log_integrand(time, log_odds, counts)
        if derived:
            height = height + np.log(np.maximum(counts @ share, LEAST_SHARE))
        near = np.flatnonzero(height > height.max() - NOTHING)
        low, high = float(time[max(0, near[0] - 1)]), float(time[min(looks - 1, near[-1] + 1)])
    step = min(STEP, (high - low) / 250) / (2 if finer else 1)
    return np.arange(low, high, step).astype(np.longdouble)


def bucket(log_odds: np.ndarray, *, finer: bool) -> tuple[np.longdouble, np.ndarray, np.ndarray, np.longdouble]:
    """ln P that all these come before others of total weight 1, its gradient and the diagonal of its Hessian, and the
    second derivative by a constant in all of them. If P is nearly 1, derivatives come from earlier times than P."""
    log_odds, of_document, counts = np.unique(log_odds, return_inverse=True, return_counts=True)
    time = times(log_odds, counts, finer=finer)
    logs, x, share = log_integrand(time, log_odds, counts)
    top = logs.max()
    total = np.exp(logs - top).sum() * (time[1] - time[0])
    if log_odds[0] > 0:
        time = times(log_odds, counts, finer=finer, derived=True)
        logs, x, share = log_integrand(time, log_odds, counts)
    weights = np.exp(logs - top) * (time[1] - time[0]) / total
    first = share @ weights
    second = (share * (1 - x)) @ weights - first**2
    sums = counts @ share
    together = (sums**2 + counts @ (share * (1 - x - share))) @ weights - (counts @ first) ** 2
    return np.log(total) + top, first[of_document], second[of_document], together


def ties(problem: Problem, *, finer: bool = False) -> Ratios:
    """Value, gradient and Hessian diagonal for buckets made from the problem's seed, up to thousands of documents."""
    rng = np.random.default_rng(problem.seed)
    scores = problem.scores
    if rng.random() < 0.5:
        size = int(np.exp(rng.uniform(np.log(2), np.log(MOST_TIED)))) + 1
        spread = max(1e-9, np.ptp(scores)) * 10.0 ** rng.uniform(-3, 3)
        scores = rng.choice(scores, size) + spread * rng.normal(size=size) * (rng.random() < 0.7)
    numbers = int(rng.integers(2, 5))
    buckets = rng.integers(0, numbers, scores.size)
    kind = rng.integers(4)
    if kind == 0:
        buckets = np.where(np.arange(scores.size) == scores.size - 1, 1, 0)
    elif kind == 1:  # likely, or absurd
        buckets = np.argsort(np.argsort(rng.choice([-1, 1]) * scores)) * numbers // scores.size
    elif kind == 2 and rng.random() < 0.5:  # nearly certain, at any distance, some of the tied much more so
        buckets = np.where(np.arange(scores.size) >= scores.size - rng.integers(1, 3), 1, 0)
        scores = np.where(buckets == 0, np.abs(scores) + rng.uniform(0, MOST_LIKELY), 0.0)
    f = scores.astype(np.longdouble)
    value, size = np.longdouble(0), LEAST_DERIVATIVE
    gradient, diagonal = np.zeros((2, f.size), np.longdouble)
    for number in np.unique(buckets)[:-1]:
        tied, later = buckets == number, buckets > number
        shift = f[later].max()
        weights = np.exp(f[later] - shift)
        part, first, second, together = bucket(f[tied] - shift - np.log(weights.sum()), finer=finer)
        chance = weights / weights.sum()
        value += part
        gradient[tied] += first
        diagonal[tied] += second
        gradient[later] -= chance * first.sum()
        diagonal[later] += together * chance**2 - first.sum() * chance * (1 - chance)
        size = max(size, float(np.abs(first).max()), float(chance.max() * first.sum()))
    options = {"offsets": [0, len(scores)], "n_threads": 1}
    got = plr.bucket_log_prob(scores, buckets, **options)[0]
    slope, curvature = plr.bucket_log_prob_vjp(scores, buckets, [1.0], hessian=True, **options)
    bound = OF_TIES * len(np.unique(buckets)) * max(1.0, size)
    return {
        "ties": ratio(float(abs(got - value)), float(OF_TIES * max(1, abs(value)))),
        "ties' gradient": ratio(float(np.abs(slope - gradient).max()), OF_TIES * size),
        "ties' Hessian diagonal": ratio(float(np.abs(curvature - diagonal).max()), bound),
    }
