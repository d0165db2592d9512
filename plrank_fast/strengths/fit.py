"""Maximum likelihood of strengths, with features, a prior and weights of rankings."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from plrank_fast import validation
from plrank_fast._shared.memory import require_bytes
from plrank_fast.strengths.fitted import FittedStrengths
from plrank_fast.strengths.likelihood import Likelihood
from plrank_fast.strengths.model import Model
from plrank_fast.strengths.observed import Observed, columns_of, number_of, read
from plrank_fast.strengths.uncertainty import clusters_of, covariance_of_omissions, covariance_of_slopes
from plrank_fast.strengths.undecided import describe, groups_of, require_seen
from plrank_fast.validation import FloatArray

MATRICES_AT_ONCE = 8  # of items by items, that a fit holds at its peak
OF_NUMPY = 1 << 27  # bytes that NumPy's linear algebra takes at its first call, or ends the process
MOST_ITEMS = 5_000  # their covariance takes 200 MB, and its inverse seconds


def fit_strengths(
    rankings: Any,
    buckets: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    weights: ArrayLike | None = None,
    names: Iterable[Hashable] | None = None,
    features: ArrayLike | None = None,
    comparison_features: ArrayLike | None = None,
    ridge: float = 0.0,
    prior: ArrayLike | None = None,
    reference: Hashable | None = None,
    unranked: validation.Unranked = "absent",
    ties: validation.Ties = "unknown",
    undecided: validation.Undecided = "error",
    covariance: validation.Covariance = "observed",
    clusters: ArrayLike | None = None,
    n_threads: int | None = None,
) -> FittedStrengths:
    """Fit strengths of items to rankings of some or all of them, in which items may be tied.

    Parameters
    ----------
    rankings : list of lists, array of shape (n_rankings, length), frame, or array_like of shape (n_entries,)
        Items of each ranking, best first, as names or as numbers from 0; in a list, a set holds tied items. A row of an
        array may end early, with -1 (as ``sample_rankings`` pads), None or another missing value, or "" in an array of
        texts. A frame of battles has the columns ``model_a``, ``model_b`` and ``winner``: "model_a", "model_b", "tie",
        "tie (bothbad)", "both_bad", "draw", or the name of one of both. With ``buckets`` and ``offsets``: the items
        that each ranking compares, all rankings one after another.
    buckets : array_like of int, shape (n_entries,), optional
        Place of each item in its ranking, up to 2**53 in magnitude. Items of a smaller number come first, and the order
        of those with the same number is unknown. A ranking of the best K of many items has the others in its last
        bucket.
    offsets : array_like of int, shape (n_rankings + 1,), optional
        Where each ranking starts.
    weights : array_like, shape (n_rankings,), optional
        How often each ranking was seen; at least 0. "robust" takes w as w rankings that agree. If a weight is what one
        ranking counts, pass ``covariance="clustered"`` with a cluster for each, which squares it.
    names : iterable of hashable, optional
        Names of the items, in the order of the result. By default the names in the rankings, sorted; numbers name
        themselves. Numbers in rankings are places in ``names``, unless ``names`` has numbers too.
    features : array_like, shape (n_items, n_features), optional
        Strengths are a linear function of these. With a ``ridge``, each item also has a part of its own.
    comparison_features : array_like, shape (n_entries, n_features), optional
        One row for each item of each ranking, in the order of the rankings: what else may move an item, such as being
        shown first, or length and style. Strengths are at equal features, and the coefficients have errors.
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
    ties : {"unknown", "half", "davidson"}
        The order of tied items is unknown; or a draw of two items is half a win for each; or a tie is a result with a
        probability of its own, as in Davidson's model of battles and in R's PlackettLuce for sets of any size.
    undecided : {"error", "groups"}
        Whether an error names the groups of items between which no difference is finite, or each group has strengths of
        its own: ``groups`` of the result names them, and ``above`` says which of them come first.
    covariance : {"observed", "robust", "clustered", "jackknife"}
        Inverse of the information; or from the slopes of rankings, right if these are independent but the model does
        not hold; or of clusters, whose rankings need not be independent; or from leaving each cluster out, by one step
        of Newton's method, which is wider where clusters are few or see few items.
    clusters : array_like, shape (n_rankings,), optional
        Judge or session of each ranking, for "clustered" and "jackknife". Intervals are those of Student's t with one
        degree of freedom less than there are clusters.
    n_threads : int, optional
        None: as many as OpenMP allows, by OMP_NUM_THREADS or ``torch.set_num_threads``; -1: all available processors;
        -2: all but one.

    Returns
    -------
    FittedStrengths
        Strengths, standard errors and covariance, into which it unpacks; with ``names``, ``intervals``, ``ranks``,
        ``bootstrap``, ``predict``, ``summary`` and ``plot``.

    Raises
    ------
    ValueError
        If the most likely strengths, coefficients or weights of draws are not finite or not determined, by their names.
    MemoryError
        If eight matrices of n_items^2 do not find room.

    Warns
    -----
    UserWarning
        If rankings tie all of their items.

    Notes
    -----
    The sum of ``bucket_log_prob`` over the rankings is concave, with and without ties. Battles are counted by pair and
    result, and other equal rankings merged. Newton's method starts with equal strengths, and ends where a step moves no
    two of them apart by more than 5e-7. The Hessian of a ranking of L items takes O(L^2) in closed form; where items
    are tied before the last place, it takes two gradients for each place, and standard errors have a relative error of
    about 1e-6. Each step inverts a matrix of n_items^2, and is interrupted by Ctrl-C.

    With ties="unknown", a ranking that ties all of its items says nothing: a warning counts them. With
    ties="half", differences of strengths are about .77 of those of Davidson's model at 20 % draws.

    With ties="davidson", a stage chooses a set of n of the items that remain with weight
    delta_n * prod(alpha_i for i in the set)**(1 / n), alpha = exp(strength), where delta_1 = 1: Davidson (1970) for
    battles, and Turner, van Etten, Firth and Kosmidis (2020) for rankings. The log deltas of the sizes that occur are
    fitted too, and other sizes have the weight 0. Items that ``unranked="last"`` adds, or whose bucket is 2**53, come
    after the others but are no tie: nothing is chosen among them. A ranking of L items with ties of up to T takes
    L^2 T^2 steps for the Hessian. Draws need a cycle of items with more wins than draws: after one win and one draw of
    a pair, no strengths are the most likely ones. Coefficients and log deltas are refused if a variance exceeds 1e10
    over the smallest weight.

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

    Wins of the item of each row over that of each column:

    >>> wins = np.array([[0, 30, 0], [20, 0, 25], [10, 0, 0]])
    >>> rows, columns = np.nonzero(wins)
    >>> plr.fit_strengths(np.column_stack([rows, columns]), weights=wins[rows, columns]).strengths.round(4)
    array([ 0.218 ,  0.3716, -0.5896])

    Three rankings in the convention of R's package PlackettLuce, with a column for each item, 0 for items that are not
    ranked, and equal numbers for ties:

    >>> ranks = np.array([[1, 2, 3], [2, 1, 2], [0, 2, 1]])
    >>> rows, items = np.nonzero(ranks)
    >>> fit = plr.fit_strengths(items, ranks[rows, items], plr.offsets_from_qid(rows))
    >>> fit.strengths.round(2), fit.standard_errors.round(2)
    (array([ 0.5,  0.1, -0.6]), array([0.95, 0.72, 0.83]))
    """
    names_, observed = read(
        rankings, buckets, offsets, weights=weights, names=names, unranked=unranked, features=comparison_features
    )
    n_items, ridge = len(names_), validation.real(ridge, "ridge", at_least=0.0)
    finite = ridge > 0.0 or features is not None
    by_groups = validation.choice(undecided, "undecided", validation.Undecided) == "groups"
    if not finite and not by_groups and n_items > MOST_ITEMS:
        require_seen(observed, names_)
    if n_items > MOST_ITEMS:
        most = f"{MOST_ITEMS:,}, got {n_items:,}, whose covariance has"
        problem = f"names of items, or numbers in rankings, must be at most {most}"
        validation.require(False, f"{problem} {8e-9 * n_items**2:.0f} GB: name those that rankings hold")
    needed = 8 * MATRICES_AT_ONCE * n_items**2 + OF_NUMPY
    require_bytes(needed, f"a fit of {n_items:,} strengths with their covariance")
    origin = -1 if reference is None else number_of(reference, names_, "reference")
    means = np.zeros(n_items)
    if prior is not None:
        validation.goes_with(prior, "prior", ridge > 0.0, "a ridge above 0")
        means = validation.one_entry_each(validation.real_array(prior, "prior"), "prior", n_items, "items")
        means = validation.within_limits(means, "prior")
    columns, units = None, np.ones(0)
    if features is not None:
        columns = columns_of(features, "features", n_items, "items")
        columns, units = _in_units(columns - columns.mean(axis=0))
    of_comparisons, units_of_comparisons = _in_units(observed.features)
    units, observed = np.append(units, units_of_comparisons), dataclasses.replace(observed, features=of_comparisons)
    likelihood = Likelihood(observed, n_items, validation.choice(ties, "ties", validation.Ties), n_threads)
    kind = validation.choice(covariance, "covariance", validation.Covariance)
    by_cluster, codes, of_clusters = kind in ("clustered", "jackknife"), None, list[Any]()
    if by_cluster:
        validation.given(clusters, "clusters", f" with covariance={kind!r}")
        codes, of_clusters = clusters_of(clusters, observed.counts.size)
    else:
        validation.goes_with(clusters, "clusters", False, "covariance='clustered' or 'jackknife'")
        codes = np.arange(observed.counts.size) if kind == "robust" else None
    groups, above = np.zeros(n_items, dtype=np.int64), np.zeros((1, 1), dtype=bool)
    if not finite:
        groups, above = groups_of(likelihood)
        connected = by_groups or len(above) == 1
        if not connected:
            require_seen(observed, names_)
        problem = "" if connected else describe(groups, above, names_)
        remedy = "pass a ridge, or undecided='groups'"
        validation.require(connected, f"the rankings must connect all items, but {problem}: {remedy}")
        if len(above) > 1:
            observed, source = observed.split(groups)
            likelihood, codes = Likelihood(observed, n_items, ties, n_threads), None if codes is None else codes[source]
    if ties == "unknown":
        _warn_of_ties(observed)
    model = Model(likelihood, names_, columns, units, ridge, means - means.mean(), groups, origin)
    parameters, inverse = model.maximum()
    own = inverse / model.unit
    if codes is not None and kind == "jackknife":
        own = covariance_of_omissions(model, parameters, codes, of_clusters)
    elif codes is not None:
        own = covariance_of_slopes(model, parameters, inverse, codes, kind == "robust")
    degrees = len(of_clusters) - 1.0 if by_cluster else np.inf
    return FittedStrengths.of(model, parameters, own, degrees, above)


def _in_units(columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return columns in units of their largest magnitudes, and these."""
    units = np.abs(columns).max(axis=0, initial=0.0)
    units[units == 0.0] = 1.0
    return columns / units, units


def _warn_of_ties(observed: Observed) -> None:
    """Warn if rankings are ties of all their items, whose probability is 1."""
    if observed.given is None and (observed.lengths > 1).all():
        return
    ranking, places = observed.ranking, observed.places
    ordered = np.bincount(ranking[1:][(np.diff(places) != 0) & (np.diff(ranking) == 0)], minlength=observed.counts.size)
    counted = (observed.lengths > 1) & (observed.counts > 0.0)
    ties = np.count_nonzero(counted & (ordered == 0))
    if ties:
        half = "to count a draw as half a win each, give both orders half its weight"
        problem = f"{ties:,} of {np.count_nonzero(counted):,} rankings are ties of all their items, which tell nothing"
        validation.warn(f"{problem} about strengths, as the order of tied items is unknown: {half}")
