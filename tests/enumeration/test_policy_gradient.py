"""Policy gradients of whole rankings and of placements, with and without a leave-one-out baseline."""

import itertools

import numpy as np
import pytest

import plrank_fast as plr
import ranking_reference
from plrank_fast import reference
from problems import signed

ESTIMATORS = {"policy": plr.policy_gradient, "placement": plr.pl_rank_1}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(("n_docs", "n_rankings"), [(2, 2), (2, 3), (3, 2), (3, 3), (4, 2)])
def test_baseline(n_docs, n_rankings, name):
    """Expectation over all tuples of rankings. Mutants: a baseline that counts the ranking itself in and divides by
    N - 1; the mean over N with a baseline; the reward from the rank after."""
    scores, relevance, rank_weights = signed(n_docs, n_docs, 1)
    every = reference.all_rankings(n_docs)
    probability = np.exp(reference.ranking_log_prob(scores, every))
    total = np.zeros(n_docs)
    for chosen in map(list, itertools.product(range(len(every)), repeat=n_rankings)):
        total += probability[chosen].prod() * ESTIMATORS[name](
            scores, relevance, rank_weights, rankings=every[chosen], baseline=True
        )
    np.testing.assert_allclose(total, reference.exact_gradient(scores, relevance, rank_weights), rtol=0, atol=1e-12)


@pytest.mark.parametrize("baseline", [False, True])
@pytest.mark.parametrize("name", ESTIMATORS)
class TestAgainstTheReference:
    @pytest.mark.parametrize(("n_docs", "cutoff"), [(2, 1), (7, 7), (24, 10), (120, 25), (300, 400)])
    def test_given_rankings(self, n_docs, cutoff, name, baseline):
        scores, relevance, rank_weights = signed(n_docs, cutoff, 0, 2.0)
        rankings = plr.sample_rankings(scores, 50, cutoff, rng=0)
        best = reference.policy_gradient(
            scores, relevance, rank_weights, rankings, to_go=name == "placement", baseline=baseline
        )
        got = ESTIMATORS[name](scores, relevance, rank_weights, rankings=rankings, baseline=baseline)
        np.testing.assert_allclose(got, best, rtol=0, atol=1e-12 * n_docs * max(1.0, np.abs(best).max()))

    @pytest.mark.parametrize("n_samples", [2, 100, 128, 129, 300])
    def test_drawn_is_given(self, n_samples, name, baseline):
        """One block, and several of which the second pass draws each again. Mutant: the last block used twice."""
        scores, relevance, rank_weights = signed(40, 6, 0)
        rankings = plr.sample_rankings(scores, n_samples, 6, rng=3)
        given = ESTIMATORS[name](scores, relevance, rank_weights, rankings=rankings, baseline=baseline)
        drawn = ESTIMATORS[name](scores, relevance, rank_weights, n_samples=n_samples, rng=3, baseline=baseline)
        np.testing.assert_array_equal(given, drawn)

    def test_equal_relevance(self, name, baseline):
        """Every ranking is worth the same if all documents are: with a baseline nothing is left, in every sample."""
        gradient = ESTIMATORS[name](np.arange(5.0), np.full(5, 2.0), [1.0, 0.5], rng=0, n_samples=10, baseline=baseline)
        assert (gradient == 0).all() == baseline
        assert (ESTIMATORS[name](np.arange(5.0), np.zeros(5), [1.0], rng=0, baseline=baseline) == 0).all()


class TestLongLists:
    """From 24 items per rank on, what unplaced items receive is summed over rankings and handed out once.

    In extended precision, to 1e-12 of an item's absolute terms, for likely rankings and for absurd ones. Mutants: the
    sums not kept apart by the first unplaced item; placed items that do not take back
    their share; nothing handed out at the end; ``step`` left out.
    """

    @pytest.mark.parametrize("spread", [0.0, 1.0, 30.0, 2000.0])
    @pytest.mark.parametrize(("n_docs", "cutoff"), [(24, 1), (60, 2), (100, 4)])
    def test_against_extended_precision(self, n_docs, cutoff, spread):
        rng = np.random.default_rng([n_docs, int(spread)])
        scores = rng.normal(size=n_docs)
        scores[rng.permutation(n_docs)[:6]] += spread * np.array([1.0, 1.0, 0.5, 0.5, -0.5, -1.0])
        relevance, rank_weights = rng.choice([0.0, 1.0, -2.0], n_docs), rng.normal(size=cutoff)
        likely = plr.sample_rankings(scores, 20, cutoff, rng=0)
        absurd = np.array([rng.permutation(n_docs)[:cutoff] for _ in range(20)], dtype=np.int32)
        ascending = np.argsort(scores)[np.newaxis, :cutoff].astype(np.int32)
        for rankings in (likely, np.concatenate([likely, absurd, ascending])):
            for name, baseline in itertools.product(ESTIMATORS, (False, True)):
                got = ESTIMATORS[name](scores, relevance, rank_weights, rankings=rankings, baseline=baseline)
                best = ranking_reference.policy_gradient(
                    scores, relevance, rank_weights, rankings, to_go=name == "placement", baseline=baseline
                )
                assert (np.abs(got - best.total) <= 1e-12 * best.absolute + 1e-290).all()
            cotangent = rng.normal(size=len(rankings))
            got = plr.ranking_log_prob_vjp(scores, rankings, cotangent)
            best = ranking_reference.log_prob_gradient(scores, rankings, cotangent)
            assert (np.abs(got - best.total) <= 1e-12 * best.absolute + 1e-290).all()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_baseline_needs_two_rankings(name):
    with pytest.raises(ValueError, match="n_samples must be at least 2, got 1"):
        ESTIMATORS[name]([0.0, 1.0], [0, 1], [1.0], n_samples=1, baseline=True)
    with pytest.raises(TypeError, match="baseline must be True or False"):
        ESTIMATORS[name]([0.0, 1.0], [0, 1], [1.0], baseline=0.5)
