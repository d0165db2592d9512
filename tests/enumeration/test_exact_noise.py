"""Exact gradient, Hessian diagonal and value for scores with normal noise, and with Gumbel noise of any scale."""

import itertools

import numpy as np
import pytest
from numpy.polynomial import chebyshev

import plrank_fast as plr
from plrank_fast import reference
from plrank_fast.data import PROFILES
from problems import with_stop
from test_exact import error_of


def normal(*arguments, **options):
    return plr.pl_rank_exact(*arguments, noise="normal", **options)


def by_enumeration(scores, relevance, rank_weights, stop):
    """Value, gradient and Hessian diagonal from the probability of every ranking and its derivatives.

    P(u_a > u_b > ..) is an iterated integral, int phi(u - f_a) int_{v < u} phi(v - f_b) .., each taken as the
    antiderivative of a Chebyshev series; derivatives by a score are derivatives of its density. Nothing is shared with
    the library: no chance p, no polynomial in z.
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
        shown = list(ranking[:cutoff])
        reached = np.cumprod(np.append(1.0, 1.0 - stop[shown]))[:-1]
        metric = rank_weights[:cutoff] @ (relevance[shown] * reached)
        value += metric * probability(ranking, [0] * n_docs)
        for d in range(n_docs):
            gradient[d] += metric * probability(ranking, [int(i == d) for i in range(n_docs)])
            hessian[d] += metric * probability(ranking, [2 * int(i == d) for i in range(n_docs)])
    return value, gradient, hessian


class TestEnumeration:
    """Mutants: x^2 in place of x^2 - 1; B without theta_{K+1} = 0; hazards of neighbours swapped."""

    @pytest.mark.parametrize("stops", ["none", "any"])
    @pytest.mark.parametrize("spread", [0.0, 1.0, 4.0])
    @pytest.mark.parametrize("n_docs", [1, 2, 3, 4])
    def test_every_cutoff(self, n_docs, spread, stops):
        for cutoff in [n_docs - 1, n_docs] if n_docs == 4 else range(1, n_docs + 2):
            scores, *others, stop = with_stop(stops, n_docs, cutoff, spread)
            value, gradient, hessian = by_enumeration(scores, *others, stop)
            for sigma in (1.0, 0.3):
                options = {"rtol": 1e-10, "noise": "normal", "sigma": sigma, "stop_probability": stop}
                got, diagonal = plr.pl_rank_exact(sigma * scores, *others, hessian=True, **options)
                np.testing.assert_allclose(sigma * got, gradient, rtol=0, atol=2e-10)
                np.testing.assert_allclose(sigma**2 * diagonal, hessian, rtol=0, atol=2e-10)
                shown = plr.expected_metric(sigma * scores, *others, **options)
                np.testing.assert_allclose(shown, value, rtol=0, atol=2e-10)


class TestBound:
    @pytest.mark.parametrize("kind", ["falling", "equal", "alternating", "last"])
    @pytest.mark.parametrize(
        ("n_docs", "cutoff", "rtol"),
        [(451, 3, 1e-8), (6402, 50, 1e-10), (9000, 20, 1e-10), (14346, 4, 1e-9), (40_000, 100, 1e-6)],
    )
    def test_equal_scores_in_long_lists(self, n_docs, cutoff, rtol, kind):
        """By symmetry the value is mean(rho) sum(theta), and the gradient a multiple of rho less its mean.

        Mutant: the factor C of the bound of the integrands left out.
        """
        ranks = np.arange(cutoff)
        rank_weights = {
            "falling": plr.dcg_weights(cutoff), "equal": np.ones(cutoff), "alternating": (-1.0) ** ranks,
            "last": 1.0 * (ranks == cutoff - 1),
        }[kind]  # fmt: skip
        scores, relevance = np.zeros(n_docs), 1.0 * (np.arange(n_docs) % 3 == 0)
        one = {"rtol": rtol, "offsets": [0, n_docs]}
        value = plr.expected_metric(scores, relevance, rank_weights, noise="normal", **one)[0]
        assert abs(value - relevance.mean() * rank_weights.sum()) <= rtol * np.abs(rank_weights).sum()
        gradient, centred = normal(scores, relevance, rank_weights, **one), relevance - relevance.mean()
        multiple = centred * (gradient @ centred) / (centred @ centred)
        assert error_of(gradient, multiple, relevance, rank_weights) <= rtol
        assert abs(gradient.sum()) <= rtol * np.sqrt(n_docs) * max(np.linalg.norm(gradient), 1e-3)

    @pytest.mark.parametrize("seed", [23, 40])
    def test_rank_weights_of_any_sign(self, seed):
        """Mutants: refusal from a tenth of the error bound on; twenty times the bound of rounding."""
        rng = np.random.default_rng(seed)
        labels, rank_weights = rng.choice(5, p=PROFILES["mslr"].label_shares, size=1157), rng.normal(size=1157)
        relevance = plr.gains(labels)
        gradient, _ = normal(np.zeros(1157), relevance, rank_weights, rtol=1e-9, hessian=True)
        centred = relevance - relevance.mean()
        multiple = centred * (gradient @ centred) / (centred @ centred)
        assert error_of(gradient, multiple, relevance, rank_weights) <= 1e-9


class TestScales:
    def test_scales_of_noise(self):
        rng = np.random.default_rng(0)
        scores, relevance, weights = rng.normal(size=20), rng.normal(size=20), plr.dcg_weights(7)
        for noise in ("normal", "gumbel"):
            plain = plr.pl_rank_exact(scores, relevance, weights, noise=noise, rtol=1e-9, hessian=True)
            for sigma in (1e-60, 1e-3, 0.5, 40.0, 1e60):
                how = {"noise": noise, "sigma": sigma, "rtol": 1e-9}
                got = plr.pl_rank_exact(scores * sigma, relevance, weights, hessian=True, **how)
                np.testing.assert_allclose(got[0] * sigma, plain[0], rtol=0, atol=1e-8)
                np.testing.assert_allclose(got[1] * sigma**2, plain[1], rtol=0, atol=1e-8)
            for far in ([1e308, 1e308, -1e308, -1.2e308], [1e308, 1e308, 0.0, -1.0]):
                with np.errstate(all="raise"):
                    got = plr.pl_rank_exact(far, [1.0, 0.0, 0.0, 1.0], [1.0, 0.5, 0.2], noise=noise, sigma=1e-5)
                slope = 0.25 if noise == "gumbel" else 1 / np.sqrt(4 * np.pi)
                np.testing.assert_allclose(got, 0.5 * slope / 1e-5 * np.array([1, -1, 0, 0]), rtol=1e-5)
        flat = normal(scores, relevance, weights, sigma=1e8)
        assert error_of(flat * 1e8, normal(np.zeros(20), relevance, weights), relevance, weights) < 1e-6

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
            assert error_of(got, best, relevance, plr.dcg_weights(4)) < 2e-10


def test_sampled_values_are_those_of_plackett_luce():
    for options in ({"noise": "normal"}, {"sigma": 2.0}):
        with pytest.raises(ValueError, match=r"noise and sigma can only be set with method='exact'"):
            plr.expected_metric([0.0, 1.0], [0.0, 1.0], [1.0], method="sample", **options)
