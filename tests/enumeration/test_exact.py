"""The exact gradient, Hessian diagonal and value for either noise, and rank probabilities, in every regime."""

import itertools

import numpy as np
import pytest

import plrank_fast as plr
from adversarial_problem import REGIMES, rank_weights_of_a_kind, relevance_of_a_kind, scores_of
from plrank_fast import reference
from plrank_fast._core.gradients import exact as _exact
from problems import (
    STOPS,
    stop_of_a_kind,
    with_stop,
)


def error_of(gradient, reference, relevance, rank_weights):
    """Relative error, in the norm of which rtol is the bound."""
    scale = np.abs(rank_weights).max() * np.abs(relevance).max()
    return np.linalg.norm(gradient - reference) / max(np.linalg.norm(reference), 1e-3 * scale)


def far_finer(scores, relevance, rank_weights, *, noise="gumbel"):
    """Value, gradient and Hessian diagonal from the nodes of an rtol that nobody may ask for.

    Rounding decides how exact they are. Other tests compare them with references of other nodes and evaluators.
    """
    problem = [np.ascontiguousarray(x, float) for x in (scores, relevance, rank_weights)]
    gradient, hessian = np.zeros((2, problem[0].size))
    value, _, _ = _exact.solve_unchecked(*problem, 1e-14, noise == "normal", gradient, hessian)
    return value, gradient, hessian


def over_bounds(problem, best, rtol, *, noise="gumbel", stop_probability=None):
    """Errors over their bounds: value, gradient alone, gradient with the Hessian diagonal, that diagonal."""
    scores, relevance, rank_weights = (np.asarray(x, float) for x in problem)
    problem, options = (
        (scores, relevance, rank_weights),
        {"rtol": rtol, "noise": noise, "stop_probability": stop_probability},
    )
    alone = plr.pl_rank_exact(*problem, **options)
    both = plr.pl_rank_exact(*problem, hessian=True, **options)
    value, gradient, hessian = best
    errors = [
        error_of(got, expected, relevance, rank_weights)
        for got, expected in [(alone, gradient), (both[0], gradient), (both[1], hessian)]
    ]
    scale = np.abs(rank_weights).sum() * np.abs(relevance).max()
    return np.array([abs(plr.expected_metric(*problem, **options)[0] - value) / scale, *errors]) / rtol


class TestEnumeration:
    """All D! rankings, or all sets of more documents, at rtol = 1e-10, for readers who stop in any way.

    Mutants: one coefficient of P too few for division downwards; x instead of x^2 in the Hessian; a panel that ends
    when its items have arrived but for a chance of 1e-2; theta_K not taken off when every item is placed. Of readers
    who stop: odds without the chance to read on; R_j <theta_up, G_j> left out, or with odds that are not scaled, or
    without what the document itself gains; 1 for the product of q + s p over heavy documents; relevance or the last
    rank weight shifted; readers who have stopped in an earlier panel counted in the next.
    """

    @pytest.mark.parametrize("stops", STOPS)
    @pytest.mark.parametrize("spread", [0.0, 0.3, 1.0, 3.0, 10.0, 30.0])
    def test_every_cutoff(self, stops, spread):
        for n_docs, cutoff in ((n, k) for n in range(1, 7) for k in range(1, n + 2)):
            *problem, stop = with_stop(stops, n_docs, cutoff, spread)
            best_of = reference.exact_by_enumeration if n_docs < 5 else reference.exact_by_subsets
            best = best_of(*problem, stop)[:3]
            if problem[1].any():
                assert over_bounds(problem, best, 1e-10, stop_probability=stop).max() <= 0.5

    @pytest.mark.parametrize("spread", [0.0, 0.3, 1.0, 3.0, 10.0, 30.0])
    def test_rank_probabilities(self, spread):
        for n_docs, cutoff in ((n, k) for n in range(1, 6) for k in range(1, n + 2)):
            scores, relevance, weights, _ = with_stop("none", n_docs, cutoff, spread)
            *_, probabilities = reference.exact_by_enumeration(scores, relevance, weights)
            shown = plr.rank_probabilities(scores, cutoff)
            np.testing.assert_allclose(shown[:, :n_docs], probabilities, rtol=0, atol=1e-9)
            assert (shown[:, n_docs:] == 0).all()
            exposure = plr.exposure(scores, weights)
            np.testing.assert_allclose(exposure, probabilities @ weights[:n_docs], rtol=0, atol=1e-8)


class TestBound:
    @pytest.mark.parametrize(("noise", "seed", "count"), [("gumbel", 7, 10_000), ("normal", 11, 3000)])
    @pytest.mark.filterwarnings("ignore:scores look like grades")
    def test_seeded_sweep(self, noise, seed, count):
        """Random problems against the same kernel at rtol = 1e-14 (which test_trapezoid checks independently).

        Mutants: four tenths of the nodes taken away; no second look at the sum of the gradient; band of coefficients a
        third as wide; half of the power sums; for normal noise |p| + |q| bounded by 1, a plan that ends half a sigma
        earlier, and one that begins after 1e7 times the loss.
        """
        rng = np.random.default_rng(seed)
        worst = np.zeros(4)
        for i in range(count):
            n_docs = int(rng.choice([2, 3, 5, 9, 24, 50, 120], p=[0.1, 0.15, 0.2, 0.2, 0.2, 0.1, 0.05]))
            cutoff = int(rng.integers(1, n_docs + 1)) if rng.random() < 0.7 else n_docs
            scores = scores_of(REGIMES[i % len(REGIMES)], rng, n_docs)
            problem = scores, relevance_of_a_kind(rng, n_docs), rank_weights_of_a_kind(rng, cutoff)
            rtol = 10.0 ** -rng.integers(3, 11) if rng.random() < 0.5 else 1e-6
            if problem[1].any() and problem[2].any():
                worst = np.maximum(worst, over_bounds(problem, far_finer(*problem, noise=noise), rtol, noise=noise))
        assert (worst <= 1).all(), worst

    @pytest.mark.parametrize("stops", STOPS)
    @pytest.mark.parametrize("noise", ["gumbel", "normal"])
    def test_trapezoid(self, noise, stops):
        """Against another rule, another map and another evaluator (adjoints instead of series and division).

        Mutants, of readers who stop: the chance to read on of each bin 0.3 times itself in ``tail_bound``; a millionth
        of the bound of gains.
        """
        rng = np.random.default_rng(STOPS.index(stops))
        best_of = {"gumbel": reference.exact_by_trapezoid, "normal": reference.exact_normal_by_trapezoid}[noise]
        sizes = [(9, 4), (24, 10), (24, 24), (40, 33), (60, 3), (60, 1), (130, 60)]
        for (n_docs, cutoff), regime in zip(2 * sizes, itertools.cycle(REGIMES), strict=False):
            scores, stop = scores_of(regime, rng, n_docs), stop_of_a_kind(stops, rng, n_docs)
            relevance = rng.normal(size=n_docs) * (rng.random(n_docs) < 0.7)
            relevance[0] = 1.0
            weights = rank_weights_of_a_kind(rng, cutoff)
            problem = scores, relevance, weights if weights.any() else plr.dcg_weights(cutoff)
            best = best_of(*problem, step=0.04, stop_probability=stop)
            for rtol in (1e-3, 1e-10):
                assert over_bounds(problem, best, rtol, noise=noise, stop_probability=stop).max() <= 1

    @pytest.mark.parametrize(("n_docs", "cutoff"), [(316, 100), (316, 316), (1000, 10), (1000, 300), (2000, 50)])
    @pytest.mark.parametrize("spread", [0.0, 1.0, 4.0])
    @pytest.mark.parametrize("noise", ["gumbel", "normal"])
    def test_long_lists(self, noise, n_docs, cutoff, spread):
        """Mutants: band of coefficients a third as wide; half of the power sums; series of terms beyond the band."""
        rng = np.random.default_rng([n_docs, cutoff])
        scores, relevance = spread * rng.normal(size=n_docs), 2.0 ** rng.integers(0, 5, size=n_docs) - 1
        problem = scores, relevance, plr.dcg_weights(cutoff)
        best = far_finer(*problem, noise=noise)
        for rtol in (1e-4, 1e-6, 1e-8):
            assert over_bounds(problem, best, rtol, noise=noise).max() <= 1

    @pytest.mark.parametrize(
        ("n_docs", "cutoff", "spread", "stops"),
        [
            *((4000, 3, 1.0, 0.0), (900, 8, 3.0, 0.0), (2000, 10, 0.3, 0.0), (320, 10, 1.0, 0.0)),
            *((900, 8, 1.0, 0.02), (900, 20, 1.0, 0.6)),
        ],
    )
    def test_compressed_lists(self, n_docs, cutoff, spread, stops):
        """Light items of a long list are interpolated; the reference takes every item for itself.

        Mutants: three moments instead of eight; explicit items counted among the compressed too; rho_mass without the
        shift of the relevance; documents at which readers stop compressed with the others.
        """
        rng = np.random.default_rng([n_docs, cutoff])
        problem = spread * rng.normal(size=n_docs), 1 + rng.random(n_docs), plr.dcg_weights(cutoff)
        stop = (rng.random(n_docs) < stops) * rng.choice([0.0625, 0.4375, 1.0], size=n_docs)
        best = reference.exact_by_trapezoid(*problem, step=0.1, stop_probability=stop)
        for rtol in (1e-4, 1e-6, 1e-10):
            assert over_bounds(problem, best, rtol, stop_probability=stop).max() <= 1

    @pytest.mark.parametrize(("spread", "cutoff"), [(0.3, 2), (1.0, 5), (2.0, 10)])
    def test_second_attempt_without_compression(self, spread, cutoff):
        """All relevance but one is alike: the check asks for more than a compressed list can give, and the second
        attempt takes every item for itself. Mutant: proxies of the first attempt counted in the second."""
        scores = spread * np.random.default_rng(0).normal(size=800)
        relevance, weights = np.where(np.arange(800) == 3, -1.0, 1.0), plr.dcg_weights(cutoff)
        _, gradient, _ = reference.exact_by_trapezoid(scores, relevance, weights, step=0.1)
        assert error_of(plr.pl_rank_exact(scores, relevance, weights, rtol=1e-8), gradient, relevance, weights) <= 1e-8

    def test_compressed_list_with_very_light_items(self):
        """Weights down to denormal and beyond; the heaviest alone decide."""
        rng = np.random.default_rng(0)
        scores = np.concatenate([rng.normal(size=40), -rng.uniform(0, 5, size=800), -np.linspace(5, 900, 400)])
        relevance = rng.normal(size=scores.size)
        gradient = plr.pl_rank_exact(scores, relevance, plr.dcg_weights(5), rtol=1e-9)
        keep = scores > -45
        alone = plr.pl_rank_exact(scores[keep], relevance[keep], plr.dcg_weights(5), rtol=1e-9)
        np.testing.assert_allclose(gradient[keep], alone, rtol=0, atol=1e-10)
        assert np.abs(gradient[~keep]).max() < 1e-17

    def test_fewer_items_in_reach_of_compression_than_ranks(self):
        """Few of 1500 items weigh anything beside the heaviest. Mutant: no end of time where they cannot fill the ranks
        (the process crashed)."""
        rng = np.random.default_rng(33)
        scores, relevance, weights = 1e5 * rng.normal(size=1500), rng.normal(size=1500), plr.dcg_weights(20)
        first = np.argsort(-scores)[:22]
        gradient = plr.pl_rank_exact(scores, relevance, weights)
        alone = plr.pl_rank_exact(scores[first], relevance[first], weights)
        np.testing.assert_allclose(gradient[first], alone, rtol=0, atol=1e-9)
        assert np.abs(np.delete(gradient, first)).max() < 1e-9


class TestGaps:
    """Mutants: theta of the ranks before a panel left in its margin; a panel ending too early; for normal noise a
    panel's first rank not moved by those above it, or no item that enters a panel before it is due."""

    @pytest.mark.parametrize("gap", [14.0, 16.0, 20.0, 36.0, 100.0, 760.0, 1e6, 1e15, 1e308])
    @pytest.mark.parametrize("noise", ["gumbel", "normal"])
    @pytest.mark.parametrize("stops", [0.0, 0.7])
    def test_blocks_far_apart_are_lists_of_their_own(self, stops, noise, gap):
        """Those who have read the list above begin with the one below, at the rank after it."""
        rng = np.random.default_rng(1)
        above, below = rng.normal(size=4) * (gap < 1e15), rng.normal(size=7) * (gap < 1e15)
        relevance, weights, stop = rng.normal(size=11), rng.normal(size=8), rng.random(11) * (rng.random(11) < stops)
        scores = np.concatenate([above + gap, below - (gap if gap > 1e300 else 0)])
        options = {"rtol": 1e-10, "hessian": True, "noise": noise}
        whole = plr.pl_rank_exact(scores, relevance, weights, stop_probability=stop, **options)
        parts = zip(
            plr.pl_rank_exact(above, relevance[:4], weights[:4], stop_probability=stop[:4], **options),
            plr.pl_rank_exact(below, relevance[4:], weights[4:], stop_probability=stop[4:], **options), strict=True,
        )  # fmt: skip
        tolerance = 1e-9 if noise == "normal" else 1e-8 + 200 * np.exp(-gap)
        for got, (first, second) in zip(whole, parts, strict=True):
            expected = np.append(first, second * (1 - stop[:4]).prod())
            np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)

    @pytest.mark.parametrize(
        ("spread", "cutoff"),
        [
            *((190, 300), (235, 300), (249, 300), (251, 300), (500, 300)),
            *((900, 300), (1200, 120), (1800, 300), (3500, 90), (3600, 300)),
        ],
    )
    @pytest.mark.parametrize("noise", ["gumbel", "normal"])
    def test_wide_list_without_gaps(self, spread, cutoff, noise):
        """Documents more than 40 nats apart, in any order, are ranked as if the others were not there.

        Mutant: panels of up to 250 nats, at whose end third powers of weight times time are more than e^700, the
        largest odds (Hessians of 1e23 where 0.04 is right).
        """
        rng = np.random.default_rng(spread)
        scores = -np.cumsum(rng.uniform(0.5, 1.5, size=300)) * (spread / 300)
        relevance, weights, order = rng.normal(size=300), rng.random(cutoff), rng.permutation(300)
        got, best = np.zeros((2, 2, 300))
        got[:, order] = plr.pl_rank_exact(
            scores[order], relevance[order], weights, hessian=True, noise=noise, rtol=1e-9
        )
        for start in range(0, 300, 20):
            window = scores[start : start + 20]
            near = (scores < window[0] + 40) & (scores > window[-1] - 40)
            first = np.flatnonzero(near)[0]
            if first < cutoff:
                _, *derivatives = far_finer(scores[near], relevance[near], weights[first:], noise=noise)
                best[:, start : start + 20] = np.array(derivatives)[:, start - first : start - first + 20]
        for mine, expected in zip(got, best, strict=True):
            assert error_of(mine, expected, relevance, weights) < 1e-9
        assert np.abs(best).max() > 1e-7

    def test_more_spread_than_one_rule_has_nodes_for(self):
        probabilities = plr.rank_probabilities(30 * np.random.default_rng(0).normal(size=300), 300)
        np.testing.assert_allclose(probabilities.sum(axis=0), 1, rtol=0, atol=1e-8)


class TestEdges:
    @pytest.mark.parametrize("noise", ["gumbel", "normal"])
    def test_powers_of_two_change_no_bit(self, noise):
        """No path depends on the magnitude of relevance or rank weights. Mutant: a floor of 1e-3 in the error check, in
        place of 1e-3 max |theta| max |rho|."""
        rng = np.random.default_rng(0)
        for n_docs, cutoff, rtol in [(3, 2, 0.1), (24, 10, 1e-2), (60, 10, 1e-6), (60, 60, 1e-8), (400, 10, 1e-4)]:
            scores, relevance, rank_weights = 2 * rng.normal(size=n_docs), rng.normal(size=n_docs), rng.random(cutoff)
            options = {"rtol": rtol, "hessian": True, "noise": noise}
            best = np.array(plr.pl_rank_exact(scores, relevance, rank_weights, **options))
            for first, second in [(-100, 0), (150, -30), (3, 7), (0, 180)]:
                scaled = scores, np.ldexp(relevance, first), np.ldexp(rank_weights, second)
                got = np.ldexp(plr.pl_rank_exact(*scaled, **options), -first - second)
                np.testing.assert_array_equal(got, best)


class TestRankProbabilities:
    @pytest.mark.parametrize("regime", REGIMES)
    def test_sums(self, regime):
        """Mutant: the lanes of a quartet that go the other way not masked."""
        rng = np.random.default_rng(REGIMES.index(regime))
        for n_docs, cutoff in [(2, 2), (24, 10), (24, 24), (120, 60), (120, 120), (316, 20)]:
            probabilities = plr.rank_probabilities(scores_of(regime, rng, n_docs), cutoff)
            assert (probabilities >= 0).all()
            np.testing.assert_allclose(probabilities.sum(axis=0), 1, rtol=0, atol=1e-8)
            if cutoff == n_docs:
                np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=0, atol=1e-8)

    @pytest.mark.parametrize(("n_docs", "cutoff"), [(400, 1), (2000, 3), (1000, 60), (3000, 20)])
    @pytest.mark.parametrize("spread", [0.0, 1.0, 3.0, 20.0, 1000.0])
    def test_exposure_of_long_lists(self, n_docs, cutoff, spread):
        """Compressed lists too. Mutants: t in the factors of items, or only of proxies; no lower limit;
        fewer items than ranks within the octaves."""
        scores = spread * np.random.default_rng(n_docs).normal(size=n_docs)
        for weights in (plr.dcg_weights(cutoff), (np.arange(cutoff) == cutoff - 1) * 1.0):
            expected = plr.rank_probabilities(scores, cutoff) @ weights
            found = plr.exposure(scores, weights)
            assert (found >= 0.0).all()
            assert np.linalg.norm(found - expected) < 2e-9 * max(np.linalg.norm(expected), 1e-3 * weights.max())


def two_classes(n_heavy, n_light, log_ratio, rank_weights):
    """Return the expected rank weight of a heavy document, by the chances that so many are among the first ones."""
    heavy = np.arange(n_heavy + 1.0)
    chance = np.zeros(n_heavy + 1, dtype=complex)
    chance[0] = 1.0
    exposure = 0.0
    for rank, weight in enumerate(rank_weights):
        weight_left = np.exp(log_ratio) * (n_heavy - heavy)
        light_left = np.maximum(n_light - (rank - heavy), 0.0)
        next_is_heavy = weight_left / np.where(heavy <= rank, weight_left + light_left, 1.0)
        exposure += weight * (chance * next_is_heavy).sum() / n_heavy
        chance[1:], chance[0] = (
            chance[1:] * (1 - next_is_heavy[1:]) + (chance * next_is_heavy)[:-1],
            chance[0] * (1 - next_is_heavy[0]),
        )
    return exposure


@pytest.mark.parametrize(
    ("n_heavy", "n_light", "ratio", "cutoff"),
    [(400, 2600, 4.0, 900), (1500, 2500, 1.5, 1600), (3, 3000, 50.0, 1200), (2000, 1000, 2.0, 700)],
)
def test_polynomials_that_would_underflow(n_heavy, n_light, ratio, cutoff):
    """The product of all chances not to have arrived is below the smallest number at the last ranks of these lists. The
    reference is a recursion over ranks, and its derivative a complex step.

    Mutants: the second set of small documents left out; coefficients of a set cut at 1e-3 of the largest; a share of
    small documents of the last set alone; lower coefficients of the first set left as they are.
    """
    weights = plr.dcg_weights(cutoff)
    scores = np.r_[np.full(n_heavy, np.log(ratio)), np.zeros(n_light)]
    relevant = np.r_[np.ones(n_heavy), np.zeros(n_light)]
    step = 1e-200
    expected = n_heavy * two_classes(n_heavy, n_light, np.log(ratio) + step * 1j, weights)
    gradient = np.where(relevant == 1, expected.imag / step / n_heavy, -expected.imag / step / n_light)
    got = plr.pl_rank_exact(scores, relevant, weights, rtol=1e-10)
    assert error_of(got, gradient, relevant, weights) < 1e-10
    np.testing.assert_allclose(plr.expected_metric(scores, relevant, weights, rtol=1e-10), expected.real, rtol=1e-9)
    exposures = plr.exposure(scores, weights, rtol=1e-10)
    np.testing.assert_allclose(exposures[:n_heavy], expected.real / n_heavy, rtol=0, atol=1e-9)
    light = (weights.sum() - expected.real) / n_light
    np.testing.assert_allclose(exposures[n_heavy:], light, rtol=0, atol=1e-9)
