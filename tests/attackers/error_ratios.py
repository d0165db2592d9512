"""Errors over what is promised of them: above 1 the promise is broken."""

from __future__ import annotations

import numpy as np

from adversarial_problem import Problem
from terms import Terms

Ratios = dict[str, float]
OF_TERMS = 1e-12  # error of what is computed from given rankings or labels, of its absolute terms
OF_SUMS = 1e-8  # error of rank probabilities and their sums
LEAST = 1e-290  # below it a double has fewer digits
LEAST_OF_SUMS = 1e-200  # error of sums that items share, of max |theta| max |rho|


def ratio(error: float, promise: float) -> float:
    """Error over promise; what is not a number breaks it."""
    return float(error / promise) if error < np.inf else np.inf


def of_norm(got: np.ndarray, best: np.ndarray, problem: Problem) -> float:
    """``pl_rank_exact``: rtol times the larger of the norm and max |theta| max |rho| / 1000."""
    scale = np.abs(problem.rank_weights[: problem.n_docs]).max() * np.abs(problem.relevance).max()
    return ratio(np.linalg.norm(got - best), problem.rtol * max(np.linalg.norm(best), 1e-3 * scale))


def of_terms(got: np.ndarray, best: Terms, exponent: int = 0) -> float:
    """Largest error of an item, over 1e-12 of the sum of its own absolute terms; ``exponent`` is of what was got.

    What was got is a double: where its exponent is negative, the least that it can tell is larger beside the best.
    """
    error = np.abs(np.ldexp(np.asarray(got).astype(np.longdouble), -exponent) - best.total)
    least = np.ldexp(np.longdouble(LEAST), max(0, -exponent))
    return ratio(float((error / (OF_TERMS * best.absolute + least)).max()), 1.0)
