"""Check that the pool draws the rankings of the Python function from the same seed, for any number of workers."""

import numpy as np
from worker_pool import sample

import plrank_fast as plr

n_queries, n_items, cutoff, n_samples, seed = 50, 120, 10, 300, 42
scores = np.random.default_rng(1).normal(size=(n_queries, n_items))
offsets = np.arange(n_queries + 1) * n_items
expected = plr.sample_rankings(scores.ravel(), n_samples, cutoff, offsets=offsets, rng=seed)

for n_workers in (0, 1, 3):
    rankings = np.full((n_queries, n_samples, cutoff), -1, dtype=np.int32)
    sample(scores, n_items, cutoff, n_samples, plr.stream_key(seed), rankings, n_workers)
    assert np.array_equal(rankings, expected), n_workers

scores[3, 5], complaint = np.nan, None
try:
    sample(scores, n_items, cutoff, n_samples, plr.stream_key(seed), rankings, 2)
except ValueError as error:
    complaint = str(error)
assert complaint == "scores must be finite"
print("c_worker_pool: 50 queries x 300 rankings, equal to the last bit")
