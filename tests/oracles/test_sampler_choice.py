"""Costs decide how rankings are drawn, not which: shortcuts for a single ranking, against the long way."""

import itertools

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast._core.sampling import samplers
from plrank_fast._core.sampling.samplers import SamplerKind

SPREADS = (0.0, 1.0, 3.0, 30.0, 1000.0)


def scores_of(n_items, spread):
    return np.random.default_rng([n_items, int(spread)]).standard_normal(n_items) * spread


@pytest.mark.chosen_path
def test_the_spread_of_weights_is_asked_for_where_it_decides():
    """The rule comes to the same end as if it always knew.

    Mutants: the threshold left out of what may be fastest; a draw from a table taken to cost ten times as much; the
    spread not asked for where a sampler is named.
    """
    seen = set()
    lists = {pair: scores_of(*pair) for pair in itertools.product((1, 2, 8, 24, 120, 316, 1000, 4097, 9000), SPREADS)}
    for (n_items, spread), cutoff, n_samples, kind in itertools.product(
        lists, (1, 5, 10, 50, 100, 1000), (1, 2, 3, 8, 16, 100, 1000), SamplerKind
    ):
        scores = lists[n_items, spread]
        chosen, asked = samplers.choice(kind, scores, n_samples, cutoff)
        assert chosen == samplers.choice(kind, scores, n_samples, cutoff, asked=True)[0]
        seen.add((chosen, asked))
    assert {chosen for chosen, asked in seen} == set(SamplerKind) - {SamplerKind.AUTO}


@pytest.mark.chosen_path
def test_a_single_ranking_asks_for_nothing():
    """Mutant: always asked."""
    for n_items in (8, 24, 120, 316, 1000, 4000):
        assert not samplers.choice(SamplerKind.AUTO, scores_of(n_items, 1.0), 1, 10)[1]


@pytest.mark.parametrize("order", ["as drawn", "ascending", "descending", "every 32nd last"])
@pytest.mark.parametrize(("n_items", "cutoff"), [(65, 1), (65, 30), (120, 10), (120, 100), (1000, 1), (1000, 100)])
def test_a_single_ranking_is_the_first_of_many(n_items, cutoff, order):
    """A few keys say which items may be early; sixteen rankings and more look for the early ones in another way.

    Mutant: no second look where too few items were early.
    """
    scores = np.sort(scores_of(n_items, 2.0)) if order != "as drawn" else scores_of(n_items, 2.0)
    scores = scores[::-1].copy() if order == "descending" else scores
    if order == "every 32nd last":  # the sample sees items that come last
        scores[[(i * n_items) >> 5 for i in range(32)]] = scores.min() - 5.0
    for seed in range(100):
        draw = {"cutoff": cutoff, "rng": seed, "sampler": "introselect"}
        alone, many = (plr.sample_rankings(scores, n, **draw) for n in (1, 16))
        np.testing.assert_array_equal(alone[0], many[0])
