"""The accelerated samplers against exact probabilities, where each of them really runs, and against one another."""

import itertools

import numpy as np
import pytest
from scipy import stats

import plrank_fast as plr
from plrank_fast import reference
from plrank_fast._core.ranking import weights as _weights
from plrank_fast._core.sampling.samplers import SAMPLER_NAMES
from test_sampling import ALPHA, g_test, marginals_fit, prefix_test

IN_GROUPS = ["network", "slot_table", "threshold", "guide_table"]


@pytest.mark.parametrize("spread", [0.0, 1.0, 4.0])
def test_prefixes_where_the_threshold_is_in_use(spread):
    """Mutants: every other item's deadline half as long; rankings with too few candidates not drawn again."""
    scores = spread * np.linspace(-1.0, 1.0, 24)
    rankings = plr.sample_rankings(scores, 2_000_000, 2, rng=6, sampler="threshold")
    assert prefix_test(scores, rankings) > ALPHA


@pytest.mark.parametrize("sampler", IN_GROUPS)
def test_marginals_of_a_thousand(sampler):
    """Four classes of weight, within which no item is preferred. Mutant: cuts too late."""
    sizes, cutoff = np.array([10, 90, 400, 500]), 20
    scores = np.repeat([3.0, 1.5, 0.0, -2.0], sizes)
    exact = sizes[:, np.newaxis] * plr.rank_probabilities(scores, cutoff)[np.cumsum(sizes) - 1]
    rankings = plr.sample_rankings(scores, 200_000, cutoff, rng=8, sampler=sampler)
    for rank, items in enumerate(rankings.T):
        assert g_test(np.bincount(np.repeat(np.arange(4), sizes)[items], minlength=4), exact[:, rank]) > ALPHA
    for counts in np.split(np.bincount(rankings.ravel(), minlength=1000), np.cumsum(sizes)[:-1]):
        assert stats.chisquare(counts).pvalue > ALPHA


SHARED = np.where(np.arange(600) % 3 == 0, 0.0, -6.0)
SHARED[300:450] = -6.0


@pytest.mark.parametrize(
    ("scores", "n_samples", "cutoff"),
    [(np.random.default_rng(2).normal(size=6000) * 2.0, 400_000, 3), (SHARED, 2_000_000, 2)],
    ids=["guide table", "slots that several items share"],
)
def test_first_two_ranks(scores, n_samples, cutoff):
    """In the second list, two in three items have less than a slot to themselves, in runs of every length.

    Mutants: a guide that starts one block late; undecided draws all given to the first item of their slot."""
    rankings = plr.sample_rankings(scores, n_samples, cutoff, rng=9, sampler="slot_table")
    probabilities = np.exp(scores) / np.exp(scores).sum()
    odds = probabilities / (1 - probabilities)
    for rank, expected in enumerate((probabilities, probabilities * (odds.sum() - odds))):
        assert g_test(np.bincount(rankings[:, rank], minlength=scores.size), expected) > ALPHA
    assert (np.diff(np.sort(rankings, axis=1), axis=1) > 0).all()


@pytest.mark.parametrize(("n_docs", "n_samples", "cutoff", "others", "heavier"), [
    (4, 400_000, 2, -6.0, -4.2), (5000, 3000, 3, -60.0, -58.0),
])  # fmt: skip
def test_draws_give_way_to_a_race(n_docs, n_samples, cutoff, others, heavier):
    """One item takes 98 % of draws, or all, so other ranks come from arrival times of the items not placed.

    Mutants: the race starts from rank 1; the race gives all items the same weight."""
    scores = np.full(n_docs, others)
    scores[1], scores[3] = 0.0, heavier
    rankings = plr.sample_rankings(scores, n_samples, cutoff, rng=10, sampler="slot_table")
    rankings = rankings[rankings[:, 0] == 1]
    assert len(rankings) > 0.97 * n_samples
    weights = np.exp(scores - others)
    weights[1] = 0.0
    counts = np.bincount(rankings[:, 1], minlength=n_docs)
    assert counts[1] == 0
    assert stats.binomtest(int(counts[3]), len(rankings), weights[3] / weights.sum()).pvalue > ALPHA
    assert (np.diff(np.sort(rankings, axis=1), axis=1) > 0).all()


@pytest.mark.parametrize("cutoff", [4, 12, 22, 30])
def test_draws_with_repeats(cutoff):
    """Some 5, 15, 40 and 90 draws a ranking: rows compared, gaps of up to many rows closed.

    Mutants: the second row of a pair not compared with the first; the highest digit of a gap forgotten."""
    scores = np.random.default_rng(17).normal(size=44)
    rankings = plr.sample_rankings(scores, 300_000, cutoff, rng=17, sampler="slot_table")
    assert (np.diff(np.sort(rankings, axis=1), axis=1) > 0).all()
    assert marginals_fit(scores, rankings)


@pytest.mark.chosen_path
def test_few_rankings_are_left_to_the_race():
    """A race takes as long as hundreds of draws. Here one ranking in twenty takes more draws than can be compared with
    each other, and still begins the longer one that the same draws make, if it is of a block's first group. Mutant:
    draws compared where there is room for most of them only, which took four times as long."""
    scores = 3.5 * np.random.default_rng(1000).normal(size=1000)
    ranked, longer = (plr.sample_rankings(scores, 1600, cutoff, rng=18, sampler="slot_table") for cutoff in (24, 28))
    of_first_group = np.arange(1600) % 128 < 16
    np.testing.assert_array_equal(longer[of_first_group, :24], ranked[of_first_group])


@pytest.mark.parametrize(
    ("scores", "numbers"),
    [
        *((spread * np.random.default_rng(20).normal(size=300), (1.0, 10.0, 100.0)) for spread in (0.5, 3.0, 6.0)),
        (np.log(np.concatenate([np.linspace(0.5, 1.0, 10), np.full(300, 2.0**-63.5)])), (5.0,)),
    ],
)
def test_expected_arrivals(scores, numbers):
    """Octaves of the weights tell how many clocks have rung, within 5 %. Weights below 2^-63 of the heaviest stand in
    the last octave of 64, the first that has no place included.

    Mutants: every other item's count forgotten; that octave beyond the table, where half of its items become heavy."""
    weights = np.exp(scores - scores.max())
    for wanted in numbers:
        time, rate = _weights.arrival(scores, wanted)
        waiting = np.exp(-weights * time)
        assert abs((1 - waiting).sum() / wanted - 1) < 0.05
        assert abs((weights * waiting).sum() / rate - 1) < 0.1


@pytest.mark.chosen_path
@pytest.mark.parametrize(("sampler", "n_docs", "cutoff", "n_samples", "spread"), [
    ("introselect", 24, 10, 1, 1.0), ("introselect", 120, 10, 1, 1.0), ("introselect", 120, 50, 1, 1.0),
    ("introselect", 120, 100, 2, 1.0), ("introselect", 60, 30, 2, 1.0), ("guide_table", 316, 10, 1, 1.0),
    ("network", 24, 10, 100, 1.0), ("network", 120, 100, 100, 1.0), ("network", 1000, 900, 64, 1.0),
    ("slot_table", 120, 5, 100, 5.0), ("slot_table", 1000, 10, 100, 1.0), ("slot_table", 120, 10, 8, 1.0),
    ("guide_table", 1000, 10, 3, 1.0), ("guide_table", 3000, 10, 64, 1.0), ("guide_table", 20_000, 10, 100, 1.0),
    ("threshold", 1000, 100, 100, 3.0), ("threshold", 3000, 400, 32, 3.0),
])  # fmt: skip
def test_auto_draws_with_the_fastest(sampler, n_docs, cutoff, n_samples, spread):
    """The sampler takes 0.14 to 0.8 of the time of the next one here.

    Mutants: infinite costs of each sampler; the cost of a full group for a single ranking forgotten.
    """
    scores = spread * np.random.default_rng(0).normal(size=n_docs)
    chosen = plr.sample_rankings(scores, n_samples, cutoff, rng=1)
    by_name = {name: plr.sample_rankings(scores, n_samples, cutoff, rng=1, sampler=name) for name in SAMPLER_NAMES[1:]}
    same = [name for name in by_name if np.array_equal(by_name[name], chosen)]
    if n_docs > 4096:  # then "slot_table" is "guide_table"
        same.remove("slot_table")
    if sampler == "introselect":  # which replaces others
        same = same[:1]
    assert same == [sampler]


def test_a_sampler_that_auto_chooses_draws_the_same_by_name():
    """For any list, cutoff and number of rankings, with and without an estimator that asks for the spread itself.

    Mutants: the spread that an estimator knows changes the choice; a table whose number of rows is not set."""
    rng = np.random.default_rng(4)
    for n_docs, cutoff, n_samples in itertools.product((5, 30, 200, 1500), (1, 7, 60), (1, 2, 5, 40)):
        for spread in (1.0, 5.0, 80.0):
            scores = spread * rng.normal(size=n_docs)
            chosen = plr.sample_rankings(scores, n_samples, cutoff, rng=1)
            drawn = [plr.sample_rankings(scores, n_samples, cutoff, rng=1, sampler=name) for name in SAMPLER_NAMES[1:]]
            assert any(np.array_equal(each, chosen) for each in drawn)
            problem = scores, rng.random(n_docs), plr.dcg_weights(cutoff)
            given = plr.pl_rank_3(*problem, rankings=chosen)
            np.testing.assert_allclose(plr.pl_rank_3(*problem, n_samples=n_samples, rng=1), given, rtol=0, atol=1e-13)


@pytest.mark.parametrize("sampler", ["introselect", *IN_GROUPS])
@pytest.mark.parametrize(("n_docs", "cutoff"), [(7, 7), (100, 3), (100, 100), (333, 333), (700, 5)])
def test_no_preference_among_equals(n_docs, cutoff, sampler):
    """Mutant: near ties in the order of slots."""
    rankings = plr.sample_rankings(np.zeros(n_docs), 30_000, cutoff, rng=11, sampler=sampler)
    for rank in (0, cutoff - 1):
        assert stats.chisquare(np.bincount(rankings[:, rank], minlength=n_docs)).pvalue > ALPHA
    assert (np.sort(rankings, axis=1)[:, 1:] > np.sort(rankings, axis=1)[:, :-1]).all()


@pytest.mark.parametrize("sampler", ["slot_table", "threshold"])
def test_no_preference_for_a_part_of_a_million(sampler):
    """Candidates are numbered in chunks of 2^15 items.

    Mutants: the number of a chunk in the random bits of its candidates, which made some chunks five times as likely;
    chunks whose candidates all count as the first one's; a last chunk left out."""
    rankings = plr.sample_rankings(np.zeros(1_000_000), 400, 50, rng=19, sampler=sampler)
    parts = np.diff(np.minimum(np.arange(32) * 2**15, 1_000_000))
    counts = np.bincount(rankings.ravel() >> 15, minlength=parts.size)
    assert stats.chisquare(counts, counts.sum() * parts / 1_000_000).pvalue > ALPHA


@pytest.mark.parametrize("sampler", ["introselect", *IN_GROUPS])
def test_first_samples_do_not_depend_on_their_number(sampler):
    """Mutant: streams keyed by it."""
    scores = np.random.default_rng(3).normal(size=90)
    many = plr.sample_rankings(scores, 300, 9, rng=12, sampler=sampler)
    for n_samples in (1, 7, 16, 17, 130, 299):
        few = plr.sample_rankings(scores, n_samples, 9, rng=12, sampler=sampler)
        np.testing.assert_array_equal(few, many[:n_samples])


def test_full_rankings_of_a_thousand():
    """Every item once, a far heavier one first and a far lighter one last. Mutants: a merge that loses its last row; a
    network of 24 rows for 25 items."""
    for n_docs in (1, 2, 8, 9, 15, 16, 17, 24, 25, 31, 32, 33, 127, 128, 129, 500, 1024):
        scores = np.linspace(-2.0, 2.0, n_docs)
        scores[-1] += 30.0
        scores[0] -= 30.0 * (n_docs > 1)
        for cutoff in {n_docs, (n_docs + 1) // 2, min(n_docs, 5)}:
            rankings = plr.sample_rankings(scores, 40, cutoff, rng=15, sampler="network")
            assert (rankings[:, 0] == n_docs - 1).all()
            if cutoff == n_docs:
                np.testing.assert_array_equal(np.sort(rankings, axis=1), np.tile(np.arange(n_docs), (40, 1)))
                assert (rankings[:, -1] == 0).all()


def test_first_ranks_do_not_depend_on_the_cutoff():
    """With 15 bits of a clock in the keys of 1000 items, some forty of these rankings have the last rank and the one
    behind so near that only exact clocks tell. Mutant: the rank behind the cutoff not compared with the last."""
    scores = np.zeros(1000)
    short = plr.sample_rankings(scores, 30_000, 20, rng=17, sampler="network")
    whole = plr.sample_rankings(scores, 30_000, 100, rng=17, sampler="network")
    np.testing.assert_array_equal(short, whole[:, :20])


@pytest.mark.parametrize("sampler", ["auto", *IN_GROUPS])
def test_wide_spreads(sampler):
    """From weights that a float32 holds to ones that no double does, in one list; about the limits of both key formats.

    Mutant: clocks scaled four octaves too high for their keys."""
    for spread in (10.0, 28.0, 29.0, 43.0, 71.9, 72.1, 78.0, 80.0, 500.0, 700.0, 1e6):
        scores = np.linspace(0.0, spread, 40)
        rankings = plr.sample_rankings(scores, 300, 12, rng=16, sampler=sampler)
        if spread / 39 > 20:
            np.testing.assert_array_equal(rankings, np.tile(np.arange(39, 27, -1), (300, 1)))
        exact = np.exp(scores[-1] - np.logaddexp.reduce(scores))
        assert stats.binomtest(int((rankings[:, 0] == 39).sum()), 300, min(exact, 1.0)).pvalue > ALPHA


def test_reference_agrees():
    """The reference implementation has the same marginals."""
    scores = np.array([1.0, 0.0, -1.0, 0.5, 2.0])
    rankings = reference.sample_rankings(scores, 200_000, 5, np.random.default_rng(0))
    assert prefix_test(scores, rankings) > ALPHA
