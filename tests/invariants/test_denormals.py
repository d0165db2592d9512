"""Exact kernels flush numbers below the smallest normal one to zero, while they compute.

That is for speed, which asv follows: complete lists take two to three times as long without.
"""

import numpy as np
import pytest

import plrank_fast as plr
from public_calls import Call

CALLS = [Call(plr.pl_rank_exact, {}), Call(plr.pl_rank_exact, {"noise": "normal"}), Call(plr.rank_probabilities, {})]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_callers_keep_their_denormals(call):
    """Mutant: what the caller had set not put back."""
    rng = np.random.default_rng(24)
    call(rng.normal(size=24), plr.gains(rng.integers(0, 5, 24)), plr.dcg_weights(24), n_threads=1)
    assert np.array([np.finfo(float).tiny])[0] * np.array([0.5])[0] > 0
