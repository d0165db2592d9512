"""The guide table: what a word draws, against the cumulative weight in extended precision."""

import numpy as np
import pytest
from scipy import stats

import plrank_fast as plr
from plrank_fast._core.sampling import samplers

BLOCK = 8
ALPHA = 1e-6


def scores_of(kind, n_items):
    rng = np.random.default_rng(n_items)
    if kind == "one heavy item":  # all others together have 2^-30 of the line
        return np.where(np.arange(n_items) == n_items // 2, 0.0, -np.log(n_items * 2.0**30))
    if kind == "heavy blocks":  # long runs of blocks end between two entries of the guide
        return np.where(np.arange(n_items) // BLOCK % 100 == 3, 0.0, -20.0)
    return rng.normal(size=n_items) * kind


@pytest.mark.parametrize("kind", [0.0, 1.0, 3.0, 20.0, 60.0, "one heavy item", "heavy blocks"])
@pytest.mark.parametrize("n_items", [1, 7, 8, 9, 255, 256, 257, 4097, 5000, 40_000, 100_000])
def test_words_draw_what_lies_at_their_points(n_items, kind):
    """Random words, and words beside the ends of items; threads fill ranges of 32,768 items.

    Mutants: the last item of a block left out; one block searched and no more; a guide that starts one block late, or
    is rounded down; the last item ends at 0. Of ranges: one that starts at 0 on the line; a guide that starts a range
    with no blocks, or sets the first point of the next one.
    """
    scores = scores_of(kind, n_items)
    ends = np.cumsum(np.exp(scores - scores.max()).astype(np.longdouble))
    ends *= np.longdouble(2) ** 64 / ends[-1]
    rng = np.random.default_rng(1)
    near = np.minimum(rng.choice(ends, 50_000), np.longdouble(2**64 - 2**21)).astype(np.uint64)
    near += rng.integers(0, 2**20, near.size, dtype=np.uint64)
    corners = np.array([0, 2**64 - 1, 2**63, 2**63 - 1], dtype=np.uint64)
    words = np.concatenate([rng.integers(0, 2**64, 50_000, dtype=np.uint64), near, corners])
    items = samplers.items_of_words(scores, words)
    np.testing.assert_array_equal(samplers.items_of_words(scores, words, 3), items)
    assert items.min() >= 0
    assert items.max() < n_items
    rounding = 2.0**11 * (n_items + 16)  # of the total, a sum of doubles
    assert (ends[items] >= words - rounding).all()
    assert (np.where(items > 0, ends[items - 1], 0.0) <= words + rounding).all()


def test_draws_beyond_the_first():
    """Nine draws in ten repeat the first rank: some rankings need more than all have. Mutants: what has been
    placed forgotten; words of another ranking."""
    n_docs = 5000
    scores = np.where(np.arange(n_docs) % 2 == 0, 0.0, 1.0)
    weights = np.exp(scores)
    weights[77] = 9.0 * (weights.sum() - weights[77])
    rankings = plr.sample_rankings(np.log(weights), 200_000, 2, rng=11, sampler="guide_table")
    assert (rankings[:, 0] != rankings[:, 1]).all()
    second = rankings[rankings[:, 0] == 77, 1]
    weights[77] = 0.0
    heavy = int((second % 2 == 1).sum())
    assert stats.binomtest(heavy, second.size, weights[1::2].sum() / weights.sum()).pvalue > ALPHA
    quarters = np.bincount(second // 1250, minlength=4)
    assert stats.chisquare(quarters, second.size * weights.reshape(4, -1).sum(axis=1) / weights.sum()).pvalue > ALPHA


@pytest.mark.parametrize("spread", [1.0, 4.0])
def test_rankings_do_not_depend_on_those_after_them(spread):
    """Nor do they on how many there are. Mutant: further draws from the stream of all."""
    scores = np.random.default_rng(3).normal(size=5000) * spread
    all_of_them = plr.sample_rankings(scores, 300, 20, rng=5, sampler="guide_table")
    for n in (1, 7, 16, 17, 130):
        np.testing.assert_array_equal(plr.sample_rankings(scores, n, 20, rng=5, sampler="guide_table"), all_of_them[:n])
