"""What ``pl_rank_exact`` promises, attacked: the problems that once broke it, and a search for worse ones."""

import itertools

import numpy as np
import pytest
from test_exact import promised

import plrank_fast as plr
from plrank_fast import reference


def broken(scores, relevance, rank_weights, rtol, *, noise="gumbel", oracle=reference.exact_by_subsets):
    """Errors over promises: gradient alone, gradient with the Hessian diagonal, that diagonal, value."""
    scores, relevance, rank_weights = (np.asarray(x, float) for x in (scores, relevance, rank_weights))
    value, gradient, hessian = oracle(scores, relevance, rank_weights)
    alone = plr.pl_rank_exact(scores, relevance, rank_weights, rtol=rtol, noise=noise)
    both = plr.pl_rank_exact(scores, relevance, rank_weights, rtol=rtol, noise=noise, hessian=True)
    shown = plr.expected_metric(scores, relevance, rank_weights, rtol=rtol, noise=noise)[0]
    errors = [
        promised(got, best, relevance, rank_weights)
        for got, best in [(alone, gradient), (both[0], gradient), (both[1], hessian)]
    ]
    errors.append(abs(shown - value) / (np.abs(rank_weights).sum() * np.abs(relevance).max()))
    return np.array(errors) / rtol


class TestOracle:
    def test_subsets_against_all_rankings(self):
        """Mutants: theta_k in place of theta_{k+1}; the chance left out of the last term of the diagonal."""
        rng = np.random.default_rng(0)
        for n_docs in range(1, 7):
            for cutoff, spread in itertools.product(range(1, n_docs + 1), (0.0, 1.0, 6.0)):
                problem = spread * rng.normal(size=n_docs), rng.normal(size=n_docs), rng.normal(size=cutoff)
                every_ranking = reference.exact_by_enumeration(*problem)
                for got, expected in zip(reference.exact_by_subsets(*problem), every_ranking, strict=False):
                    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-14)

    def test_trapezoid_against_subsets(self):
        rng = np.random.default_rng(1)
        for n_docs, cutoff, spread in [(9, 4, 1.0), (10, 9, 3.0), (10, 10, 8.0), (11, 2, 0.0)]:
            problem = spread * rng.normal(size=n_docs), rng.normal(size=n_docs), rng.normal(size=cutoff)
            for got, expected in zip(
                reference.exact_by_trapezoid(*problem, step=0.04), reference.exact_by_subsets(*problem), strict=True
            ):
                np.testing.assert_allclose(got, expected, rtol=0, atol=1e-13)


class TestEndsOfPanels:
    """A panel ends while an item is silent with chance q = e^-x; its gradient loses x q and not q.

    Mutants: panels that end at x = log(n / cut), as they once did; the cut 30 times as large.
    """

    @pytest.mark.parametrize(
        ("scores", "relevance", "rank_weights"),
        [
            ([2, 7, -11, -3, 12, 1], [0, 0, 0, 1, 1, 1], np.ones(5)),
            ([0, -7.5, -27.5], [1, -1, -1], [1, 1]),
            ([0, -7.5, -30], [1, -1, -1], [1, 1, 0]),
        ],
        ids=["two panels", "errors that cancel in the sum", "every item placed"],
    )
    def test_reported(self, scores, relevance, rank_weights):
        for exponent in range(3, 11):
            assert broken(scores, relevance, rank_weights, 10.0**-exponent).max() <= 1

    def test_signed_relevance(self):
        """All signs for three and four items with gaps: at errors of opposite sign the entries' sum says nothing."""
        worst = 0.0
        gaps = [(0, 7.5, 27.5), (0, 8, 15), (0, 1, 9), (0, 18, 19.5, 40), (0, 0.5, 8, 8)]
        for distances in gaps:
            n_docs = len(distances)
            for relevance in itertools.product([-1.0, 0.0, 1.0], repeat=n_docs):
                if not any(relevance):
                    continue
                for rank_weights in (np.ones(n_docs - 1), [1.0], [0.0, 1.0], plr.dcg_weights(n_docs)):
                    for rtol in (1e-6, 1e-10):
                        error = broken(-np.array(distances), relevance, rank_weights, rtol)
                        worst = max(worst, error.max())
        assert worst <= 1
