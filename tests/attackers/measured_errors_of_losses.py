"""Error over bound of the losses.

A value, and the derivative by each score, err by at most 1e-12 of the sum of their own absolute terms, at any distance
of the scores, any magnitude of scores and scale together, and any labels. Scores over their scale are rounded before
they are subtracted: a term may err, besides, as much as an ulp of each of the two makes of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

import loss_reference
from adversarial_problem import Problem
from error_bounds import Ratios, Terms, of_terms
from plrank_fast import losses as plr_losses

HIGHEST = 200.0  # of grades
# Effect of two ulps of 1 in a difference on a logistic term, and on exp(-x^2) while it is a number, in units of 1e-12.
OF_ULPS, OF_ULPS_IN_SQUARE = 5e-4, 2e-2
MU = 10.0


def grades_of(problem: Problem) -> list[np.ndarray]:
    """Whole grades with many ties, gains up to the largest allowed, and labels that differ by little."""
    size = np.abs(problem.relevance)
    return [np.minimum(np.round(size), 4.0), np.minimum(100.0 * size, HIGHEST), np.minimum(1e-4 * size, HIGHEST)]


def losses(problem: Problem, *, finer: bool = False) -> Ratios:
    """Every loss."""
    ratios: Ratios = {}
    for name, got, best, powers, of_ulps in measured(problem):
        for part, result, terms, power in zip((name, f"{name}'s gradient"), got, best, powers, strict=True):
            held = of_terms(result, Terms(terms.total, (1 + of_ulps) * terms.absolute), power)
            ratios[part] = max(ratios.get(part, 0.0), held)
    return ratios


def measured(problem: Problem) -> Iterator[tuple[str, tuple, loss_reference.Loss, tuple[int, int], float]]:
    """Name, result and best; powers of two of value and gradient; and what rounding of scores adds to the terms.

    The tolerance, for which losses have no use, says how steep they are.
    """
    of_relevance, _, exponent = problem.exponents
    near = dataclasses.replace(problem, exponents=(0, 0, 0)).passed_scores()
    scores, cutoff, relevance = problem.passed_scores(), problem.cutoff, problem.relevance
    width = float((1e6 * problem.rtol) ** 0.25)
    sigma, slope = float(np.ldexp(width, exponent)), float(np.ldexp(1 / width, -exponent))
    plain, steep = (0, 0), (0, -exponent)
    ulps, ulps_in_square = (each * np.abs(near).max() / width for each in (OF_ULPS, OF_ULPS_IN_SQUARE))
    got = plr_losses.pointwise(np.ldexp(problem.scores, exponent), np.ldexp(relevance, exponent), n_threads=1)
    yield "pointwise", got, loss_reference.pointwise(problem.scores, relevance, "squared"), (2 * exponent, exponent), 0
    for labels in (relevance, np.round(relevance)):
        got = plr_losses.list_mle(near, labels, cutoff=cutoff, n_threads=1)
        yield "list_mle", got, loss_reference.list_mle(near, labels, cutoff), plain, 0
        got = plr_losses.pairwise_logistic(scores, labels, slope=slope, n_threads=1)
        yield "pairwise_logistic", got, loss_reference.pairwise_logistic(near, labels, 1 / width), steep, ulps
    shares = np.abs(relevance)
    got = plr_losses.softmax_cross_entropy(near, np.ldexp(shares, of_relevance), n_threads=1)
    yield "softmax_cross_entropy", got, loss_reference.softmax_cross_entropy(near, shares), plain, 0
    chances = shares / shares.max()
    got = plr_losses.pointwise(near, chances, kind="logistic", n_threads=1)
    yield "pointwise logistic", got, loss_reference.pointwise(near, chances, "logistic"), plain, 0
    for grades in grades_of(problem):
        options = {"cutoff": cutoff, "n_threads": 1}
        for truncation in ("metric", "pairs"):
            got = plr_losses.lambda_rank(scores, grades, slope=slope, truncation=truncation, **options)
            best = loss_reference.lambda_loss(near, grades, cutoff, 1 / width, 0.0, truncation)
            yield f"lambda_rank, {truncation}", got, best, steep, ulps
        got = plr_losses.lambda_loss(scores, grades, slope=slope, mu=MU, **options)
        best = loss_reference.lambda_loss(near, grades, cutoff, 1 / width, MU)
        yield "lambda_loss", got, [part / loss_reference.LN_2 for part in best], steep, ulps
        got = plr_losses.approx_ndcg(scores, grades, temperature=sigma, n_threads=1)
        yield "approx_ndcg", got, loss_reference.approx_ndcg(near, grades, width), steep, ulps
        got = plr_losses.soft_rank(scores, grades, sigma=sigma, **options)
        yield "soft_rank", got, loss_reference.soft_rank(near, grades, cutoff, width), steep, ulps_in_square
