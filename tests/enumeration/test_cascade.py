"""Metrics of readers who stop: references among each other, and the exact kernel against them."""

import itertools

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import reference
from problems import REGIMES, rank_weights_of_a_kind, scores_of
from test_exact import error_of

KINDS_OF_STOP = ("none", "all", "relevant", "grades", "any", "one", "nearly")


def stop_of_a_kind(kind, rng, n_docs):
    """Chances to stop at each document."""
    return {
        "none": np.zeros(n_docs),
        "all": np.ones(n_docs),
        "relevant": rng.integers(0, 2, size=n_docs).astype(float),
        "grades": (2.0 ** rng.integers(0, 5, size=n_docs) - 1) / 16,
        "any": rng.random(n_docs),
        "one": (np.arange(n_docs) == rng.integers(n_docs)) * 1.0,
        "nearly": 1 - 10.0 ** -rng.uniform(1, 15, size=n_docs),
    }[kind]


def problem_of(kind, n_docs, cutoff, spread=1.0):
    """Scores, relevance with zeros, rank weights, both signed, and chances to stop."""
    rng = np.random.default_rng([KINDS_OF_STOP.index(kind), n_docs, cutoff, int(10 * spread)])
    relevance = rng.normal(size=n_docs) * (rng.random(n_docs) < 0.7)
    return spread * rng.normal(size=n_docs), relevance, rng.normal(size=cutoff), stop_of_a_kind(kind, rng, n_docs)


class TestReferences:
    """Mutants: later ranks reached by all readers in a derivative; z - 1 for the derivative of q + s p z."""

    @pytest.mark.parametrize("kind", KINDS_OF_STOP)
    @pytest.mark.parametrize("n_docs", [1, 2, 4, 5, 6])
    def test_sets_and_quadrature_against_all_rankings(self, kind, n_docs):
        for cutoff in range(1, n_docs + 2):
            *problem, stop = problem_of(kind, n_docs, cutoff)
            expected = reference.exact_by_enumeration(*problem, stop)[:3]
            for got in (
                reference.exact_by_subsets(*problem, stop), reference.exact_by_trapezoid(*problem, step=0.04, stop=stop)
            ):  # fmt: skip
                for ours, theirs in zip(got, expected, strict=True):
                    np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-14)

    @pytest.mark.parametrize("kind", KINDS_OF_STOP)
    def test_normal_noise_by_differences(self, kind):
        scores, relevance, weights, stop = problem_of(kind, 4, 3)
        _, gradient, hessian = reference.exact_normal_by_trapezoid(scores, relevance, weights, stop=stop)
        for j, step in enumerate(1e-5 * np.eye(4)):
            above, below = (
                reference.exact_normal_by_trapezoid(moved, relevance, weights, stop=stop)
                for moved in (scores + step, scores - step)
            )
            assert abs((above[0] - below[0]) / 2e-5 - gradient[j]) < 1e-9
            assert abs((above[1][j] - below[1][j]) / 2e-5 - hessian[j]) < 1e-9


def over_bounds(problem, stop, best, *, rtol=1e-10, noise="gumbel"):
    """Errors over their bounds: value, gradient alone, gradient with the Hessian diagonal, that diagonal."""
    _, relevance, weights = problem
    options = {"rtol": rtol, "noise": noise, "stop": stop}
    both = plr.pl_rank_exact(*problem, hessian=True, **options)
    alone = plr.pl_rank_exact(*problem, **options)
    errors = [
        error_of(got, expected, relevance, weights)
        for got, expected in [(alone, best[1]), (both[0], best[1]), (both[1], best[2])]
    ]
    scale = np.abs(weights).sum() * np.abs(relevance).max()
    return np.array([abs(plr.expected_metric(*problem, **options)[0] - best[0]) / scale, *errors]) / rtol


class TestEnumeration:
    """All sets of documents at rtol = 1e-10.

    Mutants: odds without the chance to read on; R_j <theta_up, G_j> left out, or with odds that are not scaled, or
    without what the document itself gains; 1 for the product of q + s p over heavy documents; relevance or the last
    rank weight shifted; readers who have stopped in an earlier panel counted in the next.
    """

    @pytest.mark.parametrize("kind", KINDS_OF_STOP)
    @pytest.mark.parametrize("spread", [0.0, 0.3, 1.0, 3.0, 10.0, 30.0])
    def test_every_cutoff(self, kind, spread):
        for n_docs in range(1, 7):
            for cutoff in range(1, n_docs + 2):
                *problem, stop = problem_of(kind, n_docs, cutoff, spread)
                if problem[1].any():
                    assert over_bounds(problem, stop, reference.exact_by_subsets(*problem, stop)).max() <= 0.5

    @pytest.mark.parametrize("kind", KINDS_OF_STOP)
    def test_normal_noise(self, kind):
        for n_docs, cutoff, spread in [(2, 2, 1.0), (4, 3, 0.3), (5, 5, 3.0), (5, 3, 10.0)]:
            *problem, stop = problem_of(kind, n_docs, cutoff, spread)
            best = reference.exact_normal_by_trapezoid(*problem, stop=stop)
            assert over_bounds(problem, stop, best, noise="normal").max() <= 0.5


class TestLists:
    """Longer lists against the trapezoid rule and adjoints in place of series and division.

    Mutants: the chance to read on of each bin 0.3 times itself in ``tail_bound``; a millionth of the bound of gains;
    documents at which readers stop compressed with the others.
    """

    @pytest.mark.parametrize("kind", KINDS_OF_STOP[1:])  # a test below compares those who stop nowhere
    @pytest.mark.parametrize("noise", ["gumbel", "normal"])
    def test_regimes(self, kind, noise):
        rng = np.random.default_rng(KINDS_OF_STOP.index(kind))
        best_of = {"gumbel": reference.exact_by_trapezoid, "normal": reference.exact_normal_by_trapezoid}[noise]
        for (n_docs, cutoff), regime in zip(
            [(9, 4), (24, 10), (24, 24), (40, 33), (60, 3), (130, 60), (30, 2)], itertools.cycle(REGIMES), strict=False
        ):
            scores, stop = scores_of(regime, rng, n_docs), stop_of_a_kind(kind, rng, n_docs)
            relevance = rng.normal(size=n_docs) * (rng.random(n_docs) < 0.7)
            relevance[0] = 1.0
            weights = rank_weights_of_a_kind(rng, cutoff)
            problem = scores, relevance, weights if weights.any() else np.ones(cutoff)
            best = best_of(*problem, step=0.04, stop=stop)
            for rtol in (1e-3, 1e-6, 1e-10):
                assert over_bounds(problem, stop, best, rtol=rtol, noise=noise).max() <= 1

    @pytest.mark.parametrize(("n_docs", "cutoff", "share"), [(900, 8, 0.02), (900, 20, 0.6)])
    def test_long_lists(self, n_docs, cutoff, share):
        """Reciprocal rank, success and ERR; lists of which documents are compressed, and others."""
        rng = np.random.default_rng([n_docs, cutoff])
        scores = rng.normal(size=n_docs)
        relevant = (rng.random(n_docs) < share) * 1.0
        chance = relevant * (2.0 ** rng.integers(0, 5, size=n_docs) - 1) / 16
        for gain, weights in [(relevant, 1 / np.arange(1, cutoff + 1)), (relevant, np.ones(cutoff)),
                              (chance, 1 / np.arange(1, cutoff + 1))]:  # fmt: skip
            best = reference.exact_by_trapezoid(scores, gain, weights, step=0.1, stop=gain)
            for rtol in (1e-4, 1e-9):
                assert over_bounds((scores, gain, weights), gain, best, rtol=rtol).max() <= 1


class TestPanels:
    @pytest.mark.parametrize("gap", [16.0, 20.0, 36.0, 100.0, 760.0, 1e6, 1e15, 1e308])
    @pytest.mark.parametrize("noise", ["gumbel", "normal"])
    def test_lists_far_apart(self, noise, gap):
        """Those who have read the list above begin with the one below, at the rank after it."""
        rng = np.random.default_rng(3)
        above, below = rng.normal(size=4) * (gap < 1e15), rng.normal(size=7) * (gap < 1e15)
        relevance, weights, stop = rng.normal(size=11), rng.normal(size=8), rng.random(11) * (rng.random(11) < 0.7)
        scores = np.concatenate([above + gap, below - (gap if gap > 1e300 else 0)])
        options = {"rtol": 1e-10, "hessian": True, "noise": noise}
        whole = plr.pl_rank_exact(scores, relevance, weights, stop=stop, **options)
        parts = zip(
            plr.pl_rank_exact(above, relevance[:4], weights[:4], stop=stop[:4], **options),
            plr.pl_rank_exact(below, relevance[4:], weights[4:], stop=stop[4:], **options), strict=True,
        )  # fmt: skip
        tolerance = 1e-9 if noise == "normal" else 1e-8 + 200 * np.exp(-gap)
        for got, (first, second) in zip(whole, parts, strict=True):
            expected = np.append(first, second * (1 - stop[:4]).prod())
            np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)


class TestCalls:
    def test_who_stops_nowhere_changes_no_bit(self):
        """Zeros are as None: nothing is planned for readers who stop."""
        rng = np.random.default_rng(0)
        for n_docs, cutoff in [(3, 3), (40, 10), (400, 10)]:
            problem = rng.normal(size=n_docs), 1 + rng.random(n_docs), rng.normal(size=cutoff)
            for noise in ("gumbel", "normal"):
                for ours, theirs in zip(
                    plr.pl_rank_exact(*problem, stop=np.zeros(n_docs), hessian=True, noise=noise),
                    plr.pl_rank_exact(*problem, hessian=True, noise=noise), strict=True,
                ):  # fmt: skip
                    np.testing.assert_array_equal(ours, theirs)

    def test_value_and_gradient(self):
        *problem, stop = problem_of("any", 6, 4)
        for method in ("exact", "pl_rank_exact", "auto"):
            values, gradient = plr.value_and_gradient(*problem, stop=stop, method=method, rtol=1e-8)
            np.testing.assert_allclose(values, plr.expected_metric(*problem, stop=stop, rtol=1e-8), rtol=0, atol=1e-7)
            np.testing.assert_array_equal(gradient, plr.pl_rank_exact(*problem, stop=stop, rtol=1e-8))

    def test_methods_that_do_not_take_it(self):
        *problem, stop = problem_of("any", 4, 3)
        for method in ("pl_rank_3", "pl_rank_cmc"):
            with pytest.raises(ValueError, match="stop only goes with method='pl_rank_exact', got an array"):
                plr.value_and_gradient(*problem, stop=stop, method=method)
        with pytest.raises(ValueError, match="stop only goes with method='exact', got an array"):
            plr.expected_metric(*problem, stop=stop, method="sample")


@pytest.mark.parametrize("stops", [False, True])
def test_order_of_a_long_list(stops):
    """Where heavy documents, and those at which readers may stop, lie in a list of several blocks does not matter.

    Mutants: heavy documents of each block in the places of the first; those at which readers may stop not counted.
    """
    rng = np.random.default_rng(23)
    scores = np.sort(rng.normal(size=20_000))[::-1]
    relevance = rng.integers(0, 2, size=scores.size).astype(float)
    stop = np.where(np.arange(scores.size) < 40, 0.4, 0.0) if stops else None
    one = [0, scores.size]
    order, weights = rng.permutation(scores.size), plr.dcg_weights(20)
    expected = plr.pl_rank_exact(scores, relevance, weights, stop=stop, offsets=one)[order]
    moved = stop[order] if stops else None
    got = plr.pl_rank_exact(scores[order], relevance[order], weights, stop=moved, offsets=one)
    assert np.linalg.norm(got - expected) <= 2e-9 * np.linalg.norm(expected)
