"""Strengths fitted to rankings: the maximum of the likelihood summed over all orders, closed forms, refusals."""

import itertools

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

    Mutants: steps of any length; a penalty left out of their gain; half an update of the inverse; endless steps.
    """
    items, offsets = np.array([*[0, 1] * 1000, *[2, 1] * 1000, 2, 0]), np.arange(0, 4003, 2)
    data, ridge = (items, np.tile([0, 1], 2001), offsets), 1e-6
    strengths, _, covariance = plr.fit_strengths(*data, ridge=ridge)
    slopes = plr.bucket_log_prob_vjp(strengths[items], data[1], np.ones(2001), offsets=offsets)
    gradient = np.bincount(items, slopes) - ridge * strengths
    assert gradient @ covariance @ gradient < 1e-8
    monkeypatch.setattr("plrank_fast.strengths.fit.MOST_NEWTON_STEPS", 1)
    monkeypatch.setattr("plrank_fast.strengths.fit.MOST_STEPS", 3)
    with pytest.raises(ValueError, match="the rankings determine the strengths too weakly: pass a larger ridge"):
        plr.fit_strengths(*data, ridge=ridge)


def test_disconnected_items():
    """A ridge gives strengths where the most likely ones are infinite: to a winner of all, a loser, two leagues, ties.

    Mutant: ties count as comparisons.
    """
    cases = {
        "item 1 never comes before": ([0, 1, 0, 1], [0, 1, 0, 1], [0, 2, 4]),
        "item 1 never comes after": ([0, 1, 0, 1], [1, 0, 1, 0], [0, 2, 4]),
        "item 2 never comes after": ([0, 1, 0, 1, 2, 3, 2, 3], [0, 1, 1, 0, 0, 1, 1, 0], [0, 2, 4, 6, 8]),
        "item 1 never comes after item 0": ([0, 1, 1, 0], [0, 0, 3, 3], [0, 2, 4]),
    }
    for problem, data in cases.items():
        with pytest.raises(ValueError, match=f"rankings must connect all items, but {problem}.* pass a ridge"):
            plr.fit_strengths(*data)
        assert np.isfinite(plr.fit_strengths(*data, ridge=0.1).standard_errors).all()
    linked = ([0, 1, 1, 2, 2, 0], [0, 1, 0, 1, 0, 1], [0, 2, 4, 6])  # each item beats one and loses to the other
    np.testing.assert_allclose(plr.fit_strengths(*linked).strengths, 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (([0, 1, 1], [0, 1, 2], [0, 3]), "items of rankings must be distinct within a ranking, got 1 at index 2"),
        (([0, 1], [0, 1, 2], [0, 2]), "buckets must have one entry for each of the 2 items"),
        (([], [], [0]), "rankings must hold an item, got none"),
        (([100_000, 5], [0, 1], [0, 2]), "item 0 is in no ranking with others: .*number the items without gaps"),
        (([[0, 1], [0, 0]],), "items of rankings must be distinct within a ranking"),
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
        ({"names": ["a", "b"]}, r"items of rankings must be among the names, got \['c'\]"),
        ({"names": ["a", "b", "c", "c"]}, "names must be distinct"),
        ({"names": list("abcd")}, "item 'd' is in no ranking with others: leave it out of names"),
        ({"weights": [1, 2]}, "weights must have one entry for each of the 3 rankings"),
        ({"weights": [1, 1, 0]}, "must connect all items, but item 'b' never comes before"),
        ({"reference": "d"}, "reference must be an item, got 'd'"),
        ({"prior": [0, 1, 2]}, "prior only goes with a ridge above 0"),
        ({"features": [[1.0], [2.0]]}, r"features must have one row for each of the 3 items, got shape \(2, 1\)"),
        ({"features": [1.0, 1.0, 1.0]}, "determine the coefficients of these features too weakly: pass fewer"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        plr.fit_strengths([["a", "b"], ["b", "c"], ["c", "a"]], **options)


@pytest.mark.parametrize(("rankings", "error"), [("abc", "a list of rankings, got str"), (["ab", "ba"], "'ab' at 0")])
def test_what_is_no_list_of_rankings(rankings, error):
    with pytest.raises(TypeError, match=error):
        plr.fit_strengths(rankings)


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
    with pytest.raises(ValueError, match="too weakly: pass a larger ridge"):
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


def test_result():
    """Mutants: the quantile of one tail; the weakest first; the second item's probability."""
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
    described = plr.fit_strengths([["a", "b"], ["b", "a"]], features=[1.0, 2.0], weights=[2, 1])
    assert "(feature 0)" in described.summary()
    with pytest.raises(ValueError, match="level must be positive and below 1"):
        fit.intervals(1.0)
