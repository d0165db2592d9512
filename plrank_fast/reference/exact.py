"""Expectations over all rankings of one query: by enumeration, over sets of items, and by the trapezoid rule."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast.reference.gradients import normal_cdf, normal_density
from plrank_fast.reference.metrics import average_precision
from plrank_fast.reference.rankings import all_rankings, ranking_log_prob, ranking_log_prob_gradient
from plrank_fast.validation import FloatArray

__all__ = [
    "average_precision_by_trapezoid",
    "exact_by_enumeration", "exact_by_subsets", "exact_by_trapezoid", "exact_gradient", "exact_hessian_diagonal",
    "exact_hvp_by_trapezoid", "exact_normal_by_trapezoid", "expectation", "expected_average_precision",
]  # fmt: skip


def exact_gradient(
    scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike, stop_probability: ArrayLike | None = None
) -> FloatArray:
    """Compute the gradient of the expected metric by `exact_by_subsets`."""
    return exact_by_subsets(scores, relevance, rank_weights, stop_probability)[1]


def exact_hessian_diagonal(
    scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike, stop_probability: ArrayLike | None = None
) -> FloatArray:
    """Compute the diagonal of the Hessian of the expected metric by `exact_by_subsets`."""
    return exact_by_subsets(scores, relevance, rank_weights, stop_probability)[2]


def chances_to_read_on(stop_probability: ArrayLike | None, n_items: int) -> FloatArray:
    """Return the probability that a reader goes on after each item: 1 if ``stop_probability`` is None."""
    return np.ones(n_items) if stop_probability is None else 1.0 - np.asarray(stop_probability)


def expectation(
    estimator: Callable[..., FloatArray], scores: FloatArray, relevance: FloatArray, rank_weights: FloatArray
) -> FloatArray:
    """Compute the expectation of ``estimator(scores, relevance, rank_weights, rankings=...)`` over all rankings."""
    rankings = all_rankings(scores.size)
    probabilities = np.exp(ranking_log_prob(scores, rankings))
    estimates = [estimator(scores, relevance, rank_weights, rankings=ranking[np.newaxis]) for ranking in rankings]
    return np.tensordot(probabilities, np.array(estimates), axes=1)


def expected_average_precision(scores: FloatArray, relevance: FloatArray, cutoff: int) -> tuple[float, FloatArray]:
    """Compute the expected average precision and its gradient from all rankings (D <= 7)."""
    rankings = all_rankings(scores.size)
    ranks = np.argsort(rankings, axis=1)
    metric = np.array([average_precision(-rank, relevance, cutoff) for rank in ranks])
    weighted = np.exp(ranking_log_prob(scores, rankings)) * metric
    return float(weighted.sum()), weighted @ ranking_log_prob_gradient(scores, rankings)


def exact_by_enumeration(
    scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike, stop_probability: ArrayLike | None = None
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """Compute value, gradient, Hessian diagonal and rank probabilities from an enumeration of rankings (D <= 7).

    The metric of a ranking y is sum_k theta_k rho_{y_k} prod_{i < k} (1 - stop_{y_i}).
    """
    scores = np.asarray(scores, float)
    relevance = np.asarray(relevance, float)
    n_items = len(scores)
    read_on = chances_to_read_on(stop_probability, n_items)
    rank_weights = np.asarray(rank_weights, float)[:n_items]
    cutoff = len(rank_weights)
    value, gradient, hessian = 0.0, np.zeros(n_items), np.zeros(n_items)
    probabilities = np.zeros((n_items, cutoff))
    for ranking in itertools.permutations(range(n_items), cutoff):
        left = np.ones(n_items, bool)
        log_prob, score, curvature = 0.0, np.zeros(n_items), np.zeros(n_items)
        for item in ranking:
            f = np.where(left, scores, -np.inf)
            top = f.max()
            share = np.exp(f - top)
            log_prob += scores[item] - top - np.log(share.sum())
            share /= share.sum()
            score -= share
            score[item] += 1
            curvature -= share * (1 - share)
            left[item] = False
        probability = np.exp(log_prob)
        reached = np.cumprod(np.append(1.0, read_on[list(ranking)]))[:-1]
        metric = rank_weights @ (relevance[list(ranking)] * reached)
        value += probability * metric
        gradient += probability * metric * score
        hessian += probability * metric * (score**2 + curvature)
        probabilities[list(ranking), range(cutoff)] += probability
    return value, gradient, hessian, probabilities


def exact_by_subsets(
    scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike, stop_probability: ArrayLike | None = None
) -> tuple[float, FloatArray, FloatArray]:
    """Compute value, gradient and Hessian diagonal in extended precision, from all sets of items (D <= 14).

    With the set A left over and k items placed, item j of A is next with probability pi_j = w_j / sum of w over A, so
    the expected rest of the metric, if a reader comes so far, is ::

        V(A) = sum_j pi_j c_j,   c_j = theta_{k+1} rho_j + (1 - stop_j) V(A without j)

    Its derivatives by one score follow from the derivatives of the sets that are smaller by one item. There is no
    integral and no difference of large numbers. O(2^D D^2).
    """
    scores = np.asarray(scores, np.longdouble)
    relevance = np.asarray(relevance, np.longdouble)
    n_items = len(scores)
    read_on = chances_to_read_on(stop_probability, n_items).astype(np.longdouble)
    theta = np.asarray(rank_weights, np.longdouble)[:n_items]
    weights, items = np.exp(scores - scores.max()), np.arange(n_items)
    placed = np.arange(2**n_items)  # bits say which items
    n_placed = (placed[:, np.newaxis] >> items & 1).sum(axis=1)
    left_over = np.zeros(1, np.longdouble)
    for j in range(n_items):
        left_over = np.concatenate([left_over, left_over + weights[j]])
    left_over = left_over[::-1]
    value = np.zeros(2**n_items, np.longdouble)
    gradient, hessian = np.zeros((2, 2**n_items, n_items), np.longdouble)
    for k in reversed(range(len(theta))):
        here = placed[n_placed == k]
        chance = np.where(here[:, np.newaxis] >> items & 1, 0, weights / left_over[here, np.newaxis])
        following = here[:, np.newaxis] | 1 << items
        choice = theta[k] * relevance + read_on * value[following]
        value[here] = (chance * choice).sum(axis=1)
        gain = chance * (choice - value[here, np.newaxis])
        reached = (chance * read_on)[:, :, np.newaxis]
        later = (reached * gradient[following]).sum(axis=1)
        gradient[here] = gain + later
        hessian[here] = (1 - chance) * gain - chance * (gradient[here] + later)
        hessian[here] += (reached * hessian[following]).sum(axis=1)
    return float(value[0]), gradient[0].astype(float), hessian[0].astype(float)


def _leave_one_out(
    density: FloatArray,
    p: FloatArray,
    q: FloatArray,
    read_on: FloatArray,
    relevance: FloatArray,
    rank_weights: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute Y_j, X_j and the value's integrand for all times at once, without dividing.

    ``density`` is the density of each item's arrival time: w q for exponential times. Prefix products of
    ``L_j(z) = q_j + s_j p_j z``, where s_j is the chance that a reader reads on after item j, and of ``B`` are formed
    going forward, their adjoints going backward.
    """
    p = read_on * p
    n_nodes, n_items = q.shape
    cutoff = len(rank_weights)
    P, B = np.zeros((2, n_items + 1, n_nodes, cutoff), q.dtype)
    P[0, :, 0] = 1.0
    for j in range(n_items):
        a = (relevance[j] * density[:, j])[:, None]
        P[j + 1] = q[:, j, None] * P[j]
        P[j + 1, :, 1:] += p[:, j, None] * P[j, :, :-1]
        B[j + 1] = q[:, j, None] * B[j] + a * P[j]
        B[j + 1, :, 1:] += p[:, j, None] * B[j, :, :-1]
    alpha = np.tile(rank_weights, (n_nodes, 1)).astype(q.dtype)
    beta = np.zeros_like(alpha)
    X, Y = np.empty((2, n_nodes, n_items), q.dtype)

    def moved(j: int, polynomial: FloatArray) -> FloatArray:
        """Multiply by s_j z - 1, the derivative of L_j by p_j."""
        product: FloatArray = -polynomial
        product[:, 1:] += read_on[j] * polynomial[:, :-1]
        return product

    def transposed(j: int, adjoint: FloatArray) -> FloatArray:
        result: FloatArray = q[:, j, None] * adjoint
        result[:, :-1] += p[:, j, None] * adjoint[:, 1:]
        return result

    for j in range(n_items - 1, -1, -1):
        a = (relevance[j] * density[:, j])[:, None]
        Y[:, j] = (alpha * P[j]).sum(1)
        X[:, j] = (alpha * moved(j, B[j])).sum(1) + (beta * moved(j, P[j])).sum(1)
        beta = transposed(j, beta) + a * alpha
        alpha = transposed(j, alpha)
    return Y, X, B[n_items] @ rank_weights


def _equidistant(first: float, last: float, step: float) -> FloatArray:
    """Return points from first to last, ``step`` apart to the last bit.

    ``np.arange(first, last, step)`` would take the rounded difference of its first two points for the step, here an
    error of up to 4e-14 of every integral.
    """
    points: FloatArray = first + step * np.arange(np.ceil((last - first) / step), dtype=np.float64)
    return points


def exact_by_trapezoid(
    scores: ArrayLike,
    relevance: ArrayLike,
    rank_weights: ArrayLike,
    step: float = 0.02,
    stop_probability: ArrayLike | None = None,
) -> tuple[float, FloatArray, FloatArray]:
    """Compute value, gradient and Hessian diagonal by the trapezoid rule in ln t, which converges exponentially.

    The scores may be complex, and then the results are, and ``stop_probability`` may be too.
    """
    scores = np.asarray(scores) * 1.0
    relevance = np.asarray(relevance, float)
    n_items = len(scores)
    rank_weights = np.asarray(rank_weights, float)[:n_items]
    read_on = chances_to_read_on(stop_probability, n_items)
    f = scores - scores.real.max()
    value = 0.0
    gradient, hessian = np.zeros((2, n_items), f.dtype)
    log_times = _equidistant(-np.log(np.exp(f.real).sum()) - 37.0, 4.0 - f.real.min(), step)
    for log_t in np.array_split(log_times, max(1, len(log_times) * n_items * len(rank_weights) // 2_000_000)):
        log_x = log_t[:, None] + f
        x = np.exp(np.where(log_x.real < 7.0, log_x, 7.0))  # w t; q is 0 beyond, where x**2 would overflow
        q = np.exp(-x)
        Y, X, integrand = _leave_one_out(x * q, 1.0 - q, q, read_on, relevance, rank_weights)
        value += step * integrand.sum()
        gradient += step * (x * q * (relevance * (1 - x) * Y + X)).sum(0)
        hessian += step * (x * q * (relevance * ((1 - x) ** 2 - x) * Y + (1 - x) * X)).sum(0)
    return value, gradient, hessian


def exact_hvp_by_trapezoid(
    scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike, vector: ArrayLike, step: float = 0.02
) -> FloatArray:
    """Compute the Hessian times a vector by an imaginary step along it, which loses no digits to a difference."""
    moved = np.asarray(scores) + 1e-30j * np.asarray(vector)
    product: FloatArray = exact_by_trapezoid(moved, relevance, rank_weights, step)[1].imag / 1e-30
    return product


def average_precision_by_trapezoid(
    scores: FloatArray, relevance: FloatArray, cutoff: int, step: float = 0.02
) -> tuple[float, FloatArray]:
    """Compute the expected average precision and its gradient by `exact_by_trapezoid`.

    A relevant document counts 1 for itself, and 1 for each relevant one before it: the derivative of the product of 1 +
    epsilon over these, which is the chance to read on past documents with ``stop_probability`` = -epsilon.
    """
    relevant = (relevance > 0) * 1.0
    rank_weights = 1.0 / np.arange(1.0, cutoff + 1.0) / max(1.0, relevant.sum())
    value, gradient, _ = exact_by_trapezoid(
        scores + 0j, relevant, rank_weights, step, stop_probability=-1e-30j * relevant
    )
    return float(value.real + value.imag / 1e-30), gradient.real + gradient.imag / 1e-30


def exact_normal_by_trapezoid(
    scores: ArrayLike,
    relevance: ArrayLike,
    rank_weights: ArrayLike,
    sigma: float = 1.0,
    step: float = 0.05,
    stop_probability: ArrayLike | None = None,
) -> tuple[float, FloatArray, FloatArray]:
    """Compute value, gradient and Hessian diagonal for normal noise, by the trapezoid rule in u. O(Q D K).

    Given that item j comes at u, the others are ahead of it with probabilities p = Phi((f - u) / sigma).
    """
    scores = np.asarray(scores, float) / sigma
    relevance = np.asarray(relevance, float)
    n_items = len(scores)
    read_on = chances_to_read_on(stop_probability, n_items)
    rank_weights = np.asarray(rank_weights, float)[:n_items]
    value = 0.0
    gradient, hessian = np.zeros(n_items), np.zeros(n_items)
    points = _equidistant(scores.min() - 9.0, scores.max() + 9.0, step)
    for u in np.array_split(points, max(1, len(points) * n_items * len(rank_weights) // 2_000_000)):
        y = u[:, None] - scores
        density = normal_density(y)
        Y, X, integrand = _leave_one_out(density, normal_cdf(-y), normal_cdf(y), read_on, relevance, rank_weights)
        value += step * float(integrand.sum())
        gradient += step * (density * (relevance * y * Y + X)).sum(axis=0)
        hessian += step * (density * (relevance * (y**2 - 1.0) * Y + y * X)).sum(axis=0)
    return value, gradient / sigma, hessian / sigma**2
