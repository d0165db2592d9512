"""Every public function of a batch gives each query the bits that it has alone, whatever else the batch holds."""

import functools
import inspect
import tracemalloc

import numpy as np
import pytest

import plrank_fast as plr
import runtime_variables
from plrank_fast import fairness, losses, off_policy, rewards
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
    return [np.concatenate([array.ravel() for array in part]) for part in zip(*parts, strict=True)]


def assert_same(result, expected, what=""):
    for one, other in zip(arrays(result), expected, strict=True):
        np.testing.assert_array_equal(one.ravel(), other.ravel(), str(what))


@pytest.fixture(autouse=True)
def many_processors(monkeypatch):
    monkeypatch.setattr("plrank_fast._core.runtime.threads.available_cpus", lambda: 64)


# every query long enough for a round of its own, none so, and everything in between; the same of what rounds teach
COSTS = [
    {"round_ns": round_ns, "teams": teams, "learnt_factor": learnt_factor}
    for round_ns in (1e-3, 1e5, 1e18)
    for teams, learnt_factor in ((1, 0.0), (-1, 1e9))
] + [{"learnt_factor": 1e9}]
LENGTHS = [
    [0, 40, 7], [40, 0, 7], [7, 40, 0], [0, 0, 40, 0, 0, 0, 7, 1, 0, 1, 0, 40, 0, 0], [0, 1, 0],
    [3, 0, 0, 0, 0, 0, 200], [200, 0, 0, 0, 0, 0, 3], [0], [0, 0, 0],
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:no query has documents of different")  # among so few
@pytest.mark.parametrize("name", BATCHES)
def test_empty_queries_at_every_place(name, costs):
    """Mutants: an empty query costs as much as 25 items and can be long, and no estimator asks again (division by
    zero); a query of one item that is long is estimated, and gets -5e-17 by rounding; `estimate_long_query`
    counts queries from 0."""
    for lengths in LENGTHS:
        scores, relevance, rank_weights, offsets = ragged(lengths)
        costs(round_ns=5e7, teams=0, learnt_factor=1.0)
        expected = query_by_query(name, scores, relevance, rank_weights, offsets)
        for cost in COSTS:
            costs(**cost)
            for n_threads in (1, 3):
                got = BATCHES[name](scores, relevance, rank_weights, FIRST, offsets=offsets, n_threads=n_threads)
                assert_same(got, expected, (lengths, cost, n_threads))


def problem_of(setting):
    """Signed relevance, and lists much longer than others; with weights for more ranks than most lists have; or with
    one query far from all the others, in what a common plan or a common scale would follow."""
    rng = np.random.default_rng(5)
    lengths = [3, 0, 1, 40, 2, 7, 0, 0, 25, 130, 1, 5, 12, 0, 64, 9, 300, 2, 33, 0]
    offsets = plr.offsets_from_group(lengths)
    scores, relevance = rng.normal(size=(2, offsets[-1])) * [[1.0], [2.0]]
    rank_weights = np.tile(plr.dcg_weights(10), (len(lengths), 1))
    if setting == "peaked":
        scores, rank_weights = 8.0 * scores, rng.normal(size=(len(lengths), 40))
    if setting == "far":
        scores[offsets[8] : offsets[9]] *= 1e307
        relevance[offsets[8] : offsets[9]] *= 1e55
    return scores, relevance, rank_weights, offsets


@pytest.mark.parametrize("setting", ["spread", "peaked", "far"])
@pytest.mark.parametrize("name", BATCHES)
def test_batch_is_loop(name, setting):
    """Mutants: rank probabilities for as many columns as the longest query has (the bits of a shorter one must not
    follow); gaps of scores cut in all queries because one overflows; rank weights of the first query used for all; the
    disparity of another query's documents; a workspace that a loss does not reset."""
    scores, relevance, rank_weights, offsets = problem_of(setting)
    if BATCHES[name].function.__module__ == losses.__name__ or name.startswith("disparity"):  # some square them
        scores, relevance = np.clip(scores, -1e140, 1e140), np.clip(relevance, -9.0, 9.0)
    expected = query_by_query(name, scores, relevance, rank_weights, offsets)
    assert_same(BATCHES[name](scores, relevance, rank_weights, FIRST, offsets=offsets), expected)


@pytest.mark.parametrize("name", BATCHES)
def test_teams(name, on_team, costs):
    """One thread and teams give the same bits, each seen to have had its size; in short rounds too, where long queries
    have teams of their own.

    Mutants: a stream keyed by thread as well; one workspace for all threads; a chunk lost at the end of a round; rounds
    of a single query."""
    scores, relevance, rank_weights, offsets = ragged([*range(60), 0, 200, 300] * 2)
    call = functools.partial(BATCHES[name], scores, relevance, rank_weights, FIRST, offsets=offsets)
    expected = arrays(call(n_threads=1))
    for n_threads in (2, 3, 7):
        costs(round_ns=1e18)
        has_teams = "n_threads" in BATCHES[name].parameters
        if has_teams:
            assert_same(on_team(n_threads, call), expected, n_threads)
        costs(round_ns=5e5)  # a long query may have fewer blocks than there are threads
        assert_same(call(n_threads=n_threads), expected, f"{n_threads} in rounds")
        assert runtime_variables.OTHER_COSTS or not (has_teams and OPENMP) or runtime_variables.team_that_ran() > 1


@pytest.mark.parametrize("name", [*BATCHES, *OTHERS])
def test_one_thread_means_all_parts_of_a_call(name, costs):
    """Mutants: ``n_threads`` not handed on to one of the calls that a function consists of."""
    scores, relevance, rank_weights, offsets = ragged([*range(30), 0, 60])
    costs(teams=1)
    runtime_variables.team_that_ran()
    {**BATCHES, **OTHERS}[name](scores, relevance, rank_weights, FIRST, offsets=offsets, n_threads=1)
    assert runtime_variables.team_that_ran() <= 1


@pytest.mark.parametrize(
    "name", [name for name in BATCHES if name.startswith(("pl_rank", "policy", "stochastic", "sample"))]
)
def test_one_long_query(name, on_team, costs):
    """A query that outlasts a round is cut into blocks, which a team shares: the same bits as by one thread.

    Mutants: a round's rankings used up in the order in which threads finish; a task's blocks counted from the wrong
    end; one pass alone over the blocks, of which a baseline needs two."""
    problem = *np.random.default_rng(2).normal(size=(2, 2000)), plr.dcg_weights(5), FIRST
    more = {"n_samples": 1500} if "n_samples" in BATCHES[name].options else {}
    one = arrays(BATCHES[name](*problem, n_threads=1, **more))
    costs(round_ns=2e4)
    for n_threads in (1, 2, 7):
        assert_same(BATCHES[name](*problem, n_threads=n_threads, **more), one, n_threads)


@pytest.mark.parametrize("name", [name for name, call in BATCHES.items() if "rank_weights" in call.parameters])
def test_weights_of_ranks_that_no_query_has(name):
    """A million ranks for lists of 1 and 3: no bit depends on them, and beyond a copy nothing of their size is made.

    Mutant: K not clamped to the longest query (documents by ranks are then four times the weights)."""
    weights = np.concatenate([[1.0, 0.5, 0.25], np.full(10**6, 3.0)])
    scores, relevance = np.random.default_rng(5).normal(size=(2, 4))
    short = arrays(BATCHES[name](scores, relevance, weights[:3], offsets=[0, 1, 4]))
    tracemalloc.start()
    try:
        assert_same(BATCHES[name](scores, relevance, weights, offsets=[0, 1, 4]), short)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * weights.nbytes


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
        if inspect.isroutine(function)
    }
    called = {word for name in [*BATCHES, *OTHERS] for word in name.split()}
    assert {name for name, of_it in parameters.items() if "n_threads" in of_it} - {"train"} <= called
    # rewards, logs and fits are about all queries together
    together = {name for module in (off_policy, rewards) for name in vars(module)} | OTHERS.keys()
    batches = {name for name, of_it in parameters.items() if "offsets" in of_it} - together
    assert batches <= {call.function.__name__ for call in BATCHES.values()}
