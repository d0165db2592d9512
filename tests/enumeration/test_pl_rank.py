"""PL-Rank-1, 2 and 3: exact at every gap of the scores."""

import numpy as np
import pytest

import plrank_fast as plr
import ranking_reference

ESTIMATORS = {1: plr.pl_rank_1, 2: plr.pl_rank_2, 3: plr.pl_rank_3}


class TestEveryGap:
    """Error below 1e-12 of the sum of an item's absolute terms, for likely and for absurd rankings.

    Mutants: S_k as total minus placed; one unit for all ranks; the sums of unplaced shares not kept apart by the
    first unplaced item; unbalanced rankings not handed out (LARGEST_SHARE infinite).
    """

    @pytest.mark.parametrize("variant", ESTIMATORS)
    @pytest.mark.parametrize("gap", [0, 10, 20, 36, 100, 760, 1e6, 1e308])
    def test_against_extended_precision(self, gap, variant):
        rng = np.random.default_rng(int(min(gap, 1e9)))
        for trial in range(12):
            n_docs = int(rng.integers(2, 8))
            cutoff = int(rng.integers(1, n_docs + 1))
            if trial % 3 == 0:
                scores = rng.permutation(np.linspace(-0.5, 0.5, n_docs)) * float(gap)
            else:
                scores = rng.choice([0.0, -0.3, 1.0], n_docs) + rng.choice([0, 0, -0.5, 0.5], n_docs) * float(gap)
            relevance = rng.choice([0, 0, 1.0, 3.0, -2.0], n_docs)
            rank_weights = rng.normal(size=cutoff)
            rankings = np.array([rng.permutation(n_docs)[:cutoff] for _ in range(3)])
            got = ESTIMATORS[variant](scores, relevance, rank_weights, rankings=rankings)
            best = ranking_reference.pl_rank(variant, scores, relevance, rank_weights, rankings)
            assert np.isfinite(got).all()
            assert (np.abs(got - best.total) <= 1e-12 * best.absolute + 1e-290).all()

    @pytest.mark.parametrize("gap", [30.0, 300.0, 3000.0])
    def test_light_items_before_heavy_ones(self, gap):
        """A ranking that all but cannot happen, in which an item's own terms are far below its share of the rest."""
        scores = np.array([0.0, gap, gap, 0.1, -0.1, 0.2])
        relevance, rank_weights = np.array([1.0, 0.0, 0.0, 0.5, 2.0, 0.0]), np.array([1.0, 0.8, 0.6, 0.4])
        rankings = np.array([[0, 1, 2, 3]])
        best = ranking_reference.pl_rank(3, scores, relevance, rank_weights, rankings)
        for estimator in (plr.pl_rank_2, plr.pl_rank_3):
            got = estimator(scores, relevance, rank_weights, rankings=rankings)
            assert (np.abs(got - best.total) <= 1e-12 * best.absolute).all()

    def test_share_in_another_unit(self):
        """The share that is added has its weight in another unit than the one that is subtracted. Mutant: LARGEST_SHARE
        whatever the distance of the scores."""
        scores, relevance = np.array([0.1, -159.1, -434.1, 36.2, 30.0, 45.0]), np.eye(6)[2]
        got = plr.pl_rank_3(scores, relevance, [0.0, 1.0, 1.0, 1.0], rankings=[[5, 2, 3, 4]])
        assert got[2] == pytest.approx(-8.5005715991e-209, rel=1e-10, abs=0.0)
        rng, rank_weights, rankings = np.random.default_rng(0), np.array([0.0, 1.0, 1.0, 1.0]), np.array([[5, 2, 3, 4]])
        for _ in range(300):
            light, heavy = -rng.uniform(50.0, 700.0, 2), rng.uniform(5.0, 60.0) + np.array([6.0, 0.0, 20.0])
            scores = np.concatenate([[0.0], light, heavy + rng.uniform(-1.0, 0.0, 3)])
            best = ranking_reference.pl_rank(3, scores, relevance, rank_weights, rankings)
            got = plr.pl_rank_3(scores, relevance, rank_weights, rankings=rankings)
            assert (np.abs(got - best.total) <= 1e-12 * best.absolute + 1e-290).all()

    def test_light_item_between_heavy_ones(self):
        """Ranks have units of their own, and the item is not the first.

        Mutants: the risk divided by the ratio of two units; the item's own terms divided by ``direct``."""
        scores = np.array([0.0, -62.0, -40.0, -63.0, -61.0, -63.4, -64.1, -900.0])
        relevance, rank_weights = np.eye(8)[1], 1e-9 * np.array([1.0, 0.8, 0.6, 0.4])
        rankings = np.array([[0, 1, 2, 3], [0, 1, 2, 5], [0, 1, 2, 6]])
        best = ranking_reference.pl_rank(3, scores, relevance, rank_weights, rankings)
        got = plr.pl_rank_3(scores, relevance, rank_weights, rankings=rankings)
        assert (np.abs(got - best.total) <= 1e-12 * best.absolute + 1e-290).all()
