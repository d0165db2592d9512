"""The loss of the adapters to automatic differentiation: minus the expected metric, weighted over queries, in NumPy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plrank_fast import validation
from plrank_fast._shared.layouts import Layout, layout_of
from plrank_fast.metrics import dcg
from plrank_fast.rank_weights import LARGEST_LABEL, dcg_weights_of_lists, gains
from plrank_fast.validation import FloatArray
from plrank_fast.value_and_gradient import resolve_method, value_and_gradient, weights_as_given

REDUCTIONS = ("mean", "sum", "none")
GAINS = ("linear", "exponential")


class LossBatch(NamedTuple):
    """All that the loss of a batch depends on, but for the scores and the random numbers.

    Attributes
    ----------
    layout : Layout
        Where the documents stand in the array of scores.
    relevance : ndarray, shape (n_docs,)
        What each document is worth.
    rank_weights : ndarray, shape (K,) or (n_queries, K)
        Weight of each rank.
    factors : ndarray, shape (n_queries,)
        What each query's metric is multiplied by, so that their sum is the reduction asked for.
    method : str
        Name of the estimator.
    """

    layout: Layout
    relevance: FloatArray
    rank_weights: FloatArray
    factors: FloatArray
    method: str

    def evaluate(self, scores: NDArray[Any], **options: Any) -> tuple[FloatArray, FloatArray]:
        """Loss of each query, (n_queries,), and the gradient of their sum, in the layout of the scores."""
        layout = self.layout
        values, ascent = value_and_gradient(
            layout.documents(scores, "scores"), self.relevance, self.rank_weights, offsets=layout.offsets,
            method=self.method, **options,
        )  # fmt: skip
        return -self.factors * values, layout.place(-np.repeat(self.factors, np.diff(layout.offsets)) * ascent)


def loss_batch(
    shape: tuple[int, ...],
    relevance: ArrayLike,
    *,
    offsets: ArrayLike | None,
    mask: ArrayLike | None,
    weight: ArrayLike | None,
    cutoff: int | None,
    rank_weights: ArrayLike | None,
    gain: str,
    normalize: bool,
    reduction: str,
    method: str,
) -> LossBatch:
    """Check all that does not depend on the values of the scores, of this shape.

    Parameters
    ----------
    shape, offsets, mask
        As in `layout_of`.
    relevance : array_like
        Of that shape, or (n_docs,).
    weight : array_like, shape (n_queries,), optional
        Weight of each query.
    cutoff, rank_weights, gain, normalize, reduction, method
        As in ``plrank_fast.torch.PlackettLuceLoss``.

    Returns
    -------
    LossBatch

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Examples
    --------
    >>> import numpy as np
    >>> from plrank_fast._shared.expected_loss import loss_batch
    >>> batch = loss_batch(
    ...     (2,), [1, 0], offsets=None, mask=None, weight=None, cutoff=1, rank_weights=None, gain="linear",
    ...     normalize=False, reduction="mean", method="exact",
    ... )
    >>> batch.evaluate(np.zeros(2))
    (array([-0.5]), array([-0.25,  0.25]))
    """
    validation.choice(gain, "gain", GAINS)
    validation.choice(reduction, "reduction", REDUCTIONS)
    normalize = validation.flag(normalize, "normalize")
    layout = layout_of(shape, offsets, mask)
    worth = validation.real_array(layout.documents(relevance, "relevance"), "relevance")
    if gain == "exponential":
        worth = gains(validation.within(worth, "relevance", 0.0, LARGEST_LABEL))
    if rank_weights is None:
        rank_weights = dcg_weights_of_lists(cutoff, layout.offsets)
    rows = validation.weights_of_ranks(rank_weights, layout.offsets)
    n_queries = layout.offsets.size - 1
    factors = np.ones(n_queries)
    if weight is not None:
        factors = validation.weights_of(weight, "weight", n_queries, "queries")
    if reduction == "mean":
        factors = factors / (factors.sum() or 1.0)
    if normalize:
        # a query without anything relevant has an ideal of 0, and no gradient
        ideal = dcg(worth, worth, weights_as_given(rows), offsets=layout.offsets)
        validation.within(ideal, "ideal metrics, which normalize divides by,", 0.0, np.inf)
        factors = np.divide(factors, ideal, out=np.zeros_like(factors), where=ideal > 0.0)
    method = resolve_method(method, layout.offsets, rows.shape[1])
    return LossBatch(layout, worth, weights_as_given(rows), factors, method)
