"""Rank weights (theta) and gains (rho): the two factors of a ranking metric."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast._core.ranking import metrics as _metrics
from plrank_fast.validation import FloatArray, IntArray

Gain: TypeAlias = validation.Gain | Callable[[FloatArray], ArrayLike]

LARGEST_LABEL = 200  # its gain is the largest magnitude that relevance may have
GRADES = ": grades have gains of 2**grade - 1; rescale labels of another scale"
GRADES_OR_GAINS = ": with gain='exponential' these are grades; pass gain='linear' for gains"


def dcg_weights(cutoff: int) -> FloatArray:
    """Return the rank weights of discounted cumulative gain, 1 / log2(rank + 1).

    Parameters
    ----------
    cutoff : int
        Number of ranks K, at least 0.

    Returns
    -------
    ndarray, shape (K,), float64

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.dcg_weights(3).round(3)
    array([1.   , 0.631, 0.5  ])
    """
    return _metrics.discounts(validation.count(cutoff, "cutoff", 0))


def dcg_weights_of_lists(cutoff: int | None, offsets: IntArray) -> FloatArray:
    """Return the rank weights of DCG at a cutoff (None: all ranks), at most as many as the longest list has ranks."""
    return _metrics.discounts(validation.ranks_that_count(cutoff, validation.longest_list(offsets)))


def precision_weights(cutoff: int) -> FloatArray:
    """Return the rank weights of precision at K: 1 / K at each of the first K ranks.

    Parameters
    ----------
    cutoff : int
        Number of ranks K, at least 0.

    Returns
    -------
    ndarray, shape (K,), float64

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.precision_weights(4)
    array([0.25, 0.25, 0.25, 0.25])
    """
    number = validation.count(cutoff, "cutoff", 0)
    return np.full(number, 1.0 / max(number, 1))


def rbp_weights(cutoff: int, persistence: float = 0.8) -> FloatArray:
    """Return the rank weights of rank-biased precision, (1 - p) p**(rank - 1) (Moffat and Zobel, 2008).

    Parameters
    ----------
    cutoff : int
        Number of ranks K, at least 0.
    persistence : float
        Probability p that the user looks at the next rank, 0 <= p < 1.

    Returns
    -------
    ndarray, shape (K,), float64

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.rbp_weights(3, persistence=0.5)
    array([0.5  , 0.25 , 0.125])
    """
    number = validation.count(cutoff, "cutoff", 0)
    p = validation.real(persistence, "persistence", at_least=0.0, below=1.0)
    return (1.0 - p) * p ** np.arange(number, dtype=np.float64)


def gains(labels: ArrayLike) -> FloatArray:
    """Return the exponential gain of graded labels, 2**label - 1.

    Parameters
    ----------
    labels : array_like of real numbers
        Grades, 0 to 200; fractional ones are allowed.

    Returns
    -------
    ndarray of float64, same shape

    Warns
    -----
    UserWarning
        If the labels look like gains: many are above 0, and all of these are 1, 3, 7 and so on.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.gains([0, 1, 2, 4])
    array([ 0.,  1.,  3., 15.])
    """
    return gains_of_labels(labels, 1)


def gains_of_labels(labels: ArrayLike, n_threads: int | None, name: str = "labels", why: str = GRADES) -> FloatArray:
    """Return the gains of labels, which this many threads compute; ``why`` ends the message of an error about them."""
    gain = gains_of_grades(labels, n_threads)
    if gain is not None:
        return gain
    array = _grades(validation.real_array(labels, name, ndim=None), name, why)
    gain = gains_of_grades(array.reshape(-1), 1)
    return np.exp2(array) - 1.0 if gain is None else gain.reshape(array.shape)


def _grades(labels: FloatArray, name: str, why: str) -> FloatArray:
    """Return labels that are grades; ``why`` ends the message about one that is too high."""
    remedy = f": {validation.BELOW_0}" if labels.min(initial=0.0) < 0.0 else why
    return validation.within(labels, name, 0.0, LARGEST_LABEL, remedy)


def checked_gain(gain: Gain) -> Gain:
    """Return a function from labels to gains, or the name of one."""
    return gain if callable(gain) else validation.choice(gain, "gain", validation.Gain)


def gains_by(gain: Gain, labels: FloatArray, n_threads: int | None = 1, why: str = GRADES) -> FloatArray:
    """Return the gains of labels in an array of their own; ``why`` ends the message of an error about grades."""
    if callable(gain):
        return validation.of_documents(gain(labels.copy()), "gain(labels)", labels)
    return labels.copy() if gain == "linear" else gains_of_labels(labels, n_threads, "labels", why)


def gains_of_grades(labels: ArrayLike, n_threads: int | None) -> FloatArray | None:
    """Return the gains of an array of whole grades, or None for any other; warn if they look like gains."""
    found = _metrics.gains_of_grades(labels, n_threads)
    if found is None:
        return None
    gain, like_gains = found
    if like_gains:
        validation.warn_if_many_gains(gain, like_gains)
    return gain


def satisfaction(
    labels: ArrayLike, max_label: float | None, name: str = "labels", n_threads: int | None = 1
) -> tuple[FloatArray, float]:
    """Return the gain of each document and a divisor.

    The quotients, (2**label - 1) / 2**max_label, are the probabilities that documents satisfy the user of ERR.
    """
    gain = gains_of_grades(labels, n_threads)
    if gain is not None:
        highest = math.log2(gain.max() + 1.0)
    else:
        grades = _grades(validation.real_array(labels, name), name, GRADES)
        gain, highest = gains(grades), float(grades.max(initial=0.0))
    if max_label is not None:
        highest = validation.real(max_label, "max_label", at_least=highest, at_most=LARGEST_LABEL)
    return gain, 2.0**highest
