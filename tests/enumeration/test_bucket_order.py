"""Rankings with ties: sums over all orders that agree, closed forms, extended precision, and what must hold of any.

The tolerances are those documented: 1e-10 of max(1, |ln P|), and of the gradient's largest term.
"""

import math

import mpmath
import numpy as np
import pytest

import measured_errors_of_ties as ties
import plrank_fast as plr
from plrank_fast import losses, reference

RTOL = 1e-10


def random_order(seed, n_docs, spread=2.0, n_buckets=3):
    rng = np.random.default_rng([n_docs, seed])
    return spread * rng.normal(size=n_docs), rng.integers(-1, n_buckets - 1, size=n_docs)


@pytest.mark.parametrize("seed", range(30))
def test_sum_over_all_orders(seed):
    """Mutants: nothing comes after the first bucket; nodes that begin 3 nats too late."""
    scores, buckets = random_order(seed, 1 + seed % 6)
    rankings = reference.all_rankings(scores.size)
    agree = [ranking for ranking in rankings if (np.diff(buckets[ranking]) >= 0).all()]
    expected = np.log(np.exp(plr.ranking_log_prob(scores, agree)).sum())
    assert plr.bucket_log_prob(scores, buckets) == pytest.approx([expected], rel=1e-13, abs=1e-11)
    assert reference.bucket_log_prob(scores, buckets) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("spread", [0.0, 1.0, 10.0, 150.0])
@pytest.mark.parametrize("shift", [-200.0, -20.0, 0.0, 3.0, 60.0, 200.0])
def test_extended_precision(spread, shift):
    """Sets of 2 to 6, likely, unlikely and nearly certain. Mutants: nodes that begin 3 nats too late; items whose
    1 - exp(-x) is x left out."""
    rng = np.random.default_rng([int(spread), int(shift) + 1000])
    for size in range(2, 7):
        log_odds = shift + spread * rng.normal(size=size)
        expected, gradient, diagonal, _ = ties.bucket(log_odds.astype(np.longdouble), finer=False)
        scores, buckets = np.append(log_odds, 0.0), np.append(np.zeros(size, dtype=int), 1)
        assert plr.bucket_log_prob(scores, buckets) == pytest.approx([expected], rel=RTOL, abs=RTOL)
        first, second = plr.bucket_log_prob_vjp(scores, buckets, [1.0], hessian=True)
        assert np.abs(first[:-1] - gradient).max() <= RTOL * np.abs(gradient).max()
        assert np.abs(second[:-1] - diagonal).max() <= RTOL


@pytest.mark.parametrize("size", [2, 17, 1000, 30_000])
def test_equal_scores(size):
    """One over a binomial coefficient. Mutant: the highest of the later scores changes, and their sum does not; the
    last factors of a product left out."""
    for later in (1, 7, 3 * size):
        scores, buckets = np.zeros(size + later), np.repeat([0, 1], [size, later])
        whole = [0, size + later]
        gammas = [mpmath.loggamma(size + 1), mpmath.loggamma(later + 1), -mpmath.loggamma(size + later + 1)]
        expected = float(sum(gammas))
        assert plr.bucket_log_prob(scores, buckets, offsets=whole) == pytest.approx([expected], rel=RTOL)
        gradient = plr.bucket_log_prob_vjp(scores, buckets, [1.0], offsets=whole)
        assert np.ptp(gradient[:size]) <= 1e-12 * gradient[0]
        assert gradient[:size].sum() == pytest.approx(-gradient[size:].sum(), rel=1e-12)


@pytest.mark.parametrize("scores", [np.zeros(10_000), np.random.default_rng(1500).normal(size=1500)])
def test_second_derivative_of_the_last(scores):
    """The variance of the arrival time, to which times far from the mode matter. Mutant: nodes that end where the
    integrand alone is negligible (.7 and 4.3 times the bound)."""
    for last in (-3.0, -2.5, 0.0, 4.0):
        gradient, diagonal = plr.bucket_log_prob_vjp(
            np.append(scores, last), np.append(np.zeros(scores.size, dtype=int), 1), [1.0], hessian=True,
            offsets=[0, scores.size + 1],
        )  # fmt: skip
        expected = ties.bucket((scores - last).astype(np.longdouble), finer=False)[3]
        assert abs(diagonal[-1] - expected) <= 0.2 * RTOL * max(1.0, -gradient[-1])


@pytest.mark.parametrize("log_odds", [1.9, 2.1, 20.0, 400.0, 650.0, 700.0])
@pytest.mark.parametrize("size", [2, 100, 20_000])
def test_nearly_certain(size, log_odds):
    """n equal documents before one: ln P = -sum of log1p(a / k) over k to n, with a = exp(-log_odds).

    Mutants: odds beyond 600 as if they were 600; nodes for P alone; 1 - exp(-x) less 1 in place of exp(-x); the later
    weight left out of the times; its second derivative without the square.
    """
    a, k = np.exp(-log_odds), np.arange(1, size + 1)
    scores, buckets = np.append(np.full(size, log_odds), 0.0), np.append(np.zeros(size, dtype=int), 1)
    whole = [0, size + 1]
    value = plr.bucket_log_prob(scores, buckets, offsets=whole)
    assert value == pytest.approx([-math.fsum(np.log1p(a / k))], rel=RTOL, abs=0)
    gradient, diagonal = plr.bucket_log_prob_vjp(scores, buckets, [1.0], offsets=whole, hessian=True)
    slope = -a * math.fsum(1 / (k + a))
    assert gradient[-1] == pytest.approx(slope, rel=RTOL, abs=0)
    assert gradient[:-1] == pytest.approx(np.full(size, -slope / size), rel=RTOL, abs=0)
    assert diagonal[-1] == pytest.approx(-a * math.fsum(k / (k + a) ** 2), rel=RTOL, abs=0)


def test_nearly_certain_but_for_one():
    """Documents far above the lightest tied one have no share in the derivatives, and infinite odds no derivative.

    Mutants: an end of the nodes from the lightest document alone; infinity less infinity.
    """
    scores, buckets = np.append(np.linspace(30.0, 32.0, 5000), [29.0, 0.0]), np.append(np.zeros(5001, dtype=int), 1)
    _, gradient, diagonal, _ = ties.bucket(scores[:-1].astype(np.longdouble), finer=False)
    first, second = plr.bucket_log_prob_vjp(scores, buckets, [1.0], hessian=True)
    assert np.abs(first[:-1] - gradient).max() <= RTOL * gradient.max()
    assert np.abs(second[:-1] - diagonal).max() <= RTOL * gradient.max()
    assert (plr.bucket_log_prob_vjp([1e308, 1e308, -1e308], [0, 0, 1], [1.0]) == 0.0).all()


def test_sums_of_a_million():
    """Equal terms, which are all rounded the same way. Mutants: plain sums of weights, of slopes, of values."""
    n = 1_000_000
    scores, buckets = np.append(0.0, np.full(n, -0.3)), np.append(0, np.ones(n, dtype=int))
    expected = -mpmath.log1p(n * mpmath.exp(mpmath.mpf(-0.3)))
    whole = [0, n + 1]
    assert plr.bucket_log_prob(scores, buckets, offsets=whole) == pytest.approx([float(expected)], rel=2e-15)
    gradient = plr.bucket_log_prob_vjp(np.append(np.full(n, 20.0), 0.0), 1 - buckets[::-1], [1.0], offsets=whole)
    shares = np.exp(-20.0) / (np.arange(1.0, n + 1) + np.exp(-20.0))
    assert gradient[-1] == pytest.approx(-math.fsum(shares), rel=RTOL, abs=0)
    assert math.fsum(gradient) == pytest.approx(0.0, abs=1e-15 * -gradient[-1])
    halves = np.repeat([0.7, -32.6], n // 2)
    ranking = np.roll(np.arange(n), n // 2)
    expected = math.fsum([*np.log1p(np.exp(33.3) * n / 2 + np.arange(n / 2.0)), *np.log(np.arange(1.0, n / 2 + 1))])
    of_buckets = plr.bucket_log_prob(halves, np.argsort(ranking), offsets=[0, n])[0]
    for got in (plr.ranking_log_prob(halves, [ranking])[0], of_buckets):
        assert got == pytest.approx(-expected, rel=2e-12)


@pytest.mark.parametrize("gap", [2.0, 4.0, 8.0, 16.0])
def test_whole_gaps(gap):
    """At 4 a place at which the integrand is surveyed is its mode. Mutant: an end of the nodes from its flat tangent
    (-inf)."""
    expected = np.log1p(-2 / (1 + np.exp(gap)) + 1 / (1 + 2 * np.exp(gap)))
    assert plr.bucket_log_prob([gap, gap, 0.0], [0, 0, 1]) == pytest.approx([expected], rel=RTOL, abs=RTOL)


@pytest.mark.parametrize("spread", [1.0, 30.0, 1e5])
def test_documents_in_buckets_of_their_own(spread):
    """The log-probability of a ranking, and its gradient. Mutant: units of later documents not changed."""
    scores = spread * np.random.default_rng(5).normal(size=12)
    ranking = np.random.default_rng(6).permutation(12)
    buckets = np.argsort(ranking)
    assert plr.bucket_log_prob(scores, buckets) == pytest.approx(plr.ranking_log_prob(scores, [ranking]), rel=1e-13)
    expected = plr.ranking_log_prob_vjp(scores, [ranking], [1.0])
    assert plr.bucket_log_prob_vjp(scores, buckets, [1.0]) == pytest.approx(expected, rel=1e-12, abs=1e-13)


def test_far_apart():
    """Scores 1e308 apart: the limit; numbers of buckets at their limit. Mutants: weights over the highest score of all;
    the certain has -0.0; numbers in single precision."""
    assert not np.signbit(plr.bucket_log_prob([3.0, 1.0], [0, 0]))
    assert plr.bucket_log_prob([0.0, 0.0], [2**53 - 1, 2**53]) == pytest.approx([-np.log(2)])
    assert plr.bucket_log_prob([1e308, 1e308, -1e308], [0, 0, 1]) == [0.0]
    assert plr.bucket_log_prob([-1e307, 0.0, 0.0], [0, 0, 1]) == pytest.approx([-1e307])
    gradient = plr.bucket_log_prob_vjp([-1e307, 0.0, 0.0], [0, 0, 1], [1.0])
    assert gradient == pytest.approx([1.0, 1 / 3, -4 / 3], abs=1e-10)


def test_list_mle_with_exact_ties():
    """The loss has the numbers of the function."""
    scores, buckets = random_order(4, 30, n_buckets=5)
    values, gradient = losses.list_mle(scores, -buckets, ties="exact")
    assert values.tobytes() == (0.0 - plr.bucket_log_prob(scores, buckets)).tobytes()
    assert gradient.tobytes() == plr.bucket_log_prob_vjp(scores, buckets, [-1.0]).tobytes()


@pytest.mark.parametrize("cutoff", range(8))
@pytest.mark.parametrize("seed", range(6))
def test_list_mle_with_exact_ties_and_a_cutoff(cutoff, seed):
    """The sum over all orders in which each of the first K ranks, and of those tied with rank K, has its label.

    Mutants: documents after rank K in the bucket of that rank; a bucket cut at rank K; one rank more.
    """
    scores, labels = random_order(seed, 6, n_buckets=2 + seed % 4)
    best = np.sort(labels)[::-1]
    n_ranks = 0 if cutoff == 0 else int((labels >= best[min(cutoff, 6) - 1]).sum())
    rankings = reference.all_rankings(6)
    agree = [ranking for ranking in rankings if (labels[ranking][:n_ranks] == best[:n_ranks]).all()]
    value, gradient = losses.list_mle(scores, labels, ties="exact", cutoff=cutoff)
    assert value == pytest.approx([-np.log(np.exp(plr.ranking_log_prob(scores, agree)).sum())], rel=1e-12, abs=1e-11)
    last = np.where(labels >= (best[n_ranks - 1] if n_ranks else np.inf), labels, best.min() - 1)
    same = losses.list_mle(scores, last, ties="exact")
    assert gradient.tobytes() == same[1].tobytes()
