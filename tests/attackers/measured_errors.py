"""Errors of every output over their bounds: above 1 a bound fails.

An attack takes a problem and returns that ratio for each output that it looks at. ``ATTACKS`` lists them; the table of
``docs/reliability.md`` says in words what each bound is.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np

import plrank_fast as plr
import ranking_reference
import trapezoid_reference
from adversarial_problem import Problem
from error_bounds import LEAST, OF_SUMS, OF_TERMS, Ratios, Terms, of_norm, of_terms, ratio
from measured_errors_of_logs import logs, ranking_rows, rewards_of_rankings
from measured_errors_of_long_lists import cost_of_long_list, given_rankings_of_long_lists, long_lists
from measured_errors_of_losses import losses
from measured_errors_of_ties import ties
from plrank_fast import fairness, reference
from plrank_fast._core.gradients import exact as _exact
from plrank_fast._core.gradients import sampled

MOST_IN_SUBSETS = 10
FEWEST_BANDED, FINEST_CHECKED = 32, 1e-9  # ranks from which coefficients are left out; digits that 1e-12 can judge
FEWEST_ALIKE = 8  # ranks from which it matters whether rank weights fall at one of them
COARSE = 1e-3  # a tolerance that leaves a rule for the nodes few digits to be wrong in


@dataclasses.dataclass(frozen=True)
class Attack:
    """A measurement on a problem, ``finer`` with a better reference, and how large its problems may be."""

    measure: Callable[..., Ratios]
    most_docs: int
    cost: Callable[[Problem], float]  # about how many operations on one item, rank and node the reference takes


def exact_gradients(
    problem: Problem,
    prefix: str,
    gradient: np.ndarray,
    hessian: np.ndarray,
    *,
    noise: str = "gumbel",
    stop: np.ndarray | None = None,
) -> Ratios:
    """Gradient alone and with the Hessian diagonal, and that diagonal."""
    options = {"rtol": problem.rtol, "noise": noise, "sigma": problem.sigma, "stop": stop, "n_threads": 1}
    of_score = problem.exponents[2] - problem.exponents[0] - problem.exponents[1]
    alone = plr.pl_rank_exact(*problem.passed(), **options)
    beside, diagonal = plr.pl_rank_exact(*problem.passed(), hessian=True, **options)
    return {
        f"{prefix}gradient": of_norm(np.ldexp(alone, of_score), gradient, problem),
        f"{prefix}gradient beside the Hessian": of_norm(np.ldexp(beside, of_score), gradient, problem),
        f"{prefix}Hessian diagonal": of_norm(np.ldexp(diagonal, of_score + problem.exponents[2]), hessian, problem),
    }


def exact_expectations(
    problem: Problem, *, noise: str = "gumbel", stop: np.ndarray | None = None, finer: bool = False
) -> Ratios:
    """Gradient, Hessian diagonal and value by quadrature, for either noise."""
    plain = problem.scores, problem.relevance, problem.rank_weights[: problem.n_docs]
    if finer and noise == "gumbel" and problem.n_docs <= MOST_IN_SUBSETS:
        best = reference.exact_by_subsets(*plain, stop)
    else:
        best = trapezoid_reference.expectations(*plain, noise=noise, stop=stop, finer=finer)
    value, gradient, hessian = best
    unit = -problem.exponents[0] - problem.exponents[1]
    prefix = ("stopping " if stop is not None else "") + ("normal " if noise == "normal" else "")
    ratios = exact_gradients(problem, prefix, gradient, hessian, noise=noise, stop=stop)
    passed, options = problem.passed(), {"rtol": problem.rtol, "n_threads": 1}
    shown = np.ldexp(plr.expected_metric(*passed, noise=noise, sigma=problem.sigma, stop=stop, **options)[0], unit)
    scale = np.abs(problem.rank_weights[: problem.n_docs]).sum() * np.abs(problem.relevance).max()
    ratios[f"{prefix}value"] = ratio(abs(shown - value), problem.rtol * scale)
    if noise == "gumbel" and stop is None and problem.exponents[2] == 0:
        vjp = plr.exposure_vjp(passed[0], passed[2], passed[1], **options)
        ratios["exposure_vjp"] = of_norm(np.ldexp(vjp, unit), gradient, problem)
    return ratios


def hessian_products(problem: Problem, *, finer: bool = False) -> Ratios:
    """Products of the Hessian with vectors that add up, cancel, or hold one entry."""
    rng = np.random.default_rng(problem.seed)
    n_docs, rtol = problem.n_docs, max(problem.rtol, FINEST_CHECKED)
    step = trapezoid_reference.step_of(problem.cutoff) / (3 if finer else 2)
    kinds = rng.normal(size=n_docs), rng.choice([-1.0, 1.0], n_docs), np.ones(n_docs), np.eye(n_docs)[0]
    vector = kinds[rng.integers(len(kinds))]
    plain = problem.scores, problem.relevance, problem.rank_weights[:n_docs]
    best = reference.exact_hvp_by_trapezoid(*plain, vector, step=step)
    scores = np.ldexp(problem.passed_scores(), -problem.exponents[2])
    got = plr.pl_rank_exact_hvp(scores, *problem.passed()[1:], vector, rtol=rtol, n_threads=1)
    got = np.ldexp(got, -problem.exponents[0] - problem.exponents[1])
    size = np.abs(vector).max()
    return {"Hessian product": of_norm(got / size, best / size, dataclasses.replace(problem, rtol=rtol))}


def average_precision(problem: Problem, *, finer: bool = False) -> Ratios:
    """Expected average precision, alone and with its gradient."""
    relevant, rtol = np.count_nonzero(problem.relevance > 0), max(problem.rtol, FINEST_CHECKED)
    if relevant == 0:
        return {}
    value, gradient = trapezoid_reference.average_precision(
        problem.scores, problem.relevance, problem.cutoff, finer=finer
    )
    scores = np.ldexp(problem.passed_scores(), -problem.exponents[2])  # Plackett-Luce has no scale of noise
    arguments, options = (scores, problem.passed()[1], problem.cutoff), {"rtol": rtol, "n_threads": 1}
    alone = plr.expected_average_precision(*arguments, **options)
    beside, slopes = plr.expected_average_precision(*arguments, gradient=True, **options)
    largest = rtol * min(problem.cutoff, relevant) / relevant
    norm = max(np.linalg.norm(gradient), 1e-3 / relevant)
    return {
        "average precision": ratio(abs(alone[0] - value), largest),
        "average precision beside its gradient": ratio(abs(beside[0] - value), largest),
        "gradient of average precision": ratio(np.linalg.norm(slopes - gradient), rtol * norm),
    }


def normal_expectations(problem: Problem, *, finer: bool = False) -> Ratios:
    return exact_expectations(problem, noise="normal", finer=finer)


def stopping(problem: Problem, *, finer: bool = False) -> Ratios:
    """Metrics of readers who stop, of either noise: at documents of large relevance, of any, of none, half of them."""
    share = np.abs(problem.relevance) / np.abs(problem.relevance).max()
    kinds = share, np.ceil(share), 1.0 - share, share**8, np.full(problem.n_docs, 0.5)
    noise = ("gumbel", "gumbel", "normal")[problem.n_docs % 3]  # neither changes in a climb
    return exact_expectations(problem, noise=noise, stop=kinds[problem.rank_weights.size % len(kinds)], finer=finer)


def against_finer_nodes(problem: Problem, prefix: str, rank_weights: np.ndarray, least_rtol: float) -> Ratios:
    """Gradient and Hessian diagonal against the kernel's own nodes for 1e-12.

    The attack on ``exact`` holds those against another reference. A thousand times as fast, so that climbs go further.
    """
    problem = dataclasses.replace(
        problem, rank_weights=rank_weights, rtol=max(problem.rtol, least_rtol), exponents=(0, 0, 0), far=None
    )
    if problem.is_trivial:
        return {}
    arrays = problem.scores, problem.relevance, rank_weights
    gradient, hessian = np.zeros((2, problem.n_docs))
    _exact.solve_unchecked(*arrays, 1e-12, False, gradient, hessian)
    return exact_gradients(problem, prefix, gradient, hessian)


def coarse(problem: Problem, *, finer: bool = False) -> Ratios:
    """At a coarse tolerance."""
    return against_finer_nodes(problem, "coarse ", problem.rank_weights, COARSE)


def many_ranks(problem: Problem, *, finer: bool = False) -> Ratios:
    """Measure with 32 ranks or more, for which a band of coefficients is taken; weights repeat if there are fewer."""
    if problem.n_docs <= FEWEST_BANDED:
        return {}
    cutoff = max(FEWEST_BANDED, problem.cutoff)
    return against_finer_nodes(problem, "banded ", np.resize(problem.rank_weights, cutoff), FINEST_CHECKED)


def alike(problem: Problem, *, finer: bool = False) -> Ratios:
    """Nearly equal relevance but of one document, and rank weights that fall at one rank: all errors add up."""
    relevance = 1.0 + 0.2 * problem.relevance / max(np.abs(problem.relevance).max(), LEAST)
    relevance[0] = 0.0
    rank_weights = np.ones(min(max(FEWEST_ALIKE, problem.cutoff), problem.n_docs))
    return against_finer_nodes(
        dataclasses.replace(problem, relevance=relevance), "alike ", rank_weights, FINEST_CHECKED
    )


def panels(problem: Problem, *, finer: bool = False) -> Ratios:
    """Values of lists that spread far, alone: the errors of all panels add up, which nothing shows but their bounds."""
    arrays, ratios = (10.0 * problem.scores, problem.relevance, problem.rank_weights), {}
    bound = max(problem.rtol, FINEST_CHECKED) * np.abs(problem.rank_weights[: problem.n_docs]).sum()
    for noise in ("gumbel", "normal"):
        got = plr.expected_metric(*arrays, rtol=max(problem.rtol, FINEST_CHECKED), noise=noise, n_threads=1)[0]
        best, _, _ = _exact.solve_unchecked(*arrays, 1e-12, noise == "normal", np.zeros(problem.n_docs), None)
        ratios[f"value of panels, {noise}"] = ratio(abs(got - best), bound * np.abs(problem.relevance).max())
    return ratios


def probabilities(problem: Problem, *, finer: bool = False) -> Ratios:
    """Rank probabilities, their sums, and exposure."""
    best = trapezoid_reference.rank_probabilities(problem.scores, problem.cutoff, finer=finer)
    scores = np.ldexp(problem.passed_scores(), -problem.exponents[2])  # Plackett-Luce has no scale of noise
    got = plr.rank_probabilities(scores, problem.cutoff, n_threads=1)
    sums = np.append(got.sum(axis=0), got.sum(axis=1) if problem.cutoff == problem.n_docs else 1.0)
    rank_weights = problem.rank_weights[: problem.n_docs]
    exposure = plr.exposure(scores, np.ldexp(rank_weights, problem.exponents[1]), n_threads=1)
    by_relevance = dataclasses.replace(problem, rtol=1e-9, relevance=np.ones(problem.n_docs))
    return {
        "rank probabilities": ratio(np.abs(got - best).max(), OF_SUMS),
        "sums of rank probabilities": ratio(np.abs(sums - 1.0).max(), OF_SUMS),
        "exposure": of_norm(np.ldexp(exposure, -problem.exponents[1]), best @ rank_weights, by_relevance),
    }


def given_rankings(problem: Problem, *, finer: bool = False) -> Ratios:
    """Every estimator that takes rankings, on likely and on absurd ones."""
    problem = dataclasses.replace(problem, exponents=(*problem.exponents[:2], 0))
    scores, relevance, rank_weights = problem.passed()
    rankings = ranking_rows(problem, 3)
    plain = problem.relevance, problem.rank_weights[: problem.n_docs]
    exponent = problem.exponents[0] + problem.exponents[1]
    options = {"rankings": rankings, "n_threads": 1}
    ratios = {}
    for variant, estimator in enumerate((plr.pl_rank_1, plr.pl_rank_2, plr.pl_rank_3), start=1):
        best = ranking_reference.pl_rank(variant, scores, *plain, rankings)
        ratios[f"pl_rank_{variant}"] = of_terms(estimator(scores, relevance, rank_weights, **options), best, exponent)
    for to_go, baseline in itertools.product((False, True), repeat=2):
        name = "placement_policy_gradient" if to_go else "policy_gradient"
        best = ranking_reference.policy_gradient(scores, *plain, rankings, to_go=to_go, baseline=baseline)
        got = getattr(plr, name)(scores, relevance, rank_weights, baseline=baseline, **options)
        ratios[name + " with baseline" * baseline] = of_terms(got, best, exponent)
    got = plr.expected_metric(scores, relevance, rank_weights, method="sample", **options)[0]
    ratios["sampled value"] = of_terms(got, ranking_reference.metric(*plain, rankings), exponent)
    _, diagonal = plr.pl_rank_3(scores, relevance, rank_weights, hessian=True, **options)
    ratios["pl_rank_3's Hessian"] = of_terms(
        diagonal, ranking_reference.pl_rank_hessian(scores, *plain, rankings), exponent
    )
    shown = fairness.expected_exposure(scores, rank_weights, method="sample", **options)
    best = reference.exposure(problem.n_docs, plain[1], rankings)
    ratios["sampled exposure"] = of_terms(shown, Terms(best, np.abs(plain[1]).sum()), problem.exponents[1])
    rewards, chances = relevance[rankings].sum(axis=1), np.exp2(np.arange(float(len(rankings))))
    best = ranking_reference.log_prob_gradient(scores, rankings, np.ldexp(rewards, -problem.exponents[0]))
    got = plr.ranking_log_prob_vjp(scores, rankings, rewards, n_threads=1)
    ratios["ranking_log_prob_vjp"] = of_terms(got, best, problem.exponents[0])
    got = plr.policy_gradient(scores, rewards=rewards, importance_weights=chances, **options)
    weighted = np.ldexp(rewards, -problem.exponents[0]) * chances / len(rankings)
    best = ranking_reference.log_prob_gradient(scores, rankings, weighted)
    ratios["policy_gradient of rewards"] = of_terms(got, best, problem.exponents[0])
    logs = plr.ranking_log_prob(scores, rankings, n_threads=1)
    for got, ranking in zip(logs, rankings, strict=True):
        total = ranking_reference.log_prob(scores, ranking).total
        worst = ratio(float(abs(got - total)), float(OF_TERMS * abs(total) + LEAST))
        ratios["ranking_log_prob"] = max(ratios.get("ranking_log_prob", 0.0), worst)
    return ratios


def conditional(problem: Problem, *, finer: bool = False) -> Ratios:
    """``pl_rank_cmc`` for given rankings, gradient and Hessian diagonal: held to the largest item's absolute terms."""
    problem = dataclasses.replace(problem, exponents=(*problem.exponents[:2], 0))
    rankings = ranking_rows(problem, 2)
    plain = problem.relevance, problem.rank_weights[: problem.n_docs]
    exponent = problem.exponents[0] + problem.exponents[1]
    gradient, diagonal = plr.pl_rank_cmc(*problem.passed(), rankings=rankings, hessian=True, n_threads=1)
    best = ranking_reference.conditional_monte_carlo(problem.passed_scores(), *plain, rankings, range(problem.n_docs))
    return {
        "pl_rank_cmc": of_terms(gradient, best[0], exponent),
        "pl_rank_cmc's Hessian": of_terms(diagonal, best[1], exponent),
    }


def stochastic_rank(problem: Problem, *, finer: bool = False) -> Ratios:
    """``stochastic_rank`` on noise made here, against its reference: item by item, or through nodes to 2e-7."""
    rng = np.random.default_rng(problem.seed)
    n_samples = int(rng.choice([1, 3, 8, 17]))
    rank_weights = problem.rank_weights[: problem.n_docs]
    largest = 0.4 * np.abs(np.diff(rank_weights, append=0.0)).sum() * np.ptp(problem.relevance)
    bound = (OF_TERMS if problem.n_docs <= 16 else 2e-7) * max(largest, LEAST)
    ratios = {}
    for noise, density in (("gumbel", reference.gumbel_density), ("normal", reference.normal_density)):
        shape = n_samples, problem.n_docs
        given = rng.standard_exponential(shape) if noise == "gumbel" else rng.normal(size=shape)
        noisy = problem.scores + (-np.log(given) if noise == "gumbel" else given)
        arrays = problem.scores, problem.relevance, problem.rank_weights
        got = sampled.estimate(
            "stochastic_rank", *arrays, None, n_samples, None, None, "auto", 1, None, 0, noise=noise, given_noise=given
        )
        best = reference.stochastic_rank(problem.scores, problem.relevance, rank_weights, noisy, density)
        ratios[f"stochastic_rank, {noise}"] = ratio(np.abs(got - best).max(), bound)
    return ratios


def _nodes(problem: Problem) -> float:
    return trapezoid_reference.nodes_needed(problem.scores, problem.cutoff)


def _normal_nodes(problem: Problem) -> float:
    return (18.0 + np.ptp(problem.scores)) / trapezoid_reference.step_of(problem.n_docs)


ATTACKS = {
    "exact": Attack(exact_expectations, 400, lambda p: _nodes(p) * p.n_docs * p.cutoff),
    "products": Attack(hessian_products, 150, lambda p: 10.0 * _nodes(p) * p.n_docs * p.cutoff),
    "average precision": Attack(average_precision, 400, lambda p: 4.0 * _nodes(p) * p.n_docs * p.cutoff),
    "coarse": Attack(coarse, 150, lambda p: 100.0 * p.n_docs * p.cutoff),
    "many ranks": Attack(many_ranks, 500, lambda p: 100.0 * p.n_docs * p.cutoff),
    # a normal distribution function costs ten ranks
    "normal": Attack(normal_expectations, 400, lambda p: _normal_nodes(p) * p.n_docs * (p.cutoff + 10)),
    "stopping": Attack(stopping, 400, lambda p: (_nodes(p) + _normal_nodes(p)) * p.n_docs * (p.cutoff + 10)),
    "alike": Attack(alike, 150, lambda p: 100.0 * p.n_docs * p.cutoff),
    "panels": Attack(panels, 150, lambda p: 100.0 * p.n_docs * p.cutoff),
    "long": Attack(long_lists, 2, cost_of_long_list),
    "long given": Attack(given_rankings_of_long_lists, 2, cost_of_long_list),
    "probabilities": Attack(probabilities, 400, lambda p: _nodes(p) * p.n_docs**2),
    "given": Attack(given_rankings, 100, lambda p: 10.0 * p.n_docs**2 * p.cutoff),
    "conditional": Attack(conditional, 150, lambda p: 10.0 * p.n_docs**2 * p.cutoff),
    "stochastic": Attack(stochastic_rank, 400, lambda p: 10.0 * p.n_docs**2 * p.cutoff),
    "losses": Attack(losses, 60, lambda p: 10.0 * p.n_docs**3),
    "logs": Attack(logs, 60, lambda p: 50.0 * p.n_docs**2 * p.cutoff),
    "rewards": Attack(rewards_of_rankings, 60, lambda p: 50.0 * p.n_docs**2 * p.cutoff),
    "ties": Attack(ties, 60, lambda p: 1e4 * p.n_docs),
}
