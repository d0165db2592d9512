"""Conditional Monte Carlo and the sampled Hessian diagonals: interpolated lists, wide scores."""

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import reference
from problems import signed

WITH_HESSIAN = {"cmc": plr.pl_rank_cmc, "pl_rank_3": plr.pl_rank_3}


@pytest.mark.parametrize("spread", [0.0, 6.0])
def test_long_lists_are_interpolated(spread):
    """Gradient and Hessian through Chebyshev nodes in the weight, or without where they are too few: the second ranking
    leaves the heaviest item out. Mutants: no look at the coefficients; f instead of f / w, which light items notice."""
    n_docs, cutoff = 530, 200
    scores, _, rank_weights = signed(n_docs, cutoff, 0, spread)
    scores[-3:] -= 20.0
    relevance = 1e3 * plr.gains(np.random.default_rng(1).integers(0, 5, size=n_docs))
    rankings = np.stack([plr.sample_rankings(scores, 1, cutoff, rng=0)[0], np.argsort(-scores)[1 : cutoff + 1]])
    got = plr.pl_rank_cmc(scores, relevance, rank_weights, rankings=rankings, hessian=True)
    np.testing.assert_array_equal(got[0], plr.pl_rank_cmc(scores, relevance, rank_weights, rankings=rankings))
    best = reference.pl_rank_cmc(scores, relevance, rank_weights, rankings)
    for a, b in zip(got, best, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12 * np.abs(b).max())
        np.testing.assert_allclose(a[-3:], b[-3:], rtol=1e-11, atol=1e-13 * np.exp(-20) * np.abs(b).max())


@pytest.mark.parametrize("name", WITH_HESSIAN)
@pytest.mark.parametrize("gap", [36.0, 100.0, 760.0, 1e6, 1e308])
def test_far_items_change_nothing(name, gap):
    """Items far below the rest, and the rest's numbers with and without them. Mutant: one unit for all ranks."""
    scores, relevance, rank_weights = signed(12, 6, 0)
    rankings = plr.sample_rankings(scores, 5, 6, rng=0)
    near = WITH_HESSIAN[name](scores, relevance, rank_weights, rankings=rankings, hessian=True)
    far_scores = np.concatenate([scores, [-gap, -gap]])
    far = WITH_HESSIAN[name](
        far_scores, np.append(relevance, [3.0, -1.0]), rank_weights, rankings=rankings, hessian=True
    )
    for a, b in zip(near, far, strict=True):
        assert np.isfinite(b).all()
        np.testing.assert_allclose(a, b[:-2], rtol=0, atol=1e-12)
        np.testing.assert_allclose(b[-2:], 0.0, atol=1e-12)


@pytest.mark.parametrize("gap", [30.0, 760.0, 1e6])
def test_cmc_of_separated_blocks(gap):
    """Two blocks of items far apart: the lower one sees only the ranks that the upper one leaves. Mutant: in a wide
    query, sums not taken to the unit of the next rank."""
    upper, lower = np.array([0.3, -0.2, 0.0]), np.array([0.5, 0.1, -0.4, 0.0])
    rank_weights = plr.dcg_weights(6)
    relevance = np.array([1.0, 0.0, 3.0, 7.0, 1.0, 0.0, 3.0])
    rankings = np.array([[2, 0, 1, 4, 3, 6], [0, 1, 2, 3, 4, 5]])
    whole = plr.pl_rank_cmc(np.append(upper + gap, lower), relevance, rank_weights, rankings=rankings, hessian=True)
    top = plr.pl_rank_cmc(
        upper, relevance[:3], rank_weights[:3] - rank_weights[3], rankings=rankings[:, :3], hessian=True
    )
    rest = plr.pl_rank_cmc(lower, relevance[3:], rank_weights[3:], rankings=rankings[:, 3:] - 3, hessian=True)
    for i in range(2):
        np.testing.assert_allclose(whole[i][3:], rest[i], rtol=0, atol=1e-11)
        np.testing.assert_allclose(whole[i][:3], top[i], rtol=0, atol=1e-11)
