"""What a new policy would earn, and the gradient of that, from rankings that another policy has shown.

A log holds rankings y_i of queries, drawn by a logging policy mu that gave each a probability, its *propensity*, and
what came of them: one reward per ranking, one per rank, or clicks. The estimates differ in what they assume of the
reward, and the less they assume the more they vary (w is the ratio of the new policy's probability to the log's):

================== ======================================== =====================================================
``ips``            mean of w(y) r                           unbiased for any reward
``rips``           mean of sum_k w(y_1 .. y_k) r_k          unbiased if r_k depends on the ranks down to k (cascade)
``iips``           mean of sum_k w(y_k at rank k) r_k       unbiased if r_k depends on rank and item alone
``pseudo_inverse`` least squares on items at ranks          unbiased if r is a sum over ranks of any such terms
``doubly_robust``  E[prediction] + mean of w (r - its own)  unbiased for any reward and any prediction
================== ======================================== =====================================================

as long as mu shows whatever the new policy may. ``clip`` bounds the weights and ``self_normalized`` divides by their
mean in place of 1: both trade a little bias for variance. Each gives an `OffPolicyEstimate`: the value, its gradient by
the new scores, the effective number of sessions, a standard error and a bootstrap interval. The value is the mean over
all sessions, whatever their query; a row of -1 is no session, so that queries may have different numbers of them.

Clicks that tell of items rather than rankings become relevance by ``relevance_from_clicks``: clicks over the exact
exposure under the logging policy, which any gradient of this library then takes.

Source: Swaminathan and Joachims, "The self-normalized estimator for counterfactual learning", 2015; Swaminathan et al.,
"Off-policy evaluation for slate recommendation", 2017; Li et al., "Offline evaluation of ranking policies with click
models", KDD 2018; McInerney et al., "Counterfactual evaluation of slate recommendations with sequential reward
interactions", KDD 2020; Dudik, Langford and Li, "Doubly robust policy evaluation and learning", 2011; Oosterhuis and de
Rijke, "Policy-aware unbiased learning to rank for top-k rankings", SIGIR 2020.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plrank_fast import validation
from plrank_fast._core.runtime import threads as _threads
from plrank_fast.gradients import pl_rank_exact
from plrank_fast.probabilities import expected_metric, exposure, exposure_vjp, rank_probabilities
from plrank_fast.sampling import log_prob_gradient, ranking_log_prob, sample_rankings
from plrank_fast.validation import FloatArray, IntArray, RandomState, RankingArray

ACCURACY = 1e-8  # rtol of exact expectations and of their gradients


@dataclass(frozen=True)
class OffPolicyEstimate:
    """The estimated value of a policy, its gradient, and how far to trust it.

    Attributes
    ----------
    value : float
        Mean reward of a session under the new policy.
    gradient : ndarray, shape (n_docs,)
        Derivative of ``value`` by each of the new scores, to be ascended.
    importance_weights : ndarray, shape (n_sessions,), or (n_sessions, K) for ``rips`` and ``iips``
        w of each session, in the order of the log, after clipping; all 1 for ``pseudo_inverse``.
    effective_sample_size : float
        Of these weights: sessions of equal weight that would vary as much. For weights of ranks, that of the rank where
        it is least.
    numerators, denominators : ndarray, shape (n_sessions, n_terms)
        ``value`` is the sum over terms of their totals' ratios.
    """

    value: float
    gradient: FloatArray
    importance_weights: FloatArray
    effective_sample_size: float
    numerators: FloatArray
    denominators: FloatArray

    @property
    def standard_error(self) -> float:
        """Standard error of the value over sessions, to first order (the delta method) where weights normalise it."""
        n_sessions = len(self.numerators)
        if n_sessions < 2:
            return math.inf
        totals = self.denominators.sum(axis=0)
        ratios = _ratios(self.numerators.sum(axis=0), totals)
        scale = np.divide(n_sessions, totals, out=np.zeros_like(totals), where=totals != 0.0)
        influence = ((self.numerators - ratios * self.denominators) * scale).sum(axis=1)
        return float(influence.std(ddof=1) / math.sqrt(n_sessions))

    def interval(
        self, confidence: float = 0.95, n_resamples: int = 1000, rng: RandomState = None
    ) -> tuple[float, float]:
        """Compute a percentile bootstrap interval of the value: sessions drawn with replacement.

        Parameters
        ----------
        confidence : float
            Chance that the interval is to cover the value, between 0 and 1.
        n_resamples : int
            Logs to draw.
        rng : None, int, SeedSequence, BitGenerator or Generator
            Source of the draws.

        Returns
        -------
        low, high : float

        Raises
        ------
        TypeError, ValueError
            If an argument is not as described; the message names it.
        """
        confidence = validation.between(confidence, "confidence", 0.0, 1.0)
        n_resamples = validation.count(n_resamples, "n_resamples", 1)
        generator = _generator(rng)
        n_sessions = len(self.numerators)
        values = np.empty(n_resamples)
        for i in range(n_resamples):
            times = np.bincount(generator.integers(0, n_sessions, n_sessions), minlength=n_sessions).astype(np.float64)
            values[i] = _ratios(times @ self.numerators, times @ self.denominators).sum()
        low, high = np.quantile(values, [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0]).tolist()
        return low, high


class _Log(NamedTuple):
    """Checked rankings of a log, and which rows of them are sessions."""

    scores: FloatArray
    offsets: IntArray
    rankings: RankingArray  # (n_queries, n_rows, K), -1 past the end of each
    shown: NDArray[np.bool_]  # (n_queries, n_rows)
    batch: bool
    n_threads: int

    @property
    def n_sessions(self) -> int:
        return int(self.shown.sum())

    def of_rows(self, values: ArrayLike, name: str) -> FloatArray:
        """Numbers of rankings, (n_queries, n_rows); 0 where there is no session."""
        checked = validation.one_per_ranking(values, name, self.shown.shape, self.batch)
        return np.where(self.shown, checked, 0.0)

    def of_ranks(self, values: ArrayLike, name: str) -> FloatArray:
        """Numbers of ranks, (n_queries, n_rows, K); 0 past the end of a ranking."""
        array = validation.one_per_rank(values, name, self.rankings.shape, self.batch)
        return np.where(self.rankings >= 0, array, 0.0)

    def log_prob(self, scores: FloatArray, n_ranks: int | None = None) -> FloatArray:
        """Log-probability of each row, or of its first ranks."""
        rankings = self.rankings if n_ranks is None else self.rankings[:, :, :n_ranks]
        return ranking_log_prob(scores, rankings, offsets=self.offsets, n_threads=self.n_threads)

    def log_prob_gradient(self, cotangent: FloatArray, n_ranks: int | None = None) -> FloatArray:
        """Gradient of the log-probabilities under the new policy, summed with these numbers."""
        rankings = self.rankings if n_ranks is None else np.ascontiguousarray(self.rankings[:, :, :n_ranks])
        return log_prob_gradient(self.scores, self.offsets, rankings, cotangent, self.n_threads, "rewards")

    def documents(self) -> IntArray:
        """Number among all documents of what stands at each rank, (n_queries, n_rows, K); 0 past the end."""
        documents: IntArray = self.offsets[:-1, np.newaxis, np.newaxis] + self.rankings.astype(np.int64)
        return np.where(self.rankings >= 0, documents, 0)


def _read_log(scores: ArrayLike, rankings: ArrayLike, offsets: ArrayLike | None, n_threads: int | None) -> _Log:
    scores_ = validation.real_array(scores, "scores")
    offsets_ = validation.query_offsets(offsets, scores_.size)
    batch = offsets is not None
    rankings_ = validation.given_rankings(rankings, offsets_, None, batch=batch, prefixes=True)
    lengths = np.diff(offsets_)[:, np.newaxis, np.newaxis]
    rankings_ = np.where(np.arange(rankings_.shape[2]) < lengths, rankings_, -1).astype(np.int32)
    shown: NDArray[np.bool_] = rankings_.max(axis=2, initial=-1) >= 0
    validation.count(int(shown.sum()), "the number of rankings that are not empty", 1)
    threads = _threads.resolve_threads(validation.threads(n_threads))
    return _Log(scores_, offsets_, rankings_, shown, batch, threads)


def _logging_scores(log: _Log, logging_scores: ArrayLike) -> FloatArray:
    name = "logging_scores"
    return validation.same_length(validation.real_array(logging_scores, name), name, log.scores, scores_first=False)


def _ratios(numerators: FloatArray, denominators: FloatArray) -> FloatArray:
    """Numerators over denominators, 0 where all weights are 0."""
    return np.divide(numerators, denominators, out=np.zeros_like(numerators), where=denominators != 0.0)


def _generator(rng: RandomState) -> np.random.Generator:
    key = validation.stream_key(validation.check_random_state(rng))
    return np.random.default_rng(np.random.SeedSequence([int(word) for word in key]))


def _log_propensities(log: _Log, propensities: ArrayLike | None, logging_scores: ArrayLike | None) -> FloatArray:
    """Log-probability with which each row was shown, 0 where there is no session."""
    validation.only_one({"propensities": propensities, "logging_scores": logging_scores})
    if logging_scores is not None:
        return log.log_prob(_logging_scores(log, logging_scores))
    given = log.of_rows(validation.instead_of(propensities, "propensities", "logging_scores"), "propensities")
    return np.log(validation.chances(np.where(log.shown, given, 1.0), "propensities"))


def _weights(log_ratio: FloatArray, clip: float | None) -> tuple[FloatArray, FloatArray]:
    """Importance weights, and their derivative by the log of the new policy's probability: 0 where they are clipped."""
    with np.errstate(over="ignore"):
        weights = np.exp(log_ratio)
    if clip is None:
        validation.representable(weights.reshape(-1), "propensities")
        return weights, weights
    bound = validation.positive_real(clip, "clip")
    return np.minimum(weights, bound), np.where(weights < bound, weights, 0.0)


def effective_sample_size(importance_weights: ArrayLike) -> float:
    """Compute the number of equally weighted draws that would vary as much: (sum w)^2 / sum w^2.

    Parameters
    ----------
    importance_weights : array_like
        At least 0, of any shape.

    Returns
    -------
    float
        0 where all weights are 0.

    Raises
    ------
    TypeError, ValueError
        If a weight is not finite, or negative.

    Examples
    --------
    >>> from plrank_fast.off_policy import effective_sample_size
    >>> effective_sample_size([1.0, 1.0, 0.0, 0.0])
    2.0
    """
    weights = validation.real_array(importance_weights, "importance_weights", ndim=None).reshape(-1)
    validation.within(weights, "importance_weights", 0.0, np.inf)
    largest = weights.max(initial=0.0)
    if largest == 0.0:
        return 0.0
    weights = weights / largest
    return float(weights.sum() ** 2 / (weights**2).sum())


def item_propensities(
    logging_scores: ArrayLike,
    examination: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    n_threads: int | None = None,
) -> FloatArray:
    """Compute the probability that each document is looked at in a session of the logging policy: its exact exposure.

    Parameters
    ----------
    logging_scores : array_like, shape (n_docs,)
        Log-weights of the policy that made the log.
    examination : array_like, shape (K,) or (n_queries, K)
        Chance that a user looks at each rank, such as ``position_bias(K)``.
    offsets, n_threads
        As in ``exposure``, of which this is another name.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        sum_k examination_k P(rank of d = k), without sampling.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Examples
    --------
    >>> from plrank_fast import off_policy
    >>> off_policy.item_propensities([0.0, 0.0], [1.0, 0.5])
    array([0.75, 0.75])
    """
    validation.real_array(logging_scores, "logging_scores")
    bias = validation.real_array(examination, "examination", ndim=(1, 2))
    return exposure(logging_scores, bias, offsets=offsets, n_threads=n_threads)


def ranking_propensities(
    logging_scores: ArrayLike,
    rankings: ArrayLike,
    *,
    offsets: ArrayLike | None = None,
    n_threads: int | None = None,
) -> FloatArray:
    """Compute the probability with which a logging policy shows rankings: exp of ``ranking_log_prob``.

    Parameters
    ----------
    logging_scores : array_like, shape (n_docs,)
        Log-weights of the policy that made the log.
    rankings, offsets, n_threads
        As in ``ranking_log_prob``.

    Returns
    -------
    ndarray, shape (n_rankings,), or (n_queries, n_rankings) with ``offsets``
        The probability of a long ranking may be below the smallest double: hand ``logging_scores`` to the estimators.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Examples
    --------
    >>> from plrank_fast import off_policy
    >>> off_policy.ranking_propensities([0.0, 0.0, 0.0], [[2, 0]]).round(4)
    array([0.1667])
    """
    validation.real_array(logging_scores, "logging_scores")
    return np.exp(ranking_log_prob(logging_scores, rankings, offsets=offsets, n_threads=n_threads))


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
    """Estimate a policy's value by inverse propensity scores of whole rankings.

    ::

        V = 1 / N sum_i w_i r_i,   dV / df = 1 / N sum_i w_i r_i d log pi(y_i) / df,   w_i = pi(y_i) / mu(y_i)

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights of the new policy, pi.
    rankings : array_like of int, shape (n_sessions, K), or (n_queries, n_sessions, K) with ``offsets``
        What was shown, as ``sample_rankings`` returns it. A ranking may end early, with -1 after its last item; a row
        of -1 is no session.
    rewards : array_like, shape (n_sessions,), or (n_queries, n_sessions) with ``offsets``
        What came of each.
    propensities : array_like of the shape of rewards
        Probability with which each was shown, above 0; or else ``logging_scores``, the log-weights of a Plackett-Luce
        logging policy, (n_docs,), from which the probability's logarithm is computed.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    clip : float, optional
        Largest weight; larger ones count as this, with no derivative.
    self_normalized : bool
        Divide by the sum of the weights in place of N: biased by O(1 / N), and within the range of the rewards.
    n_threads : int, optional
        None: all available processors.

    Returns
    -------
    OffPolicyEstimate

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    O(N (D + K)).

    Examples
    --------
    A log of a policy without preference; the new one puts document 1 first nine times out of ten:

    >>> import numpy as np
    >>> from plrank_fast import off_policy
    >>> estimate = off_policy.ips([0.0, np.log(9.0)], [[0, 1], [1, 0]], [0.0, 1.0], propensities=[0.5, 0.5])
    >>> round(estimate.value, 3), estimate.gradient.round(3)
    (0.9, array([-0.09,  0.09]))
    """
    log = _read_log(scores, rankings, offsets, n_threads)
    gains = log.of_rows(rewards, "rewards")
    log_propensities = _log_propensities(log, propensities, logging_scores)
    self_normalized = validation.flag(self_normalized, "self_normalized")
    weights, slopes = _weights(log.log_prob(log.scores) - log_propensities, clip)
    return _of_rankings(log, gains, weights, slopes, self_normalized, None)


def _of_rankings(
    log: _Log,
    gains: FloatArray,
    weights: FloatArray,
    slopes: FloatArray,
    self_normalized: bool,
    added: tuple[FloatArray, FloatArray] | None,
) -> OffPolicyEstimate:
    """Estimate from weights of whole rankings; ``added``: terms (n_queries, n_rows), and the gradient of their mean."""
    w, r = weights[log.shown], gains[log.shown]
    numerators = (w * r)[:, np.newaxis]
    denominators = w[:, np.newaxis] if self_normalized else np.ones_like(numerators)
    total = denominators.sum()
    value = float(_ratios(numerators.sum(axis=0), denominators.sum(axis=0))[0])
    surplus = gains - value if self_normalized else gains
    cotangent = np.where(log.shown, slopes * surplus, 0.0) / (total if total != 0.0 else 1.0)
    gradient = log.log_prob_gradient(cotangent)
    if added is not None:
        terms = added[0][log.shown][:, np.newaxis]
        numerators = np.concatenate([terms, numerators], axis=1)
        denominators = np.concatenate([np.ones_like(terms), denominators], axis=1)
        value += float(terms.mean())
        gradient = gradient + added[1]
    return OffPolicyEstimate(value, gradient, w, effective_sample_size(w), numerators, denominators)


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
    """Estimate a policy's value from predicted rewards, corrected by inverse propensity scores of what they miss.

    ::

        V = 1 / N sum_i (E[p(y) | query of i] + w_i (r_i - p(y_i))),   p(y) = sum_k theta_k rho_{y_k}

    The expectation is over the new policy and exact, as its gradient is: nothing is sampled but the log. The better the
    prediction, the less is left to vary; whatever it is, V is unbiased.

    Parameters
    ----------
    scores, rankings, rewards, propensities, logging_scores, offsets, clip, self_normalized, n_threads
        As in ``ips``; ``clip`` and ``self_normalized`` concern the correction.
    relevance : array_like, shape (n_docs,)
        Predicted worth rho of each document, such as its chance of a click once looked at.
    rank_weights : array_like, shape (K,) or (n_queries, K)
        Weight theta of each rank in the prediction.

    Returns
    -------
    OffPolicyEstimate

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    O(N (D + K)), and ``pl_rank_exact`` once.

    Examples
    --------
    A prediction without an error needs no correction:

    >>> from plrank_fast import off_policy
    >>> estimate = off_policy.doubly_robust(
    ...     [0.0, 2.0], [[0], [1], [1]], [0.0, 1.0, 1.0], [0.0, 1.0], [1.0], propensities=[0.5, 0.5, 0.5]
    ... )
    >>> round(estimate.value, 4), estimate.standard_error
    (0.8808, 0.0)
    """
    log = _read_log(scores, rankings, offsets, n_threads)
    gains = log.of_rows(rewards, "rewards")
    predicted = validation.same_length(validation.real_array(relevance, "relevance"), "relevance", log.scores)
    theta = validation.weights_of_ranks(rank_weights, log.offsets)
    log_propensities = _log_propensities(log, propensities, logging_scores)
    self_normalized = validation.flag(self_normalized, "self_normalized")
    weights, slopes = _weights(log.log_prob(log.scores) - log_propensities, clip)
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


def rips(
    scores: ArrayLike,
    rankings: ArrayLike,
    rank_rewards: ArrayLike,
    *,
    logging_scores: ArrayLike,
    offsets: ArrayLike | None = None,
    clip: float | None = None,
    self_normalized: bool = False,
    n_threads: int | None = None,
) -> OffPolicyEstimate:
    """Estimate a policy's value from a reward per rank, each with the weight of the ranks down to its own.

    ::

        V = 1 / N sum_i sum_k w_ik r_ik,   w_ik = pi(y_i1 .. y_ik) / mu(y_i1 .. y_ik)

    Users who look from the top down and do not know what is below make this unbiased; the weights of the upper ranks
    vary far less than that of the whole ranking.

    Parameters
    ----------
    scores, rankings, offsets, clip, n_threads
        As in ``ips``; ``clip`` bounds each w_ik.
    rank_rewards : array_like, of the shape of rankings
        What came of each rank, such as its click; what stands past the end of a ranking is not looked at.
    logging_scores : array_like, shape (n_docs,)
        Log-weights of the Plackett-Luce policy that made the log.
    self_normalized : bool
        Divide each rank's sum by that of its weights in place of N.

    Returns
    -------
    OffPolicyEstimate

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    O(N K (D + K)). Also called reward interaction inverse propensity scoring, or the cascade weights.

    Examples
    --------
    >>> import numpy as np
    >>> from plrank_fast import off_policy
    >>> estimate = off_policy.rips([0.0, np.log(9.0)], [[0, 1], [1, 0]], [[0, 1], [1, 0]], logging_scores=[0.0, 0.0])
    >>> round(estimate.value, 3)  # 0.9 of the second session's first rank, 0.1 of the first one's second rank
    1.0
    """
    log = _read_log(scores, rankings, offsets, n_threads)
    gains = log.of_ranks(rank_rewards, "rank_rewards")
    mu = _logging_scores(log, logging_scores)
    self_normalized = validation.flag(self_normalized, "self_normalized")
    n_ranks = log.rankings.shape[2]
    log_ratio = np.zeros(log.rankings.shape)
    for k in range(n_ranks):
        log_ratio[:, :, k] = log.log_prob(log.scores, k + 1) - log.log_prob(mu, k + 1)
    weights, slopes = _weights(log_ratio, clip)
    estimate, cotangent = _of_ranks(log, gains, weights, slopes, self_normalized)
    gradient = np.zeros(log.scores.size)
    for k in range(n_ranks):
        gradient += log.log_prob_gradient(np.ascontiguousarray(cotangent[:, :, k]), k + 1)
    return estimate(gradient)


def iips(
    scores: ArrayLike,
    rankings: ArrayLike,
    rank_rewards: ArrayLike,
    *,
    logging_scores: ArrayLike,
    offsets: ArrayLike | None = None,
    clip: float | None = None,
    self_normalized: bool = False,
    n_threads: int | None = None,
) -> OffPolicyEstimate:
    """Estimate a policy's value from a reward per rank, each with the weight of its item at that rank.

    ::

        V = 1 / N sum_i sum_k w_ik r_ik,   w_ik = P(rank of y_ik = k; new policy) / P(rank of y_ik = k; log)

    Both probabilities are exact (``rank_probabilities``), and so is the gradient. Unbiased if what comes of a rank
    depends on nothing but the rank and its item, as clicks do in a position-based model.

    Parameters
    ----------
    scores, rankings, rank_rewards, logging_scores, offsets, clip, self_normalized, n_threads
        As in ``rips``.

    Returns
    -------
    OffPolicyEstimate

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    O(N K), ``rank_probabilities`` twice and ``exposure_vjp`` K times. Also called independent inverse propensity
    scoring, or the item-position weights.

    Examples
    --------
    >>> import numpy as np
    >>> from plrank_fast import off_policy
    >>> estimate = off_policy.iips([0.0, np.log(9.0)], [[0, 1], [1, 0]], [[0, 1], [1, 0]], logging_scores=[0.0, 0.0])
    >>> round(estimate.value, 3)
    1.0
    """
    log = _read_log(scores, rankings, offsets, n_threads)
    gains = log.of_ranks(rank_rewards, "rank_rewards")
    mu = _logging_scores(log, logging_scores)
    self_normalized = validation.flag(self_normalized, "self_normalized")
    n_ranks, at_rank = log.rankings.shape[2], log.rankings >= 0
    documents, ranks = log.documents(), np.arange(n_ranks)
    new, old = (
        rank_probabilities(f, n_ranks, offsets=log.offsets, n_threads=log.n_threads)[documents, ranks]
        for f in (log.scores, mu)
    )
    old = validation.chances(np.where(at_rank, old, 1.0), "the probabilities of the log under logging_scores")
    new = np.where(at_rank, new, 1.0)
    with np.errstate(divide="ignore"):
        log_ratio = np.log(new) - np.log(old)
    weights, slopes = _weights(log_ratio, clip)
    estimate, cotangent = _of_ranks(log, gains, weights, slopes, self_normalized)
    # the derivative of a weight by the new probability of item d at rank k is 1 / P(rank of d = k; log)
    by_probability = np.divide(cotangent, new, out=np.zeros_like(cotangent), where=new > 0.0)
    of_documents = np.zeros((log.scores.size, n_ranks))
    np.add.at(
        of_documents, (documents[at_rank], np.broadcast_to(ranks, at_rank.shape)[at_rank]), by_probability[at_rank]
    )
    return estimate(_rank_probabilities_vjp(log, of_documents))


def _of_ranks(
    log: _Log, gains: FloatArray, weights: FloatArray, slopes: FloatArray, self_normalized: bool
) -> tuple[_UnfinishedEstimate, FloatArray]:
    """Estimate from weights of ranks, but for its gradient; and its derivative by the log of each probability."""
    w, r = weights[log.shown], gains[log.shown]
    at_rank = log.rankings[log.shown] >= 0
    numerators = w * r
    denominators = np.where(at_rank, w, 0.0) if self_normalized else np.ones_like(w)
    totals = denominators.sum(axis=0)
    ratios = _ratios(numerators.sum(axis=0), totals)
    surplus = gains - ratios if self_normalized else gains
    shares = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals != 0.0)
    cotangent = np.where(log.rankings >= 0, slopes * surplus * shares, 0.0)
    sizes = [effective_sample_size(w[at_rank[:, k], k]) for k in range(w.shape[1]) if at_rank[:, k].any()]
    return _UnfinishedEstimate(float(ratios.sum()), w, min(sizes), numerators, denominators), cotangent


class _UnfinishedEstimate(NamedTuple):
    """An estimate that lacks its gradient."""

    value: float
    weights: FloatArray
    size: float
    numerators: FloatArray
    denominators: FloatArray

    def __call__(self, gradient: FloatArray) -> OffPolicyEstimate:
        return OffPolicyEstimate(self.value, gradient, self.weights, self.size, self.numerators, self.denominators)


def _rank_probabilities_vjp(log: _Log, cotangent: FloatArray) -> FloatArray:
    """Gradient of sum_dk C_dk P(rank of d = k) under the new policy, rank by rank: each is an expected metric."""
    gradient = np.zeros(log.scores.size)
    for k in range(cotangent.shape[1]):
        only = np.zeros(k + 1)
        only[k] = 1.0
        if cotangent[:, k].any():
            gradient += exposure_vjp(
                log.scores, only, cotangent[:, k], offsets=log.offsets, rtol=ACCURACY, n_threads=log.n_threads
            )
    return gradient


def pseudo_inverse(
    scores: ArrayLike,
    rankings: ArrayLike,
    rewards: ArrayLike,
    *,
    logging_scores: ArrayLike,
    offsets: ArrayLike | None = None,
    n_samples: int = 100_000,
    rng: RandomState = None,
    n_threads: int | None = None,
) -> OffPolicyEstimate:
    """Estimate a policy's value from one reward per ranking that is a sum over items at ranks, in unknown shares.

    ::

        V = 1 / N sum_i r_i q' G^+ 1_i,   G = E[1 1'; log],   q = E[1; new policy]

    with 1_i the indicator of the items at the ranks of y_i, (D K,). Only the sum is observed: least squares share it
    out. The marginal probabilities q are exact (``rank_probabilities``), and so is the gradient.

    Parameters
    ----------
    scores, rankings, rewards, offsets, n_threads
        As in ``ips``. All rankings of a query must be as long as the array or the query.
    logging_scores : array_like, shape (n_docs,)
        Log-weights of the Plackett-Luce policy that made the log.
    n_samples : int
        G is taken over all prefixes of K ranks where there are no more of them than this, and over so many drawn ones
        otherwise.
    rng : None, int, SeedSequence, BitGenerator or Generator
        Source of these.

    Returns
    -------
    OffPolicyEstimate

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    O(D^3 K^3) per query that has sessions: for candidate sets of a few dozen.

    Examples
    --------
    >>> import numpy as np
    >>> from plrank_fast import off_policy
    >>> estimate = off_policy.pseudo_inverse([0.0, np.log(9.0)], [[0, 1], [1, 0]], [0, 1], logging_scores=[0.0, 0.0])
    >>> round(estimate.value, 3)
    0.9
    """
    log = _read_log(scores, rankings, offsets, n_threads)
    gains = log.of_rows(rewards, "rewards")
    mu = _logging_scores(log, logging_scores)
    n_samples = validation.count(n_samples, "n_samples", 1)
    n_queries, n_ranks = log.offsets.size - 1, log.rankings.shape[2]
    validation.whole_rankings((log.rankings >= 0).sum(axis=2), log.shown, np.minimum(np.diff(log.offsets), n_ranks))
    streams = np.random.SeedSequence([int(word) for word in validation.stream_key(validation.check_random_state(rng))])
    new = rank_probabilities(log.scores, n_ranks, offsets=log.offsets, n_threads=log.n_threads)
    terms = np.zeros(log.shown.shape)
    of_documents = np.zeros(new.shape)
    for query, stream in zip(range(n_queries), streams.spawn(n_queries), strict=True):
        if not log.shown[query].any():
            continue
        part = slice(log.offsets[query], log.offsets[query + 1])
        n_docs = int(log.offsets[query + 1] - log.offsets[query])
        ranks = np.arange(min(n_ranks, n_docs))
        inverse = np.linalg.pinv(
            _second_moments(mu[part], ranks.size, n_samples, stream, log.n_threads), hermitian=True
        )
        places = log.rankings[query, log.shown[query]][:, : ranks.size] * ranks.size + ranks
        of_places = inverse[:, places].sum(axis=2)  # G^+ 1_i of each session, (D K, n_sessions)
        terms[query, log.shown[query]] = new[part, : ranks.size].reshape(-1) @ of_places
        of_documents[part, : ranks.size] = (of_places @ gains[query, log.shown[query]]).reshape(n_docs, -1)
    numerators = (terms * gains)[log.shown][:, np.newaxis]
    weights = np.ones(len(numerators))
    gradient = _rank_probabilities_vjp(log, of_documents / log.n_sessions)
    return OffPolicyEstimate(
        float(numerators.mean()), gradient, weights, float(len(weights)), numerators, np.ones_like(numerators)
    )


def _second_moments(
    scores: FloatArray, n_ranks: int, n_samples: int, stream: np.random.SeedSequence, n_threads: int
) -> FloatArray:
    """Chance of each pair of items to be at each pair of ranks, (D K, D K)."""
    n_docs = scores.size
    if math.perm(n_docs, n_ranks) <= n_samples:
        rankings = np.array(list(itertools.permutations(range(n_docs), n_ranks)), dtype=np.int32)
        chances = np.exp(ranking_log_prob(scores, rankings, n_threads=n_threads))
    else:
        rankings = sample_rankings(scores, n_samples, n_ranks, rng=stream, n_threads=n_threads)
        chances = np.full(n_samples, 1.0 / n_samples)
    places = rankings * n_ranks + np.arange(n_ranks)
    size = n_docs * n_ranks
    moments = np.zeros(size * size)
    for j, k in itertools.product(range(n_ranks), repeat=2):
        moments += np.bincount(places[:, j] * size + places[:, k], chances, minlength=size * size)
    return moments.reshape(size, size)


def position_bias(cutoff: int, eta: float = 1.0) -> FloatArray:
    """Chance that a user looks at each rank, (1 / k)**eta.

    Parameters
    ----------
    cutoff : int
        Number of ranks, K.
    eta : float
        How fast attention falls, at least 0.

    Returns
    -------
    ndarray, shape (K,), float64

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Examples
    --------
    >>> from plrank_fast.off_policy import position_bias
    >>> position_bias(4)
    array([1.        , 0.5       , 0.33333333, 0.25      ])
    """
    cutoff = validation.count(cutoff, "cutoff", 0)
    return np.arange(1, cutoff + 1, dtype=np.float64) ** -validation.at_least(eta, "eta", 0.0)


def trust_bias(cutoff: int, eta: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """Click model in which users trust high ranks: P(click) = alpha_k relevance + beta_k.

    A user who looks at rank k clicks on a relevant item with chance 1 - (min(k, 20) + 1) / 100, and on one that is not
    with chance 0.65 / min(k, 10).

    Parameters
    ----------
    cutoff, eta
        As in ``position_bias``, which says who looks.

    Returns
    -------
    alpha, beta : ndarray, shape (K,), float64
        For ``simulate_clicks(rankings, relevance, alpha, noise=beta)``; exposure and ``relevance_from_clicks`` take
        them likewise.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    Source: Agarwal et al., "Addressing trust bias for unbiased learning-to-rank", WWW 2019; the numbers: Vardasbi,
    Oosterhuis and de Rijke, "When inverse propensity scoring does not work", CIKM 2020.

    Examples
    --------
    >>> from plrank_fast.off_policy import trust_bias
    >>> alpha, beta = trust_bias(3)
    >>> alpha.round(3), beta.round(3)
    (array([0.33 , 0.322, 0.248]), array([0.65 , 0.162, 0.072]))
    """
    looks = position_bias(cutoff, eta)
    rank = np.arange(1, looks.size + 1)
    if_relevant = 1.0 - (np.minimum(rank, 20) + 1) / 100.0
    if_not = 0.65 / np.minimum(rank, 10)
    return looks * (if_relevant - if_not), looks * if_not


def simulate_clicks(
    rankings: ArrayLike,
    relevance: ArrayLike,
    examination: ArrayLike,
    *,
    noise: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    rng: RandomState = None,
) -> NDArray[np.bool_]:
    """Draw clicks on rankings: on item d at rank k with chance examination_k relevance_d + noise_k, each for itself.

    Parameters
    ----------
    rankings : array_like of int, shape (n_rankings, K), or (n_queries, n_rankings, K) with ``offsets``
        What is shown; may end early, with -1 after the last item.
    relevance : array_like, shape (n_docs,)
        Chance that a user who looks at a document clicks on it, from 0 to 1.
    examination : array_like, shape (K,)
        Chance that a user looks at each rank, such as ``position_bias(K)``.
    noise : array_like, shape (K,), optional
        Chance of a click whatever the document is; 0 by default. ``trust_bias`` has both.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    rng : None, int, SeedSequence, BitGenerator or Generator
        Source of the clicks.

    Returns
    -------
    ndarray of bool, of the shape of rankings
        False past the end of a ranking.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Examples
    --------
    >>> from plrank_fast import off_policy
    >>> off_policy.simulate_clicks([[0, 1], [1, 0]], [1.0, 0.0], [1.0, 0.0], rng=0)
    array([[ True, False],
           [False, False]])
    """
    chance = validation.real_array(relevance, "relevance")
    validation.within(chance, "relevance", 0.0, 1.0)
    log = _read_log(chance, rankings, offsets, 1)
    alpha, beta = _click_model(log, examination, noise)
    at_rank = log.rankings >= 0
    chances = np.where(at_rank, alpha * chance[log.documents()] + beta, 0.0)
    validation.within(chances.reshape(-1), "the chances of clicks", 0.0, 1.0)
    clicks: NDArray[np.bool_] = _generator(rng).random(chances.shape) < chances
    return clicks if log.batch else clicks[0]


def _click_model(log: _Log, examination: ArrayLike, noise: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    """Slope and intercept of the chance of a click at each rank of the log."""
    n_ranks = log.rankings.shape[2]
    alpha = validation.one_per_place(validation.real_array(examination, "examination"), "examination", n_ranks)
    if noise is None:
        return alpha, np.zeros(n_ranks)
    return alpha, validation.one_per_place(validation.real_array(noise, "noise"), "noise", n_ranks)


def relevance_from_clicks(
    rankings: ArrayLike,
    clicks: ArrayLike,
    propensities: ArrayLike,
    *,
    examination: ArrayLike | None = None,
    noise: ArrayLike | None = None,
    predicted: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
) -> FloatArray:
    """Estimate the relevance of each document from clicks and its exposure under the logging policy.

    ::

        rho_d = p_d + 1 / N sum_i (c_i(d) - noise_k - examination_k p_d) / E_d

    where the sum is over the N sessions of the query, k the rank at which session i shows d (nothing is added if it
    does not), c_i(d) whether d was clicked, E_d = sum_k examination_k P(rank of d = k) its exposure and p_d a
    prediction, 0 by default. Unbiased for clicks with chance examination_k rho_d + noise_k, of any document that the
    logging policy may show; a prediction that is nearly right leaves less to vary. Goes where ``pl_rank_exact`` and
    the other gradients take relevance.

    Parameters
    ----------
    rankings : array_like of int, shape (n_sessions, K), or (n_queries, n_sessions, K) with ``offsets``
        What was shown; a row of -1 is no session.
    clicks : array_like, of the shape of rankings
        Clicks, as numbers or bool.
    propensities : array_like, shape (n_docs,)
        E: exact exposures, ``item_propensities(logging_scores, examination)``.
    examination : array_like, shape (K,), optional
        Needed with ``predicted`` only.
    noise : array_like, shape (K,), optional
        Chance of a click whatever the document is, as in ``trust_bias``.
    predicted : array_like, shape (n_docs,), optional
        p, such as the estimate of a regression.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        May be above 1 or, with ``noise`` or ``predicted``, below 0: what makes it unbiased. ``predicted`` where a query
        has no session, or the exposure is 0.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; the message names it.

    Notes
    -----
    Source: Oosterhuis and de Rijke, SIGIR 2020 (policy-aware); Vardasbi et al., CIKM 2020 (trust bias); Oosterhuis,
    "Doubly robust estimation for correcting position bias in click feedback", TOIS 2023.

    Examples
    --------
    Document 1 is shown at the second rank, at which one user in two looks, and is clicked in one session of two:

    >>> from plrank_fast import off_policy
    >>> off_policy.relevance_from_clicks([[0, 1], [0, 1]], [[1, 0], [1, 1]], [1.0, 0.5])
    array([1., 1.])
    """
    seen = validation.real_array(propensities, "propensities")
    validation.within(seen, "propensities", 0.0, np.inf)
    log = _read_log(seen, rankings, offsets, 1)
    surplus = log.of_ranks(clicks, "clicks")
    prior = np.zeros(seen.size)
    if predicted is not None:
        prior = validation.real_array(predicted, "predicted")
        validation.same_length(prior, "predicted", seen, scores_first=False)
        validation.required(examination, "examination", "predicted")
    at_rank, documents = log.rankings >= 0, log.documents()
    ones = np.ones(log.rankings.shape[2])
    alpha, beta = _click_model(log, ones if examination is None else examination, noise)
    surplus = np.where(at_rank, surplus - beta - alpha * prior[documents], 0.0)
    total = np.bincount(documents[at_rank], surplus[at_rank], minlength=seen.size)
    n_sessions = np.repeat(log.shown.sum(axis=1), np.diff(log.offsets))
    exposed = n_sessions * seen
    return prior + np.divide(total, exposed, out=np.zeros(seen.size), where=exposed > 0.0)
