"""A factor is 0 or of a largest magnitude from 2**-200 to 2**200: beyond, refused; up to there, right.

Scores have no limit. Where results are a power of relevance or rank weights, those at the limits are the ordinary ones
times a power of two.
"""

import re

import numpy as np
import pytest

import plrank_fast as plr
import public_calls
from plrank_fast import boosting, fairness, losses, off_policy, rewards
from plrank_fast._core.runtime.arguments import found_among
from plrank_fast.compat import sigir22

RNG = np.random.default_rng(11)
LENGTHS = np.array([6, 0, 1, 12, 3])
OFFSETS = np.concatenate([[0], np.cumsum(LENGTHS)])
GRADES = RNG.integers(0, 5, size=22).astype(float)
GRADES[OFFSETS[:-1]] = 4.0  # every query has the largest
ARGUMENTS = {"scores": RNG.normal(size=22), "relevance": GRADES / 4.0, "rank_weights": plr.dcg_weights(5)}
LONE = {"scores": ARGUMENTS["scores"][6:19], "relevance": GRADES[6:19] / 4.0, "rank_weights": plr.dcg_weights(5)}
CALLS = {**public_calls.BATCHES, **public_calls.OTHERS}
LIMITS = r"must be 0 or have a largest magnitude from 2\*\*-200 to 2\*\*200"
OF_LABELS = LIMITS + "|^labels must be from 0 to 200|scores and labels lead to a result beyond the largest double"
GRADED = {name for name in CALLS if name.split()[0] in ("err", *losses.__all__)}  # no power of the labels
GRADED |= {"expected_reward alpha_ndcg"}
ENDS = np.array([0.0, 5e-324, 1e-308, 2.0**-200, 0.5, 1.0, 6.0, 7.0, 200.0, 2.0**52, 2.0**200, 1.7976931348623157e308])
ENDS = np.concatenate([ENDS, np.nextafter(ENDS[1:], 0.0), np.nextafter(ENDS[:-1], np.inf), [6.5, 199.0, np.inf]])
NANS = np.array([0x7FF8 << 48, (0x7FF0 << 48) + 1, (1 << 63) - 1], dtype=np.uint64).view(float)
ENDS = np.concatenate([ENDS, -ENDS, NANS, -NANS])
OF_NAN = 1 | 64 | 128  # not finite, and no grade


def flags(values):
    """Return the flags of ``magnitudes.h``, as its comments define them; of NaN those that it must have."""
    if np.isnan(values).any():
        return OF_NAN
    sizes = np.abs(values)
    grades = (values >= 0) & (values == np.floor(values))
    found = [
        ~np.isfinite(values), sizes > 2.0**200, (sizes > 0) & (sizes < 2.0**-200), sizes >= 2.0**-200, values < 0,
        values > 1, ~(grades & (values <= 6)), ~(grades & (values <= 200)),
    ]  # fmt: skip
    return sum(bool(flag.any()) << bit for bit, flag in enumerate(found))


@pytest.mark.parametrize("n", [1, 8, 19])
def test_flags_of_pairs(n):
    """All pairs of ends of ranges, one at every place among the other. NaN may hide the other flags.

    Mutants: a bound one step off; zero taken as small; the sign of -0 as a fraction; a NaN of another payload missed;
    NaN taken for a grade; the last vector, or a lane of it, left out.
    """
    for usual in ENDS:
        for rare in ENDS:
            for place in {0, n // 2, n - 1}:
                values = np.full(n, usual)
                values[place] = rare
                found = found_among(values, 1)
                assert (found & OF_NAN if np.isnan(values).any() else found) == flags(values), (usual, rare, n, place)


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
        if "beyond the largest double" not in str(error) or name.split()[0] not in losses.__all__:
            raise
        return
    finite = [np.isfinite(result).all() for result in results]
    assert all(finite) or name.startswith(("ranking_log_prob ", "bucket_log_prob "))  # the logarithm of a chance of 0


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
    """Mutants: results delivered before the checks; the first of two before the second is looked at; a key
    drawn before a divergence that has no end."""
    out, diagonal = np.full(2, 7.0), np.full(2, 7.0)
    rng = np.random.default_rng(0)
    state = rng.bit_generator.state
    for relevance, rank_weights in (([1e308, 0], [1.0]), ([1.0, 0], [1e-310])):
        with pytest.raises(ValueError, match=LIMITS):
            plr.pl_rank_3([0.0, 0.0], relevance, rank_weights, rng=rng, out=out)
        with pytest.raises(ValueError, match=LIMITS):
            plr.pl_rank_exact([0.0, 0.0], relevance, rank_weights, hessian=True, out=(out, diagonal))
    with pytest.raises(ValueError, match=r"^scores lead to a result beyond the largest double"):
        plr.PlackettLuce(np.zeros(12)).kl(plr.PlackettLuce(1e308 * np.linspace(-1, 1, 12)), rng=rng)
    assert rng.bit_generator.state == state
    for sigma in (1e-300, 1e300):
        with pytest.raises(ValueError, match=r"^sigma must be from 2\*\*-200 to 2\*\*200, .* got"):
            plr.pl_rank_exact([0, 0], [1, 0], [1.0], sigma=sigma, out=out)
    with pytest.raises(ValueError, match=r"^scores and labels lead to a result beyond the largest double"):
        losses.pointwise([1e200, 0.0], [0.0, 0.0], out=(np.full(1, 7.0), out))
    with pytest.raises(ValueError, match=r"^scores times the slope.* are beyond the largest double"):
        losses.pairwise_logistic([1e300, 0.0], [0.0, 1.0], slope=1e50, out=(np.full(1, 7.0), out))
    assert (out == 7.0).all()
    assert (diagonal == 7.0).all()


RANKINGS, PAIR = [[0, 1], [1, 0]], [0.0, 1.0]
LOGGED = {"logging_scores": [0.0, 0.0]}
CLICKS = (RANKINGS, [[1, 0], [0, 1]], [0.5, 1.0])


def drawn(size):
    """A reward of 0 or of this size."""
    return lambda rankings: size * (rankings[:, 0] == 1)


# the call for a size, and the argument that is to blame
OTHER_ARGUMENTS = {
    "ips": (lambda x: off_policy.ips(PAIR, RANKINGS, [x, -x], **LOGGED), "rewards"),
    "rips": (lambda x: off_policy.rips(PAIR, RANKINGS, [[x, x], [x, 0]], **LOGGED), "rank_rewards"),
    "iips": (lambda x: off_policy.iips(PAIR, RANKINGS, [[x, x], [x, 0]], **LOGGED), "rank_rewards"),
    "pseudo_inverse": (lambda x: off_policy.pseudo_inverse(PAIR, RANKINGS, [x, x], **LOGGED), "rewards"),
    "doubly_robust": (
        lambda x: off_policy.doubly_robust(PAIR, RANKINGS, [1, 0], [x, 0], [1], **LOGGED), "relevance",
    ),
    "clicks": (lambda x: off_policy.relevance_from_clicks(RANKINGS, [[x, 0], [0, x]], [1, 1]), "clicks"),
    "predicted": (
        lambda x: off_policy.relevance_from_clicks(*CLICKS, predicted=[x, x], examination=[1, 1]), "predicted",
    ),
    "policy_gradient": (lambda x: plr.policy_gradient(PAIR, rankings=RANKINGS, rewards=[x, 0]), "rewards"),
    "rewards in an array": (
        lambda x: plr.policy_gradient(PAIR, rankings=RANKINGS, rewards=np.array([x, 0.0])), "rewards",
    ),
    "importance_weights": (
        lambda x: plr.policy_gradient(
            PAIR, rankings=RANKINGS, rewards=[1, 0], importance_weights=[x, 0], baseline=True
        ),
        "importance_weights",
    ),
    "baseline": (lambda x: plr.policy_gradient(PAIR, rankings=RANKINGS, rewards=[1, 0], baseline=x), "baseline"),
    "reward": (lambda x: plr.policy_gradient(PAIR, reward=drawn(x), rng=0), "reward(rankings)"),
    "expected_reward": (
        lambda x: rewards.expected_reward(PAIR, drawn(x), rng=0, rtol=0.1), "reward(rankings)",
    ),
    "alpha_ndcg": (lambda x: rewards.alpha_ndcg([[x, 0], [0, x]])(RANKINGS), "subtopics"),
    "disparity": (lambda x: fairness.disparity([x, 0], [1, 2]), "exposure"),
    "disparity_gradient": (lambda x: fairness.disparity_gradient(PAIR, [x, 0], [1.0]), "merit"),
    "boosting": (lambda x: boosting.BoostingObjective(gain="linear").derivatives(PAIR, [x, 0]), "the gain of labels"),
    "boosting for DCG": (
        lambda x: boosting.BoostingObjective(gain="linear", metric="dcg").derivatives(PAIR, [x, 0]),
        "the gain of labels",
    ),
    "weights of queries": (
        lambda x: boosting.BoostingObjective().derivatives(PAIR, [1, 0], weights=[x]), "weights",
    ),
    "sigir22.PL_rank_3": (lambda x: sigir22.PL_rank_3([1.0], [x, 0], PAIR, sampled_rankings=[[0], [1]]), "labels"),
    "sigir22.lambdaloss": (lambda x: sigir22.lambdaloss([x, -x], [1, 0], PAIR), "rank_weights"),
    "sigir22.lambdaloss labels": (lambda x: sigir22.lambdaloss([1.0], [x, -x], PAIR), "labels"),
}  # fmt: skip


def numbers_of(result):
    if isinstance(result, off_policy.OffPolicyEstimate):
        return [np.array([result.value, result.standard_error]), result.gradient, np.array(result.interval(rng=0))]
    return [np.asarray(part, dtype=float) for part in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("name", OTHER_ARGUMENTS)
class TestOtherArguments:
    """Mutants: the check of each argument left out, or given another's name."""

    @pytest.mark.parametrize("size", [1e308, 2.0**-201])
    def test_refused_by_name(self, name, size):
        call, argument = OTHER_ARGUMENTS[name]
        with np.errstate(all="raise"), pytest.raises(ValueError, match=rf"^{re.escape(argument)} must be (0|from)"):
            call(size)

    def test_at_the_limits(self, name):
        """Finite, and but for the added terms of what is no power of the argument, the ordinary result."""
        call, _ = OTHER_ARGUMENTS[name]
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            expected = numbers_of(call(1.0))
            for size in (2.0**200, 2.0**-200):
                for got, wanted in zip(numbers_of(call(size)), expected, strict=True):
                    assert np.isfinite(got).all()
                    if name not in ("doubly_robust", "predicted", "baseline"):
                        got, wanted = (part / (np.abs(part).max(initial=0.0) or 1.0) for part in (got, wanted))
                        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12)


class TestRatios:
    """Mutants: exp overflows; weights blamed on the propensities, which were not given; chances of 0 divided by."""

    @pytest.mark.parametrize("estimator", [off_policy.ips, off_policy.rips])
    def test_weights_beyond_the_limit(self, estimator):
        worth = [1, 1] if estimator is off_policy.ips else [[1, 1], [1, 1]]
        for far, message in ((1000.0, r"less probable than scores do, got e\*\*999"), (1e308, "the largest double")):
            with pytest.raises(ValueError, match=rf"^logging_scores .*{message}"):
                estimator([0.0, 0.0], RANKINGS, worth, logging_scores=[far, -far if far > 1e300 else 0.0])
        clipped = estimator([0.0, 0.0], RANKINGS, worth, logging_scores=[1000.0, 0.0], clip=3.0)
        assert clipped.importance_weights.max() == 3.0
        assert np.isfinite(clipped.gradient).all()

    def test_propensities(self):
        with pytest.raises(ValueError, match=r"^propensities must not make .* got e\*\*689"):
            off_policy.ips([0.0, 1.0], RANKINGS, [1, 1], propensities=[1e-300, 0.5])
        with pytest.raises(ValueError, match=r"^propensities must be above 0, 2.2e-308 or more"):
            off_policy.ips([0.0, 1.0], RANKINGS, [1, 1], propensities=[1e-310, 0.5])
        rare = off_policy.ips([0.0, 700.0], RANKINGS, [1, 0], propensities=[1e-300, 1.0])
        assert rare.importance_weights[0] == pytest.approx(np.exp(300 * np.log(10.0) - 700), rel=1e-10)
        with pytest.raises(ValueError, match=r"^the probabilities of the log under logging_scores must be above"):
            off_policy.iips([0.0, 0.0], RANKINGS, [[1, 1], [1, 1]], logging_scores=[800.0, 0.0])
        for propensities in ([1e-310, 1.0], [1.0, 1e308]):
            with pytest.raises(ValueError, match=r"^propensities must be"):
                off_policy.relevance_from_clicks(RANKINGS, [[1, 0], [0, 1]], propensities)
        unseen = off_policy.relevance_from_clicks([[0, -1]], [[1, 0]], [0.5, 1e-310])
        np.testing.assert_array_equal(unseen, [2.0, 0.0])

    def test_weights_of_nothing(self):
        """Self-normalised weights that are all too small to divide by, or have logarithms of -inf."""
        nothing = r"^importance weights must not all be 0, got 0.0 at index 0: scores rank nothing as the log does"
        for estimator, new, worth in ((off_policy.iips, 800.0, [[1], [2]]), (off_policy.ips, 1e308, [1, 2])):
            chances = np.full(np.shape(worth), 0.5)
            with pytest.raises(ValueError, match=nothing):
                estimator([-new, new], [[0], [0]], worth, propensities=chances, self_normalized=True)

    def test_error_of_large_terms(self):
        """Weights of e^100 times relevance and rank weights at their limit. Mutant: squares of the terms themselves."""
        estimate = off_policy.doubly_robust(
            [0.0, 0.0], RANKINGS, [1, 0], [0.0, 2.0**200], [2.0**200], logging_scores=[100.0, 0.0]
        )
        assert 1e150 < estimate.standard_error < np.inf

    def test_items_that_the_new_policy_never_shows(self):
        """The derivative of a weight is 1 over the log's chance, also where the weight is 0."""
        estimate = off_policy.iips([0.0, 40.0], [[0], [0]], [[1], [1]], logging_scores=[0.0, 0.0])
        assert estimate.value == pytest.approx(2 * np.exp(-40.0), abs=1e-8)
        far = off_policy.iips([0.0, 800.0], [[0], [0]], [[1], [1]], logging_scores=[0.0, 0.0])
        assert far.value == 0.0
        assert np.isfinite(far.gradient).all()


def test_small_rewards_of_a_block():
    """A block of small rewards beside others is none that is refused. Mutant: each block by itself."""
    calls = []

    def reward(rankings):
        calls.append(len(rankings))
        return np.full(len(rankings), 1.0 if len(calls) == 1 else 1e-100)

    value, _ = rewards.expected_reward(PAIR, reward, n_samples=512, rng=0)
    assert value[0] == pytest.approx(0.5)


def test_small_cotangents():
    """A loss that hardly depends on a ranking is none that automatic differentiation may stop at; nor is a log."""
    rare = {"rankings": RANKINGS, "rewards": [1, 0], "importance_weights": [2.0**-300, 0.0]}
    np.testing.assert_allclose(2.0**300 * plr.policy_gradient(PAIR, **rare)[0], 0.5 / (1 + np.exp(-1)), rtol=1e-12)
    plain = plr.ranking_log_prob_vjp(PAIR, RANKINGS, [1.0, -1.0])
    for size in (1.0, 2.0**-300, 2.0**-900, 2.0**200):
        got = plr.ranking_log_prob_vjp(PAIR, RANKINGS, np.array([size, -size]))
        np.testing.assert_allclose(got / size, plain, rtol=1e-14)
    for given in ([1e308, 0.0], np.array([1e308, 0.0])):
        with pytest.raises(ValueError, match=r"^cotangent must be from -1.6\d*e\+60 to 1.6\d*e\+60, got 1e\+308"):
            plr.ranking_log_prob_vjp(PAIR, RANKINGS, given)
    with pytest.raises(ValueError, match=r"^cotangent must be from -1.6"):
        plr.bucket_log_prob_vjp([0.0, 1.0, 2.0], [0, 0, 1], [1e308])


def test_smooth_ranks_far_apart():
    """Differences beyond the largest double. A quotient beyond it is refused: infinities would count as equal."""
    for function, scale in (losses.approx_ndcg, "temperature"), (losses.soft_rank, "sigma"):
        values, gradient = function([1.7e308, -1.7e308], [1, 0], **{scale: 1.0})
        assert values[0] == pytest.approx(0.0, abs=1e-15)
        assert (gradient == 0.0).all()
        with pytest.raises(ValueError, match="over temperature or sigma, are beyond the largest double"):
            function([1.7e308, 1.6e308], [0, 1], **{scale: 0.1})


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
