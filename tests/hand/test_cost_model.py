"""The cost model: it reproduces its table, grows with the work, and chooses by total cost."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from plrank_fast._core.sampling import samplers
from plrank_fast._methods import cost_model
from plrank_fast._methods.cost_model import choose_method, nanoseconds


@pytest.fixture
def sampler_costs(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "asv_benchmarks")
    costs = importlib.import_module("sampler_costs")
    monkeypatch.setattr(costs, "LENGTHS", (24, 120, 1000, 3000))
    monkeypatch.setattr(costs, "NUMBERS", (1, 3, 40))
    return costs


@pytest.mark.parametrize("method", cost_model.NANOSECONDS)
def test_interpolation(method):
    """Mutants: columns and rows swapped; the cost per document not multiplied by the documents."""
    table = cost_model.NANOSECONDS[method]
    for i, length in enumerate(cost_model.LENGTHS):
        for j, cutoff in enumerate(cost_model.CUTOFFS):
            got = nanoseconds(method, np.array([float(length)]), cutoff)
            assert got[0] == pytest.approx(table[i][j] * length)
    between = nanoseconds(method, np.array([60.0]), 17)[0] / 60
    around = [table[i][j] for i in (1, 2) for j in (2, 3)]
    assert min(around) <= between <= max(around)
    beyond = nanoseconds(method, np.array([0.0, 1.0, 1e6]), 1000)
    assert np.isfinite(beyond).all()
    assert beyond[0] == 0.0


@pytest.mark.chosen_path
def test_choice():
    """Short cutoffs: exact, in a batch as for a single query of it. Mutants: the two methods swapped; the choice kept
    for the length alone, whatever the cutoff."""
    for length, n_queries, cutoff, method in (
        (20, 50, 5, "exact"), (100, 100, 10, "exact"), (300, 10, 100, "cmc"), (24, 10, 10, "exact"),
        (24, 10, 25, "exact"),  # ranks to the last
        (120, 10, 50, "cmc"), (316, 2, 10, "exact"), (316, 1, 10, "exact"), (316, 1, 100, "cmc"), (316, 1, 10, "exact"),
    ):  # fmt: skip
        assert choose_method(length * np.arange(n_queries + 1), cutoff) == method
    assert choose_method([0], 10) == "exact"


def test_rates_of_samplers(sampler_costs):
    """Costs made of known rates give these rates back, whatever each level is slower by; a choice by them misses none.

    Mutants: errors that are not relative; levels of equal weight; terms of another sampler; a rate below 0 kept."""
    rates = np.random.default_rng(0).uniform(0.5, 20.0, (6, 5))
    slower = (4.0, 2.0, 1.0)
    levels = []
    for factor in slower:
        level = []
        for scores, cutoff, number in sampler_costs.problems():
            terms, serves = sampler_costs.terms_of(scores, cutoff, number)
            costs = (rates * terms).sum(axis=1)
            level.append({n: factor * c for n, c, s in zip(sampler_costs.NAMES, costs, serves, strict=True) if s})
        levels.append(level)
    found = sampler_costs.fit_all(levels)
    unused = found == 0.0  # columns of samplers with fewer terms
    mean = np.exp(np.average(np.log(slower), weights=[1.0, 3.0, 3.0]))
    np.testing.assert_allclose(found[~unused], mean * rates[~unused], rtol=1e-6)
    assert unused.sum() == 4
    assert sampler_costs.missed(found, levels[0]).max() == pytest.approx(1.0)
    assert (sampler_costs.fit([([1.0, 1.0], 1.0), ([1.0, 2.0], 0.9), ([1.0, 4.0], 0.7)]) >= 0.0).all()


def test_the_spread_of_a_peaked_list_is_not_asked_for():
    """A table does not pay where five of 120 documents are drawn again and again.

    Mutants: as many effective items as there are; weights that are not squared in their number."""
    for highest, asks in [([], True), ([3.0], True), ([6.0] * 5, False)]:
        scores = np.append(highest, np.zeros(120 - len(highest)))
        assert samplers.terms_of_costs(scores, 10, 1)[1][0] == asks
