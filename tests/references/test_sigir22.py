"""The published experiments' functions: arguments and shapes, numbers of reference implementations, repeatability."""

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import reference
from plrank_fast.compat import sigir22
from problems import graded

SIZES = [(5, 3), (9, 4), (6, 6), (4, 9)]  # documents, rank weights


def complete_rankings(n_docs, n_samples):
    return np.argsort(np.random.default_rng(n_samples).random((n_samples, n_docs)), axis=1)


def seeded(function, *arguments, **options):
    np.random.seed(4)  # noqa: NPY002
    return function(*arguments, **options)


def of_library(function, *arguments, **options):
    """The library's function, with the numbers that a seeded call of a published one draws."""
    return seeded(lambda: function(*arguments, rng=np.random.get_bit_generator(), **options))


# --- PL-Rank and policy gradients


@pytest.mark.parametrize(("n_docs", "cutoff"), SIZES)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(
    ("name", "best"),
    [
        ("PL_rank_1", reference.pl_rank_1),
        ("PL_rank_2", reference.pl_rank_2),
        ("PL_rank_3", reference.pl_rank_3),
        ("policy_gradient", reference.policy_gradient),
        ("placement_policy_gradient", lambda *given: reference.policy_gradient(*given, to_go=True)),
    ],
)
def test_given_rankings(name, best, n_docs, cutoff, full):
    """NumPy agrees, for rankings of all documents and of the first K. Mutants: labels and scores swapped;
    another estimator called."""
    scores, labels, theta = graded(n_docs, cutoff)
    rankings = complete_rankings(n_docs, 8)
    rankings = rankings if full else rankings[:, :cutoff]
    got = getattr(sigir22, name)(theta, labels, scores, sampled_rankings=rankings)
    np.testing.assert_allclose(got, best(scores, labels, theta, rankings[:, :cutoff]), rtol=1e-12, atol=1e-13)
    assert got.dtype == np.float64


def test_columns_of_scores_as_the_policy_gradients_take_them():
    """The published ones take (n_docs, 1). Mutant: the column not flattened (an error)."""
    scores, labels, theta = graded(5, 3)
    column = seeded(sigir22.policy_gradient, theta, labels, scores[:, np.newaxis], 10)
    assert (column == seeded(sigir22.policy_gradient, theta, labels, scores, 10)).all()


# --- StochasticRank


@pytest.mark.parametrize("noise", ["gumbel", "normal"])
def test_stochasticrank(noise):
    """Mutants: the other noise; labels and scores swapped."""
    scores, labels, theta = graded(9, 4)
    got = seeded(getattr(sigir22, f"{noise}_stochasticrank"), theta, labels, scores, 12)
    assert (got == of_library(plr.stochastic_rank, scores, labels, theta, noise=noise, n_samples=12)).all()


# --- LambdaLoss


def pairwise_lambdaloss(theta, labels, scores):
    """From the formula, pair by pair."""
    ranks = np.empty(scores.size, dtype=int)
    ranks[np.lexsort((np.arange(scores.size), -scores))] = np.arange(scores.size)
    at = [*theta, *np.zeros(scores.size + 1)]
    gradient = np.zeros(scores.size)
    for i in range(scores.size):
        for j in range(scores.size):
            if labels[i] > labels[j]:
                apart = abs(ranks[i] - ranks[j])
                weight = (at[apart - 1] - at[apart]) * (labels[i] - labels[j])
                push = weight / np.log(2) * np.exp(-np.logaddexp(0.0, scores[i] - scores[j]))
                gradient[i] += push
                gradient[j] -= push
    return gradient


@pytest.mark.parametrize(("n_docs", "cutoff"), [*SIZES, (1, 3), (30, 4)])
def test_lambdaloss(n_docs, cutoff):
    """Mutants: ascending ranks (only with more documents than rank weights, as published); the first drop left out;
    logarithm to base e."""
    scores, labels, theta = graded(n_docs, cutoff)
    scores[: n_docs // 2] = scores[0]  # ties
    got = sigir22.lambdaloss(theta, labels, scores)
    np.testing.assert_allclose(got, pairwise_lambdaloss(theta, labels, scores), rtol=1e-12, atol=1e-14)


def test_lambdaloss_of_sampled_scores():
    """The mean over noisy scores, drawn or given, as in 2021. Mutants: noise on the ranks alone, or on the push alone;
    the sum."""
    scores, labels, theta = graded(6, 3)
    noisy = scores + np.random.default_rng(4).gumbel(size=(50, 6))
    expected = np.mean([pairwise_lambdaloss(theta, labels, drawn) for drawn in noisy], axis=0)
    np.testing.assert_allclose(
        sigir22.lambdaloss(theta, labels, scores, gumbel_scores=noisy), expected, rtol=1e-12, atol=1e-14
    )
    _, inverse, *_, drawn = seeded(
        sigir22.gumbel_sample_rankings, scores, 50, cutoff=None, inverted=True, return_gumbel=True
    )
    given = sigir22.lambdaloss(theta, labels, scores, sampled_inv_rankings=inverse, gumbel_scores=drawn)
    assert (seeded(sigir22.lambdaloss, theta, labels, scores, n_samples=50) == given).all()


def test_lambdaloss_at_wide_gaps():
    """Mutant: exp(score difference) over one plus itself, which is NaN from 709 on."""
    push = sigir22.lambdaloss(np.array([1.0]), np.array([1, 0]), np.array([0.0, 1e4]))
    np.testing.assert_allclose(push, [1 / np.log(2), -1 / np.log(2)])
    assert (sigir22.lambdaloss(np.array([1.0]), np.array([0, 1]), np.array([0.0, 1e4])) == 0.0).all()


# --- rankings


def test_rankings_with_all_that_can_come_with_them():
    """Inverse and noise belong to the rankings. Mutants: the inverse of the full ranking; noise of other rankings."""
    scores = graded(7, 3)[0]
    rankings, inverse, *nothing, noisy = sigir22.gumbel_sample_rankings(
        scores, 50, cutoff=3, inverted=True, return_gumbel=True
    )
    assert rankings.shape == (50, 3)
    assert inverse.shape == noisy.shape == (50, 7)
    assert nothing == [None, None]
    assert (np.argsort(-noisy, axis=1)[:, :3] == rankings).all()
    for ranking, positions in zip(rankings, inverse, strict=True):
        assert (positions[ranking] == [0, 1, 2]).all()
        assert (np.delete(positions, ranking) == 3).all()


def test_rankings_are_those_of_the_library():
    scores = graded(7, 3)[0]
    rankings, *nothing = seeded(sigir22.gumbel_sample_rankings, scores, 20, cutoff=3)
    assert (rankings == of_library(plr.sample_rankings, scores, 20, 3)).all()
    assert rankings.dtype == np.int64
    assert nothing == [None] * 4
    for cutoff in (None, 0, 9):
        assert (np.sort(sigir22.gumbel_sample_rankings(scores, 20, cutoff)[0], axis=1) == np.arange(7)).all()


def test_the_global_seed_makes_a_script_repeatable():
    """Every call draws anew. Mutants: fresh entropy; a key from the seed alone."""
    theta, labels, scores = graded(9, 4)[::-1]
    first, second, again = (
        seeded(lambda n: [sigir22.PL_rank_3(theta, labels, scores, n_samples=10) for _ in range(n)], n)[-1]
        for n in (1, 2, 1)
    )
    assert (first == again).all()
    assert (first != second).any()


# --- errors


@pytest.mark.parametrize(
    ("message", "call"),
    [
        ("n_samples must be given, or sampled_rankings", lambda *p: sigir22.PL_rank_3(*p)),
        ("n_samples must be given, got None", lambda *p: sigir22.normal_stochasticrank(*p)),
        ("sampled_rankings only goes with", lambda *p: sigir22.gumbel_stochasticrank(*p, 5, [[0, 1]])),
        ("gumbel_scores must have shape", lambda *p: sigir22.lambdaloss(*p, gumbel_scores=[[0.0, 1.0]])),
        ("labels must have one entry per score", lambda t, y, f: sigir22.lambdaloss(t, y[1:], f)),
        ("rankings must", lambda *p: sigir22.PL_rank_3(*p, sampled_rankings=[[0, 0, 0]])),
    ],
)  # fmt: skip
def test_errors_name_the_argument(message, call):
    with pytest.raises(ValueError, match=message):
        call(*graded(5, 3)[::-1])
