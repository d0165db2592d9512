"""Arguments that go with scores: arrays of their length or shape, and arguments that look exchanged."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast.validation.array_types import FloatArray, IntArray
from plrank_fast.validation.arrays import real_array, within_limits
from plrank_fast.validation.checks import excluded, require

FEWEST_TO_JUDGE = 12  # numbers from which their kind can be guessed
LARGEST_GAIN_TO_JUDGE = 31.0  # of grades up to 5
SECOND_DCG_WEIGHT = 1.0 / np.log2(3.0)
ORDERED_AFTER_SCORES = ("relevance", "labels")
ORDER_OF_RESEARCH_CODE = (
    ": the order here is (scores, relevance, rank_weights); plrank_fast.compat.sigir22 has the published code's, "
    "(rank_weights, labels, scores)"
)


def same_length(array: FloatArray, name: str, scores: FloatArray, scores_first: bool = True) -> FloatArray:
    """Return ``array`` if it has one entry per document.

    With ``scores_first``, warn if the two look exchanged.
    """
    if array.shape != scores.shape:
        order = ""
        if scores_first and 1 < scores.size < array.size and scores[-1] >= 0.0 and (np.diff(scores) < 0.0).all():
            order = ORDER_OF_RESEARCH_CODE
        raise ValueError(
            f"{name} must have one entry per score, got shape {array.shape} for {scores.size} scores{order}"
        )
    if scores_first and array.size >= 3:
        _warn_if_exchanged(array, name, scores)
    return array


def of_documents(
    values: ArrayLike, name: str, scores: FloatArray, offsets: IntArray, scores_first: bool = True
) -> FloatArray:
    """Return one number per document, such as relevance, of limited magnitude."""
    return within_limits(same_length(real_array(values, name), name, scores, scores_first), name, offsets)


def _warn_if_exchanged(array: FloatArray, name: str, scores: FloatArray) -> None:
    """Warn if scores and relevance or labels look as if they were passed in another library's order.

    Scores with few different values, all whole numbers, look like grades if nearly all values of relevance differ.
    Grades and gains are whole numbers and scores of a model are not, so the first entries decide for most calls. Scores
    that equal the rank weights of DCG look like these.
    """
    first = scores.item(0)
    if first == 1.0 and abs(scores.item(1) - SECOND_DCG_WEIGHT) < 1e-6:
        discounts = 1.0 / np.log2(np.arange(2, scores.size + 2))
        if np.abs(scores - discounts).max() < 1e-6:
            warn(f"scores look like the rank weights of DCG{ORDER_OF_RESEARCH_CODE}")
    if not first.is_integer() or array.item(0).is_integer() or name not in ORDERED_AFTER_SCORES:
        return
    if array.size < FEWEST_TO_JUDGE or scores.min() < 0.0 or scores.max() > LARGEST_GAIN_TO_JUDGE:
        return
    if not (scores == np.floor(scores)).all():
        return
    if 1 < np.unique(scores).size <= array.size / 2 and np.unique(array).size >= 0.9 * array.size:
        warn(
            f"scores look like grades, whole numbers from {scores.min():g} to {scores.max():g}, and {name} like "
            f"scores: scores come first here, (scores, {name}, ...), unlike in scikit-learn"
        )


def warn_if_gains(labels: FloatArray) -> None:
    """Warn if grades, which are to become gains, look like gains 2**grade - 1 already.

    They do if many are above 0, all of these have that form, and 1, 3 and 7 occur. Scales up to 3 cannot be told from
    their gains, which are 0, 1 and 3.
    """
    if labels.max(initial=0.0) < 7.0:
        return
    values, counts = np.unique(labels[labels != 0.0], return_counts=True)
    mantissa, _ = np.frexp(values + 1.0)
    if counts.sum() >= FEWEST_TO_JUDGE and (mantissa == 0.5).all() and np.isin([1.0, 3.0, 7.0], values).all():
        shown = ", ".join(f"{value:g}" for value in values[:6])
        warn(f"labels look like gains, {shown} and no grade in between: pass the grades, gains are computed here")


def warn(message: str) -> None:
    """Warn about a call, at the line outside this package that made it."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "plrank_fast":
        frame = frame.f_back
        level += 1
    warnings.warn(message, UserWarning, stacklevel=level)


def shape_of_scores(shape: tuple[int, ...], offsets: Any, mask: Any) -> None:
    """Check the shape of a network's scores, and that only one argument, one that can, says where queries end."""
    expected = "(n_docs,), (n_docs, 1) or (n_queries, length)"
    require(len(shape) in (1, 2), f"scores must have shape {expected}, got {shape}")
    if mask is not None:
        excluded(offsets, "offsets", "a mask", "which says where queries end")
    elif offsets is not None:
        is_flat = shape[1:] in ((), (1,))
        require(is_flat, f"scores must have shape (n_docs,) or (n_docs, 1) with offsets, got {shape}")
