"""Products with the Hessian of the expected metric, against the second derivatives of all rankings' probabilities."""

import re

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import reference

LAST = [0.0, 0.0, 1.0]


def enumerated_product(scores, relevance, theta, vector):
    """The derivative along the vector of the gradient, summed over all rankings, by an imaginary step."""
    rankings, moved = reference.all_rankings(scores.size), scores + 1e-30j * vector
    worth = np.exp(reference.ranking_log_prob(moved, rankings)) * reference.metric(relevance, theta, rankings)
    return (worth @ reference.ranking_log_prob_gradient(moved, rankings)).imag / 1e-30


def error_over_bound(product, best, scores, relevance, theta, vector, rtol):
    scale = np.abs(theta[: len(scores)]).max() * np.abs(relevance).max() * np.abs(vector).max()
    return np.linalg.norm(product - best) / (rtol * max(np.linalg.norm(best), 1e-3 * scale))


@pytest.mark.parametrize("seed", range(8))
def test_products(seed):
    """Within the documented error. Mutants: the sign of a term of the integrand; the scale of the vector left out."""
    rng = np.random.default_rng(seed)
    n, scale = 2 + seed % 4, 10.0 ** (seed - 4)
    scores, relevance, theta, vector = rng.normal(size=n), rng.normal(size=n), rng.random(3), scale * rng.normal(size=n)
    best = enumerated_product(scores, relevance, theta, vector)
    for rtol in (1e-6, 1e-9):
        product = plr.pl_rank_exact_hvp(scores, relevance, theta, vector, rtol=rtol)
        assert error_over_bound(product, best, scores, relevance, theta, vector, rtol) < 1.0


@pytest.mark.parametrize(
    ("n_docs", "cutoff", "spread"),
    [(12, 3, 3.0), (60, 5, 0.3), (100, 12, 2.0), (30, 20, 1.0), (60, 59, 4.0), (90, 45, 1)],
)
def test_all_ways_to_leave_out_an_item(n_docs, cutoff, spread):
    """Series, divisions in both directions, and bands, of many items beside one; the vector moves all of them, or one.

    Mutants: V, W or A left out of an item's gains in a series, upwards or downwards; without the item itself.
    """
    rng = np.random.default_rng(n_docs)
    scores, relevance, theta = spread * rng.normal(size=n_docs), rng.normal(size=n_docs), rng.normal(size=cutoff)
    for vector in (rng.normal(size=n_docs), np.eye(n_docs)[0]):
        best = reference.exact_hvp_by_trapezoid(scores, relevance, theta, vector, step=0.3 / np.sqrt(max(cutoff, 9)))
        product = plr.pl_rank_exact_hvp(scores, relevance, theta, vector, rtol=1e-8)
        assert error_over_bound(product, best, scores, relevance, theta, vector, 1e-8) < 1.0


@pytest.mark.parametrize("n_docs", [20, 44])
def test_signed_weights_and_vectors(n_docs):
    """Rank weights, relevance and a vector that add up at every rank: the differences of gradients failed here."""
    signs = (-1.0) ** np.arange(n_docs)
    problem = -1.0 * np.arange(n_docs), signs, signs, signs
    best = reference.exact_hvp_by_trapezoid(*problem, step=0.3 / np.sqrt(n_docs))
    for rtol in (1e-4, 1e-8):
        assert error_over_bound(plr.pl_rank_exact_hvp(*problem, rtol=rtol), best, *problem, rtol) < 1.0


@pytest.mark.parametrize("n_docs", [50, 100, 1000])
def test_rounding_errors_of_ties(n_docs):
    """Errors in all coefficients add up with the signs of the rank weights; a vector of ones has the product 0.

    What the tolerance that the error message advises gives is within it. Mutant: errors grow like K.
    """
    signs = (-1.0) ** np.arange(n_docs)
    problem = np.zeros(n_docs), signs, signs, np.ones(n_docs)
    with pytest.raises(ArithmeticError, match="pass rtol=") as refused:
        plr.pl_rank_exact_hvp(*problem, rtol=1e-10)
    least = float(re.search(r"pass rtol=([\de.-]+)", str(refused.value))[1])
    assert least < 1e-4
    for rtol in (least, 2.0 * least):
        product = plr.pl_rank_exact_hvp(*problem, rtol=rtol)
        assert error_over_bound(product, np.zeros(n_docs), *problem, rtol) < 0.5


@pytest.mark.parametrize("far", [50.0, 1e8, 1e12, 1e17, 1e300])
def test_clusters_far_apart(far):
    """At any distance the lower cluster is a list of its own. Mutant: the vector of the items that have left."""
    product = plr.pl_rank_exact_hvp([far, 1.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0], [0.0, 1.0, 0.0])
    alone = plr.pl_rank_exact_hvp([1.0, 0.0], [1.0, 0.0], [1.0], [1.0, 0.0])
    np.testing.assert_allclose(product, [0.0, *alone], rtol=0, atol=1e-9)
    assert abs(alone[1]) > 0.09


def test_far_scores():
    """Mutants: scores that are not relative to the highest; a difference of scores beyond the largest double."""
    near, far = (plr.pl_rank_exact_hvp([x, x - 1.0, x - 0.5], LAST, [1.0], LAST) for x in (0.0, 1e9))
    assert near.tobytes() == far.tobytes()
    assert not plr.pl_rank_exact_hvp([1.5e308, 1.0, -1.5e308], LAST, [1.0], LAST).any()
