"""Batches with empty queries, at every place and by every way a query can take: the bits of each query by itself."""

import functools
import inspect

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import fairness, losses, off_policy, rewards
from plrank_fast._core.runtime import threads as _threads
from problems import ragged
from public_calls import BATCHES, OTHERS, arrays

FIRST = 3  # number of the first query
OPENMP = plr.build_info()["openmp"]


def query_by_query(name, scores, relevance, rank_weights, offsets):
    """The batch without a batch, each query by itself; empty ones too, which some functions give a number."""
    parts = []
    for query in range(len(offsets) - 1):
        part = slice(offsets[query], offsets[query + 1])
        parts.append(arrays(BATCHES[name](scores[part], relevance[part], rank_weights[query], FIRST + query)))
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


@pytest.mark.parametrize("name", BATCHES)
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
                got = arrays(
                    BATCHES[name](scores, relevance, rank_weights, FIRST, offsets=offsets, n_threads=n_threads)
                )
                for one, other in zip(got, expected, strict=True):
                    np.testing.assert_array_equal(one, other, f"{lengths} {cost} {n_threads}")


@pytest.mark.parametrize("name", BATCHES)
def test_teams(name, on_team, costs):
    """The same bits by one thread and by teams, each seen to have had its size; in short rounds too, where long queries
    have teams of their own.

    Mutants: a stream keyed by thread as well; one workspace for all threads; a chunk lost at the end of a round."""
    scores, relevance, rank_weights, offsets = ragged([*range(60), 0, 200, 300] * 2)
    call = functools.partial(BATCHES[name], scores, relevance, rank_weights, FIRST, offsets=offsets)
    expected = arrays(call(n_threads=1))
    for n_threads in (2, 3, 7):
        costs(round_ns=1e18)
        whole = arrays(on_team(n_threads, call))
        costs(round_ns=5e5)  # a long query may have fewer blocks than there are threads
        rounds = arrays(call(n_threads=n_threads))
        for one, other, another in zip(expected, whole, rounds, strict=True):
            np.testing.assert_array_equal(one, other, f"{n_threads}")
            np.testing.assert_array_equal(one, another, f"{n_threads} in rounds")


@pytest.mark.chosen_path
@pytest.mark.skipif(not OPENMP, reason="built without OpenMP")
@pytest.mark.parametrize("name", BATCHES)
def test_short_rounds_have_teams(name, on_team, costs):
    """What `test_teams` compares was computed by teams in short rounds too. Mutant: rounds of a single query."""
    scores, relevance, rank_weights, offsets = ragged([*range(60), 0, 200, 300] * 2)
    costs(round_ns=5e5)
    _threads.team_that_ran()
    BATCHES[name](scores, relevance, rank_weights, FIRST, offsets=offsets, n_threads=3)
    assert _threads.team_that_ran()[0] > 1
    assert _threads.team_that_ran() == (0, 0)  # since it was asked last


def test_every_function_of_batches_is_here():
    """And among the others every function that has threads."""
    functions = [getattr(plr, name) for name in plr.__all__] + [getattr(losses, name) for name in losses.__all__]
    functions += [
        function
        for module in (fairness, off_policy, rewards)
        for name, function in vars(module).items()
        if not name.startswith("_") and getattr(function, "__module__", "").startswith(module.__name__)
    ]
    parameters = {
        function.__name__: set(inspect.signature(function).parameters)
        for function in functions
        if inspect.isfunction(function)
    }
    called = {name.split()[0] for name in [*BATCHES, *OTHERS]}
    assert {name for name, of_it in parameters.items() if "n_threads" in of_it} <= called
    # exposure is made of pl_rank_exact or of rank_probabilities; disparity is NumPy; rewards and logs are means
    alone = {"exposure", "exposure_vjp", "disparity"}
    of_modules = {name for module in (off_policy, rewards) for name in vars(module)}
    batches = {name for name, of_it in parameters.items() if "offsets" in of_it} - alone - of_modules
    assert batches <= {name.split()[0] for name in BATCHES}
