"""Exact gradient, Hessian diagonal and value for scores with normal noise, and with Gumbel noise of any scale."""

import itertools

import numpy as np
import pytest
from numpy.polynomial import chebyshev

import plrank_fast as plr
from plrank_fast import reference
from problems import REGIMES, rank_weights_of_a_kind, relevance_of_a_kind, scores_of
from test_exact import far_finer, promised


def normal(*arguments, **options):
    return plr.pl_rank_exact(*arguments, noise="normal", **options)


def by_enumeration(scores, relevance, rank_weights):
    """Value, gradient and Hessian diagonal from the probability of every ranking and its derivatives.

    P(u_a > u_b > ..) is an iterated integral, int phi(u - f_a) int_{v < u} phi(v - f_b) .., each taken as the
    antiderivative of a Chebyshev series; derivatives by a score are those of its density. Nothing is shared with the
    library: no chance p, no polynomial in z.
    """
    n_docs, cutoff = scores.size, min(rank_weights.size, scores.size)
    lowest, width = scores.min() - 8.5, np.ptp(scores) + 17.0
    n_points = 60 + int(6 * width)
    angles = np.pi * (np.arange(n_points) + 0.5) / n_points
    points = lowest + 0.5 * width * (1.0 + np.cos(angles))
    to_series = np.cos(np.outer(np.arange(n_points), angles)) * 2.0 / n_points
    to_series[0] /= 2.0
    integral = chebyshev.chebint(to_series, lbnd=-1.0, scl=0.5 * width)
    up_to = chebyshev.chebval(np.append(np.cos(angles), 1.0), integral).T  # last row: the whole integral
    x = points - scores[:, np.newaxis]
    density = reference.normal_density(x)
    shapes = density, density * x, density * (x**2 - 1.0)

    def probability(ranking, kinds):
        below = np.ones(n_points + 1)
        for item in reversed(ranking):
            below = up_to @ (shapes[kinds[item]][item] * below[:-1])
        return below[-1]

    value, gradient, hessian = 0.0, np.zeros(n_docs), np.zeros(n_docs)
    for ranking in itertools.permutations(range(n_docs)):
        metric = rank_weights[:cutoff] @ relevance[list(ranking[:cutoff])]
        value += metric * probability(ranking, [0] * n_docs)
        for d in range(n_docs):
            gradient[d] += metric * probability(ranking, [int(i == d) for i in range(n_docs)])
            hessian[d] += metric * probability(ranking, [2 * int(i == d) for i in range(n_docs)])
    return value, gradient, hessian


class TestEnumeration:
    """Mutants: x^2 in place of x^2 - 1; B without theta_{K+1} = 0; hazards of neighbours swapped."""

    @pytest.mark.parametrize("spread", [0.0, 1.0, 4.0])
    @pytest.mark.parametrize("n_docs", [1, 2, 3, 4])
    def test_every_cutoff(self, n_docs, spread):
        rng = np.random.default_rng([n_docs, int(10 * spread)])
        for cutoff in [n_docs - 1, n_docs] if n_docs == 4 else range(n_docs + 2):
            scores = spread * rng.normal(size=n_docs)
            relevance = rng.normal(size=n_docs) * rng.integers(0, 2, size=n_docs)
            weights = rng.normal(size=cutoff)
            value, gradient, hessian = by_enumeration(scores, relevance, weights)
            for sigma in (1.0, 0.3):
                got, diagonal = normal(sigma * scores, relevance, weights, rtol=1e-10, hessian=True, sigma=sigma)
                np.testing.assert_allclose(sigma * got, gradient, rtol=0, atol=2e-10)
                np.testing.assert_allclose(sigma**2 * diagonal, hessian, rtol=0, atol=2e-10)
                shown = plr.expected_metric(sigma * scores, relevance, weights, rtol=1e-10, noise="normal", sigma=sigma)
                np.testing.assert_allclose(shown, value, rtol=0, atol=2e-10)

    def test_two_documents_in_closed_form(self):
        """P(first above second) = Phi(x / sqrt 2), x the distance over sigma, whatever the distance."""
        for distance, sigma in itertools.product([0.0, 0.3, -2.0, 5.0, -9.0, 30.0], [0.1, 1.0, 7.0]):
            x = distance / np.sqrt(2)
            slope = reference.normal_density(x) / np.sqrt(2)
            scores, relevance, weights = [distance * sigma + 3.0, 3.0], [2.0, 1.0], [1.0, 0.25]
            got, diagonal = normal(scores, relevance, weights, rtol=1e-10, sigma=sigma, hessian=True)
            np.testing.assert_allclose(got * sigma, 0.75 * slope * np.array([1, -1]), rtol=0, atol=1e-12)
            curvature = -0.75 * x / np.sqrt(2) * slope
            np.testing.assert_allclose(diagonal * sigma**2, [curvature, curvature], rtol=0, atol=1e-12)
            value = plr.expected_metric(scores, relevance, weights, rtol=1e-10, noise="normal", sigma=sigma)[0]
            above = reference.normal_cdf(np.array([x]))[0]
            assert value == pytest.approx(0.25 * 2 + 1 + 0.75 * (2 - 1) * above - 0.0, abs=1e-9)


class TestPromise:
    def test_seeded_sweep(self):
        """3,000 problems against the same kernel at rtol = 1e-14 (which test_trapezoid checks independently).

        Mutants: spacing of the nodes times 1.6; no second look at the sum of the gradient together with 1.35; sections
        ending at a flux of 1e-3.
        """
        rng = np.random.default_rng(11)
        worst = worst_hessian = worst_value = 0.0
        for i in range(3000):
            n_docs = int(rng.choice([2, 3, 5, 9, 24, 50, 120], p=[0.1, 0.15, 0.2, 0.2, 0.2, 0.1, 0.05]))
            cutoff = int(rng.integers(1, n_docs + 1)) if rng.random() < 0.7 else n_docs
            scores = scores_of(REGIMES[i % len(REGIMES)], rng, n_docs)
            relevance, weights = relevance_of_a_kind(rng, n_docs), rank_weights_of_a_kind(rng, cutoff)
            rtol = 10.0 ** -rng.integers(3, 11) if rng.random() < 0.5 else 1e-6
            if not relevance.any() or not weights.any():
                continue
            gradient = normal(scores, relevance, weights, rtol=rtol)
            value = plr.expected_metric(scores, relevance, weights, rtol=rtol, noise="normal")
            best_value, best, best_hessian = far_finer(scores, relevance, weights, normal=True)
            worst = max(worst, promised(gradient, best, relevance, weights) / rtol)
            scale = np.abs(weights).sum() * np.abs(relevance).max()
            worst_value = max(worst_value, abs(value[0] - best_value) / scale / rtol)
            _, hessian = normal(scores, relevance, weights, rtol=rtol, hessian=True)
            worst_hessian = max(worst_hessian, promised(hessian, best_hessian, relevance, weights) / rtol)
        print(f"worst error / promise: gradient {worst:.3f}, Hessian {worst_hessian:.3f}, value {worst_value:.3f}")
        assert worst <= 1
        assert worst_hessian <= 1
        assert worst_value <= 1

    @pytest.mark.parametrize("regime", REGIMES)
    def test_trapezoid(self, regime):
        """Against an even rule of far more nodes and another evaluator (adjoints instead of series and division)."""
        rng = np.random.default_rng(REGIMES.index(regime))
        for n_docs, cutoff in [(9, 4), (24, 10), (24, 24), (40, 33), (60, 3), (60, 1)]:
            scores = scores_of(regime, rng, n_docs)
            relevance, weights = rng.normal(size=n_docs) * (rng.random(n_docs) < 0.7), plr.dcg_weights(cutoff)
            relevance[0] = 1.0
            value, gradient, hessian = reference.exact_normal_by_trapezoid(scores, relevance, weights)
            got, diagonal = normal(scores, relevance, weights, rtol=1e-10, hessian=True)
            assert promised(got, gradient, relevance, weights) < 1e-10
            assert promised(diagonal, hessian, relevance, weights) < 1e-10
            got = plr.expected_metric(scores, relevance, weights, rtol=1e-10, noise="normal")[0]
            assert abs(got - value) < 1e-9

    @pytest.mark.parametrize(("n_docs", "cutoff"), [(316, 100), (316, 316), (1000, 10), (1000, 300)])
    @pytest.mark.parametrize("spread", [0.0, 1.0, 4.0])
    def test_long_lists(self, n_docs, cutoff, spread):
        rng = np.random.default_rng([n_docs, cutoff])
        scores, relevance = spread * rng.normal(size=n_docs), 2.0 ** rng.integers(0, 5, size=n_docs) - 1
        weights = plr.dcg_weights(cutoff)
        _, best, _ = far_finer(scores, relevance, weights, normal=True)
        for rtol in (1e-4, 1e-6, 1e-8):
            assert promised(normal(scores, relevance, weights, rtol=rtol), best, relevance, weights) <= rtol

    @pytest.mark.parametrize("kind", ["falling", "equal", "alternating", "last"])
    @pytest.mark.parametrize(
        ("n_docs", "cutoff", "rtol"),
        [(451, 3, 1e-8), (6402, 50, 1e-10), (9000, 20, 1e-10), (14346, 4, 1e-9), (40_000, 100, 1e-6)],
    )
    def test_equal_scores_in_long_lists(self, n_docs, cutoff, rtol, kind):
        """By symmetry the value is mean(rho) sum(theta), and the gradient a multiple of rho less its mean.

        Mutants: sections of a whole bin; a step of the rule that may turn i y by two radians.
        """
        ranks = np.arange(cutoff)
        rank_weights = {
            "falling": plr.dcg_weights(cutoff), "equal": np.ones(cutoff), "alternating": (-1.0) ** ranks,
            "last": 1.0 * (ranks == cutoff - 1),
        }[kind]  # fmt: skip
        scores, relevance = np.zeros(n_docs), 1.0 * (np.arange(n_docs) % 3 == 0)
        value = plr.expected_metric(scores, relevance, rank_weights, noise="normal", rtol=rtol)[0]
        assert abs(value - relevance.mean() * rank_weights.sum()) <= rtol * np.abs(rank_weights).sum()
        gradient, centred = normal(scores, relevance, rank_weights, rtol=rtol), relevance - relevance.mean()
        multiple = centred * (gradient @ centred) / (centred @ centred)
        assert promised(gradient, multiple, relevance, rank_weights) <= rtol
        assert abs(gradient.sum()) <= rtol * np.sqrt(n_docs) * max(np.linalg.norm(gradient), 1e-3)

    @pytest.mark.parametrize("seed", [23, 40])
    def test_rank_weights_of_any_sign(self, seed):
        """Mutants: refusal from a tenth of the error bound on; twenty times the bound of rounding."""
        rng = np.random.default_rng(seed)
        labels, rank_weights = rng.choice(5, p=[0.52, 0.32, 0.13, 0.02, 0.01], size=1157), rng.normal(size=1157)
        relevance = plr.gains(labels)
        gradient, _ = normal(np.zeros(1157), relevance, rank_weights, rtol=1e-9, hessian=True)
        centred = relevance - relevance.mean()
        multiple = centred * (gradient @ centred) / (centred @ centred)
        assert promised(gradient, multiple, relevance, rank_weights) <= 1e-9

    def test_derivatives(self):
        """The gradient is the slope of the value, the Hessian that of the gradient."""
        rng = np.random.default_rng(3)
        scores, relevance, weights = rng.normal(size=30), rng.normal(size=30), plr.dcg_weights(12)
        options = {"rtol": 1e-10, "noise": "normal", "sigma": 0.7}
        gradient, hessian = plr.pl_rank_exact(scores, relevance, weights, hessian=True, **options)
        for d in (0, 7, 29):
            step = np.where(np.arange(30) == d, 1e-4, 0)
            up, down = (plr.pl_rank_exact(scores + s, relevance, weights, **options) for s in (step, -step))
            assert (up[d] - down[d]) / 2e-4 == pytest.approx(hessian[d], abs=1e-7)
            up, down = (plr.expected_metric(scores + s, relevance, weights, **options) for s in (step, -step))
            assert (up - down)[0] / 2e-4 == pytest.approx(gradient[d], abs=1e-7)

    @pytest.mark.parametrize(("n_docs", "cutoff", "sigma"), [(8, 3, 1.0), (60, 10, 1.0), (60, 60, 0.5), (200, 5, 2.0)])
    def test_drawn_noise_agrees(self, n_docs, cutoff, sigma):
        """Within 6.5 standard errors in every coordinate: alpha below 1e-9 each."""
        rng = np.random.default_rng([n_docs, cutoff])
        scores, relevance, weights = rng.normal(size=n_docs), rng.normal(size=n_docs), rng.normal(size=cutoff)
        exact = normal(scores, relevance, weights, rtol=1e-9, sigma=sigma)
        options = {"noise": "normal", "sigma": sigma, "n_samples": 1000, "n_threads": 1}
        parts = np.array([plr.stochastic_rank(scores, relevance, weights, rng=seed, **options) for seed in range(200)])
        z = (parts.mean(axis=0) - exact) / (parts.std(axis=0, ddof=1) / np.sqrt(len(parts)))
        assert np.abs(z).max() < 6.5


class TestGaps:
    """Mutants: a chain's first rank not moved by those above it; windows that forget who rang before they start."""

    @pytest.mark.parametrize("gap", [14.0, 16.0, 36.0, 100.0, 760.0, 1e6, 1e15, 1e308])
    def test_blocks_far_apart_are_lists_of_their_own(self, gap):
        rng = np.random.default_rng(1)
        above, below = rng.normal(size=4) * (gap < 1e15), rng.normal(size=7) * (gap < 1e15)
        relevance, weights = rng.normal(size=11), rng.normal(size=8)
        scores = np.concatenate([above + gap, below - (gap if gap > 1e300 else 0)])
        gradient, hessian = normal(scores, relevance, weights, rtol=1e-10, hessian=True)
        first = normal(above, relevance[:4], weights[:4], rtol=1e-10, hessian=True)
        second = normal(below, relevance[4:], weights[4:], rtol=1e-10, hessian=True)
        np.testing.assert_allclose(gradient, np.concatenate([first[0], second[0]]), rtol=0, atol=1e-9)
        np.testing.assert_allclose(hessian, np.concatenate([first[1], second[1]]), rtol=0, atol=1e-9)

    @pytest.mark.parametrize(("distance", "cutoff"), [(3.0, 300), (6.0, 300), (4.0, 120), (11.5, 90)])
    def test_chain_wider_than_a_plan(self, distance, cutoff):
        """300 items at about this distance of each other, in any order; windows overlap by what noise can bridge."""
        rng = np.random.default_rng(0)
        scores = -distance * (np.arange(300) + 0.3 * rng.random(300))
        relevance, weights = rng.normal(size=300), rng.random(cutoff)
        best = np.zeros(300)
        for start in range(0, 300, 10):
            low, high = max(0, start - 8), min(300, start + 18)
            if low < cutoff:
                _, window, _ = far_finer(scores[low:high], relevance[low:high], weights[low:], normal=True)
                best[start : start + 10] = window[start - low : start - low + 10]
        order = rng.permutation(300)
        gradient, value = np.zeros(300), plr.expected_metric(scores, relevance, weights, noise="normal", rtol=1e-9)
        gradient[order] = normal(scores[order], relevance[order], weights, rtol=1e-9)
        assert promised(gradient, best, relevance, weights) < 1e-9
        if distance > 6:
            assert value[0] == pytest.approx(weights @ relevance[:cutoff], abs=1e-3)
        assert np.isfinite(gradient).all()

    def test_scales_of_noise(self):
        rng = np.random.default_rng(0)
        scores, relevance, weights = rng.normal(size=20), rng.normal(size=20), plr.dcg_weights(7)
        for noise in ("normal", "gumbel"):
            plain = plr.pl_rank_exact(scores, relevance, weights, noise=noise, rtol=1e-9, hessian=True)
            for sigma in (1e-60, 1e-3, 0.5, 40.0, 1e60):
                how = {"noise": noise, "sigma": sigma, "rtol": 1e-9}
                got = plr.pl_rank_exact(scores * sigma, relevance, weights, **how)
                np.testing.assert_allclose(got * sigma, plain[0], rtol=0, atol=1e-8)
                got = plr.pl_rank_exact(scores * sigma, relevance, weights, hessian=True, **how)
                np.testing.assert_allclose(got[0] * sigma, plain[0], rtol=0, atol=1e-8)
                np.testing.assert_allclose(got[1] * sigma**2, plain[1], rtol=0, atol=1e-8)
            for far in ([1e308, 1e308, -1e308, -1.2e308], [1e308, 1e308, 0.0, -1.0]):
                with np.errstate(all="raise"):
                    got = plr.pl_rank_exact(far, [1.0, 0.0, 0.0, 1.0], [1.0, 0.5, 0.2], noise=noise, sigma=1e-5)
                slope = 0.25 if noise == "gumbel" else 1 / np.sqrt(4 * np.pi)
                np.testing.assert_allclose(got, 0.5 * slope / 1e-5 * np.array([1, -1, 0, 0]), rtol=1e-5)
        flat = normal(scores, relevance, weights, sigma=1e8)
        assert promised(flat * 1e8, normal(np.zeros(20), relevance, weights), relevance, weights) < 1e-6

    @pytest.mark.parametrize("sigma", [0.7, np.ldexp(0.7, -199), np.ldexp(0.7, 200)])
    @pytest.mark.parametrize("noise", ["gumbel", "normal"])
    def test_scores_far_from_zero(self, noise, sigma):
        """The common part of scores is subtracted before they are divided by sigma. Mutants: scores over sigma in
        Python, the highest of a list subtracted from all of its panels."""
        near, unit = np.array([0.0, 1.0, 2.0, 300.0, 300.75]), sigma / 0.7
        relevance, options = np.array([1.0, -1.0, 0.5, 2.0, 0.0]), {"noise": noise, "sigma": sigma, "rtol": 1e-10}
        best = 0.7 * plr.pl_rank_exact(near, relevance, plr.dcg_weights(4), noise=noise, sigma=0.7, rtol=1e-10)
        for far in (near + 2.0**33, np.where(near < 3, near, near + 1e8)):
            got = sigma * plr.pl_rank_exact(far * unit, relevance, plr.dcg_weights(4), **options)
            assert promised(got, best, relevance, plr.dcg_weights(4)) < 2e-10


class TestEdges:
    def test_turned_round(self):
        """Seen from the other end, ranks and scores turn round."""
        scores, relevance = np.random.default_rng(0).normal(size=(2, 40))
        turned = normal(-scores, relevance, plr.dcg_weights(40)[::-1].copy(), rtol=1e-10)
        np.testing.assert_allclose(-turned, normal(scores, relevance, plr.dcg_weights(40), rtol=1e-10), atol=1e-9)

    def test_sampled_values_are_those_of_plackett_luce(self):
        for options in ({"noise": "normal"}, {"sigma": 2.0}):
            with pytest.raises(ValueError, match=r"noise and sigma can only be set with method='exact'"):
                plr.expected_metric([0.0, 1.0], [0.0, 1.0], [1.0], method="sample", **options)
