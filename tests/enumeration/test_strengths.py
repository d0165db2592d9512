"""Strengths fitted to rankings: the maximum of the likelihood summed over all orders, closed forms, refusals."""

import itertools

import numpy as np
import pytest

import plrank_fast as plr


def rankings_of(true, n_rankings, seed, tied):
    """Rankings of three to five of the items, in places that are equal for some of them if ``tied``."""
    rng = np.random.default_rng(seed)
    compared = [rng.permutation(true.size)[: rng.integers(3, 6)] for _ in range(n_rankings)]
    places = [np.argsort(np.argsort(rng.gumbel(size=one.size) - true[one])) // (1 + tied) for one in compared]
    return compared, places


def of_rows(compared, places):
    return np.concatenate(compared), np.concatenate(places), plr.offsets_from_group([one.size for one in compared])


def log_likelihood(strengths, compared, places):
    """Summed over all orders that agree with the places."""
    total = 0.0
    for items, place in zip(compared, places, strict=True):
        agree = [
            order for order in itertools.permutations(range(items.size)) if (np.diff(place[list(order)]) >= 0).all()
        ]
        total += np.log(np.exp(plr.ranking_log_prob(strengths[items], agree)).sum())
    return total


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("tied", [0, 1])
def test_maximum_of_the_likelihood(tied, ridge):
    """Gradient and Hessian by differences of enumerated likelihoods.

    Mutants: places in descending order; the ridge left out of gradient or information; information of the item in the
    place before; a step taken without the last correction; a variance of the mean that depends on the ridge.
    """
    compared, places = rankings_of(np.linspace(-1.0, 1.0, 6), 15, 2, tied)
    fit = plr.fit_strengths(*of_rows(compared, places), ridge=ridge)
    assert abs(fit.strengths.sum()) < 1e-9

    def objective(change):
        strengths = fit.strengths + change
        return log_likelihood(strengths, compared, places) - 0.5 * ridge * strengths @ strengths

    steps = 1e-3 * np.eye(6)
    gradient = [(objective(step) - objective(-step)) / 2e-3 for step in steps]
    assert np.abs(gradient).max() < 2e-6
    hessian = np.array([
        [(objective(a + b) - objective(a - b) - objective(b - a) + objective(-a - b)) / 4e-6 for a in steps]
        for b in steps
    ])  # fmt: skip
    centre = np.eye(6) - 1 / 6
    np.testing.assert_allclose(fit.covariance @ -hessian @ centre, centre, atol=1e-4)
    np.testing.assert_allclose(fit.covariance.sum(axis=0), 0.0, atol=1e-7)
    np.testing.assert_allclose(fit.standard_errors**2, np.diag(fit.covariance))


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
    monkeypatch.setattr("plrank_fast.strengths.MOST_STEPS", 9)
    with pytest.raises(ValueError, match="the rankings determine the strengths too weakly: pass a ridge"):
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
        (([0, 1, 1], [0, 1, 2], [0, 3]), "items must be distinct within a ranking, got 1 at index 2"),
        (([0, -1], [0, 1], [0, 2]), "items must be at least 0, got -1"),
        (([0.5, 1.0], [0, 1], [0, 2]), "items must hold integers"),
        (([0, 1], [0, 1, 2], [0, 2]), "buckets must have one entry for each of the 2 items"),
        (([0, 1], [0.5, 1], [0, 2]), "buckets must be whole numbers"),
        (([0, 1], [0, 1], [0, 1]), "offsets must start with 0 and end with"),
        (([], [], [0]), "the number of items must be at least 1"),
    ],
)
def test_bad_arguments_are_named(data, message):
    with pytest.raises(ValueError, match=message):
        plr.fit_strengths(*data)
