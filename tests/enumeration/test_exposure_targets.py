"""Scores with prescribed exposures, and the loss that they minimise, against sums over all rankings."""

import itertools

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import losses, reference


def enumerated(scores, theta):
    return reference.exact_by_enumeration(scores, scores, theta)[3] @ theta[: scores.size]


@pytest.mark.parametrize("spread", [0.3, 1.0, 4.0])
@pytest.mark.parametrize(("n_docs", "cutoff"), [(2, 1), (5, 2), (5, 5), (4, 7), (6, 3)])
def test_scores_have_the_exposures(n_docs, cutoff, spread):
    """Mutant: the sign of a step."""
    scores, theta = spread * np.random.default_rng(n_docs).normal(size=n_docs), plr.dcg_weights(cutoff)
    target = enumerated(scores, theta)
    found = plr.scores_for_exposure(target, theta)
    assert abs(found.sum()) < 1e-12
    np.testing.assert_allclose(enumerated(found, theta), target, rtol=0, atol=2e-8 * theta.sum())
    np.testing.assert_allclose(found, scores - scores.mean(), rtol=0, atol=1e-5)


def test_from_far_away():
    """Targets close to the exposures of a single ranking."""
    theta = np.array([1.0, 0.6, 0.3, 0.1])
    for weight in (1e-2, 1e-4, 1e-6):
        target = (1 - weight) * theta + weight * theta.mean()
        found = plr.scores_for_exposure(target, theta)
        np.testing.assert_allclose(plr.exposure(found, theta), target, rtol=0, atol=2e-8)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_batch_is_loop(n_threads):
    """Bit for bit, with rank weights of each query. Mutant: queries that are done take the steps of others."""
    lengths, rng = [4, 0, 1, 9, 30], np.random.default_rng(3)
    offsets, theta = plr.offsets_from_group(lengths), np.sort(rng.random((5, 3)))[:, ::-1]
    scores = rng.normal(size=offsets[-1]) * np.repeat([0.1, 1.0, 1.0, 3.0, 1.0], lengths)
    target = plr.exposure(scores, theta, offsets=offsets)
    found = plr.scores_for_exposure(target, theta, offsets=offsets, n_threads=n_threads)
    values, gradient = losses.exposure_matching(scores, target, theta, offsets=offsets)
    for q in (0, 2, 3, 4):
        part = slice(offsets[q], offsets[q + 1])
        assert found[part].tobytes() == plr.scores_for_exposure(target[part], theta[q]).tobytes()
        alone = losses.exposure_matching(scores[part], target[part], theta[q])
        assert values[q] == alone[0][0]
        assert gradient[part].tobytes() == alone[1].tobytes()


@pytest.mark.parametrize(
    ("target", "theta", "message"),
    [
        ([0.8, 0.2, 0.5], [1.0, 0.5, 0.2], "the sum of rank_weights, 1.7, in query 0, got a sum of 1.5"),
        ([1.1, 0.2, 0.4], [1.0, 0.5, 0.2], "any 1 documents of query 0 less than 1, the weight of 1 ranks, got 1.1"),
        ([0.8, 0.75, 0.15], [1.0, 0.5, 0.2], "any 2 documents of query 0 less than 1.5, .* of 2 ranks, got 1.55"),
        ([0.5, 0.5, 0.0], [1.0], "target must be above 0, got 0.0 at index 2"),
        ([0.5, 0.5], [0.3, 0.7], r"rank_weights must be at least 0 and not ascend, got 0.3 at index \(0, 0\)"),
        ([0.5, -0.1], [0.5, -0.1], "rank_weights must be at least 0"),
        ([0.6, 0.4], [0.5, 0.5], "any 1 documents of query 0 less than 0.5"),
    ],
)  # fmt: skip
def test_targets_that_no_policy_has(target, theta, message):
    with pytest.raises(ValueError, match=message):
        plr.scores_for_exposure(target, theta)


def test_targets_are_held_against_their_own_query():
    """Mutant: the rank weights of the first query for all."""
    with pytest.raises(ValueError, match="any 1 documents of query 1 less than"):
        plr.scores_for_exposure([0.8, 0.7, 0.6, 0.4], [[1.0, 0.5], [0.5, 0.5]], offsets=[0, 2, 4])


@pytest.mark.parametrize("spread", [0.0, 1.0, 40.0])
def test_loss(spread):
    """Differences, closed forms for one rank and for all ranks alike, and the minimum.

    Mutants: half of the nodes; the scores not relative to the lowest; the sign of the target.
    """
    rng = np.random.default_rng(2)
    scores, theta = spread * rng.normal(size=5), np.array([1.0, 0.7, 0.1])
    target = enumerated(rng.normal(size=5), theta)
    value, gradient = losses.exposure_matching(scores, target, theta)
    np.testing.assert_allclose(gradient, enumerated(scores, theta) - target, rtol=0, atol=1e-8)
    shifted = losses.exposure_matching(scores - 500.0, target, theta)[0]
    assert shifted[0] == pytest.approx(value[0], abs=1e-8)
    for d, step in enumerate(1e-3 * np.eye(5)):
        ahead, behind = (losses.exposure_matching(scores + s * step, target, theta)[0][0] for s in (1, -1))
        assert (ahead - behind) / 2e-3 == pytest.approx(gradient[d], abs=2e-6)
    best = plr.scores_for_exposure(target, theta)
    assert losses.exposure_matching(best, target, theta)[0][0] <= value[0] + 1e-8
    share = target / target.sum()
    log_mean = np.log(np.mean(np.exp(scores - scores.max()))) + scores.max()
    assert losses.exposure_matching(scores, share, [1.0])[0][0] == pytest.approx(log_mean - share @ scores, abs=1e-8)
    of_all = losses.exposure_matching(scores, np.ones(5), np.ones(5))[0][0]
    assert of_all == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize("spread", [1e-301, 6.0, 40.0, 1e4, 1e12, 1e300])
def test_loss_of_one_rank_at_any_spread(spread):
    """With one rank it is ln sum e^f - target @ f, minus ln D. Queries of other spreads change no bit.

    Mutants: a first part of 60, eight nodes, an end too early, parts of the widest query.
    """
    scores = np.array([0.1, 0.45, 0.5, 0.99, 1.0, 0.0, 1e-3]) * spread
    share = np.array([0.3, 0.1, 0.2, 0.1, 0.1, 0.1, 0.1])
    expected = np.logaddexp.reduce(scores) - np.log(7) - share @ scores
    value = losses.exposure_matching(scores, share, [1.0])[0][0]
    assert value == pytest.approx(expected, rel=0, abs=1e-10 * max(spread, 1.0))
    batch = losses.exposure_matching([*scores, 3.0, 7.0], [*share, 0.5, 0.5], [1.0], offsets=[0, 7, 9])
    assert batch[0][0] == value


def test_loss_of_one_document_above_many():
    """The integrand has poles close to the path. Mutants: twelve nodes; each part four times as long as the last."""
    scores, share = 24.0 * (np.arange(100_000) == 0), np.full(100_000, 1e-5)
    expected = np.logaddexp.reduce(scores) - np.log(100_000) - share @ scores
    loss, _ = losses.exposure_matching(scores, share, [1.0], offsets=[0, 100_000])
    assert loss[0] == pytest.approx(expected, rel=0, abs=1e-9)


def test_negative_targets_are_refused():
    with pytest.raises(ValueError, match=r"target must be at least 0, got -1.0 at index 0"):
        losses.exposure_matching([0.0, 1.0], [-1.0, 2.0], [1.0])


def test_a_spread_beyond_the_largest_double_is_refused():
    with pytest.raises(ValueError, match="scores of a query lead to a result beyond the largest double"):
        losses.exposure_matching([-1.5e308, 1.5e308], [0.5, 0.5], [1.0])


def test_ranks_that_do_not_differ():
    """Every policy gives these exposures. Mutants: refused as out of reach; any targets of that sum taken."""
    targets, offsets = [1.0, 1.0, 1.0, 1.5, 0.5, 2.0], [0, 3, 5, 6]
    weights = [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [2.0, 0.0, 0.0]]
    with pytest.raises(ValueError, match=r"target must give any 1 documents of query 1 less than 1, .*, got 1.5$"):
        plr.scores_for_exposure(targets, weights, offsets=offsets)
    assert plr.scores_for_exposure(targets[:3], weights[0]).tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match=r"target must give any 1 documents of query 0 less than 1, .*, got 1$"):
        plr.scores_for_exposure([1.0, 0.5, 0.5], [1.0, 1.0, 0.0])


def test_inclusion():
    """Sums over the sets that come first. Mutant: one rank more."""
    scores = np.random.default_rng(4).normal(size=7)
    for k in range(1, 8):
        expected = np.zeros(7)
        for first in itertools.combinations(range(7), k):
            members = np.isin(np.arange(7), first)
            expected += np.exp(plr.bucket_log_prob(scores, ~members * 1)) * members
        np.testing.assert_allclose(plr.inclusion_probabilities(scores, k), expected, rtol=0, atol=1e-8)
    assert plr.inclusion_probabilities([1.0, 2.0], 10**15).tolist() == [1.0, 1.0]  # mutant: so many rank weights
