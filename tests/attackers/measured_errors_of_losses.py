"""Error over bound of the losses.

A value, and the derivative by each score, err by at most 1e-12 of the sum of their own absolute terms, at any distance
of the scores, any magnitude of scores and scale together, and any labels. Scores over their scale are rounded before
they are subtracted: a term may err, besides, as much as an ulp of each of the two makes of it.
"""

from __future__ import annotations

import dataclasses

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
    """Every loss. The tolerance, for which losses have no use, says how steep they are."""
    of_relevance, _, exponent = problem.exponents
    near = dataclasses.replace(problem, exponents=(0, 0, 0)).passed_scores()
    scores, cutoff, options = problem.passed_scores(), problem.cutoff, {"n_threads": 1}
    width = float((1e6 * problem.rtol) ** 0.25)
    sigma, slope = float(np.ldexp(width, exponent)), float(np.ldexp(1 / width, -exponent))
    ratios: Ratios = {}

    def hold(
        name: str,
        got: tuple[np.ndarray, np.ndarray],
        best: loss_reference.Loss,
        of_value: int = 0,
        of_gradient: int = 0,
        of_ulps: float = 0.0,
    ) -> None:
        condition = 1 + of_ulps * np.abs(near).max() / width
        for part, result, terms, power in zip(
            (name, f"{name}'s gradient"), got, best, (of_value, of_gradient), strict=True
        ):
            held = of_terms(result, Terms(terms.total, condition * terms.absolute), power)
            ratios[part] = max(ratios.get(part, 0.0), held)

    plain = problem.scores, problem.relevance
    powers = [np.ldexp(part, exponent) for part in plain]
    hold("pointwise", plr_losses.pointwise(*powers, **options), loss_reference.pointwise(*plain, "squared"),
         2 * exponent, exponent)  # fmt: skip
    for labels in (problem.relevance, np.round(problem.relevance)):
        hold("list_mle", plr_losses.list_mle(near, labels, cutoff=cutoff, **options),
             loss_reference.list_mle(near, labels, cutoff))  # fmt: skip
        hold("pairwise_logistic", plr_losses.pairwise_logistic(scores, labels, slope=slope, **options),
             loss_reference.pairwise_logistic(near, labels, 1 / width), 0, -exponent, OF_ULPS)  # fmt: skip
    shares = np.abs(problem.relevance)
    hold("softmax_cross_entropy",
         plr_losses.softmax_cross_entropy(near, np.ldexp(shares, of_relevance), **options),
         loss_reference.softmax_cross_entropy(near, shares))  # fmt: skip
    chances = shares / shares.max()
    hold("pointwise logistic", plr_losses.pointwise(near, chances, kind="logistic", **options),
         loss_reference.pointwise(near, chances, "logistic"))  # fmt: skip
    for grades in grades_of(problem):
        for truncation in ("metric", "pairs"):
            got = plr_losses.lambda_rank(
                scores, grades, cutoff=cutoff, slope=slope, truncation=truncation, **options
            )  # fmt: skip
            best = loss_reference.lambda_loss(near, grades, cutoff, 1 / width, 0.0, truncation)
            hold(f"lambda_rank, {truncation}", got, best, 0, -exponent, OF_ULPS)
        got = plr_losses.lambda_loss(scores, grades, cutoff=cutoff, slope=slope, mu=MU, **options)
        value, gradient = loss_reference.lambda_loss(near, grades, cutoff, 1 / width, MU)
        hold("lambda_loss", got, (value / loss_reference.LN_2, gradient / loss_reference.LN_2), 0, -exponent, OF_ULPS)
        hold("approx_ndcg", plr_losses.approx_ndcg(scores, grades, temperature=sigma, **options),
             loss_reference.approx_ndcg(near, grades, width), 0, -exponent, OF_ULPS)  # fmt: skip
        hold("soft_rank", plr_losses.soft_rank(scores, grades, cutoff=cutoff, sigma=sigma, **options),
             loss_reference.soft_rank(near, grades, cutoff, width), 0, -exponent, OF_ULPS_IN_SQUARE)  # fmt: skip
    return ratios
