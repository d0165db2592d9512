"""The expected average precision and its gradient, in every regime."""

import itertools

import numpy as np
import pytest

import plrank_fast as plr
import trapezoid_reference
from adversarial_problem import REGIMES, scores_of
from plrank_fast import reference


def over_bounds(scores, relevance, cutoff, rtol, best):
    """Errors over their bounds: value alone, value with the gradient, gradient."""
    found = np.count_nonzero(relevance > 0)
    alone = plr.expected_ap(scores, relevance, cutoff, rtol=rtol)
    value, gradient = plr.expected_ap(scores, relevance, cutoff, rtol=rtol, gradient=True)
    largest = min(cutoff, found) / found
    of_norm = np.linalg.norm(gradient - best[1]) / max(np.linalg.norm(best[1]), 1e-3 / found)
    return np.array([abs(alone[0] - best[0]) / largest, abs(value[0] - best[0]) / largest, of_norm]) / rtol


def relevant_documents(rng, n_docs, share):
    """Relevance of both kinds, above and not above 0, at least one document of each."""
    relevance = np.where(rng.random(n_docs) < share, rng.uniform(0.1, 3.0, n_docs), rng.choice([0.0, -1.0], n_docs))
    relevance[:2] = 1.0, 0.0
    return rng.permutation(relevance)


class TestEnumeration:
    """All D! rankings at rtol = 1e-10.

    Mutants: a product of four factors without the items' own gains, or without the gains of pairs; theta_K taken off
    for another number of relevant documents where every item is placed; the relevant items that left before a panel not
    counted; terms of ``divide_precision_upwards`` and ``divide_precision_downwards`` left out; theta_(m+1) left out of
    the series; a quartet with relevant and irrelevant items; B in place of G for irrelevant ones.
    """

    @pytest.mark.parametrize("spread", [0.0, 0.3, 1.0, 3.0, 10.0, 30.0])
    @pytest.mark.parametrize("n_docs", [1, 2, 3, 4, 5, 6])
    def test_every_cutoff(self, n_docs, spread):
        rng = np.random.default_rng([n_docs, int(10 * spread)])
        for cutoff, share in itertools.product(range(1, n_docs + 2, 1 + n_docs // 6), (0.3, 0.7)):
            scores, relevance = spread * rng.normal(size=n_docs), (rng.random(n_docs) < share) * 1.0
            value, gradient = reference.expected_average_precision(scores, relevance, cutoff)
            got = plr.expected_ap(scores, relevance, cutoff, rtol=1e-10, gradient=True)
            np.testing.assert_allclose(got[0], value, rtol=0, atol=1e-10)
            np.testing.assert_allclose(got[1], gradient, rtol=0, atol=1e-10)
            np.testing.assert_allclose(
                plr.expected_ap(scores, relevance, cutoff, rtol=1e-10), value, rtol=0, atol=1e-10
            )


class TestBound:
    @pytest.mark.filterwarnings("ignore:scores look like grades")
    def test_seeded_sweep(self):
        """Random problems at coarse tolerances against one of 1e-10, which other tests hold to references.

        Mutants: the differences of the bounds at complex times a thousandth of what they are, which takes errors of
        the value to 17 times their bound; the first R rank weights, which bound what is lost at the end, a hundredth.
        """
        rng, worst = np.random.default_rng(7), np.zeros(3)
        for i in range(2000):
            n_docs = int(rng.choice([2, 3, 4, 8, 25, 60], p=[0.2, 0.2, 0.2, 0.2, 0.15, 0.05]))
            cutoff, rtol = int(rng.integers(1, n_docs + 1)), 10.0 ** rng.uniform(-7, -0.3)
            scores = scores_of(REGIMES[i % len(REGIMES)], rng, n_docs)
            relevance = relevant_documents(rng, n_docs, rng.choice([0.0, 0.2, 0.8, 1.0]))
            options = {"cutoff": cutoff, "gradient": True, "n_threads": 1}
            value, gradient = plr.expected_ap(scores, relevance, rtol=1e-10, **options)
            worst = np.maximum(worst, over_bounds(scores, relevance, cutoff, rtol, (value[0], gradient)))
        assert (worst <= 1).all(), worst
        assert worst[1:].max() >= 0.1

    @pytest.mark.parametrize("regime", REGIMES)
    def test_trapezoid(self, regime):
        """Lists by division, series and power sums, bands and panels; few relevant documents and many.

        Mutants: the counts of small items left out of H; the term with i P left out of their G; the wrong power of z in
        a product of four factors.
        """
        rng = np.random.default_rng(REGIMES.index(regime))
        for n_docs, cutoff in [(9, 4), (24, 10), (40, 33), (40, 40), (60, 3), (60, 1)]:
            for share in (0.1, 0.6):
                scores, relevance = scores_of(regime, rng, n_docs), relevant_documents(rng, n_docs, share)
                best = trapezoid_reference.average_precision(scores, relevance, cutoff)
                for rtol in (1e-3, 1e-6, 1e-10):
                    assert (over_bounds(scores, relevance, cutoff, rtol, best) <= 1).all()

    @pytest.mark.parametrize(
        ("n_docs", "cutoff", "spread", "share"),
        [(4000, 3, 1.0, 0.01), (900, 8, 3.0, 0.5), (2000, 10, 0.3, 0.1), (320, 10, 1.0, 0.9)],
    )
    def test_compressed_lists(self, n_docs, cutoff, spread, share):
        """Light documents of long lists are interpolated.

        Mutants: proxies that count by ``rho_mass``, with its factor w; relevant documents that get the derivative of
        irrelevant ones.
        """
        rng = np.random.default_rng([n_docs, cutoff])
        scores, relevance = spread * rng.normal(size=n_docs), relevant_documents(rng, n_docs, share)
        best = trapezoid_reference.average_precision(scores, relevance, cutoff)
        for rtol in (1e-3, 1e-6, 1e-10):
            assert (over_bounds(scores, relevance, cutoff, rtol, best) <= 1).all()


class TestKnownValues:
    def test_all_or_none_relevant(self):
        """Mutants: the integral of a metric that all rankings share; ``empty`` left out."""
        scores = np.random.default_rng(2).normal(size=9)
        for cutoff in (1, 4, 9, 20):
            value, gradient = plr.expected_ap(scores, np.ones(9), cutoff, gradient=True)
            assert value == min(cutoff, 9) / 9
            assert not gradient.any()
        value, gradient = plr.expected_ap(scores, np.zeros(9), empty=0.25, gradient=True)
        assert value == 0.25
        assert not gradient.any()
