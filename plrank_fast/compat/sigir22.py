"""Functions of the published experiments of SIGIR 2022, with their names, arguments and shapes.

A training script of "Learning-to-Rank at the Speed of Sampling: Plackett-Luce Gradient Estimation With Minimal
Computational Complexity" (Oosterhuis, SIGIR 2022) changes its imports and nothing else::

    from plrank_fast.compat import sigir22 as plr    # algorithms.PLRank
    from plrank_fast.compat import sigir22 as sr     # algorithms.stochasticrank
    from plrank_fast.compat import sigir22 as ll     # algorithms.lambdaloss
    from plrank_fast.compat import sigir22 as tfl    # algorithms.tensorflowloss
    from plrank_fast.compat import sigir22 as pl     # utils.plackettluce

So does one of "Computationally Efficient Optimization of Plackett-Luce Ranking Models for Relevance and Fairness"
(SIGIR 2021), but for its pairwise loss. The functions have the arguments that these scripts pass.

Gradients are directions of ascent in float64. Results equal the published ones up to noise, except for errors there:

- ``gumbel_stochasticrank`` and ``normal_stochasticrank`` masked the placed documents where the others were meant, and
  were biased by 4 to 64 %. Here they are unbiased.
- ``PL_rank_2`` clamped the remaining weight at 1e-8 of the total (an error of 1.1 at a gap of 25 between scores), and
  ``PL_rank_1`` and ``PL_rank_3`` gave NaN at gaps of 36 and 760. Here they are right at every gap. ``PL_rank_3`` needed
  full rankings without saying so; here the first K documents are enough.
- ``lambdaloss`` sorted by ascending score and, with more documents than rank weights, left those past the cutoff in
  the order of a partition; it overflowed to NaN at gaps above 709. Here the ranks are those of all documents by
  descending score.

Random numbers come from the global generator of ``numpy.random``, as in the published code: ``numpy.random.seed(0)``
makes a script repeatable. One call for a batch is faster than one for each query: ``plrank_fast.pl_rank_3`` and the
other functions of the library take ``offsets``, which are ``batch_ranges`` in the script.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random.mtrand import get_bit_generator
from numpy.typing import ArrayLike, NDArray

import plrank_fast
from plrank_fast import validation
from plrank_fast._shared.extras import import_extra
from plrank_fast.validation import FloatArray

__all__ = [
    "PL_rank_1", "PL_rank_2", "PL_rank_3", "gumbel_sample_rankings", "gumbel_stochasticrank", "lambdaloss",
    "normal_stochasticrank", "placement_policy_gradient", "policy_gradient",
]  # fmt: skip

Rankings = NDArray[np.int64]


# --- gradients


def _scores_and_labels(scores: ArrayLike, labels: ArrayLike) -> tuple[FloatArray, FloatArray]:
    scores_ = validation.real_array(scores, "scores")
    offsets = validation.query_offsets(None, scores_.size)
    return scores_, validation.of_documents(labels, "labels", scores_, offsets, scores_first=False)


def _samples(n_samples: int | None, instead: str = "") -> int:
    return validation.count(validation.given(n_samples, "n_samples", instead), "n_samples", 1)


def _gradient(
    estimator: Callable[..., Any],
    rank_weights: ArrayLike,
    labels: ArrayLike,
    scores: Any,
    n_samples: int | None,
    sampled_rankings: ArrayLike | None,
) -> Any:
    """Call an estimator of the library with the arguments of a published function."""
    of_tensorflow = type(scores).__module__.partition(".")[0] == "tensorflow"
    log_weights = scores.numpy() if of_tensorflow else validation.as_array(scores, "scores")
    if log_weights.ndim == 2 and log_weights.shape[1] == 1:
        log_weights = log_weights[:, 0]
    log_weights, gains = _scores_and_labels(log_weights, labels)
    if sampled_rankings is not None:
        options: dict[str, Any] = {
            "rankings": validation.integer_array(sampled_rankings, "sampled_rankings", ndim=None)
        }
    else:
        options = {"n_samples": _samples(n_samples, ", or sampled_rankings"), "rng": get_bit_generator()}
    gradient = estimator(log_weights, gains, rank_weights, offsets=[0, gains.size], **options)
    if not of_tensorflow:
        return gradient
    tf = import_extra("tensorflow", "tensorflow")
    return -tf.reduce_sum(tf.reshape(scores, [-1]) * tf.constant(gradient, dtype=scores.dtype))


@validation.hinted
def PL_rank_1(
    rank_weights: ArrayLike,
    labels: ArrayLike,
    scores: Any,
    n_samples: int | None = None,
    sampled_rankings: ArrayLike | None = None,
) -> Any:
    """Estimate the gradient of the expected metric with PL-Rank-1, by ``plrank_fast.pl_rank_1``.

    Parameters
    ----------
    rank_weights : array_like, shape (K,)
        Weight of each rank.
    labels : array_like, shape (n_docs,)
        Gain of each document: in the published script ``2**label - 1``.
    scores : array_like, shape (n_docs,) or (n_docs, 1), or a TensorFlow tensor
        Log-weights.
    n_samples : int, optional
        Rankings to draw, N.
    sampled_rankings : array_like of int, shape (N, K or more), optional
        Rankings to use instead.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Gradient of the expected metric: the direction of ascent. If ``scores`` is a TensorFlow tensor, a scalar loss
        whose gradient is minus this; its value has no meaning.
    """
    return _gradient(plrank_fast.pl_rank_1, rank_weights, labels, scores, n_samples, sampled_rankings)


@validation.hinted
def PL_rank_2(
    rank_weights: ArrayLike,
    labels: ArrayLike,
    scores: Any,
    n_samples: int | None = None,
    sampled_rankings: ArrayLike | None = None,
) -> Any:
    """Estimate the gradient of the expected metric with PL-Rank-2, by ``plrank_fast.pl_rank_2``.

    Parameters
    ----------
    rank_weights : array_like, shape (K,)
        Weight of each rank.
    labels : array_like, shape (n_docs,)
        Gain of each document: in the published script ``2**label - 1``.
    scores : array_like, shape (n_docs,) or (n_docs, 1), or a TensorFlow tensor
        Log-weights.
    n_samples : int, optional
        Rankings to draw, N.
    sampled_rankings : array_like of int, shape (N, K or more), optional
        Rankings to use instead.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Gradient or loss, as `PL_rank_1` returns it.
    """
    return _gradient(plrank_fast.pl_rank_2, rank_weights, labels, scores, n_samples, sampled_rankings)


@validation.hinted
def PL_rank_3(
    rank_weights: ArrayLike,
    labels: ArrayLike,
    scores: Any,
    n_samples: int | None = None,
    sampled_rankings: ArrayLike | None = None,
) -> Any:
    """Estimate the gradient of the expected metric with PL-Rank-3, by ``plrank_fast.pl_rank_3``.

    Parameters
    ----------
    rank_weights : array_like, shape (K,)
        Weight of each rank.
    labels : array_like, shape (n_docs,)
        Gain of each document: in the published script ``2**label - 1``.
    scores : array_like, shape (n_docs,) or (n_docs, 1), or a TensorFlow tensor
        Log-weights.
    n_samples : int, optional
        Rankings to draw, N.
    sampled_rankings : array_like of int, shape (N, K or more), optional
        Rankings to use instead.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Gradient or loss, as `PL_rank_1` returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from plrank_fast.compat.sigir22 import PL_rank_3
    >>> PL_rank_3(np.array([1.0]), np.array([0, 1]), np.zeros(2), sampled_rankings=np.array([[0, 1], [1, 0]]))
    array([-0.25,  0.25])
    """
    return _gradient(plrank_fast.pl_rank_3, rank_weights, labels, scores, n_samples, sampled_rankings)


@validation.hinted
def policy_gradient(
    rank_weights: ArrayLike,
    labels: ArrayLike,
    scores: Any,
    n_samples: int | None = None,
    sampled_rankings: ArrayLike | None = None,
) -> Any:
    """Estimate the gradient with REINFORCE on whole rankings, by ``plrank_fast.policy_gradient``.

    Parameters
    ----------
    rank_weights : array_like, shape (K,)
        Weight of each rank.
    labels : array_like, shape (n_docs,)
        Gain of each document: in the published script ``2**label - 1``.
    scores : array_like, shape (n_docs,) or (n_docs, 1), or a TensorFlow tensor
        Log-weights.
    n_samples : int, optional
        Rankings to draw, N.
    sampled_rankings : array_like of int, shape (N, K or more), optional
        Rankings to use instead.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Gradient or loss, as `PL_rank_1` returns it.
    """
    return _gradient(plrank_fast.policy_gradient, rank_weights, labels, scores, n_samples, sampled_rankings)


@validation.hinted
def placement_policy_gradient(
    rank_weights: ArrayLike,
    labels: ArrayLike,
    scores: Any,
    n_samples: int | None = None,
    sampled_rankings: ArrayLike | None = None,
) -> Any:
    """Estimate the gradient with REINFORCE on placements, by ``plrank_fast.placement_policy_gradient``.

    Parameters
    ----------
    rank_weights : array_like, shape (K,)
        Weight of each rank.
    labels : array_like, shape (n_docs,)
        Gain of each document: in the published script ``2**label - 1``.
    scores : array_like, shape (n_docs,) or (n_docs, 1), or a TensorFlow tensor
        Log-weights.
    n_samples : int, optional
        Rankings to draw, N.
    sampled_rankings : array_like of int, shape (N, K or more), optional
        Rankings to use instead.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Gradient or loss, as `PL_rank_1` returns it.
    """
    return _gradient(plrank_fast.placement_policy_gradient, rank_weights, labels, scores, n_samples, sampled_rankings)


def _stochasticrank(
    noise: validation.Noise, rank_weights: ArrayLike, labels: ArrayLike, scores: ArrayLike, n_samples: int | None
) -> FloatArray:
    """Call StochasticRank with the arguments of the published functions."""
    scores_, labels_ = _scores_and_labels(scores, labels)
    return plrank_fast.stochastic_rank(
        scores_, labels_, rank_weights, offsets=[0, scores_.size], noise=noise, n_samples=_samples(n_samples),
        rng=get_bit_generator(),
    )  # fmt: skip


@validation.hinted
def gumbel_stochasticrank(
    rank_weights: ArrayLike, labels: ArrayLike, scores: ArrayLike, n_samples: int | None = None
) -> FloatArray:
    """Estimate the gradient with StochasticRank under Gumbel noise, by ``plrank_fast.stochastic_rank``.

    Unlike the published estimator it is unbiased.

    Parameters
    ----------
    rank_weights : array_like, shape (K,)
        Weight of each rank.
    labels : array_like, shape (n_docs,)
        Gain of each document: in the published script ``2**label - 1``.
    scores : array_like, shape (n_docs,)
        Log-weights.
    n_samples : int, optional
        Rankings to draw, N.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Gradient of the expected metric: the direction of ascent.
    """
    return _stochasticrank("gumbel", rank_weights, labels, scores, n_samples)


@validation.hinted
def normal_stochasticrank(
    rank_weights: ArrayLike, labels: ArrayLike, scores: ArrayLike, n_samples: int | None = None
) -> FloatArray:
    """Estimate the gradient with StochasticRank under normal noise, by ``plrank_fast.stochastic_rank``.

    Unlike the published estimator it is unbiased.

    Parameters
    ----------
    rank_weights : array_like, shape (K,)
        Weight of each rank.
    labels : array_like, shape (n_docs,)
        Gain of each document: in the published script ``2**label - 1``.
    scores : array_like, shape (n_docs,)
        Log-weights.
    n_samples : int, optional
        Rankings to draw, N.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Gradient of the expected metric: the direction of ascent.
    """
    return _stochasticrank("normal", rank_weights, labels, scores, n_samples)


@validation.hinted
def lambdaloss(
    rank_weights: ArrayLike,
    labels: ArrayLike,
    scores: ArrayLike,
    n_samples: int | None = None,
    sampled_inv_rankings: ArrayLike | None = None,
    gumbel_scores: ArrayLike | None = None,
) -> FloatArray:
    r"""Compute the gradient of the published LambdaLoss, which weights pairs by the distance of their ranks.

    ``plrank_fast.losses.lambda_loss`` is another loss: NDCG-Loss2++ of the LambdaLoss paper.

    Parameters
    ----------
    rank_weights : array_like, shape (K,)
        Weight of each rank.
    labels : array_like, shape (n_docs,)
        Gain of each document: in the published script ``2**label - 1``.
    scores : array_like, shape (n_docs,)
        Log-weights.
    n_samples : int, optional
        Draws of Gumbel noise to add to the scores; the result is the mean over them, as in the code of 2021.
    sampled_inv_rankings
        Not needed: the rankings follow from ``gumbel_scores``.
    gumbel_scores : array_like, shape (N, n_docs), optional
        Scores with noise, to use instead of drawing it.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Gradient of minus the loss: the direction of ascent.

    Notes
    -----
    With m = abs(r_i - r_j), the result is the gradient of

    .. math:: -\sum_{i, j: y_i > y_j} (\theta_m - \theta_{m + 1}) (y_i - y_j) \log_2\left(1 + e^{f_j - f_i}\right)

    Ranks r are by descending score, of equal scores the lower index first, and the weights are held fixed. NumPy takes
    O(N D log D + N D K), as pairs further apart than K have no weight.

    Examples
    --------
    >>> import numpy as np
    >>> from plrank_fast.compat.sigir22 import lambdaloss
    >>> lambdaloss(np.array([1.0]), np.array([0, 1]), np.zeros(2)).round(4)  # 0.5 / log(2)
    array([-0.7213,  0.7213])
    """
    scores_, labels_ = _scores_and_labels(scores, labels)
    weights = validation.within_limits(validation.real_array(rank_weights, "rank_weights"), "rank_weights")
    drops = -np.diff(weights, append=0.0)
    if gumbel_scores is not None:
        drawn = validation.real_array(gumbel_scores, "gumbel_scores", ndim=(2,))
        is_fit, expected = drawn.size and drawn.shape[1] == scores_.size, f"shape (N, {scores_.size})"
        validation.require(is_fit, f"gumbel_scores must have {expected}, got {drawn.shape}")
    else:
        drawn = scores_[np.newaxis] if n_samples is None else _with_noise(scores_, n_samples)
    order = np.argsort(-drawn, axis=1, kind="stable")
    ranked, worth, pushed = np.take_along_axis(drawn, order, axis=1), labels_[order], np.zeros(order.shape)
    for distance in range(1, min(drops.size, scores_.size - 1) + 1):
        better = worth[:, :-distance] - worth[:, distance:]  # the upper of each pair is better by this
        with np.errstate(over="ignore"):  # exp(709) and more: the pair is in order, its push 0
            wrong = 1.0 / (1.0 + np.exp(np.sign(better) * (ranked[:, :-distance] - ranked[:, distance:])))
        push = drops[distance - 1] / np.log(2.0) * better * wrong
        pushed[:, :-distance] += push
        pushed[:, distance:] -= push
    gradient = np.empty(drawn.shape)
    np.put_along_axis(gradient, order, pushed, axis=1)
    return gradient.mean(axis=0)


# --- rankings


@validation.hinted
def gumbel_sample_rankings(
    log_scores: ArrayLike,
    n_samples: int,
    cutoff: int | None = None,
    inverted: bool = False,
    *,
    return_gumbel: bool = False,
) -> tuple[Rankings, Rankings | None, None, None, FloatArray | None]:
    """Draw rankings from the Plackett-Luce distribution of ``log_scores``, by ``plrank_fast.sample_rankings``.

    Parameters
    ----------
    log_scores : array_like, shape (n_docs,)
        Log-weights.
    n_samples : int
        Rankings to draw, N.
    cutoff : int, optional
        Ranks, K; all with None or 0.
    inverted, return_gumbel : bool
        Whether to return these results.

    Returns
    -------
    rankings : ndarray of int64, shape (N, min(K, n_docs))
    inverted_rankings : ndarray of int64, shape (N, n_docs), or None
        Rank of each document, from 0; the cutoff for those past it.
    probabilities, probabilities_per_rank : None
        The scripts do not ask for these.
    gumbel_scores : ndarray, shape (N, n_docs), or None
        Scores with noise, whose order the rankings are; NumPy draws it, which takes longer.
    """
    with_inverse, with_noise = validation.flag(inverted, "inverted"), validation.flag(return_gumbel, "return_gumbel")
    scores = validation.real_array(log_scores, "log_scores")
    ranks = validation.ranks_that_count(cutoff, scores.size) or scores.size
    noisy = _with_noise(scores, n_samples) if with_noise else None
    if noisy is not None:
        rankings = np.argsort(-noisy, axis=1, kind="stable")[:, :ranks]
    else:
        drawn = plrank_fast.sample_rankings(scores, n_samples, ranks, rng=get_bit_generator())
        rankings = drawn.astype(np.int64)
    inverse = None
    if with_inverse:
        inverse = np.full((len(rankings), scores.size), ranks)
        np.put_along_axis(inverse, rankings, np.arange(ranks)[np.newaxis], axis=1)
    return rankings, inverse, None, None, noisy


def _with_noise(scores: FloatArray, n_samples: int | None) -> FloatArray:
    size = _samples(n_samples), scores.size
    return scores + np.random.Generator(get_bit_generator()).gumbel(size=size)
