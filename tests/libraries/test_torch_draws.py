"""Draws without replacement in PyTorch: the distribution of ``torch.multinomial``, for more items, and its errors."""

import itertools

import numpy as np
import pytest
from scipy import stats

import plrank_fast as plr

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from plrank_fast.torch import WeightedSampler, sample_without_replacement  # noqa: E402

WEIGHTS = torch.tensor([0.5, 2.0, 0.0, 1.0, 3.0])


def probabilities(weights):
    """Chances of the ordered pairs of items."""
    total = weights.sum()
    pairs = list(itertools.permutations(np.flatnonzero(weights), 2))
    return pairs, np.array([weights[i] / total * weights[j] / (total - weights[i]) for i, j in pairs])


@pytest.mark.parametrize("draw", [
    lambda weights: torch.multinomial(weights, 2),
    lambda weights: sample_without_replacement(weights, 2),
    lambda weights: sample_without_replacement(n=2, logits=weights.log()),
])  # fmt: skip
def test_the_distribution_of_multinomial(draw):
    """By a chi-square test at 1e-6, with fixed seeds. Mutants: weights taken for logits; items with replacement; one
    stream for all rows; the items sorted."""
    torch.manual_seed(3)
    pairs, expected = probabilities(WEIGHTS.double().numpy())
    drawn = draw(WEIGHTS.repeat(20_000, 1)).tolist()
    counts = np.array([drawn.count(list(map(int, pair))) for pair in pairs])
    assert counts.sum() == 20_000
    assert stats.chisquare(counts, expected * 20_000).pvalue > 1e-6


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64])
def test_bits_of_sample_rankings(dtype):
    """Logarithms are taken in float64. Mutants: in float32; another key."""
    weights = torch.tensor([3, 1, 2, 5, 4]).to(dtype)
    got = sample_without_replacement(weights, 3, generator=5)
    log_weights = np.log(weights.double().numpy())
    np.testing.assert_array_equal(WeightedSampler(weights, 3)._log_weights, [log_weights])
    assert got.dtype == torch.int64
    assert got.tolist() == plr.sample_rankings(log_weights, 1, 3, rng=5)[0].tolist()
    assert sample_without_replacement([3, 1, 2, 5, 4], 3, generator=5).tolist() == got.tolist()
    logits = torch.tensor([3, 1, 2, 5, 4]).double().log().requires_grad_()
    assert sample_without_replacement(n=3, logits=logits, generator=5).tolist() == got.tolist()


def test_shapes():
    """Mutant: rows of one draw for a single one."""
    assert sample_without_replacement(WEIGHTS, 0).shape == (0,)
    assert sample_without_replacement(WEIGHTS.repeat(3, 1), 4).shape == (3, 4)
    assert sample_without_replacement(WEIGHTS.repeat(0, 1), 4).shape == (0, 4)
    every = sample_without_replacement(WEIGHTS.repeat(3, 1), 4).sort(dim=1).values
    assert every.tolist() == 3 * [[0, 1, 3, 4]]


def test_random_numbers_are_those_of_pytorch():
    """Mutants: a fixed seed; the default generator in place of the one that is given."""
    torch.manual_seed(1)
    first = [sample_without_replacement(WEIGHTS, 3).tolist() for _ in range(6)]
    torch.manual_seed(1)
    assert [sample_without_replacement(WEIGHTS, 3).tolist() for _ in range(6)] == first
    generator = torch.Generator().manual_seed(1)
    assert [sample_without_replacement(WEIGHTS, 3, generator=generator).tolist() for _ in range(6)] == first
    assert len({str(each) for each in first}) > 1


def test_more_items_than_multinomial_takes():
    """Mutant: numbers of items in float32."""
    weights = torch.zeros(2**24 + 5)
    weights[-3:] = 1.0
    with pytest.raises(RuntimeError, match="2\\^24"):
        torch.multinomial(weights, 1)
    assert sample_without_replacement(weights, 3).sort().values.tolist() == [2**24 + 2, 2**24 + 3, 2**24 + 4]


@pytest.mark.parametrize(("error", "message", "options"), [
    (ValueError, "n must be at most the number of positive weights of each row, 4, got", {"weights": WEIGHTS, "n": 5}),
    (ValueError, "n must be at most .*, 2, got 3", {"logits": torch.tensor([0.0, -np.inf, 1.0]), "n": 3}),
    (ValueError, "n must be at most .*, 1, got 2", {"weights": [[1.0, 1.0], [0.0, 1.0]], "n": 2}),
    (ValueError, "n must be at least 0", {"weights": WEIGHTS, "n": -1}),
    (TypeError, "n must be an integer", {"weights": WEIGHTS}),
    (ValueError, "weights must be at least 0.*got -1.0 at index 1", {"weights": [1.0, -1.0], "n": 1}),
    (ValueError, "weights must be finite, got nan at index 1", {"weights": [1.0, np.nan], "n": 1}),
    (ValueError, "weights must be finite, got inf at index 0", {"weights": [np.inf, 1.0], "n": 1}),
    (ValueError, "logits must be finite, got inf", {"logits": [np.inf, 1.0], "n": 1}),
    (ValueError, "logits must be .*got nan", {"logits": [np.nan, 1.0], "n": 1}),
    (ValueError, r"weights must have shape \(n_items,\) or", {"weights": torch.ones(1, 1, 1), "n": 1}),
    (ValueError, "only one of weights and logits", {"weights": WEIGHTS, "logits": WEIGHTS, "n": 1}),
])  # fmt: skip
def test_what_is_refused(error, message, options):
    """Without a random number. Mutant: rows that end early."""
    before = torch.get_rng_state()
    with pytest.raises(error, match=message):
        sample_without_replacement(**options)
    assert torch.equal(torch.get_rng_state(), before)


def test_sampler():
    """Each pass draws anew. Mutants: one draw for all passes; a length of all items."""
    sampler = WeightedSampler(WEIGHTS, 3, generator=torch.Generator().manual_seed(2))
    loader = torch.utils.data.DataLoader(torch.arange(5) * 10, batch_size=2, sampler=sampler)
    passes = [torch.cat(list(loader)).tolist() for _ in range(8)]
    assert len(sampler) == 3
    assert all(len(set(each)) == 3 and set(each) <= {0, 10, 30, 40} for each in passes)
    assert len({str(each) for each in passes}) > 1
    again = WeightedSampler(WEIGHTS, 3, generator=torch.Generator().manual_seed(2))
    assert [item * 10 for item in again] == passes[0]
    with pytest.raises(ValueError, match="n must be at most the number of positive weights"):
        WeightedSampler(WEIGHTS, 5)
    with pytest.raises(ValueError, match=r"weights must have shape \(n_items,\), got \(1, 5\)"):
        WeightedSampler(WEIGHTS[None], 2)
