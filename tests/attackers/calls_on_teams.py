"""Every function of batches, called on teams whose threads have all been given work: the programs of ``races.py``."""

from __future__ import annotations

import ctypes
import inspect
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "invariants")]

import plrank_fast as plr  # noqa: E402
from plrank_fast._core.runtime import threads as _threads  # noqa: E402
from plrank_fast.fairness import disparity  # noqa: E402
from test_batch_is_loop import CASES, SETTINGS, arguments_of  # noqa: E402

LONGEST_CALL = 5.0  # seconds; on a busy machine a thread may have done all of a shorter one before another is woken
WITHOUT_TEAM = {disparity}  # NumPy alone
CUT_INTO_PARTS = {
    plr.sample_rankings, plr.stochastic_rank, plr.pl_rank_3, plr.pl_rank_cmc, plr.pl_rank_exact, plr.rank_probabilities,
}  # fmt: skip


def calls() -> Iterator[tuple[Callable[..., object], dict[str, object]]]:
    """Every call of a batch, that of lists of 0 to 300 documents."""
    for setting in ("spread", "peaked"):
        for function, cases in CASES.items():
            for options in cases:
                team = {"n_threads": 2} if "n_threads" in inspect.signature(function).parameters else {}
                yield function, {**arguments_of(function, options, SETTINGS[setting]), **team}


def times(factor: int, arguments: dict[str, object]) -> dict[str, object]:
    """The batch so many times over."""
    offsets = np.asarray(arguments["offsets"])
    larger = dict(arguments)
    for name, value in arguments.items():
        if np.ndim(value) and len(value) in (offsets[-1], offsets.size - 1):
            larger[name] = np.concatenate([value] * factor)
    larger["offsets"] = np.concatenate([[0], *(offsets[1:] + i * offsets[-1] for i in range(factor))])
    return larger


def as_one_query(factor: int, arguments: dict[str, object]) -> dict[str, object]:
    """All documents in one list, and so many times the samples."""
    n_samples = {"n_samples": 200 * factor} if "n_samples" in arguments else {}
    weights = {"rank_weights": np.ones(10)} if "rank_weights" in arguments else {}
    return {**arguments, "offsets": [0, arguments["offsets"][-1]], **n_samples, **weights}


def workers(function: Callable[..., object], arguments: dict[str, object]) -> int:
    """Call; how many threads have been given work."""
    _threads.team_that_ran()
    function(**arguments)
    return int(_threads.team_that_ran()[1])


def one_caller() -> int:
    """Every call on two threads, with more and more to do until both have worked; how many functions never had both."""
    number, unshared = 0, []
    for enlarged, round_ns in ((times, 1e18), (as_one_query, 1e6)):
        _threads.set_costs(worth_ns=0.0, round_ns=round_ns)
        expected = CASES.keys() - WITHOUT_TEAM if enlarged is times else CUT_INTO_PARTS
        seen = set()
        for function, arguments in calls():
            factor, start = 1, time.monotonic()
            while True:
                number += 1
                if workers(function, enlarged(factor, arguments)) > 1:
                    seen.add(function)
                    break
                if function not in expected or time.monotonic() > start + LONGEST_CALL:
                    break
                factor *= 4
        unshared += [f"{function.__name__} ({enlarged.__name__})" for function in expected - seen]
    print(f"{number} calls")
    for name in unshared:
        print(f"one thread did all the work of {name}")
    return len(unshared)


def four_callers() -> int:
    """All calls from four Python threads, in an order of its own each, on teams of two."""
    _threads.set_costs(worth_ns=0.0, round_ns=1e6)
    everything = list(calls())

    def work(first: int) -> None:
        for function, arguments in everything[first:] + everything[:first]:
            function(**arguments)

    callers = [threading.Thread(target=work, args=(31 * number,)) for number in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    print(f"{len(callers) * len(everything)} calls")
    return 0


def _race(together: int) -> int:
    """The loop of ``races.RACE``, whose library stands beside the interpreter."""
    ctypes.CDLL(str(Path(sys.executable).with_name("race.so"))).add(together)
    return 0


def race() -> int:
    """Two threads add to one number."""
    return _race(1)


def no_race() -> int:
    """Each adds to its own."""
    return _race(0)


if __name__ == "__main__":
    _threads.available_cpus = lambda: 64
    sys.exit({"race": race, "no_race": no_race, "one_caller": one_caller, "four_callers": four_callers}[sys.argv[1]]())
