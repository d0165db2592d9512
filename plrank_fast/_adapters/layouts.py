"""Conversion of the shapes of networks' scores (ragged, a column, padded with a mask) to one ragged batch."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plrank_fast import validation
from plrank_fast.validation import IntArray

LONGEST_LIST = 2000  # in training: a list of MSLR-WEB30K has at most 1,251 documents, and 20 have some 2,400


class Layout(NamedTuple):
    """Places of the documents of a ragged batch in an array of another shape."""

    shape: tuple[int, ...]
    offsets: IntArray  # of the ragged batch
    places: NDArray[np.intp] | None  # of the documents; None if there is no padding

    def rows(self) -> IntArray:
        """Return where each query starts in the array, with its padding."""
        if self.places is None:
            return self.offsets
        return offsets_of_rows(self.shape if len(self.shape) == 2 else (1, *self.shape))

    def documents(self, values: ArrayLike, name: str) -> NDArray[Any]:
        """Return the values of the documents, one after another, (n_docs,), without the padding."""
        array: Any = values
        if type(values) is not np.ndarray or values.shape != self.shape:
            array = validation.as_array(values, name)
            _check_shape(array, name, self.shape, flat=self.places is None)
        return array.reshape(-1) if self.places is None else array.reshape(-1).take(self.places)


def layout_of(shape: tuple[int, ...], offsets: ArrayLike | None, mask: ArrayLike | None) -> Layout:
    """Return the layout of scores of this shape, after a check that the arguments are consistent.

    The shape (n_docs,) or (n_docs, 1) is ragged, and one query if there are no ``offsets``. The shape (n_queries,
    length) has a row for each query, padded where ``mask`` is False. Offsets do not go with a mask.

    Examples
    --------
    >>> from plrank_fast._adapters.layouts import layout_of
    >>> layout_of((2, 3), None, [[True, True, False], [True, True, True]]).offsets
    array([0, 2, 5])
    """
    if offsets is mask is None:
        return _layout_of_shape(shape)
    validation.shape_of_scores(shape, offsets, mask)
    if mask is not None:
        places = validation.as_array(mask, "mask")
        _check_mask(places, shape)
        of_documents = np.flatnonzero(places)
        rows = offsets_of_rows(shape if len(shape) == 2 else (1, *shape))
        return Layout(shape, of_documents.searchsorted(rows), of_documents)
    return Layout(shape, validation.query_offsets(offsets, shape[0], shown=True), None)


@lru_cache(maxsize=64)
def _layout_of_shape(shape: tuple[int, ...]) -> Layout:
    """Return the layout of a single query, or of rows without padding."""
    validation.shape_of_scores(shape, None, None)
    is_rows = len(shape) == 2 and shape[1] != 1
    return Layout(shape, offsets_of_rows(shape if is_rows else (1, shape[0])), None)


def warn_if_one_list(shape: tuple[int, ...], offsets: Any, mask: Any) -> None:
    """Warn of so many documents without offsets that they look like a batch."""
    if offsets is mask is None and (len(shape) == 1 or shape[1] == 1):
        validation.warn_if_longer(shape[0], LONGEST_LIST)


def _check_shape(array: Any, name: str, shape: tuple[int, ...], flat: bool) -> None:
    """Check that an array has the shape of scores, or of all documents one after another if it may be ``flat``."""
    same = array.shape == shape or (flat and array.shape == (math.prod(shape),))
    validation.require(same, f"{name} must have the shape of scores, {shape}, got {array.shape}")


def _check_mask(mask: Any, shape: tuple[int, ...]) -> None:
    validation.of_type(mask.dtype == np.bool_, "mask", "of booleans, True for documents", mask.dtype)
    _check_shape(mask, "mask", shape, flat=False)


def check_shapes(
    shape: tuple[int, ...], labels: Any, offsets: Any = None, mask: Any = None, weights: Any = None,
    rank_weights: Any = None, **others: Any,
) -> int:  # fmt: skip
    """Check the shapes of a loss's arrays, whose values need not be known yet; return the number of queries."""
    n_queries = count_queries(shape, offsets, mask)
    if mask is not None:
        _check_mask(mask, shape)
    _check_shape(labels, "labels", shape, flat=mask is None)
    if weights is not None:
        validation.one_entry_each(weights, "weights", n_queries, "queries")
    if rank_weights is not None:
        validation.shape_of_rank_weights(rank_weights, "rank_weights", n_queries)
    return n_queries


def offsets_of_rows(shape: tuple[int, ...]) -> IntArray:
    """Return the offsets of queries of the same length, the rows of an array of this shape."""
    return np.arange(shape[0] + 1, dtype=np.int64) * shape[1]


def count_queries(shape: tuple[int, ...], offsets: Any, mask: Any) -> int:
    """Return the number of queries from shapes alone, for arrays whose values are not known yet."""
    validation.shape_of_scores(shape, offsets, mask)
    if offsets is not None:
        validation.require(len(offsets.shape) == 1, f"offsets must be 1-dimensional, got shape {offsets.shape}")
        return offsets.shape[0] - 1
    is_rows = len(shape) == 2 and (mask is not None or shape[1] != 1)
    return shape[0] if is_rows else 1
