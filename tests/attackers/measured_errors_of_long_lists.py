"""Error over bound of the exact gradient on lists of 300 to 100,000 documents.

The exact gradient is judged by what must hold exactly, which needs no reference: a constant added to all scores moves
nothing, so that gradients sum to 0; documents with the same score and relevance have the same gradient; and at equal
scores the value is mean(rho) sum(theta), the gradient a multiple of rho less its mean. A reference judges the short
ones too.
"""

from __future__ import annotations

import numpy as np

import plrank_fast as plr
import trapezoid_reference
from adversarial_problem import Problem, rank_weights_of_a_kind, relevance_of_a_kind
from error_bounds import Ratios, ratio

SHORTEST, LONGEST, MOST_RANKS = 300, 100_000, 1500
MOST_WORK = 3e6  # documents times ranks
MOST_FOR_REFERENCE = 2e3
FINEST_ALWAYS_HELD = 2e-9  # below it rounding may be more than the bound, and the call says so


def long_problem(seed: int) -> tuple[Problem, bool]:
    """Draw a problem with many alike documents; also whether all scores are equal."""
    rng = np.random.default_rng(seed)
    n_docs = int(np.exp(rng.uniform(np.log(SHORTEST), np.log(LONGEST))))
    most = min(MOST_RANKS, n_docs, int(MOST_WORK / n_docs))
    cutoff = int(np.exp(rng.uniform(0.0, np.log(most)))) if rng.random() < 0.8 else most
    normal = rng.normal(size=n_docs)
    kind = int(rng.integers(7))
    scores = [
        lambda: np.zeros(n_docs),
        lambda: np.zeros(n_docs),
        lambda: 1e-9 * normal,
        lambda: 0.3 * normal,
        lambda: normal * 10.0 ** rng.uniform(-2, 0.7),
        lambda: np.round(normal * rng.choice([1.0, 3.0])),
        lambda: rng.choice([0.0, 1.0, 6.5, 7.5, 15.0], size=n_docs, p=[0.9, 0.07, 0.01, 0.01, 0.01]),
    ][kind]()
    relevance, rank_weights = relevance_of_a_kind(rng, n_docs), rank_weights_of_a_kind(rng, cutoff)
    rtol = float(10.0 ** rng.choice([rng.uniform(-10, -1), -6.0]))
    return Problem(scores, relevance, rank_weights, rtol=rtol), kind < 2


def cost_of_long_list(problem: Problem) -> float:
    """Documents times ranks, of which a hunt sets the most."""
    problem, _ = long_problem(problem.seed)
    return float(problem.n_docs * problem.cutoff)


def long_lists(problem: Problem, *, finer: bool = False) -> Ratios:
    """Gradient, Hessian diagonal and value of a long list, made from the problem's seed, for either noise."""
    problem, equal = long_problem(problem.seed)
    ratios: Ratios = {}
    for noise in () if problem.is_trivial else ("gumbel", "normal"):
        try:
            ratios |= {f"long {noise}: {name}": value for name, value in _ratios(problem, noise, equal, finer).items()}
        except ArithmeticError:
            ratios[f"long {noise}: refused"] = problem.rtol / FINEST_ALWAYS_HELD
    return ratios


def _ratios(problem: Problem, noise: str, equal: bool, finer: bool) -> Ratios:
    scores, relevance, rank_weights = problem.scores, problem.relevance, problem.rank_weights
    options = {"offsets": [0, problem.n_docs], "rtol": problem.rtol, "noise": noise, "n_threads": 1}
    largest = np.abs(rank_weights).max() * np.abs(relevance).max()

    def error(difference: np.ndarray, of: np.ndarray) -> float:
        return ratio(float(np.linalg.norm(difference)), problem.rtol * max(np.linalg.norm(of), 1e-3 * largest))

    gradient = plr.pl_rank_exact(scores, relevance, rank_weights, **options)
    beside, diagonal = plr.pl_rank_exact(scores, relevance, rank_weights, hessian=True, **options)
    ratios = {
        "sum": error(np.array(gradient.sum() / np.sqrt(problem.n_docs)), gradient),
        "sum beside the Hessian": error(np.array(beside.sum() / np.sqrt(problem.n_docs)), beside),
    }
    _, same = np.unique(np.stack([scores, relevance]), axis=1, return_inverse=True)
    counts = np.bincount(same.ravel())
    for name, result in (("alike", gradient), ("alike in the Hessian", diagonal)):
        means = np.bincount(same.ravel(), weights=result) / counts
        ratios[name] = error(result - means[same.ravel()], result)
    if equal:
        value = plr.expected_metric(scores, relevance, rank_weights, **options)[0]
        off = abs(value - relevance.mean() * rank_weights.sum())
        ratios["value"] = ratio(off, problem.rtol * np.abs(rank_weights).sum() * np.abs(relevance).max())
        centred = relevance - relevance.mean()
        for name, result in (("symmetry", gradient), ("symmetry beside the Hessian", beside)):
            ratios[name] = error(result - centred * (result @ centred) / (centred @ centred), result)
    if problem.n_docs * problem.cutoff <= MOST_FOR_REFERENCE:
        best = trapezoid_reference.expectations(scores, relevance, rank_weights, noise=noise, finer=finer)
        ratios["gradient"] = error(gradient - best[1], best[1])
        ratios["Hessian diagonal"] = error(diagonal - best[2], best[2])
    return ratios
