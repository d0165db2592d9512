"""Rewards of whole rankings: by hand; their means by enumeration."""

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import rewards

LABELS = np.array([0.0, 2.0, 1.0, 0.0, 2.0])


def test_alpha_ndcg_by_hand():
    """Mutants: a subtopic discounted the first time; documents of no subtopic as if they had all."""
    subtopics = [[1, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0]]
    second = 1 / np.log2(3)
    reward = rewards.alpha_ndcg(subtopics, alpha=0.25)
    ideal = 2 + second
    expected = [1.0, (2 + 0.75 * second) / ideal, second / ideal, (1 + second * 1.75) / ideal, 1 / ideal]
    np.testing.assert_allclose(reward([[0, 2], [0, 1], [3, 2], [1, 0], [2, -1]]), expected, rtol=1e-15)
    assert rewards.alpha_ndcg(np.zeros((2, 3)))([[0, 1]]) == 0.0
    batch = rewards.alpha_ndcg([*subtopics, [0, 1, 0], [0, 1, 0]], offsets=[0, 4, 6])
    assert batch([[[0, 2]], [[1, 0]]]).tolist() == [[1.0], [1.0]]
    with pytest.raises(ValueError, match="rankings must hold items 0 to 3, got 4"):
        reward([[0, 4]])


def greedily_chosen(judged, alpha, n_ranks):
    """The document of the largest gain at each rank, and the sum of gains over the logarithm of the rank."""
    left, ranking, total = np.ones(judged.shape[1]), [], 0.0
    for k in range(min(n_ranks, len(judged))):
        worth = np.where(np.isin(np.arange(len(judged)), ranking), -1.0, judged @ left)
        ranking.append(int(worth.argmax()))
        total += worth.max() / np.log2(k + 2)
        left = left * np.where(judged[ranking[-1]] > 0, 1 - alpha, 1.0)
    return ranking, total


def test_alpha_ndcg_of_a_batch(on_team):
    """Against the formula, for lists shorter and longer than the rankings, on any number of threads.

    Mutants: a document chosen twice; the last of equal documents; the ideal of another number of ranks; topics counted
    on to the next ranking; entries past the end of a short list read.
    """
    rng = np.random.default_rng(0)
    offsets = np.cumsum([0, 0, 3, 1, 40, 12])
    judged = rng.integers(0, 3, size=(56, 4)) * rng.integers(0, 2, size=(56, 4)) * 1.0
    for n_ranks in (1, 5, 20):
        rankings = plr.sample_rankings(rng.normal(size=56), 7, n_ranks, offsets=offsets, rng=0)
        expected = np.zeros((5, 7))
        for q in range(5):
            documents = judged[offsets[q] : offsets[q + 1]]
            best, ideal = greedily_chosen(documents, 0.3, n_ranks)
            rankings[q, 0, : len(best)] = best
            rankings[q, :, len(documents) :] = 2
            for i in range(7):
                placed = documents[rankings[q, i][: len(best)]]
                seen = np.cumsum(placed > 0, axis=0) - (placed > 0)
                worth = (placed * 0.7**seen).sum(axis=1) / np.log2(np.arange(len(placed)) + 2)
                expected[q, i] = worth.sum() / ideal if ideal > 0 else 0.0
        for n_threads in (1, 3):

            def share(n_threads, rankings=rankings):
                reward = rewards.alpha_ndcg(judged, alpha=0.3, offsets=offsets, n_threads=n_threads)
                reward(rankings[..., :1])
                return reward(rankings)

            got = on_team(n_threads, share)
            np.testing.assert_allclose(got, expected, rtol=1e-14)
            assert set(got[:, 0]) <= {0.0, 1.0}


def test_blocks_are_one_mean():
    """Each ranking is drawn and rewarded once. Mutants: the error not divided by the square root of N; the second
    block's mean added in full."""
    seen = []

    def reward(rankings):
        seen.append(rankings)
        return rankings[:, 0] ** 2.0

    value, error = rewards.expected_reward(LABELS, reward, cutoff=3, n_samples=700, rng=0)
    rankings = np.concatenate(seen)
    every = rankings[:, 0] ** 2.0
    assert rankings.shape == (700, 3)
    np.testing.assert_array_equal(rankings[:256], plr.sample_rankings(LABELS, 256, 3, rng=0))
    assert (rankings[:256] != rankings[256:512]).any()
    assert abs(value[0] - every.mean()) < 1e-13
    assert abs(error[0] - every.std(ddof=1) / np.sqrt(700)) < 1e-13


def test_stops_at_rtol():
    """Mutant: stops when the first query is good enough."""
    calls = []

    def reward(rankings):
        calls.append(rankings.shape)
        return 1.0 + (rankings[..., 0] == 0) * np.array([[0.0], [50.0]])

    value, error = rewards.expected_reward(
        np.zeros(20), reward, offsets=[0, 10, 20], n_samples=100_000, rtol=0.03, rng=0
    )
    assert 1 < len(calls) < 100
    assert calls[0] == (2, 256, 10)
    assert (error <= 0.03 * value).all()
    exact, _ = rewards.expected_reward(np.zeros(3), lambda y: np.full(len(y), 2.0), rtol=0.5, n_samples=10**6, rng=0)
    assert exact.tolist() == [2.0]
