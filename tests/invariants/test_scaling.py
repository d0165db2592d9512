"""Arguments of any magnitude: what a double can hold does not overflow, and what it cannot hold is refused.

A power of two changes no digit, so a problem with its relevance, rank weights, scores and noise multiplied by powers of
two has the digits of the problem itself. Mutants of all these tests: nothing scaled; the exponents put back with the
wrong sign, or twice; those of a query taken for another's; the weights of ranks that a query does not have looked at.
"""

import inspect
import itertools

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import fairness, losses, scaling
from plrank_fast._core.runtime import magnitudes as _magnitudes
from plrank_fast._core.runtime import plain_arrays as _plain_arrays

RNG = np.random.default_rng(11)
LENGTHS = np.array([6, 0, 1, 20, 3])
OFFSETS = np.concatenate([[0], np.cumsum(LENGTHS)])
SCORES = np.round(RNG.normal(size=30), 3)
RELEVANCE = RNG.normal(size=30)
MERIT = np.abs(RELEVANCE)
WEIGHTS = plr.dcg_weights(8)
ROWS = RNG.normal(size=(5, 8))
SAMPLED = {"n_samples": 10, "rng": 3}

LINEAR = [
    *((f, SAMPLED) for f in (plr.pl_rank_1, plr.pl_rank_2, plr.pl_rank_3, plr.pl_rank_cmc, plr.policy_gradient)),
    (plr.placement_policy_gradient, {**SAMPLED, "baseline": True}),
    (plr.pl_rank_3, {**SAMPLED, "hessian": True}),
    (plr.pl_rank_cmc, {**SAMPLED, "hessian": True}),
    (plr.stochastic_rank, SAMPLED),
    (plr.stochastic_rank, {**SAMPLED, "noise": "normal", "sigma": 0.5}),
    (plr.pl_rank_exact, {}),
    (plr.pl_rank_exact, {"hessian": True}),
    (plr.pl_rank_exact, {"noise": "normal"}),
    (plr.expected_metric, {}),
    (plr.expected_metric, {"method": "sample", **SAMPLED}),
    (plr.value_and_gradient, {"method": "exact"}),
    (plr.dcg, {}),
]
EXPONENTS = [(1010, -1010), (-1010, 1010), (1010, 0), (0, 1010), (1000, -90), (-900, -50), (-500, -500), (150, -150)]


def names_of(value):
    if not isinstance(value, dict):
        return getattr(value, "__name__", str(value))
    return "-".join(f"{k}={v}" for k, v in value.items() if k not in SAMPLED and np.ndim(v) == 0)


def arrays(result):
    return result if isinstance(result, tuple) else (result,)


def equal_up_to(result, expected, *exponents):
    """Each result is the expected one times its own power of two, in a single rounding."""
    for got, wanted, exponent in zip(arrays(result), arrays(expected), exponents, strict=True):
        np.testing.assert_array_equal(got, np.ldexp(wanted, exponent))


@pytest.mark.parametrize("weights", [WEIGHTS, ROWS], ids=["shared", "rows"])
@pytest.mark.parametrize(("of_relevance", "of_weights"), EXPONENTS)
@pytest.mark.parametrize(("function", "options"), LINEAR, ids=names_of)
def test_linear_in_relevance_and_rank_weights(function, options, of_relevance, of_weights, weights):
    call = lambda relevance, theta: function(SCORES, relevance, theta, offsets=OFFSETS, **options)  # noqa: E731
    expected = call(RELEVANCE, weights)
    result = call(np.ldexp(RELEVANCE, of_relevance), np.ldexp(weights, of_weights))
    equal_up_to(result, expected, *[of_relevance + of_weights] * len(arrays(expected)))


@pytest.mark.parametrize(("function", "options"), LINEAR, ids=names_of)
def test_each_query_by_itself(function, options):
    """Queries of their own magnitudes, and rank weights that overflow only past the end of the short ones."""
    exponents = np.array([1000, 0, -1000, 300, 0])
    relevance = np.ldexp(RELEVANCE, np.repeat(exponents, LENGTHS))
    result = function(SCORES, relevance, WEIGHTS, offsets=OFFSETS, **options)
    expected = function(SCORES, RELEVANCE, WEIGHTS, offsets=OFFSETS, **options)
    of_results = [np.repeat(exponents, LENGTHS) if e.size == 30 else exponents for e in arrays(expected)]
    equal_up_to(result, expected, *of_results)
    steep = np.concatenate([WEIGHTS[:6], [0.0, 1e308]])
    small = np.ldexp(RELEVANCE, -190)  # not so small that it would be scaled for itself
    result = function(SCORES, small, steep, offsets=OFFSETS, **options)
    alone = function(SCORES[:6], small[:6], WEIGHTS[:6], **options)
    for whole, part in zip(arrays(result), arrays(alone), strict=True):
        np.testing.assert_array_equal(whole[: part.size], part)
        assert np.isfinite(whole).all()


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        (([0, 1, 2], [1e308, 1e308, 0], [1e-8] * 3), 2e300),
        (([0, 1, 2], [1e307] * 3, [1e-300] * 2), 2e7),
        (([0, 0], [1.7e308, -1.7e308], [1.0, 1.0]), 0.0),
        (([0, 0], [1e-320, 1e-320], [1e300, 1e300]), 2e-20),
    ],
)
def test_by_hand(arguments, value):
    for method in ("exact", "sample"):
        got = plr.expected_metric(*arguments, method=method, rng=0)
        assert got[0] == pytest.approx(value, rel=1e-4, abs=0.0 if value else 1.0)  # 1e-320 has four digits
    assert plr.dcg(*arguments)[0] == pytest.approx(value, rel=1e-4, abs=0.0 if value else 1.0)


@pytest.mark.parametrize("exponent", [1000, 600, -600, -1000])
@pytest.mark.parametrize("noise", ["gumbel", "normal"])
def test_noise_of_any_scale(noise, exponent):
    """Scores and sigma together. Normal noise of an ordinary scale is scaled by the kernel, hence not the same bits."""
    for sigma in (1.0, 0.7):
        near, far = (SCORES, sigma), (np.ldexp(SCORES, exponent), float(np.ldexp(sigma, exponent)))
        for function, options, powers in [
            (plr.expected_metric, {"rtol": 1e-10}, [0]),
            (plr.pl_rank_exact, {"rtol": 1e-10}, [-1]),
            (plr.pl_rank_exact, {"rtol": 1e-10, "hessian": True}, [-1, -2]),
            (plr.stochastic_rank, SAMPLED, [-1]),
        ]:
            relevance = np.ldexp(RELEVANCE, exponent) if "hessian" in options else RELEVANCE
            result, expected = (
                arrays(function(f, relevance, WEIGHTS, sigma=s, noise=noise, offsets=OFFSETS, **options))
                for f, s in (far, near)
            )
            for got, wanted, power in zip(result, expected, powers, strict=True):
                wanted = np.ldexp(wanted, power * exponent)
                scale = np.abs(wanted).max()
                np.testing.assert_allclose(got / scale, wanted / scale, rtol=0, atol=1e-12)


def test_noise_that_moves_nothing():
    """Gaps that no noise can cross: the ranking is certain, and the gradient 0 to within its promise."""
    for noise, sigma in itertools.product(("gumbel", "normal"), (1e-300, 1e-308, 5e-324)):
        value = plr.expected_metric([0.0, 1.0, 2.0, 2.0], [1.0, 0.0, 3.0, 3.0], [1.0, 0.5], sigma=sigma, noise=noise)
        assert value[0] == pytest.approx(4.5, rel=1e-6)


@pytest.mark.parametrize("exponent", [1022, 700, -700, -1010])
def test_only_ratios_count(exponent):
    """Mutant: chances of ERR, which are no ratio, scaled as well."""
    gains = np.ldexp(MERIT, exponent)
    for function, options in [
        (plr.ndcg, {"rank_weights": WEIGHTS}),
        (plr.ndcg, {"rank_weights": np.ldexp(WEIGHTS, -min(exponent, 1010))}),
        (plr.ndcg, {"rank_weights": WEIGHTS, "normalize": "dataset"}),
        (plr.average_relevance_position, {"cutoff": 5}),
    ]:
        got = function(SCORES, gains, offsets=OFFSETS, **options)
        options = {**options, "rank_weights": WEIGHTS} if function is plr.ndcg else options
        np.testing.assert_array_equal(got, function(SCORES, MERIT, offsets=OFFSETS, **options))
    got = losses.softmax_cross_entropy(SCORES, gains, offsets=OFFSETS)
    equal_up_to(got, losses.softmax_cross_entropy(SCORES, MERIT, offsets=OFFSETS), 0, 0)
    assert plr.err([1.0, 0.0], [1.0, 1.0], max_label=1000)[0] == pytest.approx(1.5 * 2.0**-1000, rel=1e-12, abs=0.0)


def test_dataset_normalisation_keeps_its_weights():
    """A query that has 2**900 times less to gain does not count. Mutant: each query in a unit of its own."""
    reached = plr.ndcg([0, 1, 1, 0], [1e300, 0, 1e30, 0], [1.0], offsets=[0, 2, 4], normalize="dataset")
    assert reached == pytest.approx(1e-270, rel=1e-9, abs=0.0)


@pytest.mark.parametrize("function", [losses.lambda_rank, losses.lambda_loss, losses.approx_ndcg, losses.soft_rank])
def test_gains_near_the_largest_double(function):
    """Gains of 2**1023 in all documents but the irrelevant: the ideal DCG overflows, their ratio to it does not."""
    scores = SCORES[:6]
    high = function(scores, [1023.5, 0, 1023.5, 0, 1023.5, 0])
    low = function(scores, [60.5, 0, 60.5, 0, 60.5, 0])  # 1 is nothing beside either
    for got, wanted in zip(high, low, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9)


@pytest.mark.parametrize(("function", "name"), [(losses.approx_ndcg, "temperature"), (losses.soft_rank, "sigma")])
@pytest.mark.parametrize("exponent", [1022, 600, -600, -1000])
def test_smooth_ranks(function, name, exponent):
    labels = RNG.integers(0, 4, size=30)
    near = function(SCORES, labels, offsets=OFFSETS, **{name: 1.0})
    far = function(np.ldexp(SCORES, exponent), labels, offsets=OFFSETS, **{name: float(np.ldexp(1.0, exponent))})
    np.testing.assert_allclose(far[0], near[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.ldexp(far[1], exponent), near[1], rtol=0, atol=1e-12 if exponent < 1000 else 0.01)


def test_smooth_ranks_far_apart():
    """Scores that a narrow noise takes beyond the largest double, and neighbours that it does not."""
    for function in (losses.approx_ndcg, losses.soft_rank):
        values, gradient = function([1.9e307, -1.9e307], [1, 0])
        assert values[0] == pytest.approx(0.0, abs=1e-15)
        assert (gradient == 0.0).all()
    values, gradient = losses.soft_rank([1.0, 0.0], [1, 0], sigma=1e-309)
    assert values[0] == pytest.approx(0.0, abs=1e-15)
    assert (gradient == 0.0).all()
    together = losses.approx_ndcg([1e308, 1e308, 0.0], [1, 0, 0])[0]
    assert together[0] == pytest.approx(1 - 1 / np.log2(2.5))


def test_disparity_of_small_merits():
    """Mutant: documents in the order of the angle of (merit, exposure), which is a right angle for all of these."""
    exposure, merit = np.array([1.0, 0.9, 0.8]), 1e-18 * np.array([1.0, 2.0, 3.0])
    small, large = (fairness.disparity(exposure, m, kind="absolute") for m in (merit, 1e18 * merit))
    np.testing.assert_allclose(1e18 * small[0], large[0], rtol=1e-12)
    np.testing.assert_allclose(1e18 * small[1], large[1], rtol=1e-12)


@pytest.mark.parametrize("kind", fairness.KINDS)
@pytest.mark.parametrize(("a", "b"), [(400, -390), (-400, 390), (450, 0), (0, 450), (-490, 0), (0, -490), (90, 90)])
def test_fairness(kind, a, b):
    degree = 2 if kind == "squared" else 1
    exposure = fairness.expected_exposure(SCORES, WEIGHTS, offsets=OFFSETS)
    equal_up_to(
        fairness.disparity(np.ldexp(exposure, a), np.ldexp(MERIT, b), offsets=OFFSETS, kind=kind),
        fairness.disparity(exposure, MERIT, offsets=OFFSETS, kind=kind),
        degree * (a + b), degree * (a + b) - a,
    )  # fmt: skip
    for method in ("pl_rank_exact", "pl_rank_3", "stochastic_rank"):
        call = lambda m, w: fairness.disparity_gradient(  # noqa: E731
            SCORES, m, w, offsets=OFFSETS, kind=kind, method=method, **SAMPLED  # noqa: B023
        )  # fmt: skip
        equal_up_to(call(np.ldexp(MERIT, b), np.ldexp(WEIGHTS, a)), call(MERIT, WEIGHTS), *[degree * (a + b)] * 2)
    for method in fairness.EXPOSURE_METHODS:
        weights = np.ldexp(WEIGHTS, 2 * a)
        far = fairness.expected_exposure(SCORES, weights, offsets=OFFSETS, method=method, **SAMPLED)
        near = fairness.expected_exposure(SCORES, WEIGHTS, offsets=OFFSETS, method=method, **SAMPLED)
        equal_up_to(far, near, 2 * a)


EVERYTHING = [
    *LINEAR,
    (plr.exposure, {}),
    (plr.exposure_vjp, {}),
    (plr.rank_probabilities, {"cutoff": 4}),
    (plr.sample_rankings, {**SAMPLED, "cutoff": 3}),
    (plr.ndcg, {}),
    *((f, {}) for f in (plr.precision, plr.recall, plr.average_precision, plr.reciprocal_rank, plr.success)),
    *((f, {}) for f in (plr.rbp, plr.average_relevance_position)),
    *((f, {"ties": "average"}) for f in (plr.dcg, plr.ndcg)),
    (plr.err, {"labels": MERIT}),
    *((fairness.disparity, {"kind": kind}) for kind in fairness.KINDS),
    *((fairness.disparity_gradient, {"kind": kind}) for kind in fairness.KINDS),
    (fairness.disparity_gradient, {"method": "pl_rank_cmc", **SAMPLED}),
    *((getattr(losses, name), {}) for name in losses.__all__),
    (losses.pointwise, {"kind": "logistic", "labels": MERIT / MERIT.max()}),
]
SIZES = {
    "1e-320": lambda x: 1e-320 * x,
    "1e-300": lambda x: 1e-300 * x,
    "1": lambda x: x,
    "1e300": lambda x: 1e300 * (x / np.abs(x).max()),
    "1.79e308": lambda x: 1.79e308 * (x / np.abs(x).max()),
    "mixed": lambda x: np.ldexp(x / np.abs(x).max(), np.resize([1023, -1000, 0, 500, 1023], x.size)),
    "all alike": lambda x: np.full(x.size, 1.79e308),
}


@pytest.mark.parametrize(("function", "options"), EVERYTHING, ids=names_of)
def test_never_nan(function, options):
    """Every function at every mixture of magnitudes: finite, or refused in words. Mutants: each of the scalings."""
    parameters = inspect.signature(function).parameters
    noise = [name for name in ("sigma", "slope", "temperature") if name in parameters and name not in options]
    noise = [] if options.get("method") == "sample" else noise
    refused = 0
    sizes = {name: SIZES for name in ("scores", "relevance", "rank_weights", "exposure") if name in parameters}
    scales = [5e-324, 1e-300, 1.0, 1e300, 1.79e308] if noise else [None]
    combinations = list(itertools.product(*sizes.values(), scales))
    if len(combinations) > 150:
        combinations = [combinations[i] for i in np.random.default_rng(0).choice(len(combinations), 150, replace=False)]
    for combination in combinations:
        arguments = {name: value for name, value in options.items() if name in parameters}
        for name, size in zip(sizes, combination, strict=False):
            base = {"scores": SCORES, "relevance": MERIT if function in RATIOS else RELEVANCE}.get(name, MERIT)
            arguments[name] = SIZES[size](WEIGHTS if name == "rank_weights" else base)
        if "labels" in parameters and "labels" not in options:
            arguments["labels"] = MERIT * (1020 / MERIT.max() if "as gains" in str(function.__doc__) else 1.0)
        arguments |= {name: MERIT for name in ("merit", "cotangent") if name in parameters}
        arguments |= {name: combination[-1] for name in noise}
        result = ()
        try:
            result = function(**arguments, offsets=OFFSETS)
        except ValueError as error:
            if "beyond the largest double" not in str(error):
                raise
            refused += 1
        for array in arrays(result):
            assert np.isfinite(array).all(), {**dict(zip(sizes, combination, strict=False)), **dict.fromkeys(noise)}
    assert refused < 0.6 * len(combinations)


RATIOS = (plr.ndcg, plr.average_relevance_position)


def test_refused_before_anything_is_written():
    """Mutants: infinity returned; the first of two results delivered before the second is looked at."""
    out, diagonal = np.full(2, 7.0), np.full(2, 7.0)
    with pytest.raises(ValueError, match=r"^relevance and rank_weights lead to a result beyond the largest double"):
        plr.pl_rank_3([0, 0], [1e308, 0], [1e10], rng=0, out=out)
    with pytest.raises(ValueError, match=r"relevance, rank_weights and sigma lead to .* 1.8e308, at index 0$"):
        plr.pl_rank_exact([0, 0], [1, 0], [1.0], sigma=1e-300, hessian=True, out=(out, diagonal), offsets=[0, 2])
    with pytest.raises(ValueError, match=r"^relevance and rank_weights lead to a result beyond"):
        plr.dcg([0, 0], [1e308, 1e308], [1.0, 1.0])
    with pytest.raises(ValueError, match=r"^scores and labels lead to a result beyond the largest double"):
        losses.pointwise([1e200, 0.0], [0.0, 0.0], out=(np.full(1, 7.0), out))
    with pytest.raises(ValueError, match=r"^scores and slope have a product beyond the largest double"):
        losses.pairwise_logistic([1e200, 0.0], [0.0, 1.0], slope=1e200, out=(np.full(1, 7.0), out))
    assert (out == 7.0).all()
    assert (diagonal == 7.0).all()


class TestMagnitudes:
    """Mutants: the last values, past whole registers, not looked at; zeros called extraordinary."""

    @pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 31, 100])
    def test_each_place(self, n):
        values = np.ones(n)
        assert _magnitudes.all_finite(values)
        assert _magnitudes.all_ordinary(values)
        for place in range(n):
            for bad in (np.nan, np.inf, -np.inf):
                values[place] = bad
                assert not _magnitudes.all_finite(values)
            for size, ordinary in (
                (0.0, True),
                (2.0**200, True),
                (2.0**201, False),
                (2.0**-201, False),
                (5e-324, False),
            ):
                values[place] = -size
                assert _magnitudes.all_ordinary(values) == ordinary
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

    def test_ordinary_values_are_not_touched(self):
        values, exponents = scaling.moderate(RELEVANCE, OFFSETS)
        assert values is RELEVANCE
        assert exponents is None
        weights, exponents = scaling.moderate_weights(WEIGHTS[np.newaxis], OFFSETS)
        assert weights.base is WEIGHTS
        assert exponents is None
