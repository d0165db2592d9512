"""Sums over very many rankings: as exact as those over a few, and the same bits whoever adds them up."""

import math

import numpy as np
import pytest

import plrank_fast as plr
from public_calls import Call, arrays

SCORES, RELEVANCE = np.random.default_rng(3).normal(size=(2, 60))
RANK_WEIGHTS = np.array([0.7, 0.3, 0.55])


def of_metric(function, **options):
    call = Call(function, options)
    return lambda n_docs, **more: np.hstack(arrays(call(SCORES[:n_docs], RELEVANCE[:n_docs], RANK_WEIGHTS, **more)))


def mean_log_prob_gradient(n_docs, rankings):
    return plr.ranking_log_prob_vjp(SCORES[:n_docs], rankings, np.ones(len(rankings))) / len(rankings)


ESTIMATORS = {
    **{name: of_metric(getattr(plr, name)) for name in ("pl_rank_1", "pl_rank_2", "pl_rank_3", "pl_rank_cmc")},
    "policy_gradient": of_metric(plr.policy_gradient, cutoff=None),
    "pl_rank_3 hessian": of_metric(plr.pl_rank_3, hessian=True),
    "pl_rank_cmc hessian": of_metric(plr.pl_rank_cmc, hessian=True),
    "expected_metric": of_metric(plr.expected_metric, method="sample"),
    "exposure": of_metric(plr.exposure),
}


@pytest.mark.parametrize("n_docs", [6, 60])
@pytest.mark.parametrize(
    "estimate", [*ESTIMATORS.values(), mean_log_prob_gradient], ids=[*ESTIMATORS, "ranking_log_prob_vjp"]
)
def test_as_exact_as_few(estimate, n_docs):
    """One ranking 99,990 times, ten others once, against exact sums of each one's own terms. Seen failing with plain
    sums, by up to 4.6e-12 of the terms. Mutants: sums not moved; a state's sums not handed out before."""
    drawn = plr.sample_rankings(SCORES[:n_docs], 11, 3, rng=0)
    counts = np.array([99_990] + 10 * [1])
    got = estimate(n_docs, rankings=np.repeat(drawn, counts, axis=0))
    terms = counts[:, np.newaxis] * [estimate(n_docs, rankings=row[np.newaxis]) for row in drawn]
    best = np.array([math.fsum(of_one) for of_one in terms.T])
    assert (np.abs(got * counts.sum() - best) <= 0.5e-12 * np.abs(terms).sum(axis=0)).all()


@pytest.mark.parametrize("n_samples", [4096, 9000])
@pytest.mark.parametrize("name", sorted({*ESTIMATORS} - {"exposure"}))  # which draws none
def test_same_bits_whoever_adds(name, n_samples, costs):
    """Drawn and given, in one piece and in rounds of one or two threads. Mutants: sums moved after as many rankings as
    a round has; drawn rankings left where they are."""
    estimate, rankings = ESTIMATORS[name], plr.sample_rankings(SCORES, n_samples, 3, rng=1)
    costs(teams=1)
    expected = estimate(60, rankings=rankings, n_threads=1)
    for round_ns in (1e18, 1e3):
        costs(round_ns=round_ns)
        np.testing.assert_array_equal(estimate(60, rankings=rankings, n_threads=2), expected)
        for n_threads in (1, 2):
            np.testing.assert_array_equal(estimate(60, n_samples=n_samples, rng=1, n_threads=n_threads), expected)


def test_what_rounding_takes_off_a_total_is_kept():
    """A ranking that counts once between thousands of others that cancel. Mutant: totals summed plainly."""
    ranking, counts = np.array([[2, 0, 1]]), np.zeros(12_288)
    counts[[0, 4_096, 8_192]] = 2.0**70, 1.0, -(2.0**70)
    got = plr.ranking_log_prob_vjp(SCORES[:6], np.repeat(ranking, counts.size, axis=0), counts)
    np.testing.assert_allclose(got, plr.ranking_log_prob_vjp(SCORES[:6], ranking, [1.0]), rtol=1e-13)


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint16, ">i4"])
def test_rankings_are_checked_by_teams(kind, on_team):
    """Each query by one thread, whatever the type of the numbers: the same result, and the first fault is told.

    Mutants: what one query has seen taken for the next one's; the last fault, or the one of another kind; the low half
    of wide numbers."""
    n_docs, scores = 5, np.random.default_rng(4).normal(size=5 * 300)
    offsets = np.arange(0, scores.size + 1, n_docs)
    rankings = plr.sample_rankings(scores, 2, 3, offsets=offsets, rng=0)
    call = lambda n_threads, given: plr.ranking_log_prob(scores, given, offsets=offsets, n_threads=n_threads)  # noqa: E731
    expected = call(1, rankings)
    faulty = rankings.astype(kind)
    faulty[40:, 1, 2] = n_docs + 4
    faulty[30, 1, 1] = faulty[30, 1, 0]
    for n_threads in (1, 2, 7):
        np.testing.assert_array_equal(on_team(n_threads, call, given=rankings.astype(kind)), expected)
        with pytest.raises(ValueError, match=r"not repeat an item, got \d at \(query 30, sample 1, rank 1\)"):
            call(n_threads, faulty)
    if kind == np.int64:
        faulty[10, 0, 2] = 2**32
        with pytest.raises(ValueError, match=r"items 0 to 4, got 4294967296 at \(query 10, sample 0, rank 2\)"):
            call(2, faulty)
