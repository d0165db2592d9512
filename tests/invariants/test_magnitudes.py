"""What is multiplied is 0 or of a largest magnitude from 2**-200 to 2**200: beyond, refused; up to there, right.

Scores have no limit. Where results are a power of relevance or rank weights, those at the limits are the ordinary ones
times a power of two.
"""

import re

import numpy as np
import pytest

import plrank_fast as plr
import public_calls
from plrank_fast import fairness, losses
from plrank_fast._core.runtime import magnitudes as _magnitudes
from plrank_fast._core.runtime import plain_arrays as _plain_arrays

RNG = np.random.default_rng(11)
LENGTHS = np.array([6, 0, 1, 12, 3])
OFFSETS = np.concatenate([[0], np.cumsum(LENGTHS)])
GRADES = RNG.integers(0, 5, size=22).astype(float)
GRADES[OFFSETS[:-1]] = 4.0  # every query has the largest
ARGUMENTS = {"scores": RNG.normal(size=22), "relevance": GRADES / 4.0, "rank_weights": plr.dcg_weights(5)}
LONE = {"scores": ARGUMENTS["scores"][6:19], "relevance": GRADES[6:19] / 4.0, "rank_weights": plr.dcg_weights(5)}
CALLS = {**public_calls.BATCHES, **public_calls.OTHERS}
LIMITS = r"must be 0 or of magnitudes of which the largest is from 2\*\*-200 to 2\*\*200"
OF_LABELS = LIMITS + "|^labels must be from 0 to 200|scores and labels lead to a result beyond the largest double"
# whose results are no power of the labels
GRADED = {
    "err",
    "expected_reward err",
    "expected_reward alpha_ndcg",
    *losses.__all__,
    "soft_rank cutoff",
}  # whose results are no power of the labels


def called(name, changed, size):
    """Results of a call, with one argument of this largest magnitude, in a batch and alone."""
    results = []
    for arguments, batch in (ARGUMENTS, {"offsets": OFFSETS}), (LONE, {}):
        values = dict(arguments)
        if changed:
            values[changed] = values[changed] / np.abs(values[changed]).max() * size
        results += public_calls.arrays(CALLS[name](**values, first_query=0, **batch))
    return [result.astype(float) for result in results]


@pytest.mark.parametrize("argument", ["relevance", "rank_weights"])
@pytest.mark.parametrize("name", CALLS)
class TestArguments:
    @pytest.mark.parametrize("size", [1e308, 2.0**201, 2.0**-201, 1e-310])
    def test_beyond_the_limits(self, name, argument, size):
        """Refused in the words of the rule, or of no effect. Mutants: either limit not looked at; lone queries' not."""
        try:
            results = called(name, argument, size)
        except ValueError as error:
            if not re.search(OF_LABELS if name in GRADED else LIMITS, str(error)):
                raise
            return
        if name in GRADED:
            assert all(np.isfinite(result).all() for result in results)
            return
        for got, expected in zip(results, called(name, None, 1.0), strict=True):
            np.testing.assert_array_equal(got, expected)

    @pytest.mark.parametrize("size", [2.0**200, 2.0**-200])
    def test_at_the_limits(self, name, argument, size):
        """Mutants: sums of squares in floats; a limit of 2**500."""
        if name in GRADED and argument == "relevance":
            return
        if name.startswith("disparity"):  # which goes with the square of merit and the square of the weights
            size = size**0.3
        for got, expected in zip(called(name, argument, size), called(name, argument, 1.0), strict=True):
            assert np.isfinite(got).all()
            if name == "doubly_robust":  # a difference from rewards of 1
                continue
            for part in got, expected:
                part /= np.abs(part).max(initial=0.0) or 1.0
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [1.7e308, 2.0**-1000])
@pytest.mark.parametrize("name", CALLS)
def test_scores_have_no_limit(name, size):
    """Finite, or the loss itself is beyond the largest double."""
    try:
        results = called(name, "scores", size)
    except ValueError as error:
        if "beyond the largest double" not in str(error) or name not in losses.__all__:
            raise
        return
    finite = [np.isfinite(result).all() for result in results]
    assert all(finite) or name == "ranking_log_prob"  # the logarithm of a chance of 0


class TestEachQuery:
    """The rule holds for each query. Mutants: for the whole array; offsets off by one; empty queries looked at."""

    @pytest.mark.parametrize(("size", "shown"), [(1e-310, "1e-310"), (-1e308, r"1e\+308")])
    @pytest.mark.parametrize("query", [0, 2, 4])
    def test_named(self, query, size, shown):
        relevance = np.where(np.arange(22) < 100, 1.0, 0.0)
        relevance[OFFSETS[query] : OFFSETS[query + 1]] = 0.0
        plr.dcg(ARGUMENTS["scores"], relevance, offsets=OFFSETS)
        relevance[OFFSETS[query + 1] - 1] = size
        with pytest.raises(ValueError, match=rf"^relevance {LIMITS}.* got {shown} in query {query}: rescale relevance"):
            plr.dcg(ARGUMENTS["scores"], relevance, offsets=OFFSETS)

    def test_small_beside_large(self):
        """Weights of rank-biased precision fall below the limit, and so may relevance."""
        relevance = np.resize([1.0, 1e-320], 22)
        weights = plr.rbp_weights(900, 0.5)
        for function in (plr.dcg, plr.pl_rank_exact, plr.pl_rank_3):
            assert np.isfinite(function(ARGUMENTS["scores"], relevance, weights, offsets=OFFSETS)).all()

    def test_ranks_that_a_query_has(self):
        """Mutants: weights of other ranks looked at; of all ranks, if rows are given."""
        steep = np.array([1.0, 0.5, 0.25, 1e308])
        plr.dcg([0.0, 1.0, 2.0], [1.0, 2.0, 3.0], steep)
        plr.dcg([0.0, 1.0, 2.0, 3.0], [1.0] * 4, [[1e-320, 1.0, 1.0], [1.0, 1e308, 1.0]], offsets=[0, 3, 4])
        with pytest.raises(ValueError, match=rf"^rank_weights {LIMITS}.*got 1e\+308: "):
            plr.dcg([0.0, 1.0, 2.0, 3.0], [1.0] * 4, steep)
        with pytest.raises(ValueError, match=rf"^rank_weights {LIMITS}.*got 9.99989e-321 in query 1"):
            plr.dcg([0.0, 1.0, 2.0, 3.0], [1.0] * 4, [1e-320, 1.0, 1.0], offsets=[0, 3, 4])


def test_refused_before_anything_is_written():
    """Mutants: results delivered before the checks; the first of two before the second is looked at."""
    out, diagonal = np.full(2, 7.0), np.full(2, 7.0)
    rng = np.random.default_rng(0)
    state = rng.bit_generator.state
    for relevance, rank_weights in (([1e308, 0], [1.0]), ([1.0, 0], [1e-310])):
        with pytest.raises(ValueError, match=LIMITS):
            plr.pl_rank_3([0.0, 0.0], relevance, rank_weights, rng=rng, out=out)
        with pytest.raises(ValueError, match=LIMITS):
            plr.pl_rank_exact([0.0, 0.0], relevance, rank_weights, hessian=True, out=(out, diagonal))
    assert rng.bit_generator.state == state
    for sigma in (1e-300, 1e300):
        with pytest.raises(ValueError, match=r"^sigma must be from 2\*\*-200 to 2\*\*200, about 6e-61 to 2e60, got"):
            plr.pl_rank_exact([0, 0], [1, 0], [1.0], sigma=sigma, out=out)
    with pytest.raises(ValueError, match=r"^scores and labels lead to a result beyond the largest double"):
        losses.pointwise([1e200, 0.0], [0.0, 0.0], out=(np.full(1, 7.0), out))
    with pytest.raises(ValueError, match=r"^scores and slope have a product beyond the largest double"):
        losses.pairwise_logistic([1e300, 0.0], [0.0, 1.0], slope=1e50, out=(np.full(1, 7.0), out))
    assert (out == 7.0).all()
    assert (diagonal == 7.0).all()


class TestNoise:
    @pytest.mark.parametrize("noise", ["gumbel", "normal"])
    def test_that_moves_nothing(self, noise):
        """Gaps that no noise can cross: the ranking is certain, and the gradient 0 to within its promise."""
        value = plr.expected_metric([0.0, 1.0, 2.0, 2.0], [1.0, 0.0, 3.0, 3.0], [1.0, 0.5], sigma=1e-60, noise=noise)
        assert value[0] == pytest.approx(4.5, rel=1e-6)

    def test_smooth_ranks_far_apart(self):
        """Scores that a narrow noise takes beyond the largest double, and neighbours that it does not."""
        for function in (losses.approx_ndcg, losses.soft_rank):
            values, gradient = function([1.9e307, -1.9e307], [1, 0])
            assert values[0] == pytest.approx(0.0, abs=1e-15)
            assert (gradient == 0.0).all()
        together = losses.approx_ndcg([1e308, 1e308, 0.0], [1, 0, 0])[0]
        assert together[0] == pytest.approx(1 - 1 / np.log2(2.5))

    @pytest.mark.parametrize(("function", "name"), [(losses.approx_ndcg, "temperature"), (losses.soft_rank, "sigma")])
    @pytest.mark.parametrize("exponent", [200, -200])
    def test_smooth_ranks(self, function, name, exponent):
        near = function(ARGUMENTS["scores"], GRADES, offsets=OFFSETS, **{name: 1.0})
        scale = float(np.ldexp(1.0, exponent))
        far = function(scale * ARGUMENTS["scores"], GRADES, offsets=OFFSETS, **{name: scale})
        np.testing.assert_allclose(far[0], near[0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(scale * far[1], near[1], rtol=0, atol=1e-12)


def test_disparity_of_small_merits():
    """Mutant: documents in the order of the angle of (merit, exposure), which is a right angle for all of these."""
    exposure, merit = np.array([1.0, 0.9, 0.8]), 1e-18 * np.array([1.0, 2.0, 3.0])
    small, large = (fairness.disparity(exposure, m, kind="absolute") for m in (merit, 1e18 * merit))
    np.testing.assert_allclose(1e18 * small[0], large[0], rtol=1e-12)
    np.testing.assert_allclose(1e18 * small[1], large[1], rtol=1e-12)


@pytest.mark.parametrize("function", [losses.lambda_rank, losses.lambda_loss, losses.approx_ndcg, losses.soft_rank])
def test_gains_at_the_limit(function):
    """Mutant: labels of 200 refused."""
    scores = ARGUMENTS["scores"][:6]
    high = function(scores, [200, 0, 200, 0, 200, 0])
    low = function(scores, [60, 0, 60, 0, 60, 0])  # 1 is nothing beside either
    for got, wanted in zip(high, low, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9)


class TestKernels:
    """Mutants: the last values, past whole registers, not looked at; zeros called too small."""

    @pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 31, 100])
    def test_each_place(self, n):
        values = np.ones(n)
        assert _magnitudes.all_finite(values)
        assert _magnitudes.each_within_limits(values)
        for place in range(n):
            for bad in (np.nan, np.inf, -np.inf):
                values[place] = bad
                assert not _magnitudes.all_finite(values)
                assert not _magnitudes.each_within_limits(values)
            for size in (0.0, 2.0**200, 2.0**-200, 2.0**201, 2.0**-201, 5e-324):
                values[place] = -size
                assert _magnitudes.each_within_limits(values) == (size in (0.0, 2.0**200, 2.0**-200))
                assert _magnitudes.all_finite(values)
            values[place] = 1.0

    @pytest.mark.parametrize(
        "arranged",
        [lambda x: x, lambda x: x[::-1], lambda x: x[::2], lambda x: x.reshape(2, -1).T, lambda x: x[:1].reshape(())],
        ids=["in order", "backwards", "every other", "by columns", "single"],
    )
    def test_copies(self, arranged):
        """Mutants: values in memory's order in place of the array's; what is not finite seen in the last register only.

        Another: an array that is not in order copied as if it were.
        """
        values = arranged(np.random.default_rng(0).normal(size=62))
        copy = _plain_arrays.finite_copy(values)
        assert copy.flags.c_contiguous
        assert not np.shares_memory(copy, values)
        np.testing.assert_array_equal(copy, values)
        for place in np.ndindex(values.shape):
            for bad in (np.nan, np.inf, -np.inf):
                kept = values[place]
                values[place] = bad
                assert _plain_arrays.finite_copy(values) is None
                values[place] = kept
