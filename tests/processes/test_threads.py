"""Threads of all kinds, input that changes under way, memory."""

import _thread
import contextlib
import os
import subprocess
import sys
import sysconfig
import textwrap
import threading
import time

import numpy as np
import pytest

import plrank_fast as plr
import runtime_variables
from plrank_fast._core.runtime import threads as _threads

OPENMP = plr.build_info()["openmp"]


def run(code, **environment):
    """Run a program in a process of its own; its output."""
    answer = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}, capture_output=True, text=True,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


class TestCount:
    def test_resolution(self, monkeypatch):
        monkeypatch.setattr("plrank_fast._core.runtime.threads.available_cpus", lambda: 6)
        assert [_threads.resolve_threads(n) for n in (1, 6, 7, 10**9, -1, -2, -6, -100)] == [1, 6, 6, 6, 6, 5, 1, 1]
        assert 1 <= _threads.resolve_threads(None) <= 6

    @pytest.mark.skipif(not OPENMP, reason="built without OpenMP")
    def test_omp_num_threads_is_respected(self):
        program = "import plrank_fast as plr; print(plr.build_info()['n_threads'])"
        assert int(run(program, OMP_NUM_THREADS="1")) == 1

    @pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no processor affinity on this system")
    def test_affinity_is_respected(self):
        cpu = min(os.sched_getaffinity(0))
        limit = f"import os; os.sched_setaffinity(0, [{cpu}]); "
        assert int(run(limit + "import plrank_fast as plr; print(plr.build_info()['n_threads'])")) == 1


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="not a free-threaded Python")
def test_a_free_threaded_python_stays_so():
    """Mutant: `freethreading_compatible` False, with which the import switches the lock on, and warns."""
    assert run("import sys, plrank_fast; print(sys._is_gil_enabled())") == "False\n"


@pytest.mark.chosen_path
@pytest.mark.skipif(not OPENMP, reason="built without OpenMP")
class TestTeamsThatComeLate:
    """Any team is late after less than no time, none after years; pauses that nobody outlives, or nobody notices."""

    YEARS = 1e18

    @pytest.fixture
    def sizes(self, monkeypatch, costs):
        """`sizes(*n_queries, late_ns=..., pause_ns=...)`, of the teams of as many calls, all to the same bits."""
        monkeypatch.setattr("plrank_fast._core.runtime.threads.available_cpus", lambda: 4)

        def run(*n_queries, **settings):
            costs(worth_ns=1.0, **settings)
            found = []
            for n in n_queries:
                scores = np.random.default_rng(n).normal(size=6 * n)
                call = (scores, np.abs(scores), plr.dcg_weights(3)), np.arange(0, scores.size + 1, 6)
                alone = plr.pl_rank_3(*call[0], offsets=call[1], rng=1, n_samples=200, n_threads=1)
                runtime_variables.team_that_ran()
                np.testing.assert_array_equal(
                    plr.pl_rank_3(*call[0], offsets=call[1], rng=1, n_samples=200, n_threads=2), alone
                )
                found.append(runtime_variables.team_that_ran()[0])
            return found

        return run

    def test_short_rounds_do_without(self, sizes):
        """Mutants: never late; the pause forgotten at once; the next call of one thread taken for a team in time."""
        assert sizes(50, 50, 50, late_ns=-1.0, pause_ns=self.YEARS) == [2, 1, 1]

    def test_long_rounds_do_not(self, sizes):
        """A time slice is nothing to them. Mutant: work not asked for."""
        assert sizes(50, 50, 20_000, late_ns=-1.0, pause_ns=self.YEARS) == [2, 1, 2]

    def test_the_pause_ends(self, sizes):
        """Mutant: a pause for ever."""
        assert sizes(50, 50, 50, late_ns=-1.0, pause_ns=1.0) == [2, 2, 2]

    def test_teams_in_time(self, sizes):
        """A round that is over too soon to tell counts as neither, which is for speed only: no mutant of it fails."""
        assert sizes(50, 50, 50, late_ns=self.YEARS, pause_ns=self.YEARS) == [2, 2, 2]


def test_the_gil_is_released():
    """Another thread gets on with its work during a call: it ends it. Mutant: `with nogil` removed."""
    before, over = runtime_variables.looks(), threading.Event()

    def end_it():
        while runtime_variables.looks() < before + 2 and not over.is_set():
            time.sleep(0.001)
        if not over.is_set():
            _thread.interrupt_main()

    other = threading.Thread(target=end_it)
    other.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            plr.pl_rank_2(np.zeros(500), np.ones(500), plr.dcg_weights(10), n_samples=10**6, n_threads=1)
    finally:
        over.set()
        other.join()


def test_input_that_changes_during_a_call():
    """Scores, offsets and rankings scribbled over by another thread: no crash, as calls work on copies."""
    scores, relevance = np.zeros(3000), np.ones(3000)
    offsets = np.arange(0, 3001, 30)
    rankings = np.tile(np.arange(10), (100, 40, 1))
    stop = threading.Event()

    def scribble():
        rng = np.random.default_rng(0)
        while not stop.is_set():
            scores[:] = rng.choice([0.0, np.nan, np.inf])
            rankings[:] = rng.choice([0, 10**9, -(10**9)])
            offsets[1:-1] = rng.integers(0, 10**12)

    other = threading.Thread(target=scribble)
    other.start()
    try:
        for _ in range(300):
            for given in (None, rankings):
                with contextlib.suppress(ValueError):
                    plr.pl_rank_3(scores, relevance, plr.dcg_weights(10), offsets=offsets, rankings=given, n_samples=3)
    finally:
        stop.set()
        other.join()


def test_after_another_openmp_runtime():
    """torch brings a runtime of its own. Skipped where torch is not installed."""
    pytest.importorskip("torch")
    answer = run("""
        import torch
        torch.randn(300, 300) @ torch.randn(300, 300)
        import numpy as np, plrank_fast as plr
        from plrank_fast._core.runtime import threads as _threads
        import runtime_variables
        _threads.available_cpus = lambda: 2
        runtime_variables.set_costs(worth_ns=0.0)
        offsets = np.arange(0, 1001, 20)
        call = lambda n: plr.pl_rank_3(np.zeros(1000), np.arange(1000.0), [1.0], offsets=offsets, rng=1, n_threads=n)
        torch.randn(300, 300) @ torch.randn(300, 300)
        print((call(1) == call(2)).all(), runtime_variables.team_that_ran()[0])
    """)
    assert answer == f"True {2 if OPENMP else 1}\n"


def test_memory_does_not_grow_with_the_number_of_samples():
    """D = 1e5, N = 1000, K = 10: less than 16 MB more at the peak. Mutant: all rankings, or all noise, kept."""
    resource = pytest.importorskip("resource")
    assert resource
    answer = run("""
        import resource, numpy as np, plrank_fast as plr
        scores = np.random.default_rng(0).normal(size=100_000)
        call = lambda n: plr.pl_rank_3(scores, scores, plr.dcg_weights(10), n_samples=n, rng=0, n_threads=1)
        call(1)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        call(1000)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """)
    assert int(answer) < 16 * 1024 * (1024 if sys.platform == "darwin" else 1)
