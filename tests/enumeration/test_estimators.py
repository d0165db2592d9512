"""Every estimator from given rankings equals its formula in NumPy, and is unbiased, by enumeration."""

import inspect
from functools import partial

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import reference
from plrank_fast._methods.registry import ESTIMATORS
from problems import signed

OF_RANKINGS = {
    name: each.function
    for name, each in ESTIMATORS.items()
    if "rankings" in inspect.signature(each.function).parameters
}
WITH_HESSIAN = [name for name in OF_RANKINGS if ESTIMATORS[name].has_hessian]
CALLS = OF_RANKINGS | {f"{name} hessian": partial(OF_RANKINGS[name], hessian=True) for name in WITH_HESSIAN}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(("n_docs", "cutoff"), [(1, 1), (2, 1), (7, 7), (24, 10), (67, 33), (120, 25), (50, 60)])
def test_against_reference(n_docs, cutoff, name):
    """The function of the same name in `reference`, for all vector widths and remainders.

    Mutants: lanes past the last rank taken for items in CMC, or sampled labels in place of conditional means.
    """
    problem = signed(n_docs, cutoff, 0, 2.0)
    rankings = plr.sample_rankings(problem[0], 10, cutoff, rng=0)
    got = CALLS[name](*problem, rankings=rankings)
    best = getattr(reference, OF_RANKINGS[name.removesuffix(" hessian")].__name__)(*problem, rankings)
    for mine, other in zip(np.atleast_2d(got), np.atleast_2d(best), strict=False):
        np.testing.assert_allclose(mine, other, rtol=0, atol=1e-12 * max(1.0, np.abs(other).max()) * n_docs)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("n_docs", [1, 2, 3, 4, 5])
def test_every_cutoff(n_docs, name):
    """No randomness: the expectation over all D! rankings is the gradient itself, or the diagonal of the Hessian.

    Mutants: reward from the own rank on in PL-Rank-3; suffix starting one rank late; an unplaced item taking part in
    K - 1 ranks; S after instead of before a rank; the share of unplaced items not taken back from placed ones, or left
    out. Of CMC: a placed item not counted in at its own rank; the conditional mean without the item itself; the last
    drop left out; A_j before instead of after q_j. In PL-Rank-3's Hessian the term X s left out for unplaced items.
    """
    for cutoff in range(1, n_docs + 2):
        for spread in (0.0, 1.0, 4.0):
            problem = signed(n_docs, cutoff, 0, spread)
            got = reference.expectation(CALLS[name], *problem)
            scale = np.abs(problem[1]).max() * np.abs(problem[2]).sum()
            for mine, best in zip(np.atleast_2d(got), reference.exact_by_subsets(*problem)[1:], strict=False):
                np.testing.assert_allclose(mine, best, rtol=0, atol=1e-12 * scale)


def test_expected_metric():
    problem = signed(5, 3, 4)
    total = reference.expectation(partial(plr.expected_metric, method="sample"), *problem)
    np.testing.assert_allclose(total, reference.expected_metric(*problem), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("cutoff", [2, 3])
@pytest.mark.parametrize("relevance", [(1.0, 2.0, 0.0, 1.0), (1.0, -2.0, 0.0, 1.0)])
def test_rankings_past_the_cutoff_are_not_read(cutoff, relevance, name):
    """Entries there need not be items. Mutant: complete rankings taken from given ones."""
    rankings = np.array([[1, 0, 3, -5], [3, 2, 1, 2**30]])
    rankings[:, cutoff:] = [[77], [-5]]
    problem = np.array([0.0, 30.0, 1.0, 2.0]), np.array(relevance), plr.dcg_weights(cutoff)
    whole, cut = (CALLS[name](*problem, rankings=some) for some in (rankings, rankings[:, :cutoff]))
    np.testing.assert_array_equal(whole, cut)
