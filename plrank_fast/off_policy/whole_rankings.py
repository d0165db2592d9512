"""Estimates that weight each session by the probability of its whole ranking."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast.gradients import pl_rank_exact
from plrank_fast.off_policy.estimate import OffPolicyEstimate, effective_sample_size, ratios_or_zero, total_weights
from plrank_fast.off_policy.log import ACCURACY, Log, read_log
from plrank_fast.off_policy.propensities import importance_weights, log_propensities
from plrank_fast.probabilities import expected_metric
from plrank_fast.validation import FloatArray


def ips(
    scores: ArrayLike,
    rankings: ArrayLike,
    rewards: ArrayLike,
    *,
    propensities: ArrayLike | None = None,
    logging_scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    clip: float | None = None,
    self_normalized: bool = False,
    n_threads: int | None = None,
) -> OffPolicyEstimate:
    r"""Estimate a policy's value by inverse propensity scores of whole rankings.

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
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    clip : float, optional
        Largest weight, from 2**-200 to 2**200; larger ones are set to this value and contribute no derivative.
    self_normalized : bool
        Divide by the sum of the weights in place of N: the estimate is biased by O(1 / N), and always within the range
        of the rewards.
    n_threads : int, optional
        None: all available processors; negative: that many fewer than all, plus one.

    Returns
    -------
    OffPolicyEstimate

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    .. math:: V = \frac{1}{N} \sum_i w_i r_i, \quad w_i = \frac{\pi(y_i)}{\mu(y_i)},
              \quad \frac{dV}{df} = \frac{1}{N} \sum_i w_i r_i \frac{d \ln \pi(y_i)}{df}

    The cost is O(N (D + K)).

    Examples
    --------
    The log is of a policy without preferences; the new one puts document 1 first nine times out of ten:

    >>> import numpy as np
    >>> from plrank_fast import off_policy
    >>> estimate = off_policy.ips([0.0, np.log(9.0)], [[0, 1], [1, 0]], [0.0, 1.0], propensities=[0.5, 0.5])
    >>> round(estimate.value, 3), estimate.gradient.round(3)
    (0.9, array([-0.09,  0.09]))
    """
    log = read_log(scores, rankings, offsets, n_threads)
    gains = log.of_rows(rewards, "rewards")
    logged = log_propensities(log, propensities, logging_scores)
    self_normalized = validation.flag(self_normalized, "self_normalized")
    name = "propensities" if logging_scores is None else "logging_scores"
    weights, slopes = importance_weights(log.log_prob(log.scores) - logged, clip, name)
    return _of_rankings(log, gains, weights, slopes, self_normalized, None)


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
        Largest weight of a correction, from 2**-200 to 2**200; larger ones contribute no derivative.
    self_normalized : bool
        Divide the corrections by the sum of their weights in place of N.
    n_threads : int, optional
        None: all available processors; negative: that many fewer than all, plus one.

    Returns
    -------
    OffPolicyEstimate

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    With the prediction p(y) = sum_k theta_k rho_{y_k},

    .. math:: V = \frac{1}{N} \sum_i E_{\text{new}}[p(y)] + w_i (r_i - p(y_i))

    The expectation and its gradient are exact: only the log is a sample. The cost is O(N (D + K)), and
    ``pl_rank_exact`` once.

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
    logged = log_propensities(log, propensities, logging_scores)
    self_normalized = validation.flag(self_normalized, "self_normalized")
    name = "propensities" if logging_scores is None else "logging_scores"
    weights, slopes = importance_weights(log.log_prob(log.scores) - logged, clip, name)
    n_ranks = min(theta.shape[1], log.rankings.shape[2])
    worth = predicted[log.documents()] if predicted.size else np.zeros(log.rankings.shape)
    of_shown = np.where(log.rankings >= 0, worth, 0.0)[:, :, :n_ranks] * theta[:, np.newaxis, :n_ranks]
    rows = theta[0] if theta.shape[0] == 1 else theta
    exact = {"offsets": log.offsets, "rtol": ACCURACY, "n_threads": log.n_threads}
    expected = expected_metric(log.scores, predicted, rows, **exact)  # type: ignore[arg-type]
    share = log.shown.sum(axis=1) / log.n_sessions  # of the sessions that each query has
    gradient = pl_rank_exact(log.scores, predicted, rows, **exact)  # type: ignore[arg-type]
    assert isinstance(gradient, np.ndarray)
    gradient = gradient * np.repeat(share, np.diff(log.offsets))
    terms = np.broadcast_to(expected[:, np.newaxis], log.shown.shape)
    return _of_rankings(log, gains - of_shown.sum(axis=2), weights, slopes, self_normalized, (terms, gradient))


def _of_rankings(
    log: Log,
    gains: FloatArray,
    weights: FloatArray,
    slopes: FloatArray,
    self_normalized: bool,
    added: tuple[FloatArray, FloatArray] | None,
) -> OffPolicyEstimate:
    """Return the estimate from weights of whole rankings.

    ``added`` are terms to add, (n_queries, n_rows), and the gradient of their mean.
    """
    w, r = weights[log.shown], gains[log.shown]
    numerators = (w * r)[:, np.newaxis]
    denominators = w[:, np.newaxis] if self_normalized else np.ones_like(numerators)
    totals = total_weights(denominators)
    value = float(ratios_or_zero(numerators.sum(axis=0), totals)[0])
    surplus = gains - value if self_normalized else gains
    cotangent = np.where(log.shown, slopes * surplus, 0.0) / (totals[0] or 1.0)
    gradient = log.log_prob_gradient(cotangent)
    if added is not None:
        terms = added[0][log.shown][:, np.newaxis]
        numerators = np.concatenate([terms, numerators], axis=1)
        denominators = np.concatenate([np.ones_like(terms), denominators], axis=1)
        value += float(terms.mean())
        gradient = gradient + added[1]
    return OffPolicyEstimate(value, gradient, w, effective_sample_size(w), numerators, denominators)
