"""Metrics of readers who stop: the reference implementations among each other, by all rankings, up to 6 documents."""

import itertools

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import reference

KINDS_OF_STOP = ("none", "all", "relevant", "grades", "any", "one", "nearly")


def stop_of_a_kind(kind, rng, n_docs):
    """Chances to stop at each document."""
    return {
        "none": np.zeros(n_docs),
        "all": np.ones(n_docs),
        "relevant": rng.integers(0, 2, size=n_docs).astype(float),
        "grades": (2.0 ** rng.integers(0, 5, size=n_docs) - 1) / 16,
        "any": rng.random(n_docs),
        "one": (np.arange(n_docs) == rng.integers(n_docs)) * 1.0,
        "nearly": 1 - 10.0 ** -rng.uniform(1, 15, size=n_docs),
    }[kind]


def problem_of(kind, n_docs, cutoff, spread=1.0):
    """Scores, relevance with zeros, rank weights, both signed, and chances to stop."""
    rng = np.random.default_rng([KINDS_OF_STOP.index(kind), n_docs, cutoff, int(10 * spread)])
    relevance = rng.normal(size=n_docs) * (rng.random(n_docs) < 0.7)
    return spread * rng.normal(size=n_docs), relevance, rng.normal(size=cutoff), stop_of_a_kind(kind, rng, n_docs)


class TestReferences:
    """Mutants: later ranks reached by all readers in a derivative; z - 1 for the derivative of q + s p z."""

    @pytest.mark.parametrize("kind", KINDS_OF_STOP)
    @pytest.mark.parametrize("n_docs", [1, 2, 4, 5, 6])
    def test_sets_and_quadrature_against_all_rankings(self, kind, n_docs):
        for cutoff in range(1, n_docs + 2):
            *problem, stop = problem_of(kind, n_docs, cutoff)
            expected = reference.exact_by_enumeration(*problem, stop)[:3]
            for got in (
                reference.exact_by_subsets(*problem, stop), reference.exact_by_trapezoid(*problem, step=0.04, stop=stop)
            ):  # fmt: skip
                for ours, theirs in zip(got, expected, strict=True):
                    np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-14)

    @pytest.mark.parametrize("kind", KINDS_OF_STOP)
    def test_normal_noise_by_differences_and_by_sampling(self, kind):
        scores, relevance, weights, stop = problem_of(kind, 4, 3)
        value, gradient, hessian = reference.exact_normal_by_trapezoid(scores, relevance, weights, stop=stop)
        for j, step in enumerate(1e-5 * np.eye(4)):
            above, below = (
                reference.exact_normal_by_trapezoid(moved, relevance, weights, stop=stop)
                for moved in (scores + step, scores - step)
            )
            assert abs((above[0] - below[0]) / 2e-5 - gradient[j]) < 1e-9
            assert abs((above[1][j] - below[1][j]) / 2e-5 - hessian[j]) < 1e-9
        rng = np.random.default_rng(0)
        rankings = np.argsort(-(scores + rng.normal(size=(200_000, 4))), axis=1)[:, :3]
        read = np.cumprod(1 - stop[rankings], axis=1)
        reached = np.column_stack([np.ones(len(read)), read[:, :-1]])
        metrics = (weights * relevance[rankings] * reached).sum(axis=1)
        assert abs(metrics.mean() - value) < 5 * metrics.std() / np.sqrt(metrics.size) + 1e-12

    @pytest.mark.parametrize("cutoff", [1, 3, 5])
    def test_metrics_by_their_names(self, cutoff):
        """Reciprocal rank, success and ERR of each ranking, averaged over all rankings."""
        rng = np.random.default_rng(cutoff)
        scores, labels = rng.normal(size=5), np.array([0, 2, 0, 1, 2])
        relevant, chance = (labels > 0) * 1.0, (2.0**labels - 1) / 4
        harmonic = 1 / np.arange(1, cutoff + 1)
        expected = np.zeros(3)
        for ranking in itertools.permutations(range(5)):
            in_order = -np.argsort(ranking).astype(float)
            probability = np.exp(reference.ranking_log_prob(scores, np.array([ranking])))[0]
            metrics = (
                plr.reciprocal_rank(in_order, labels, cutoff), plr.success(in_order, labels, cutoff),
                plr.err(in_order, labels, cutoff),
            )  # fmt: skip
            expected += probability * np.concatenate(metrics)
        for metric, (theta, gain) in zip(
            expected, [(harmonic, relevant), (np.ones(cutoff), relevant), (harmonic, chance)], strict=True
        ):
            assert abs(reference.exact_by_subsets(scores, gain, theta, gain)[0] - metric) < 1e-14
