"""How often users look at each rank, from their clicks: the position-based model without its attractiveness."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast.off_policy.log import read_log
from plrank_fast.strengths.information import inverse_of_positive
from plrank_fast.validation import FloatArray

STANDS = 1e-6  # a Newton step so short leaves an error of its square
MOST_STEPS = 200


@validation.hinted
def position_bias_from_clicks(
    rankings: ArrayLike, clicks: ArrayLike, *, offsets: ArrayLike | None = None
) -> tuple[FloatArray, FloatArray]:
    r"""Estimate how often users look at each rank, relative to the first, from clicks on items at different ranks.

    The click model is the position-based one: item d at rank k is clicked with probability examination_k rho_d. The
    attractiveness rho_d of each item drops out of the estimate, so that a few sessions for each item are enough.

    Parameters
    ----------
    rankings : array_like of int, shape (n_sessions, K), or (n_queries, n_sessions, K) with ``offsets``
        The rankings shown. A ranking may end early, with -1 after its last item; a row of -1 does not count as a
        session.
    clicks : array_like, of the shape of rankings
        Clicks, as bool or as numbers from 0 to 1.
    offsets : array_like of int, shape (n_queries + 1,), optional
        Where each query's documents start; a single query by default.

    Returns
    -------
    examination : ndarray, shape (K,), float64
        1 at the first rank. Rounding of the sample may leave others above 1: divide by the largest, since only ratios
        are known. Pass it to ``plrank_fast.exposure`` and ``relevance_from_clicks``.
    standard_errors : ndarray, shape (K,), float64
        0 at the first rank. They count clicks as independent, and are too large where an item is rarely shown twice at
        a rank. A rank without clicks has examination 0, and as its standard error what one click would make of it.

    Raises
    ------
    ValueError
        If clicks do not compare some rank with the first: an item must have been shown at both ranks and clicked at
        the first of them, another (or the same) clicked at the second, or so through further ranks.

    Notes
    -----
    .. math:: \max_\theta \sum_{d, k} c_{dk} \log \frac{n_{dk} \theta_k}{\sum_j n_{dj} \theta_j}

    n_dk is how often d was shown at rank k, and c_dk how often it was clicked there. This likelihood, of the rank of a
    click given its item, is that of Poisson counts with an effect for each item, and concave in the logarithm of theta.
    Its maximum tends to the truth if the mean of clicks is right, whatever else holds of them: for any number of items
    with as little as two sessions each, where the maximum over theta and rho together, which expectation-maximisation
    finds, does not. Rankings must not react to the clicks of the same log, and clicks out of trust in high ranks
    (``trust_bias``) count as attention.

    Each of some seven steps costs O(D K^2) for D documents that were clicked. Source: Craswell et al., "An experimental
    comparison of click position-bias models", WSDM 2008; Hausman, Hall and Griliches, "Econometric models for count
    data with an application to the patents-R&D relationship", Econometrica 1984; Wooldridge, "Distribution-free
    estimation of some nonlinear panel data models", Journal of Econometrics 1999 (the mean alone must be right).

    Examples
    --------
    Both documents are clicked twice as often at the first rank:

    >>> from plrank_fast import off_policy
    >>> rankings, clicks = [[0, 1], [1, 0]] * 2, [[1, 1], [1, 0], [1, 0], [1, 1]]
    >>> examination, standard_errors = off_policy.position_bias_from_clicks(rankings, clicks)
    >>> examination, standard_errors.round(2)
    (array([1. , 0.5]), array([0.  , 0.35]))
    """
    if offsets is None:
        given = validation.integers(rankings, "rankings", None)
        last = int(given.max(initial=0))
        validation.require(last < 2**31, f"rankings must hold items below 2**31, got {last}")
        n_docs = max(last + 1, 1, *given.shape[-1:])  # so that every rank is checked
    else:
        offsets = validation.integer_array(offsets, "offsets")
        n_docs = max(int(offsets[-1:].max(initial=0)), 0)
    log = read_log(np.zeros(n_docs), rankings, offsets, 1)
    clicked = validation.within(log.of_ranks(clicks, "clicks"), "clicks", 0.0, 1.0)
    at_rank, n_ranks = log.rankings >= 0, log.rankings.shape[2]
    documents, of_click = log.documents()[at_rank], clicked[at_rank]
    used = np.bincount(documents, of_click, minlength=log.scores.size) > 0.0
    numbers, kept = np.cumsum(used) - 1, used[documents]
    cells = numbers[documents[kept]] * n_ranks + np.nonzero(at_rank)[2][kept]
    size, shape = int(used.sum()) * n_ranks, (-1, n_ranks)
    shown = np.bincount(cells, minlength=size).astype(np.float64).reshape(shape)
    counts: FloatArray = (
        np.bincount(cells, of_click[kept], minlength=size).reshape(shape).astype(np.float64, copy=False)
    )
    _require_connected(shown, counts)
    return _fitted(shown, counts)


def _require_connected(shown: FloatArray, counts: FloatArray) -> None:
    """Require that clicks bound each rank from above by others, and from below those that have any."""
    n_ranks = shown.shape[1]
    may_be_larger = np.einsum("dj,dk->jk", counts, shown) > 0.0  # clicked at j an item that was shown at k, too
    reached = may_be_larger | np.eye(n_ranks, dtype=bool)
    for _ in range(n_ranks.bit_length()):
        reached = np.einsum("ij,jk->ik", reached.astype(np.float64), reached.astype(np.float64)) > 0.0
    any_click = counts.sum(axis=0) > 0.0
    first = any_click[:1].any()
    validation.require(first, "clicks must have some at the first rank, to which the other ranks are compared")
    lost = ~(reached[0] & (reached[:, 0] | ~any_click))
    rank = int(np.argmax(lost)) + 1
    remedy = f"keep the ranks before, rankings[..., :{rank - 1}] and their clicks, or log items at more ranks"
    compare = f"must compare all ranks with the first, but do not compare rank {rank}"
    validation.require(not lost.any(), f"clicks {compare}: {remedy}")


def _fitted(shown: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the ranks' examination relative to the first, and standard errors.

    Along a step of range r the curvature of the likelihood changes by at most a factor of exp(r), so that the part
    log(1 + r) / r of a Newton step gains from any start, without a search along the line.
    """
    of_ranks, of_items = counts.sum(axis=0), counts.sum(axis=1)
    (free,) = np.nonzero(of_ranks[1:])
    free += 1
    logs = np.where(of_ranks > 0.0, 0.0, -np.inf)
    weak = "clicks compare ranks too weakly to estimate their examination: log items at more ranks"
    for _ in range(MOST_STEPS):
        expected = shown * np.exp(logs)
        parts = expected / expected.sum(axis=1, keepdims=True)
        likely = of_items[:, np.newaxis] * parts
        information = np.diag(likely.sum(axis=0)) - np.einsum("dj,dk->jk", parts, likely)
        inverse = inverse_of_positive(information[np.ix_(free, free)])
        step = np.einsum("jk,k->j", inverse, (of_ranks - likely.sum(axis=0))[free])
        validation.require(np.isfinite(step).all(), weak)
        length = float(np.ptp(np.append(step, 0.0)))
        logs[free] += step * (np.log1p(length) / length if length > 0.0 else 1.0)
        if length < STANDS:
            break
    else:
        validation.require(False, weak)
    examination = np.exp(logs)
    variances = np.where(shown > 1.0, counts * (shown - counts) / np.maximum(shown - 1.0, 1.0), counts)
    across = np.einsum("dj,dk->jk", variances, parts)
    spread = np.diag(variances.sum(axis=0)) - across - across.T
    spread += np.einsum("dj,dk->jk", parts * variances.sum(axis=1, keepdims=True), parts)
    errors = np.zeros(examination.size)
    errors[free] = np.sqrt(np.einsum("ij,jk,ki->i", inverse, spread[np.ix_(free, free)], inverse)) * examination[free]
    attractiveness = of_items / expected.sum(axis=1)
    silent = of_ranks == 0.0
    errors[silent] = 1.0 / np.einsum("d,dk->k", attractiveness, shown)[silent]
    return examination, errors
