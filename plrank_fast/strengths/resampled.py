"""Refits to rankings that are drawn again, and ranks with intervals."""

from __future__ import annotations

import copy

import numpy as np
from numpy.typing import NDArray

from plrank_fast import validation
from plrank_fast._core.strengths import battles as core
from plrank_fast.strengths.model import Model
from plrank_fast.validation import FloatArray, IntArray

SETTLED = 1e-7  # largest move of a parameter in a next step
MOST_STEPS = 50
MANY_DRAWS = 20  # for each kind of ranking, beyond which multinomial numbers take less time
SAMPLES = 4_000  # of strengths, for the largest of many differences


def bootstrap(
    model: Model, parameters: FloatArray, n: int, rng: np.random.Generator, clusters: IntArray | None
) -> FloatArray:
    """Return n columns of parameters, NaN where no maximum was found.

    Steps start from the estimate and take the information there, so that one inverse serves all fits.
    """
    likelihood, inverse = model.likelihood, model.inverse_information(parameters)
    weights, size = likelihood.observed.counts, likelihood.counts.size + 1
    kinds = np.where(likelihood.kinds < 0, size - 1, likelihood.kinds)
    many, labels, judges = int(weights.sum()), kinds[:0], 0 if clusters is None else int(clusters.max()) + 1
    if clusters is None:
        validation.each(weights == np.floor(weights), weights, "weights", "be whole numbers, or have clusters drawn")
        each = np.bincount(kinds, weights, size)
        if many <= MANY_DRAWS * size:
            labels = np.repeat(kinds, weights.astype(np.int64)).astype(np.int32)
    fits = np.full((parameters.size, n), np.nan)
    for fit in range(n):
        if clusters is not None:
            drawn = np.bincount(rng.integers(0, judges, judges), minlength=judges)
            counts = np.bincount(kinds, weights * drawn[clusters], size)
        elif labels.size:
            counts = np.zeros(size, dtype=np.int64)
            core.drawn_again(labels, rng.integers(0, many, many, np.uint32), counts)
        else:
            counts = rng.multinomial(many, each / many)
        refit = copy.copy(model)
        refit.likelihood = likelihood.with_counts(counts[:-1].astype(float))
        fits[:, fit] = _refitted(refit, parameters, inverse)
    return fits


def _refitted(model: Model, start: FloatArray, inverse: FloatArray) -> FloatArray:
    """Return the parameters of largest likelihood, or NaN."""
    now, before = start, np.inf
    for step_number in range(MOST_STEPS):
        step = inverse @ model.value_and_gradient(now)[1]
        now, length = now + step, float(np.abs(step).max())
        if length < SETTLED or (step_number and length**2 < SETTLED * before):  # steps shrink by the same factor
            return now
        if length > before:
            break
        before = length
    try:
        return model.maximum(start)[0]
    except ValueError:  # without this ranking or that, a maximum is infinite
        return np.full_like(start, np.nan)


def ranks(
    strengths: FloatArray, covariance: FloatArray, above: NDArray[np.bool_], rule: str, reach: float, confidence: float,
    degrees: float, rng: np.random.Generator,
) -> IntArray:  # fmt: skip
    """Return the best and the worst rank of each item: how many others are ahead of it for certain, and behind it.

    ``above`` says which items are ahead whatever the strengths are; ``reach`` is that of one interval in errors.
    """
    n, variances = strengths.size, np.diag(covariance)
    errors = np.sqrt(np.maximum(variances + variances[:, np.newaxis] - 2.0 * covariance, 0.0))
    known = ~np.isnan(errors) & (np.eye(n) == 0.0)
    errors = np.where(known, errors, np.inf)
    limits = reach * np.add.outer(np.sqrt(variances), np.sqrt(variances))
    if rule != "overlap":
        values, vectors = np.linalg.eigh(np.nan_to_num(covariance))
        z = rng.standard_normal((SAMPLES, n)) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        if np.isfinite(degrees):
            z /= np.sqrt(rng.chisquare(degrees, SAMPLES) / degrees)[:, np.newaxis]
        largest = np.array([np.abs((z - z[:, [i]]) / errors[i]).max(axis=1) for i in range(n)])
        largest = largest if rule == "each" else largest.max(axis=0, keepdims=True)
        limits = np.quantile(largest, confidence, axis=1)[:, np.newaxis] * np.where(known, errors, 0.0)
    limits = np.where(known, limits, np.inf)
    gaps = strengths - strengths[:, np.newaxis]
    ahead, behind = (gaps > limits) | above.T, (-gaps > limits) | above
    return np.column_stack([1 + ahead.sum(axis=1), n - behind.sum(axis=1)])
