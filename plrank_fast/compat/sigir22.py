"""Functions of the published experiments of SIGIR 2022, with their names, arguments and shapes.

A training script of "Learning-to-Rank at the Speed of Sampling: Plackett-Luce Gradient Estimation With Minimal
Computational Complexity" (Oosterhuis, SIGIR 2022) changes its imports and nothing else::

    from plrank_fast.compat import sigir22 as plr    # algorithms.PLRank
    from plrank_fast.compat import sigir22 as sr     # algorithms.stochasticrank
    from plrank_fast.compat import sigir22 as ll     # algorithms.lambdaloss
    from plrank_fast.compat import sigir22 as tfl    # algorithms.tensorflowloss
    from plrank_fast.compat import sigir22 as pl     # utils.plackettluce

Gradients are directions of ascent in float64. Results equal the published ones up to noise, except for errors there:

- ``gumbel_stochasticrank`` and ``normal_stochasticrank`` masked the placed documents where the others were meant, and
  were biased by 4 to 64 %. Here they are unbiased.
- ``PL_rank_2`` clamped the remaining weight at 1e-8 of the total (an error of 1.1 at a gap of 25 between scores), and
  ``PL_rank_1`` and ``PL_rank_3`` gave NaN at gaps of 36 and 760. Here they are right at every gap. ``PL_rank_3`` needed
  full rankings without saying so; here the first K documents are enough.
- ``lambdaloss`` sorted by ascending score and, with more documents than rank weights, left those past the cutoff in
  the order of a partition; it overflowed to NaN at gaps above 709. Here the ranks are those of all documents by
  descending score.

Every function takes a batch too: ``offsets=`` says where each query's documents start (``batch_ranges`` in the script),
``sampled_rankings`` have shape (n_queries, N, K) then, and one call per batch is faster still.

``rng=`` is the source of random numbers. Without it they come from one generator, which is derived from the global
state of ``numpy.random`` when it is first needed: ``numpy.random.seed(0)`` at the start of a script makes it
repeatable. `reseed` derives it anew. A forked child derives its own generator, which differs from those of its siblings
unless it has seeded ``numpy.random``.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import plrank_fast
from plrank_fast import validation
from plrank_fast._core.gradients import stochastic_rank as _stochastic_rank
from plrank_fast._shared.extras import import_extra
from plrank_fast.validation import FloatArray, IntArray, RandomState

LARGEST_NOISE = 700.0  # its exponential is a double; no generator draws a tenth of it

__all__ = [
    "PL_rank_1", "PL_rank_2", "PL_rank_3", "gumbel_sample_rankings", "gumbel_stochasticrank", "lambdaloss",
    "normal_sample_rankings", "normal_stochasticrank", "placement_policy_gradient", "policy_gradient", "reseed",
    "sample_rankings",
]  # fmt: skip

Rankings = NDArray[np.int64]


# --- random numbers


class _DerivedGenerator:
    """One generator for all calls without ``rng``, derived from the global state of ``numpy.random`` at first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._generator: np.random.Generator | None = None
        self._at_fork: bytes | None = None

    def get(self) -> np.random.Generator:
        """Return the generator, which is derived at the first call."""
        with self._lock:
            if self._generator is None:
                unseeded = self._at_fork is not None and self._at_fork == self._global_state()
                words = np.random.randint(0, 2**32, size=4, dtype=np.uint32).tolist()  # noqa: NPY002
                self._generator = np.random.default_rng([*words, os.getpid()] if unseeded else words)
            return self._generator

    def forget(self) -> None:
        """Derive the generator anew when it is needed next."""
        with self._lock:
            self._generator = self._at_fork = None

    def forget_in_child(self) -> None:
        """Note the global state after a fork, with which all siblings start and which they may still seed."""
        self._lock = threading.Lock()  # another thread of the parent may have held it
        self._generator, self._at_fork = None, self._global_state()

    @staticmethod
    def _global_state() -> bytes:
        _, words, position, *_ = np.random.get_state()  # noqa: NPY002
        return np.append(words, np.uint32(position)).tobytes()


_derived = _DerivedGenerator()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_derived.forget_in_child)


def reseed() -> None:
    """Derive the generator of calls without ``rng`` anew from ``numpy.random``, when it is needed next.

    Call it in scripts that call ``numpy.random.seed`` more than once in a process.
    """
    _derived.forget()


def _source(rng: RandomState) -> RandomState:
    return _derived.get() if rng is None else rng


# --- gradients


def _scores_and_labels(
    scores: ArrayLike, labels: ArrayLike, offsets: ArrayLike | None
) -> tuple[FloatArray, FloatArray, IntArray]:
    scores_ = validation.real_array(scores, "scores")
    offsets_ = validation.query_offsets(offsets, scores_.size)
    return scores_, validation.of_documents(labels, "labels", scores_, offsets_, scores_first=False), offsets_


def _samples(n_samples: int | None, instead: str) -> int:
    return validation.count(validation.given(n_samples, "n_samples", f", or {instead}"), "n_samples", 1)


def _gradient(
    estimator: Callable[..., Any],
    rank_weights: ArrayLike,
    labels: ArrayLike,
    scores: Any,
    n_samples: int | None,
    sampled_rankings: ArrayLike | None,
    offsets: ArrayLike | None,
    rng: RandomState,
    n_threads: int | None,
) -> Any:
    """Call an estimator of the library with the arguments of a published function."""
    of_tensorflow = type(scores).__module__.partition(".")[0] == "tensorflow"
    log_weights = scores.numpy() if of_tensorflow else validation.as_array(scores, "scores")
    if log_weights.ndim == 2 and log_weights.shape[1] == 1:
        log_weights = log_weights[:, 0]
    log_weights, gains = _scores_and_labels(log_weights, labels, offsets)[:2]
    options: dict[str, Any] = {"offsets": offsets, "n_threads": n_threads}
    if sampled_rankings is not None:
        options["rankings"] = validation.integer_array(sampled_rankings, "sampled_rankings", ndim=None)
    else:
        options |= {"n_samples": _samples(n_samples, "sampled_rankings"), "rng": _source(rng)}
    gradient = estimator(log_weights, gains, rank_weights, **options)
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
    *,
    offsets: ArrayLike | None = None,
    rng: RandomState = None,
    n_threads: int | None = None,
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
        Rankings to use instead; (n_queries, N, K or more) with ``offsets``.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    rng : None, int, SeedSequence, BitGenerator or Generator
        By default the generator derived from ``numpy.random``.
    n_threads : int, optional
        None or -1: all available processors; -2: all but one.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Gradient of the expected metric: the direction of ascent. If ``scores`` is a TensorFlow tensor, a scalar loss
        whose gradient is minus this; its value has no meaning.
    """
    return _gradient(
        plrank_fast.pl_rank_1, rank_weights, labels, scores, n_samples, sampled_rankings, offsets, rng, n_threads
    )


@validation.hinted
def PL_rank_2(
    rank_weights: ArrayLike,
    labels: ArrayLike,
    scores: Any,
    n_samples: int | None = None,
    sampled_rankings: ArrayLike | None = None,
    *,
    offsets: ArrayLike | None = None,
    rng: RandomState = None,
    n_threads: int | None = None,
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
        Rankings to use instead; (n_queries, N, K or more) with ``offsets``.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    rng : None, int, SeedSequence, BitGenerator or Generator
        By default the generator derived from ``numpy.random``.
    n_threads : int, optional
        None or -1: all available processors; -2: all but one.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Gradient of the expected metric: the direction of ascent. If ``scores`` is a TensorFlow tensor, a scalar loss
        whose gradient is minus this; its value has no meaning.
    """
    return _gradient(
        plrank_fast.pl_rank_2, rank_weights, labels, scores, n_samples, sampled_rankings, offsets, rng, n_threads
    )


@validation.hinted
def PL_rank_3(
    rank_weights: ArrayLike,
    labels: ArrayLike,
    scores: Any,
    n_samples: int | None = None,
    sampled_rankings: ArrayLike | None = None,
    *,
    offsets: ArrayLike | None = None,
    rng: RandomState = None,
    n_threads: int | None = None,
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
        Rankings to use instead; (n_queries, N, K or more) with ``offsets``.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    rng : None, int, SeedSequence, BitGenerator or Generator
        By default the generator derived from ``numpy.random``.
    n_threads : int, optional
        None or -1: all available processors; -2: all but one.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Gradient of the expected metric: the direction of ascent. If ``scores`` is a TensorFlow tensor, a scalar loss
        whose gradient is minus this; its value has no meaning.

    Examples
    --------
    >>> import numpy as np
    >>> from plrank_fast.compat.sigir22 import PL_rank_3
    >>> PL_rank_3(np.array([1.0]), np.array([0, 1]), np.zeros(2), sampled_rankings=np.array([[0, 1], [1, 0]]))
    array([-0.25,  0.25])
    """
    return _gradient(
        plrank_fast.pl_rank_3, rank_weights, labels, scores, n_samples, sampled_rankings, offsets, rng, n_threads
    )


@validation.hinted
def policy_gradient(
    rank_weights: ArrayLike,
    labels: ArrayLike,
    scores: Any,
    n_samples: int | None = None,
    sampled_rankings: ArrayLike | None = None,
    *,
    offsets: ArrayLike | None = None,
    rng: RandomState = None,
    n_threads: int | None = None,
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
        Rankings to use instead; (n_queries, N, K or more) with ``offsets``.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    rng : None, int, SeedSequence, BitGenerator or Generator
        By default the generator derived from ``numpy.random``.
    n_threads : int, optional
        None or -1: all available processors; -2: all but one.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Gradient of the expected metric: the direction of ascent. If ``scores`` is a TensorFlow tensor, a scalar loss
        whose gradient is minus this; its value has no meaning.
    """
    return _gradient(
        plrank_fast.policy_gradient, rank_weights, labels, scores, n_samples, sampled_rankings, offsets, rng, n_threads
    )


@validation.hinted
def placement_policy_gradient(
    rank_weights: ArrayLike,
    labels: ArrayLike,
    scores: Any,
    n_samples: int | None = None,
    sampled_rankings: ArrayLike | None = None,
    *,
    offsets: ArrayLike | None = None,
    rng: RandomState = None,
    n_threads: int | None = None,
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
        Rankings to use instead; (n_queries, N, K or more) with ``offsets``.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    rng : None, int, SeedSequence, BitGenerator or Generator
        By default the generator derived from ``numpy.random``.
    n_threads : int, optional
        None or -1: all available processors; -2: all but one.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Gradient of the expected metric: the direction of ascent. If ``scores`` is a TensorFlow tensor, a scalar loss
        whose gradient is minus this; its value has no meaning.
    """
    return _gradient(
        plrank_fast.placement_policy_gradient,
        rank_weights,
        labels,
        scores,
        n_samples,
        sampled_rankings,
        offsets,
        rng,
        n_threads,
    )


def _stochasticrank(
    noise: validation.Noise,
    rank_weights: ArrayLike,
    labels: ArrayLike,
    scores: ArrayLike,
    n_samples: int | None,
    sampled_rankings: ArrayLike | None,
    sampled_values: ArrayLike | None,
    offsets: ArrayLike | None,
    rng: RandomState,
    n_threads: int | None,
) -> FloatArray:
    """Call StochasticRank with the arguments of the published functions."""
    noise_known = sampled_values is not None or sampled_rankings is None
    validation.require(noise_known, "sampled_values must be given with sampled_rankings: the noise counts too")
    scores_, labels_, offsets_ = _scores_and_labels(scores, labels, offsets)
    if sampled_values is None:
        return plrank_fast.stochastic_rank(
            scores_, labels_, rank_weights, noise=noise, offsets=offsets, n_threads=n_threads,
            n_samples=_samples(n_samples, "sampled_values"), rng=_source(rng),
        )  # fmt: skip
    validation.goes_with(offsets, "offsets", False, "sampled_values=None")
    given = validation.real_array(sampled_values, "sampled_values", ndim=(2,))
    is_fit, expected = given.size and given.shape[1] == scores_.size, f"shape (N, {scores_.size})"
    validation.require(is_fit, f"sampled_values must have {expected}, got {given.shape}")
    with np.errstate(over="ignore"):
        given = given - scores_
    validation.within(given, "sampled_values less scores", -LARGEST_NOISE, LARGEST_NOISE)
    return _stochastic_rank.stochastic_rank(
        scores_, labels_, rank_weights, offsets_, noise, 1.0, len(given), 0, n_threads, None, 0,
        np.exp(-given) if noise == "gumbel" else given,
    )  # fmt: skip


@validation.hinted
def gumbel_stochasticrank(
    rank_weights: ArrayLike,
    labels: ArrayLike,
    scores: ArrayLike,
    n_samples: int | None = None,
    sampled_rankings: ArrayLike | None = None,
    sampled_inv_rankings: ArrayLike | None = None,
    sampled_values: ArrayLike | None = None,
    *,
    offsets: ArrayLike | None = None,
    rng: RandomState = None,
    n_threads: int | None = None,
) -> FloatArray:
    """Estimate the gradient with StochasticRank under gumbel noise, by ``plrank_fast.stochastic_rank``.

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
    sampled_rankings, sampled_inv_rankings
        Not needed: they follow from ``sampled_values``, without which they must not be given.
    sampled_values : array_like, shape (N, n_docs), optional
        Scores with noise of a single query, to use instead of drawing.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    rng : None, int, SeedSequence, BitGenerator or Generator
        By default the generator derived from ``numpy.random``.
    n_threads : int, optional
        None or -1: all available processors; -2: all but one.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Gradient of the expected metric: the direction of ascent.
    """
    return _stochasticrank(
        "gumbel", rank_weights, labels, scores, n_samples, sampled_rankings, sampled_values, offsets, rng, n_threads
    )


@validation.hinted
def normal_stochasticrank(
    rank_weights: ArrayLike,
    labels: ArrayLike,
    scores: ArrayLike,
    n_samples: int | None = None,
    sampled_rankings: ArrayLike | None = None,
    sampled_inv_rankings: ArrayLike | None = None,
    sampled_values: ArrayLike | None = None,
    *,
    offsets: ArrayLike | None = None,
    rng: RandomState = None,
    n_threads: int | None = None,
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
    sampled_rankings, sampled_inv_rankings
        Not needed: they follow from ``sampled_values``, without which they must not be given.
    sampled_values : array_like, shape (N, n_docs), optional
        Scores with noise of a single query, to use instead of drawing.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    rng : None, int, SeedSequence, BitGenerator or Generator
        By default the generator derived from ``numpy.random``.
    n_threads : int, optional
        None or -1: all available processors; -2: all but one.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Gradient of the expected metric: the direction of ascent.
    """
    return _stochasticrank(
        "normal", rank_weights, labels, scores, n_samples, sampled_rankings, sampled_values, offsets, rng, n_threads
    )


@validation.hinted
def lambdaloss(
    rank_weights: ArrayLike,
    labels: ArrayLike,
    scores: ArrayLike,
    n_samples: int | None = None,
    *,
    offsets: ArrayLike | None = None,
    rng: RandomState = None,
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
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    rng : None, int, SeedSequence, BitGenerator or Generator
        By default the generator derived from ``numpy.random``.

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
    scores_, labels_, offsets_ = _scores_and_labels(scores, labels, offsets)
    weights = validation.within_limits(validation.real_array(rank_weights, "rank_weights"), "rank_weights")
    drops = -np.diff(weights, append=0.0)
    drawn = scores_[np.newaxis]
    if n_samples is not None:
        size = validation.count(n_samples, "n_samples", 1), scores_.size
        drawn = scores_ + _generator(rng).gumbel(size=size)
    gradient = np.zeros(drawn.shape)
    for start, stop in itertools.pairwise(offsets_):
        order = start + np.argsort(-drawn[:, start:stop], axis=1, kind="stable")
        ranked, worth, pushed = np.take_along_axis(drawn, order, axis=1), labels_[order], np.zeros(order.shape)
        for distance in range(1, min(drops.size, stop - start - 1) + 1):
            better = worth[:, :-distance] - worth[:, distance:]  # of the upper of each pair
            with np.errstate(over="ignore"):  # exp(709) and more: the pair is in order, its push 0
                wrong = 1.0 / (1.0 + np.exp(np.sign(better) * (ranked[:, :-distance] - ranked[:, distance:])))
            push = drops[distance - 1] / np.log(2.0) * better * wrong
            pushed[:, :-distance] += push
            pushed[:, distance:] -= push
        np.put_along_axis(gradient, order, pushed, axis=1)
    return gradient.mean(axis=0)


# --- rankings


@validation.hinted
def gumbel_sample_rankings(
    log_scores: ArrayLike,
    n_samples: int,
    cutoff: int | None = None,
    inverted: bool = False,
    doc_prob: bool = False,
    prob_per_rank: bool = False,
    return_gumbel: bool = False,
    return_full_rankings: bool = False,
    *,
    rng: RandomState = None,
) -> tuple[Rankings, Rankings | None, FloatArray | None, FloatArray | None, FloatArray | None]:
    """Draw rankings from the Plackett-Luce distribution of ``log_scores``, by ``plrank_fast.sample_rankings``.

    Parameters
    ----------
    log_scores : array_like, shape (n_docs,)
        Log-weights.
    n_samples : int
        Rankings to draw, N.
    cutoff : int, optional
        Ranks, K; all with None or 0.
    inverted, doc_prob, prob_per_rank, return_gumbel : bool
        Whether to return these results; ``prob_per_rank`` only together with ``doc_prob``.
    return_full_rankings : bool
        Whether to draw rankings of all documents, past the cutoff too.
    rng : None, int, SeedSequence, BitGenerator or Generator
        By default the generator derived from ``numpy.random``.

    Returns
    -------
    rankings : ndarray of int64, shape (N, min(K, n_docs)), or (N, n_docs) with ``return_full_rankings``
    inverted_rankings : ndarray of int64, shape (N, n_docs), or None
        Rank of each document, from 0; the cutoff for those past it.
    probabilities : ndarray, shape (N, min(K, n_docs)), or None
        Probability of each placed document among those left over.
    probabilities_per_rank : ndarray, shape (min(K, n_docs), n_docs), or None
        Probability of each document to be placed next, mean over the rankings.
    gumbel_scores : ndarray, shape (N, n_docs), or None
        Scores with noise, whose order the rankings are; NumPy draws it, which takes longer.
    """
    _check_flags(
        inverted=inverted, doc_prob=doc_prob, prob_per_rank=prob_per_rank, return_gumbel=return_gumbel,
        return_full_rankings=return_full_rankings,
    )  # fmt: skip
    scores, ranks = _scores_and_ranks(log_scores, cutoff)
    noisy = None
    if return_gumbel:
        noisy = scores + _generator(rng).gumbel(size=(validation.count(n_samples, "n_samples", 1), scores.size))
        every = _descending(noisy, scores.size if return_full_rankings else ranks)
    else:
        length = scores.size if return_full_rankings else ranks
        every = plrank_fast.sample_rankings(scores, n_samples, length, rng=_source(rng)).astype(np.int64)
    placed = every[:, :ranks]
    chances, per_rank = _placement_probabilities(scores, placed) if doc_prob else (None, None)
    inverse = _inverted(placed, scores.size) if inverted else None
    return every, inverse, chances, per_rank if prob_per_rank else None, noisy


@validation.hinted
def normal_sample_rankings(
    log_scores: ArrayLike,
    n_samples: int,
    cutoff: int | None = None,
    inverted: bool = False,
    return_gumbel: bool = False,
    return_full_rankings: bool = False,
    *,
    rng: RandomState = None,
) -> tuple[Rankings, Rankings | None, FloatArray | None]:
    """Draw rankings by scores with standard normal noise, in NumPy.

    Parameters
    ----------
    log_scores : array_like, shape (n_docs,)
        Log-weights.
    n_samples : int
        Rankings to draw, N.
    cutoff : int, optional
        Ranks, K; all with None or 0.
    inverted, return_gumbel : bool
        Whether to return inverted rankings, and scores with noise.
    return_full_rankings : bool
        Whether to draw rankings of all documents, past the cutoff too.
    rng : None, int, SeedSequence, BitGenerator or Generator
        By default the generator derived from ``numpy.random``.

    Returns
    -------
    rankings : ndarray of int64, shape (N, min(K, n_docs)), or (N, n_docs) with ``return_full_rankings``
    inverted_rankings : ndarray of int64, shape (N, n_docs), or None
        Rank of each document, from 0; the cutoff for those past it.
    normal_scores : ndarray, shape (N, n_docs), or None
        Scores with noise, with ``return_gumbel``.
    """
    _check_flags(inverted=inverted, return_gumbel=return_gumbel, return_full_rankings=return_full_rankings)
    scores, ranks = _scores_and_ranks(log_scores, cutoff)
    noisy = scores + _generator(rng).normal(size=(validation.count(n_samples, "n_samples", 1), scores.size))
    every = _descending(noisy, scores.size if return_full_rankings else ranks)
    inverse = _inverted(every[:, :ranks], scores.size) if inverted else None
    return every, inverse, noisy if return_gumbel else None


@validation.hinted
def sample_rankings(
    log_scores: ArrayLike,
    n_samples: int,
    cutoff: int | None = None,
    prob_per_rank: bool = False,
    *,
    rng: RandomState = None,
) -> tuple[Any, ...]:
    """Draw rankings from the Plackett-Luce distribution, with their inverse and probabilities.

    Parameters
    ----------
    log_scores : array_like, shape (n_docs,)
        Log-weights.
    n_samples : int
        Rankings to draw, N.
    cutoff : int, optional
        Ranks, K; all with None or 0.
    prob_per_rank : bool
        Whether to return the probabilities per rank too.
    rng : None, int, SeedSequence, BitGenerator or Generator
        By default the generator derived from ``numpy.random``.

    Returns
    -------
    rankings, inverted_rankings, probabilities
        The first three results of `gumbel_sample_rankings`, and ``probabilities_per_rank`` with ``prob_per_rank``.
    """
    _check_flags(prob_per_rank=prob_per_rank)
    every, inverse, chances, per_rank, _ = gumbel_sample_rankings(
        log_scores, n_samples, cutoff, inverted=True, doc_prob=True, prob_per_rank=True, rng=rng
    )
    return (every, inverse, chances, per_rank) if prob_per_rank else (every, inverse, chances)


def _check_flags(**flags: Any) -> None:
    for name, value in flags.items():
        validation.flag(value, name)


def _generator(rng: RandomState) -> np.random.Generator:
    return np.random.default_rng(_source(validation.check_random_state(rng)))


def _scores_and_ranks(log_scores: ArrayLike, cutoff: int | None) -> tuple[FloatArray, int]:
    scores = validation.real_array(log_scores, "log_scores")
    return scores, validation.ranks_that_count(cutoff, scores.size) or scores.size


def _descending(noisy: FloatArray, ranks: int) -> Rankings:
    return np.argsort(-noisy, axis=1, kind="stable")[:, :ranks]


def _inverted(rankings: Rankings, n_docs: int) -> Rankings:
    inverse = np.full((len(rankings), n_docs), rankings.shape[1])
    np.put_along_axis(inverse, rankings, np.arange(rankings.shape[1])[np.newaxis], axis=1)
    return inverse


def _placement_probabilities(scores: FloatArray, rankings: Rankings) -> tuple[FloatArray, FloatArray]:
    """Return probabilities of placed documents among those left over, (N, K), and of all at each rank, (K, n_docs)."""
    left = np.tile(scores, (len(rankings), 1))
    chances, per_rank = np.empty(rankings.shape), np.empty((rankings.shape[1], scores.size))
    for rank in range(rankings.shape[1]):
        with np.errstate(over="ignore"):  # beyond the largest double: the probability is 0 either way
            weights = np.exp(left - left.max(axis=1, keepdims=True))
        probabilities = weights / weights.sum(axis=1, keepdims=True)
        per_rank[rank] = probabilities.mean(axis=0)
        placed = rankings[:, rank, np.newaxis]
        chances[:, rank] = np.take_along_axis(probabilities, placed, axis=1)[:, 0]
        np.put_along_axis(left, placed, -np.inf, axis=1)
    return chances, per_rank
