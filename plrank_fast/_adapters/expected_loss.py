"""The loss of the adapters to automatic differentiation in NumPy: minus the weighted expected metric."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plrank_fast import _estimates, validation
from plrank_fast._adapters.layouts import layout_of
from plrank_fast._core.runtime import arguments as _arguments
from plrank_fast._methods.registry import AUTO, EXACT, resolve_method
from plrank_fast.named_metrics import SUMS_OVER_RANKS, WITH_GAINS, check_metric, checked_scale, labelled_metric
from plrank_fast.rank_weights import GRADES_OR_GAINS, gains_of_labels
from plrank_fast.second_derivatives import pl_rank_exact_hvp
from plrank_fast.validation import FloatArray, RandomState
from plrank_fast.value_and_gradient import OF_RANKINGS, of_rankings

CHECKS: dict[str, Callable[[Any], Any]] = {
    "cutoff": lambda cutoff: None if cutoff is None else validation.ranks_that_count(cutoff),
    "gain": lambda gain: validation.choice(gain, "gain", validation.Gain),
    "reduction": lambda reduction: validation.choice(reduction, "reduction", validation.Reduction),
    "method": lambda method: validation.choice(method, "method", validation.Method),
    "n_samples": lambda n_samples: None if n_samples is None else validation.count(n_samples, "n_samples", 1),
    "first_query": lambda first_query: validation.count(first_query, "first_query", 0),
    "rtol": validation.relative_tolerance,
    "n_threads": validation.threads,
}  # the options of a loss have these
SCALE = "be given with metric='err': it is the highest grade of the scale, which a batch may lack"


def loss_options(metric: str, max_label: float | None, rank_weights: Any = None, **options: Any) -> dict[str, Any]:
    """Return the options of a loss but ``rank_weights`` by their names, checked before there are data."""
    checked = {name: CHECKS[name](value) for name, value in options.items()}
    method = options.get("method", AUTO)
    checked["metric"] = check_metric(metric, method=method, rank_weights=rank_weights, max_label=max_label)
    validation.require(metric != "err" or max_label is not None, f"max_label must {SCALE}")
    checked["max_label"] = checked_scale(max_label)
    return checked


def check_second_derivatives(method: str, metric: str) -> None:
    """Refuse methods and metrics without second derivatives; "auto" is judged when it is resolved."""
    has_them = method in (AUTO, EXACT)
    validation.require(has_them, f"second derivatives need method='exact', got {method!r}", RuntimeError)
    has_them = metric in SUMS_OVER_RANKS
    validation.require(has_them, f"second derivatives need a sum over ranks, got metric={metric!r}", RuntimeError)


def expected_loss(
    scores: NDArray[Any],
    labels: ArrayLike,
    offsets: ArrayLike | None,
    mask: ArrayLike | None,
    weights: ArrayLike | None,
    rank_weights: ArrayLike | None,
    *,
    metric: Any,
    cutoff: int | None,
    gain: str,
    max_label: float | None,
    reduction: str,
    method: str,
    seed: Callable[[], RandomState],
    first_query: int,
    gradient: NDArray[Any],
    wait: Callable[[], Any] = lambda: None,
    labels_are_here: bool = True,
    direction: ArrayLike | None = None,
    **options: Any,
) -> tuple[FloatArray, bool]:
    """Compute the loss of each query, whose sum is the reduction asked for, and write the gradient of that sum.

    The second result is whether no query has documents of different relevance, which `warn_if_all_alike` takes.
    The scores have a shape that `layout_of` takes, and ``gradient``, of float64 or float32, has theirs, with 0 in the
    padding. It takes the options of ``plrank_fast.torch.ExpectedMetricLoss``, as `loss_options` returns them;
    ``options`` go to `value_and_gradient`. Only sampled methods call ``seed``.
    Arrays may be copied from a device until ``wait`` returns, labels unless ``labels_are_here``; what needs none of
    the values that are not here is done before.
    With a ``direction``, a change of the scores, the exact method writes the derivative of the gradient along it, and
    returns zeros.
    """

    def read(given: NDArray[Any]) -> FloatArray:
        if with_gains and gain == "exponential":
            return gains_of_labels(given, n_threads, "labels", GRADES_OR_GAINS)
        values = validation.real_array(given, "labels", n_threads=n_threads)
        return validation.within(values, "labels", 0.0, np.inf, validation.A_SHARE_OF_GAINS) if over_ideal else values

    def source() -> RandomState:
        return validation.DrawnKey(seed(), first_query) if first_query else seed()

    with_gains, n_threads, over_ideal = metric in WITH_GAINS, options["n_threads"], metric == "ndcg"
    if not (with_gains and offsets is mask is weights is rank_weights is None):
        wait()
    layout = layout_of(scores.shape, offsets, mask)
    n_queries = layout.offsets.size - 1
    given_labels = layout.documents(labels, "labels")
    read_later = with_gains and not labels_are_here
    target = labelled_metric(
        metric, given_labels if read_later else read(given_labels), layout.offsets, cutoff=cutoff,
        gain=lambda labels: labels, rank_weights=rank_weights, max_label=max_label,
    )  # fmt: skip
    factors: Any = -1.0  # one for each query's metric, or one for all
    total = float(n_queries)
    if weights is not None:
        given = validation.weights_of(weights, "weights", n_queries, "queries")
        factors, total = -given, given.sum()
    if reduction == "mean":
        factors = factors / (total or 1.0)
    of_ranks = metric in SUMS_OVER_RANKS
    method = resolve_method(method, layout.offsets, target.rank_weights.shape[-1]) if of_ranks else EXACT
    if direction is not None:
        check_second_derivatives(method, metric)
    given_scores = layout.documents(scores, "scores")
    slopes = gradient.reshape(-1) if layout.places is None else np.empty(given_scores.size, gradient.dtype)
    if read_later:
        wait()
        target = target._replace(relevance=read(given_labels))
    all_alike = scores.size > 0 and _arguments.are_all_alike(target.relevance, layout.offsets)
    wait()
    if method == EXACT and direction is None and metric != "ap":
        values = _estimates.exact_scaled(
            given_scores, target.relevance, target.rank_weights, layout.offsets, target.stop, options["rtol"], factors,
            over_ideal, n_threads, slopes,
        )  # fmt: skip
    elif method in OF_RANKINGS and direction is None:
        values = of_rankings(
            method, given_scores, target.relevance, target.rank_weights, layout.offsets, options["n_samples"], source(),
            n_threads, factors=factors, over_ideal=over_ideal, scaled=slopes,
        )  # fmt: skip
    else:
        if over_ideal:
            # A query without relevant documents has an ideal metric of 0, and no gradient.
            factors = target.over_ideal(factors, layout.offsets, n_threads)
        if direction is None:
            values, ascent = target.value_and_gradient(
                given_scores, method, offsets=layout.offsets,
                rng=None if method == EXACT else source(), **options,
            )  # fmt: skip
        else:
            values, along = np.zeros(n_queries), layout.documents(direction, "direction")
            ascent = pl_rank_exact_hvp(
                given_scores, target.relevance, target.rank_weights, along, offsets=layout.offsets,
                rtol=options["rtol"], n_threads=n_threads,
            )  # fmt: skip
        of_docs = np.repeat(factors, np.diff(layout.offsets)) if isinstance(factors, np.ndarray) else factors
        with np.errstate(over="ignore"):  # as PyTorch's and JAX's conversions
            np.multiply(ascent, of_docs, out=slopes, casting="same_kind")
        values = factors * values
    if layout.places is not None:
        gradient.fill(0)
        gradient.reshape(-1)[layout.places] = slopes  # np.put takes three times as long
    return values, all_alike


def seed_of(words: list[int], bits: int) -> RandomState:
    """Return a seed of words of so many bits: where it fits, an int below 2**128, of which the core makes a key."""
    if len(words) * bits <= 128 and max(words, default=0) < 1 << bits:
        return sum(word << bits * i for i, word in enumerate(words))
    return np.random.SeedSequence(words)


def warn_if_all_alike(all_alike: bool, n_queries: int, mask: NDArray[Any] | None) -> None:
    """Warn of a batch in which nothing can be learned; a single query may be padding, or have nothing relevant."""
    if all_alike and (n_queries > 1 or (mask is not None and mask.ndim == 2 and not mask.any())):
        remedy = "" if mask is None else "mask must be True for documents and False for padding"
        validation.nothing_to_learn("labels", remedy)
