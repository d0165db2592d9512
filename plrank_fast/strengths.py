"""Strengths of items from observed rankings, with or without ties: maximum likelihood under Plackett-Luce."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plrank_fast import validation
from plrank_fast.bucket_order import negative_log_likelihood
from plrank_fast.validation import FloatArray, IntArray

STEP = 1e-3  # of the differences of gradients
MOST_STEPS = 1000
NEAR, CONVERGED = 1e-6, 1e-10  # squares of the length of a step in standard errors


class FittedStrengths(NamedTuple):
    """Strengths of items, whose mean is 0, and how well the rankings determine them.

    Attributes
    ----------
    strengths : ndarray, shape (n_items,), float64
        The scores, or log-weights, of the items.
    standard_errors : ndarray, shape (n_items,), float64
        Square roots of the diagonal of ``covariance``.
    covariance : ndarray, shape (n_items, n_items), float64
        Inverse of the observed information, for strengths whose mean is 0. The variance of the difference of items i
        and j is ``covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]``.
    """

    strengths: FloatArray
    standard_errors: FloatArray
    covariance: FloatArray


def fit_strengths(
    items: ArrayLike, buckets: ArrayLike, offsets: ArrayLike, *, ridge: float = 0.0, n_threads: int | None = None
) -> FittedStrengths:
    """Fit strengths of items to rankings of some or all of them, in which items may be tied.

    Parameters
    ----------
    items : array_like of int, shape (n_entries,)
        The items, from 0, that each ranking compares, all rankings one after another.
    buckets : array_like of int, shape (n_entries,)
        Place of each item in its ranking, up to 2**53 in magnitude. Items of a smaller number come first, and the order
        of those with the same number is unknown. A ranking of the best K of many items has the others in its last
        bucket.
    offsets : array_like of int, shape (n_rankings + 1,)
        Where each ranking starts.
    ridge : float
        Penalty of half the sum of squared strengths, for rankings that do not connect all items; at least 0.
    n_threads : int, optional
        None or -1: all available processors; -2: all but one.

    Returns
    -------
    FittedStrengths
        (strengths, standard_errors, covariance)

    Raises
    ------
    ValueError
        If the rankings do not connect the items, so that the most likely strengths are infinite, and ``ridge`` is 0.

    Notes
    -----
    The sum of ``bucket_log_prob`` over the rankings is concave, with and without ties. BFGS maximises it, and starts
    with the exact Hessian. A Hessian takes a difference of two gradients for each place in the longest ranking, and
    O(n_items^3) for its inverse; standard errors have a relative error of about 1e-6.

    Without ties the estimates are those of Plackett and Luce, and with two items of Bradley and Terry. With ties they
    are those of a rank-ordered logit with the exact marginal likelihood of ties (``exactm`` in Stata), and of Cox's
    model with a stratum for each ranking and TIES=EXACT in SAS. Other models of ties, which give ties a probability of
    their own, have other estimates: those of Davidson and Luce in R's PlackettLuce, TIES=DISCRETE in SAS, and "exact"
    in R's survival. R's PlackettLuce also adds pseudo-rankings, unless ``npseudo=0``, and reports strengths relative to
    the first item.

    Examples
    --------
    Three rankings in the convention of R's package PlackettLuce, with a column for each item, 0 for items that are not
    ranked, and equal numbers for ties:

    >>> import numpy as np, plrank_fast as plr
    >>> ranks = np.array([[1, 2, 3], [2, 1, 2], [0, 2, 1]])
    >>> rows, items = np.nonzero(ranks)
    >>> fit = plr.fit_strengths(items, ranks[rows, items], plr.offsets_from_qid(rows))
    >>> fit.strengths.round(2), fit.standard_errors.round(2)
    (array([ 0.5,  0.1, -0.6]), array([0.95, 0.72, 0.83]))
    """
    entries = validation.integer_array(items, "items")
    limits = validation.query_offsets(offsets, entries.size)
    validation.count(entries.size, "the number of items", 1)
    validation.each(entries >= 0, entries, "items", "be at least 0")
    given = validation.one_entry_each(validation.real_array(buckets, "buckets"), "buckets", entries.size, "items")
    places = validation.whole_numbers(given, "buckets")
    ridge = validation.real(ridge, "ridge", at_least=0.0)
    n_items, ranking = int(entries.max()) + 1, np.repeat(np.arange(limits.size - 1), np.diff(limits))
    distinct = np.zeros(entries.size, dtype=bool)
    distinct[np.unique(ranking * n_items + entries, return_index=True)[1]] = True
    validation.each(distinct, entries, "items", "be distinct within a ranking")
    if ridge == 0.0:
        for order, sign in (("after", 1), ("before", -1)):
            reached = _reached(entries, sign * places, ranking)
            problem = f"item {int(np.argmin(reached))} never comes {order} item 0, be it through others"
            validation.require(reached.all(), f"the rankings must connect all items, but {problem}: pass a ridge")

    def of_entries(scores: FloatArray) -> tuple[float, FloatArray]:
        values, gradient = negative_log_likelihood(scores, places, limits, n_threads, 1)
        return -float(values.sum()), -gradient

    def of_items(strengths: FloatArray) -> tuple[float, FloatArray]:
        value, slopes = of_entries(strengths[entries])
        gradient = np.bincount(entries, slopes, n_items) - ridge * strengths
        return value - 0.5 * ridge * float(strengths @ strengths), gradient

    def covariance(strengths: FloatArray) -> FloatArray:
        """Invert the information: a difference of gradients for each place in the longest ranking."""
        information = ridge * np.eye(n_items)
        place = np.arange(entries.size) - limits[ranking]
        for moved in (place == k for k in range(int(place.max()) + 1)):
            change = of_entries(strengths[entries] + STEP * moved)[1] - of_entries(strengths[entries] - STEP * moved)[1]
            column = np.zeros(limits.size - 1, dtype=np.int64)
            column[ranking[moved]] = entries[moved]
            flat = np.bincount(entries * n_items + column[ranking], change, n_items**2) / (2.0 * STEP)
            information -= flat.reshape(n_items, n_items)
        # The likelihood does not change if all strengths move by the same amount.
        inverse = np.linalg.inv(information + 1.0 / n_items)
        return np.asarray(inverse - 1.0 / (1.0 + ridge) / n_items, dtype=np.float64)

    strengths = np.zeros(n_items)
    value, gradient = of_items(strengths)
    inverse = covariance(strengths)
    for _ in range(MOST_STEPS):
        step = inverse @ gradient
        rise = float(gradient @ step)
        if rise < CONVERGED:
            break
        while (new := of_items(strengths + step))[0] < value + 0.25 * rise and rise > NEAR:
            step, rise = 0.5 * step, 0.5 * rise
        change = gradient - new[1]
        along = inverse @ change
        scale = float(change @ step)
        inverse += np.outer(step, step) * ((1.0 + along @ change / scale) / scale)
        inverse -= (np.outer(step, along) + np.outer(along, step)) / scale
        strengths, (value, gradient) = strengths + step, new
    validation.require(rise < CONVERGED, "the rankings determine the strengths too weakly: pass a ridge")
    inverse = covariance(strengths)
    strengths += inverse @ gradient
    return FittedStrengths(strengths - strengths.mean(), np.sqrt(np.diag(inverse)), inverse)


def _reached(entries: IntArray, places: IntArray, ranking: IntArray) -> NDArray[np.bool_]:
    """Return whether each item follows item 0 in some ranking, or another item that does."""
    reached = np.arange(int(entries.max()) + 1) == 0
    while True:
        first = np.full(ranking.max() + 1, np.iinfo(np.int64).max)
        np.minimum.at(first, ranking, np.where(reached[entries], places, first[0]))
        follows = entries[places > first[ranking]]
        if reached[follows].all():
            return reached
        reached[follows] = True
