"""The published experiments' functions: arguments and shapes, numbers of reference implementations, repeatability."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import reference
from plrank_fast.compat import sigir22
from problems import graded, graded_batch

RNG = np.random.default_rng(7)
SIZES = [(5, 3), (9, 4), (6, 6), (4, 9)]  # documents, rank weights


def complete_rankings(n_docs, n_samples):
    return np.argsort(np.random.default_rng(n_samples).random((n_samples, n_docs)), axis=1)


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


@pytest.mark.parametrize(
    "name", ["PL_rank_1", "PL_rank_2", "PL_rank_3", "policy_gradient", "placement_policy_gradient"]
)
def test_batches(name):
    """Each query the bits of its own call. Mutant: ``offsets`` not handed on."""
    scores, labels, theta, offsets = graded_batch([5, 9, 1, 6], 3)
    whole = getattr(sigir22, name)(theta, labels, scores, 10, offsets=offsets, rng=5)
    options = dict(offsets=offsets, n_samples=10, rng=5)
    assert (whole == getattr(plr, name.lower())(scores, labels, theta, **options)).all()
    rankings = plr.sample_rankings(scores, 10, 3, offsets=offsets, rng=1)
    whole = getattr(sigir22, name)(theta, labels, scores, sampled_rankings=rankings, offsets=offsets)
    for query, (start, stop) in enumerate(itertools.pairwise(offsets)):
        alone = getattr(sigir22, name)(
            theta, labels[start:stop], scores[start:stop], sampled_rankings=rankings[query, :, : min(3, stop - start)]
        )
        assert (whole[start:stop] == alone).all()


def test_columns_of_scores_as_the_policy_gradients_take_them():
    """The published ones take (n_docs, 1). Mutant: the column not flattened (an error)."""
    scores, labels, theta = graded(5, 3)
    column = sigir22.policy_gradient(theta, labels, scores[:, np.newaxis], 10, rng=0)
    assert (column == sigir22.policy_gradient(theta, labels, scores, 10, rng=0)).all()


@pytest.mark.parametrize("gap", [25.0, 40.0, 800.0])
@pytest.mark.parametrize("name", ["PL_rank_1", "PL_rank_2", "PL_rank_3"])
def test_where_the_published_code_clamps_or_gives_nan(name, gap):
    """Finite, and the gradient of the ranks that are still open: the last two of four documents change places."""
    scores, labels, theta = np.array([gap, 0.0, 0.0, 2 * gap]), np.array([0.0, 0.0, 1.0, 0.0]), plr.dcg_weights(4)
    rankings = np.array([[3, 0, 1, 2], [3, 0, 2, 1]])
    got = getattr(sigir22, name)(theta, labels, scores, sampled_rankings=rankings)
    drop = (theta[2] - theta[3]) / 4
    np.testing.assert_allclose(got, [0.0, -drop, drop, 0.0], atol=1e-9)


# --- StochasticRank


@pytest.mark.parametrize(("n_docs", "cutoff"), SIZES)
@pytest.mark.parametrize("noise", ["gumbel", "normal"])
def test_stochasticrank_of_given_values(noise, n_docs, cutoff):
    """NumPy agrees, to the accuracy of the kernel. Mutants: the noise not taken off the scores; its sign."""
    scores, labels, theta = graded(n_docs, cutoff)
    draw = getattr(np.random.default_rng(3), noise)
    values = scores + draw(size=(12, n_docs))
    got = getattr(sigir22, f"{noise}_stochasticrank")(theta, labels, scores, sampled_values=values)
    density = getattr(reference, f"{noise}_density")
    best = reference.stochastic_rank(scores, labels, theta, values, density)
    np.testing.assert_allclose(got, best, atol=1e-6 * abs(labels).max())
    again = getattr(sigir22, f"{noise}_stochasticrank")(
        theta, labels, scores, 12, np.argsort(-values, axis=1)[:, : cutoff + 1], None, values
    )
    assert (got == again).all()


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
    """The mean over noisy scores, as in 2021. Mutants: noise on the ranks alone, or on the push alone; the sum."""
    scores, labels, theta = graded(6, 3)
    noisy = scores + np.random.default_rng(4).gumbel(size=(50, 6))
    expected = np.mean([pairwise_lambdaloss(theta, labels, drawn) for drawn in noisy], axis=0)
    np.testing.assert_allclose(sigir22.lambdaloss(theta, labels, scores, n_samples=50, rng=4), expected, rtol=1e-12)


def test_lambdaloss_of_a_batch_and_at_wide_gaps():
    """Mutant: exp(score difference) over one plus itself, which is NaN from 709 on."""
    scores, labels, theta, offsets = graded_batch([5, 9, 1, 6], 3)
    whole = sigir22.lambdaloss(theta, labels, scores, offsets=offsets)
    for start, stop in itertools.pairwise(offsets):
        assert (whole[start:stop] == sigir22.lambdaloss(theta, labels[start:stop], scores[start:stop])).all()
    push = sigir22.lambdaloss(np.array([1.0]), np.array([1, 0]), np.array([0.0, 1e4]))
    np.testing.assert_allclose(push, [1 / np.log(2), -1 / np.log(2)])
    assert (sigir22.lambdaloss(np.array([1.0]), np.array([0, 1]), np.array([0.0, 1e4])) == 0.0).all()


# --- rankings


def test_rankings_with_all_that_can_come_with_them():
    """Inverse, probabilities and noise belong to the rankings. Mutants: the inverse of the full ranking; the
    probability of the next rank."""
    scores = graded(7, 3)[0]
    rankings, inverse, chances, per_rank, noisy = sigir22.gumbel_sample_rankings(
        scores, 50, 3, inverted=True, doc_prob=True, prob_per_rank=True, return_gumbel=True, rng=0
    )
    assert rankings.shape == chances.shape == (50, 3)
    assert inverse.shape == noisy.shape == (50, 7)
    assert per_rank.shape == (3, 7)
    assert (np.argsort(-noisy, axis=1)[:, :3] == rankings).all()
    for ranking, positions in zip(rankings, inverse, strict=True):
        assert (positions[ranking] == [0, 1, 2]).all()
        assert (np.delete(positions, ranking) == 3).all()
    log_prob = plr.ranking_log_prob(scores, rankings)
    np.testing.assert_allclose(np.log(chances).sum(axis=1), log_prob, rtol=1e-12)
    np.testing.assert_allclose(per_rank.sum(axis=1), 1.0)
    np.testing.assert_allclose(per_rank[0], np.exp(scores) / np.exp(scores).sum())


def test_rankings_are_those_of_the_library():
    scores = graded(7, 3)[0]
    rankings, *nothing = sigir22.gumbel_sample_rankings(scores, 20, cutoff=3, rng=4)
    assert (rankings == plr.sample_rankings(scores, 20, 3, rng=4)).all()
    assert rankings.dtype == np.int64
    assert nothing == [None] * 4
    full = sigir22.gumbel_sample_rankings(scores, 20, cutoff=3, return_full_rankings=True, rng=4)[0]
    assert (np.sort(full, axis=1) == np.arange(7)).all()
    assert sigir22.gumbel_sample_rankings(scores, 20, rng=4)[0].shape == (20, 7)
    assert len(sigir22.sample_rankings(scores, 20, 3, rng=4)) == 3
    assert len(sigir22.sample_rankings(scores, 20, 3, prob_per_rank=True, rng=4)) == 4


def test_rankings_by_normal_noise():
    scores = graded(7, 3)[0]
    rankings, inverse, noisy = sigir22.normal_sample_rankings(scores, 4000, 3, inverted=True, return_gumbel=True, rng=0)
    assert (np.argsort(-noisy, axis=1)[:, :3] == rankings).all()
    assert (np.take_along_axis(inverse, rankings, axis=1) == [0, 1, 2]).all()
    assert abs((noisy - scores).std() - 1.0) < 0.02
    assert sigir22.normal_sample_rankings(scores, 5, rng=0)[1:] == (None, None)


# --- random numbers


def gradients_after(seed, times=2):
    np.random.seed(seed)  # noqa: NPY002
    sigir22.reseed()
    scores, labels, theta = graded(9, 4)
    return [sigir22.PL_rank_3(theta, labels, scores, n_samples=10) for _ in range(times)]


def test_the_global_seed_makes_a_script_repeatable():
    """Every call draws anew. Mutants: fresh entropy; the generator derived in every call (the same numbers)."""
    first, second = gradients_after(1)
    again = gradients_after(1)
    assert (first == again[0]).all()
    assert (second == again[1]).all()
    assert (first != second).any()
    assert (gradients_after(2)[0] != first).any()


def test_derived_once():
    """Only the first call touches numpy.random. Mutant: words drawn in every call."""
    gradients_after(1)
    before = np.random.get_state()[2]  # noqa: NPY002
    scores, labels, theta = graded(9, 4)
    sigir22.PL_rank_3(theta, labels, scores, n_samples=10)
    sigir22.gumbel_sample_rankings(scores, 5, return_gumbel=True)
    assert np.random.get_state()[2] == before  # noqa: NPY002


FORKS = """
import os
import numpy as np
from plrank_fast.compat import sigir22

np.random.seed(0)
sigir22.gumbel_sample_rankings(np.zeros(50), 1)
for seed in (None, None, 3, 3):
    child = os.fork()
    if child == 0:
        if seed is not None:
            np.random.seed(seed)
        print(*sigir22.gumbel_sample_rankings(np.zeros(50), 1)[0][0], flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forked_siblings_share_no_stream_unless_they_seed_it():
    """Mutants: nothing done after a fork (all four alike); the process id always mixed in (the last two differ)."""
    answer = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=True)
    first, second, third, fourth = answer.stdout.splitlines()
    assert len({first, second, third}) == 3
    assert third == fourth


# --- errors


@pytest.mark.parametrize(
    ("message", "call"),
    [
        ("n_samples must be given, or sampled_rankings", lambda *p: sigir22.PL_rank_3(*p)),
        ("n_samples must be given, or sampled_values", lambda *p: sigir22.normal_stochasticrank(*p)),
        ("sampled_values must be given with sampled_rankings",
         lambda *p: sigir22.gumbel_stochasticrank(*p, sampled_rankings=[[0, 1, 2]])),
        ("sampled_values must have shape", lambda *p: sigir22.gumbel_stochasticrank(*p, sampled_values=[[0.0, 1.0]])),
        ("offsets only goes with sampled_values=None",
         lambda *p: sigir22.gumbel_stochasticrank(*p, sampled_values=np.zeros((1, 5)), offsets=[0, 5])),
        ("labels must have one entry per score", lambda t, y, f: sigir22.lambdaloss(t, y[1:], f)),
        ("rankings must", lambda *p: sigir22.PL_rank_3(*p, sampled_rankings=[[0, 0, 0]])),
    ],
)  # fmt: skip
def test_errors_name_the_argument(message, call):
    with pytest.raises(ValueError, match=message):
        call(*graded(5, 3)[::-1])
