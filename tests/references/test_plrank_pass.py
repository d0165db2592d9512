"""PL-Rank-3 over groups of rankings against the estimator that takes one ranking after another."""

import itertools
import math

import numpy as np
import pytest

import plrank_fast as plr
import ranking_reference
from plrank_fast import _estimates, reference
from plrank_fast._core.gradients import pl_rank, pl_rank_groups

SIZES = [(2, 1), (2, 2), (9, 3), (24, 5), (24, 23), (24, 24), (120, 10), (120, 60), (120, 119), (300, 150), (1100, 20)]


def estimate(estimator, scores, relevance, rank_weights, n_samples, sampler="auto", rankings=None):
    return _estimates.sampled(
        estimator, scores, relevance, rank_weights, [0, scores.size], n_samples, rankings, 3, sampler, 1, None
    )


def absolute_terms(scores, relevance, rank_weights, rankings):
    """Mean over the rankings of the sum of absolute terms of each item."""
    rank_weights = np.abs(rank_weights[: rankings.shape[1]])
    relevance = np.abs(relevance)
    weights = np.exp(scores - scores.max())
    reward = reference.reward_from(relevance, rank_weights, rankings)
    sums = reference.weight_not_placed(scores, rankings)
    direct = np.cumsum(rank_weights / sums, axis=1)
    risk = np.cumsum(reward[:, :-1] / sums, axis=1)
    terms = weights * (relevance * direct[:, -1:] + risk[:, -1:])
    np.put_along_axis(terms, rankings, reward[:, 1:] + weights[rankings] * (relevance[rankings] * direct + risk), 1)
    return terms.mean(axis=0)


def held_against_plain(scores, relevance, rank_weights, n_samples=1, sampler="auto", rankings=None):
    """The estimate from drawn rankings, or else given ones: as the plain estimator has it, to 1e-12 of the sum of the
    absolute terms. Those that are drawn are given too."""
    problem, results = (scores, relevance, rank_weights), []
    if rankings is None:
        rankings = plr.sample_rankings(scores, n_samples, rank_weights.size, rng=3, sampler=sampler)
        results = [estimate(pl_rank_groups.PL_RANK_3, *problem, n_samples, sampler)]
    n_samples = len(rankings)
    results.append(estimate(pl_rank_groups.PL_RANK_3, *problem, n_samples, rankings=rankings))
    plain = estimate(pl_rank.PLAIN_PL_RANK_3, *problem, n_samples, rankings=rankings)
    bound = 1e-12 * absolute_terms(*problem, rankings)
    assert all((np.abs(result - plain) <= bound).all() for result in results)
    return results[0]


def held_in_batches(scores, relevance, rank_weights, n_samples):
    """`held_against_plain`; a longer list beside it, summed in another way in the same memory, changes no bit."""
    n_docs, longer, options = scores.size, 4500, {"n_samples": n_samples, "rng": 3}
    plr.pl_rank_3(-scores, relevance + 1e6, rank_weights, offsets=[0, n_docs], **options)  # leaves its numbers behind
    alone = held_against_plain(scores, relevance, rank_weights, n_samples)
    for n_threads in (1, 2):
        batch = plr.pl_rank_3(
            np.append(scores, np.zeros(longer)), np.append(relevance, np.ones(longer)), rank_weights,
            offsets=[0, n_docs, n_docs + longer], n_threads=n_threads, **options,
        )  # fmt: skip
        np.testing.assert_array_equal(batch[:n_docs], alone)


@pytest.mark.parametrize("spread", [0.0, 1.0, 3.0, 6.0, 12.0])
@pytest.mark.parametrize(("n_docs", "cutoff"), SIZES)
@pytest.mark.parametrize("kind", ["dcg", "negative", "last rank", "rare relevance"])
def test_as_exact_as_one_by_one(kind, n_docs, cutoff, spread):
    """Mutants: no check of the amplification; unused lanes that are counted; sums flushed twice."""
    rng = np.random.default_rng(n_docs + cutoff)
    scores = spread * rng.normal(size=n_docs)
    relevance = 2.0 ** rng.integers(0, 5, n_docs) - 1.0
    rank_weights = plr.dcg_weights(cutoff)
    if kind == "negative":
        relevance -= 5.0
    if kind == "last rank":
        rank_weights[:-1] = 0.0
    if kind == "rare relevance":
        relevance *= rng.random(n_docs) < 0.1
    for n_samples, sampler in [(100, "auto"), (1000, "network"), (37, "introselect")]:
        held_against_plain(scores, relevance, rank_weights, n_samples, sampler)


@pytest.mark.parametrize("kind", [0.0, 1.0, 3.0, 6.0, "nearly all is placed"])
@pytest.mark.parametrize(
    ("n_docs", "cutoff", "n_samples"),
    [(500, 1, 3), (500, 2, 31), (1100, 8, 17), (5000, 10, 16), (20_000, 10, 129), (9000, 9, 990), (300_000, 10, 40)],
)
def test_few_of_many_items(n_docs, cutoff, n_samples, kind):
    """Batches and threads have the bits of a call alone.

    Mutants: items of the first eight lanes for all sixteen; lanes that are not wanted added too; all minus placed where
    nearly all is placed; the mean not taken; rankings of another lane left out; the plain estimator's sums for unplaced
    items not handed out.
    """
    rng = np.random.default_rng(n_docs + cutoff)
    scores = rng.normal(size=n_docs) * (kind if isinstance(kind, float) else 0.1)
    relevance, rank_weights = 2.0 ** rng.integers(0, 5, n_docs) - 1.0, plr.dcg_weights(cutoff)
    if kind == "nearly all is placed":  # less than a thousandth is left, which all minus placed would make inexact
        scores[rng.permutation(n_docs)[:cutoff]] += np.log(1e4 * n_docs)
    held_in_batches(scores, relevance, rank_weights, n_samples)


@pytest.mark.parametrize("seed", range(20))
def test_few_of_many_items_beside_a_heavy_one(seed):
    """Its difference of sums cancels. Mutant: no check of the amplification."""
    rng = np.random.default_rng(seed)
    scores, relevance = 0.1 * rng.normal(size=500), 2.0 ** rng.integers(0, 5, 500) - 1.0
    scores[7], relevance[7] = np.log(1.5e4 * 500), 0.0
    held_against_plain(scores, relevance, plr.dcg_weights(2), 31)


@pytest.mark.parametrize("spread", [0.0, 0.3, 1.0, 3.0, 8.0, 20.0])
@pytest.mark.parametrize("kind", ["dcg", "rising", "signs"])
@pytest.mark.parametrize("cutoff", [1, 2, 4, 6])
def test_amplification_in_any_ranking(cutoff, kind, spread):
    """The bounds hold for all rankings, and are at most twice what the worst one has; but they are infinite if one may
    leave a thousandth of the weight.

    Mutants: weights of an octave as its lower end, or all of them as one; a rank, or the octaves, left out of the sums;
    the weight left after the last rank not looked at; the sum of signed rank weights; no division by the first.
    """
    rng = np.random.default_rng(cutoff)
    rank_weights = plr.dcg_weights(cutoff) if kind == "dcg" else 0.1 * np.arange(1.0, cutoff + 1.0)
    rank_weights[1::2] *= -1.0 if kind == "signs" else 1.0
    rankings = np.array(list(itertools.permutations(range(7), cutoff)))
    for _ in range(20):
        scores = spread * rng.random(7)
        share = reference.weight_not_placed(scores, rankings) / np.exp(scores - scores.max()).sum()
        left = 1.0 - np.exp(scores)[rankings].sum(axis=1) / np.exp(scores).sum()
        direct = (np.abs(rank_weights) / share).sum(axis=1) / abs(rank_weights[0])
        worst = max((1.0 / share).sum(axis=1).max(), direct.max())
        coarse, fine = pl_rank_groups.amplification(scores, rank_weights)
        assert min(coarse, fine) >= worst * (1.0 - 1e-12)
        assert fine == math.inf or left.min() > 0.99e-3
        assert fine <= 2.0 * worst or left.min() < 0.4
        assert coarse == pytest.approx(worst) or spread > 0.0


@pytest.mark.parametrize("n_samples", [11, 130, 3000])
@pytest.mark.parametrize("left", [0.4, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4, 1e-6])
@pytest.mark.parametrize("unequal", [0.0, 3.0])
def test_worst_rankings_of_a_long_list(unequal, left, n_samples):
    """Rankings place the heavy items first and the only relevant one last, so that rewards do not fall with rank.
    Mutant: groups whatever the weights leave."""
    n_docs, cutoff = 2000, 12
    rng = np.random.default_rng(n_samples)
    scores = np.append(np.linspace(0.0, -unequal, cutoff - 1), np.zeros(n_docs - cutoff + 1))
    scores[cutoff - 1 :] = np.log(left / (1.0 - left) * np.exp(scores[: cutoff - 1]).sum() / (n_docs - cutoff + 1))
    relevance = np.zeros(n_docs)
    relevance[cutoff - 1] = 1.0
    rankings = np.tile(np.arange(cutoff), (n_samples, 1))
    rankings[1::2, : cutoff - 1] = rng.permuted(rankings[1::2, : cutoff - 1], axis=1)
    for rank_weights in (plr.dcg_weights(cutoff), np.linspace(0.05, 1.0, cutoff)):
        held_against_plain(scores, relevance, rank_weights, rankings=rankings)


@pytest.mark.parametrize("n_light", [48, 598])
def test_one_ranking_leaves_next_to_nothing(n_light):
    """All minus placed would have lost four digits of it. Mutant: no direct sum, which is off by 3e-12."""
    scores = np.append([0.0, 0.0], np.full(n_light, np.log(1e-4 / n_light)))
    rankings = np.array(9 * [[0, 7, 9]] + [[0, 1, 5]], dtype=np.int32)
    relevance, rank_weights = np.arange(n_light + 2.0), np.array([0.9, 0.8, 0.7])
    held_against_plain(scores, relevance, rank_weights, rankings=rankings)


def test_a_last_rank_of_little_weight_hides_what_cancelled():
    """The bound holds, as hardly any reward depends on the sum left at the last rank, and 400 documents are too many
    for marks of two ranks. Mutant: a difference that cancelled is used all the same."""
    scores = np.append([0.0, np.log(1e-7)], np.full(398, np.log(1e-11)))
    relevance, rank_weights = np.append([1.0, 1.0], np.full(398, 2.0)), np.array([1.0, 2e-4])
    held_against_plain(scores, relevance, rank_weights, rankings=np.array([[0, 1]]))


@pytest.mark.parametrize("n_samples", [1, 4, 5, 8, 9, 16, 17, 37, 300])
@pytest.mark.parametrize(
    ("n_docs", "cutoff"), [(2, 1), (3, 1), (24, 11), (25, 12), (400, 8), (401, 9), (1100, 500), (4096, 82), (5000, 100)]
)
@pytest.mark.parametrize("spread", [0.1, 8.0, 60.0])
def test_items_that_are_not_placed(n_docs, cutoff, n_samples, spread):
    """Relevance has both signs, and spreads leave many rankings, few or none to the pass forward.

    Mutants: marks of the group before not cleared; the pass forward without unplaced items, or with the reward of the
    rank before.
    """
    rng = np.random.default_rng(n_docs + cutoff)
    scores = spread * rng.uniform(-1.0, 1.0, n_docs)
    relevance, rank_weights = rng.normal(size=n_docs), plr.dcg_weights(cutoff)
    held_in_batches(scores, relevance, rank_weights, n_samples)


@pytest.mark.parametrize("spread", [290.0, 320.0, 590.0])
@pytest.mark.parametrize("n_samples", [3, 16])
def test_complete_rankings_of_wide_spreads(spread, n_samples):
    """One division serves two samples, whose remaining weights multiply to nothing. Mutant: no check of the sums."""
    scores = np.linspace(0.0, spread, 12)
    relevance = np.arange(12.0) % 3
    rankings = np.tile(np.arange(11, -1, -1), (n_samples, 1))
    held_against_plain(scores, relevance, plr.dcg_weights(12), rankings=rankings)


@pytest.mark.parametrize(
    ("n_docs", "cutoff", "first", "last", "lowest", "rtol"),
    [
        *((60, 20, 5.0, -5.0, lowest, 1e-12) for lowest in (0.0, -2.0)),
        *((20_000, 20, 5.0, -5.0, 0.0, 1e-13), (20_000, 20, 15.0, 0.0, 0.0, 1e-12), (9000, 7, 13.0, 0.0, 0.0, 1e-12)),
        *((20_000, 20, first, 0.0, 0.0, 1e-12) for first in (10.0, 11.0, 12.0, 13.0)),
    ],
)
def test_same_ranking_again_and_again(n_docs, cutoff, first, last, lowest, rtol):
    """Rounding then grows like the number of rankings, as it does in a long list where terms are added one by one.
    Mutants: the limit for rankings that differ, or for few; sums flushed at the end alone; a plain sum of weights
    (equal ones round one way, and the first items leave a thousandth of it)."""
    scores = np.append(np.linspace(first, 0.0, cutoff), np.linspace(0.0, last, n_docs - cutoff))
    relevance, rank_weights = np.arange(n_docs) % 4 + lowest, plr.dcg_weights(cutoff)
    rankings = np.tile(np.arange(cutoff), (20_000, 1))
    many, once = (
        plr.pl_rank_3(scores, relevance, rank_weights, offsets=[0, n_docs], rankings=some)
        for some in (rankings, rankings[:1])
    )
    assert (np.abs(many - once) <= rtol * absolute_terms(scores, relevance, rank_weights, rankings[:1])).all()


@pytest.mark.parametrize("estimator", [plr.pl_rank_1, plr.pl_rank_2, plr.pl_rank_3])
def test_many_light_items_beside_heavy_ones(estimator):
    """Each of 30,000 equal weights rounds a plain sum the same way. Mutant: ``lost`` not added."""
    scores = np.repeat([15.0, 0.0], [300, 30_000])
    relevance = np.zeros(scores.size)
    relevance[0] = -1.0
    gradient = estimator(scores, relevance, np.ones(1), offsets=[0, scores.size], rankings=[[[0]]])
    assert abs(gradient[1] * math.fsum(np.exp(scores - 15.0)) - 1.0) < 1e-13


@pytest.mark.chosen_path
@pytest.mark.parametrize("gap", [8.0, 9.0])
def test_either_amplified_sum_leaves_rankings_to_the_plain_estimator(gap):
    """Sums of rewards where light items alone are relevant, sums of rank weights where heavy ones are.

    Mutants: one of the two looked at; each compared with the other's limit; sums with signs where any is negative.
    """
    scores = 0.1 * np.random.default_rng(int(gap)).normal(size=12) + np.repeat([gap, 0.0], [5, 7])
    rankings, heavy = plr.sample_rankings(scores, 300, 6, rng=0), np.repeat([1.0, 0.0], [5, 7])
    for relevance, rank_weights in ((1.0 - heavy, np.array([1.0] + 5 * [1e-6])), (heavy, np.ones(6))):
        for sign in (1.0, -1.0):
            for problem in ((scores, sign * relevance, rank_weights), (scores, relevance, sign * rank_weights)):
                best = ranking_reference.pl_rank(3, *problem, rankings)
                got = plr.pl_rank_3(*problem, rankings=rankings)
                assert (np.abs(got - best.total) <= 6e-15 * best.absolute).all()
