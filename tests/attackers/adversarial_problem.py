"""Ranking problems that are hard to compute with, made from seeds, and small changes of them."""

from __future__ import annotations

import dataclasses

import numpy as np

import plrank_fast as plr

UNCROSSED = 90.0  # nats, or standard deviations: a gap across which no item comes with a probability that matters
GRID = 2.0**20  # scores that are to be moved far apart are multiples of its inverse, so that nothing is rounded
KINDS_OF_CHANGE = 9


@dataclasses.dataclass(frozen=True)
class Problem:
    """One query as a reference sees it, and how what is passed to the library differs from that.

    ``exponents`` are powers of two that multiply relevance, rank weights, and scores together with the scale of the
    noise; ``far`` is the power of two that is added to every gap of ``UNCROSSED`` or more. Neither changes a digit of
    the results, so one reference of ordinary numbers serves them all.
    """

    scores: np.ndarray
    relevance: np.ndarray
    rank_weights: np.ndarray
    rtol: float = 1e-6
    exponents: tuple[int, int, int] = (0, 0, 0)
    far: int | None = None
    seed: int = 0  # of what an attack draws: rankings, noise, streams

    @property
    def n_docs(self) -> int:
        return self.scores.size

    @property
    def cutoff(self) -> int:
        return min(self.rank_weights.size, self.n_docs)

    @property
    def is_trivial(self) -> bool:
        """Return whether every expectation is 0, so that there is nothing to measure an error by."""
        return not self.relevance.any() or not self.rank_weights[: self.n_docs].any()

    def passed_scores(self) -> np.ndarray:
        """Scores with all gaps that nothing crosses made wider, where that rounds none of them."""
        scores = self.scores
        if self.far is not None:
            order = np.argsort(scores, kind="stable")
            above = np.zeros(self.n_docs)
            above[order[1:]] = np.cumsum(np.diff(scores[order]) >= UNCROSSED)
            lifted = scores + np.ldexp(above, self.far)
            if np.array_equal(lifted - np.ldexp(above, self.far), scores):
                scores = lifted
        return np.ldexp(scores, self.exponents[2])

    @property
    def sigma(self) -> float:
        return float(np.ldexp(1.0, self.exponents[2]))

    def passed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scores, relevance and rank weights as the library gets them."""
        return (
            self.passed_scores(),
            np.ldexp(self.relevance, self.exponents[0]),
            np.ldexp(self.rank_weights, self.exponents[1]),
        )


SCORES = {  # from normal ones
    "equal": lambda rng, normal: np.zeros(normal.size),
    "any spread": lambda rng, normal: normal * 10.0 ** rng.uniform(-2, 1.2),
    "whole": lambda rng, normal: np.round(normal * rng.choice([1.0, 3.0, 12.0])),
    "clusters": lambda rng, normal: 0.5 * normal + rng.integers(0, 4, normal.size) * rng.uniform(2, 40),
    "falling": lambda rng, normal: (
        -np.cumsum(rng.exponential(size=normal.size)) * 10.0 ** rng.uniform(-2, 0.7) / (1 + normal.size / 50)
    ),
    "dominant": lambda rng, normal: (
        normal + np.where(np.arange(normal.size) < rng.integers(1, 4), rng.uniform(2, 40), 0.0)
    ),
    "levels": lambda rng, normal: rng.integers(0, 3, normal.size) * rng.choice([5.0, 6.5, 7.5, 15.0, 25.0, 100.0]),
    "nearly two": lambda rng, normal: 1e-9 * normal + rng.integers(0, 2, normal.size) * rng.uniform(0, 3),
    "uniform": lambda rng, normal: np.linspace(0.0, rng.uniform(0, 30), normal.size),
    "light tail": lambda rng, normal: normal - rng.exponential(size=normal.size) * rng.uniform(0, 15),
}
REGIMES = list(SCORES)


def scores_of(regime: str, rng: np.random.Generator, n_docs: int) -> np.ndarray:
    return SCORES[regime](rng, rng.normal(size=n_docs))


def _scores(rng: np.random.Generator, n_docs: int) -> np.ndarray:
    normal = rng.normal(size=n_docs)
    return SCORES[REGIMES[rng.integers(len(REGIMES))]](rng, normal)


def relevance_of_a_kind(rng: np.random.Generator, n_docs: int) -> np.ndarray:
    kinds = [
        lambda: rng.normal(size=n_docs),
        lambda: rng.integers(-1, 2, n_docs) * 1.0,
        lambda: (rng.random(n_docs) < 2 / n_docs) * rng.choice([-1.0, 1.0], n_docs),
        lambda: rng.choice([-1.0, 1.0], n_docs),
        lambda: 1 + 10.0 ** rng.uniform(-4, -1) * rng.normal(size=n_docs),
        lambda: 2.0 ** rng.integers(0, 5, n_docs) - 1,
        lambda: rng.random(n_docs) ** 8,
        lambda: np.where(np.arange(n_docs) == rng.integers(n_docs), -1.0, 1.0),
    ]
    return kinds[rng.integers(len(kinds))]()


def rank_weights_of_a_kind(rng: np.random.Generator, cutoff: int) -> np.ndarray:
    kinds = [
        lambda: plr.dcg_weights(cutoff),
        lambda: np.ones(cutoff),
        lambda: np.arange(1.0, cutoff + 1),
        lambda: (-1.0) ** np.arange(cutoff),
        lambda: (np.arange(cutoff) == rng.integers(cutoff)) * 1.0,
        lambda: rng.normal(size=cutoff),
        lambda: 0.5 ** np.arange(cutoff),
    ]
    return kinds[rng.integers(len(kinds))]()


def random_problem(seed: int, most_docs: int) -> Problem:
    """Draw a problem of at most so many documents, short lists more often than long ones, which are often cut early."""
    rng = np.random.default_rng(seed)
    n_docs = int(np.exp(rng.uniform(np.log(2), np.log(most_docs + 1)) * rng.choice([1.0, 0.6], p=[0.6, 0.4])))
    n_docs = max(2, min(n_docs, most_docs))
    kinds_of_cutoff = [rng.integers(1, n_docs + 1), rng.integers(1, min(4, n_docs + 1)), n_docs, n_docs - 1, n_docs + 2]
    cutoff = int(max(1, rng.choice(kinds_of_cutoff, p=[0.35, 0.35, 0.12, 0.12, 0.06])))
    if rng.random() < 0.15:
        n_docs = int(rng.integers(most_docs // 2 + 1, most_docs + 1))
        cutoff = int(rng.integers(1, min(4, n_docs + 1)))
    problem = Problem(
        _scores(rng, n_docs),
        relevance_of_a_kind(rng, n_docs),
        rank_weights_of_a_kind(rng, cutoff),
        rtol=float(10.0 ** rng.choice([rng.uniform(-10, -0.5), -3.0, -6.0, -8.0, -10.0])),
        seed=int(rng.integers(2**31)),
    )
    return _with_magnitudes(problem, rng) if rng.random() < 0.25 else problem


def _with_magnitudes(problem: Problem, rng: np.random.Generator) -> Problem:
    """Multiply by powers of two of both signs, up to the limits of what may be multiplied and what sums may cancel."""
    of_sigma = int(rng.choice([0, 0, rng.integers(-190, 191)]))
    of_relevance, of_weights = (int(exponent) for exponent in rng.integers(-120, 191, size=2))
    return dataclasses.replace(
        problem,
        scores=np.round(problem.scores * GRID) / GRID,
        exponents=(of_relevance, of_weights, of_sigma),
        far=int(rng.choice([8, 20, 30, 300, 600])),
    )


def changed(problem: Problem, seed: int) -> Problem:
    """Move the problem a little: a score, all scores, a relevance, a rank weight, the tolerance, what is drawn."""
    rng = np.random.default_rng(seed)
    scores, relevance, rank_weights = problem.scores.copy(), problem.relevance.copy(), problem.rank_weights.copy()
    d, k, kind = rng.integers(scores.size), rng.integers(problem.cutoff), rng.integers(KINDS_OF_CHANGE)
    rtol = problem.rtol
    if kind == 0:
        scores += rng.normal(size=scores.size) * 10.0 ** rng.uniform(-3, 0)
    elif kind == 1:
        scores[d] += rng.normal() * 10.0 ** rng.uniform(-2, 1)
    elif kind == 2:
        scores *= 1 + 0.3 * rng.normal()
    elif kind == 3:
        relevance[d] = rng.choice([-1.0, 0.0, 1.0, rng.normal()])
    elif kind == 4:
        relevance += rng.normal(size=scores.size) * 10.0 ** rng.uniform(-3, 0)
    elif kind == 5:
        rank_weights[k] = rng.choice([-1.0, 0.0, 1.0, rng.normal()])
    elif kind == 6:
        relevance -= relevance.mean()
    elif kind == 7:
        rtol = float(np.clip(rtol * 10.0 ** rng.normal(), 1e-10, 0.5))
    else:
        scores[d] = scores[rng.integers(scores.size)]
    if problem.far is not None:
        scores = np.round(scores * GRID) / GRID
    return dataclasses.replace(
        problem, scores=scores, relevance=relevance, rank_weights=rank_weights, rtol=rtol, seed=int(rng.integers(2**31))
    )
