"""One long query, whose nodes, items or samples threads share: the bits of one thread."""

import numpy as np
import pytest

import plrank_fast as plr
import runtime_variables

OPENMP = plr.build_info()["openmp"]
LONG = {"round_ns": 1e3, "teams": 1}  # every query fills a round, and teams may come late


def listed(n_docs, deviation=1.0, gap=0.0):
    """Scores of a list, a third of which lie ``gap`` above the others, and its gains."""
    rng = np.random.default_rng(n_docs)
    scores = deviation * rng.normal(size=n_docs) + gap * (np.arange(n_docs) % 3 == 0)
    return scores, plr.gains(rng.integers(0, 5, n_docs))


def exact(cutoff, **options):
    return lambda scores, gains, n_threads: np.hstack(
        plr.pl_rank_exact(
            scores, gains, plr.dcg_weights(cutoff), offsets=[0, scores.size], n_threads=n_threads, **options
        )
    )


def sampled(function, cutoff, **options):
    return lambda scores, gains, n_threads: np.hstack(
        function(
            scores, gains, plr.dcg_weights(cutoff), offsets=[0, scores.size], rng=1, n_threads=n_threads, **options
        )
    )


def rankings(n_samples, cutoff):
    return lambda scores, gains, n_threads: plr.sample_rankings(
        scores, n_samples, cutoff, rng=1, offsets=[0, scores.size], n_threads=n_threads
    )


def probabilities(n_ranks):
    return lambda scores, gains, n_threads: plr.rank_probabilities(scores, n_ranks, n_threads=n_threads)


def value(cutoff):
    return lambda scores, gains, n_threads: np.array(
        [plr.expected_metric(scores, gains, plr.dcg_weights(cutoff), n_threads=n_threads)]
    )


# A list and a call for each way through the kernel. Blocks are of 64 quartets of items or of 8192 items of the list.
CALLS = {
    "one panel": (listed(700), exact(60)),
    "checked entry by entry": (listed(600, 4.0), exact(600)),
    "Hessian": (listed(700), exact(60, hessian=True)),
    "coarse": (listed(290), exact(10, rtol=1e-2)),
    "several panels": (listed(600, 1.0, 40.0), exact(300)),
    "numbers below the smallest normal one": (listed(1000), exact(1000)),
    "normal noise": (listed(700), exact(60, noise="normal")),
    "normal noise, Hessian": (listed(700), exact(60, noise="normal", hessian=True)),
    "compressed": (listed(2000), exact(10)),
    "compressed, Hessian": (listed(2000), exact(20, hessian=True)),
    "compressed, blocks of the list": (listed(100_000), exact(10, hessian=True)),
    "blocks of the list": (listed(70_000, 1.0, 40.0), exact(2, hessian=True)),
    "too long for workspaces side by side": (listed(140_000, 1.0, 40.0), exact(2)),
    "pl_rank_3": (listed(70_000), sampled(plr.pl_rank_3, 20, n_samples=130)),
    "pl_rank_cmc": (listed(70_000), sampled(plr.pl_rank_cmc, 10, n_samples=2)),
    "pl_rank_cmc, interpolated, Hessian": (listed(9000), sampled(plr.pl_rank_cmc, 50, n_samples=2, hessian=True)),
    "rankings": (listed(100_000), rankings(300, 20)),
    "value": (listed(700), value(60)),
    "probabilities": (listed(700), probabilities(50)),
    "probabilities of all ranks": (listed(300, 4.0), probabilities(300)),
    "probabilities, several panels": (listed(600, 1.0, 40.0), probabilities(300)),
}


@pytest.mark.parametrize("name", CALLS)
def test_any_number_of_threads(name, monkeypatch, costs):
    """A team computes the results that are compared. Mutants: one workspace, one row of sums or one place for P for two
    threads; more threads than there is room for; a block of items at the first vector of nodes only; long queries on
    one thread, or on several where one is asked for; weights, or what is left of them, not summed range by range."""
    monkeypatch.setattr("plrank_fast._core.runtime.threads.available_cpus", lambda: 64)
    (scores, gains), call = CALLS[name]
    costs(**LONG)
    runtime_variables.team_that_ran()
    expected = call(scores, gains, 1)
    assert runtime_variables.team_that_ran()[0] <= 1
    for n_threads in (2, 3, 8, 11):
        np.testing.assert_array_equal(call(scores, gains, n_threads), expected, f"{n_threads}")
        size, _ = runtime_variables.team_that_ran()  # no more than there are vectors of nodes
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
        rising = np.atleast_2d(plr.pl_rank_exact(scores, gains, plr.dcg_weights(20), stop=stop, **options))
        for order in (np.arange(scores.size)[::-1], rng.permutation(scores.size)):
            moved = plr.pl_rank_exact(scores[order], gains[order], plr.dcg_weights(20), stop=stop[order], **options)
            for entries, turned in zip(rising, np.atleast_2d(moved), strict=True):
                assert np.linalg.norm(entries[order] - turned) <= 1e-9 * np.linalg.norm(entries)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_every_block_is_summed(n_threads):
    """Whatever the ranking, equal rank weights sum up the relevance. Mutant: sums without the last block."""
    relevance = np.arange(40_000.0)
    one = {"offsets": [0, relevance.size], "n_threads": n_threads}
    found = plr.expected_metric(np.zeros(relevance.size), relevance, np.ones(relevance.size), **one)
    assert found == pytest.approx(relevance.sum(), rel=1e-14)
