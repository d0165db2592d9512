"""Probabilities with which a logging policy shows rankings."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plrank_fast import validation
from plrank_fast.off_policy.log import Log, read_log, scores_of_logging_policy
from plrank_fast.sampling import ranking_log_prob
from plrank_fast.validation import FloatArray

SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)


@validation.hinted
def ranking_propensities(
    logging_scores: ArrayLike,
    rankings: ArrayLike,
    *,
    ordered: bool = True,
    offsets: ArrayLike | None = None,
    n_threads: int | None = None,
) -> FloatArray:
    """Compute the probability with which a logging policy shows rankings: exp of ``ranking_log_prob``.

    Parameters
    ----------
    logging_scores : array_like, shape (n_docs,)
        Log-weights of the Plackett-Luce policy that made the log.
    rankings : array_like of int, shape (n_rankings, K), or (n_queries, n_rankings, K) with ``offsets``
        Indices of items within their query, best first; a ranking may end early, with -1 after its last item.
    ordered : bool
        False: the probability that the items of each ranking come first, in any order (see ``bucket_log_prob``).
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    ndarray, shape (n_rankings,), or (n_queries, n_rankings) with ``offsets``
        The probability of a long ranking may underflow: pass ``logging_scores`` to the estimators instead.

    Notes
    -----
    The cost is O(D + K log K) per query and O(K) per ranking; a set costs O(D log D).

    Examples
    --------
    >>> from plrank_fast import off_policy
    >>> off_policy.ranking_propensities([0.0, 0.0, 0.0], [[2, 0]]).round(4)
    array([0.1667])
    """
    validation.real_array(logging_scores, "logging_scores")
    if not validation.flag(ordered, "ordered"):
        log = read_log(logging_scores, rankings, offsets, n_threads, ordered)
        chances = np.exp(log.log_prob(log.scores))
        return chances[0] if offsets is None else chances
    return np.exp(ranking_log_prob(logging_scores, rankings, offsets=offsets, n_threads=n_threads))


def log_propensities(log: Log, propensities: ArrayLike | None, logging_scores: ArrayLike | None) -> FloatArray:
    """Return the log-probability with which each row was shown, 0 where there is no session."""
    name, given = validation.only_one({"propensities": propensities, "logging_scores": logging_scores})
    if name == "logging_scores":
        return validation.representable(log.log_prob(scores_of_logging_policy(log, given)), name)
    return np.log(given_propensities(log, given, log.shown))


def given_propensities(
    log: Log, propensities: ArrayLike, present: NDArray[np.bool_], lowest: float = SMALLEST_NORMAL
) -> FloatArray:
    """Return the probabilities of rankings, or of their ranks, that the log holds; 1 where none is ``present``.

    By default they may be small, as for long rankings: their logarithms are as accurate as any.
    """
    name = "propensities"
    array = validation.like_rankings(propensities, name, present.shape, log.batch, may_be_small=True)
    return validation.chances(np.where(present, array, 1.0), name, lowest)


def importance_weights(
    log_ratio: FloatArray, present: NDArray[np.bool_], clip: float | None, self_normalized: bool, name: str
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_] | None]:
    """Return importance weights, (n_queries, n_rows, n_terms), the ones to sum, and which are clipped, None for none.

    The weights to sum are in units of the term's largest one if they are ``self_normalized``: the unit cancels. They
    are their own derivatives by the new policy's log-probability, unless they are clipped. ``name`` is the argument
    that holds the probabilities of the log.
    """
    bound = validation.LARGEST_MAGNITUDE if clip is None else validation.factor(clip, "clip")
    largest, limit = log_ratio.max(initial=-np.inf), float(np.log(bound))
    must = f"{name} must not make a ranking of the log e**{limit:.0f} times less probable than scores do"
    fits = clip is not None or largest <= limit
    validation.require(fits, f"{must}, got e**{largest:g} times: bound the weights with clip")
    clipped, log_weights = None, log_ratio
    if largest >= limit:
        clipped, log_weights = log_ratio >= limit, np.minimum(log_ratio, limit)
    weights = np.exp(log_weights)
    if clipped is not None:
        weights[clipped] = bound
    summed = weights
    if self_normalized:
        log_weights = np.where(present, log_weights, -np.inf)
        units = log_weights.max(axis=(0, 1))
        summed = np.exp(log_weights - np.where(units > -np.inf, units, 0.0))
    return weights, summed, clipped


def slopes_of(summed: FloatArray, clipped: NDArray[np.bool_] | None) -> FloatArray:
    """Return the derivatives of weights by the new policy's log-probability."""
    return summed if clipped is None else np.where(clipped, 0.0, summed)
