"""Ctrl-C: how much work lies between two looks for it, counted, and that it is heard in calls of all kinds."""

import signal
import sys

import numpy as np
import pytest

import plrank_fast as plr
import runtime_variables
from plrank_fast import losses
from programs import run_python


def looks_of(call):
    before = runtime_variables.looks()
    call()
    return runtime_variables.looks() - before


def gradient(function, n_docs=200, n_samples=1000, cutoff=10, spread=1.0, **options):
    scores = spread * np.random.default_rng(0).normal(size=n_docs)
    relevance, rank_weights = np.arange(n_docs) % 5.0, plr.dcg_weights(cutoff)
    options = {"offsets": [0, n_docs], "n_samples": n_samples, "rng": 0, "n_threads": 1} | options
    return lambda: function(scores, relevance, rank_weights, **options)


def loss(name, n_docs=200, n_relevant=200, **options):
    scores = np.random.default_rng(0).normal(size=n_docs)
    labels = np.where(np.arange(n_docs) < n_relevant, 1.0 + np.arange(n_docs) % 3, 0.0)
    return lambda: getattr(losses, name)(scores, labels, offsets=[0, n_docs], n_threads=1, **options)


GIVEN = plr.sample_rankings(np.zeros(200), 1000, 10, rng=0)

# Calls on one long query, and how often they must at least look if a round is made as short as can be: once for every
# piece that is not cut further. A thousand samples are eight blocks; a block of rankings is drawn, then used up.
FINEST = {
    "pl_rank_3": (gradient(plr.pl_rank_3), 8 + 8),
    "pl_rank_3 given": (gradient(plr.pl_rank_3, rankings=GIVEN), 8),
    "pl_rank_3 introselect, K=200": (gradient(plr.pl_rank_3, sampler="introselect", cutoff=200), 8 + 8),
    "pl_rank_3, K=4200": (gradient(plr.pl_rank_3, n_docs=4200, cutoff=4200), 8 + 1000),  # no groups of so many ranks
    "pl_rank_2": (gradient(plr.pl_rank_2), 8 + 1000),
    "pl_rank_1": (gradient(plr.pl_rank_1), 8 + 1000),
    "pl_rank_cmc": (gradient(plr.pl_rank_cmc), 8 + 1000),
    "pl_rank_3 hessian": (gradient(plr.pl_rank_3, hessian=True), 8 + 1000),
    "policy_gradient baseline": (gradient(plr.policy_gradient, baseline=True), 2 * (8 + 1000)),
    "expected_metric": (gradient(plr.expected_metric, method="sample"), 8 + 1000),
    "stochastic_rank": (gradient(plr.stochastic_rank), 8),
    # within a block after each twentieth of a second: 2 ms for each sample
    "stochastic_rank, items far apart": (
        gradient(plr.stochastic_rank, n_docs=2000, n_samples=100, cutoff=2000, spread=1e5),
        1 + 4,
    ),
    # within a block of 32 rankings: 5 ms for each by the model of costs
    "sample_rankings of all ranks": (
        lambda: plr.sample_rankings(np.zeros(200_000), 32, rng=0, n_threads=1, sampler="introselect"),
        1 + 3,
    ),
    "sample_rankings": (lambda: plr.sample_rankings(np.zeros(200), 1000, rng=0, n_threads=1), 8),
    # rows in groups of eight: documents or ranks
    "pairwise_logistic": (loss("pairwise_logistic"), 25),
    "lambda_rank": (loss("lambda_rank", cutoff=200), 25),
    "approx_ndcg": (loss("approx_ndcg"), 25),
    # a single group of eight documents: to the last document and back, and half of the way once more
    "soft_rank": (loss("soft_rank", n_relevant=2, cutoff=30), 2 * 200 - 1),
    "soft_rank in segments": (loss("soft_rank", n_docs=2000, n_relevant=2, cutoff=300), 3 * 2000 - 2 * 64),
}


@pytest.mark.parametrize("name", FINEST)
def test_work_can_be_cut_finely(name, costs):
    """No piece of work is so large that the length of a round could not bound it. Mutants: SoftRank looks between
    groups of documents alone, or on the way forth alone; a block of rankings used up at one go by PL-Rank-2, or of
    samples by StochasticRank."""
    call, least = FINEST[name]
    costs(round_ns=1e-3)
    assert looks_of(call) >= least


@pytest.mark.parametrize(
    ("function", "n_docs", "spread"),
    [(plr.pl_rank_2, 20_000, 1.0), (plr.pl_rank_cmc, 30_000, 1.0), (plr.pl_rank_cmc, 5_000, 1e3)],
)
def test_looks_within_a_ranking(function, n_docs, spread):
    """Where a ranking of all documents takes a tenth of a second or more. Mutants: none within a ranking."""
    looks = [
        looks_of(gradient(estimator, n_docs=n_docs, n_samples=1, cutoff=n_docs, spread=spread))
        for estimator in (function, plr.pl_rank_3)
    ]
    assert looks[0] >= looks[1] + 3


def test_a_long_query_in_a_batch_is_cut_too(costs):
    """Whichever of the queries it is. Mutants: the first one only; the cost of the first one for all; rounds without
    an end among queries of one length."""
    costs(round_ns=1e-3)
    scores, relevance, rank_weights = np.zeros(400), np.arange(400) % 5.0, plr.dcg_weights(10)
    for offsets in ([0, 200, 400], [0, 0, 200, 400]):
        options = {"n_samples": 1000, "rng": 0, "n_threads": 1, "offsets": offsets}
        assert looks_of(lambda options=options: plr.pl_rank_2(scores, relevance, rank_weights, **options)) >= 2 * 1008


def test_first_round_of_a_batch(costs):
    """A look after as much time, whatever is integrated: rounds here are four times as long each as the one before.
    Mutants: products with the Hessian, stopping readers or normal noise estimated to take as long as the gradient."""
    scores, relevance, offsets = np.zeros(24_000), np.arange(24_000) % 2.0, np.arange(0, 24_001, 24)
    problem, options = (scores, relevance, [1.0, 0.5]), {"offsets": offsets, "n_threads": 1}
    costs(learnt_factor=0.0, round_ns=1e4)
    plain = looks_of(lambda: plr.pl_rank_exact(*problem, **options))
    assert looks_of(lambda: plr.pl_rank_exact_hvp(*problem, relevance, **options)) >= plain + 2
    for slower in ({"stop_probability": relevance}, {"noise": "normal"}):
        assert looks_of(lambda slower=slower: plr.pl_rank_exact(*problem, **slower, **options)) > plain


def test_looks_while_rank_probabilities_are_cleared_and_made_positive():
    """Scores so far apart that next to nothing is integrated: what takes time is to touch the result, of 9 million
    numbers, twice, and there is a look at least every 5 million. Mutants: cleared or made positive without a look."""
    call = lambda: plr.rank_probabilities(1e3 * np.arange(3000), 3000, n_threads=1)  # noqa: E731
    assert looks_of(call) >= 4


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured as Linux does it")
def test_output_is_not_touched_before_it_is_drawn():
    """Less than half a gigabyte of two when Ctrl-C comes at the start. Mutant: the output is filled with -1 first."""
    call = "plr.sample_rankings(np.zeros(100_000), 5000, 100_000, rng=0, n_threads=1)"
    assert interrupted(call, after=0.2)[""] < 500


def interrupted(*calls, after):
    """Report on calls, each of which Ctrl-C meets ``after`` so many seconds of the processor: the seconds that it went
    on, and under "" the most megabytes that were in use."""
    program = f"""
        import os, signal, sys, time, numpy as np, plrank_fast as plr
        from plrank_fast import losses
        rng = np.random.default_rng(0)
        out, big = np.full(500, 7.0), np.full(200_000, 7.0)
        handler = signal.getsignal(signal.SIGINT)
        signal.signal(signal.SIGPROF, lambda *_: signal.raise_signal(signal.SIGINT))
        for call in {calls}:
            signal.setitimer(signal.ITIMER_PROF, {after})
            start = time.process_time()
            try:
                exec(compile(call, "call", "exec"))
            except KeyboardInterrupt:
                print(time.process_time() - start - {after}, call)
            assert (out == 7).all() and (big == 7).all(), call
            assert signal.getsignal(signal.SIGINT) is handler
            assert plr.pl_rank_3([0.0, 1.0], [1.0, 0.0], [1.0], n_samples=5).shape == (2,)
        if sys.platform == "linux":
            print(int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 1024)
    """
    lines = [line.partition(" ") for line in run_python(program).splitlines()]
    return {call: float(number) for number, _, call in lines}


CALLS = [
    "plr.pl_rank_3(np.zeros(500), np.ones(500), plr.dcg_weights(10), n_samples=10**9, out=out)",
    "plr.pl_rank_2(np.zeros(200_000), np.ones(200_000), plr.dcg_weights(100), n_samples=10**6, out=big)",
    "plr.pl_rank_3(np.zeros(3000), np.ones(3000), plr.dcg_weights(5), offsets=np.arange(0, 3001, 3), n_samples=10**8)",
    "plr.sample_rankings(np.zeros(1_000_000), 5000, 10, sampler='introselect')",
    "plr.pl_rank_exact(np.arange(30_000) / 1e3, np.ones(30_000).cumsum(), plr.dcg_weights(20_000))",
    "plr.rank_probabilities(np.arange(6000) / 1e3, 6000)",
    "losses.pairwise_logistic(rng.normal(size=10**6), rng.integers(0, 5, size=10**6))",
    "losses.soft_rank(rng.normal(size=50_000), rng.integers(0, 5, size=50_000), cutoff=1000)",
]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers on this system")
def test_ctrl_c_is_heard():
    """Long before a call would end, though how soon is for the machine to say; `out` untouched, next call fine.
    Mutant: no check between rounds."""
    seconds = interrupted(*CALLS, after=0.3)
    assert not [call for call in CALLS if not seconds.get(call, np.inf) < 15]


def test_calls_of_numpy_in_a_fit_are_short(monkeypatch):
    """Ctrl-C waits for the end of each: a matrix is inverted in blocks. Mutants: all of it in one call; an interrupt
    there taken for a matrix without an inverse."""
    sizes, invert = [], np.linalg.inv

    def recorded(matrix):
        sizes.append(len(matrix))
        if len(sizes) == 3:
            raise KeyboardInterrupt
        return invert(matrix)

    monkeypatch.setattr("numpy.linalg.inv", recorded)
    with pytest.raises(KeyboardInterrupt):
        plr.fit_strengths([[*range(700)], [*range(699, -1, -1)]])
    assert len(sizes) == 3
    assert max(sizes) < 300


def test_ctrl_c_is_not_replaced(monkeypatch):
    """NumPy compares rows as structures, with a step in Python whose errors it replaces by a TypeError: an interrupt
    there was lost. Mutant: ``np.unique(rows, axis=0)``."""

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("numpy._core._internal._promote_fields", interrupt, raising=False)
    assert plr.PlackettLuce([0.3, 0.2, 0.1]).entropy(rng=0).value > 0
