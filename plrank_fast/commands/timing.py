"""Two calls timed in turn, and an epoch of gradients beside NumPy's."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from plrank_fast import reference
from plrank_fast._shared.methods import ESTIMATORS
from plrank_fast.reproduction.workloads import Workload

# These methods do not use N, but take this number of samples.
ONE_ANSWER = {name: method.n_samples for name, method in ESTIMATORS.items() if method.n_samples <= 1}


def fastest_in_turn(
    first: Callable[[], object], second: Callable[[], object], seconds: float, repeat: int = 1
) -> tuple[float, float]:
    """Time two functions in turn for about ``seconds``: the fastest mean of ``repeat`` calls in a row, of each."""
    fastest = [np.inf, np.inf]
    begin = time.perf_counter()
    while True:
        for i, run in enumerate((first, second)):
            start = time.perf_counter()
            for _ in range(repeat):
                run()
            fastest[i] = min(fastest[i], (time.perf_counter() - start) / repeat)
        if time.perf_counter() - begin > seconds:
            return fastest[0], fastest[1]


def seconds_per_epoch(
    method: str, n_samples: int, cutoff: int, workload: Workload, seconds: float
) -> tuple[float, float]:
    """Return the seconds per epoch of a method, and of NumPy's PL-Rank-3 with the same N and K."""
    weights = workload.rank_weights(cutoff)
    options = {"offsets": workload.offsets, "n_threads": 1}
    if ESTIMATORS[method].n_samples:
        options |= {"n_samples": ONE_ANSWER.get(method, n_samples), "rng": 0}
    rng, docs = np.random.default_rng(0), workload.typical()

    def ours() -> None:
        ESTIMATORS[method].function(workload.scores, workload.relevance, weights, **options)

    def in_numpy() -> None:
        rankings = reference.sample_rankings(workload.scores[docs], n_samples, weights.size, rng)
        reference.pl_rank_3(workload.scores[docs], workload.relevance[docs], weights, rankings)

    own, other = fastest_in_turn(ours, in_numpy, seconds)
    return own * workload.per_epoch, other * workload.of_epoch(docs)


def ratio_to_numpy(method: str, n_samples: int, cutoff: int, workload: Workload, seconds: float) -> float:
    """Return the speed-up over NumPy's PL-Rank-3."""
    ours, numpy_seconds = seconds_per_epoch(method, n_samples, cutoff, workload, seconds)
    return numpy_seconds / ours
