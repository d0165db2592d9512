"""Rewards of rankings drawn in PyTorch: value, gradient with the mean of the others as baseline, and errors."""

import itertools

import numpy as np
import pytest

import plrank_fast as plr

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from plrank_fast.torch import PlackettLuce  # noqa: E402


def test_reward_is_unbiased(monkeypatch):
    """By enumeration of both draws. Mutants: the mean of all draws for a baseline; the sign; a reward of the next
    ranking."""
    scores = torch.tensor([0.5, -1.0, 0.2], dtype=torch.float64, requires_grad=True)
    policy = PlackettLuce(scores, cutoff=2)
    rankings = torch.tensor(list(itertools.permutations(range(3), 2)))
    rewards = torch.arange(6.0, dtype=torch.float64) ** 2
    chances = policy.log_prob(rankings).exp()
    (chances @ rewards).backward()
    exact, scores.grad = scores.grad, None
    weight = chances.detach()
    for i, j in itertools.product(range(6), repeat=2):
        drawn = [i, j]
        monkeypatch.setattr(policy, "sample", lambda _, drawn=drawn: rankings[drawn])
        value, _, _ = policy.expected_reward(lambda _, drawn=drawn: rewards[drawn], 2)
        assert value.item() == rewards[drawn].mean().item()
        (weight[i] * weight[j] * value).backward()
    torch.testing.assert_close(scores.grad, exact)


def test_reward_of_a_batch():
    """Rows of different lengths have the gradient of ``policy_gradient``; a reward's own gradient passes. Mutants: one
    mean for all rows; the reward detached; the rankings that the function has changed."""
    scores = torch.tensor([[0.5, -1.0, 0.2, 1.0], [0.0, 1.0, -torch.inf, -torch.inf]], requires_grad=True)
    factor = torch.ones((), requires_grad=True)

    def reward(rankings):
        worth = (rankings[..., 0] == 1) + rankings[..., 1] / 4.0
        rankings.fill_(0)
        return factor * worth

    policy = PlackettLuce(scores, cutoff=2)
    value, rankings, log_prob = policy.expected_reward(reward, 5)
    torch.testing.assert_close(log_prob, policy.log_prob(rankings))
    value.sum().backward()
    kept = rankings.clone()
    rewards = reward(kept).detach()
    torch.testing.assert_close(value, rewards.mean(0))
    torch.testing.assert_close(factor.grad, value.sum().detach())
    for row, n_items in enumerate((4, 2)):
        expected = plr.policy_gradient(
            scores[row, :n_items].tolist(), rankings=rankings[:, row], rewards=rewards[:, row], baseline=True
        )
        np.testing.assert_allclose(scores.grad[row, :n_items], expected, rtol=1e-5, atol=1e-6)
    assert not scores.grad[1, 2:].any()


@pytest.mark.parametrize(("message", "reward", "n_samples"), [
    (r"reward\(rankings\) must have the shape \(4,\), got \(4, 2\)", lambda rankings: rankings, 4),
    (r"reward\(rankings\) must have the shape \(4,\), got \(\)", lambda rankings: 1.0, 4),
    (r"reward\(rankings\) must be finite, got NaN or infinity", lambda rankings: [0.0, np.nan, 0.0, 1.0], 4),
    ("n_samples must be at least 2, got 1", lambda rankings: [0.0], 1),
    ("reward must be a function, got ndarray", np.ones(4), 4),
])  # fmt: skip
def test_errors_of_rewards(message, reward, n_samples):
    """Mutants: a check left out."""
    policy = PlackettLuce(torch.zeros(3), cutoff=2)
    with pytest.raises((ValueError, TypeError), match=message):
        policy.expected_reward(reward, n_samples)
