"""Run gradient ascent in a loop that Numba compiles, without Python between the steps."""

import numpy as np
from numba import njit

import plrank_fast as plr
from plrank_fast import embedding

stream_init = embedding.ctypes_function("plrank_stream_init")
pl_rank_cmc_workspace = embedding.ctypes_function("plrank_pl_rank_cmc_workspace")
pl_rank_cmc = embedding.ctypes_function("plrank_pl_rank_cmc")
AUTO = embedding.constants()["PLRANK_AUTO"]
STREAM_SIZE = embedding.constants()["PLRANK_STREAM_SIZE"]


@njit
def ascend(scores, relevance, rank_weights, key, steps, rate):
    """Move ``scores`` uphill, one conditional Monte Carlo sample a step; return the first status that is not 0."""
    n_items, cutoff = scores.size, rank_weights.size
    stream = np.empty(STREAM_SIZE, dtype=np.uint8)
    workspace = np.empty(pl_rank_cmc_workspace(n_items, cutoff, 1), dtype=np.uint8)
    gradient = np.empty(n_items)
    status = stream_init(stream.ctypes, stream.size, key[0], key[1], 0)
    for _ in range(steps):
        if status == 0:
            status = pl_rank_cmc(
                stream.ctypes, scores.ctypes, relevance.ctypes, n_items, rank_weights.ctypes, cutoff, 1, AUTO,
                0, 0, gradient.ctypes, 0, workspace.ctypes, workspace.size,
            )  # fmt: skip
            scores += rate * gradient
    return status


def check():
    rng = np.random.default_rng(0)
    scores, relevance, theta = rng.normal(size=24), rng.random(24), plr.dcg_weights(5)

    # The first step gives the numbers of the Python function.
    moved = scores.copy()
    assert ascend(moved, relevance, theta, plr.stream_key(7), 1, 0.1) == 0
    gradient = plr.pl_rank_cmc(scores, relevance, theta, n_samples=1, rng=7)
    assert np.array_equal(moved, scores + 0.1 * gradient)

    # In many steps, each call continues the stream of the last one, and the metric rises.
    assert ascend(moved, relevance, theta, plr.stream_key(7), 2000, 0.1) == 0
    before, after = (plr.expected_metric(f, relevance, theta)[0] for f in (scores, moved))
    best = np.sort(relevance)[::-1][:5] @ theta
    assert before < 0.7 * best < 0.9 * best < after

    moved[3] = np.nan
    status = ascend(moved, relevance, theta, plr.stream_key(7), 1, 0.1)
    assert embedding.ctypes_function("plrank_strerror")(status) == b"scores must be finite"
    print("numba_loop: a step equal to the last bit, 2000 steps uphill")


if __name__ == "__main__":
    check()
