"""DCG and NDCG of the deterministic ranking, rank weights, gains, offsets."""

import itertools

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import reference


class TestRankWeights:
    def test_by_hand(self):
        np.testing.assert_allclose(plr.dcg_weights(3), [1.0, 1 / np.log2(3), 0.5], rtol=1e-15)
        np.testing.assert_array_equal(plr.precision_weights(4), [0.25] * 4)
        np.testing.assert_allclose(plr.rbp_weights(3, 0.5), [0.5, 0.25, 0.125], rtol=1e-15)
        np.testing.assert_array_equal(plr.rbp_weights(2, 0.0), [1.0, 0.0])
        for weights in (plr.dcg_weights, plr.precision_weights, plr.rbp_weights):
            assert weights(0).shape == (0,)
            assert weights(5).dtype == np.float64

    def test_gains(self):
        np.testing.assert_array_equal(plr.gains([0, 1, 2, 3, 4]), [0, 1, 3, 7, 15])
        np.testing.assert_allclose(plr.gains(np.array([[0.5], [1.5]], dtype=np.float32)), [[2**0.5 - 1], [2**1.5 - 1]])
        assert np.isfinite(plr.gains([1023.9])).all()

    @pytest.mark.parametrize("persistence", [1.0, -0.1, np.nan, "0.5", True, None])
    def test_persistence(self, persistence):
        with pytest.raises((ValueError, TypeError), match="persistence"):
            plr.rbp_weights(3, persistence)


class TestOffsets:
    def test_by_hand(self):
        np.testing.assert_array_equal(plr.offsets_from_qid([4, 4, 1, 9, 9, 9]), [0, 2, 3, 6])
        np.testing.assert_array_equal(plr.offsets_from_qid(["b", "b", "a"]), [0, 2, 3])
        np.testing.assert_array_equal(plr.offsets_from_group([2, 0, 1]), [0, 2, 2, 3])
        assert plr.offsets_from_qid([]).tolist() == [0]
        assert plr.offsets_from_group([]).tolist() == [0]

    def test_round_trip(self):
        """Mutant: the last query dropped (the published reader's fault)."""
        sizes = np.random.default_rng(0).integers(1, 9, size=200)
        offsets = plr.offsets_from_group(sizes)
        np.testing.assert_array_equal(offsets, plr.offsets_from_qid(np.repeat(np.arange(200)[::-1], sizes)))
        assert offsets[-1] == sizes.sum()

    def test_query_that_returns(self):
        with pytest.raises(ValueError, match="qid must keep each query's documents together, got query 3"):
            plr.offsets_from_qid([3, 3, 5, 3])

    @pytest.mark.parametrize("qid", [None, [[1, 2]], [1.5, 2.0], 3, np.ma.masked_array([1, 2])])
    def test_bad_qid(self, qid):
        with pytest.raises((ValueError, TypeError), match="qid"):
            plr.offsets_from_qid(qid)

    @pytest.mark.parametrize("sizes", [None, [-1, 2], [[1]], [0.5], [True], np.array([2**62, 2**62, 2**62, 2**62])])
    def test_bad_sizes(self, sizes):
        with pytest.raises((ValueError, TypeError), match="sizes"):
            plr.offsets_from_group(sizes)


class TestDcg:
    def test_against_reference(self):
        """Ragged, with ties and long queries. Mutants: ties to the higher index; selection without the ties at its
        boundary put in order; the cutoff of the longest query used for all."""  # fmt: skip
        rng = np.random.default_rng(0)
        sizes = np.array([0, 1, 2, 30, 200, 3, 0, 1000])
        offsets = plr.offsets_from_group(sizes)
        scores = rng.integers(0, 12, size=offsets[-1]).astype(float)
        relevance = rng.normal(size=offsets[-1])
        for cutoff in (1, 2, 5, 30, 500, 2000):
            weights = rng.normal(size=cutoff)
            got = plr.dcg(scores, relevance, weights, offsets=offsets)
            for q, (start, stop) in enumerate(itertools.pairwise(offsets)):
                expected = reference.dcg(scores[start:stop], relevance[start:stop], weights) if stop > start else 0.0
                assert got[q] == pytest.approx(expected, abs=1e-12)

    def test_all_scores_equal_a_million_times(self):
        scores = np.zeros(1_000_000)
        relevance = np.arange(1_000_000.0)
        assert plr.dcg(scores, relevance, [0.0, 0.0, 1.0])[0] == 2.0
        assert plr.dcg(scores, relevance, np.ones(1_000_000))[0] == relevance.sum()

    def test_ndcg_against_scikit_learn(self):
        sklearn_metrics = pytest.importorskip("sklearn.metrics")
        rng = np.random.default_rng(1)
        for n_docs in (2, 5, 40):
            relevance = rng.integers(0, 3, size=n_docs).astype(float)
            relevance[0] = 1.0
            scores = rng.normal(size=n_docs)  # no ties: scikit-learn averages over them
            for cutoff in (1, 3, 10, 100):
                expected = sklearn_metrics.ndcg_score([relevance], [scores], k=cutoff)
                got = plr.ndcg(scores, relevance, plr.dcg_weights(cutoff))
                assert got[0] == pytest.approx(expected, abs=1e-12)

    def test_normalisation(self):
        """Mutant: "dataset" as the mean of the queries' NDCG."""
        scores, relevance = [0.1, 0.9, 0.3, 0.2, 0.0], [1.0, 0.0, 7.0, 0.0, 0.0]
        offsets, weights = [0, 2, 4, 5, 5], plr.dcg_weights(2)
        second = 1 / np.log2(3)
        np.testing.assert_allclose(plr.ndcg(scores, relevance, weights, offsets=offsets), [second, 1, 0, 0])
        np.testing.assert_allclose(plr.ndcg(scores, relevance, weights, offsets=offsets, empty=1.0), [second, 1, 1, 1])
        assert np.isnan(plr.ndcg([], [], weights, empty=np.nan)[0])
        dataset = plr.ndcg(scores, relevance, weights, offsets=offsets, normalize="dataset")
        assert dataset == pytest.approx((second + 7) / 8)
        assert plr.ndcg([1.0], [0.0], weights, normalize="dataset", empty=0.25) == 0.25

    def test_threads(self, monkeypatch):
        monkeypatch.setattr("plrank_fast._threads.available_cpus", lambda: 8)
        rng = np.random.default_rng(0)
        offsets = plr.offsets_from_group(rng.integers(0, 50, size=300))
        scores, relevance = rng.normal(size=(2, offsets[-1]))
        one = plr.dcg(scores, relevance, plr.dcg_weights(10), offsets=offsets, n_threads=1)
        np.testing.assert_array_equal(
            one, plr.dcg(scores, relevance, plr.dcg_weights(10), offsets=offsets, n_threads=8)
        )
