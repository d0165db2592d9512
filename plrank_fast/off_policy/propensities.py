"""With what probability a logging policy shows documents and rankings."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast.off_policy.log import Log, scores_of_logging_policy
from plrank_fast.probabilities import exposure
from plrank_fast.sampling import ranking_log_prob
from plrank_fast.validation import FloatArray


def item_propensities(
    logging_scores: ArrayLike,
    examination: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    n_threads: int | None = None,
) -> FloatArray:
    """Compute the probability that each document is looked at in a session of the logging policy: its exact exposure.

    Parameters
    ----------
    logging_scores : array_like, shape (n_docs,)
        Log-weights of the policy that made the log.
    examination : array_like, shape (K,) or (n_queries, K)
        Probability that a user looks at each rank, such as ``position_bias(K)``.
    offsets, n_threads
        As in ``exposure``, of which this is another name.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        sum_k examination_k P(rank of d = k), without sampling.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    O(Q D K) with Q nodes, as ``exposure``.

    Examples
    --------
    >>> from plrank_fast import off_policy
    >>> off_policy.item_propensities([0.0, 0.0], [1.0, 0.5])
    array([0.75, 0.75])
    """
    validation.real_array(logging_scores, "logging_scores")
    bias = validation.real_array(examination, "examination", ndim=(1, 2))
    return exposure(logging_scores, bias, offsets=offsets, n_threads=n_threads)


def ranking_propensities(
    logging_scores: ArrayLike,
    rankings: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    n_threads: int | None = None,
) -> FloatArray:
    """Compute the probability with which a logging policy shows rankings: exp of ``ranking_log_prob``.

    Parameters
    ----------
    logging_scores : array_like, shape (n_docs,)
        Log-weights of the policy that made the log.
    rankings, offsets, n_threads
        As in ``ranking_log_prob``.

    Returns
    -------
    ndarray, shape (n_rankings,), or (n_queries, n_rankings) with ``offsets``
        The probability of a long ranking may underflow: pass ``logging_scores`` to the estimators instead.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    O(D + K log K) per query and O(K) per ranking, as ``ranking_log_prob``.

    Examples
    --------
    >>> from plrank_fast import off_policy
    >>> off_policy.ranking_propensities([0.0, 0.0, 0.0], [[2, 0]]).round(4)
    array([0.1667])
    """
    validation.real_array(logging_scores, "logging_scores")
    return np.exp(ranking_log_prob(logging_scores, rankings, offsets=offsets, n_threads=n_threads))


def log_propensities(log: Log, propensities: ArrayLike | None, logging_scores: ArrayLike | None) -> FloatArray:
    """Log-probability with which each row was shown, 0 where there is no session."""
    validation.only_one({"propensities": propensities, "logging_scores": logging_scores})
    if logging_scores is not None:
        return log.log_prob(scores_of_logging_policy(log, logging_scores))
    given = log.of_rows(validation.instead_of(propensities, "propensities", "logging_scores"), "propensities")
    return np.log(validation.chances(np.where(log.shown, given, 1.0), "propensities"))


def importance_weights(log_ratio: FloatArray, clip: float | None) -> tuple[FloatArray, FloatArray]:
    """Importance weights, and their derivative by the log of the new policy's probability: 0 where they are clipped."""
    with np.errstate(over="ignore"):
        weights = np.exp(log_ratio)
    if clip is None:
        validation.representable(weights.reshape(-1), "propensities")
        return weights, weights
    bound = validation.positive_real(clip, "clip")
    return np.minimum(weights, bound), np.where(weights < bound, weights, 0.0)
