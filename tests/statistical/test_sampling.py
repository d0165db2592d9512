"""Rankings are Plackett-Luce: against the probabilities of all rankings, against marginals, at extreme gaps."""

import itertools

import numpy as np
import pytest
from scipy import stats

import plrank_fast as plr
from plrank_fast._core.sampling.samplers import SAMPLER_NAMES
from plrank_fast.chunks import query_streams
from trapezoid_reference import rank_probabilities

ALPHA = 1e-9  # false positives per test; seeds are fixed, so a test that passes once always does
SAMPLERS = [name for name in SAMPLER_NAMES if name != "auto"]


def g_test(counts, probabilities):
    """p-value of the log-likelihood ratio test, cells with fewer than 10 expected counts pooled."""
    expected = counts.sum() * probabilities
    small = expected < 10
    if small.any():
        counts = np.append(counts[~small], counts[small].sum())
        expected = np.append(expected[~small], expected[small].sum())
    seen = counts > 0
    statistic = 2 * (counts[seen] * np.log(counts[seen] / expected[seen])).sum()
    return stats.chi2.sf(statistic, counts.size - 1)


def prefix_test(scores, rankings, chances=None):
    """p-value of all prefixes of the given length, of these chances."""
    n_docs, length = scores.size, rankings.shape[1]
    prefixes = np.array(list(itertools.permutations(range(n_docs), length)))
    powers = n_docs ** np.arange(length)
    counts = np.bincount(rankings @ powers, minlength=n_docs**length)[prefixes @ powers]
    assert counts.sum() == len(rankings)
    return g_test(counts, np.exp(plr.ranking_log_prob(scores, prefixes)) if chances is None else chances(prefixes))


WEIGHTS = {
    "equal": np.zeros(4),
    "spread": np.array([0.3, -1.2, 2.0, 0.0]),
    "a gap of 10": np.array([0.0, 10.0, 10.5, -0.5]),
    "a gap of 700": np.array([0.0, 700.0, 701.0, 0.7]),
    "a gap of 1e308": np.array([-1e308, 1e308, 1e308, -1e308]),
}
# chances of rankings: either of the high ones first, then either of the low ones
LIMITS = {"a gap of 1e308": lambda every: 0.25 * np.isin(every[:, :2], [1, 2]).all(axis=1)}


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("name", WEIGHTS)
def test_all_24_rankings(name, sampler):
    """G-test, 2e6 draws. Mutants: Exp(1) * w for Exp(1) / w; two ranks swapped in 1 % of the samples; a tie broken
    towards the lower index (clocks rounded to 8 bits)."""  # fmt: skip
    rankings = plr.sample_rankings(WEIGHTS[name], 2_000_000, rng=11, sampler=sampler)
    assert prefix_test(WEIGHTS[name], rankings, LIMITS.get(name)) > ALPHA


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_prefixes_of_five(sampler):
    """Every cutoff draws the prefixes of its own distribution. Mutant: a sort of K - 1 instead of K."""
    scores = np.array([1.0, 0.2, -0.4, 2.0, 0.0])
    for cutoff in (1, 2, 3, 5):
        rankings = plr.sample_rankings(scores, 300_000, cutoff, rng=cutoff, sampler=sampler)
        assert prefix_test(scores, rankings) > ALPHA


def marginals_fit(scores, rankings):
    """Whether items have each rank as often as they should, within 7 standard errors in every cell."""
    n, cutoff = rankings.shape
    exact = rank_probabilities(scores, cutoff)
    counts = np.stack([np.bincount(ranks, minlength=scores.size) for ranks in rankings.T], axis=1)
    return (np.abs(counts - n * exact) < 7 * np.sqrt(n * exact * (1 - exact) + 1e-6 * n + 1)).all()


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_marginals_of_fifty(sampler, spread):
    """Rank-by-item counts within 7 standard errors in all 500 cells (false positives below 1.3e-9).

    Mutants: the last item never placed; 1 % of the samples with ranks 1 and 2 swapped.
    """
    scores = spread * np.random.default_rng(4).normal(size=50)
    assert marginals_fit(scores, plr.sample_rankings(scores, 400_000, 10, rng=5, sampler=sampler))


def test_million_items_with_a_dominant_one():
    """Mutant: a first pivot that leaves fewer than K survivors and is not noticed."""
    scores = np.zeros(1_000_000)
    scores[123_456] = 100.0
    rankings = plr.sample_rankings(scores, 20, 50, rng=1)
    assert (rankings[:, 0] == 123_456).all()
    assert all(len(set(ranking)) == 50 for ranking in rankings.tolist())
    others = rankings[:, 1:].ravel()
    assert stats.kstest(others / 1e6, "uniform").pvalue > ALPHA


def test_shapes_of_a_single_query():
    assert plr.sample_rankings(np.zeros(5), 7).shape == (7, 5)
    assert plr.sample_rankings(np.zeros(5), 7, 3).shape == (7, 3)
    assert plr.sample_rankings(np.zeros(5), 7, 9).shape == (7, 5)
    assert plr.sample_rankings(np.zeros(5), 7, 0).shape == (7, 0)
    assert plr.sample_rankings([], 7, 3).shape == (7, 0)
    assert plr.sample_rankings(np.zeros(5), 7).dtype == np.int32


class TestWeightsOfZero:
    """Documents with the score -inf are never drawn, and their query ends before them.

    Mutants: numbers among the documents left over, not among all; the padding taken for the last document; -inf taken
    for a very low score; streams numbered by what is left of the batch."""

    @pytest.mark.parametrize("sampler", SAMPLERS)
    def test_as_if_they_were_not_there(self, sampler):
        rng = np.random.default_rng(0)
        offsets = np.array([0, 5, 5, 8, 40, 41, 60])
        scores = rng.normal(size=60)
        scores[rng.uniform(size=60) < 0.4] = -np.inf
        scores[5:8] = -np.inf  # nothing to draw from
        scores[40] = 0.0
        whole = plr.sample_rankings(scores, 30, 12, offsets=offsets, rng=4, sampler=sampler)
        for q, (start, stop) in enumerate(itertools.pairwise(offsets)):
            possible = np.flatnonzero(scores[start:stop] > -np.inf)
            left = plr.sample_rankings(
                scores[start:stop][possible],
                30,
                12,
                offsets=[0, possible.size],
                rng=query_streams(4, q),
                sampler=sampler,
            )[0]
            np.testing.assert_array_equal(whole[q, :, : left.shape[1]], possible[left])
            assert (whole[q, :, left.shape[1] :] == -1).all()

    def test_shapes(self):
        """There are as many ranks as documents to draw, as with a cutoff past their number."""
        zero = -np.inf
        assert np.sort(plr.sample_rankings([zero, 1.0, zero, 0.0], 3, rng=0)).tolist() == [[1, 3]] * 3
        assert plr.sample_rankings([zero, 1.0, zero, 0.0], 3, 1).shape == (3, 1)
        assert plr.sample_rankings([zero, zero], 3).shape == (3, 0)
        assert plr.sample_rankings([zero, zero, 1.0], 3, offsets=[0, 2, 3]).tolist() == [[[-1]] * 3, [[0]] * 3]

    def test_other_functions_say_what_to_do(self):
        for function in (plr.pl_rank_3, plr.pl_rank_exact, plr.expected_metric):
            with pytest.raises(ValueError, match="got -inf at index 0: leave out documents of weight 0, in a loss"):
                function([-np.inf, 0.0], [1.0, 0.0], [1.0])
