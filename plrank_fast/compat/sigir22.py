"""Functions of the published experiments of SIGIR 2022, with their names, arguments and shapes.

A script of "Learning-to-Rank at the Speed of Sampling" (Oosterhuis, SIGIR 2022) changes its imports and nothing else::

    # in place of algorithms.PLRank, stochasticrank, lambdaloss and tensorflowloss, and of utils.plackettluce
    from plrank_fast.compat import sigir22 as plr, sigir22 as sr, sigir22 as ll, sigir22 as tfl, sigir22 as pl

So does one of "Computationally Efficient Optimization of Plackett-Luce Ranking Models for Relevance and Fairness"
(SIGIR 2021), but for its pairwise loss. The functions have the arguments that these scripts pass.

Gradients are directions of ascent in float64. Results equal the published ones up to noise, except for errors there:

- ``gumbel_stochasticrank`` and ``normal_stochasticrank`` masked the placed documents where the others were meant, and
  were biased by 4 to 64 %. Here they are unbiased.
- ``PL_rank_2`` clamped the remaining weight at 1e-8 of the total (an error of 1.1 at a gap of 25 between scores), and
  ``PL_rank_1`` and ``PL_rank_3`` gave NaN at gaps of 36 and 760. Here they are right at every gap. ``PL_rank_3`` needed
  full rankings without saying so; here the first K documents are enough.
- ``lambdaloss`` sorted by ascending score and, with more documents than rank weights, left documents past the cutoff in
  the order of a partition; it overflowed to NaN at gaps above 709. Here all documents are ranked by descending score.

Random numbers come from the global generator of ``numpy.random``, as in the published code: ``numpy.random.seed(0)``
makes a script repeatable. One call for a batch is faster than one for each query: the library's own functions take
``offsets``, which are ``batch_ranges`` in the script.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.random.mtrand import get_bit_generator
from numpy.typing import ArrayLike, NDArray

import plrank_fast
from plrank_fast import validation
from plrank_fast._shared.extras import import_extra

__all__ = [
    "PL_rank_1", "PL_rank_2", "PL_rank_3", "gumbel_sample_rankings", "gumbel_stochasticrank", "lambdaloss",
    "normal_stochasticrank", "placement_policy_gradient", "policy_gradient",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


def _scores_and_labels(scores: ArrayLike, labels: ArrayLike) -> tuple[validation.FloatArray, validation.FloatArray]:
    scores_ = validation.real_array(scores, "scores")
    offsets = validation.query_offsets(None, scores_.size)
    return scores_, validation.of_documents(labels, "labels", scores_, offsets, scores_first=False)


def _with_noise(scores: validation.FloatArray, n_samples: int) -> validation.FloatArray:
    size = validation.count(n_samples, "n_samples", 1), scores.size
    return scores + np.random.Generator(get_bit_generator()).gumbel(size=size)


class _Gradient(Protocol):
    def __call__(self, rank_weights: ArrayLike, labels: ArrayLike, scores: Any, n_samples: int | None = None,
                 sampled_rankings: ArrayLike | None = None) -> Any: ...  # fmt: skip


def _published(name: str, estimator: Callable[..., Any], **options: Any) -> _Gradient:
    """Give an estimator of the library a published name, and the published arguments."""

    def gradient(rank_weights, labels, scores, n_samples=None, sampled_rankings=None):  # type: ignore[no-untyped-def]
        """Estimate the gradient of the expected metric by ``plrank_fast.pl_rank_3``.

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
            Rankings to use instead; StochasticRank does not take them.

        Returns
        -------
        ndarray, shape (n_docs,), float64
            Direction of ascent. If ``scores`` is a TensorFlow tensor, a scalar loss whose gradient is minus this.
        """
        of_tensorflow = type(scores).__module__.partition(".")[0] == "tensorflow"
        column = scores.numpy() if of_tensorflow else validation.as_array(scores, "scores")
        log_weights, gains = _scores_and_labels(column[:, 0] if column.shape[1:] == (1,) else column, labels)
        if sampled_rankings is None:
            n_samples = validation.given(n_samples, "n_samples", "" if options else ", or sampled_rankings")
            given = {"n_samples": n_samples, "rng": get_bit_generator()}
        else:
            validation.goes_with(sampled_rankings, "sampled_rankings", not options, "estimators that take rankings")
            given = {"rankings": validation.integer_array(sampled_rankings, "sampled_rankings", ndim=None)}
        ascent = estimator(log_weights, gains, rank_weights, offsets=[0, gains.size], **given, **options)
        if not of_tensorflow:
            return ascent
        tf = import_extra("tensorflow", "tensorflow")
        return -tf.reduce_sum(tf.reshape(scores, [-1]) * tf.constant(ascent, dtype=scores.dtype))

    gradient.__name__ = gradient.__qualname__ = name
    gradient.__doc__ = (gradient.__doc__ or "").replace("pl_rank_3", estimator.__name__)
    return gradient


PL_rank_1: _Gradient = _published("PL_rank_1", plrank_fast.pl_rank_1)
PL_rank_2: _Gradient = _published("PL_rank_2", plrank_fast.pl_rank_2)
PL_rank_3: _Gradient = _published("PL_rank_3", plrank_fast.pl_rank_3)
policy_gradient: _Gradient = _published("policy_gradient", plrank_fast.policy_gradient)
placement_policy_gradient: _Gradient = _published("placement_policy_gradient", plrank_fast.pl_rank_1)
gumbel_stochasticrank: _Gradient = _published("gumbel_stochasticrank", plrank_fast.stochastic_rank, noise="gumbel")
normal_stochasticrank: _Gradient = _published("normal_stochasticrank", plrank_fast.stochastic_rank, noise="normal")


def lambdaloss(
    rank_weights: ArrayLike, labels: ArrayLike, scores: ArrayLike, n_samples: int | None = None,
    sampled_inv_rankings: ArrayLike | None = None, gumbel_scores: ArrayLike | None = None,
) -> validation.FloatArray:  # fmt: skip
    """Compute the gradient of minus the published LambdaLoss: the direction of ascent.

    The loss is the sum of (theta_m - theta_{m + 1}) (y_i - y_j) log2(1 + exp(f_j - f_i)) over pairs with y_i > y_j,
    where m = abs(r_i - r_j). Ranks r are by descending score, of equal scores the lower index first, and fixed. Another
    loss, NDCG-Loss2++ of the LambdaLoss paper, is ``plrank_fast.losses.lambda_loss``.

    Parameters
    ----------
    rank_weights, labels : array_like
        Arguments of `PL_rank_3`.
    scores : array_like, shape (n_docs,)
        Log-weights of the documents, all queries one after another; any finite values at any distance.
    n_samples : int, optional
        Draws of Gumbel noise to add to the scores; the result is the mean over them, as in the code of 2021.
    sampled_inv_rankings : not needed, since the rankings follow from ``gumbel_scores``
    gumbel_scores : array_like, shape (N, n_docs), optional
        Scores with noise, to use instead of drawing it.

    Returns
    -------
    ndarray, shape (n_docs,), float64
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
    return np.take_along_axis(pushed, np.argsort(order, axis=1), axis=1).mean(axis=0)


def gumbel_sample_rankings(
    log_scores: ArrayLike, n_samples: int, cutoff: int | None = None, inverted: bool = False, *,
    return_gumbel: bool = False,
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None, None, None, validation.FloatArray | None]:  # fmt: skip
    """Draw rankings from the Plackett-Luce distribution of ``log_scores``, by ``plrank_fast.sample_rankings``.

    Parameters
    ----------
    log_scores : array_like, shape (n_docs,)
        Log-weights.
    n_samples, cutoff : int
        Rankings to draw, N, and their ranks, K: all with None or 0.
    inverted, return_gumbel : bool
        Whether to return these results.

    Returns
    -------
    rankings : ndarray of int64, shape (N, min(K, n_docs))
    inverted_rankings : ndarray of int64, shape (N, n_docs), or None
        Rank of each document, from 0; the cutoff for those past it.
    probabilities, probabilities_per_rank : None, for which the scripts do not ask
    gumbel_scores : ndarray, shape (N, n_docs), or None
        Scores with noise, whose order the rankings are; NumPy draws it, which takes longer.
    """
    with_inverse, with_noise = validation.flag(inverted, "inverted"), validation.flag(return_gumbel, "return_gumbel")
    scores = validation.real_array(log_scores, "log_scores")
    ranks = validation.ranks_that_count(cutoff, scores.size) or scores.size
    noisy, inverse = _with_noise(scores, n_samples) if with_noise else None, None
    if noisy is not None:
        rankings = np.argsort(-noisy, axis=1, kind="stable")[:, :ranks]
    else:
        rankings = plrank_fast.sample_rankings(scores, n_samples, ranks, rng=get_bit_generator()).astype(np.int64)
    if with_inverse:
        inverse = np.full((len(rankings), scores.size), ranks)
        np.put_along_axis(inverse, rankings, np.arange(ranks)[np.newaxis], axis=1)
    return rankings, inverse, None, None, noisy
