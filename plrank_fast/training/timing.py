"""Two calls timed in turn, and an epoch of gradients beside NumPy's."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from plrank_fast._methods.registry import ESTIMATORS
from plrank_fast.training.paper_methods import Method
from plrank_fast.training.workloads import Workload

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
    ours = Method(method, ONE_ANSWER.get(method, n_samples)).call(workload, cutoff, 0)
    own, other = fastest_in_turn(ours, Method("pl_rank_3", n_samples).numpy_call(workload, cutoff, 0), seconds)
    return own * workload.per_epoch, other * workload.typical_per_epoch
