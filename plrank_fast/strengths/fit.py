"""Maximum likelihood of strengths, with features, a prior and weights of rankings."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plrank_fast import validation
from plrank_fast.strengths.fitted import FittedStrengths
from plrank_fast.strengths.information import inverse_of_positive, require_memory
from plrank_fast.strengths.likelihood import Likelihood
from plrank_fast.strengths.observed import REST, Observed, number_of, read
from plrank_fast.validation import FloatArray

MOST_STEPS = 1000
STANDS = 5e-7  # the largest difference of strengths in a last step; the information changes by as much of itself
NEAR = 1e-6  # square of the length of a step in standard errors
LEAST_GAIN = 0.25  # of a step, relative to what its slope promises
ROUNDING = 1e-12  # of a sum of log-probabilities, relative to it
MOST_INFLATION = 1e10  # of a variance by the other parameters, over what it would be if they were known
MOST_AT_ONCE = 1_500  # equations that one call of NumPy solves
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
    ties: validation.Ties = "unknown",
    n_threads: int | None = None,
) -> FittedStrengths:
    """Fit strengths of items to rankings of some or all of them, in which items may be tied.

    Parameters
    ----------
    rankings : list of lists, array of shape (n_rankings, length), or array_like of shape (n_entries,)
        Items of each ranking, best first, as names or as numbers from 0; in a list, a set holds tied items. A row of an
        array may end early, with -1 (as ``sample_rankings`` pads), None or another missing value, or "" in an array of
        texts. With ``buckets`` and ``offsets``: the items
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
    ties : {"unknown", "davidson"}
        The order of tied items is unknown, or a tie is a result with a probability of its own, as in Davidson's model
        of battles and in R's PlackettLuce for sets of any size.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    FittedStrengths
        Strengths, standard errors and covariance, into which it unpacks; with ``names``, ``intervals``, ``predict``,
        ``summary`` and ``plot``.

    Raises
    ------
    ValueError
        If the rankings do not connect the items, so that the most likely strengths are infinite, and ``ridge`` is 0; if
        battles do not determine the weight of a draw; or if rankings, features and ridge determine strengths too weakly
        to compute them.
    MemoryError
        If eight matrices of n_items^2 do not find room.

    Warns
    -----
    UserWarning
        If rankings tie all of their items.

    Notes
    -----
    The sum of ``bucket_log_prob`` over the rankings is concave, with and without ties. Equal rankings are merged.
    Newton's method starts with equal strengths, and ends where a step moves no two of them apart by more than 5e-7. The
    Hessian of a ranking of L items takes O(L^2) in closed form; where items are tied before the last place, it takes
    two gradients for each place, and standard errors have a relative error of about 1e-6. Each step inverts a matrix of
    n_items^2, and is interrupted by Ctrl-C.

    With ties="unknown", a ranking that ties all of its items says nothing, since every order agrees with it: the draws
    of a league do not change its fit, and a warning counts them.

    With ties="davidson", a stage chooses a set of n of the items that remain with weight
    delta_n * prod(alpha_i for i in the set)**(1 / n), alpha = exp(strength), where delta_1 = 1: Davidson (1970) for
    battles, and Turner, van Etten, Firth and Kosmidis (2020) for rankings. The log deltas of the sizes that occur are
    fitted too, and other sizes have the weight 0. Items that ``unranked="last"`` adds, or whose bucket is 2**53, come
    after the others but are no tie: nothing is chosen among them. A ranking of L items with ties of up to T takes
    L^2 T^2 steps for the Hessian; battles are counted by pair and result, whatever their number. Draws need a cycle of
    items with more wins than draws: after one win and one draw of a pair, no strengths are the most likely ones.

    Without ties this is the model of Plackett and Luce, and with two items of Bradley and Terry. With ties it is the
    rank-ordered logit with the exact marginal likelihood of ties (``exactm`` in Stata), and Cox's model with a stratum
    for each ranking and TIES=EXACT in SAS. Models that give ties a probability of their own have other
    estimates: ties="davidson", as in R's PlackettLuce, TIES=DISCRETE in SAS, and "exact" in R's survival. R's
    PlackettLuce also adds pseudo-rankings, unless ``npseudo=0``, and reports strengths relative to the first item.

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
    require_memory(n_items)
    origin = -1 if reference is None else number_of(reference, names_, "reference")
    means = np.zeros(n_items)
    if prior is not None:
        validation.goes_with(prior, "prior", ridge > 0.0, "a ridge above 0")
        means = validation.one_entry_each(validation.real_array(prior, "prior"), "prior", n_items, "items")
        means = validation.within_limits(means, "prior")
    columns = None if features is None else _centred(features, n_items)
    davidson = validation.choice(ties, "ties", validation.Ties) == "davidson"
    likelihood = Likelihood(observed, n_items, davidson, n_threads)
    if not determined:
        _require_connected(likelihood, names_)
    if davidson:
        _require_decided(likelihood, names_, ridge > 0.0)
    else:
        _warn_of_ties(observed)
    model = _Model(likelihood, columns, ridge, means - means.mean())
    parameters, inverse = _maximum(model, "a larger ridge" if ridge else "a ridge")
    values, covariance = model.strengths(parameters), model.of_strengths(model.of_strengths(inverse).T) / model.unit
    strengths, log_deltas, delta_covariance = values[:n_items], values[n_items:], covariance[n_items:, n_items:]
    covariance = covariance[:n_items, :n_items]
    if origin >= 0:
        strengths = strengths - strengths[origin]
        covariance = covariance - covariance[origin]
        covariance -= covariance[:, origin, np.newaxis]
    else:
        strengths = strengths - strengths.mean()
        covariance = covariance - covariance.mean(axis=0)
        covariance -= covariance.mean(axis=1, keepdims=True)
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    explained = (None, None) if columns is None else model.coefficients(parameters, inverse)
    draws = (likelihood.sizes[1:], log_deltas, delta_covariance) if davidson else (None, None, None)
    return FittedStrengths(strengths, errors, covariance, names_, *explained, *draws)


class _Model:
    """The penalised log-likelihood of coefficients of features, strengths of items, or both, and then log deltas.

    Weights of rankings and the ridge are in units of the largest weight, and features in units of their largest
    distance from the mean, so that neither changes what can be computed.
    """

    def __init__(self, likelihood: Likelihood, columns: FloatArray | None, ridge: float, means: FloatArray) -> None:
        self.likelihood, self.unit, self.n_items = likelihood, likelihood.unit, likelihood.n_items
        self.units = np.ones(0)
        self.columns = columns
        if columns is not None:
            largest = np.abs(columns).max(axis=0)
            self.units = np.where(largest > 0.0, largest, 1.0)
            self.columns = columns / self.units
        self.free = columns is None or ridge > 0.0
        before, after = np.zeros(self.units.size), np.zeros(likelihood.n_draws)
        n_free = self.n_items if self.free else 0
        self.penalty = np.concatenate([before, np.full(n_free, ridge / self.unit), after])
        self.means = np.concatenate([before, means[:n_free], after])

    def strengths(self, parameters: FloatArray) -> FloatArray:
        """Return the strengths that belong to parameters."""
        return self.of_strengths(parameters[:, np.newaxis])[:, 0]

    def of_strengths(self, rows: FloatArray) -> FloatArray:
        """Multiply by the matrix that turns parameters into strengths."""
        if self.columns is None:
            return rows
        k = self.columns.shape[1]
        explained: FloatArray = self.columns @ rows[:k]
        rest = rows[k:].copy() if self.free else np.concatenate([0.0 * explained, rows[k:]])
        rest[: self.n_items] = rest[: self.n_items] + explained
        return rest

    def of_parameters(self, rows: FloatArray) -> FloatArray:
        """Multiply by the transpose of that matrix."""
        if self.columns is None:
            return rows
        explained: FloatArray = self.columns.T @ rows[: self.n_items]
        return np.concatenate([explained, rows if self.free else rows[self.n_items :]])

    def value_and_gradient(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return what is maximised, and its gradient."""
        value, gradient = self.likelihood.value_and_gradient(self.strengths(parameters))
        off = parameters - self.means
        gradient = self.of_parameters(gradient[:, np.newaxis])[:, 0] - self.penalty * off
        return value - 0.5 * float(self.penalty @ off**2), gradient

    def information(self, parameters: FloatArray) -> FloatArray:
        """Return the information, in which the mean of free strengths is held."""
        information = self.likelihood.information(self.strengths(parameters))
        information = self.of_parameters(self.of_parameters(information).T)
        information[np.diag_indices_from(information)] += self.penalty
        if self.columns is None:  # all strengths may move together: what holds them is taken out by the caller
            n = self.n_items
            information[:n, :n] += max(float(np.diag(information)[:n].mean()), 1e-300) / n
        return information

    def step(self, parameters: FloatArray, gradient: FloatArray, remedy: str) -> FloatArray:
        """Return Newton's step."""
        if parameters.size > MOST_AT_ONCE:  # in steps between which Ctrl-C is heard
            return self.inverse_information(parameters, remedy) @ gradient
        try:
            step = np.asarray(np.linalg.solve(self.information(parameters), gradient))
        except np.linalg.LinAlgError:
            step = np.full_like(gradient, np.nan)
        if not (np.isfinite(step).all() and step @ gradient >= 0.0):
            self.inverse_information(parameters, remedy)  # its message
        return step

    def inverse_information(self, parameters: FloatArray, remedy: str) -> FloatArray:
        """Invert the information."""
        information = self.information(parameters)
        scale = np.sqrt(np.maximum(np.diag(information), 1e-300))
        inverse = inverse_of_positive(information / scale / scale[:, np.newaxis])
        inflation = np.diag(inverse)
        weak = not (np.isfinite(inflation).all() and inflation.min() > 0.0 and inflation.max() < MOST_INFLATION)
        what = "the strengths" if self.columns is None else "the coefficients of these features"
        validation.require(not weak, f"the rankings determine {what} too weakly: pass {remedy}")
        return inverse / scale / scale[:, np.newaxis]

    def coefficients(self, parameters: FloatArray, inverse: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the coefficients of the features in the caller's units, and their covariance."""
        k = self.units.size
        units = np.outer(self.units, self.units)
        return parameters[:k] / self.units, inverse[:k, :k] / units / self.unit


def _maximum(model: _Model, remedy: str) -> tuple[FloatArray, FloatArray]:
    """Return the parameters of largest penalised likelihood, and the inverse of the information there.

    What is maximised is concave, so Newton's steps, halved until they gain enough, lead from equal strengths to its
    maximum, however far the means of a prior are apart.
    """
    remedy = remedy if model.columns is None else "fewer of them, without constant columns or sums of others"
    parameters = np.zeros(model.means.size)
    value, gradient = model.value_and_gradient(parameters)
    before = np.inf
    for _ in range(MOST_STEPS):
        step = model.step(parameters, gradient, remedy)
        rise, moves = float(gradient @ step), model.strengths(step)
        length = float(np.ptp(moves[: model.n_items])) + float(np.abs(moves[model.n_items :]).sum())
        new = model.value_and_gradient(parameters + step)
        while new[0] < value + LEAST_GAIN * rise and rise > ROUNDING * abs(value):
            step, rise = 0.5 * step, 0.5 * rise
            new = model.value_and_gradient(parameters + step)
        parameters, (value, gradient) = parameters + step, new
        # Where rounding of the gradient is all that is left, steps do not get shorter.
        if length < STANDS or (length >= before and rise * model.unit < NEAR**2):
            return parameters, model.inverse_information(parameters, remedy)
        before = length if rise * model.unit < NEAR else np.inf
    validation.require(False, f"the rankings determine the strengths too weakly: pass {remedy}")
    return parameters, np.zeros((0, 0))


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
    entries = observed.entries if used.all() else observed.entries[used[observed.ranking]]
    seen = np.bincount(entries, minlength=len(names)) > 0
    absent = names[int(np.argmin(seen))]
    remedy = "leave it out of names, number the items without gaps from 0, or pass a ridge"
    validation.require(seen.all(), f"item {absent!r} is in no ranking with others: {remedy}")


def _require_connected(likelihood: Likelihood, names: Sequence[Any]) -> None:
    """Require that each item comes after every other one in some ranking, directly or through others."""
    battles, others = likelihood.battles, likelihood.others
    drawn = battles.results[:, 2] > 0.0
    won, lost = (drawn | (battles.results[:, k] > 0.0) for k in (0, 1))
    above, below = np.append(battles.i[won], battles.j[lost]), np.append(battles.j[won], battles.i[lost])
    for order, sign in (("after", 1), ("before", -1)):
        reached = np.arange(len(names)) == 0
        while True:
            now = np.count_nonzero(reached)
            from_, to = (above, below) if sign > 0 else (below, above)
            reached[to[reached[from_]]] = True
            _follow(reached, others, sign, likelihood.davidson)
            if np.count_nonzero(reached) == now:
                break
        problem = f"item {names[int(np.argmin(reached))]!r} never comes {order} item {names[0]!r}"
        remedy = "not even through others: pass a ridge"
        validation.require(reached.all(), f"the rankings must connect all items, but {problem}, {remedy}")


def _follow(reached: NDArray[np.bool_], others: Observed, sign: int, davidson: bool) -> None:
    """Mark the items that follow a marked one in some ranking: a draw of Davidson's model is an order both ways."""
    entries, ranking, places = others.entries, others.ranking, sign * others.places
    first = np.full(others.counts.size, np.iinfo(np.int64).max)
    np.minimum.at(first, ranking, np.where(reached[entries], places, first[:1].max(initial=0)))
    equal = davidson & (np.abs(places) != REST)
    reached[entries[(places > first[ranking]) | (equal & (places == first[ranking]))]] = True


def _require_decided(likelihood: Likelihood, names: Sequence[Any], ridge: bool) -> None:
    """Require what gives Davidson's model a maximum, for battles: a cycle of items with more wins than draws.

    Otherwise strengths and log delta can grow together without end: of one win and one draw of a pair, for instance.
    With a ridge, or rankings of more items, a result that is no draw is required only.
    """
    battles, others = likelihood.battles, likelihood.others
    i, j, (won, lost, drawn) = battles.i, battles.j, battles.results.T > 0.0
    if others.counts.size or not drawn.any() or (won & lost).any():
        return
    problem, remedy = "all battles are draws", "drop the draws (ties='unknown')"
    decided = won.any() or lost.any()
    if decided and not ridge:
        weight = np.full((len(names), len(names)), -np.inf)
        weight[i[drawn], j[drawn]] = weight[j[drawn], i[drawn]] = -1.0
        weight[i[won], j[won]] = weight[j[lost], i[lost]] = 1.0
        best, decided = np.zeros(len(names)), False
        for _ in names:  # a path of as many results as there are items repeats one, and closes a cycle
            longer = np.maximum(best, (best[:, np.newaxis] + weight).max(axis=0))
            if (longer == best).all():
                break
            best = longer
        else:
            decided = True
        problem, remedy = "no cycle of items has more wins than draws", "pass a ridge, or ties='unknown'"
    validation.require(decided, f"the battles do not determine the weight of a draw, since {problem}: {remedy}")


def _warn_of_ties(observed: Observed) -> None:
    """Warn if rankings are ties of all their items, whose probability is 1."""
    if (np.diff(observed.limits) == 2).all() and (observed.places[::2] != observed.places[1::2]).all():
        return
    ranking, places = observed.ranking, observed.places
    ordered = np.bincount(ranking[1:][(np.diff(places) != 0) & (np.diff(ranking) == 0)], minlength=observed.counts.size)
    counted = (np.diff(observed.limits) > 1) & (observed.counts > 0.0)
    ties = np.count_nonzero(counted & (ordered == 0))
    if ties:
        half = "to count a draw as half a win each, give both orders half its weight"
        problem = f"{ties:,} of {np.count_nonzero(counted):,} rankings are ties of all their items, which tell nothing"
        validation.warn(f"{problem} about strengths, as the order of tied items is unknown: {half}")
