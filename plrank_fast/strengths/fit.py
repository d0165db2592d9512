"""Maximum likelihood of strengths, with features, a prior and weights of rankings."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plrank_fast import validation
from plrank_fast.bucket_order import negative_log_likelihood
from plrank_fast.strengths.fitted import FittedStrengths
from plrank_fast.strengths.observed import Observed, merged, read
from plrank_fast.validation import FloatArray

STEP = 1e-3  # gradients are differenced over it
MOST_STEPS = 1000
NEAR, CONVERGED = 1e-6, 1e-10  # squares of the length of a step in standard errors
MOST_NEWTON_STEPS = 60
STANDS = 5e-7  # the largest difference of strengths in a last step; the information changes by as much of itself
LONGEST_STEP = 2.0  # strengths may differ by it in one of Newton's steps
LEAST_CURVATURE = 1e-10  # smallest eigenvalue of the information, scaled to a diagonal of ones
MOST_ITEMS = 5_000  # their covariance takes 200 MB, and its inverse seconds


def fit_strengths(
    rankings: Any,
    buckets: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    weights: ArrayLike | None = None,
    names: Iterable[Hashable] | None = None,
    features: ArrayLike | None = None,
    ridge: float = 0.0,
    prior: ArrayLike | None = None,
    reference: Hashable | None = None,
    unranked: validation.Unranked = "absent",
    n_threads: int | None = None,
) -> FittedStrengths:
    """Fit strengths of items to rankings of some or all of them, in which items may be tied.

    Parameters
    ----------
    rankings : list of lists, array of shape (n_rankings, length), or array_like of shape (n_entries,)
        Items of each ranking, best first, as names or as numbers from 0; in a list, a set holds tied items. A row of an
        array may end early, with -1 (as ``sample_rankings`` pads) or None. With ``buckets`` and ``offsets``: the items
        that each ranking compares, all rankings one after another.
    buckets : array_like of int, shape (n_entries,), optional
        Place of each item in its ranking, up to 2**53 in magnitude. Items of a smaller number come first, and the order
        of those with the same number is unknown. A ranking of the best K of many items has the others in its last
        bucket.
    offsets : array_like of int, shape (n_rankings + 1,), optional
        Where each ranking starts.
    weights : array_like, shape (n_rankings,), optional
        How often each ranking was seen, or what it counts; at least 0.
    names : iterable of hashable, optional
        Names of the items, in the order of the result. By default the names in the rankings, sorted; numbers name
        themselves. Numbers in rankings are places in ``names``, unless ``names`` has numbers too.
    features : array_like, shape (n_items, n_features), optional
        Strengths are a linear function of these. With a ``ridge``, each item also has a part of its own.
    ridge : float
        Penalty of half the sum of squared strengths, or of squares of what features do not explain: the precision of a
        normal prior. At least 0; needed if rankings do not connect all items.
    prior : array_like, shape (n_items,), optional
        Means of that prior, in place of 0.
    reference : hashable, optional
        Item whose strength is 0. By default the mean of all is.
    unranked : {"absent", "last"}
        Whether an item that a ranking leaves out was not compared, or comes after the others, as in a ranking of the
        best K.
    n_threads : int, optional
        None or -1: all available processors; -2: all but one.

    Returns
    -------
    FittedStrengths
        Strengths, standard errors and covariance, into which it unpacks; with ``names``, ``intervals``, ``predict``,
        ``summary`` and ``plot``.

    Raises
    ------
    ValueError
        If the rankings do not connect the items, so that the most likely strengths are infinite, and ``ridge`` is 0, or
        if they, the features and the ridge determine strengths too weakly to compute them.

    Notes
    -----
    The sum of ``bucket_log_prob`` over the rankings is concave, with and without ties. Equal rankings are merged. BFGS
    starts with the exact Hessian, and Newton's method ends where its step moves no two strengths apart by more than
    5e-7. A Hessian takes a difference of two gradients for each place in the longest ranking, and O(n_items^3) for its
    inverse; standard errors have a relative error of about 1e-6.

    Without ties the estimates are those of Plackett and Luce, and with two items of Bradley and Terry. With ties they
    are those of a rank-ordered logit with the exact marginal likelihood of ties (``exactm`` in Stata), and of Cox's
    model with a stratum for each ranking and TIES=EXACT in SAS. Other models of ties, which give ties a probability of
    their own, have other estimates: those of Davidson and Luce in R's PlackettLuce, TIES=DISCRETE in SAS, and "exact"
    in R's survival. R's PlackettLuce also adds pseudo-rankings, unless ``npseudo=0``, and reports strengths relative to
    the first item.

    Examples
    --------
    >>> import numpy as np, plrank_fast as plr
    >>> battles = [["ann", "bob"], ["bob", "ann"], ["bob", "cy"], ["cy", "ann"]]
    >>> fit = plr.fit_strengths(battles, weights=[30, 20, 25, 10])
    >>> print(fit.summary())
    item    strength  std. error    95% from          to
    bob       0.3716      0.1704      0.0376      0.7056
    ann       0.2180      0.1966     -0.1674      0.6034
    cy       -0.5896      0.2521     -1.0838     -0.0954

    Three rankings in the convention of R's package PlackettLuce, with a column for each item, 0 for items that are not
    ranked, and equal numbers for ties:

    >>> ranks = np.array([[1, 2, 3], [2, 1, 2], [0, 2, 1]])
    >>> rows, items = np.nonzero(ranks)
    >>> fit = plr.fit_strengths(items, ranks[rows, items], plr.offsets_from_qid(rows))
    >>> fit.strengths.round(2), fit.standard_errors.round(2)
    (array([ 0.5,  0.1, -0.6]), array([0.95, 0.72, 0.83]))
    """
    names_, observed = read(rankings, buckets, offsets, weights=weights, names=names, unranked=unranked)
    n_items = len(names_)
    ridge = validation.real(ridge, "ridge", at_least=0.0)
    determined = ridge > 0.0 or features is not None
    if not determined:
        _require_seen(observed, names_)
    if n_items > MOST_ITEMS:
        most = f"{MOST_ITEMS:,}, got {n_items:,}, whose covariance has"
        problem = f"names of items, or numbers in rankings, must be at most {most}"
        validation.require(False, f"{problem} {8e-9 * n_items**2:.0f} GB: name those that rankings hold")
    item: Any = reference
    origin = names_.index(item) if isinstance(item, Hashable) and item is not None and item in names_ else -1
    validation.require(
        origin >= 0 or reference is None, f"reference must be an item, got {validation.shown(reference)}"
    )
    means = np.zeros(n_items)
    if prior is not None:
        validation.goes_with(prior, "prior", ridge > 0.0, "a ridge above 0")
        means = validation.one_entry_each(validation.real_array(prior, "prior"), "prior", n_items, "items")
        means = validation.within_limits(means, "prior")
    columns = None if features is None else _centred(features, n_items)
    observed = merged(observed)
    if not determined:
        _require_connected(observed, names_)
    model = _Model(observed, n_items, columns, ridge, means - means.mean(), n_threads)
    parameters, inverse = _maximum(model, "a larger ridge" if ridge else "a ridge")
    strengths, centre = model.strengths(parameters), np.eye(n_items) - 1.0 / n_items
    if origin >= 0:
        strengths, centre = strengths - strengths[origin], np.eye(n_items) - (np.arange(n_items) == origin)
    else:
        strengths = strengths - strengths.mean()
    covariance = centre @ model.of_strengths(model.of_strengths(inverse).T) @ centre.T
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    if columns is None:
        return FittedStrengths(strengths, errors, covariance, names_)
    k = columns.shape[1]
    return FittedStrengths(strengths, errors, covariance, names_, parameters[:k].copy(), inverse[:k, :k].copy())


class _Model:
    """The penalised log-likelihood of coefficients of features, of strengths of items, or of both in this order."""

    def __init__(
        self,
        observed: Observed,
        n_items: int,
        columns: FloatArray | None,
        ridge: float,
        means: FloatArray,
        n_threads: int | None,
    ) -> None:
        self.observed, self.n_items, self.columns, self.ridge = observed, n_items, columns, ridge
        self.n_threads, self.ranking = n_threads, observed.ranking
        self.free = columns is None or ridge > 0.0
        k = 0 if columns is None else columns.shape[1]
        self.penalty = np.append(np.zeros(k), np.full(n_items if self.free else 0, ridge))
        self.means = np.append(np.zeros(k), means if self.free else np.zeros(0))

    def strengths(self, parameters: FloatArray) -> FloatArray:
        """Return the strengths that belong to parameters."""
        return self.of_strengths(parameters[:, np.newaxis])[:, 0]

    def of_strengths(self, rows: FloatArray) -> FloatArray:
        """Multiply by the matrix that turns parameters into strengths."""
        if self.columns is None:
            return rows
        k = self.columns.shape[1]
        explained: FloatArray = self.columns @ rows[:k]
        return explained + rows[k:] if self.free else explained

    def of_parameters(self, rows: FloatArray) -> FloatArray:
        """Multiply by the transpose of that matrix."""
        if self.columns is None:
            return rows
        explained: FloatArray = self.columns.T @ rows
        return np.concatenate([explained, rows]) if self.free else explained

    def _of_entries(self, scores: FloatArray) -> tuple[float, FloatArray]:
        observed = self.observed
        values, gradient = negative_log_likelihood(scores, observed.places, observed.limits, self.n_threads, 1)
        return -float(observed.counts @ values), -observed.counts[self.ranking] * gradient

    def value_and_gradient(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return what is maximised, and its gradient."""
        value, slopes = self._of_entries(self.strengths(parameters)[self.observed.entries])
        items = np.asarray(np.bincount(self.observed.entries, slopes, self.n_items), dtype=np.float64)
        off = parameters - self.means
        gradient = self.of_parameters(items[:, np.newaxis])[:, 0] - self.penalty * off
        return value - 0.5 * float(self.penalty @ off**2), gradient

    def inverse_information(self, parameters: FloatArray, remedy: str) -> FloatArray:
        """Invert the information: a difference of gradients for each place in the longest ranking.

        The likelihood does not change if all items of a ranking move by the same amount. So each row of the information
        sums to 0, and its diagonal follows from the rest, which keeps the digits of weak links between strong groups.
        """
        entries, limits, n_items = self.observed.entries, self.observed.limits, self.n_items
        scores, place = self.strengths(parameters)[entries], np.arange(entries.size) - limits[self.ranking]
        links = np.zeros((n_items, n_items))
        for moved in (place == k for k in range(int(place.max(initial=-1)) + 1)):
            change = self._of_entries(scores + STEP * moved)[1] - self._of_entries(scores - STEP * moved)[1]
            column = np.zeros(limits.size - 1, dtype=np.int64)
            column[self.ranking[moved]] = entries[moved]
            flat = np.bincount(entries * n_items + column[self.ranking], change, n_items**2) / (2.0 * STEP)
            links += flat.reshape(n_items, n_items)
        links = 0.5 * (links + links.T)
        np.fill_diagonal(links, 0.0)
        links = np.diag(links.sum(axis=1)) - links
        information = self.of_parameters(self.of_parameters(links).T)
        information[np.diag_indices_from(information)] += self.penalty
        if self.columns is None:  # all strengths may move together: what holds them is taken out by the caller
            information += max(float(np.diag(information).mean()), 1e-300) / n_items
        scale = np.sqrt(np.maximum(np.diag(information), 1e-300))
        scaled = information / scale / scale[:, np.newaxis]
        weak = not np.isfinite(scaled).all() or np.linalg.eigvalsh(scaled)[0] < LEAST_CURVATURE
        what = "the strengths" if self.columns is None else "the coefficients of these features"
        validation.require(not weak, f"the rankings determine {what} too weakly: pass {remedy}")
        inverse: FloatArray = np.linalg.inv(scaled) / scale / scale[:, np.newaxis]
        return inverse


def _maximum(model: _Model, remedy: str) -> tuple[FloatArray, FloatArray]:
    """Return the parameters of largest penalised likelihood, and the inverse of the information there."""
    remedy = remedy if model.columns is None else "fewer of them, without constant columns or sums of others"
    parameters = model.means.copy()
    value, gradient = model.value_and_gradient(parameters)
    inverse = model.inverse_information(parameters, remedy)
    for _ in range(MOST_STEPS):
        step = inverse @ gradient
        rise = float(gradient @ step)
        if rise < CONVERGED:
            break
        while (new := model.value_and_gradient(parameters + step))[0] < value + 0.25 * rise and rise > NEAR:
            step, rise = 0.5 * step, 0.5 * rise
        change = gradient - new[1]
        along = inverse @ change
        scale = float(change @ step)
        inverse = inverse + np.outer(step, step) * ((1.0 + along @ change / scale) / scale)
        inverse -= (np.outer(step, along) + np.outer(along, step)) / scale
        parameters, (value, gradient) = parameters + step, new
    for _ in range(MOST_NEWTON_STEPS):  # a step that is short in standard errors may still be long in strengths
        inverse = model.inverse_information(parameters, remedy)
        step = inverse @ gradient
        length = float(np.ptp(model.strengths(step)))
        parameters = parameters + step * min(1.0, LONGEST_STEP / max(length, 1e-300))
        if length < STANDS:
            return parameters, inverse
        gradient = model.value_and_gradient(parameters)[1]
    validation.require(False, f"the rankings determine the strengths too weakly: pass {remedy}")
    return parameters, inverse


def _centred(features: ArrayLike, n_items: int) -> FloatArray:
    """Return the columns of features less their means, as strengths are."""
    given = validation.real_array(features, "features", ndim=(1, 2))
    columns = given if given.ndim == 2 else given[:, np.newaxis]
    shape = f"features must have one row for each of the {n_items} items, got shape {given.shape}"
    validation.require(len(columns) == n_items, shape)
    validation.within_limits(columns, "features")
    return np.asarray(columns - columns.mean(axis=0), dtype=np.float64)


def _require_seen(observed: Observed, names: Sequence[Any]) -> None:
    """Require that each item is in some ranking with another one."""
    used = (np.diff(observed.limits) > 1) & (observed.counts > 0.0)
    seen = np.unique(observed.entries[used[observed.ranking]])
    absent = names[int(np.argmin(np.append(seen == np.arange(seen.size), False)))] if seen.size < len(names) else None
    remedy = "leave it out of names, number the items without gaps from 0, or pass a ridge"
    validation.require(seen.size == len(names), f"item {absent!r} is in no ranking with others: {remedy}")


def _require_connected(observed: Observed, names: Sequence[Any]) -> None:
    """Require that each item comes after every other one in some ranking, be it through others."""
    for order, sign in (("after", 1), ("before", -1)):
        reached = _reached(observed, sign, len(names))
        problem = f"item {names[int(np.argmin(reached))]!r} never comes {order} item {names[0]!r}, be it through others"
        validation.require(reached.all(), f"the rankings must connect all items, but {problem}: pass a ridge")


def _reached(observed: Observed, sign: int, n_items: int) -> NDArray[np.bool_]:
    """Return whether each item follows the first in some ranking, or another item that does."""
    entries, ranking, places = observed.entries, observed.ranking, sign * observed.places
    reached = np.arange(n_items) == 0
    while True:
        first = np.full(ranking.max(initial=0) + 1, np.iinfo(np.int64).max)
        np.minimum.at(first, ranking, np.where(reached[entries], places, first[0]))
        follows = entries[places > first[ranking]]
        if reached[follows].all():
            return reached
        reached[follows] = True
