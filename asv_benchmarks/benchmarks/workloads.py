"""Scores, relevance and list lengths that the benchmarks share; this module has no benchmark."""

import numpy as np

import plrank_fast as plr
from plrank_fast._shared.methods import ESTIMATORS

SLOW = ("pl_rank_1", "pl_rank_2", "policy_gradient", "placement_policy_gradient", "stochastic_rank")  # in long lists
# queries, mean and largest number of documents of the public sets' training parts
SHAPES = {"yahoo": (19_944, 23.7, 139), "mslr": (18_919, 119.8, 1_251), "istella": (20_901, 315.9, 439)}


def list_lengths(shape, n_queries, rng):
    """Draw list lengths with the mean and the maximum of a public set: 1 + beta-binomial, of a fixed concentration."""
    _, mean, longest = SHAPES[shape]
    share = (mean - 1) / (longest - 1)
    return 1 + rng.binomial(longest - 1, rng.beta(9 * share, 9 * (1 - share), size=n_queries))


def batch(lengths, spread=1.0, seed=0):
    """Make ``(scores, relevance, offsets)`` of queries of these lengths, with normal scores."""
    rng = np.random.default_rng(seed)
    offsets = plr.offsets_from_group(lengths)
    scores = spread * rng.normal(size=offsets[-1])
    labels = rng.choice(5, p=[0.52, 0.32, 0.13, 0.02, 0.01], size=offsets[-1])
    return scores, plr.gains(labels), offsets


def call(method, scores, relevance, rank_weights, offsets, n_samples):
    """Run an estimator on one thread."""
    options = {"n_samples": n_samples, "rng": 0} if ESTIMATORS[method].n_samples else {}
    return getattr(plr, method)(scores, relevance, rank_weights, offsets=offsets, n_threads=1, **options)
