"""The Latin hypercube: every ranking for itself is Plackett-Luce, together they cover the distribution evenly."""

import numpy as np
import pytest
from scipy import stats

import plrank_fast as plr
from plrank_fast import reference
from plrank_fast._core.sampling import latin_hypercube as _latin_hypercube

KEY = np.array([3, 4], dtype=np.uint64)


def draw(scores, relevance, offsets, n_samples, cutoff, n_threads=1, first_query=0):
    rankings = np.full((len(offsets) - 1, n_samples, cutoff), -1, dtype=np.int32)
    arrays = (np.asarray(scores, float), np.asarray(relevance, float), np.asarray(offsets, np.int64))
    _latin_hypercube.sample_rankings(*arrays, n_samples, cutoff, KEY, first_query, n_threads, rankings)
    return rankings


@pytest.mark.parametrize("index", [0, 3])
def test_each_ranking_is_plackett_luce(index):
    """G-test over all 24 rankings, 2e5 queries, alpha 1e-9. Mutants: the same stratum for every rank (streams not keyed
    by the rank); an item not taken out; strata in rising order."""  # fmt: skip
    n_queries, scores = 200_000, np.array([0.3, -1.2, 2.0, 0.0])
    rankings = draw(np.tile(scores, n_queries), np.tile([1, 0, 0, 3], n_queries), np.arange(n_queries + 1) * 4, 4, 4)
    every = reference.all_rankings(4)
    numbers = every @ 4 ** np.arange(4)
    counts = np.bincount(rankings[:, index] @ 4 ** np.arange(4), minlength=256)
    assert counts.sum() == counts[numbers].sum()
    expected = n_queries * np.exp(plr.ranking_log_prob(scores, every))
    statistic = 2 * np.sum(counts[numbers] * np.log(np.maximum(counts[numbers], 1) / expected))
    assert stats.chi2.sf(statistic, 23) > 1e-9


def test_first_places_are_stratified():
    """With equal scores and N = D every item comes first exactly once. Mutant: independent numbers."""
    rankings = draw(np.zeros(32), np.arange(32), [0, 32], 32, 5)[0]
    assert sorted(rankings[:, 0]) == list(range(32))
    assert all(len(set(ranking)) == 5 for ranking in rankings.tolist())


@pytest.mark.parametrize("n_grades", [3, 24])
def test_first_places_by_relevance(n_grades):
    """Items stand in order of relevance: however many of the least relevant ones are taken together, they come first as
    often as they should to within one ranking.

    Mutants: the neighbours that differ in relevance put in order of scores in place of those that do not; all of them
    in order of scores."""
    rng = np.random.default_rng(3)
    scores, relevance = rng.normal(size=24), rng.permutation(np.arange(24) % n_grades)
    probabilities = np.exp(scores) / np.exp(scores).sum()
    first = draw(scores, relevance, [0, 24], 64, 3)[0][:, 0]
    for grade in range(n_grades):
        share = 64 * probabilities[relevance <= grade].sum()
        assert abs((relevance[first] <= grade).sum() - share) < 1 + 1e-9


def test_variance_is_smaller():
    """At N = 16, summed over documents, and the mean stays that of the exact gradient (within 7 standard errors)."""
    rng = np.random.default_rng(0)
    scores, relevance, weights = rng.normal(size=50), plr.gains(rng.integers(0, 5, size=50)), plr.dcg_weights(10)
    exact = plr.pl_rank_exact(scores, relevance, weights, rtol=1e-10)

    def estimates(sampler):
        return np.array([
            plr.pl_rank_cmc(scores, relevance, weights, n_samples=16, rng=seed, sampler=sampler) for seed in range(300)
        ])  # fmt: skip

    spread, independent = estimates("latin_hypercube"), estimates("auto")
    assert independent.var(axis=0).sum() > 1.3 * spread.var(axis=0).sum()
    z = (spread.mean(axis=0) - exact) / (spread.std(axis=0, ddof=1) / np.sqrt(300))
    assert np.abs(z).max() < 7


def test_ragged_batches_and_threads(on_team):
    """Bit for bit; padding; a query whose weights span more than a double falls back to independent rankings."""
    rng = np.random.default_rng(1)
    offsets = np.array([0, 0, 5, 6, 40, 40, 90])
    scores, relevance = rng.normal(size=(2, 90))
    whole = draw(scores, relevance, offsets, 8, 6)
    np.testing.assert_array_equal(whole, on_team(2, draw, scores, relevance, offsets, 8, 6))
    for q in range(6):
        part = slice(offsets[q], offsets[q + 1])
        length = offsets[q + 1] - offsets[q]
        alone = draw(scores[part], relevance[part], [0, length], 8, 6, first_query=q)[0]
        np.testing.assert_array_equal(whole[q], alone)
        assert (whole[q][:, length:] == -1).all()
    scores[10:20] -= 1e6
    options = {"offsets": offsets, "rng": 0, "sampler": "latin_hypercube", "n_samples": 8}
    gradient = plr.pl_rank_cmc(scores, relevance, plr.dcg_weights(6), **options)
    assert np.isfinite(gradient).all()
    again = plr.pl_rank_cmc(scores, relevance, plr.dcg_weights(6), n_threads=1, **options)
    np.testing.assert_array_equal(gradient, again)
    assert plr.pl_rank_3([], [], [1.0], sampler="latin_hypercube").shape == (0,)
    assert (plr.pl_rank_cmc([1.0, 2.0], [1.0, 0.0], [], sampler="latin_hypercube") == 0).all()
