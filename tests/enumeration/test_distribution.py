"""The distribution as an object: its methods are the library's functions; entropy and divergence by enumeration."""

import itertools
from functools import partial

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import PlackettLuce
from plrank_fast.chunks import query_streams
from problems import every_prefix

RNG = np.random.default_rng(3)
SCORES, OTHER = RNG.normal(size=(2, 5))


def exact_entropy(scores, cutoff):
    log_prob = plr.ranking_log_prob(scores, every_prefix(scores.size, cutoff))
    return -(np.exp(log_prob) * log_prob).sum()


def exact_kl(scores, other, cutoff):
    rankings = every_prefix(scores.size, cutoff)
    log_p, log_q = plr.ranking_log_prob(scores, rankings), plr.ranking_log_prob(other, rankings)
    return (np.exp(log_p) * (log_p - log_q)).sum()


def test_methods_are_the_functions():
    offsets, ties = [0, 3, 3, 5], [0, 1, 0, 1, 1]
    for policy, queries in ((PlackettLuce(SCORES, offsets), offsets), (PlackettLuce(SCORES), None)):
        options = {"rng": query_streams(7, 4), "sampler": "introselect"}
        rankings, weights = policy.sample(20, 2, **options), np.arange(1.0, policy.n_queries + 1)
        cotangent = np.ones(rankings.shape[:-1])
        of_ties = policy.log_prob(buckets=ties), policy.log_prob_vjp(None, weights, buckets=ties)
        for got, function, arguments in (
            (rankings, partial(plr.sample_rankings, **options), (20, 2)),
            (policy.log_prob(rankings), plr.ranking_log_prob, (rankings,)),
            (policy.log_prob_vjp(rankings, cotangent), plr.ranking_log_prob_vjp, (rankings, cotangent)),
            (of_ties[0], plr.bucket_log_prob, (ties,)),
            (of_ties[1], plr.bucket_log_prob_vjp, (ties, weights)),
            (policy.rank_probabilities(2), plr.rank_probabilities, (2,)),
            (policy.exposure([1.0, 0.5]), plr.exposure, ([1.0, 0.5],)),
        ):
            np.testing.assert_array_equal(got, function(SCORES, *arguments, offsets=queries))
    assert policy.rank_probabilities().shape == (5, 5)
    assert repr(PlackettLuce(SCORES, offsets)) == "PlackettLuce(n_docs=5, n_queries=3)"


def test_mode():
    """Mutants: ties by descending number; documents numbered over all queries."""
    offsets = [0, 3, 3, 5]
    policy = PlackettLuce([0.0, 1.0, 1.0, 5.0, 7.0], offsets)
    np.testing.assert_array_equal(policy.mode(), [[1, 2, 0], [-1, -1, -1], [1, 0, -1]])
    np.testing.assert_array_equal(policy.mode(1), [[1], [-1], [1]])
    mode = PlackettLuce(SCORES).mode()
    every = every_prefix(5, 5)
    np.testing.assert_array_equal(mode, every[np.argmax(plr.ranking_log_prob(SCORES, every))])
    assert mode.dtype == np.int32


class TestEntropyAndDivergence:
    """Mutants: one choice too many or too few; the items placed so far and not before; KL the other way round."""

    def test_the_first_rank_is_exact(self):
        for scores, other in ((SCORES, OTHER), (300 * SCORES, OTHER)):
            value, error = PlackettLuce(scores).entropy(1)
            assert abs(value[0] - exact_entropy(scores, 1)) < 1e-12 * max(1.0, abs(value[0]))
            assert error[0] == 0.0
            value, error = PlackettLuce(scores).kl(PlackettLuce(other), 1)
            assert abs(value[0] - exact_kl(scores, other, 1)) < 1e-12 * max(1.0, abs(value[0]))
            assert error[0] == 0.0

    @pytest.mark.parametrize("n_samples", [300, 1000])
    @pytest.mark.parametrize("spread", [1.0, 5.0, 20.0, 60.0])
    def test_peaked(self, spread, n_samples):
        """An error is stated, and held, also where hardly any draw differs; at 60 the rest is below a part in 1e16.

        Mutants: draws from the whole policy in place of those that leave its mode; another item never chosen at that
        rank; the mode's item there never taken later; rankings that were not drawn left out of the error.
        """
        worst = []
        for seed in range(25):
            rng = np.random.default_rng(seed)
            scores, other, cutoff = spread * rng.normal(size=7), rng.normal(size=7), int(rng.integers(6, 8))
            here, there = PlackettLuce(scores), PlackettLuce(other)
            for (value, error), exact in (
                (here.entropy(cutoff, n_samples=n_samples, rng=seed), exact_entropy(scores, cutoff)),
                (here.kl(there, cutoff, n_samples=n_samples, rng=seed), exact_kl(scores, other, cutoff)),
            ):
                worst.append(abs(value[0] - exact) / (error[0] + 1e-14 * exact))
                assert error[0] > 0.0
                assert error[0] < 10.0 * exact / np.sqrt(n_samples)
        assert np.quantile(worst, 0.9) < 2.0
        assert max(worst) < 4.0

    def test_few_rankings_are_summed(self):
        """Mutants: the orders of all ranks counted, or of the items; draws in place of the sum where they are fewer."""
        here, there = PlackettLuce([7.83, -3.33, 2.58]), PlackettLuce([-4.89, -14.38, 17.67])
        value, error = here.kl(there, rng=0)
        assert (value[0], error[0]) == (pytest.approx(exact_kl(here.scores, there.scores, 3), rel=1e-13), 0.0)
        value, error = PlackettLuce([-1.587, 2.691, -0.641]).entropy(n_samples=10, rng=0)
        assert (value[0], error[0]) == (pytest.approx(0.787437, abs=1e-6), 0.0)
        scores = np.random.default_rng(0).normal(size=12)
        for n_docs, cutoff, n_samples, summed in ((11, 4, 2, True), (12, 4, 1319, False), (12, 4, 1320, True)):
            value, error = PlackettLuce(scores[:n_docs]).entropy(cutoff, n_samples=n_samples, rng=0)
            exact = exact_entropy(scores[:n_docs], cutoff)
            assert (error[0] == 0.0) == summed == (abs(value[0] - exact) < 1e-12 * exact)

    def test_mean_of_draws_has_no_bias(self):
        """Over all outcomes of five draws. Mutants: the known rankings of both halves; the mean of all draws for the
        centre of a half; the draws that count with their own probability in the mean of the rest too."""
        scores = np.array([1.0, 0.5, -0.5])
        rows = np.array([[1, 0], [1, 2], [2, 0], [0, 2]], dtype=np.int32)
        chances, values = np.exp(plr.ranking_log_prob(scores, rows)), np.array([0.1, -0.3, 0.6, -0.2])
        total, mean = chances.sum(), 0.0
        for drawn in itertools.product(range(4), repeat=5):
            chosen = list(drawn)
            found = plr.distribution._mean_of_draws(values[chosen], rows[chosen], scores, total)[0]
            mean += np.prod(chances[chosen] / total) * found
        assert abs(mean - chances @ values) < 1e-14

    def test_errors_are_those_of_the_values(self):
        """Root mean square of distance over stated error of 40 estimates each, for the four worst of 264 policies.

        Mutants: the deviation of the draws alone (1.7); 1 / sqrt(12) draws for what no draw has seen (1.56).
        """
        for problem in (69, 210, 234, 251):
            rng = np.random.default_rng(problem)
            scores = 10.0 ** rng.uniform(-0.5, 1) * rng.normal(size=7) + rng.choice([0.0, 3.0, 7.0], 7)
            other = 10.0 ** rng.uniform(-0.5, 1.5) * rng.normal(size=7)
            here, there, exact = PlackettLuce(scores, n_threads=1), PlackettLuce(other), exact_kl(scores, other, 7)
            estimates = np.array([here.kl(there, rng=seed) for seed in range(40)])[:, :, 0]
            assert np.sqrt(np.mean(((estimates[:, 0] - exact) / estimates[:, 1]) ** 2)) < 1.2

    def test_range_of_sums(self):
        """It holds the sums of all rankings. Mutants: either logarithm left out, or the mean; the largest weight for
        the smallest below either mean; one rank too few."""
        rng = np.random.default_rng(0)
        for trial in range(2000):
            n_docs = int(rng.integers(3, 6))
            cutoff, spreads = int(rng.integers(2, n_docs + 1)), 10.0 ** rng.uniform(-1, 2, size=(2, 1))
            scores, other = spreads * rng.normal(size=(2, n_docs))
            other = (None, scores + other, other)[trial % 3]
            sums = plr.distribution._sums_over_choices(scores, other, every_prefix(n_docs, cutoff - 1), cutoff)
            most = plr.distribution._most_sums_differ(scores, other, cutoff)
            assert np.ptp(sums) <= most * (1.0 + 1e-9) + 1e-12

    def test_few_draws(self):
        """At most two of 500 values, of flat and peaked policies and nearly tied groups, are 5 stated errors away.

        Mutant: the deviation of the drawn rows alone (25 of 500 values at 2 draws).
        """
        policies = []
        for seed in range(250):
            rng = np.random.default_rng(seed)
            scores, other = rng.normal(size=7) * (0.3, 1.0, 2.0, 6.0, 0.2)[seed % 5], rng.normal(size=7)
            scores += rng.choice([0.0, 2.0, 5.0], 7) * (seed % 5 == 4)
            cutoff = int(rng.integers(6, 8))
            policies.append((scores, other, cutoff, exact_entropy(scores, cutoff), exact_kl(scores, other, cutoff)))
        for n_samples in (2, 5, 10, 30, 100):
            far = []
            for seed, (scores, other, cutoff, *exact) in enumerate(policies):
                policy, options = PlackettLuce(scores, n_threads=1), {"n_samples": n_samples, "rng": seed}
                estimates = policy.entropy(cutoff, **options), policy.kl(PlackettLuce(other), cutoff, **options)
                for (value, error), right in zip(estimates, exact, strict=True):
                    far.append(abs(value[0] - right) > 5.0 * error[0] + 1e-12)
            assert sum(far) <= 2, n_samples

    def test_many_draws(self):
        """The stated error nears the deviation of the estimates. Mutants: the range in place of the deviation of a
        uniform distribution over it; the range from the number of items alone."""
        policy = PlackettLuce(np.random.default_rng(1).normal(size=30))
        for n_samples, factor in ((100, 2.0), (1000, 1.3)):
            estimates = [policy.entropy(n_samples=n_samples, rng=seed) for seed in range(25)]
            deviation = np.std([estimate.value[0] for estimate in estimates])
            stated = np.mean([estimate.standard_error[0] for estimate in estimates])
            assert 0.7 * deviation < stated < factor * deviation

    def test_far_apart(self):
        """The mode is certain: no entropy, and none of the other distribution's.

        Mutants: inf - inf; the smaller of two bounds is NaN where one is.
        """
        policy = PlackettLuce([1e308, -1e308, 0.0])
        with np.errstate(all="raise", under="ignore"):
            for value, error in policy.entropy(rng=0), policy.kl(policy, rng=0):
                assert (value[0], error[0]) == (0.0, 0.0)
            with pytest.raises(ValueError, match=r"^scores lead to a result beyond the largest double"):
                policy.kl(PlackettLuce([0.0, 1e308, -1e308]), rng=0)
        near, far = (PlackettLuce([x, x, -x]).kl(PlackettLuce([0.0, 0.0, 5.0]), rng=0) for x in (500.0, 1e308))
        assert far.value[0] == pytest.approx(near.value[0], rel=1e-12)
        assert far.standard_error[0] < 1e-14
        alike = PlackettLuce(np.zeros(40)).entropy(rng=0)
        assert abs(alike.value[0] - np.log(np.arange(1, 41)).sum()) < 1e-12
        assert alike.standard_error[0] == 0.0

    def test_batch_is_loop(self):
        """Mutants: more choices than a query has items; the range of sums without the range of the log-ratios."""
        pair = PlackettLuce(SCORES, [0, 3, 5]).entropy(rng=1).value[1]
        assert pair == pytest.approx(exact_entropy(SCORES[3:], 2), rel=1e-12)
        offsets = [0, 3, 3, 4, 5]
        policy, other = PlackettLuce(SCORES, offsets), PlackettLuce(OTHER, offsets)
        entropy, kl = policy.entropy(rng=1), policy.kl(other, rng=1)
        assert (entropy.value[1:] == 0.0).all()
        alone = PlackettLuce(SCORES[:3]), PlackettLuce(OTHER[:3])
        np.testing.assert_array_equal(entropy.value[:1], alone[0].entropy(rng=1).value)
        np.testing.assert_array_equal(kl.value[:1], alone[0].kl(alone[1], rng=1).value)
        assert not np.any(policy.kl(policy))  # value and error


class TestWeightOfZero:
    """A score of -inf: the distribution over the other documents, with rankings that end after them.

    Mutants: numbers among the documents that are left; the rows of the query before; a ranking that holds such a
    document taken for its prefix, or with a gradient; its bucket counted; documents of the other alone left out.
    """

    def test_as_without_such_documents(self):
        """Queries with two, none and three documents of positive weight; their draws are the same too."""
        scores = np.array([-np.inf, 0.3, 1.0, -np.inf, -np.inf, 0.1, -np.inf, -0.4, 0.2])
        kept, numbers = np.isfinite(scores), np.array([[1, 2, -1, -1], [-1, -1, -1, -1], [0, 2, 3, -1]])
        policy, without = PlackettLuce(scores, [0, 4, 5, 9]), PlackettLuce(scores[kept], [0, 2, 2, 5])

        def numbered(rankings):
            return np.take_along_axis(numbers, rankings.reshape(3, -1), axis=1).reshape(rankings.shape)

        np.testing.assert_array_equal(policy.mode(), numbered(without.mode()))
        rankings = without.sample(40, 3, rng=0)
        cotangent = np.linspace(0.5, 2.0, rankings[:, :, 0].size).reshape(3, 40)
        np.testing.assert_array_equal(policy.sample(40, 3, rng=0), numbered(rankings))
        np.testing.assert_array_equal(policy.log_prob(numbered(rankings)), without.log_prob(rankings))
        np.testing.assert_array_equal(policy.entropy(rng=0), without.entropy(rng=0))
        for got, expected in (
            (policy.log_prob_vjp(numbered(rankings), cotangent), without.log_prob_vjp(rankings, cotangent)),
            (policy.rank_probabilities(), without.rank_probabilities()),
            (policy.exposure([1.0, 0.5]), without.exposure([1.0, 0.5])),
        ):
            np.testing.assert_allclose(got[kept], expected, rtol=1e-14)
            assert not got[~kept].any()

    def test_rankings_that_hold_such_a_document(self):
        scores = [0.5, -np.inf, 0.0]
        rankings = [[0, 1], [1, -1], [0, 2], [1, 0]]
        expected = [-np.inf, -np.inf, plr.ranking_log_prob([0.5, 0.0], [[0, 1]])[0], -np.inf]
        assert plr.ranking_log_prob(scores, rankings).tolist() == expected
        gradient = plr.ranking_log_prob_vjp(scores, rankings, [5.0, 6.0, 2.0, 7.0])
        assert gradient[1] == 0.0
        np.testing.assert_array_equal(gradient[[0, 2]], plr.ranking_log_prob_vjp([0.5, 0.0], [[0, 1]], [2.0]))
        with pytest.raises(ValueError, match="rankings must hold items 0 to 2, got 3"):
            plr.ranking_log_prob(scores, [[0, 3]])

    def test_buckets(self):
        scores = [0.5, -np.inf, 0.0, -1.0]
        for buckets, left in (([0, 5, 1, 0], [0, 1, 0]), ([0, 1, 1, 1], [0, 1, 1]), ([0, 0, 1, 1], None)):
            value = plr.bucket_log_prob(scores, buckets)
            gradient, diagonal = plr.bucket_log_prob_vjp(scores, buckets, [2.0], hessian=True)
            if left is None:
                assert value[0] == -np.inf
                assert not gradient.any()
                assert not diagonal.any()
            else:
                without = np.delete(scores, 1)
                assert value == plr.bucket_log_prob(without, left)
                expected = plr.bucket_log_prob_vjp(without, left, [2.0], hessian=True)
                np.testing.assert_array_equal((gradient, diagonal), np.insert(expected, 1, 0.0, axis=1))

    @pytest.mark.parametrize("cutoff", [1, 2, None])
    def test_divergence(self, cutoff):
        here, there = np.array([-np.inf, 0.5, -1.0, 0.2]), np.array([0.3, 0.0, 1.0, -2.0])
        rankings = 1 + every_prefix(3, cutoff or 3)
        log_p, log_q = plr.ranking_log_prob(here, rankings), plr.ranking_log_prob(there, rankings)
        exact = np.exp(log_p) @ (log_p - log_q)
        value, error = PlackettLuce(here).kl(PlackettLuce(there), cutoff, rng=0)
        assert abs(value[0] - exact) <= 5 * error[0] + 1e-12
        assert PlackettLuce(there).kl(PlackettLuce(here), cutoff).value[0] == np.inf
        both = PlackettLuce(here).kl(PlackettLuce(np.where(here == -np.inf, here, there)), cutoff, rng=0)
        less = PlackettLuce(here[1:]).kl(PlackettLuce(there[1:]), cutoff, rng=0)
        np.testing.assert_array_equal(both, less)


def test_errors():
    with pytest.raises(TypeError, match="other must be a PlackettLuce, got list"):
        PlackettLuce(SCORES).kl([1.0])
    with pytest.raises(ValueError, match="other must be over the same queries"):
        PlackettLuce(SCORES).kl(PlackettLuce(SCORES, [0, 2, 5]))
    for method in ("log_prob", "log_prob_vjp"):
        with pytest.raises(ValueError, match="only one of rankings and buckets may be given"):
            getattr(PlackettLuce(SCORES), method)([[0]], *[[1.0]] * method.endswith("vjp"), buckets=[0] * 5)
    with pytest.raises(ValueError, match="n_samples must be at least 2"):
        PlackettLuce(SCORES).entropy(n_samples=1)
    with pytest.raises(ValueError, match="read-only"):
        PlackettLuce(SCORES).scores[0] = 1.0
