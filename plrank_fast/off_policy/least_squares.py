"""Least squares on the items at the ranks of each session."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast.off_policy.estimate import OffPolicyEstimate
from plrank_fast.off_policy.log import read_log, scores_of_logging_policy
from plrank_fast.probabilities import rank_probabilities
from plrank_fast.sampling import ranking_log_prob, sample_rankings
from plrank_fast.validation import FloatArray, RandomState

EPSILON = float(np.finfo(np.float64).eps)


@validation.hinted
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
    r"""Estimate a policy's value from one reward per ranking that is a sum of unknown terms, one per item and rank.

    Only the sum is observed; least squares estimate the terms.

    Parameters
    ----------
    scores : array_like, shape (n_docs,)
        Log-weights of the new policy, pi.
    rankings : array_like of int, shape (n_sessions, K), or (n_queries, n_sessions, K) with ``offsets``
        The rankings shown, each of K ranks or of all documents of its query; a row of -1 does not count as a session.
    rewards : array_like, shape (n_sessions,), or (n_queries, n_sessions) with ``offsets``
        Reward of each session.
    logging_scores : array_like, shape (n_docs,)
        Log-weights of the Plackett-Luce policy that made the log.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    n_samples : int
        G is averaged over all prefixes of K ranks if there are at most this many, and over this many drawn ones
        otherwise.
    rng : None, int, SeedSequence, BitGenerator or Generator
        Source of the drawn prefixes.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    OffPolicyEstimate

    Notes
    -----
    With 1_i the indicator of the items at the ranks of y_i, of shape (D K,),

    .. math:: V = \frac{1}{N} \sum_i r_i\, q' G^+ 1_i, \quad G = E_{\text{log}}[1\, 1'], \quad q = E_{\text{new}}[1]

    The marginal probabilities q are exact (``rank_probabilities``), and so is the gradient. The cost is O(D^3 K^3) per
    query that has sessions, which suits candidate sets of a few dozen.

    Examples
    --------
    >>> import numpy as np
    >>> from plrank_fast import off_policy
    >>> estimate = off_policy.pseudo_inverse([0.0, np.log(9.0)], [[0, 1], [1, 0]], [0, 1], logging_scores=[0.0, 0.0])
    >>> round(estimate.value, 3)
    0.9
    """
    log = read_log(scores, rankings, offsets, n_threads)
    gains = log.of_rows(rewards, "rewards")
    mu = scores_of_logging_policy(log, logging_scores)
    n_samples = validation.count(n_samples, "n_samples", 1)
    n_queries, n_ranks = log.offsets.size - 1, log.rankings.shape[2]
    lengths, wanted = (log.rankings >= 0).sum(axis=2), np.minimum(np.diff(log.offsets), n_ranks)
    whole = ~log.shown | (lengths >= wanted[:, np.newaxis])
    validation.each(whole, lengths, "rankings", "not end early here")
    new = rank_probabilities(log.scores, n_ranks, offsets=log.offsets, n_threads=log.n_threads)
    streams = validation.seed_sequence(rng)
    terms = np.zeros(log.shown.shape)
    of_documents = np.zeros(new.shape)
    for query, stream in zip(range(n_queries), streams.spawn(n_queries), strict=True):
        if not log.shown[query].any():
            continue
        part = slice(log.offsets[query], log.offsets[query + 1])
        n_docs = int(log.offsets[query + 1] - log.offsets[query])
        ranks = np.arange(min(n_ranks, n_docs))
        moments = _second_moments(mu[part], ranks.size, n_samples, stream, log.n_threads)
        places = log.rankings[query, log.shown[query]][:, : ranks.size] * ranks.size + ranks
        worth = np.bincount(places.ravel(), np.repeat(gains[query, log.shown[query]], ranks.size), len(moments))
        solved = _solve(moments, np.column_stack([new[part, : ranks.size].reshape(-1), worth]))
        terms[query, log.shown[query]] = solved[places, 0].sum(axis=1)
        of_documents[part, : ranks.size] = solved[:, 1].reshape(n_docs, -1)
    numerators = (terms * gains)[log.shown][:, np.newaxis]
    weights = np.ones(len(numerators))
    return OffPolicyEstimate(
        float(numerators.mean()), weights, numerators, np.ones_like(numerators),
        lambda: log.rank_probabilities_vjp(of_documents / log.n_sessions), lambda: float(len(weights)),
    )  # fmt: skip


def _solve(moments: FloatArray, sides: FloatArray) -> FloatArray:
    """Solve a positive semi-definite system for sides in its range; unknowns that the others determine are 0.

    Elimination with the largest diagonal entry as the pivot. NumPy's linear algebra can hang in the child of a fork.
    """
    unit = np.sqrt(np.diagonal(moments))
    inverse = np.divide(1.0, unit, out=np.zeros_like(unit), where=unit > 0.0)[:, np.newaxis]
    rows = np.hstack([moments * inverse.T, sides]) * inverse
    size, order = len(rows), np.arange(len(rows))
    for k in range(size):
        pivot = k + int(np.argmax(np.diagonal(rows)[k:]))
        if rows[pivot, pivot] <= size * EPSILON:
            size = k
            break
        order[[k, pivot]] = order[[pivot, k]]
        rows[[k, pivot]] = rows[[pivot, k]]
        rows[:, [k, pivot]] = rows[:, [pivot, k]]
        rows[k + 1 :, k + 1 :] -= rows[k + 1 :, k, np.newaxis] / rows[k, k] * rows[k, k + 1 :]
    solved = np.zeros(sides.shape)
    for k in reversed(range(size)):
        known = (rows[k, k + 1 : size, np.newaxis] * solved[order[k + 1 : size]]).sum(axis=0)
        solved[order[k]] = (rows[k, len(rows) :] - known) / rows[k, k]
    return solved * inverse


def _second_moments(
    scores: FloatArray, n_ranks: int, n_samples: int, stream: np.random.SeedSequence, n_threads: int | None
) -> FloatArray:
    """Return the probability of each pair of items at each pair of ranks, (D K, D K)."""
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
