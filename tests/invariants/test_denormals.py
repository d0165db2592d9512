"""Exact kernels flush numbers below the smallest normal one to zero, which takes processors a hundred times as long.

Mutant tried: `flush_denormals` without effect (the first test). `restore_denormals` without effect is for the second.
"""

import time

import numpy as np
import pytest

import plrank_fast as plr

CALLS = {
    "gradient": lambda scores, gains, weights: plr.pl_rank_exact(scores, gains, weights, n_threads=1),
    "normal": lambda scores, gains, weights: plr.pl_rank_exact(scores, gains, weights, noise="normal", n_threads=1),
    "probabilities": lambda scores, gains, weights: plr.rank_probabilities(scores, len(weights), n_threads=1),
}


def problem(n_docs):
    rng = np.random.default_rng(n_docs)
    return rng.standard_normal(n_docs), plr.gains(rng.integers(0, 5, n_docs))


def test_complete_lists_cost_what_their_nodes_do():
    """With all 24 documents placed there are a few nodes more than with 20, where hardly any chance is left: 1.3 times
    the time, and 3.8 to 4.8 times with denormal numbers."""
    scores, gains = problem(24)
    fastest = dict.fromkeys((20, 24), np.inf)
    for _ in range(300):
        for cutoff in fastest:
            weights = plr.dcg_weights(cutoff)
            start = time.perf_counter()
            CALLS["gradient"](scores, gains, weights)
            fastest[cutoff] = min(fastest[cutoff], time.perf_counter() - start)
    assert fastest[24] < 2.5 * fastest[20]


@pytest.mark.parametrize("name", CALLS)
def test_callers_keep_their_denormals(name):
    CALLS[name](*problem(24), plr.dcg_weights(24))
    assert np.array([np.finfo(float).tiny])[0] * np.array([0.5])[0] > 0
