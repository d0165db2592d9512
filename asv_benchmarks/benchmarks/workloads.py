"""Scores and relevance of lists that the benchmarks share; this module has no benchmark."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import plrank_fast as plr
from plrank_fast._methods.registry import ESTIMATORS
from plrank_fast.data import PROFILES

# The ruler of this tree measures every commit that asv builds, also those that have another one or none.
RULER = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[2] / "plrank_fast/benchmarks/epoch_cost.py")))
SLOW = ("pl_rank_1", "pl_rank_2", "policy_gradient", "stochastic_rank")  # in long lists


def batch(lengths, spread=1.0, seed=0):
    """Make ``(scores, relevance, offsets)`` of queries of these lengths, with normal scores."""
    rng = np.random.default_rng(seed)
    offsets = plr.offsets_from_group(lengths)
    scores = spread * rng.normal(size=offsets[-1])
    labels = rng.choice(5, p=PROFILES["mslr"].label_shares, size=offsets[-1])
    return scores, plr.gains(labels), offsets


def call(method, scores, relevance, rank_weights, offsets, n_samples):
    """Run an estimator on one thread."""
    options = {"n_samples": n_samples, "rng": 0} if ESTIMATORS[method].n_samples else {}
    return ESTIMATORS[method].function(scores, relevance, rank_weights, offsets=offsets, n_threads=1, **options)
