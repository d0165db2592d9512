"""Exposure, its disparity over pairs, and the gradient through the reward trick and through the exact Jacobian."""

import itertools

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import fairness, reference, validation
from plrank_fast._methods.registry import ESTIMATORS

KINDS = {"squared": lambda x: x**2, "absolute": np.abs}


def brute_force(exposure, merit, kind):
    pairs = KINDS[kind](np.multiply.outer(exposure, merit) - np.multiply.outer(merit, exposure))
    return pairs.sum() / max(1, exposure.size * (exposure.size - 1))


def enumerated_exposure(scores, rank_weights):
    return reference.exact_by_enumeration(scores, scores, rank_weights)[3] @ rank_weights[: scores.size]


class TestExposure:
    """Mutants: a rank weight given to the rank after; padding of a short query counted; the mean over too many."""

    def test_reference_and_enumeration(self):
        """Mutants: the rank weight of rank 1 for all ranks; the mean over N + 1 rankings; one ranking left out."""
        rng = np.random.default_rng(2)
        for n_docs, cutoff in ((1, 3), (5, 2), (5, 9), (700, 40)):
            scores, weights = rng.normal(size=n_docs), rng.normal(size=cutoff)
            rankings = plr.sample_rankings(scores, 150, min(cutoff, n_docs), rng=1)
            got = plr.exposure(scores, weights, rankings=rankings)
            np.testing.assert_array_equal(got, reference.exposure(n_docs, weights, rankings))
        scores, weights = rng.normal(size=4), rng.normal(size=3)
        of_one = [plr.exposure(scores, weights, rankings=ranking[np.newaxis]) for ranking in reference.all_rankings(4)]
        chances = np.exp(reference.ranking_log_prob(scores, reference.all_rankings(4)))
        np.testing.assert_allclose(chances @ np.array(of_one), enumerated_exposure(scores, weights), rtol=1e-13)

    def test_options_of_samples(self):
        """Mutants: counts not looked at by an exact method; a tolerance not looked at with rankings."""
        with pytest.raises(ValueError, match="rtol must be"):
            plr.exposure([0.0], [1.0], rankings=[[0]], rtol=2.0)
        with pytest.raises(ValueError, match="n_samples must be at least 1, got -1"):
            fairness.disparity_gradient([0.0], [1.0], [1.0], n_samples=-1)


@pytest.mark.parametrize("kind", KINDS)
class TestDisparity:
    """Mutants: the two kinds swapped, as published; pairs counted once but divided by D (D - 1); merit and exposure
    exchanged; documents without merit left out."""

    def test_in_proportion(self, kind):
        merit = np.array([0.0, 1.0, 3.0, 7.0])
        values, derivative = fairness.disparity(0.25 * merit, merit, kind=kind)
        assert values[0] == 0.0
        assert (derivative == 0.0).all()

    def test_many_queries_with_ties(self, kind):
        """Queries of few lengths, of documents with few ratios. Mutants: rows of another query's documents; a run of
        equal ratios that ends at its first document."""
        rng = np.random.default_rng(2)
        offsets = np.concatenate([[0], np.cumsum(rng.choice([0, 1, 2, 7, 12, 50], size=60))])
        exposure, merit = rng.integers(0, 4, size=(2, offsets[-1])).astype(float)
        values, derivative = fairness.disparity(exposure, merit, offsets=offsets, kind=kind)
        for q, (start, stop) in enumerate(itertools.pairwise(offsets)):
            e, m = exposure[start:stop], merit[start:stop]
            pairs = np.multiply.outer(e, m) - np.multiply.outer(m, e)
            assert values[q] == pytest.approx(brute_force(e, m, kind), rel=1e-12, abs=1e-14)
            slope = (2 * pairs if kind == "squared" else np.sign(pairs)) @ m * 2 / max(1, e.size * (e.size - 1))
            np.testing.assert_allclose(derivative[start:stop], slope, rtol=0, atol=1e-12)

    def test_exact_gradient(self, kind):
        """By differences of the disparity of enumerated exposures. Mutant: the gradient of the metric with merit."""
        rng = np.random.default_rng(1)
        scores, merit, weights = rng.normal(size=5), np.array([0.0, 1.0, 1.0, 3.0, 7.0]), plr.dcg_weights(3)

        def value(f):
            return brute_force(enumerated_exposure(f, weights), merit, kind)

        values, gradient = fairness.disparity_gradient(scores, merit, weights, kind=kind)
        assert values[0] == pytest.approx(value(scores), rel=1e-6)
        for d in range(5):
            shift = 1e-5 * np.eye(5)[d]
            difference = (value(scores + shift) - value(scores - shift)) / 2e-5
            assert difference == pytest.approx(gradient[d], abs=1e-5)

    @pytest.mark.parametrize("method", [name for name in ESTIMATORS if name != "exact"])
    def test_sampled_gradient(self, kind, method):
        """Two independent draws, one for the exposure and one for its gradient, to the last bit. Mutant: one for both,
        which biases the gradient."""
        scores, merit, weights = np.arange(6.0) % 4, np.array([0.0, 1.0, 1.0, 3.0, 7.0, 0.0]), plr.dcg_weights(3)
        first, second = ({"n_samples": 4, "rng": seed} for seed in validation.seed_sequence(5).spawn(2))
        exposure = plr.exposure(scores, weights, rankings=plr.sample_rankings(scores, cutoff=3, **first))
        values, reward = fairness.disparity(exposure, merit, kind=kind)
        got = fairness.disparity_gradient(scores, merit, weights, kind=kind, method=method, n_samples=4, rng=5)
        np.testing.assert_array_equal(got[0], values)
        np.testing.assert_array_equal(got[1], ESTIMATORS[method].function(scores, reward, weights, **second))
        assert (plr.sample_rankings(scores, **first) != plr.sample_rankings(scores, **second)).any()
