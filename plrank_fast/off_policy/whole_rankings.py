"""Estimates that weight each session by the probability of its whole ranking."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import _estimates, validation
from plrank_fast.off_policy.estimate import OffPolicyEstimate, weighted_estimate
from plrank_fast.off_policy.log import ACCURACY, Log, read_log
from plrank_fast.off_policy.propensities import importance_weights, log_propensities, slopes_of
from plrank_fast.validation import FloatArray


@validation.hinted
def ips(
    scores: ArrayLike,
    rankings: ArrayLike,
    rewards: ArrayLike,
    *,
    propensities: ArrayLike | None = None,
    logging_scores: ArrayLike | None = None,
    ordered: bool = True,
    offsets: ArrayLike | None = None,
    clip: float | None = None,
    self_normalized: bool = False,
    n_threads: int | None = None,
) -> OffPolicyEstimate:
    r"""Estimate a policy's value by inverse propensity scores of whole rankings, or of sets.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights of the new policy, pi.
    rankings : array_like of int, shape (n_sessions, K), or (n_queries, n_sessions, K) with ``offsets``
        The rankings shown. A ranking may end early, with -1 after its last item; a row of -1 does not count as a
        session.
    rewards : array_like, shape (n_sessions,), or (n_queries, n_sessions) with ``offsets``
        Reward of each session.
    propensities : array_like of the shape of rewards, optional
        Probability with which each ranking was shown, 2.2e-308 or more.
    logging_scores : array_like, shape (n_docs,), optional
        Log-weights of a Plackett-Luce logging policy, in place of ``propensities``.
    ordered : bool
        False: rankings are sets, whose order does not matter to the reward or was not kept. Propensities belong to
        sets. The weight of a set is the mean weight of its orders in the log, so the variance is never larger.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    clip : float, optional
        Largest weight, from 2**-200 to 2**200; larger ones are set to this value and contribute no derivative.
    self_normalized : bool
        Divide by the sum of the weights in place of N: the estimate is biased by O(1 / N), and always within the range
        of the rewards.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    OffPolicyEstimate

    Notes
    -----
    .. math:: V = \frac{1}{N} \sum_i w_i r_i, \quad w_i = \frac{\pi(y_i)}{\mu(y_i)},
              \quad \frac{dV}{df} = \frac{1}{N} \sum_i w_i r_i \frac{d \ln \pi(y_i)}{df}

    The value costs O(D + N K) and the gradient O(N (D + K)); of sets, each costs O(N D log D).

    Examples
    --------
    The log is of a policy without preferences; the new one puts document 1 first nine times out of ten:

    >>> import numpy as np
    >>> from plrank_fast import off_policy
    >>> estimate = off_policy.ips([0.0, np.log(9.0)], [[0, 1], [1, 0]], [0.0, 1.0], propensities=[0.5, 0.5])
    >>> round(estimate.value, 3), estimate.gradient.round(3)
    (0.9, array([-0.09,  0.09]))
    """
    log = read_log(scores, rankings, offsets, n_threads, ordered)
    gains = log.of_rows(rewards, "rewards")
    return _weighted_rankings(log, gains, propensities, logging_scores, clip, self_normalized)


@validation.hinted
def doubly_robust(
    scores: ArrayLike,
    rankings: ArrayLike,
    rewards: ArrayLike,
    relevance: ArrayLike,
    rank_weights: ArrayLike,
    *,
    propensities: ArrayLike | None = None,
    logging_scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    clip: float | None = None,
    self_normalized: bool = False,
    n_threads: int | None = None,
) -> OffPolicyEstimate:
    r"""Estimate a policy's value from predicted rewards, corrected by inverse propensity scoring of their residuals.

    The estimate is unbiased whatever the prediction; the better the prediction, the smaller the variance.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights of the new policy, pi.
    rankings : array_like of int, shape (n_sessions, K), or (n_queries, n_sessions, K) with ``offsets``
        The rankings shown. A ranking may end early, with -1 after its last item; a row of -1 does not count as a
        session.
    rewards : array_like, shape (n_sessions,), or (n_queries, n_sessions) with ``offsets``
        Reward of each session.
    relevance : array_like, shape (n_docs,)
        Predicted relevance rho of each document, such as its probability of a click once looked at.
    rank_weights : array_like, shape (K,) or (n_queries, K)
        Weight theta of each rank in the prediction.
    propensities : array_like of the shape of rewards, optional
        Probability with which each ranking was shown, 2.2e-308 or more.
    logging_scores : array_like, shape (n_docs,), optional
        Log-weights of a Plackett-Luce logging policy, in place of ``propensities``.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    clip : float, optional
        Largest weight, from 2**-200 to 2**200; larger ones are set to this value and contribute no derivative.
    self_normalized : bool
        Divide the corrections by the sum of their weights in place of N.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    OffPolicyEstimate

    Notes
    -----
    With the prediction p(y) = sum_k theta_k rho_{y_k} over the ranks shown in session i,

    .. math:: V = \frac{1}{N} \sum_i E_{\text{new}}[p(y)] + w_i (r_i - p(y_i))

    The expectation and its gradient are exact: only the log is a sample. The cost is O(N (D + K)), and
    ``pl_rank_exact`` once for each length of the rankings.

    Examples
    --------
    A prediction without error needs no correction:

    >>> from plrank_fast import off_policy
    >>> estimate = off_policy.doubly_robust(
    ...     [0.0, 2.0], [[0], [1], [1]], [0.0, 1.0, 1.0], [0.0, 1.0], [1.0], propensities=[0.5, 0.5, 0.5]
    ... )
    >>> round(estimate.value, 4), estimate.standard_error
    (0.8808, 0.0)
    """
    log = read_log(scores, rankings, offsets, n_threads)
    gains = log.of_rows(rewards, "rewards")
    predicted = validation.of_documents(relevance, "relevance", log.scores, log.offsets)
    theta = validation.weights_of_ranks(rank_weights, log.offsets)
    n_ranks = min(theta.shape[1], log.rankings.shape[2])
    at_rank, lengths = log.rankings[:, :, :n_ranks] >= 0, np.diff(log.offsets)
    worth = predicted[log.documents()[:, :, :n_ranks]] if predicted.size else np.zeros(at_rank.shape)
    residuals = gains - np.where(at_rank, worth * theta[:, np.newaxis, :n_ranks], 0.0).sum(axis=2)
    corrections = _weighted_rankings(log, residuals, propensities, logging_scores, clip, self_normalized)
    # The prediction for a session is of as many ranks as it was shown; a whole list has all.
    reached = at_rank.sum(axis=2)
    reached = np.where(reached == lengths[:, np.newaxis], n_ranks, reached)
    expected, gradient = np.zeros(log.shown.shape), np.zeros(log.scores.shape)
    for length in np.unique(reached[log.shown]).tolist():
        rows = theta[:, :length]
        values, slopes = _estimates.exact(
            log.scores, predicted, rows[0] if len(rows) == 1 else rows, log.offsets, ACCURACY, log.n_threads, None,
            value=True, gradient=True,
        )  # fmt: skip
        ending = log.shown & (reached == length)
        expected = np.where(ending, values[:, np.newaxis], expected)
        gradient = gradient + np.repeat(ending.sum(axis=1) / log.n_sessions, lengths) * slopes
    terms = expected[log.shown]
    return replace(
        corrections,
        value=float(terms.mean()) + corrections.value,
        _compute_gradient=lambda: corrections.gradient + gradient,
        numerators=np.column_stack([terms, corrections.numerators]),
        denominators=np.column_stack([np.ones_like(terms), corrections.denominators]),
    )


def _weighted_rankings(
    log: Log,
    gains: FloatArray,
    propensities: ArrayLike | None,
    logging_scores: ArrayLike | None,
    clip: float | None,
    self_normalized: bool,
) -> OffPolicyEstimate:
    """Return the estimate from one gain for each ranking."""
    logged = log_propensities(log, propensities, logging_scores)
    self_normalized = validation.flag(self_normalized, "self_normalized")
    name = "propensities" if logging_scores is None else "logging_scores"
    log_ratio, shown = ((log.log_prob(log.scores) - logged)[:, :, np.newaxis], log.shown[:, :, np.newaxis])
    weights, summed, clipped = importance_weights(log_ratio, shown, clip, self_normalized, name)
    return weighted_estimate(
        log, shown, gains[:, :, np.newaxis], weights[:, :, 0], summed, lambda: slopes_of(summed, clipped),
        self_normalized, lambda cotangent: log.log_prob_gradient(cotangent[:, :, 0]),
    )  # fmt: skip
