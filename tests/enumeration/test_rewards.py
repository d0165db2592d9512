"""Policy gradients of rewards that are one number per ranking: given with rankings of a log, or by a function."""

import itertools

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import reference
from problems import every_prefix, signed


def expected_reward_gradient(scores, rankings, rewards):
    """Derivative of sum_y pi(y) reward(y) by complex steps: no digit is lost."""
    steps = scores + 1e-30j * np.eye(scores.size)
    chances = [np.exp(reference.ranking_log_prob(moved, rankings)) for moved in steps]
    return (chances @ rewards).imag / 1e-30


def any_rewards(rankings, seed=0):
    """Return rewards of no additive form."""
    return np.random.default_rng([len(rankings), seed]).normal(size=len(rankings)) ** 3


class TestLogProbGradient:
    """Mutants: the mean in place of the sum; the number of the ranking before; a ranking that ends early read to the
    cutoff; its S_k for unplaced items over all ranks of the cutoff."""

    @pytest.mark.parametrize(
        ("n_docs", "length", "spread"), [(1, 1, 1), (4, 4, 1), (7, 3, 3), (40, 9, 1), (40, 5, 400)]
    )
    def test_against_reference(self, n_docs, length, spread):
        scores, *_ = signed(n_docs, length, 0, spread)
        rankings = plr.sample_rankings(scores, 60, length, rng=0)
        ends = np.random.default_rng(1).integers(0, length + 1, size=60)
        rankings[np.arange(length) >= ends[:, np.newaxis]] = -1
        cotangent = np.random.default_rng(2).normal(size=60)
        cotangent[3] = 0.0
        best = cotangent @ reference.ranking_log_prob_gradient(scores, rankings)
        got = plr.ranking_log_prob_vjp(scores, rankings, cotangent)
        np.testing.assert_allclose(got, best, rtol=0, atol=1e-12 * np.abs(cotangent).sum())


class TestGivenRewards:
    @pytest.mark.parametrize("n_docs", [1, 2, 3, 5, 6])
    def test_expectation(self, n_docs):
        """Every cutoff; the rankings at hand and what they are worth, weighted by their probability.

        Mutants: rewards of the ranking before; rewards not divided by N.
        """
        for cutoff in range(1, n_docs + 1) if n_docs < 6 else (2, 6):
            scores, *_ = signed(n_docs, cutoff, 0, 2.0)
            rankings = every_prefix(n_docs, cutoff)
            rewards = any_rewards(rankings)
            probability = np.exp(plr.ranking_log_prob(scores, rankings))
            # one call: all rankings, each with its probability as importance weight over 1 / N
            got = plr.policy_gradient(
                scores, rankings=rankings, rewards=rewards, importance_weights=probability * len(rankings)
            )
            exact = expected_reward_gradient(scores, rankings, rewards)
            np.testing.assert_allclose(got, exact, rtol=0, atol=1e-12 * np.abs(rewards).max())

    @pytest.mark.parametrize(("n_docs", "n_rankings"), [(2, 2), (2, 3), (3, 2), (3, 3)])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_the_mean_of_the_others(self, n_docs, n_rankings, weighted):
        """Expectation over all tuples, drawn from the policy or from a log with importance weights.

        Mutants: the ranking itself counts in the mean; N in place of N - 1; the unweighted mean times the weight.
        """
        scores, *_ = signed(n_docs, n_docs, 1)
        logging = signed(n_docs, n_docs, 2)[0] if weighted else scores
        every = reference.all_rankings(n_docs)
        rewards = any_rewards(every)
        new, shown = (np.exp(reference.ranking_log_prob(f, every)) for f in (scores, logging))
        total = np.zeros(n_docs)
        for chosen in map(list, itertools.product(range(len(every)), repeat=n_rankings)):
            total += shown[chosen].prod() * plr.policy_gradient(
                scores, rankings=every[chosen], rewards=rewards[chosen], baseline=True,
                importance_weights=(new / shown)[chosen] if weighted else None,
            )  # fmt: skip
        exact = expected_reward_gradient(scores, every, rewards)
        np.testing.assert_allclose(total, exact, rtol=0, atol=1e-12 * np.abs(rewards).max())

    def test_others_without_weight(self):
        """Their mean is 0. Mutant: the ranking itself counted."""
        given = {"rankings": [[0, 1], [1, 0]], "rewards": [3.0, 5.0], "importance_weights": [1.0, 0.0]}
        plain = plr.policy_gradient([0.0, 1.0], **given)
        np.testing.assert_array_equal(plr.policy_gradient([0.0, 1.0], **given, baseline=True), plain)

    def test_given_baselines(self):
        offsets = np.array([0, 4, 4, 9])
        scores, *_ = signed(9, 3)
        rankings = plr.sample_rankings(scores, 6, 3, offsets=offsets, rng=0)
        rewards = np.random.default_rng(0).normal(size=(3, 6))

        def gradient(rewards, baseline=False):
            return plr.policy_gradient(scores, rankings=rankings, rewards=rewards, baseline=baseline, offsets=offsets)

        np.testing.assert_array_equal(gradient(rewards, 0.5), gradient(rewards - 0.5))
        per_query = np.array([1.0, 2.0, -3.0])
        np.testing.assert_array_equal(gradient(rewards, per_query), gradient(rewards - per_query[:, np.newaxis]))
        np.testing.assert_array_equal(gradient(rewards, rewards), np.zeros(9))
        one = {"rankings": rankings[0, :, :3], "rewards": rewards[0], "baseline": rewards[0]}
        np.testing.assert_array_equal(plr.policy_gradient(scores[:4], **one), np.zeros(4))
        assert (gradient(np.full((3, 6), 0.1), True) == 0.0).all()  # equal rewards leave nothing, in every digit


class TestRewardFunction:
    @pytest.mark.parametrize("n_samples", [2, 100, 256, 257, 700])
    @pytest.mark.parametrize("baseline", [False, True, 0.25])
    def test_is_given_rewards(self, n_samples, baseline):
        """Each is drawn and rewarded once. Mutants: the key of the first block for all; the mean before the end."""
        scores, *_ = signed(30, 5)
        seen = []

        def worth(rankings):
            return 1.0 / (1.0 + rankings[:, 0] % 7) + (rankings[:, 1] < 9)

        def reward(rankings):
            seen.append(rankings)
            return worth(rankings)

        drawn = plr.policy_gradient(scores, reward=reward, n_samples=n_samples, cutoff=5, rng=3, baseline=baseline)
        assert max(map(len, seen)) <= 256
        rankings = np.concatenate(seen)
        assert len(rankings) == n_samples
        first = plr.sample_rankings(scores, min(n_samples, 256), 5, rng=3)
        np.testing.assert_array_equal(rankings[: len(first)], first)
        if n_samples > 512:
            assert (rankings[:256] != rankings[256:512]).any()
        given = plr.policy_gradient(scores, rankings=rankings, rewards=worth(rankings), baseline=baseline)
        np.testing.assert_allclose(drawn, given, rtol=0, atol=1e-13)


SCORES = np.array([0.0, 1.0, 2.0])
LOG = {"rankings": [[0, 1, 2], [2, 0, 1]], "rewards": [1.0, 0.0]}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({**LOG, "importance_weights": [1.0]}, ValueError, "importance_weights must have one entry per ranking"),
        ({**LOG, "relevance": [0, 1, 2]}, ValueError, "relevance only goes with rewards=None"),
        ({**LOG, "rank_weights": [1.0]}, ValueError, "rank_weights only goes with rewards=None"),
        ({**LOG, "reward": len}, ValueError, "only one of rewards and reward may be given"),
        ({**LOG, "baseline": [1.0, 2.0, 3.0]}, ValueError, "baseline must be True, False, a number"),
        ({**LOG, "cutoff": 2}, ValueError, "cutoff only goes with reward"),
        ({"rewards": [1.0]}, ValueError, "rankings must be given for rewards"),
        ({"rankings": [[0]], "rewards": [1.0], "baseline": True}, ValueError, "number of rankings.*at least 2, got 1"),
        ({}, ValueError, "relevance must be given, or rewards or reward"),
        ({"relevance": [1, 2, 3]}, ValueError, "rank_weights must be given, or rewards or reward"),
        ({"reward": lambda y: [1.0]}, ValueError, r"reward\(rankings\) must have one entry per ranking"),
        ({"reward": len, "rankings": [[0]]}, ValueError, "rankings only goes with reward=None"),
        ({"reward": len, "importance_weights": [1.0]}, ValueError, "importance_weights only goes with rewards"),
        ({"reward": len, "n_samples": 1, "baseline": True}, ValueError, "n_samples must be at least 2, got 1"),
    ],
    ids=range(14),
)  # fmt: skip
def test_errors(arguments, error, message):
    with pytest.raises(error, match=message):
        plr.policy_gradient(SCORES, **arguments)
