"""Fairness of exposure: the distance of expected exposure from proportionality to merit, and its gradient.

The exposure of document d is E_d = sum_k theta_k P(rank of d = k), where theta_k is the attention that rank k gets. It
is proportional to merit m if E_i / m_i is the same for all documents of a query. Without divisions, which documents
without merit would break, this is E_i m_j - E_j m_i = 0 for each ordered pair. The disparity of a query of D documents
is the mean over its pairs of the squares, or of the absolute values, of these differences:

==============  =====================================================
``"squared"``   1 / (D (D - 1)) sum_{i != j} (E_i m_j - E_j m_i)^2
``"absolute"``  1 / (D (D - 1)) sum_{i != j} abs(E_i m_j - E_j m_i)
==============  =====================================================

(The published evaluation of the SIGIR 2021 paper has these two labels swapped.) The disparity depends on the policy
through the exposures alone. So its gradient by the scores is the gradient of an expected metric whose relevance of
document d is the derivative of the disparity by E_d (the reward trick of that paper). Any gradient estimator of this
library computes it, and ``pl_rank_exact`` through the exact Jacobian of the exposures.

Source: Oosterhuis, "Computationally Efficient Optimization of Plackett-Luce Ranking Models for Relevance and Fairness",
SIGIR 2021, section 6.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import _estimates, probabilities, validation
from plrank_fast._core.gradients.exposure import EXPOSURE as _EXPOSURE
from plrank_fast._methods import registry
from plrank_fast.validation import FloatArray, IntArray, RandomState

__all__ = ["disparity", "disparity_gradient"]


def __dir__() -> list[str]:
    return __all__


def disparity(
    exposure: ArrayLike, merit: ArrayLike, *, offsets: ArrayLike | None = None, kind: validation.Disparity = "squared"
) -> tuple[FloatArray, FloatArray]:
    """Compute the disparity of exposure of each query, and its derivative by each exposure.

    Parameters
    ----------
    exposure : array_like, shape (n_docs,)
        Exposure of each document, such as ``plrank_fast.exposure`` gives.
    merit : array_like, shape (n_docs,)
        Merit of each document, to which its exposure should be proportional, for instance its relevance; not negative.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    kind : {"squared", "absolute"}
        Mean over pairs of the square, or of the absolute value, of E_i m_j - E_j m_i.

    Returns
    -------
    values : ndarray, shape (n_queries,), float64
        0 for a query of fewer than two documents.
    derivative : ndarray, shape (n_docs,), float64
        Derivative of the sum of the values by each exposure; with "absolute", pairs that are exactly proportional
        contribute 0.

    Notes
    -----
    "squared" is 2 sum m^2 sum (E - b m)^2 / (D (D - 1)) with b = sum E m / sum m^2, which takes O(D). "absolute" sorts
    by E / m, which takes O(D log D).

    Examples
    --------
    >>> from plrank_fast import fairness
    >>> fairness.disparity([1.0, 0.5], [1.0, 1.0])
    (array([0.25]), array([ 1., -1.]))
    >>> fairness.disparity([1.0, 0.5], [2.0, 1.0])
    (array([0.]), array([0., 0.]))
    """
    exposure_ = validation.real_array(exposure, "exposure")
    merit_ = validation.one_entry_each(validation.real_array(merit, "merit"), "merit", exposure_.size, "exposures")
    validation.within(merit_, "merit", 0.0, np.inf)
    offsets_ = validation.query_offsets(offsets, exposure_.size)
    validation.choice(kind, "kind", validation.Disparity)
    validation.within_limits(exposure_, "exposure", offsets_)
    validation.within_limits(merit_, "merit", offsets_)
    return (_squared if kind == "squared" else _absolute)(exposure_, merit_, offsets_)


def disparity_gradient(
    scores: ArrayLike,
    merit: ArrayLike,
    rank_weights: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    kind: validation.Disparity = "squared",
    method: validation.Method = "exact",
    n_samples: int = 100,
    rng: RandomState = None,
    n_threads: int | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Compute the disparity of expected exposure of each query, and its gradient with respect to the scores.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights of the documents, all queries one after another; any finite values at any distance.
    merit : array_like, shape (n_docs,)
        Merit of each document, to which its exposure should be proportional, for instance its relevance; not negative.
    rank_weights : array_like, shape (K,) or (n_queries, K)
        Weight theta of each rank (see ``dcg_weights``), one vector for all queries or one row for each. Ranks past the
        end of a query do not count.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    kind : {"squared", "absolute"}
        Mean over pairs of the square, or of the absolute value, of E_i m_j - E_j m_i.
    method : str
        Gradient estimator, by any name that ``value_and_gradient`` takes. "exact" uses exact exposures. The
        others estimate the exposures from rankings of their own, so that the gradient of the "squared" disparity is
        unbiased. The value of a sampled disparity is biased upwards.
    n_samples : int
        Rankings drawn for the exposures of each query, and again for the gradient.
    rng : None, int, SeedSequence, BitGenerator or Generator
        Source of the random numbers. The same key gives the same bits for any number of threads; a generator is
        advanced by one draw, and None is fresh entropy.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    values : ndarray, shape (n_queries,), float64
        Disparity of each query.
    gradient : ndarray, shape (n_docs,), float64
        Derivative of the sum of the values by each score, to be descended.

    Notes
    -----
    The cost is one gradient and one ``exposure``: O(Q D K) with Q nodes if both are exact.

    Examples
    --------
    >>> from plrank_fast import fairness
    >>> values, gradient = fairness.disparity_gradient([1.0, 0.0], [1.0, 1.0], [1.0, 0.5])
    >>> bool(gradient[0] > 0 > gradient[1])
    True
    """
    validation.choice(method, "method", validation.Method)
    validation.choice(kind, "kind", validation.Disparity)
    scores_ = validation.real_array(scores, "scores")
    offsets_ = validation.query_offsets(offsets, scores_.size)
    merit_ = validation.of_documents(merit, "merit", scores_, offsets_)
    validation.within(merit_, "merit", 0.0, np.inf)
    n_samples = validation.count(n_samples, "n_samples", 1)
    weights = validation.weights_of_ranks(rank_weights, offsets_)
    validation.threads(n_threads)
    shared: Any = weights[0] if weights.shape[0] == 1 else weights
    method = registry.resolve_method(method, offsets_, weights.shape[1])
    batch: dict[str, Any] = {"offsets": offsets_, "n_threads": n_threads}
    if method == registry.EXACT:
        exposure = probabilities.exposure(scores_, shared, **batch)
    else:
        key = validation.DrawnKey(rng)
        of_exposure, of_gradient = (
            validation.DrawnKey(seed, key.first_query) for seed in validation.seed_sequence(key).spawn(2)
        )
        exposure = _estimates.sampled(
            _EXPOSURE, scores_, validation.ABSENT, shared, offsets_, n_samples, None, of_exposure, "auto", n_threads,
            None,
        )  # fmt: skip
        batch |= {"n_samples": n_samples, "rng": of_gradient}
    values, reward = (_squared if kind == "squared" else _absolute)(exposure, merit_, offsets_)
    estimator = registry.ESTIMATORS[method].function
    return values, validation.homogeneous(lambda reward: estimator(scores_, reward, shared, **batch), reward, offsets_)


def _squared(exposure: FloatArray, merit: FloatArray, offsets: IntArray) -> tuple[FloatArray, FloatArray]:
    """Compute the mean over pairs of (E_i m_j - E_j m_i)^2, from the part of E that is orthogonal to m."""
    lengths = np.diff(offsets)
    query = np.repeat(np.arange(lengths.size), lengths)
    pairs = np.maximum(lengths * (lengths - 1.0), 1.0)

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(query, values, minlength=lengths.size).astype(np.float64)

    merit_squared = total(merit**2)
    along = np.divide(total(exposure * merit), merit_squared, out=np.zeros(lengths.size), where=merit_squared > 0.0)
    rest = exposure - along[query] * merit
    rest[lengths[query] < 2] = 0.0  # one document is in proportion, and rounding must not say otherwise
    values = 2.0 * merit_squared * total(rest**2) / pairs
    return values, 4.0 * (merit_squared / pairs)[query] * rest


def _absolute(exposure: FloatArray, merit: FloatArray, offsets: IntArray) -> tuple[FloatArray, FloatArray]:
    """Compute the mean over pairs of |E_i m_j - E_j m_i|: the sign of a pair is the order of E / m.

    Queries of the same length are rows of one array, and each is summed alone, so that batches give the same bits.
    """
    values, derivative = np.zeros(offsets.size - 1), np.zeros(exposure.size)
    lengths = np.diff(offsets)
    for n_docs in np.unique(lengths[lengths > 1]).tolist():
        queries = np.flatnonzero(lengths == n_docs)
        documents = offsets[queries, np.newaxis] + np.arange(n_docs)
        order = np.argsort(_ratio(exposure[documents], merit[documents]), axis=1, kind="stable")
        documents = np.take_along_axis(documents, order, axis=1)
        e, m = exposure[documents], merit[documents]
        ratio = _ratio(e, m)
        mass = np.concatenate([np.zeros((queries.size, 1)), np.cumsum(m, axis=1)], axis=1)
        # Find where each run of equal ratios begins, and where the next one does.
        changes = ratio[:, 1:] != ratio[:, :-1]
        position = np.arange(1, n_docs)
        begin, end = np.zeros(ratio.shape, dtype=np.intp), np.full(ratio.shape, n_docs)
        begin[:, 1:] = np.maximum.accumulate(np.where(changes, position, 0), axis=1)
        end[:, :-1] = np.minimum.accumulate(np.where(changes, position, n_docs)[:, ::-1], axis=1)[:, ::-1]
        below = np.take_along_axis(mass, begin, axis=1)
        above = mass[:, -1:] - np.take_along_axis(mass, end, axis=1)
        slope = np.where((e == 0.0) & (m == 0.0), 0.0, below - above) * 2.0 / (n_docs * (n_docs - 1))
        derivative[documents] = slope
        values[queries] = (e * slope).sum(axis=1)  # homogeneous of degree 1
    return values, derivative


def _ratio(exposure: FloatArray, merit: FloatArray) -> FloatArray:
    """Return exposure over merit: infinite without merit, 0 without either. Angles would not resolve small merits."""
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        return np.divide(exposure, merit, out=np.zeros(exposure.shape), where=(exposure != 0.0) | (merit != 0.0))
