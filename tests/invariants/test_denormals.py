"""Exact kernels flush numbers below the smallest normal one to zero, while they compute.

That is for speed, which asv follows: complete lists take two to three times as long without.
"""

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


@pytest.mark.parametrize("name", CALLS)
def test_callers_keep_their_denormals(name):
    """Mutant: what the caller had set not put back."""
    CALLS[name](*problem(24), plr.dcg_weights(24))
    assert np.array([np.finfo(float).tiny])[0] * np.array([0.5])[0] > 0
