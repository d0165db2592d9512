"""Log-probability of rankings with ties, in any order among tied documents, and its gradient."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast._core.losses import losses as _losses
from plrank_fast._core.losses.bucket_order import BUCKET_ORDER
from plrank_fast._core.runtime.arguments import batch_of
from plrank_fast.validation import FloatArray, IntArray


def bucket_log_prob(
    scores: ArrayLike, buckets: ArrayLike, *, offsets: ArrayLike | None = None, n_threads: int | None = None
) -> FloatArray:
    r"""Compute the log-probability of a ranking with ties (a bucket order), summed over all orders within buckets.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights of the documents, all queries one after another; any finite values at any distance.
    buckets : array_like of int, shape (n_docs,)
        The bucket of each document, up to 2**53 in magnitude. Documents of a smaller number come first, and the order
        of documents with the same number is unknown: minus the labels, or 0 for the documents that were shown and 1 for
        the rest. The log-probability is -inf, without a gradient, if a document with the score -inf comes before one
        with a finite score; otherwise documents with the score -inf do not count.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    ndarray, shape (n_queries,), float64
        The log-probability of each query's bucket order; 0 where all its documents are in one bucket, -inf where it is
        beyond the range of a double.

    See Also
    --------
    ranking_log_prob : Log-probability of rankings without ties.
    bucket_log_prob_vjp : Gradient of the log-probability.

    Notes
    -----
    With :math:`w = \exp(f)` and :math:`W_m` the sum of the weights after bucket :math:`B_m`,

    .. math:: \ln P = \sum_{m < M} \ln \int_0^1 \prod_{i \in B_m} \left(1 - u^{w_i / W_m}\right) du

    One integral sums all n! orders of n tied documents. The cost is O(D log D), and 24 to 96 exponentials a document.
    The error is below 1e-10 of max(1, abs(ln P)) at any distance of the scores, for up to 100,000 documents; it may
    grow in proportion to their number beyond. The integrands are log-concave in the logarithm of the arrival time, and
    the nodes of each integral follow from a bound on its error, so no constant is fitted.

    Source of the integral: Ma et al., "Learning-to-rank with partitioned preference: fast estimation for the
    Plackett-Luce model", AISTATS 2021.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.bucket_log_prob([0.0, 0.0, 0.0], [0, 0, 1]).round(4)     # the last of three equal documents: 1/3
    array([-1.0986])
    """
    return 0.0 - negative_log_likelihood(scores, buckets, offsets, n_threads, 0)[0]


@overload
def bucket_log_prob_vjp(
    scores: ArrayLike, buckets: ArrayLike, cotangent: ArrayLike, *, offsets: ArrayLike | None = None,
    hessian: Literal[False] = False, n_threads: int | None = None, out: FloatArray | None = None,
) -> FloatArray: ...  # fmt: skip
@overload
def bucket_log_prob_vjp(
    scores: ArrayLike, buckets: ArrayLike, cotangent: ArrayLike, *, offsets: ArrayLike | None = None,
    hessian: Literal[True], n_threads: int | None = None, out: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[FloatArray, FloatArray]: ...  # fmt: skip
def bucket_log_prob_vjp(
    scores: ArrayLike,
    buckets: ArrayLike,
    cotangent: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    hessian: bool = False,
    n_threads: int | None = None,
    out: FloatArray | tuple[FloatArray, FloatArray] | None = None,
) -> FloatArray | tuple[FloatArray, FloatArray]:
    """Compute the gradient of sum_q v_q ln P_q with respect to the scores, P_q the probability of a bucket order.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights of the documents, all queries one after another; any finite values at any distance.
    buckets : array_like of int, shape (n_docs,)
        The bucket of each document, up to 2**53 in magnitude. Documents of a smaller number come first, and the order
        of documents with the same number is unknown: minus the labels, or 0 for the documents that were shown and 1 for
        the rest. The log-probability is -inf, without a gradient, if a document with the score -inf comes before one
        with a finite score; otherwise documents with the score -inf do not count.
    cotangent : array_like, shape (n_queries,)
        v: derivative of a scalar loss by each log-probability; finite, of either sign.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    hessian : bool
        Whether to return the diagonal of the Hessian of the sum too.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.
    out : ndarray, shape (n_docs,), float64, or a pair of them with ``hessian``, optional
        Where to write the result.

    Returns
    -------
    gradient : ndarray, shape (n_docs,), float64
        Derivative of the sum by each score. Its sum over a query is 0.
    diagonal : ndarray, shape (n_docs,), float64
        Second derivative of the sum by each score. Only with ``hessian``.

    Notes
    -----
    The error of the gradient is below 1e-10 of its largest term, also where P is nearly 1 and all terms are small. The
    error of the diagonal is below 1e-10 of the same term, or of 1 if this is larger, times the number of buckets. A
    document has one term from its own bucket and one from each bucket before it; both are means under the integrands of
    ``bucket_log_prob``, at the same nodes.

    Examples
    --------
    >>> import plrank_fast as plr
    >>> plr.bucket_log_prob_vjp([0.0, 0.0, 0.0], [0, 0, 1], [6.0]).round(4)
    array([ 2.5, 2.5, -5. ])
    """
    wanted = validation.flag(hessian, "hessian")
    offsets_ = validation.query_offsets(offsets, validation.real_array(scores, "scores", minus_infinity=True).size)
    factors = validation.one_entry_each(
        validation.real_array(cotangent, "cotangent"), "cotangent", offsets_.size - 1, "queries"
    )
    validation.within(factors, "cotangent", -validation.LARGEST_MAGNITUDE, validation.LARGEST_MAGNITUDE)
    shape = (int(offsets_[-1]),)
    outputs = validation.output_pair(out, shape) if wanted else (validation.output(out, shape),)
    _, *results = negative_log_likelihood(scores, buckets, offsets_, n_threads, 2 if wanted else 1)
    each = -np.repeat(factors, np.diff(offsets_))
    gradient, *diagonal = (
        validation.deliver(each * result, place) for result, place in zip(results, outputs, strict=False)
    )
    return (gradient, diagonal[0]) if wanted else gradient


def of_orders(
    scores: FloatArray, buckets: IntArray, cotangent: FloatArray | None = None, n_threads: int | None = None
) -> FloatArray:
    """Compute the log-probability of each row of ``buckets``, (..., n_items), under scores that broadcast to it.

    With a ``cotangent``, (...,), the result is the gradient by the scores of each row, (..., n_items).
    """
    rows, numbers = np.broadcast_to(scores, buckets.shape).reshape(-1), buckets.reshape(-1)
    batch: dict[str, Any] = {
        "offsets": np.arange(np.prod(buckets.shape[:-1], dtype=np.int64) + 1) * buckets.shape[-1],
        "n_threads": n_threads,
    }
    if cotangent is None:
        return bucket_log_prob(rows, numbers, **batch).reshape(buckets.shape[:-1])
    return bucket_log_prob_vjp(rows, numbers, cotangent.reshape(-1), **batch).reshape(buckets.shape)


def negative_log_likelihood(
    scores: ArrayLike, buckets: ArrayLike, offsets: ArrayLike | None, n_threads: int | None, derivatives: int
) -> tuple[FloatArray, ...]:
    """Compute the loss whose labels are minus the buckets, its gradient, and the diagonal of its Hessian."""
    scores_ = validation.real_array(scores, "scores", minus_infinity=True)
    labels = -validation.whole_numbers(validation.of_documents(buckets, "buckets", scores_), "buckets").astype(float)
    offsets = validation.query_offsets(offsets, scores_.size)
    kept, starts, possible, offsets_ = validation.items_that_can_be_drawn(scores_, offsets)
    of_kept = labels if possible is None else labels[possible]
    batch = batch_of(kept, of_kept, None, starts, validation.threads(n_threads))
    loss, *slopes = _losses.evaluate(BUCKET_ORDER, batch, n_derivatives=derivatives)[: 1 + derivatives]
    if possible is not None:
        last = np.full(loss.size, np.inf)
        np.minimum.at(last, np.repeat(np.arange(loss.size), np.diff(starts)), of_kept)
        query = np.repeat(np.arange(loss.size), np.diff(offsets_))
        early = np.bincount(query, (scores_ == -np.inf) & (labels > last[query]), loss.size) > 0.0
        loss[early] = np.inf
        slopes = [validation.of_all_items(slope, possible, offsets_) * ~early[query] for slope in slopes]
    return loss, *slopes
