"""Offsets of queries, arrays that go with scores, weights of queries and ranks, and arguments that look exchanged."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast._core.runtime import arguments as _arguments
from plrank_fast._core.runtime import magnitudes as _magnitudes
from plrank_fast._core.runtime.arguments import LONGEST_LIST, CheckedBatch, batch_of, plain_batch
from plrank_fast.validation.arrays import (
    BELOW_0,
    FloatArray,
    IntArray,
    integer_array,
    real_array,
    weights_of,
    within,
    within_limits,
)
from plrank_fast.validation.checks import LARGEST_COUNT, each, given, goes_with, require, threads

A_SHARE = ": NDCG is a share of the ideal DCG, and DCG takes any sign"
A_SHARE_OF_GAINS = f"{A_SHARE}; {BELOW_0}"
ABSENT: Any = _arguments.ABSENT  # an array that a function does not take
FEWEST_TO_JUDGE = 12  # numbers from which their kind can be guessed
LARGEST_GAIN_TO_JUDGE = 31.0  # of a grade of 5
SECOND_DCG_WEIGHT = 1.0 / np.log2(3.0)
ORDERED_AFTER_SCORES = ("relevance", "labels")
ORDER_OF_RESEARCH_CODE = (
    ": the order here is (scores, relevance, rank_weights); plrank_fast.compat.sigir22 has the published code's, "
    "(rank_weights, labels, scores)"
)


def query_offsets(offsets: ArrayLike | None, n_docs: int, shown: bool = False) -> IntArray:
    """Return CSR offsets (n_queries + 1,) as int64; None means a single query of all documents.

    A batch that seems to lack them warns, unless the shape of rankings or results has ``shown`` that it is one query.
    """
    if offsets is None:
        if not shown:
            warn_if_longer(n_docs, LONGEST_LIST)
        return np.array([0, n_docs], dtype=np.int64)
    array = integer_array(offsets, "offsets")
    if not array.size or array[0] != 0 or array[-1] != n_docs:
        got = f"{array[0]} and {array[-1]}{_remedy(array, n_docs)}" if array.size else "an empty array"
        raise ValueError(f"offsets must start with 0 and end with the number of documents, {n_docs}, got {got}")
    return each(np.append(True, array[1:] >= array[:-1]), array, "offsets", "not decrease")


def warn_if_longer(n_docs: int, longest: int) -> None:
    """Warn of documents without offsets that are more than the longest list to expect."""
    if n_docs > longest:
        warn(f"all {n_docs} documents count as one query: pass offsets, or offsets=[0, {n_docs}] if they are one")


def _remedy(array: IntArray, n_docs: int) -> str:
    """Return a hint for an array that says where queries end in another way than offsets do."""
    ascends = (array[1:] >= array[:-1]).all()
    if array.size == n_docs:
        return ": identifiers of queries, one for each document, become offsets by offsets_from_qid(qid)"
    if array.min() >= 0 and sum(array.tolist()) == n_docs:
        return ": sizes of queries become offsets by offsets_from_group(sizes)"
    part = "a part of a batch is its documents from offsets[0] to offsets[-1], with offsets - offsets[0]"
    if ascends and array[-1] == n_docs:  # so do the offsets of a sliced list column
        return f": ends of queries become offsets by numpy.append(0, ends); {part}"
    if ascends and array[0] >= 0 and (array[-1] < n_docs or array[-1] - array[0] == n_docs):
        return f": {part}"
    return ""


def arrays_of_queries(
    scores: Any, relevance: Any, rank_weights: Any, offsets: Any,
    name: str, limited: bool, with_relevance: bool, with_weights: bool, unretrieved: bool,
) -> tuple[FloatArray, Any, Any, IntArray]:  # fmt: skip
    """Return copies of the arrays that `plain_batch` has not read, None for those not taken."""
    scores_ = real_array(scores, "scores", minus_infinity=unretrieved)
    offsets_ = query_offsets(offsets, scores_.size)
    relevance_ = of_documents(relevance, name, scores_, offsets_ if limited else None) if with_relevance else None
    return scores_, relevance_, weights_of_ranks(rank_weights, offsets_) if with_weights else None, offsets_


def batch(
    scores: ArrayLike,
    relevance: ArrayLike,
    rank_weights: ArrayLike,
    offsets: ArrayLike | None,
    n_threads: int | None,
    name: str = "relevance",
    *,
    limited: bool = True,
    lowest: float = -np.inf,
    highest: float = np.inf,
    why: str = "",
    unretrieved: bool = False,
) -> CheckedBatch:
    """Return checked copies of the arrays of a call, as compiled code takes them.

    Relevance, which may have another ``name``, and rank weights may be ``ABSENT``. Relevance is ``limited`` in its
    magnitude and lies from ``lowest``, 0 if any, to ``highest``, 1 if any, and rank weights too; ``why`` ends a message
    about that. ``unretrieved`` allows scores of -inf.

    Published training loops call once per query, and to check ten documents in Python takes twenty microseconds:
    `plain_batch` reads contiguous arrays of finite native numbers, and this package all others.
    """
    checked = plain_batch(scores, relevance, rank_weights, offsets, n_threads)
    if checked is None:
        takes = relevance is not ABSENT, rank_weights is not ABSENT
        arrays = arrays_of_queries(scores, relevance, rank_weights, offsets, name, limited, *takes, unretrieved)
        checked = batch_of(*arrays, threads(n_threads))
    elif offsets is None and checked.n_items > LONGEST_LIST:
        warn_if_longer(checked.n_items, LONGEST_LIST)
    if lowest == 0.0:
        if checked.found_in_relevance & (_magnitudes.NEGATIVE | (_magnitudes.ABOVE_ONE if highest == 1.0 else 0)):
            why_relevance = A_SHARE_OF_GAINS if why == A_SHARE else why
            within(checked.relevance_array(), name, 0.0, highest, why_relevance)
        if checked.found_in_rank_weights & _magnitudes.NEGATIVE:
            within(real_array(rank_weights, "rank_weights", (1, 2)), "rank_weights", 0.0, np.inf, why)
    return checked


def items_that_can_be_drawn(
    scores: ArrayLike, offsets: ArrayLike | None, n_threads: int | None = 1
) -> tuple[FloatArray, IntArray, IntArray | None, IntArray]:
    """Return the scores above -inf, where each query starts among them, their numbers among all, and the offsets.

    The numbers are None if all scores are above -inf.
    """
    scores_ = real_array(scores, "scores", minus_infinity=True, n_threads=n_threads)
    offsets_ = query_offsets(offsets, scores_.size, shown=True)
    if _magnitudes.all_finite(scores_):
        return scores_, offsets_, None, offsets_
    possible = np.flatnonzero(scores_ > -np.inf)
    return scores_[possible], np.searchsorted(possible, offsets_), possible, offsets_


def batch_that_can_be_drawn(
    scores: ArrayLike, offsets: ArrayLike | None, n_threads: int | None
) -> tuple[CheckedBatch, tuple[IntArray, IntArray, IntArray] | None]:
    """Return the batch of the items with scores above -inf.

    If there are others, the second result is what converts indices among these items to indices among all: where each
    query starts, the numbers of the items, and the offsets.
    """
    checked = plain_batch(scores, ABSENT, ABSENT, offsets, n_threads)
    if checked is not None:
        return checked, None
    kept, starts, possible, all_offsets = items_that_can_be_drawn(scores, offsets)
    checked = batch_of(kept, None, None, starts, threads(n_threads))
    return checked, None if possible is None else (starts, possible, all_offsets)


def of_all_items(values: FloatArray, possible: IntArray | None, offsets: IntArray) -> FloatArray:
    """Return values of all items from the values of those that can be drawn; the others are 0."""
    if possible is None:
        return values
    of_all = np.zeros((int(offsets[-1]), *values.shape[1:]))
    of_all[possible] = values
    return of_all


def longest_list(offsets: IntArray) -> int:
    """Return the number of documents of the longest query; ``np.diff`` would take as long as a short list's metric."""
    return int(offsets[1] if offsets.size == 2 else (offsets[1:] - offsets[:-1]).max(initial=0))


def list_lengths(sizes: ArrayLike, name: str) -> IntArray:
    """Return the numbers of documents, none negative and at most 2**59 in sum."""
    array = integer_array(given(sizes, name, ": set the group or the qid of the data set first"), name)
    each(array >= 0, array, name, "not be negative")
    require(sum(array.tolist()) <= LARGEST_COUNT, f"{name} must add up to at most 2**59 documents")
    return array


def shape_of_rank_weights(array: Any, name: str, n_queries: int) -> None:
    """Check that rank weights are a vector or have a row for each query."""
    fits = array.ndim == 1 or (array.ndim == 2 and array.shape[0] == n_queries)
    expected = f"shape (K,) or one row for each of the {n_queries} queries"
    require(fits, f"{name} must have {expected}, got {array.shape}")


def weights_of_ranks(rank_weights: ArrayLike, offsets: IntArray, name: str = "rank_weights") -> FloatArray:
    """Return rank weights as rows, (1, K) for all queries or (n_queries, K), no longer than the longest query."""
    array = real_array(given(rank_weights, name, ", such as plrank_fast.dcg_weights(10)"), name, ndim=(1, 2))
    n_queries = offsets.size - 1
    shape_of_rank_weights(array, name, n_queries)
    array = array if array.ndim == 2 else array[np.newaxis]
    if not 0 < array.shape[1] * n_queries <= offsets[-1]:  # more ranks than the mean length of a query
        longest = longest_list(offsets)
        array = array if array.shape[1] <= longest else np.ascontiguousarray(array[:, :longest])
    if not _magnitudes.each_within_limits(array.reshape(-1)):
        used = np.minimum(np.diff(offsets), array.shape[1])  # ranks that each query has
        up_to_rank = np.maximum.accumulate(np.abs(np.pad(array, ((0, 0), (1, 0)))), axis=1)
        of_queries = np.broadcast_to(up_to_rank, (n_queries, up_to_rank.shape[1]))
        within_limits(of_queries[np.arange(n_queries), used][:, np.newaxis], name)
    return array


def same_offsets(offsets: IntArray, name: str, expected: IntArray) -> None:
    """Check that another distribution is over queries of the same lengths."""
    if not np.array_equal(offsets, expected):
        raise ValueError(f"{name} must be over the same queries, with offsets {expected}, got {offsets}")


def weights_of_queries(
    weights: ArrayLike, offsets: IntArray, name: str = "weights", order: IntArray | None = None
) -> FloatArray:
    """Return the weight of each query from its documents' weights, which must be the same.

    ``order`` sorts the documents by query; without it they must be sorted.
    """
    of_rows = weights_of(weights, name, int(offsets[-1]), "documents")
    array = of_rows if order is None else of_rows[order]
    lengths = np.diff(offsets)
    filled = lengths > 0
    of_queries = np.zeros(lengths.size)
    of_queries[filled] = array[offsets[:-1][filled]]
    same, why = array == np.repeat(of_queries, lengths), ": the metric is of whole rankings"
    same = same if order is None else same[np.argsort(order)]
    each(same, of_rows, name, "be the same for all documents of a query", why)
    return of_queries


def of_documents(
    values: ArrayLike,
    name: str,
    scores: FloatArray,
    offsets: IntArray | None = None,
    scores_first: bool = True,
    n_threads: int | None = 1,
) -> FloatArray:
    """Return one number per document, such as relevance, of limited magnitude if there are ``offsets``.

    With ``scores_first``, warn if scores and these numbers look exchanged.
    """
    array = real_array(values, name, n_threads=n_threads)
    if array.shape != scores.shape:
        order = ""
        if scores_first and 1 < scores.size < array.size and scores[-1] >= 0.0 and (np.diff(scores) < 0.0).all():
            order = ORDER_OF_RESEARCH_CODE
        raise ValueError(
            f"{name} must have one entry per score, got shape {array.shape} for {scores.size} scores{order}"
        )
    if scores_first and array.size >= 3:
        _warn_if_exchanged(array, name, scores)
    return array if offsets is None else within_limits(array, name, offsets)


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


def warn_if_qrels_first(scores: Iterable[float], labels: Iterable[float]) -> None:
    """Warn if the labels of judgements have fractions and the scores of a run have none."""
    if not any(score % 1.0 for score in scores) and any(label % 1.0 for label in labels):
        warn("run looks like judgements and qrels like a run: the order here is (run, qrels), unlike in ir_measures")


def warn_if_many_gains(gains: FloatArray, labels: list[int]) -> None:
    """Warn if many grades, which became ``gains``, are above 0, whose ``labels`` look like gains 2**grade - 1 already.

    They do if all have that form, and 1, 3 and 7 occur. Scales up to 3 cannot be told from their gains, which are 0, 1
    and 3.
    """
    if np.count_nonzero(gains) >= FEWEST_TO_JUDGE:
        shown = ", ".join(map(str, labels[:6]))
        warn(f"labels look like gains, {shown} and no grade in between: pass the grades, gains are computed here")


def warn(message: str) -> None:
    """Warn about a call, at the line outside this package that made it."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "plrank_fast":
        frame = frame.f_back
        level += 1
    warnings.warn(message, UserWarning, stacklevel=level)


def nothing_to_learn(name: str, remedy: str = "") -> None:
    """Warn of a batch whose gradient is 0 whatever the scores."""
    remedy = remedy or f"check {name} and where queries start"
    warn(f"no query has documents of different {name}, so there is nothing to learn: {remedy}")


def warn_if_nothing_to_learn(batch: CheckedBatch, name: str = "relevance") -> None:
    """Warn of several queries of a user's call without different relevance; a single one may have nothing relevant."""
    if batch.n_queries > 1 and batch.n_items > 0 and batch.all_alike():
        nothing_to_learn_in_call(name)


def nothing_to_learn_in_call(name: str) -> None:
    """Warn of such a batch of a user's call, which ``value_and_gradient`` may have handed on.

    Other modules of the package judge whole data sets, of which a part may have nothing to teach.
    """
    frame = sys._getframe(1)
    while _module(frame).startswith(("plrank_fast.validation", "plrank_fast._estimates")) and frame.f_back is not None:
        frame = frame.f_back
    called = _module(frame)  # of the function that reads these arguments
    while _module(frame) in (called, "plrank_fast.value_and_gradient") and frame.f_back is not None:
        frame = frame.f_back
    if _module(frame).partition(".")[0] != "plrank_fast":
        nothing_to_learn(name)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def shape_of_scores(shape: tuple[int, ...], offsets: Any, mask: Any) -> None:
    """Check the shape of a network's scores, and that only one argument, one that can, says where queries end."""
    expected = "(n_docs,), (n_docs, 1) or (n_queries, length)"
    require(len(shape) in (1, 2), f"scores must have shape {expected}, got {shape}")
    goes_with(offsets, "offsets", mask is None, "mask=None")
    is_flat = offsets is None or shape[1:] in ((), (1,))
    require(is_flat, f"scores must have shape (n_docs,) or (n_docs, 1) with offsets, got {shape}")
