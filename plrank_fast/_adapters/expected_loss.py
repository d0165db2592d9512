"""The loss of the adapters to automatic differentiation in NumPy: minus the weighted expected metric."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plrank_fast import validation
from plrank_fast._adapters.layouts import layout_of
from plrank_fast._methods.registry import EXACT, METHODS, resolve_method
from plrank_fast.metrics import ideal_dcg
from plrank_fast.rank_weights import LARGEST_LABEL, dcg_weights_of_lists, gains
from plrank_fast.second_derivatives import pl_rank_exact_hvp
from plrank_fast.validation import FloatArray
from plrank_fast.value_and_gradient import value_and_gradient

GRADES = ": with gain='exponential' it holds grades; pass gain='linear' for gains"
REDUCTIONS = get_args(validation.Reduction)
GAINS = get_args(validation.Gain)
CHECKS: dict[str, Callable[[Any], Any]] = {
    "cutoff": lambda cutoff: None if cutoff is None else validation.ranks_that_count(cutoff),
    "gain": lambda gain: validation.choice(gain, "gain", GAINS),
    "normalize": lambda normalize: validation.flag(normalize, "normalize"),
    "reduction": lambda reduction: validation.choice(reduction, "reduction", REDUCTIONS),
    "method": lambda method: validation.choice(method, "method", METHODS),
    "n_samples": lambda n_samples: None if n_samples is None else validation.count(n_samples, "n_samples", 1),
    "rtol": validation.relative_tolerance,
    "n_threads": validation.threads,
}  # of the options of a loss


def loss_options(**options: Any) -> dict[str, Any]:
    """Return the options of a loss by their names, checked before there are data."""
    return {name: CHECKS[name](value) for name, value in options.items()}


def expected_loss(
    scores: NDArray[Any],
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
    words: Callable[[], list[int]],
    direction: ArrayLike | None = None,
    **options: Any,
) -> tuple[FloatArray, FloatArray]:
    """Compute the loss of each query, whose sum is the reduction asked for, and the gradient of that sum.

    The scores have a shape that `layout_of` takes, and the gradient has theirs, with 0 in the padding. The options are
    those of ``plrank_fast.torch.PlackettLuceLoss``; ``options`` go to `value_and_gradient`. Only sampled methods call
    ``words``, which returns the words of the seed. With a ``direction``, a change of the scores, the exact method
    returns the slope of each loss along it, and the derivative of the gradient.
    """
    normalize = loss_options(gain=gain, reduction=reduction, normalize=normalize)["normalize"]
    layout = layout_of(scores.shape, offsets, mask)
    n_queries = layout.offsets.size - 1
    worth = layout.documents(relevance, "relevance")
    if gain == "exponential":
        worth = gains(
            validation.within(validation.real_array(worth, "relevance"), "relevance", 0.0, LARGEST_LABEL, GRADES)
        )
    if rank_weights is None:
        theta = dcg_weights_of_lists(cutoff, layout.offsets)
    else:
        theta = validation.weights_of_ranks(rank_weights, layout.offsets)
        theta = theta[0] if len(theta) == 1 else theta
    factors: Any = -1.0  # of each query's metric, or of all
    total = float(n_queries)
    if weight is not None:
        given = validation.weights_of(weight, "weight", n_queries, "queries")
        factors, total = -given, given.sum()
    if reduction == "mean":
        factors = factors / (total or 1.0)
    if normalize:
        # A query without relevant documents has an ideal metric of 0, and no gradient.
        ideal = ideal_dcg(worth, theta, offsets=layout.offsets)
        factors = np.divide(factors, ideal, out=np.zeros_like(ideal), where=ideal > 0.0)
    method = resolve_method(method, layout.offsets, theta.shape[-1])
    can_change = direction is None or method == EXACT
    validation.require(can_change, f"second derivatives need method='exact', got {method!r}", RuntimeError)
    values, ascent = value_and_gradient(
        np.asarray(layout.documents(scores, "scores"), dtype=np.float64), worth, theta,
        offsets=layout.offsets, method=method,
        rng=None if method == EXACT else np.random.SeedSequence(words()), **options,
    )  # fmt: skip
    if direction is not None:
        along = np.asarray(layout.documents(direction, "direction"), dtype=np.float64)
        query = np.repeat(np.arange(n_queries), np.diff(layout.offsets))
        values = np.bincount(query, along * ascent, n_queries).astype(np.float64)
        ascent = pl_rank_exact_hvp(
            layout.documents(scores, "scores"), worth, theta, along, offsets=layout.offsets,
            rtol=options["rtol"], n_threads=options["n_threads"],
        )  # fmt: skip
    of_docs = np.repeat(factors, np.diff(layout.offsets)) if isinstance(factors, np.ndarray) else factors
    return factors * values, layout.place(of_docs * ascent)
