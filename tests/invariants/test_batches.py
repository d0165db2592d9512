"""Batches with empty queries, at every place and by every way a query can take: the bits of each query by itself."""

import functools
import inspect

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import fairness, losses
from plrank_fast._core.runtime import threads as _threads
from problems import ragged

FIRST = 3  # number of the first query
OPENMP = plr.build_info()["openmp"]
N_SAMPLES = 70  # more than one group of rankings, and more than one block for queries of 33 items or more


def sampled(function, **options):
    """A call with streams, which depend on the number of the query."""

    def call(scores, relevance, rank_weights, first_query, **batch):
        return function(
            scores, relevance, rank_weights, n_samples=N_SAMPLES, rng=5, first_query=first_query, **options, **batch
        )

    return call


def given(function, **options):
    """A call over given rankings, those of the streams."""

    def call(scores, relevance, rank_weights, first_query, **batch):
        rankings = plr.sample_rankings(
            scores, N_SAMPLES, rank_weights.shape[-1], rng=5, first_query=first_query, offsets=batch.get("offsets")
        )
        return function(scores, relevance, rank_weights, rankings=rankings, **options, **batch)

    return call


def weighed(function, **options):
    return lambda scores, relevance, rank_weights, first_query, **batch: function(
        scores, relevance, rank_weights, **options, **batch
    )


def ranked(function, **options):
    return lambda scores, relevance, rank_weights, first_query, **batch: function(scores, relevance, **options, **batch)


def log_prob(scores, relevance, rank_weights, first_query, offsets=None, **batch):
    cutoff = rank_weights.shape[-1]
    rankings = plr.sample_rankings(scores, 3, cutoff, rng=5, first_query=first_query, offsets=offsets)
    return plr.ranking_log_prob(scores, rankings, offsets=offsets, **batch).reshape(-1)


def log_prob_vjp(scores, relevance, rank_weights, first_query, offsets=None, **batch):
    cutoff = rank_weights.shape[-1]
    rankings = plr.sample_rankings(scores, N_SAMPLES, cutoff, rng=5, first_query=first_query, offsets=offsets)
    cotangent = np.random.default_rng(5).normal(size=N_SAMPLES)
    if offsets is not None:
        cotangent = np.tile(cotangent, (len(offsets) - 1, 1))
    return plr.ranking_log_prob_vjp(scores, rankings, cotangent, offsets=offsets, **batch)


def rankings(sampler):
    """Without the padding of queries shorter than the cutoff."""

    def call(scores, relevance, rank_weights, first_query, **batch):
        drawn = plr.sample_rankings(
            scores, N_SAMPLES, 4, rng=5, sampler=sampler, first_query=first_query, **batch
        ).reshape(-1)
        return drawn[drawn >= 0]

    return call


CALLS = {
    "pl_rank_3": sampled(plr.pl_rank_3),
    "pl_rank_3 hessian": sampled(plr.pl_rank_3, hessian=True),
    "pl_rank_3 baseline": sampled(plr.pl_rank_3, baseline="pilot"),
    "pl_rank_3 given": given(plr.pl_rank_3),
    "pl_rank_3 latin hypercube": sampled(plr.pl_rank_3, sampler="latin_hypercube"),
    "pl_rank_3 introselect": sampled(plr.pl_rank_3, sampler="introselect"),
    "pl_rank_2": sampled(plr.pl_rank_2),
    "pl_rank_2 given": given(plr.pl_rank_2),
    "pl_rank_1": sampled(plr.pl_rank_1),
    "pl_rank_cmc": sampled(plr.pl_rank_cmc),
    "pl_rank_cmc hessian": sampled(plr.pl_rank_cmc, hessian=True),
    "pl_rank_cmc given": given(plr.pl_rank_cmc),
    "policy_gradient": sampled(plr.policy_gradient),
    "policy_gradient baseline": sampled(plr.policy_gradient, baseline=True),
    "placement_policy_gradient": sampled(plr.placement_policy_gradient),
    "placement_policy_gradient given": given(plr.placement_policy_gradient, baseline=True),
    "stochastic_rank": sampled(plr.stochastic_rank),
    "stochastic_rank normal": sampled(plr.stochastic_rank, noise="normal"),
    "expected_metric sample": sampled(plr.expected_metric, method="sample"),
    "expected_metric given": given(plr.expected_metric, method="sample"),
    "expected_metric": weighed(plr.expected_metric),
    "pl_rank_exact": weighed(plr.pl_rank_exact),
    "pl_rank_exact hessian": weighed(plr.pl_rank_exact, hessian=True),
    "pl_rank_exact normal": weighed(plr.pl_rank_exact, noise="normal"),
    "rank_probabilities": ranked(lambda scores, relevance, **batch: plr.rank_probabilities(scores, 4, **batch)),
    "dcg": weighed(plr.dcg),
    "ndcg": weighed(plr.ndcg),
    "precision": ranked(plr.precision, cutoff=3),
    "recall": ranked(plr.recall, cutoff=3),
    "dcg ties": weighed(plr.dcg, ties="average"),
    "average_precision": ranked(plr.average_precision, cutoff=3),
    "reciprocal_rank": ranked(plr.reciprocal_rank),
    "success": ranked(plr.success, cutoff=2),
    "err": ranked(plr.err, max_label=4),
    "rbp": ranked(plr.rbp),
    "average_relevance_position": ranked(plr.average_relevance_position),
    "ranking_log_prob": log_prob,
    "ranking_log_prob_vjp": log_prob_vjp,
    **{name: ranked(getattr(losses, name)) for name in losses.__all__},
    "soft_rank cutoff": ranked(losses.soft_rank, cutoff=3),
    **{
        f"sample_rankings {sampler}": rankings(sampler)
        for sampler in ("auto", "introselect", "network", "alias", "threshold")
    },
    **{
        f"value_and_gradient {method}": sampled(plr.value_and_gradient, method=method)
        for method in ("pl_rank_exact", "pl_rank_3", "pl_rank_cmc")
    },
    **{
        f"disparity_gradient {method}": sampled(fairness.disparity_gradient, method=method)
        for method in ("pl_rank_3", "pl_rank_2", "stochastic_rank", "policy_gradient")
    },
}  # fmt: skip


def arrays(result):
    return [np.asarray(array) for array in (result if isinstance(result, tuple) else (result,))]


def query_by_query(name, scores, relevance, rank_weights, offsets):
    """The batch without a batch, each query by itself; empty ones too, which some functions give a number."""
    parts = []
    for query in range(len(offsets) - 1):
        part = slice(offsets[query], offsets[query + 1])
        parts.append(arrays(CALLS[name](scores[part], relevance[part], rank_weights[query], FIRST + query)))
    return [np.concatenate(part) for part in zip(*parts, strict=True)]


@pytest.fixture(autouse=True)
def many_processors(monkeypatch):
    monkeypatch.setattr("plrank_fast._core.runtime.threads.available_cpus", lambda: 64)


# every query long enough for a round of its own, none so, and everything in between; the same of what rounds teach
COSTS = [
    {"round_ns": round_ns, "worth_ns": worth_ns, "learnt_factor": learnt_factor}
    for round_ns in (1e-3, 1e5, 1e18)
    for worth_ns in (0.0, 1e18)
    for learnt_factor in (0.0, 1e9)
] + [{"learnt_factor": 1e9}]
LENGTHS = [
    [0, 40, 7], [40, 0, 7], [7, 40, 0], [0, 0, 40, 0, 0, 0, 7, 1, 0, 1, 0, 40, 0, 0], [0, 1, 0],
    [3, 0, 0, 0, 0, 0, 200], [200, 0, 0, 0, 0, 0, 3], [0], [0, 0, 0],
]  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_empty_queries_at_every_place(name, costs):
    """Mutants: an empty query costs as much as 25 items and can be long, and no estimator asks again (division by
    zero); a query of one item that is long is estimated, as it was, and gets -5e-17 by rounding; `estimate_long_query`
    counts queries from 0."""
    for lengths in LENGTHS:
        scores, relevance, rank_weights, offsets = ragged(lengths)
        costs(round_ns=5e7, worth_ns=2e6, learnt_factor=1.0)
        expected = query_by_query(name, scores, relevance, rank_weights, offsets)
        for cost in COSTS:
            costs(**cost)
            for n_threads in (1, 3):
                got = arrays(CALLS[name](scores, relevance, rank_weights, FIRST, offsets=offsets, n_threads=n_threads))
                for one, other in zip(got, expected, strict=True):
                    np.testing.assert_array_equal(one, other, f"{lengths} {cost} {n_threads}")


@pytest.mark.parametrize("name", CALLS)
def test_teams(name, on_team, costs):
    """The same bits by one thread and by teams, each seen to have had its size; in short rounds too, where long queries
    have teams of their own.

    Mutants: a stream keyed by thread as well; one workspace for all threads; a chunk lost at the end of a round."""
    scores, relevance, rank_weights, offsets = ragged([*range(60), 0, 200, 300] * 2)
    call = functools.partial(CALLS[name], scores, relevance, rank_weights, FIRST, offsets=offsets)
    expected = arrays(call(n_threads=1))
    for n_threads in (2, 3, 7):
        costs(round_ns=1e18)
        whole = arrays(on_team(n_threads, call))
        costs(round_ns=5e5)  # a long query may have fewer blocks than there are threads
        rounds = arrays(call(n_threads=n_threads))
        assert _threads.team_that_ran()[0] > 1 or not OPENMP
        for one, other, another in zip(expected, whole, rounds, strict=True):
            np.testing.assert_array_equal(one, other, f"{n_threads}")
            np.testing.assert_array_equal(one, another, f"{n_threads} in rounds")


def test_every_function_of_batches_is_here():
    functions = [getattr(plr, name) for name in plr.__all__] + [getattr(losses, name) for name in losses.__all__]
    functions += [function for name, function in vars(fairness).items() if not name.startswith("_")]
    names = {
        function.__name__
        for function in functions
        if inspect.isfunction(function) and "offsets" in inspect.signature(function).parameters
    }
    # exposure is made of pl_rank_exact or of rank_probabilities; disparity is NumPy
    assert names - {"exposure", "exposure_vjp", "expected_exposure", "disparity"} <= {name.split()[0] for name in CALLS}
