"""Strengths fitted to rankings: the maximum of the likelihood summed over all orders, closed forms, refusals."""

import itertools
import pickle
import runpy
import sys
import warnings
from pathlib import Path

import mpmath
import numpy as np
import pytest

import plrank_fast as plr


def rankings_of(tied):
    """Rankings of three to five of six items, in places that are equal for some of them if ``tied``; and with the items
    of each ranking all orders that agree with the places."""
    rng, true = np.random.default_rng(2), np.linspace(-1.0, 1.0, 6)
    compared = [rng.permutation(6)[: rng.integers(3, 6)] for _ in range(15)]
    places = [np.argsort(np.argsort(rng.gumbel(size=items.size) - true[items])) // (1 + tied) for items in compared]
    agree = [
        (items, [order for order in itertools.permutations(range(items.size)) if (np.diff(place[[*order]]) >= 0).all()])
        for items, place in zip(compared, places, strict=True)
    ]
    return (*map(np.concatenate, (compared, places)), plr.offsets_from_group([*map(len, compared)])), agree


@pytest.mark.parametrize("kind", ["free", "ridge", "prior", "features", "both", "reference"])
@pytest.mark.parametrize("tied", [0, 1])
def test_maximum_of_the_likelihood(tied, kind):
    """Gradient and Hessian by differences of enumerated likelihoods.

    Mutants: places in descending order; the ridge left out of gradient or information; information of the item in the
    place before; a step taken without the last correction; a variance of the mean that depends on the ridge; a penalty
    on coefficients; means with the wrong sign; counts not used; a reference whose own variance stays.
    """
    data, agree = rankings_of(tied)
    rng = np.random.default_rng(7)
    counts, features, prior = rng.integers(1, 4, 15), rng.normal(size=(6, 2)) + 3.0, rng.normal(size=6) + 5.0
    centred, zeros, centre = features - features.mean(axis=0), np.zeros(6), np.eye(6) - 1 / 6
    # strengths as a linear function of parameters, and the penalties and means of these
    columns, penalty, means, options = {
        "free": (np.eye(6), zeros, zeros, {}),
        "ridge": (np.eye(6), zeros + 0.3, zeros, {"ridge": 0.3}),
        "prior": (np.eye(6), zeros + 2.0, centre @ prior, {"ridge": 2.0, "prior": prior}),
        "features": (centred, np.zeros(2), np.zeros(2), {"features": features}),
        "both": (
            np.hstack([centred, np.eye(6)]), np.append([0, 0], zeros + 0.5), np.zeros(8),
            {"features": features, "ridge": 0.5},
        ),
        "reference": (np.eye(6), zeros, zeros, {"reference": 3}),
    }[kind]  # fmt: skip
    fit = plr.fit_strengths(*data, weights=counts, **options)
    parameters = fit.strengths
    if "features" in options:
        parameters = np.append(fit.coefficients, (fit.strengths - centred @ fit.coefficients) * (kind == "both"))
        parameters = parameters[: len(penalty)]
    np.testing.assert_allclose(columns @ parameters, fit.strengths, atol=1e-12)
    if kind == "reference":
        centre = np.eye(6) - (np.arange(6) == 3)
    np.testing.assert_allclose(centre @ fit.strengths, fit.strengths, atol=1e-9)

    def log_likelihood(strengths):
        chances = [np.exp(plr.ranking_log_prob(strengths[items], orders)).sum() for items, orders in agree]
        return counts @ np.log(chances)

    def objective(change):
        off = parameters + change - means
        return log_likelihood(columns @ (parameters + change)) - 0.5 * penalty @ off**2

    gradient = [(objective(step) - objective(-step)) / 2e-3 for step in 1e-3 * np.eye(len(penalty))]
    assert np.abs(gradient).max() < 1e-5

    def curvature(a, b):
        ends = [(i * j, i * a + j * b) for i, j in itertools.product((1, -1), repeat=2)]
        return sum(sign * log_likelihood(fit.strengths + change) for sign, change in ends) / 4e-6

    hessian = np.array([[curvature(a, b) for a in 1e-3 * np.eye(6)] for b in 1e-3 * np.eye(6)])
    information = columns.T @ -hessian @ columns + np.diag(penalty)
    if "features" not in options:
        information += 1.0  # what all strengths have in common is taken out by the centre
    inverse = np.linalg.inv(information)
    np.testing.assert_allclose(fit.covariance, centre @ columns @ inverse @ columns.T @ centre.T, atol=1e-5)
    np.testing.assert_allclose(fit.standard_errors**2, np.diag(fit.covariance))
    if "features" in options:
        np.testing.assert_allclose(fit.coefficient_covariance, inverse[:2, :2], atol=1e-5)


def test_steps_that_go_too_far(monkeypatch):
    """One ranking of 2001 holds a circle together: the gradient of what is maximised is 0.

    Mutants: steps of any length; a penalty left out of their gain; endless steps.
    """
    items, offsets = np.array([*[0, 1] * 1000, *[2, 1] * 1000, 2, 0]), np.arange(0, 4003, 2)
    data, ridge = (items, np.tile([0, 1], 2001), offsets), 1e-6
    strengths, _, covariance = plr.fit_strengths(*data, ridge=ridge)
    slopes = plr.bucket_log_prob_vjp(strengths[items], data[1], np.ones(2001), offsets=offsets)
    gradient = np.bincount(items, slopes) - ridge * strengths
    assert gradient @ covariance @ gradient < 1e-8
    monkeypatch.setattr("plrank_fast.strengths.model.MOST_STEPS", 3)
    with pytest.raises(
        ValueError, match="the rankings determine the strengths too weakly, or at infinity only: pass a larger ridge"
    ):
        plr.fit_strengths(*data, ridge=ridge)


@pytest.mark.filterwarnings("ignore:2 of 2 rankings are ties")
def test_disconnected_items():
    """A ridge gives strengths where the most likely ones are infinite: to a winner of all, a loser, two leagues, ties.

    Mutant: ties count as comparisons.
    """
    cases = {
        "item 0 never comes after any other; item 1 never comes before": ([0, 1, 0, 1], [0, 1, 0, 1], [0, 2, 4]),
        "item 1 never comes after any other; item 0 never comes before": ([0, 1, 0, 1], [1, 0, 1, 0], [0, 2, 4]),
        "items 0, 1 are never compared with any other; items 2, 3 are": (
            [0, 1, 0, 1, 2, 3, 2, 3],
            [0, 1, 1, 0, 0, 1, 1, 0],
            [0, 2, 4, 6, 8],
        ),
        "item 0 is never compared with any other; item 1 is never": ([0, 1, 1, 0], [0, 0, 3, 3], [0, 2, 4]),
    }
    for problem, data in cases.items():
        with pytest.raises(ValueError, match=f"rankings must connect all items, but {problem}.* pass a ridge"):
            plr.fit_strengths(*data)
        assert np.isfinite(plr.fit_strengths(*data, ridge=0.1).standard_errors).all()
    many = [[i, i + 1] for i in range(6)]
    with pytest.raises(ValueError, match=r"item 0 never comes after any other; .* and so on for 4 more groups: pass a"):
        plr.fit_strengths(many)
    linked = ([0, 1, 1, 2, 2, 0], [0, 1, 0, 1, 0, 1], [0, 2, 4, 6])  # each item beats one and loses to the other
    np.testing.assert_allclose(plr.fit_strengths(*linked).strengths, 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (([0, 1, 1], [0, 1, 2], [0, 3]), "items of rankings must be distinct within a ranking, got 1 again at index 2"),
        (([0, 1], [0, 1, 2], [0, 2]), "buckets must have one entry for each of the 2 items"),
        (([], [], [0]), "rankings must hold an item, got none"),
        (([100_000, 5], [0, 1], [0, 2]), "item 0 is in no ranking with others: .*number the items without gaps"),
        (([["a", "b"], ["a", "a"]],), "distinct within a ranking, got 'a' again in ranking 1: leave out battles of an"),
        (([["x", "y", "model_a"], ["y", "x", "tie"]],), r"got 'model_a' in ranking 0: a battle is its winner and then"),
        ((np.array([["a", "b"], ["", "b"]]),), "no item after the end of a row"),
        ((np.array([[0, 1, -1], [0, -1, 1]]),), "no item after the end of a row"),
        ((np.array([[0, -2]]),), "items of rankings must be at least 0, got -2"),
        (([0, 1], [0, 1]), "offsets must be given with buckets"),
    ],
)
def test_bad_arguments_are_named(data, message):
    with pytest.raises(ValueError, match=message):
        plr.fit_strengths(*data)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": ["a", "b"]}, "items of rankings must be among the names, got 'c' in ranking 1"),
        ({"names": ["a", "b", "c", "c"]}, "names must be distinct"),
        ({"names": list("abcd")}, "item 'd' is in no ranking with others: leave it out of names"),
        ({"weights": [1, 2]}, "weights must have one entry for each of the 3 rankings"),
        ({"weights": [1, 1, 0]}, "item 'b' comes after some of them, and before others, and never the"),
        ({"names": np.array(1.0)}, r"names must be 1-dimensional, got shape \(\)"),
        *(
            ({"reference": item}, "reference must be an item, got")
            for item in ("d", np.zeros(2), np.zeros(1, dtype="i4,i4")[0], ("a", []), np.datetime64("NaT", "D"))
        ),
        ({"prior": [0, 1, 2]}, "prior only goes with a ridge above 0"),
        ({"features": [[1.0], [2.0]]}, r"features must have one row for each of the 3 items, got shape \(2, 1\)"),
        (
            {"comparison_features": [1.0]},
            "comparison_features must have one row for each of the 6 items in rankings, got",
        ),
        (
            {"comparison_features": [2.0] * 6},
            r"comparison feature 0 too weakly, .* sums of .* and of items, which give comparison_features\[0, 0\] = 2",
        ),
        (
            {"comparison_features": np.column_stack([[0, 1, 0, 1, 1, 1], [1, 5, 5, -7, -7, 1]])},
            r"determine .*comparison feature 1 too weakly, .* which give comparison_features\[3, 1\] = -7",
        ),
        (
            {"comparison_features": [1.0] * 6, "unranked": "last"},
            "comparison_features only goes with unranked='absent'",
        ),
        ({"features": [1.0, 1.0, 1.0]}, "determine feature 0 too weakly, or at infinity only: pass fewer"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        plr.fit_strengths([["a", "b"], ["b", "c"], ["c", "a"]], **options)


def test_where_features_and_halves_have_no_meaning():
    """Mutants: features by the order in which Python happens to store a set; a tie of three as nothing."""
    with pytest.raises(ValueError, match="comparison_features must belong to items in order, got rankings with sets"):
        plr.fit_strengths([[{"a", "b"}, "c"]], comparison_features=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="ties='half' is for battles, got a tie in a longer ranking"):
        plr.fit_strengths([[{"a", "b"}, "c"]], ties="half")


@pytest.mark.parametrize(
    ("rankings", "names", "error"),
    [
        ("abc", None, "a list of rankings, got str"),
        (["ab", "ba"], None, "'ab' at 0"),
        ([[("a", []), "b"]], None, "items of rankings must be numbers or names, which can be hashed"),
        ([["a", "b"]], [["a"], ["b"]], "names must be numbers or names, which can be hashed"),
    ],
)
def test_what_is_no_list_of_rankings(rankings, names, error):
    with pytest.raises(TypeError, match=error):
        plr.fit_strengths(rankings, names=names)


class NAType:
    """It stands for pandas.NA, which is neither equal nor unequal to itself."""

    def __eq__(self, other):
        return self

    def __hash__(self):
        return 1

    def __repr__(self):
        return "<NA>"


@pytest.mark.parametrize("missing", [None, np.nan, np.float32("nan"), NAType(), np.datetime64("NaT", "D"), "", b""])
def test_missing_names(missing):
    """They end the row of an array, of five battles one without a loser, and are refused elsewhere.

    Mutants: an item called nan, or one for each NaN; an empty text as an item; an error without its place.
    """
    cells = np.array([["a", "b"], ["b", "a"], ["a", missing], ["c", "a"], ["b", "c"]], dtype=object)
    fit = plr.fit_strengths(cells, ridge=1.0)
    assert fit.names == ["a", "b", "c"]
    np.testing.assert_allclose(fit.strengths, [-0.2240, 0.2240, 0.0], atol=5e-5)
    if isinstance(missing, str):
        assert np.array_equal(plr.fit_strengths(cells.astype(str), ridge=1.0).strengths, fit.strengths)
    for data, where in (
        ((cells.tolist(),), "items of rankings must not be missing, got .* in ranking 2"),
        ((cells.ravel().tolist(), [0, 1] * 5, [0, 2, 4, 6, 8, 10]), "items .* must not be missing, got .* at index 5"),
    ):
        with pytest.raises(ValueError, match=where):
            plr.fit_strengths(*data, unranked="last", ridge=1.0)
    with pytest.raises(ValueError, match=r"names must not be missing, got .* at index 1"):
        plr.fit_strengths([[0, 2], [2, 0]], names=["a", missing, "c"], ridge=1.0)


def test_ties_of_all_items_are_counted():
    """They have the probability 1. Mutants: no warning; rankings of one item, of weight 0 or with an order counted."""
    rankings = [
        [{"a", "b"}],
        [{"b", "a"}],
        [{"a", "b"}],
        [{"a"}],
        [{"a", "b"}, "c"],
        ["c", "a"],
        ["a", "b"],
        ["b", "a"],
    ]
    weights = [1, 1, 0, 1, 1, 1, 1, 1]
    with pytest.warns(UserWarning, match="^2 of 6 rankings are ties of all their items, which tell nothing"):
        fit = plr.fit_strengths(rankings, weights=weights)
    np.testing.assert_allclose(fit.standard_errors, plr.fit_strengths(rankings[4:]).standard_errors, rtol=1e-12)
    assert fit.predict(rankings[:1]) == 1.0


@pytest.mark.parametrize("distance", [30.0, 33.0, 40.0, 1e6])
def test_priors_at_any_distance(distance):
    """One feature without penalty bridges them: right to all digits shown. Mutant: a start at the means."""
    options = {"weights": [10, 1], "features": [0.0, 1.0], "ridge": 1.0}
    fit = plr.fit_strengths([[0, 1], [1, 0]], prior=[-distance, distance], **options)
    np.testing.assert_allclose(fit.strengths, [1.151293, -1.151293], atol=1e-6)
    np.testing.assert_allclose(fit.standard_errors, 0.524404, atol=1e-6)


@pytest.mark.parametrize("unit", [1e-9, 1e18, 1.195174908430748e18, 1e30])
def test_weights_in_any_unit(unit):
    """Mutant: weights as they are."""
    fit = plr.fit_strengths([[0, 1], [1, 0]], weights=[4 * unit, 2 * unit])
    np.testing.assert_allclose(fit.strengths, np.log(2) / 2 * np.array([1, -1]), rtol=1e-9)
    np.testing.assert_allclose(fit.standard_errors * np.sqrt(unit), np.sqrt(3 / 16), rtol=1e-9)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e5, 1e9])
def test_features_in_any_unit(unit):
    """Mutants: coefficients, or their covariance, in the unit of the fit."""
    features = np.array([[0.0, 3.0], [1.0, 5.0], [4.0, 4.0]]) * [unit, 1.0]
    fit = plr.fit_strengths([[0, 1, 2], [2, 0, 1], [1, 0]], features=features, ridge=0.1)
    of_one = plr.fit_strengths([[0, 1, 2], [2, 0, 1], [1, 0]], features=features / [unit, 1.0], ridge=0.1)
    np.testing.assert_allclose(fit.strengths, of_one.strengths, atol=1e-9)
    np.testing.assert_allclose(fit.coefficients * [unit, 1.0], of_one.coefficients, rtol=1e-6)
    scaled = fit.coefficient_covariance * np.outer([unit, 1.0], [unit, 1.0])
    np.testing.assert_allclose(scaled, of_one.coefficient_covariance, rtol=1e-6)


def test_errors_where_information_spans_nine_powers_of_ten():
    """Mutant: the Hessian by differences (4.6e-4 off in the worst error)."""
    fit = plr.fit_strengths([[2, 0, 1], [2, 1, 0], [0, 2, 1]], weights=[1e9, 1e9, 1])
    assert fit.standard_errors[2] == pytest.approx(2 / 3, rel=1e-6)


def newton_in_forty_digits(rankings, weights, ridge, n_items):
    """Strengths and standard errors of rankings without ties, by Newton's method in 40 digits."""
    with mpmath.workdps(40):
        s, one = mpmath.zeros(n_items, 1), mpmath.ones(n_items, 1)
        for _ in range(200):
            gradient, information = -ridge * s, ridge * mpmath.eye(n_items) + one * one.T
            for ranking, weight in zip(rankings, weights, strict=True):
                for k in range(len(ranking) - 1):
                    left = ranking[k:]
                    chances = [mpmath.exp(s[i] - s[ranking[k]]) for i in left]
                    chances = [chance / mpmath.fsum(chances) for chance in chances]
                    gradient[ranking[k]] += weight
                    for i, p in zip(left, chances, strict=True):
                        gradient[i] -= weight * p
                        information[i, i] += weight * p
                        for j, q in zip(left, chances, strict=True):
                            information[i, j] -= weight * p * q
            inverse = information**-1
            step = inverse * gradient
            longest = max(map(abs, step))
            s += step * min(1, 1 / longest) if longest else step
            if longest < mpmath.mpf(10) ** -30:
                break
        centre = mpmath.eye(n_items) - one * one.T / n_items
        covariance = centre * inverse * centre.T
        return [float(value) for value in s], [float(mpmath.sqrt(covariance[i, i])) for i in range(n_items)]


@pytest.mark.parametrize("seed", range(12))
def test_errors_beside_forty_digits(seed):
    """Weights span nine powers of ten: 1e-6 of a standard error, and 1e-6 or a millionth of one off in strengths.

    Mutants: the Hessian by differences; a last step of 1e-4.
    """
    rng = np.random.default_rng(seed)
    n_items, ridge = int(rng.integers(2, 5)), float(rng.choice([0.0, 1e-3, 1.0]))
    rankings = [rng.permutation(n_items)[: rng.integers(2, n_items + 1)].tolist() for _ in range(4)]
    rankings += [[i, (i + 1) % n_items] for i in range(n_items)] + [[(i + 1) % n_items, i] for i in range(n_items)]
    weights = 10.0 ** rng.uniform(0, 9, len(rankings))
    fit = plr.fit_strengths(rankings, weights=weights, ridge=ridge)
    strengths, errors = newton_in_forty_digits(rankings, weights, ridge, n_items)
    np.testing.assert_allclose(fit.standard_errors, errors, rtol=1e-6)
    assert (np.abs(fit.strengths - strengths) < 1e-6 * np.maximum(1.0, errors)).all()


def test_the_inverse_of_many_items(monkeypatch):
    """Mutants: a corner of the wrong sign; a quarter that is not explained; strips that overlap."""
    import plrank_fast.strengths.information as information

    rankings = plr.sample_rankings(np.linspace(-1, 1, 41), 400, 3, rng=0)
    expected = plr.fit_strengths(rankings)
    monkeypatch.setattr(information, "BLOCK", 3)
    monkeypatch.setattr(information, "MULTIPLICATIONS_AT_ONCE", 50)
    monkeypatch.setattr(information, "LINKS_AT_ONCE", 20)
    np.testing.assert_allclose(plr.fit_strengths(rankings).covariance, expected.covariance, rtol=1e-9)


@pytest.mark.parametrize("chain", [False, True])
def test_equations_of_many_items(chain, monkeypatch):
    """Conjugate gradients where they settle, and elimination where they do not, as along a chain.

    Mutants: a product too few; a direction without the last one; what is left after the last product as solved.
    """
    import plrank_fast.strengths.model as model

    battles = np.array([[i, i + 1] for i in range(239)] + [[i + 1, i] for i in range(239)])
    battles = battles if chain else plr.sample_rankings(np.linspace(-1, 1, 240), 6000, 2, rng=0)
    solved, conjugate = [], model._conjugate
    monkeypatch.setattr(model, "_conjugate", lambda a, b: solved.append(conjugate(a, b)) or solved[-1])
    fit = plr.fit_strengths(battles, weights=np.arange(len(battles)) % 3 + 1.0)
    assert all((step is None) == chain for step in solved)
    monkeypatch.setattr(model, "FEW", 1000)
    other = plr.fit_strengths(battles, weights=np.arange(len(battles)) % 3 + 1.0)
    np.testing.assert_allclose(fit.strengths, other.strengths, atol=1e-9)


def test_more_items_than_their_covariance_has_room_for():
    """Mutant: the matrix is made first (74 GB)."""
    with pytest.raises(
        ValueError, match="numbers in rankings, must be at most 5,000, got 100,001, whose covariance has 80 GB"
    ):
        plr.fit_strengths([100_000, 5], [0, 1], [0, 2], ridge=1.0)


@pytest.mark.parametrize(
    ("wins", "losses", "ridge"), [(3, 0, 1e-5), (3, 0, 1e-8), (3, 0, 1e-12), (100_000, 1, 0.0), (7, 3, 0.0)]
)
def test_standard_errors_of_a_pair(wins, losses, ridge):
    """The variance of the difference is 2 / (2 n p (1 - p) + ridge) at p = 1 / (1 + exp(-difference)).

    Mutants: the information where BFGS stops (4.4e-4 and 1.5e-3 off with the ridges, 4.9e-6 without); a last step of
    1e-4; steps of any length.
    """
    fit = plr.fit_strengths([[0, 1], [1, 0]], weights=[wins, losses], ridge=ridge)
    difference = fit.strengths[0] - fit.strengths[1]
    n, lost = wins + losses, 1 / (1 + np.exp(difference))
    assert n * lost - losses == pytest.approx(ridge * difference / 2, rel=1e-6, abs=1e-9 * losses)
    variance = fit.covariance[0, 0] + fit.covariance[1, 1] - 2 * fit.covariance[0, 1]
    assert np.sqrt(variance) == pytest.approx(np.sqrt(2 / (2 * n * lost * (1 - lost) + ridge)), rel=1e-6)


def test_weak_links_between_groups():
    """Two groups that a ridge alone holds together. Mutant: a diagonal of differences, which outweigh the ridge."""
    one = [[0, 1], [1, 0]]
    fit = plr.fit_strengths([*one, [2, 3], [3, 2]], weights=[5e4, 3e4, 3e4, 5e4], ridge=1e-3)
    along = np.array([0.5, 0.5, -0.5, -0.5])
    assert along @ fit.covariance @ along == pytest.approx(1e3, rel=1e-6)
    with pytest.raises(ValueError, match="too weakly, or at infinity only: pass a larger ridge"):
        plr.fit_strengths([*one, [2, 3], [3, 2]], ridge=1e-300)


def test_forms_of_rankings():
    """Equal rankings as lists, rows, items with places, by names and by numbers, repeated and counted.

    Mutants: -1 as an item; names in the order of the rankings; the rest before the ranked; a set in order; ties lost
    where equal rankings are merged; keys of long rankings that overflow.
    """
    rankings = plr.sample_rankings(np.linspace(-1, 1, 5), 200, 3, rng=0)
    first = plr.fit_strengths(rankings)
    names = ["e", "d", "c", "b", "a"]
    named = [[names[i] for i in row] for row in rankings]
    flat = rankings.reshape(-1), np.tile(np.arange(3), 200), 3 * np.arange(201)
    distinct, counts = np.unique(rankings, axis=0, return_counts=True)
    padded = np.append(rankings, np.full((200, 2), -1), axis=1)
    for fit in (
        plr.fit_strengths(rankings.tolist()),
        plr.fit_strengths(padded),
        plr.fit_strengths(*flat),
        plr.fit_strengths(distinct, weights=counts),
        plr.fit_strengths(named, names=names),
        plr.fit_strengths(rankings, names=names),
        plr.fit_strengths(np.array(named, dtype=object), names=iter(names)),
    ):
        np.testing.assert_allclose(fit.strengths, first.strengths, rtol=0, atol=1e-12)
        np.testing.assert_allclose(fit.covariance, first.covariance, rtol=0, atol=1e-12)
    by_name = plr.fit_strengths(named)
    assert by_name.names == sorted(names)
    np.testing.assert_allclose(by_name.strengths, first.strengths[::-1], rtol=0, atol=1e-12)
    assert plr.fit_strengths([[20, 10], [10, 20]], names=[10, 20]).names == [10, 20]
    rest = [{*range(5)} - set(row) for row in rankings.tolist()]
    last = plr.fit_strengths([[*row, others] for row, others in zip(rankings.tolist(), rest, strict=True)])
    np.testing.assert_allclose(plr.fit_strengths(rankings, unranked="last").strengths, last.strengths, atol=1e-12)
    tied = plr.fit_strengths([[{0, 1}, 2], [2, 0, 1], [0, {2, 1}], [1, 0, 2]], weights=[2, 1, 1, 1])
    items = [0, 1, 2, 2, 0, 1, 0, 2, 1, 1, 0, 2, 1, 0, 2]
    buckets = [0, 0, 1, 0, 1, 2, 0, 1, 1, 0, 1, 2, 5, 5, 9]
    other = plr.fit_strengths(items, buckets, 3 * np.arange(6))
    np.testing.assert_allclose(tied.strengths, other.strengths, rtol=0, atol=1e-12)


FEATURE = {"comparison_features": [0, 1] * 6 + [1, 0] * 6}


@pytest.mark.parametrize("options", [{}, {"ties": "davidson"}, FEATURE], ids=str)
def test_forms_of_battles(options):
    """Battles, winner and loser, have the same bits in each form. Mutants: places of the columns that are not
    contiguous, in an array of texts; flat items taken for lists where comparisons have features."""
    battles = np.array([[0, 1], [1, 0], [1, 2], [2, 0]] * 3)
    named = np.array(["a", "b", "c"])[battles]
    expected = plr.fit_strengths(battles.tolist(), **options)
    items, offsets = battles.reshape(-1), range(0, 25, 2)
    forms = [(battles.astype(kind),) for kind in ("u1", ">i4", "i8", "U1", "S1", object)]
    forms += [(battles[:, ::-1].copy()[:, ::-1],), (np.asfortranarray(battles),), (named,), (named.tolist(),)]
    forms += [(np.asfortranarray(named.astype(object)),), (np.append(named, [[""]] * 12, axis=1),)]
    forms += [(items, [0, 1] * 12, offsets), (items.tolist(), np.tile([0, 9, 1, 9], 12)[::2], offsets)]
    for form in forms:
        fit = plr.fit_strengths(*form, **options)
        np.testing.assert_array_equal(fit.strengths, expected.strengths, err_msg=repr(form))
        np.testing.assert_array_equal(fit.covariance, expected.covariance)


def test_result():
    """Mutants: the quantile of one tail; the weakest first; the second item's probability; names that are HTML."""
    fit = plr.fit_strengths([["a", "b"], ["b", "a"], ["b", "cc"], ["cc", "a"]], weights=[3, 1, 2, 2])
    strengths, errors, covariance = fit
    assert strengths is fit.strengths
    np.testing.assert_allclose(errors**2, np.diag(covariance))
    assert repr(fit) == "FittedStrengths(n_items=3, strongest='a')"
    np.testing.assert_allclose(fit.intervals(0.95)[:, 1], strengths + 1.959963984540054 * errors)
    np.testing.assert_allclose(fit.intervals(0.5).mean(axis=1), strengths, atol=1e-15)
    weights = np.exp(strengths)
    chances = [
        weights[0] / (weights[0] + weights[1]),
        weights[1] / weights.sum() * weights[2] / (weights[2] + weights[0]),
    ]
    np.testing.assert_allclose(fit.predict([["a", "b"], ["b", "cc", "a"]]), chances, rtol=1e-12)
    np.testing.assert_allclose(fit.predict([[{"a", "b"}, "cc"], ["cc", {"a", "b"}]]).sum(), 1 - fit.predict(
        [["a", "cc", "b"], ["b", "cc", "a"]]).sum(), rtol=1e-9)  # fmt: skip
    lines = fit.summary().split("\n")
    assert lines[0].split() == ["item", "strength", "std.", "error", "95%", "from", "to"]
    assert [line.split()[0] for line in lines[1:]] == [fit.names[i] for i in np.argsort(-strengths)]
    assert float(lines[1].split()[1]) == pytest.approx(strengths.max(), abs=1e-4)
    assert fit._repr_html_().startswith("<table><tr><th>item</th><th>strength</th>")
    assert f"<td>{fit.names[int(strengths.argmax())]}</td><td>{strengths.max():.4f}</td>" in fit._repr_html_()
    assert "<td>&lt;b&gt;</td>" in plr.fit_strengths([["<b>", "a"], ["a", "<b>"]])._repr_html_()
    described = plr.fit_strengths([["a", "b"], ["b", "a"]], features=[1.0, 2.0], weights=[2, 1])
    assert "(feature 0)" in described.summary()
    with pytest.raises(ValueError, match="confidence must be positive and below 1"):
        fit.intervals(1.0)


def test_picture(monkeypatch):
    """Mutants: a figure that a notebook shows as text; torch, which trains models, named where a picture needs none."""
    fit = plr.fit_strengths([["a", "b"], ["b", "a"]])
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "matplotlib.figure", None)
        with pytest.raises(ImportError, match=r'^matplotlib is needed here .*: pip install "matplotlib>=[^ ]*$'):
            fit.plot()
    pytest.importorskip("matplotlib")
    assert fit.plot()._repr_png_().startswith(b"\x89PNG")


def davidson_luce(strengths, log_deltas, stages, rest):
    """The log-probability of a ranking of sets, by enumeration of all sets that each stage may choose."""
    left, result = [*itertools.chain(*stages), *rest], 0.0

    def log_weight(chosen):
        return np.mean([strengths[i] for i in chosen]) + log_deltas.get(len(chosen), -np.inf)

    for stage in stages:
        sets = [s for size in range(1, len(left) + 1) for s in itertools.combinations(left, size)]
        result += log_weight(stage) - np.logaddexp.reduce([log_weight(s) for s in sets])
        left = [i for i in left if i not in stage]
    return result


@pytest.mark.parametrize("longest", [2, 5])
@pytest.mark.parametrize("unranked", ["absent", "last"])
def test_draws_with_a_probability_of_their_own(longest, unranked):
    """Davidson for battles, Davidson-Luce for rankings: gradient and information by enumeration.

    Mutants: the rest after a ranking as a tie; a delta of sizes that do not occur; a share of n, not 1 / n;
    a draw as half of two wins; the cross terms of deltas and strengths with the other sign.
    """
    rng, n = np.random.default_rng(3), 5
    rankings = []
    for _ in range(40):
        items, size = rng.permutation(n), int(rng.integers(2, longest + 1))
        places = np.sort(rng.integers(0, 3, size)) if longest > 2 else np.sort(rng.integers(0, 2, 2))
        rankings.append([frozenset(items[:size][places == k].tolist()) for k in np.unique(places)])
    counts = rng.integers(1, 4, 40)
    fit = plr.fit_strengths(rankings, weights=counts, names=range(n), ties="davidson", unranked=unranked)
    sizes = fit.draw_sizes.tolist()
    assert sizes == sorted({len(s) for ranking in rankings for s in ranking} - {1})
    rests = [set(range(n)) - set().union(*r) if unranked == "last" else set() for r in rankings]

    def value(parameters):
        deltas = {1: 0.0, **dict(zip(sizes, parameters[n:], strict=True))}
        every = (davidson_luce(parameters, deltas, *each) for each in zip(rankings, rests, strict=True))
        return counts @ np.array([*every])

    at, steps = np.append(fit.strengths, fit.log_deltas), 1e-3 * np.eye(n + len(sizes))
    assert np.abs([(value(at + s) - value(at - s)) / 2e-3 for s in steps]).max() < 2e-4
    ends = [
        [value(at + a + b) - value(at + a - b) - value(at - a + b) + value(at - a - b) for a in steps] for b in steps
    ]
    information = -np.array(ends) / 4e-6
    information[:n, :n] += 1.0
    inverse = np.linalg.inv(information)
    inverse[:n] -= inverse[:n].mean(axis=0)
    inverse[:, :n] -= inverse[:, :n].mean(axis=1, keepdims=True)
    np.testing.assert_allclose(fit.covariance, inverse[:n, :n], atol=1e-5)
    np.testing.assert_allclose(fit.log_delta_covariance, inverse[n:, n:], atol=1e-5)
    outcomes = fit.predict([[0, 1], [1, 0], [{0, 1}]])
    half, delta = (fit.strengths[0] - fit.strengths[1]) / 2, np.exp(fit.log_deltas[0])
    np.testing.assert_allclose(outcomes, np.array([np.exp(half), np.exp(-half), delta]) / (2 * np.cosh(half) + delta))
    assert "(log delta 2)" in fit.summary()


@pytest.mark.parametrize("ties", ["unknown", "half", "davidson"])
@pytest.mark.parametrize("longest", [2, 4])
def test_features_of_comparisons(longest, ties):
    """Slopes and information of each ranking by enumeration: gradient, and all four covariances.

    Mutants: features of the loser less those of the winner; features of merged rankings in another order; cross terms
    left out; coefficients in the unit of the fit; battles merged whose features differ; half a win for one item only;
    weights squared in "robust", or not in "clustered"; no G / (G - 1); a cluster's slopes squared before their sum;
    information of a cluster added in the jackknife; slopes of draws or features left out of a sandwich.
    """
    rng, n = np.random.default_rng(5), 4
    sizes = np.append(rng.integers(2, longest + 1, 60), [2, 2])
    items = np.concatenate([rng.permutation(n)[:size] for size in sizes])
    tied = ties == "davidson" or longest == 2
    places = np.concatenate([rng.integers(0, 2, size) if tied else rng.permutation(size) for size in sizes])
    ends, counts, judges = np.append(0, np.cumsum(sizes)), rng.integers(1, 4, sizes.size), np.arange(sizes.size) % 7
    rows = np.column_stack([np.tile([0.0, 1000.0], items.size)[: items.size], rng.integers(0, 2, items.size)])
    options = {"weights": counts, "comparison_features": rows, "ties": ties}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*are ties of all their items")
        fit = plr.fit_strengths(items, places, ends, **options)
        fits = {kind: plr.fit_strengths(items, places, ends, **options, covariance=kind,
                                        clusters=None if kind == "robust" else judges)
                for kind in ("robust", "clustered", "jackknife")}  # fmt: skip
    drawn = [] if fit.draw_sizes is None else fit.draw_sizes.tolist()

    def values(parameters):
        scores = parameters[:n][items] + rows / [1000.0, 1.0] @ parameters[n : n + 2]
        deltas, result = {1: 0.0, **dict(zip(drawn, parameters[n + 2 :], strict=True))}, np.zeros(sizes.size)
        for number, (a, b) in enumerate(itertools.pairwise(ends)):
            stages = [{*np.flatnonzero(places[a:b] == place).tolist()} for place in np.unique(places[a:b])]
            if ties == "davidson":
                result[number] = davidson_luce(scores[a:b], deltas, stages, ())
            elif ties == "half" or len(stages) == b - a:
                orders = [np.argsort(places[a:b])] if len(stages) > 1 else [[0, 1], [1, 0]]
                result[number] = np.mean(plr.ranking_log_prob(scores[a:b], np.array(orders)))
        return result

    at = np.concatenate([fit.strengths, fit.comparison_coefficients * [1000.0, 1.0], fit.log_deltas if drawn else []])
    steps = 1e-3 * np.eye(at.size)
    slopes = np.array([(values(at + s) - values(at - s)) / 2e-3 for s in steps]).T  # (rankings, parameters)
    assert np.abs(counts @ slopes).max() < 2e-4
    signs = [*itertools.product((1, -1), repeat=2)]
    grid = np.array([[[values(at + i * a + j * b) for i, j in signs] for a in steps] for b in steps])
    each = np.tensordot(grid, [1.0, -1.0, -1.0, 1.0], (2, 0)) / -4e-6  # (parameters, parameters, rankings)
    information = each @ counts
    information[:n, :n] += 1.0
    inverse = np.linalg.inv(information)
    of_judges = np.array([(counts * (judges == judge)) @ slopes for judge in range(7)])
    left_out = np.array([
        np.linalg.solve(information - each @ (counts * (judges == judge)), of_judges[judge]) for judge in range(7)
    ])  # fmt: skip
    expected = {
        "observed": inverse,
        "robust": inverse @ (slopes.T * counts @ slopes) @ inverse,
        "clustered": 7 / 6 * inverse @ (of_judges.T @ of_judges) @ inverse,
        "jackknife": 6 / 7 * left_out.T @ left_out,
    }
    centre, units = np.eye(at.size), np.outer([1000.0, 1.0], [1000.0, 1.0])
    centre[:n, :n] -= 1.0 / n
    for kind, result in {"observed": fit, **fits}.items():
        covariance, rest = centre @ expected[kind] @ centre, slice(n, n + 2)
        np.testing.assert_allclose(result.covariance, covariance[:n, :n], atol=1e-4, err_msg=kind)
        np.testing.assert_allclose(result.comparison_covariance * units, covariance[rest, rest], atol=1e-4)
        if drawn:
            np.testing.assert_allclose(result.log_delta_covariance, covariance[n + 2 :, n + 2 :], atol=1e-4)
        reach = (result.intervals()[:, 1] - result.strengths) / result.standard_errors
        np.testing.assert_allclose(reach, 1.959964 if kind in ("observed", "robust") else 2.446912, atol=1e-6)
    assert "(comparison feature 1)" in fit.summary()


def test_deltas_at_any_distance():
    """60 digits at scores of 1e3 and 1e4. Mutant: weights in place of their logarithms."""
    from plrank_fast.strengths.draws import expectations

    scores = np.array([[0.0, 1e4, -1e3, 3.0, 2e3]])
    log_z, shares, numbers = expectations(scores, np.eye(1, 5, dtype=bool), np.array([0.3, -2.0]), np.array([1, 2, 3]))
    with mpmath.workdps(60):
        weights = {
            s: mpmath.exp(mpmath.mpf(delta) + sum(mpmath.mpf(scores[0, i]) for i in s) / n)
            for n, delta in ((1, 0.0), (2, 0.3), (3, -2.0)) for s in itertools.combinations(range(5), n)
        }  # fmt: skip
        total = mpmath.fsum(weights.values())
        share = [float(mpmath.fsum(w / len(s) for s, w in weights.items() if i in s) / total) for i in range(5)]
    assert log_z[0] == pytest.approx(float(mpmath.log(total)), rel=1e-15)
    np.testing.assert_allclose(shares[0], share, rtol=1e-11, atol=1e-300)
    assert np.isfinite(numbers).all()


@pytest.mark.parametrize(
    ("battles", "problem"),
    [
        (
            [["a", "b"], [{"a", "b"}]],
            "determine log delta 2 too weakly, .* draws need a cycle of items with more wins than draws",
        ),
        ([[{"a", "b"}], [{"c", "b"}]], "determine log delta 2 too weakly"),
        (
            [["a", "b"], ["b", "c"], [{"c", "d"}], [{"d", "a"}]],
            "as draws need a cycle of items with more wins than draws",
        ),
        ([["a", "b"], ["b", "c"]], "item 'a' never comes after any other; item 'b' comes after some"),
    ],
)
def test_what_draws_do_not_decide(battles, problem):
    """Mutants: one win and one draw of a pair as enough (a fit of 10^15); cycles with as many wins as draws; the rest
    after a ranking as a draw."""
    with pytest.raises(ValueError, match=problem):
        plr.fit_strengths(battles, ties="davidson")
    with pytest.raises(
        ValueError, match="determine log delta 2 too weakly, or at infinity only: pass a larger ridge, or"
    ):
        plr.fit_strengths([[{"a", "b"}], [{"c", "b"}]], ties="davidson", ridge=1.0)
    with pytest.raises(ValueError, match="item 'c' never comes before any other"):
        plr.fit_strengths([["a"], ["b"], [{"a", "b"}]], names=list("abc"), ties="davidson", unranked="last")
    decided = plr.fit_strengths([["a", "b"], ["b", "c"], [{"a", "c"}]], ties="davidson")  # two wins, one draw
    assert np.isfinite(decided.standard_errors).all()
    assert np.abs(decided.strengths).max() < 5.0


def rows_of_a_cone(rankings, n, ties, features):
    """Rows that say how far each choice is above another one: along a direction with none below 0 the likelihood does
    not fall."""
    sizes = sorted({1} | {len(s) for ranking in rankings for s in ranking}) if ties == "davidson" else [1]

    def score(chosen):
        row = np.zeros(n + len(sizes))
        row[[*chosen]] = 1.0 / len(chosen)
        row[n + sizes.index(len(chosen))] = 1.0
        return row

    rows = [np.zeros(n + len(sizes))]
    for ranking in rankings:
        left = {*itertools.chain(*ranking)}
        for chosen in ranking:
            if ties == "davidson":
                rivals = itertools.chain(*(itertools.combinations(left, size) for size in sizes))
                rows += [score(chosen) - score(rival) for rival in rivals if {*rival} != chosen]
            left = left - chosen
            if ties == "unknown":
                rows += [score([i]) - score([j]) for i in chosen for j in left]
    rows = np.delete(np.array(rows), n, axis=1)
    return rows if features is None else np.hstack([rows[:, :n] @ features, rows[:, n:]])


@pytest.mark.filterwarnings("ignore:.* are ties of all their items")
@pytest.mark.parametrize("described", [False, True])
@pytest.mark.parametrize("ties", ["unknown", "davidson"])
def test_fits_are_finite_where_a_linear_programme_says_so(ties, described):
    """Battles and rankings with draws and features, of which half have no maximum.

    Mutants: a draw as an order one way; a set that comes before all later ones but the next; variances of any size (a
    fit of 10^8); components of items without the nodes between sets.
    """
    optimize = pytest.importorskip("scipy.optimize")
    agreed = {False: 0, True: 0}
    for seed in range(150):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 5))
        longest, rankings = (2, n)[seed % 2], []
        for _ in range(rng.integers(1, 9)):
            items = rng.permutation(n)[: rng.integers(2, longest + 1)]
            places = rng.integers(0, 3, items.size) if rng.random() < 0.5 else np.arange(items.size)
            rankings.append([{*items[places == k].tolist()} for k in np.unique(places)])
        features = rng.integers(0, 3, (n, int(rng.integers(1, 3)))) * 1.0 if described else None
        rows = rows_of_a_cone(rankings, n, ties, None if features is None else features - features.mean(axis=0))
        finite = np.linalg.matrix_rank(rows) == rows.shape[1] - (not described)
        if finite:
            limits = [(-1.0, 1.0)] * rows.shape[1]
            programme = optimize.linprog(-rows.sum(axis=0), -rows, np.zeros(len(rows)), bounds=limits)
            finite = -programme.fun < 1e-7
        try:
            weights = 10.0 ** rng.uniform(0, (0, 6)[seed % 3 == 0], len(rankings))
            fit = plr.fit_strengths(rankings, names=range(n), ties=ties, features=features, weights=weights)
        except ValueError:
            assert not finite, (seed, rankings)
        else:
            assert finite, (seed, rankings)
            assert np.abs(fit.strengths).max() < 1e4
        agreed[bool(finite)] += 1
    assert min(agreed.values()) > 20


def test_groups_of_items_without_a_finite_difference():
    """Each group as if it were alone, and who is above whom, by names.

    Mutants: groups in the order of their names; ``above`` transposed; covariances across as numbers; one mean for all;
    a ranking that crosses groups dropped.
    """
    one = [["d", "e"], ["e", "d"], ["d", "e"]]
    two = [["a", "b"], ["b", "a"], ["b", "c"], ["c", "a", "b"]]
    across = [["d", "a"], ["e", "c", "b"], ["x", "y"]]
    fit = plr.fit_strengths(one + two + across, undecided="groups")
    assert sorted(map(sorted, fit.groups)) == [["a", "b", "c"], ["d", "e"], ["x"], ["y"]]
    places = {"".join(group): number for number, group in enumerate(fit.groups)}
    pairs = {(a, b) for a in places for b in places if fit.above[places[a], places[b]]}
    assert pairs == {("de", "abc"), ("x", "y")}
    assert places["de"] < places["abc"]
    for alone, items in ((plr.fit_strengths(one), [3, 4]), (plr.fit_strengths([*two, ["c", "b"]]), [0, 1, 2])):
        np.testing.assert_allclose(fit.strengths[items], alone.strengths, atol=1e-12)
        np.testing.assert_allclose(fit.covariance[np.ix_(items, items)], alone.covariance, rtol=1e-9)
    assert np.isnan(fit.covariance[0, 3])
    np.testing.assert_allclose(fit.predict([["a", "b"], ["a", "d"]])[1], np.nan)
    beside = plr.fit_strengths(one + two + across, undecided="groups", reference="e")
    assert beside.strengths[4] == 0.0
    np.testing.assert_allclose(beside.strengths[:3], fit.strengths[:3])
    chain = plr.fit_strengths([[i, i + 1] for i in range(6)], undecided="groups")
    assert chain.groups == [[i] for i in range(7)]
    assert np.array_equal(chain.above, np.triu(np.ones((7, 7)), 1))


def test_many_models_of_few_clusters():
    """Slopes of battles by hand, added up by cluster. Mutants: products of a cluster's first value lost, or halved."""
    battles = plr.sample_rankings(np.zeros(12), 300, 2, rng=0)
    fit, judges = plr.fit_strengths(battles), np.arange(300) // 60
    lost = 1.0 / (1.0 + np.exp(fit.strengths[battles] @ [1.0, -1.0]))
    sums = np.zeros((5, 12))
    np.add.at(sums, (judges, battles[:, 0]), lost)
    np.add.at(sums, (judges, battles[:, 1]), -lost)
    clustered = plr.fit_strengths(battles, covariance="clustered", clusters=judges)
    expected = 5 / 4 * fit.covariance @ sums.T @ sums @ fit.covariance
    np.testing.assert_allclose(clustered.covariance, expected, rtol=1e-9)
    each = plr.fit_strengths(battles, covariance="clustered", clusters=np.arange(300))
    robust = plr.fit_strengths(battles, covariance="robust")
    np.testing.assert_allclose(each.covariance * 299 / 300, robust.covariance, rtol=1e-9)


@pytest.mark.parametrize("by_judge", [False, True])
@pytest.mark.parametrize("many", [False, True])
def test_bootstrap(many, by_judge, monkeypatch):
    """A fit to rankings drawn again is the fit to those numbers; their spread is that of the errors.

    Mutants: steps that end early; a judge drawn whose rankings count once; kinds of rankings in another order.
    """
    import plrank_fast.strengths.resampled as resampled

    if many:
        monkeypatch.setattr(resampled, "MANY_DRAWS", 0)
    rng, counts = np.random.default_rng(1), []
    rankings = [rng.permutation(4)[: rng.integers(2, 4)].tolist() for _ in range(150)] + [[0]]
    rankings += [[{0, 1}]] * 20 + [[{2, 3}]] * 20
    weights = rng.integers(1, 4, len(rankings))
    judges = np.arange(len(rankings)) % 40
    fit = plr.fit_strengths(rankings, weights=weights, ties="davidson")
    whole = type(fit._model.likelihood).with_counts
    monkeypatch.setattr(type(fit._model.likelihood), "with_counts", lambda a, b: counts.append(b) or whole(a, b))
    fits = fit.bootstrap(100, rng=3, clusters=judges if by_judge else None)
    assert fits.shape == (100, 4)
    assert np.array_equal(fits, fit.bootstrap(100, rng=3, clusters=judges if by_judge else None))
    kinds = fit._model.likelihood.kinds
    for drawn, refit in zip(counts[:10], fits, strict=False):
        one = np.array([np.flatnonzero(kinds == kind)[0] for kind in np.flatnonzero(drawn)])
        again = plr.fit_strengths([rankings[i] for i in one], weights=drawn[drawn > 0], ties="davidson", names=range(4))
        np.testing.assert_allclose(again.strengths, refit, atol=1e-6)
    assert kinds[150] == -1
    totals = [drawn[: fit._model.likelihood.counts.size].sum() for drawn in counts]
    assert np.mean(totals) == pytest.approx(weights.sum() - weights[150], rel=0.03)
    kind = {"covariance": "clustered", "clusters": judges} if by_judge else {}
    errors = plr.fit_strengths(rankings, weights=weights, ties="davidson", **kind).standard_errors
    np.testing.assert_allclose(fits.std(axis=0), errors, rtol=0.35)  # 5 of its errors, of which 100 fits have 7 %


def test_fits_that_no_drawing_determines():
    """Mutants: rows of 10^8 in place of NaN; fractions of rankings drawn; groups drawn as one."""
    fit = pickle.loads(pickle.dumps(plr.fit_strengths([["a", "b"], ["b", "a"], ["b", "c"], ["c", "b"]])))
    with pytest.warns(UserWarning, match=r"of 50 fits to rankings drawn again have no finite maximum, and are NaN"):
        fits = fit.bootstrap(50, rng=0)
    assert np.isnan(fits).any(axis=1).sum() > 10
    assert np.nanmax(np.abs(fits)) < 10.0
    with pytest.raises(ValueError, match=r"weights must be whole numbers, or have clusters drawn, got 0\.5"):
        plr.fit_strengths([["a", "b"], ["b", "a"]], weights=[0.5, 1.0]).bootstrap(2)
    groups = plr.fit_strengths([["a", "b"], ["c", "d"]], undecided="groups")
    with pytest.raises(ValueError, match="bootstrap needs items that rankings connect, got 4 groups: fit each of them"):
        groups.bootstrap(2)
    halves = plr.fit_strengths([["a", "b"], ["b", "a"]] * 4, weights=[0.5, 1.0] * 4)
    assert np.isfinite(halves.bootstrap(5, rng=0, clusters=[0, 0, 1, 1, 2, 2, 3, 3])).all()


def test_ranks_by_three_rules():
    """Ranks by hand where errors are known; all items equal: the rule for the whole table holds in 95 % of them.

    Of 300 tables 5 % may be wrong, and 28 or more with probability 1e-3. Mutants: one item's intervals for all; t as
    normal; rows and columns exchanged; intervals that touch; groups above left out.
    """
    fit = plr.fit_strengths([["a", "b"], ["b", "a"]], weights=[55, 45])
    assert fit.ranks("overlap").tolist() == fit.ranks("each").tolist() == [[1, 2], [1, 2]]
    fit = plr.fit_strengths([["a", "b"], ["b", "a"]], weights=[70, 30])
    assert fit.ranks("overlap").tolist() == fit.ranks().tolist() == [[1, 1], [2, 2]]
    few = {"covariance": "clustered", "clusters": [0, 1, 2, 0, 1, 2]}
    wide = plr.fit_strengths([["a", "b"]] * 3 + [["b", "a"]] * 3, weights=[24, 30, 16, 9, 14, 7], **few)
    reach = wide.strengths[0] / wide.standard_errors[0]  # a t of 2 degrees has 4.30
    assert wide.ranks().tolist() == ([[1, 1], [2, 2]] if reach > 4.4 else [[1, 2], [1, 2]])
    rng, wrong = np.random.default_rng(0), {"each": 0, "simultaneous": 0, "overlap": 0}
    first, covered = [0, 1, 2, 3, 4, 5, 6, 7], 0
    for _ in range(300):
        battles = plr.sample_rankings(np.zeros(8), 200, 2, rng=rng)
        fit = plr.fit_strengths(battles)
        for rule in wrong:
            ranks = fit.ranks(rule)
            wrong[rule] += bool((ranks[first] != [1, 8]).any())
            covered += rule == "each" and int((ranks == [1, 8]).all(axis=1).sum())
    assert wrong["simultaneous"] < 28 < 40 < wrong["each"]
    assert covered / 2400 > 0.93
    assert wrong["overlap"] < 60
    groups = plr.fit_strengths([["a", "b"], ["b", "c"], ["c", "b"]], undecided="groups")
    for rule in wrong:
        assert groups.ranks(rule).tolist() == [[1, 1], [2, 3], [2, 3]]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_of_battles(library):
    """Mutants: the second model as the first; a tie by another name as a win; a winner's name ignored."""
    frame = pytest.importorskip(library).DataFrame
    cells = {"winner": ["model_a", "model_a", "model_b", "both_bad", "y", "x", "draw", "tie (bothbad)"],
             "judge": [1, 1, 2, 2, 3, 3, 4, 4],
             "model_a": list("xyxzxxyz"), "model_b": list("yzzxyzxy")}  # fmt: skip
    fit = plr.fit_strengths(frame(cells), ties="davidson", covariance="clustered", clusters=cells["judge"])
    rankings = [["x", "y"], ["y", "z"], ["z", "x"], [{"z", "x"}], ["y", "x"], ["x", "z"], [{"x", "y"}], [{"z", "y"}]]
    other = plr.fit_strengths(rankings, ties="davidson", covariance="clustered", clusters=cells["judge"])
    np.testing.assert_allclose(fit.strengths, other.strengths, atol=1e-12)
    np.testing.assert_allclose(fit.covariance, other.covariance, atol=1e-12)
    for winner in ("w", "", None):
        with pytest.raises(ValueError, match=r"winner must be 'model_a', .*, got .* in row 2"):
            plr.fit_strengths(frame({**cells, "winner": ["tie", "draw", winner, *["tie"] * 5]}))
    with pytest.raises(ValueError, match=r"rankings must have the columns \['model_b'\], got \['winner', 'model_a'\]"):
        plr.fit_strengths(frame({name: cells[name] for name in ("winner", "model_a")}))
    with pytest.raises(ValueError, match="distinct within a ranking, got 'x' again in ranking 2"):
        plr.fit_strengths(frame({**cells, "model_b": list("yzxxyzxy")}))


def test_ratings_and_tables():
    """Mutants: odds of e; errors in strengths; the weakest item first; bars of other rows; ranks of other items."""
    frames = pytest.importorskip("pandas")
    fit = plr.fit_strengths([["b", "a"], ["a", "b"]], weights=[10, 1], reference="a")
    rating, low, high = fit.elo()[1]
    assert rating == pytest.approx(1400.0)
    assert high - low == pytest.approx(2 * 1.959964 * fit.standard_errors[1] * 400 / np.log(10))
    assert fit.elo(100.0, np.e, 0.0)[1, 0] == pytest.approx(100 * fit.strengths[1])
    fit = plr.fit_strengths(plr.sample_rankings([0.0, 2.0, -2.0], 300, 3, rng=0), names=["m", "t", "l"])
    frame = fit.to_frame()
    assert isinstance(frame, frames.DataFrame)
    assert frame["item"].tolist() == ["t", "m", "l"]
    assert frame[["best_rank", "worst_rank"]].to_numpy().tolist() == [[1, 1], [2, 2], [3, 3]]
    np.testing.assert_allclose(frame[["lower", "upper"]].to_numpy(), fit.intervals()[[1, 0, 2]])
    np.testing.assert_allclose(frame["elo"], fit.elo()[[1, 0, 2], 0])
    places = [float(part.split("%")[0]) for part in fit._repr_html_().split("margin-left:")[1:]]
    ends = fit.intervals()[[1, 0, 2], 0]
    np.testing.assert_allclose(places, 100 * (ends - ends.min()) / (fit.intervals().max() - ends.min()), atol=0.51)
    pytest.importorskip("matplotlib")
    texts = [label.get_text() for label in fit.plot(ranks="each").axes[0].get_yticklabels()]
    assert texts == ["l  3", "m  2", "t  1"]


def test_draws_as_r_fits_them():
    """Davidson's data on chocolate puddings (1970): log delta and deviance in the vignette of R's PlackettLuce.

    Mutant: the weight of a draw beside the product of both strengths, not its root.
    """
    pairs = [(1, 2), (1, 3), (2, 3), (1, 4), (2, 4), (3, 4), (1, 5), (2, 5)]
    pairs += [(3, 5), (4, 5), (1, 6), (2, 6), (3, 6), (4, 6), (5, 6)]
    won = [19, 16, 19, 18, 23, 19, 13, 16, 16, 17, 18, 22, 13, 14, 11]
    lost = [22, 19, 19, 23, 19, 20, 19, 20, 15, 14, 21, 20, 18, 19, 21]
    drawn = [16, 12, 10, 13, 9, 15, 18, 12, 17, 16, 12, 12, 10, 18, 12]
    results = [[*map(list, pairs)], [[j, i] for i, j in pairs], [[{i, j}] for i, j in pairs]]
    fit = plr.fit_strengths(
        [*itertools.chain(*results)], names=range(1, 7), weights=won + lost + drawn, ties="davidson"
    )
    assert fit.log_deltas[0] == pytest.approx(-0.291927, abs=1e-6)
    deviance = -2 * np.array(won + lost + drawn) @ np.log(fit.predict([*itertools.chain(*results)]))
    assert deviance == pytest.approx(1619.4, abs=0.05)


def test_fruits_as_r_fits_them():
    """Six rankings of three fruits in the tests of R's PlackettLuce 0.4.3: half a win and half a loss against a ghost.

    Its errors are those of the six rankings alone, at this maximum. Mutants: a tie of two as a tie of three; a share of
    1 for each tied item; the reference's variance in the errors.
    """
    six = [["a", "b"], ["b", "o", "a"], [{"b", "o"}, "a"], ["a", "b", "o"], [{"b", "o"}, "a"], ["a", "o"]]
    ghost = [pair for fruit in "abo" for pair in ([fruit, "ghost"], ["ghost", fruit])]
    fit = plr.fit_strengths(six + ghost, weights=[1] * 6 + [0.5] * 6, ties="davidson", reference="a")
    found = [*fit.strengths[[0, 1, 3]], *fit.log_deltas]
    np.testing.assert_allclose(found, [0.0, 0.2867987, -0.4636687, -1.0701129], atol=6e-8)
    alone = plr.fit_strengths(six, ties="davidson", ridge=1.0)._model.likelihood
    information = alone.unit * alone.information(np.array(found))[1:, 1:]
    np.testing.assert_allclose(np.sqrt(np.diag(np.linalg.inv(information))), [1.0129, 1.0280, 0.9043], atol=6e-5)


@pytest.mark.parametrize("ties", ["unknown", "davidson"])
@pytest.mark.parametrize("described", [False, True])
def test_battles_by_pair_and_one_by_one(ties, described, monkeypatch):
    """Counts of pairs, and the recursion over rankings, of which a battle is the shortest.

    Mutants: the chance of the other item; a draw without its log delta; slopes of pairs added to one item only; a term
    of the information about the difference left out, or about it and the log delta with the other sign.
    """
    rng = np.random.default_rng(11)
    items = np.array([rng.permutation(6)[:2] for _ in range(400)])
    places = np.column_stack([rng.integers(0, 2, 400), rng.integers(0, 2, 400)])
    rows = rng.integers(0, 3, (800, 2)) if described else None
    told = items.reshape(-1), places.reshape(-1), 2 * np.arange(401)
    options = {"weights": rng.integers(0, 4, 400), "comparison_features": rows, "ties": ties}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*are ties of all their items")
        counted = plr.fit_strengths(*told, **options)
        monkeypatch.setattr("plrank_fast.strengths.likelihood.COUNTED", 0)
        single = plr.fit_strengths(*told, **options)
    assert counted._model.likelihood.battles.i.size > single._model.likelihood.battles.i.size == 0
    for name in ("strengths", "covariance", "log_deltas", "log_delta_covariance", "comparison_coefficients",
                 "comparison_covariance"):  # fmt: skip
        if getattr(counted, name) is not None:
            np.testing.assert_allclose(getattr(counted, name), getattr(single, name), atol=1e-9, err_msg=name)


def test_coverage_of_an_arena(capsys):
    """40 arenas of 6,000 battles, whose 60 judges have tastes of their own: intervals of 20 models that hold the truth.

    The mean of 40 shares has a standard deviation of about .012, and bounds are 3 of these away: other seeds would fail
    with a probability below 1 %. Mutants: clusters of one ranking each; features of comparisons not used; halves at the
    scale of Davidson's model.
    """
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "leaderboard.py"))
    rows = example["main"](["--repetitions", "40", "--battles", "6000", "--judges", "60"])
    half, dropped, ignored, whole, clustered = rows.values()
    assert 0.7 < half[0] < 0.85 < dropped[0]
    assert min(dropped[1] - whole[1], ignored[1] - whole[1]) > 0.08
    assert whole[2] < 0.905 < clustered[2] < 0.985
    assert half[2] < 0.75
    assert len(capsys.readouterr().out.splitlines()) == 5
