"""Fixtures shared by the tests, which stand in folders by what they are evidence of::

    structure     the source itself: its map, its imports, what stands once
    hand          numbers computed by hand or published: metrics, rank weights, offsets, random words, costs
    enumeration   without randomness: all rankings, quadrature over noise, error bounds of the exact gradient
    references    numbers by slower code: reference implementations, differences, extended precision, sorting
    invariants    what must not matter: the other queries of a batch, empty ones, threads, rounds, magnitudes
    statistical   draws against their distribution, each test with its rate of false positives
    faults        bad and odd arguments, damaged files, memory that was not written, and what each is told
    processes     threads, forks, signals, Ctrl-C, memory and threads that run out
    libraries     arrays, gradients and trees of other libraries, and callers in C
    commands      the command line, training runs, benchmarks
    attackers     programs run for hours by hand (``make hunt``, ``make fuzz``, ...), and a seeded minute of them
    documents     examples and shell blocks of docstrings, documents and ``examples``

A test that is evidence of several things stands where most of its file belongs. ``problems.py`` makes their problems.
"""

import os
import signal

import pytest

# Threads that wait for work would keep processors busy beside other tests, for a third of the time of all tests. OpenMP
# and OpenBLAS read these when they are loaded, in this process and those that it starts.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import runtime_variables
from plrank_fast import build_info
from plrank_fast._core.runtime import threads as _threads
from verdict import Verdict

# A shell ignores SIGINT for tests that it starts in the background, and every process that they start would inherit it.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config):
    if not hasattr(config, "workerinput"):  # of a process that shares the tests out, or runs them all
        config.pluginmanager.register(Verdict(config.pluginmanager))


@pytest.fixture(scope="session")
def without_address_sanitizer():
    """Skip a test that replaces malloc, comes before every other library, or limits the address space, of which a
    terabyte is the sanitizer's own; ``make sanitize`` leaves out such tests."""
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("not under the address sanitizer")


@pytest.fixture
def costs():
    """`runtime_variables.set_costs`, undone after the test."""
    before = runtime_variables.set_costs()
    yield runtime_variables.set_costs
    runtime_variables.set_costs(**before)


@pytest.fixture
def on_team(monkeypatch, costs):
    """`on_team(n, call, ...)` is `call(..., n_threads=n)`, seen to have run on n threads, or on `team` where tasks are
    fewer. There are 64 processors, and any work is worth a further thread. With other costs than those that ship, which
    `make matrix` compiles, teams may be of any size."""
    monkeypatch.setattr("plrank_fast._core.runtime.threads.available_cpus", lambda: 64)
    costs(teams=1)
    openmp = build_info()["openmp"]

    def run(n_threads, call, *arguments, team=None, **options):
        runtime_variables.team_that_ran()
        result = call(*arguments, n_threads=n_threads, **options)
        size = runtime_variables.team_that_ran()
        assert runtime_variables.OTHER_COSTS or size == (team or _threads.resolve_threads(n_threads) if openmp else 1)
        return result

    return run
