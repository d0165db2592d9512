"""Errors of every output over their bounds: above 1 a bound fails.

An attack takes a problem and returns that ratio for each output that it looks at. ``ATTACKS`` lists them; the table of
``docs/reliability.md`` says in words what each bound is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

import plrank_fast as plr
import ranking_reference
import trapezoid_reference
from adversarial_problem import Problem
from error_bounds import LEAST, OF_SUMS, OF_TERMS, Ratios, Terms, of_norm, of_terms, ratio
from measured_errors_of_logs import logs, ranking_rows, rewards_of_rankings
from measured_errors_of_long_lists import cost_of_long_list, long_lists, long_problem
from measured_errors_of_losses import losses
from measured_errors_of_metrics import metrics, of_all_rankings
from measured_errors_of_ties import ties
from plrank_fast import _estimates, reference
from plrank_fast._core.gradients import exact as _exact
from plrank_fast._core.gradients.stochastic_rank import STOCHASTIC_RANK

MOST_IN_SUBSETS = 10
FEWEST_BANDED, FINEST_CHECKED = 32, 1e-9  # ranks from which coefficients are left out; digits that 1e-12 can judge
FEWEST_ALIKE = 8  # ranks from which it matters whether rank weights fall at one of them
MOST_RANKED, MOST_DOCS_RANKED = 20, 30_000  # ranks and documents of long lists with given rankings
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
    stop_probability: np.ndarray | None = None,
) -> Ratios:
    """Gradient alone and with the Hessian diagonal, and that diagonal."""
    options = {
        "rtol": problem.rtol,
        "noise": noise,
        "sigma": problem.sigma,
        "stop_probability": stop_probability,
        "n_threads": 1,
    }
    of_score = problem.exponents[2] - problem.exponents[0] - problem.exponents[1]
    alone = plr.pl_rank_exact(*problem.passed(), **options)
    beside, diagonal = plr.pl_rank_exact(*problem.passed(), hessian=True, **options)
    return {
        f"{prefix}gradient": of_norm(np.ldexp(alone, of_score), gradient, problem),
        f"{prefix}gradient beside the Hessian": of_norm(np.ldexp(beside, of_score), gradient, problem),
        f"{prefix}Hessian diagonal": of_norm(np.ldexp(diagonal, of_score + problem.exponents[2]), hessian, problem),
    }


def exact_expectations(
    problem: Problem, *, noise: str = "gumbel", stop_probability: np.ndarray | None = None, finer: bool = False
) -> Ratios:
    """Gradient, Hessian diagonal and value by quadrature, for either noise."""
    plain = problem.scores, problem.relevance, problem.rank_weights[: problem.n_docs]
    if finer and noise == "gumbel" and problem.n_docs <= MOST_IN_SUBSETS:
        best = reference.exact_by_subsets(*plain, stop_probability)
    else:
        best = trapezoid_reference.expectations(*plain, noise=noise, stop_probability=stop_probability, finer=finer)
    value, gradient, hessian = best
    unit = -problem.exponents[0] - problem.exponents[1]
    prefix = ("stopping " if stop_probability is not None else "") + ("normal " if noise == "normal" else "")
    ratios = exact_gradients(problem, prefix, gradient, hessian, noise=noise, stop_probability=stop_probability)
    passed, options = problem.passed(), {"rtol": problem.rtol, "n_threads": 1}
    shown = np.ldexp(
        plr.expected_metric(*passed, noise=noise, sigma=problem.sigma, stop_probability=stop_probability, **options)[0],
        unit,
    )
    scale = np.abs(problem.rank_weights[: problem.n_docs]).sum() * np.abs(problem.relevance).max()
    ratios[f"{prefix}value"] = ratio(abs(shown - value), problem.rtol * scale)
    return ratios


def hessian_products(problem: Problem, *, finer: bool = False) -> Ratios:
    """Products of the Hessian with vectors that add up, cancel, or hold one entry."""
    rng = np.random.default_rng(problem.seed)
    n_docs, rtol = problem.n_docs, max(problem.rtol, FINEST_CHECKED)
    step = trapezoid_reference.step_of(problem.cutoff, finer=finer) / 2
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
    alone = plr.expected_ap(*arguments, **options)
    beside, slopes = plr.expected_ap(*arguments, gradient=True, **options)
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
    return exact_expectations(
        problem, noise=noise, stop_probability=kinds[problem.rank_weights.size % len(kinds)], finer=finer
    )


def finer_nodes(problem: Problem, *, finer: bool = False) -> Ratios:
    """Variants of a problem against the kernel's own nodes for 1e-12, which ``exact`` holds against another reference.

    A thousand times as fast, so that climbs go further: a coarse tolerance; 32 ranks or more, for which a band of
    coefficients is taken; relevance that is nearly equal but for one document, with rank weights that fall at one rank,
    where all errors add up; and values of lists that spread far, where the errors of all panels do.
    """
    relevance = 1.0 + 0.2 * problem.relevance / max(np.abs(problem.relevance).max(), LEAST)
    relevance[0] = 0.0
    rtol, last = max(problem.rtol, FINEST_CHECKED), min(max(FEWEST_ALIKE, problem.cutoff), problem.n_docs)
    variants = {
        "coarse ": {"rtol": max(problem.rtol, COARSE)},
        "alike ": {"rtol": rtol, "relevance": relevance, "rank_weights": np.ones(last)},
    }
    if problem.n_docs > FEWEST_BANDED:
        banded = np.resize(problem.rank_weights, max(FEWEST_BANDED, problem.cutoff))  # repeats itself
        variants["banded "] = {"rtol": rtol, "rank_weights": banded}
    ratios: Ratios = {}
    for prefix, changes in variants.items():
        variant = dataclasses.replace(problem, exponents=(0, 0, 0), far=None, **changes)
        if not variant.is_trivial:
            gradient, hessian = np.zeros((2, problem.n_docs))
            _exact.solve_unchecked(*variant.passed(), 1e-12, False, gradient, hessian)
            ratios |= exact_gradients(variant, prefix, gradient, hessian)
    arrays = 10.0 * problem.scores, problem.relevance, problem.rank_weights
    bound = rtol * np.abs(problem.rank_weights[: problem.n_docs]).sum() * np.abs(problem.relevance).max()
    for noise in ("gumbel", "normal"):
        got = plr.expected_metric(*arrays, rtol=rtol, noise=noise, n_threads=1)[0]
        best, _, _ = _exact.solve_unchecked(*arrays, 1e-12, noise == "normal", np.zeros(problem.n_docs), None)
        ratios[f"value of panels, {noise}"] = ratio(abs(got - best), bound)
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


def of_rankings(problem: Problem, rankings: np.ndarray) -> Ratios:
    """Every estimator that takes rankings; ``pl_rank_cmc`` is left to `conditional`, whose reference takes longer."""
    scores, relevance, rank_weights = problem.passed()
    plain = problem.relevance, problem.rank_weights[: problem.n_docs]
    of_relevance, of_weights, _ = problem.exponents
    options = {"offsets": [0, scores.size], "rankings": rankings, "n_threads": 1}
    found = []
    for variant, estimator in enumerate((plr.pl_rank_1, plr.pl_rank_2, plr.pl_rank_3), start=1):
        best = ranking_reference.pl_rank(variant, scores, *plain, rankings)
        found.append((f"pl_rank_{variant}", estimator(scores, relevance, rank_weights, **options), best))
    for to_go, baseline in ((False, False), (False, True), (True, True)):
        name = "pl_rank_1" if to_go else "policy_gradient"
        best = ranking_reference.policy_gradient(scores, *plain, rankings, to_go=to_go, baseline=baseline)
        got = getattr(plr, name)(scores, relevance, rank_weights, baseline=baseline, **options)
        found.append((name + " with baseline" * baseline, got, best))
    got = plr.expected_metric(scores, relevance, rank_weights, method="sample", **options)[0]
    found.append(("sampled value", got, ranking_reference.metric(*plain, rankings)))
    _, got = plr.pl_rank_3(scores, relevance, rank_weights, hessian=True, **options)
    found.append(("pl_rank_3's Hessian", got, ranking_reference.pl_rank_hessian(scores, *plain, rankings)))
    ratios = {name: of_terms(got, best, of_relevance + of_weights) for name, got, best in found}
    shown = plr.exposure(scores, rank_weights, **options)
    best = Terms(reference.exposure(problem.n_docs, plain[1], rankings), np.abs(plain[1]).sum())
    ratios["sampled exposure"] = of_terms(shown, best, of_weights)
    rewards, chances = relevance[rankings].sum(axis=1), np.exp2(np.arange(float(len(rankings))))
    weighted = np.ldexp(rewards, -of_relevance) * chances / len(rankings)
    got = plr.policy_gradient(scores, rewards=rewards, importance_weights=chances, **options)
    best = ranking_reference.log_prob_gradient(scores, rankings, weighted)
    ratios["policy_gradient of rewards"] = of_terms(got, best, of_relevance)
    got = plr.ranking_log_prob_vjp(scores, rankings, rewards, n_threads=1)
    best = ranking_reference.log_prob_gradient(scores, rankings, np.ldexp(rewards, -of_relevance))
    ratios["ranking_log_prob_vjp"] = of_terms(got, best, of_relevance)
    got = plr.ranking_log_prob(scores, rankings, n_threads=1)
    best = Terms([ranking_reference.log_prob(scores, ranking).total for ranking in rankings])  # all are of one sign
    ratios["ranking_log_prob"] = of_terms(got, best)
    return ratios


def conditional_on(problem: Problem, rankings: np.ndarray, items: Sequence[int]) -> Ratios:
    """Measure ``pl_rank_cmc`` for some items, gradient and Hessian diagonal, by the largest item's absolute terms."""
    plain = problem.relevance, problem.rank_weights[: problem.n_docs]
    options = {"offsets": [0, problem.n_docs], "rankings": rankings, "hessian": True, "n_threads": 1}
    both = plr.pl_rank_cmc(*problem.passed(), **options)
    best = ranking_reference.conditional_monte_carlo(problem.passed_scores(), *plain, rankings, items)
    names = "pl_rank_cmc", "pl_rank_cmc's Hessian"
    exponent = problem.exponents[0] + problem.exponents[1]
    return {name: of_terms(got[items], of, exponent) for name, got, of in zip(names, both, best, strict=True)}


def without_scale(problem: Problem) -> Problem:
    """Return the problem at a scale of the noise of 1, which is all that the Plackett-Luce model has."""
    return dataclasses.replace(problem, exponents=(*problem.exponents[:2], 0))


def given_rankings(problem: Problem, *, finer: bool = False) -> Ratios:
    """Every estimator that takes rankings, on likely and on absurd ones."""
    return of_rankings(without_scale(problem), ranking_rows(problem, 3))


def conditional(problem: Problem, *, finer: bool = False) -> Ratios:
    """Measure all items of ``pl_rank_cmc``."""
    return conditional_on(without_scale(problem), ranking_rows(problem, 2), range(problem.n_docs))


def given_rankings_of_long_lists(problem: Problem, *, finer: bool = False) -> Ratios:
    """Likely rankings of a long list, a few of whose items are up to 20 nats ahead of the others.

    Once these are placed, the weights that are left are a small difference of sums over all items.
    """
    rng = np.random.default_rng(problem.seed)
    problem, _ = long_problem(problem.seed)
    scores, relevance = problem.scores[:MOST_DOCS_RANKED].copy(), problem.relevance[:MOST_DOCS_RANKED]
    rank_weights = problem.rank_weights[:MOST_RANKED]
    n_ahead, n_rankings = int(rng.integers(1, rank_weights.size + 1)), int(rng.integers(2, 4))
    scores[:n_ahead] += rng.uniform(0.0, 20.0, n_ahead)
    rankings = plr.sample_rankings(scores, n_rankings, rank_weights.size, rng=problem.seed, n_threads=1)
    problem = dataclasses.replace(problem, scores=scores, relevance=relevance, rank_weights=rank_weights)
    if problem.is_trivial:
        return {}
    some = np.append(rankings[:, :2].ravel(), rng.integers(scores.size, size=2))
    found = of_rankings(problem, rankings) | conditional_on(problem, rankings, some)
    return {f"long given: {name}": ratio for name, ratio in found.items()}


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
        got = _estimates.sampled_after_checks(
            STOCHASTIC_RANK, *arrays, None, n_samples, None, None, "auto", 1, None, noise=noise, given_noise=given
        )
        best = reference.stochastic_rank(problem.scores, problem.relevance, rank_weights, noisy, density)
        ratios[f"stochastic_rank, {noise}"] = ratio(np.abs(got - best).max(), bound)
    return ratios


def _nodes(problem: Problem, noise: str = "gumbel") -> float:
    return trapezoid_reference.nodes_needed(problem.scores, problem.cutoff, noise)


ATTACKS = {
    "exact": Attack(exact_expectations, 400, lambda p: _nodes(p) * p.n_docs * p.cutoff),
    "products": Attack(hessian_products, 150, lambda p: 10.0 * _nodes(p) * p.n_docs * p.cutoff),
    "average precision": Attack(average_precision, 400, lambda p: 4.0 * _nodes(p) * p.n_docs * p.cutoff),
    "finer nodes": Attack(finer_nodes, 500, lambda p: 100.0 * p.n_docs * p.cutoff),
    # a normal distribution function costs ten ranks
    "normal": Attack(normal_expectations, 400, lambda p: _nodes(p, "normal") * p.n_docs * (p.cutoff + 10)),
    "stopping": Attack(stopping, 400, lambda p: (_nodes(p) + _nodes(p, "normal")) * p.n_docs * (p.cutoff + 10)),
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
    "metrics": Attack(metrics, 400, lambda p: 1e2 * p.n_docs),
    "all rankings": Attack(of_all_rankings, 6, lambda p: 1e3 * p.n_docs),
}
