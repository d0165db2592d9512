"""One long query, whose nodes, items or samples threads share: the bits of one thread."""

import numpy as np
import pytest

import plrank_fast as plr
import runtime_variables
from public_calls import Call, arrays

OPENMP = plr.build_info()["openmp"]
LONG = {"round_ns": 1e3, "teams": 1}  # every query fills a round, and teams may come late


def listed(n_docs, deviation=1.0, gap=0.0):
    """Scores of a list, a third of which lie ``gap`` above the others, and its gains."""
    rng = np.random.default_rng(n_docs)
    scores = deviation * rng.normal(size=n_docs) + gap * (np.arange(n_docs) % 3 == 0)
    return scores, plr.gains(rng.integers(0, 5, n_docs))


def exact(**options):
    return Call(plr.pl_rank_exact, options)


def sampled(function, n_samples, **options):
    return Call(function, {"n_samples": n_samples, "rng": 1, **options})


VALUE, PROBABILITIES = Call(plr.expected_metric, {}), Call(plr.rank_probabilities, {})
# A list, a number of ranks and a call for each way through the kernel. Blocks are of 64 quartets of items or of 8192
# items of the list.
CALLS = {
    "one panel": (listed(700), 60, exact()),
    "checked entry by entry": (listed(600, 4.0), 600, exact()),
    "Hessian": (listed(700), 60, exact(hessian=True)),
    "coarse": (listed(290), 10, exact(rtol=1e-2)),
    "several panels": (listed(600, 1.0, 40.0), 300, exact()),
    "numbers below the smallest normal one": (listed(1000), 1000, exact()),
    "normal noise": (listed(700), 60, exact(noise="normal")),
    "normal noise, Hessian": (listed(700), 60, exact(noise="normal", hessian=True)),
    "compressed": (listed(2000), 10, exact()),
    "compressed, Hessian": (listed(2000), 20, exact(hessian=True)),
    "compressed, blocks of the list": (listed(100_000), 10, exact(hessian=True)),
    "blocks of the list": (listed(70_000, 1.0, 40.0), 2, exact(hessian=True)),
    "too long for workspaces side by side": (listed(140_000, 1.0, 40.0), 2, exact()),
    "pl_rank_3": (listed(70_000), 20, sampled(plr.pl_rank_3, 130)),
    "pl_rank_cmc": (listed(70_000), 10, sampled(plr.pl_rank_cmc, 2)),
    "pl_rank_cmc, interpolated, Hessian": (listed(9000), 50, sampled(plr.pl_rank_cmc, 2, hessian=True)),
    "rankings": (listed(100_000), 20, sampled(plr.sample_rankings, 300)),
    "value": (listed(700), 60, VALUE),
    "probabilities": (listed(700), 50, PROBABILITIES),
    "probabilities of all ranks": (listed(300, 4.0), 300, PROBABILITIES),
    "probabilities, several panels": (listed(600, 1.0, 40.0), 300, PROBABILITIES),
}


@pytest.mark.parametrize("name", CALLS)
def test_any_number_of_threads(name, monkeypatch, costs):
    """A team computes the results that are compared. Mutants: one workspace, one row of sums or one place for P for two
    threads; more threads than there is room for; a block of items at the first vector of nodes only; long queries on
    one thread, or on several where one is asked for; weights, or what is left of them, not summed range by range."""
    monkeypatch.setattr("plrank_fast._core.runtime.threads.available_cpus", lambda: 64)
    (scores, gains), cutoff, function = CALLS[name]

    def call(n_threads):
        one = {"offsets": [0, scores.size], "n_threads": n_threads}
        return np.hstack(arrays(function(scores, gains, plr.dcg_weights(cutoff), **one)))

    costs(**LONG)
    runtime_variables.team_that_ran()
    expected = call(1)
    assert runtime_variables.team_that_ran() <= 1
    for n_threads in (2, 3, 8, 11):
        np.testing.assert_array_equal(call(n_threads), expected, f"{n_threads}")
        size = runtime_variables.team_that_ran()  # no more than there are vectors of nodes
        assert runtime_variables.OTHER_COSTS or not OPENMP or size > 1


@pytest.mark.parametrize("stops", [False, True])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_order_of_a_long_list(n_threads, stops):
    """Nearly all weight and relevance, and the items at which readers may stop, are in the last block, in the first, or
    anywhere. Mutants: sums over the list without its last block; their moments merged without it; a block that gets
    nothing back from the proxies; heavy items of each block in the places of the first; those at which readers may stop
    not counted."""
    rng = np.random.default_rng(1)
    scores = np.sort(2.5 * rng.normal(size=40_000))
    gains = 31.0 * (rng.random(scores.size) < 0.3) * (scores > 2.0)
    stop = 0.4 * (np.arange(scores.size) >= scores.size - 40) * stops
    for options in ({"hessian": True}, {"hessian": True, "rtol": 1e-3}, {"rtol": 1e-9}):
        options |= {"offsets": [0, scores.size], "n_threads": n_threads}
        rising = np.atleast_2d(plr.pl_rank_exact(scores, gains, plr.dcg_weights(20), stop_probability=stop, **options))
        for order in (np.arange(scores.size)[::-1], rng.permutation(scores.size)):
            moved = plr.pl_rank_exact(
                scores[order], gains[order], plr.dcg_weights(20), stop_probability=stop[order], **options
            )
            for entries, turned in zip(rising, np.atleast_2d(moved), strict=True):
                assert np.linalg.norm(entries[order] - turned) <= 1e-9 * np.linalg.norm(entries)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_every_block_is_summed(n_threads):
    """Whatever the ranking, equal rank weights sum up the relevance. Mutant: sums without the last block."""
    relevance = np.arange(40_000.0)
    one = {"offsets": [0, relevance.size], "n_threads": n_threads}
    found = plr.expected_metric(np.zeros(relevance.size), relevance, np.ones(relevance.size), **one)
    assert found == pytest.approx(relevance.sum(), rel=1e-14)
