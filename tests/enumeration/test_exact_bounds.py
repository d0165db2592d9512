"""The error bound of ``pl_rank_exact``: problems on which it is hard to keep, and the nodes that it asks for."""

import itertools

import numpy as np
import pytest

import plrank_fast as plr
from adversarial_problem import random_problem
from plrank_fast import reference
from quadrature_nodes import GAP, Panel, PrecisionPanel, effort
from test_exact import error_of, far_finer, over_bounds


class TestEndsOfPanels:
    """A panel ends before an item has arrived, with probability q = e^-x; its gradient loses x q and not q.

    Mutant: panels that end at x = log(n / cut).
    """

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
                    problem = -np.array(distances), relevance, rank_weights
                    best = reference.exact_by_subsets(*problem)
                    worst = max(worst, *(over_bounds(problem, best, rtol).max() for rtol in (1e-6, 1e-10)))
        assert worst <= 1

    def test_ends_between_steps(self):
        """Two items that a gap parts from the others, of which one alone has another relevance: its Hessian diagonal is
        the loss at the end. Mutant: an end that the bound has not confirmed, at .91 of the error bound."""
        scores = np.concatenate([[18.2, 12.6, 12.6, 0.5, 0.0], np.linspace(-44.8, -57.8, 13)])
        relevance = np.random.default_rng(1).uniform(0.8, 1.2, 18)
        relevance[4] = 0.0
        _, _, best = far_finer(scores, relevance, np.ones(16))
        for rtol in np.geomspace(1e-8, 1e-5, 40):
            _, diagonal = plr.pl_rank_exact(scores, relevance, np.ones(16), rtol=rtol, hessian=True)
            assert error_of(diagonal, best, relevance, np.ones(16)) <= 0.5 * rtol


class TestPanels:
    """All panels of a list share the error bound of its value: nothing but their own bounds shows that errors add up.

    Mutants: each panel's value may err by the whole bound; half of what is left for the last panel too, or all of it
    for each (the test of attacks).
    """

    def test_list_over_hundreds_of_sigma(self):
        """Six windows of normal noise, found by climbing: 1.06 of the bound where each window could take all of it."""
        scores = [244, 242, 141, 104, 101, 100, 70, 70, 68, 65, 65, 64, 62, 38, 34, 33.9, 33, 32, 28, -6, -8]
        relevance = [1, 1, 0.6, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1.6, 1, 1, 1, 1, 0, 1, 0]
        rank_weights = [0, -1, -0.001744, -1, 0, 0, 0, -1, 0, 0, -1, 0, 0, 0, 0, 1, -1, 1, 0, -1]
        value, _, _ = far_finer(scores, relevance, rank_weights, noise="normal")
        got = plr.expected_metric(scores, relevance, rank_weights, noise="normal", rtol=4.5e-7)[0]
        assert abs(got - value) <= 4.5e-7 * np.abs(rank_weights).sum() * 1.6

    @pytest.mark.parametrize("noise", ["gumbel", "normal"])
    def test_lists_far_apart(self, noise):
        rng, worst = np.random.default_rng(2), 0.0
        for _ in range(3000):
            scores = np.cumsum(rng.exponential(size=58)) * 10.0 ** rng.uniform(0.5, 2)
            relevance, rank_weights = rng.integers(0, 2, 58) * 1.0, rng.integers(-1, 2, 50) * 1.0
            rtol = 10.0 ** rng.uniform(-8, -4)
            coarse, fine = (
                plr.expected_metric(scores, relevance, rank_weights, noise=noise, rtol=x)[0] for x in (rtol, 1e-10)
            )
            worst = max(worst, abs(coarse - fine) / (rtol * np.abs(rank_weights).sum()))
        assert worst <= 0.8


class TestBand:
    """Coefficients far below the expected arrivals are left out, and what goes upwards makes that error larger.

    A climb on lists of 338 found 1.6 times the bound at rtol .47, a rank weight at a single rank. Mutant: what it
    takes to go from the band's lower end to the last rank left out of ``reach_below`` (``log_r`` 0).
    """

    @pytest.mark.parametrize("seed", [128, 76, 348, 140, 333, 280, 141, 378])
    def test_single_rank(self, seed):
        rng = np.random.default_rng(seed)
        n_docs = int(rng.integers(60, 340))
        rank_weights = np.zeros(int(rng.integers(33, min(n_docs, 60))))
        scores = rng.choice([0.3, 0.6, 1.0]) * rng.normal(size=n_docs)
        relevance = rng.normal(size=n_docs) + rng.choice([0.0, 8.0])
        rank_weights[rng.integers(rank_weights.size // 2, rank_weights.size)] = 1.0
        problem = scores, relevance, rank_weights
        for rtol in (0.5, 0.3, 0.1):
            assert over_bounds(problem, far_finer(*problem), rtol)[1:].max() <= 0.02


class TestBoundOfIntegrands:
    @pytest.mark.chosen_path
    @pytest.mark.parametrize("kind", ["gradient", "hessian", "average_precision"])
    def test_number_of_nodes(self, kind):
        """The number of nodes changes at the very tolerance at which the bound in NumPy asks for more.

        Mutants: the Hessian's factor left out of the sum over pairs; the variance not tilted; pairs, open ranks or
        counts left out; relevance of a bin 5 % too small; variance or distance of all items; an end by the chord; the
        mean of relevance not subtracted; nodes planned for a norm thirty times as large; half of
        the points of a mean, or ellipses on which time turns by more than a right angle. Of average precision: weights
        of pairs a thousandth as large, or the weights of single items; one relevant item counted in place of all.
        """
        checked, options, panel = 0, {} if kind == "gradient" else {kind: True}, Panel
        if kind == "average_precision":
            panel = PrecisionPanel
        for seed in range(150):
            problem = random_problem(seed, 200)
            arrays = problem.scores, problem.relevance, problem.rank_weights
            if kind == "average_precision":
                arrays = problem.scores, (problem.relevance > problem.relevance.mean()) * 1.0, problem.rank_weights
            high, low = -2.0, -9.5  # log10 of rtol
            nodes = effort(*arrays, rtol=10.0**high, **options)[1]
            while high - low > 1e-3:
                middle = (low + high) / 2
                more = effort(*arrays, rtol=10.0**middle, **options)[1] > nodes
                low, high = (middle, high) if more else (low, middle)
            fewer, more = (effort(*arrays, rtol=10.0**x, **options) for x in (high, low))
            gap = np.diff(np.sort(problem.scores)).max()
            if gap < GAP - 1 and (fewer[0], more[0]) == (1, 1) and nodes < more[1] <= 512:
                around = (high + 0.02, high, low, low - 0.02)
                before, last, first, after = (
                    panel(*arrays, 10.0**x, hessian=kind == "hessian").nodes() for x in around
                )
                if after - before < 0.2:  # else the end moves by half a step
                    assert last < nodes + 5e-3
                    assert first > nodes - 5e-3
                    checked += 1
        assert checked >= 40

    def test_one_document_ahead(self):
        """The first document doubles each coefficient of P at times when it turns by half a circle.

        Mutants: sums of the first coefficients bounded by 1 plus C times the probability of the others, also without
        the document; that factor C left out.
        """
        scores = np.concatenate([[9.0, 4.0], np.linspace(-2.0, 0.6, 43)])
        relevance = 1.0 + 0.2 * np.sin(np.arange(45.0))
        relevance[0] = 0.87
        problem = scores, relevance, np.ones(8)
        assert over_bounds(problem, far_finer(*problem), 1e-8).max() <= 0.1


class TestRange:
    @pytest.mark.parametrize(
        ("noise", "n_docs", "cutoff", "spread"), [("gumbel", 2500, 1200, 0.3), ("normal", 1000, 999, 0.0)]
    )
    def test_a_bound_that_rounding_exceeds_is_an_error(self, noise, n_docs, cutoff, spread):
        """Rank weights that go up and down over a thousand ranks: rounding of what cancels is more than 1e-10 of what
        is left of the gradient. Mutant: what the last attempt shows of its error not looked at."""
        scores, relevance = spread * np.random.default_rng(0).normal(size=n_docs), 1.0 * (np.arange(n_docs) % 3 == 0)
        rank_weights, out = (-1.0) ** np.arange(cutoff), np.full(n_docs, 7.0)
        batch = np.append(0.0, scores), np.append(0.0, relevance), rank_weights
        with pytest.raises(ArithmeticError, match=r"rtol=1e-10 cannot be held for query 1: .* pass rtol=\d.* or more"):
            plr.pl_rank_exact(*batch, offsets=[0, 1, n_docs + 1], rtol=1e-10, noise=noise)
        with pytest.raises(ArithmeticError, match="rtol=1e-10 cannot be held for query 0"):
            plr.pl_rank_exact(scores, relevance, rank_weights, rtol=1e-10, noise=noise, out=out)
        assert (out == 7.0).all()
        assert error_of(
            plr.pl_rank_exact(scores, relevance, rank_weights, rtol=1e-6, noise=noise),
            plr.pl_rank_exact(scores, relevance, rank_weights, rtol=1e-9, noise=noise), relevance, rank_weights,
        ) <= 1e-6  # fmt: skip

    def test_limits_are_in_range(self):
        problem = [0.0, 1.0, 5.0], [0.0, 1.0, -1.0], [1.0, 0.5]
        for rtol in (1e-10, 0.999):
            assert over_bounds(problem, reference.exact_by_subsets(*problem), rtol).max() <= 1

    def test_large_relevance_beside_one_that_arrives_first(self):
        """Odds of e^570 times relevance of 2^199 are beyond a double, and times a coefficient of 0 not a number.

        Found by climbing. Mutant: 600 in place of ``LARGEST_LOG_CONSTANT``.
        """
        relevance = np.ldexp(1.0 - np.linspace(0.0, 0.06, 12), 199)
        for top in np.linspace(13.4, 13.6, 9):
            scores = np.concatenate([[top], np.linspace(4.46, -1.28, 11)])
            gradient, diagonal = plr.pl_rank_exact(scores, relevance, [1.0], rtol=1e-9, hessian=True)
            far = plr.pl_rank_exact(scores, np.ldexp(relevance, -199), [1.0], rtol=1e-9, hessian=True)
            np.testing.assert_allclose(np.ldexp(gradient, -199), far[0], rtol=0, atol=1e-12)
            np.testing.assert_allclose(np.ldexp(diagonal, -199), far[1], rtol=0, atol=1e-12)


def test_exposure_at_a_tolerance_that_can_be_held():
    """The advice of the error is an argument of the function. Mutant: the default tolerance in its place."""
    weights = (-1.0) ** np.arange(1500)
    with pytest.raises(ArithmeticError, match="pass rtol="):
        plr.exposure(np.zeros(1500), weights)
    assert np.linalg.norm(plr.exposure(np.zeros(1500), weights, rtol=1e-8)) < 1e-11
