"""Measure the cost of one query of 24 documents at cutoff 5 through Python and through C, and its overhead.

Numba compiles the loop over C calls. The overhead of a C call is its time if its last check refuses it. The overhead
of a Python call is its time without the computation that both share.
"""

import time

import numpy as np
from numba import njit

import plrank_fast as plr
from plrank_fast import embedding

N_ITEMS, CUTOFF, N_QUERIES, PYTHON_CALLS, REPEATS = 24, 5, 256, 25, 200  # a run shorter than a time slice

pl_rank_exact = embedding.ctypes_function("plrank_pl_rank_exact")
pl_rank_cmc = embedding.ctypes_function("plrank_pl_rank_cmc")
pl_rank_3 = embedding.ctypes_function("plrank_pl_rank_3")
sample_rankings = embedding.ctypes_function("plrank_sample_rankings")
stream_seek = embedding.ctypes_function("plrank_stream_seek")

# Each loop calls all queries one by one. The last check refuses a choice of -1.


@njit
def call_pl_rank_exact(scores, relevance, theta, n_samples, choice, stream, out, rankings, workspace):
    for f, rho in zip(scores, relevance):  # noqa: B905, Numba has no strict
        pl_rank_exact(
            f.ctypes, rho.ctypes, f.size, theta.ctypes, theta.size, 1e-6 if choice == 0 else -1.0, 0, out.ctypes, 0,
            workspace.ctypes, workspace.size,
        )  # fmt: skip


@njit
def call_pl_rank_cmc(scores, relevance, theta, n_samples, choice, stream, out, rankings, workspace):
    for q in range(scores.shape[0]):
        stream_seek(stream.ctypes, q, 0)
        pl_rank_cmc(
            stream.ctypes, scores[q].ctypes, relevance[q].ctypes, scores.shape[1], theta.ctypes, theta.size, n_samples,
            choice, 0, 0, out.ctypes, 0, workspace.ctypes, workspace.size,
        )  # fmt: skip


@njit
def call_pl_rank_3(scores, relevance, theta, n_samples, choice, stream, out, rankings, workspace):
    for q in range(scores.shape[0]):
        stream_seek(stream.ctypes, q, 0)
        pl_rank_3(
            stream.ctypes, scores[q].ctypes, relevance[q].ctypes, scores.shape[1], theta.ctypes, theta.size, n_samples,
            choice, 0, 0, out.ctypes, 0, workspace.ctypes, workspace.size,
        )  # fmt: skip


@njit
def call_sample_rankings(scores, relevance, theta, n_samples, choice, stream, out, rankings, workspace):
    for q in range(scores.shape[0]):
        stream_seek(stream.ctypes, q, 0)
        sample_rankings(
            stream.ctypes, scores[q].ctypes, scores.shape[1], theta.size, n_samples, choice, rankings.ctypes,
            workspace.ctypes, workspace.size,
        )  # fmt: skip


ROWS = [
    ("pl_rank_exact", 0),
    ("pl_rank_cmc", 1),
    ("pl_rank_3", 1),
    ("pl_rank_3", 100),
    ("sample_rankings", 1),
    ("sample_rankings", 100),
]


def measure(name, n_samples):
    """Return the microseconds of a Python call, a C call and a refused C call, as the least of many runs in turn."""
    rng = np.random.default_rng(0)
    scores, relevance = rng.normal(size=(N_QUERIES, N_ITEMS)), rng.random((N_QUERIES, N_ITEMS))
    theta, key, generator = plr.dcg_weights(CUTOFF), plr.stream_key(0), np.random.default_rng(0)
    stream, workspace = np.zeros(64, dtype=np.uint8), np.empty(1 << 20, dtype=np.uint8)
    out, rankings = np.empty(N_ITEMS), np.empty((100, CUTOFF), dtype=np.int32)
    embedding.ctypes_function("plrank_stream_init")(stream.ctypes.data, 64, int(key[0]), int(key[1]), 0)
    function, c_calls = getattr(plr, name), globals()[f"call_{name}"]

    def python_calls():
        for f, rho in zip(scores[:PYTHON_CALLS], relevance[:PYTHON_CALLS], strict=True):
            if name == "sample_rankings":
                function(f, n_samples, CUTOFF, rng=generator, n_threads=1)
            elif n_samples:
                function(f, rho, theta, n_samples=n_samples, rng=generator, n_threads=1)
            else:
                function(f, rho, theta, n_threads=1)

    runs = {
        python_calls: PYTHON_CALLS,
        lambda: c_calls(scores, relevance, theta, n_samples, 0, stream, out, rankings, workspace): N_QUERIES,
        lambda: c_calls(scores, relevance, theta, n_samples, -1, stream, out, rankings, workspace): N_QUERIES,
    }
    least = dict.fromkeys(runs, np.inf)
    for _ in range(REPEATS + 1):  # the first one compiles
        for run, calls in runs.items():
            start = time.perf_counter()
            run()
            least[run] = min(least[run], (time.perf_counter() - start) / calls * 1e6)
    return least.values()


if __name__ == "__main__":
    print("microseconds per query, D = 24, K = 5:")
    print("                             call in  call in               overhead  overhead")
    print("                              Python        C    ratio     in Python      in C   ratio")
    for name, n_samples in ROWS:
        python, c, refused = measure(name, n_samples)
        overhead = python - (c - refused)
        print(
            f"{name:16} {f'N = {n_samples}' if n_samples else '':9} {python:8.2f} {c:8.3f} {python / c:8.1f}"
            f" {overhead:13.2f} {refused:9.3f} {overhead / refused:7.0f}"
        )
