"""The losses of ``plrank_fast.losses`` for automatic differentiation: ragged lists, padded rows, weights of queries."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plrank_fast import losses, validation
from plrank_fast._adapters.expected_loss import CHECKS
from plrank_fast._adapters.layouts import Layout, layout_of
from plrank_fast._core.runtime import arguments as _arguments
from plrank_fast.validation import FloatArray, RandomState, RankingLossName

LOSSES: dict[str, Callable[..., Any]] = {
    **{name: getattr(losses, name) for name in losses.__all__ if name != "exposure_matching"},
    "plackett_luce": partial(losses.list_mle, ties="exact"),
}


def loss_call(loss: RankingLossName, options: dict[str, Any]) -> tuple[str, bool]:
    """Return a text that names a loss and its options, after a check by two documents, and if it draws numbers."""
    function = LOSSES[validation.choice(loss, "loss", RankingLossName)]
    refused = {"offsets", "n_threads", "out", "rng"}.intersection(options)
    validation.require(not refused, f"{loss} takes no option {', '.join(sorted(refused))}", TypeError)
    given = {name: value for name, value in options.items() if name != "of_rankings"}
    if "gain" in given:
        validation.choice(given["gain"], "gain", validation.Gain)  # a function is no option of an operator
    random = given.get("ties") == "random"
    function([1.0, 0.0], [1.0, 0.0], **given, **{"rng": 0} if random else {})
    plain = {name: value if isinstance(value, (str, type(None))) else _number(value) for name, value in given.items()}
    if "of_rankings" in options:
        plain["of_rankings"] = True
    return json.dumps([loss, plain], sort_keys=True), random


def _number(value: Any) -> Any:
    """Return an int or a float of a number that a loss has taken."""
    return value.__index__() if hasattr(value, "__index__") else float(value)


@lru_cache(maxsize=64)
def _function_of(call: str) -> tuple[Callable[..., Any], bool, bool]:
    """Return the function of such a text, whether its labels are rankings, and whether it takes random numbers."""
    loss, options = json.loads(call)
    of_rankings = options.pop("of_rankings", False)
    return partial(LOSSES[loss], **options), of_rankings, options.get("ties") == "random"


def ranking_loss(
    scores: NDArray[Any],
    labels: ArrayLike,
    offsets: ArrayLike | None,
    mask: ArrayLike | None,
    weights: ArrayLike | None,
    rank_weights: None = None,
    *,
    call: str,
    reduction: str,
    n_threads: int | None,
    first_query: int,
    seed: Callable[[], RandomState],
    gradient: NDArray[Any],
) -> tuple[FloatArray, bool]:
    """Compute the loss of each query, whose sum is the reduction asked for, and write the gradient of that sum.

    ``call`` is a text of `loss_call`; the other arguments and the results are as those of `expected_loss`.
    """
    function, of_rankings, random = _function_of(call)
    layout = layout_of(scores.shape, offsets, mask)
    n_queries = layout.offsets.size - 1
    of_docs = _labels_of(labels, layout) if of_rankings else layout.documents(labels, "labels")
    sampling = {"rng": validation.DrawnKey(seed(), CHECKS["first_query"](first_query))} if random else {}
    values, slopes = function(
        layout.documents(scores, "scores"), of_docs, offsets=layout.offsets, n_threads=n_threads, **sampling
    )
    factors: Any = 1.0
    total = float(n_queries)
    if weights is not None:
        factors = validation.weights_of(weights, "weights", n_queries, "queries")
        total = factors.sum()
    if reduction == "mean":
        factors = factors / (total or 1.0)
    of_slopes = np.repeat(factors, np.diff(layout.offsets)) if isinstance(factors, np.ndarray) else factors
    flat = gradient.reshape(-1)
    with np.errstate(over="ignore"):  # as PyTorch's and JAX's conversions
        if layout.places is None:
            np.multiply(slopes, of_slopes, out=flat, casting="same_kind")
        else:
            flat.fill(0)
            flat[layout.places] = slopes * of_slopes
    all_alike = (
        slopes.size > 0
        and not slopes.any()
        and _arguments.are_all_alike(validation.real_array(of_docs, "labels"), layout.offsets)
    )
    return factors * values, all_alike


def _labels_of(rankings: ArrayLike, layout: Layout) -> NDArray[Any]:
    """Return labels of the documents that descend along the ranking of each query; others have the label 0."""
    array = validation.as_array(rankings, "rankings")
    n_queries = layout.offsets.size - 1
    fits = array.ndim == 2 and len(array) == n_queries
    validation.require(fits, f"rankings must have shape ({n_queries}, length), a row for each query, got {array.shape}")
    rows = layout.rows()
    checked = validation.given_rankings(array[:, np.newaxis], rows, None, True, prefixes=True)[:, 0]
    query, rank = np.nonzero(checked >= 0)
    labels = np.zeros(rows[-1])
    labels[rows[query] + checked[query, rank]] = array.shape[1] - rank
    if layout.places is None:
        return labels
    of_docs: NDArray[Any] = labels[layout.places]
    told = np.count_nonzero(of_docs) == query.size
    validation.require(told, "rankings must hold documents, where mask is True, got the place of padding")
    return of_docs
