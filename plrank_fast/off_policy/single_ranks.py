"""Estimates that weight each rank of a session separately."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast._core.ranking.rankings import at_places
from plrank_fast.off_policy.estimate import OffPolicyEstimate, weighted_estimate
from plrank_fast.off_policy.log import read_log, scores_of_logging_policy
from plrank_fast.off_policy.propensities import given_propensities, importance_weights, slopes_of
from plrank_fast.probabilities import rank_probabilities
from plrank_fast.validation import FloatArray

ROUNDING = 1e-9  # probabilities of the ranks down to each must not rise by more


@validation.hinted
def rips(
    scores: ArrayLike,
    rankings: ArrayLike,
    rank_rewards: ArrayLike,
    *,
    propensities: ArrayLike | None = None,
    logging_scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    clip: float | None = None,
    self_normalized: bool = False,
    n_threads: int | None = None,
) -> OffPolicyEstimate:
    r"""Estimate a policy's value from a reward per rank, each with the weight of the ranks down to its own.

    The estimate is unbiased if users look from the top down and are not influenced by what is below. The weights of
    the upper ranks vary far less than the weight of the whole ranking.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights of the new policy, pi.
    rankings : array_like of int, shape (n_sessions, K), or (n_queries, n_sessions, K) with ``offsets``
        The rankings shown. A ranking may end early, with -1 after its last item; a row of -1 does not count as a
        session.
    rank_rewards : array_like, of the shape of rankings
        Reward of each rank, such as its click; entries past the end of a ranking are ignored.
    propensities : array_like, of the shape of rankings, optional
        Probability with which the ranks down to each were shown, 2.2e-308 or more; it falls, or stays, from rank to
        rank. Entries past the end of a ranking are ignored.
    logging_scores : array_like, shape (n_docs,), optional
        Log-weights of a Plackett-Luce logging policy, in place of ``propensities``.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    clip : float, optional
        Largest weight, from 2**-200 to 2**200; larger ones are set to this value and contribute no derivative.
    self_normalized : bool
        Divide each rank's sum by the sum of its weights in place of N, times the share of sessions that have the rank.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    OffPolicyEstimate

    Notes
    -----
    .. math:: V = \frac{1}{N} \sum_i \sum_k w_{ik} r_{ik},
              \quad w_{ik} = \frac{\pi(y_{i1} \ldots y_{ik})}{\mu(y_{i1} \ldots y_{ik})}

    The value costs O(D + N K) and the gradient O(N K (D + K)). The estimator is also called reward interaction inverse
    propensity scoring, or cascade weights.

    Examples
    --------
    >>> import numpy as np
    >>> from plrank_fast import off_policy
    >>> estimate = off_policy.rips([0.0, np.log(9.0)], [[0, 1], [1, 0]], [[0, 1], [1, 0]], logging_scores=[0.0, 0.0])
    >>> round(estimate.value, 3)  # 0.9 of the second session's first rank, 0.1 of the first one's second rank
    1.0
    """
    log = read_log(scores, rankings, offsets, n_threads)
    gains = log.of_ranks(rank_rewards, "rank_rewards")
    name, given = validation.only_one({"propensities": propensities, "logging_scores": logging_scores})
    self_normalized, at_rank = validation.flag(self_normalized, "self_normalized"), log.rankings >= 0
    if name == "propensities":
        chances = given_propensities(log, given, at_rank)
        falls = (np.diff(chances, axis=2) <= ROUNDING) | ~at_rank[:, :, 1:]
        validation.each(falls, chances[:, :, 1:], name, "not rise from rank to rank, as all ranks down to each count")
        logged = np.log(chances)
    else:
        logged = validation.representable(log.log_prob(scores_of_logging_policy(log, given), of_prefixes=True), name)
    log_ratio = log.log_prob(log.scores, of_prefixes=True) - logged
    weights, summed, clipped = importance_weights(log_ratio, at_rank, clip, self_normalized, name)

    def gradient(cotangent: FloatArray) -> FloatArray:
        parts = [log.log_prob_gradient(cotangent[:, :, k], k + 1) for k in range(cotangent.shape[2])]
        return np.sum(parts, axis=0)

    return weighted_estimate(
        log, at_rank, gains, weights, summed, lambda: slopes_of(summed, clipped), self_normalized, gradient
    )


@validation.hinted
def iips(
    scores: ArrayLike,
    rankings: ArrayLike,
    rank_rewards: ArrayLike,
    *,
    propensities: ArrayLike | None = None,
    logging_scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    clip: float | None = None,
    self_normalized: bool = False,
    n_threads: int | None = None,
) -> OffPolicyEstimate:
    r"""Estimate a policy's value from a reward per rank, each with the weight of its item at that rank.

    The estimate is unbiased if the reward of a rank depends on nothing but the rank and its item, as clicks do in a
    position-based model.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights of the new policy, pi.
    rankings : array_like of int, shape (n_sessions, K), or (n_queries, n_sessions, K) with ``offsets``
        The rankings shown. A ranking may end early, with -1 after its last item; a row of -1 does not count as a
        session.
    rank_rewards : array_like, of the shape of rankings
        Reward of each rank, such as its click; entries past the end of a ranking are ignored.
    propensities : array_like, of the shape of rankings, optional
        Probability with which each item was shown at its rank, 6.2e-61 or more. Entries past the end of a ranking are
        ignored.
    logging_scores : array_like, shape (n_docs,), optional
        Log-weights of a Plackett-Luce logging policy, in place of ``propensities``.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    clip : float, optional
        Largest weight, from 2**-200 to 2**200; larger ones are set to this value and contribute no derivative.
    self_normalized : bool
        Divide each rank's sum by the sum of its weights in place of N, times the share of sessions that have the rank.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    OffPolicyEstimate

    Notes
    -----
    .. math:: V = \frac{1}{N} \sum_i \sum_k w_{ik} r_{ik},
              \quad w_{ik} = \frac{P_{\text{new}}(y_{ik} \text{ at } k)}{P_{\text{log}}(y_{ik} \text{ at } k)}

    Both probabilities are exact (``rank_probabilities``), and so is the gradient. The value costs O(N K) and
    ``rank_probabilities`` twice, the gradient O(N K) and ``pl_rank_exact`` K times. The estimator is also called
    independent inverse propensity scoring, or item-position weights.

    Examples
    --------
    >>> import numpy as np
    >>> from plrank_fast import off_policy
    >>> estimate = off_policy.iips([0.0, np.log(9.0)], [[0, 1], [1, 0]], [[0, 1], [1, 0]], logging_scores=[0.0, 0.0])
    >>> round(estimate.value, 3)
    1.0
    """
    log = read_log(scores, rankings, offsets, n_threads)
    gains = log.of_ranks(rank_rewards, "rank_rewards")
    name, given = validation.only_one({"propensities": propensities, "logging_scores": logging_scores})
    self_normalized = validation.flag(self_normalized, "self_normalized")
    n_ranks, at_rank = log.rankings.shape[2], log.rankings >= 0

    def chances(scores: FloatArray) -> FloatArray:
        return rank_probabilities(scores, n_ranks, offsets=log.offsets, n_threads=log.n_threads)

    def in_log(of_documents: FloatArray) -> FloatArray:
        values: FloatArray = at_places(of_documents, log.offsets, log.rankings, 1.0)
        return values

    new = chances(log.scores)
    if name == "propensities":
        old = given_propensities(log, given, at_rank, validation.SMALLEST_MAGNITUDE)
        weights = in_log(new) / old
    else:
        of_old = chances(scores_of_logging_policy(log, given))
        possible = of_old >= validation.SMALLEST_MAGNITUDE
        if not possible.all():
            validation.chances(in_log(of_old), "the probabilities of the log under logging_scores")
        weights = in_log(np.divide(new, of_old, out=np.zeros_like(new), where=possible))
    bound = np.inf if clip is None else validation.factor(clip, "clip")

    def slopes() -> FloatArray:
        """Derivative of a weight by the new probability of item d at rank k: 1 / P(rank of d = k; log)."""
        return np.where(weights < bound, 1.0 / (old if name == "propensities" else in_log(of_old)), 0.0)

    def gradient(by_probability: FloatArray) -> FloatArray:
        places = (log.documents() * n_ranks + np.arange(n_ranks))[at_rank]
        of_documents = np.bincount(places, by_probability[at_rank], new.size).astype(np.float64, copy=False)
        return log.rank_probabilities_vjp(of_documents.reshape(new.shape))

    bounded = weights if clip is None else np.minimum(weights, bound)
    return weighted_estimate(log, at_rank, gains, bounded, bounded, slopes, self_normalized, gradient)
