"""Click models: simulation of clicks from relevance, and estimation of relevance from clicks."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plrank_fast import validation
from plrank_fast.off_policy.log import Log, read_log
from plrank_fast.validation import FloatArray, RandomState

ROUNDING = 1e-6  # computed exposures of at most 1 may exceed it by so much


def position_bias(cutoff: int, eta: float = 1.0) -> FloatArray:
    """Return the probability that a user looks at each rank, (1 / k)**eta.

    Parameters
    ----------
    cutoff : int
        Number of ranks, K.
    eta : float
        How fast attention falls with the rank, at least 0.

    Returns
    -------
    ndarray, shape (K,), float64

    Examples
    --------
    >>> from plrank_fast.off_policy import position_bias
    >>> position_bias(4)
    array([1.        , 0.5       , 0.33333333, 0.25      ])
    """
    cutoff = validation.count(cutoff, "cutoff", 0)
    return np.arange(1, cutoff + 1, dtype=np.float64) ** -validation.real(eta, "eta", at_least=0.0)


@validation.hinted
def trust_bias(cutoff: int, eta: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """Return a click model in which users trust high ranks: P(click) = alpha_k relevance + beta_k.

    A user who looks at rank k clicks on a relevant item with probability 1 - (min(k, 20) + 1) / 100, and on an
    irrelevant one with probability 0.65 / min(k, 10).

    Parameters
    ----------
    cutoff : int
        Number of ranks, K.
    eta : float
        How fast attention falls with the rank, at least 0.

    Returns
    -------
    alpha, beta : ndarray, shape (K,), float64
        Pass them as ``examination`` and ``noise`` to ``simulate_clicks`` and ``relevance_from_clicks``.

    Notes
    -----
    Source: Agarwal et al., "Addressing trust bias for unbiased learning-to-rank", WWW 2019. The numbers are from
    Vardasbi, Oosterhuis and de Rijke, "When inverse propensity scoring does not work", CIKM 2020.

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


@validation.hinted
def simulate_clicks(
    rankings: ArrayLike,
    relevance: ArrayLike,
    examination: ArrayLike,
    *,
    noise: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    rng: RandomState = None,
) -> NDArray[np.bool_]:
    """Draw clicks on rankings, independently: item d at rank k with probability examination_k relevance_d + noise_k.

    Parameters
    ----------
    rankings : array_like of int, shape (n_sessions, K), or (n_queries, n_sessions, K) with ``offsets``
        The rankings shown. A ranking may end early, with -1 after its last item; a row of -1 does not count as a
        session.
    relevance : array_like, shape (n_docs,)
        Probability that a user who looks at a document clicks on it, from 0 to 1.
    examination : array_like, shape (K,)
        Probability that a user looks at each rank, such as ``position_bias(K)``.
    noise : array_like, shape (K,), optional
        Probability of a click whatever the document is; 0 by default. ``trust_bias`` returns it and ``examination``.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.
    rng : None, int, SeedSequence, BitGenerator or Generator
        Source of the random numbers. The same key gives the same bits for any number of threads; a generator is
        advanced by one draw, and None is fresh entropy.

    Returns
    -------
    ndarray of bool, of the shape of rankings
        False past the end of a ranking.

    Notes
    -----
    The cost is O(N K).

    Examples
    --------
    >>> from plrank_fast import off_policy
    >>> off_policy.simulate_clicks([[0, 1], [1, 0]], [1.0, 0.0], [1.0, 0.0], rng=0)
    array([[ True, False],
           [False, False]])
    """
    chance = validation.real_array(relevance, "relevance")
    validation.within(chance, "relevance", 0.0, 1.0)
    log = read_log(chance, rankings, offsets, 1)
    examination = validation.given(examination, "examination", " to simulate clicks")
    alpha, beta = _of_places(examination, "examination", log, 1.0), _of_places(noise, "noise", log, 0.0)
    at_rank = log.rankings >= 0
    chances = np.where(at_rank, alpha * chance[log.documents()] + beta, 0.0)
    validation.within(chances.reshape(-1), "the probabilities of clicks", 0.0, 1.0)
    clicks: NDArray[np.bool_] = np.random.default_rng(validation.seed_sequence(rng)).random(chances.shape) < chances
    return clicks if log.batch else clicks[0]


def _of_places(values: ArrayLike | None, name: str, log: Log, otherwise: float) -> FloatArray:
    """Return one probability for each rank of the log."""
    n_ranks = log.rankings.shape[2]
    if values is None:
        return np.full(n_ranks, otherwise)
    array = validation.within(validation.real_array(values, name), name, 0.0, 1.0)
    enough = array.size >= n_ranks
    validation.require(enough, f"{name} must have one entry per rank, {n_ranks} or more, got {array.size}")
    return array[:n_ranks]


@validation.hinted
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
    r"""Estimate the relevance of each document from clicks and its exposure under the logging policy.

    The estimate is unbiased for clicks with probability examination_k rho_d + noise_k, for every document that the
    logging policy may show. Pass it as relevance to ``pl_rank_exact`` or any other gradient.

    Parameters
    ----------
    rankings : array_like of int, shape (n_sessions, K), or (n_queries, n_sessions, K) with ``offsets``
        The rankings shown. A ranking may end early, with -1 after its last item; a row of -1 does not count as a
        session.
    clicks : array_like, of the shape of rankings
        Clicks, as bool or as numbers of at least 0.
    propensities : array_like, shape (n_docs,)
        Exact exposures E, ``plrank_fast.exposure(logging_scores, examination)``, with the examination of the ranks that
        were shown. Of rankings that end early, the mean over the sessions of a query.
    examination : array_like, shape (K,), optional
        Probability that a user looks at each rank; only ``predicted`` needs it.
    noise : array_like, shape (K,), optional
        Probability of a click whatever the document is; 0 by default. ``trust_bias`` returns it and ``examination``.
    predicted : array_like, shape (n_docs,), optional
        Predicted relevance p, such as the estimate of a regression; an accurate one reduces the variance.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.

    Returns
    -------
    ndarray, shape (n_docs,), float64
        Values may be above 1 or, with ``noise`` or ``predicted``, below 0; cutting them off would bias them.
        ``predicted`` where a query has no session, or the exposure is 0.

    Notes
    -----
    .. math:: \rho_d = p_d + \frac{1}{N} \sum_i \frac{c_i(d) - b_k - a_k p_d}{E_d},
              \quad E_d = \sum_k a_k P(\text{rank of } d = k)

    The sum is over the sessions of the query's N that show d, at rank k; c_i(d) is 1 if d was clicked, a the
    examination, b the noise and p the prediction, 0 by default.

    The cost is O(D + N K). Source: Oosterhuis and de Rijke, SIGIR 2020 (policy-aware); Vardasbi et al., CIKM 2020
    (trust bias); Oosterhuis, "Doubly robust estimation for correcting position bias in click feedback", TOIS 2023.

    Examples
    --------
    Document 1 is shown at the second rank, at which one user in two looks, and is clicked in one session of two:

    >>> from plrank_fast import off_policy
    >>> off_policy.relevance_from_clicks([[0, 1], [0, 1]], [[1, 0], [1, 1]], [1.0, 0.5])
    array([1., 1.])
    """
    seen = validation.real_array(propensities, "propensities")
    validation.within(seen, "propensities", 0.0, 1.0 + ROUNDING)
    log = read_log(seen, rankings, offsets, 1)
    surplus = validation.within(log.of_ranks(clicks, "clicks"), "clicks", 0.0, np.inf)
    prior = np.zeros(seen.size)
    if predicted is not None:
        prior = validation.of_documents(predicted, "predicted", seen, log.offsets, scores_first=False)
        validation.given(examination, "examination", " for predicted")
    at_rank, documents = log.rankings >= 0, log.documents()
    alpha, beta = _of_places(examination, "examination", log, 1.0), _of_places(noise, "noise", log, 0.0)
    surplus = np.where(at_rank, surplus - beta - alpha * prior[documents], 0.0)
    total = np.bincount(documents[at_rank], surplus[at_rank], minlength=seen.size)
    divided = (total != 0.0) & (seen > 0.0)
    validation.within(np.where(divided, seen, 1.0), "propensities", validation.SMALLEST_MAGNITUDE, np.inf, ", or 0")
    n_sessions = np.repeat(log.shown.sum(axis=1), np.diff(log.offsets))
    exposed = n_sessions * seen
    return prior + np.divide(total, exposed, out=np.zeros(seen.size), where=exposed > 0.0)
