"""Every function of batches, called on teams whose threads have all been given work: the programs of ``races.py``."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import runtime_variables
from plrank_fast._core.runtime import threads as _threads
from problems import ragged
from public_calls import BATCHES, N_SAMPLES

LONGEST_CALL = 5.0  # seconds; on a busy machine a thread may have done all of a shorter one before another is woken
PROBLEM = ragged([3, 0, 1, 40, 2, 7, 0, 0, 25, 130, 1, 5, 12, 0, 64, 9, 300, 2, 33, 0])
WITH_TEAM = {name: call for name, call in BATCHES.items() if "n_threads" in call.parameters}
CUT_INTO_PARTS = {
    "sample_rankings", "stochastic_rank", "pl_rank_3", "pl_rank_cmc", "pl_rank_exact", "rank_probabilities",
}  # fmt: skip


def times(factor: int, call: Callable[..., object]) -> dict[str, object]:
    """Arguments of a call on the batch so many times over."""
    scores, relevance, rank_weights, offsets = PROBLEM
    shifted = (offsets[1:] + i * offsets[-1] for i in range(factor))
    arrays = {"scores": scores, "relevance": relevance, "rank_weights": rank_weights}
    repeated = {name: np.concatenate([array] * factor) for name, array in arrays.items()}
    return {**repeated, "offsets": np.concatenate([[0], *shifted]), "n_threads": 2}


def as_one_query(factor: int, call: Callable[..., object]) -> dict[str, object]:
    """Arguments of a call on all documents in one list, with so many times the samples."""
    scores, relevance, _, offsets = PROBLEM
    n_samples = {"n_samples": factor * N_SAMPLES} if "n_samples" in call.options else {}
    one = {"scores": scores, "relevance": relevance, "rank_weights": np.ones(10), "offsets": [0, offsets[-1]]}
    return {**one, **n_samples, "n_threads": 2}


def is_shared(function: Callable[..., object], arguments: dict[str, object]) -> bool:
    """Call; whether two threads have worked on a loop."""
    runtime_variables.shared_loops()
    function(**arguments)
    return runtime_variables.shared_loops() > 0


def one_caller() -> int:
    """Every call on two threads, with more and more to do until both have worked; how many functions never had both."""
    number, unshared = 0, []
    for enlarged, round_ns in ((times, 1e18), (as_one_query, 1e6)):
        runtime_variables.set_costs(teams=1, round_ns=round_ns)
        for name, call in WITH_TEAM.items():
            in_parts = name.split()[0] in CUT_INTO_PARTS and "rankings" not in call.options
            expected = enlarged is times or in_parts
            factor, start = 1, time.monotonic()
            while True:
                number += 1
                if is_shared(call, enlarged(factor, call)):
                    break
                if not expected or time.monotonic() > start + LONGEST_CALL:
                    unshared += [f"{name} ({enlarged.__name__})"] * expected
                    break
                factor *= 4
    print(f"{number} calls")
    for name in unshared:
        print(f"one thread did all the work of {name}")
    return len(unshared)


def four_callers() -> int:
    """All calls from four Python threads, in an order of its own each, on teams of two."""
    runtime_variables.set_costs(teams=1, round_ns=1e6)
    everything = list(WITH_TEAM.values())

    def work(first: int) -> None:
        for call in everything[first:] + everything[:first]:
            for enlarged in (times, as_one_query):
                call(**enlarged(1, call))

    callers = [threading.Thread(target=work, args=(17 * number,)) for number in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    print(f"{2 * len(callers) * len(everything)} calls")
    return 0


def race(together: int) -> int:
    """Two threads add to one number, or each to its own: the library of ``races.RACE``, beside the interpreter."""
    ctypes.CDLL(str(Path(sys.executable).with_name("race.so"))).add(together)
    return 0


PROGRAMS = {"race": lambda: race(1), "no_race": lambda: race(0), "one_caller": one_caller, "four_callers": four_callers}
if __name__ == "__main__":
    _threads.available_cpus = lambda: 64
    sys.exit(PROGRAMS[sys.argv[1]]())
