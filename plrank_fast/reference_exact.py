"""Readable NumPy twins of the exact quantities: written from the formulas, with far more nodes than needed."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast.validation import FloatArray


def _leave_one_out(
    w: FloatArray, q: FloatArray, relevance: FloatArray, rank_weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Y_j and X_j (see ``pl_rank_exact``) and the value's integrand, for all times at once, without dividing.

    Prefix products of ``L_j(z) = q_j + p_j z`` and of ``B`` going forward; their adjoints going backward.
    """
    n_nodes, n_items = q.shape
    cutoff = len(rank_weights)
    p = 1.0 - q
    P = np.zeros((n_items + 1, n_nodes, cutoff))
    B = np.zeros((n_items + 1, n_nodes, cutoff))
    P[0, :, 0] = 1.0
    for j in range(n_items):
        a = (relevance[j] * w[j] * q[:, j])[:, None]
        P[j + 1] = q[:, j, None] * P[j]
        P[j + 1, :, 1:] += p[:, j, None] * P[j, :, :-1]
        B[j + 1] = q[:, j, None] * B[j] + a * P[j]
        B[j + 1, :, 1:] += p[:, j, None] * B[j, :, :-1]
    alpha = np.tile(rank_weights, (n_nodes, 1))
    beta = np.zeros_like(alpha)
    X = np.empty((n_nodes, n_items))
    Y = np.empty((n_nodes, n_items))

    def minus_one(polynomial: FloatArray) -> FloatArray:
        shifted: FloatArray = -polynomial
        shifted[:, 1:] += polynomial[:, :-1]
        return shifted

    def transposed(j: int, adjoint: FloatArray) -> FloatArray:
        result: FloatArray = q[:, j, None] * adjoint
        result[:, :-1] += p[:, j, None] * adjoint[:, 1:]
        return result

    for j in range(n_items - 1, -1, -1):
        a = (relevance[j] * w[j] * q[:, j])[:, None]
        Y[:, j] = (alpha * P[j]).sum(1)
        X[:, j] = (alpha * minus_one(B[j])).sum(1) + (beta * minus_one(P[j])).sum(1)
        beta = transposed(j, beta) + a * alpha
        alpha = transposed(j, alpha)
    return Y, X, B[n_items] @ rank_weights


def exact_by_trapezoid(
    scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike, step: float = 0.02
) -> tuple[float, FloatArray, FloatArray]:
    """Value, gradient and Hessian diagonal of one query by the trapezoid rule in ln t (exponentially convergent)."""
    scores = np.asarray(scores, float)
    relevance = np.asarray(relevance, float)
    n_items = len(scores)
    rank_weights = np.asarray(rank_weights, float)[:n_items]
    f = scores - scores.max()
    w = np.exp(f)
    value = 0.0
    gradient, hessian = np.zeros(n_items), np.zeros(n_items)
    times = np.exp(np.arange(-np.log(w.sum()) - 37.0, 4.0 - f.min(), step))
    for t in np.array_split(times, max(1, len(times) * n_items * len(rank_weights) // 2_000_000)):
        x = t[:, None] * w
        q = np.exp(-x)
        Y, X, integrand = _leave_one_out(w, q, relevance, rank_weights)
        dt = t * step
        value += float(dt @ integrand)
        gradient += dt @ (w * q * (relevance * (1 - x) * Y + t[:, None] * X))
        hessian += dt @ (w * q * (relevance * ((1 - x) ** 2 - x) * Y + t[:, None] * (1 - x) * X))
    return value, gradient, hessian


def exact_by_enumeration(
    scores: ArrayLike, relevance: ArrayLike, rank_weights: ArrayLike
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """Value, gradient, Hessian diagonal and rank probabilities of one query by enumerating all rankings (D <= 7)."""
    scores = np.asarray(scores, float)
    relevance = np.asarray(relevance, float)
    n_items = len(scores)
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
        metric = rank_weights @ relevance[list(ranking)]
        value += probability * metric
        gradient += probability * metric * score
        hessian += probability * metric * (score**2 + curvature)
        probabilities[list(ranking), range(cutoff)] += probability
    return value, gradient, hessian, probabilities
