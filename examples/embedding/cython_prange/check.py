"""Check that the module's gradients equal the Python function's, bit for bit."""

import numpy as np
from batch_gradient import batch_gradient

import plrank_fast as plr

rng = np.random.default_rng(0)
offsets = plr.offsets_from_group(rng.integers(1, 60, size=500))
scores = rng.normal(size=offsets[-1])
relevance = plr.gains(rng.integers(0, 5, size=offsets[-1]))
theta = plr.dcg_weights(10)

gradient = np.empty_like(scores)
status = np.empty(offsets.size - 1, dtype=np.int32)
batch_gradient(scores, relevance, theta, offsets, 2, gradient, status)
assert not status.any()
assert np.array_equal(gradient, plr.pl_rank_exact(scores, relevance, theta, offsets=offsets))

# a NaN is an error of its own query only
scores[offsets[7]] = np.nan
gradient_of_7 = gradient[offsets[7] : offsets[8]].copy()
batch_gradient(scores, relevance, theta, offsets, 2, gradient, status)
assert np.flatnonzero(status).tolist() == [7]
assert np.array_equal(gradient[offsets[7] : offsets[8]], gradient_of_7)
print("cython_prange: 500 queries, equal to the last bit")
