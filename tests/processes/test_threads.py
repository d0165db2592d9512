"""Threads of all kinds, input that changes under way, memory."""

import _thread
import contextlib
import ctypes
import os
import sys
import sysconfig
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import plrank_fast as plr
import runtime_variables
from plrank_fast._core.runtime import threads as _threads
from programs import compiled, run_python

OPENMP = plr.build_info()["openmp"]

OF_PYTORCH = """
import re
from pathlib import Path
import torch
from plrank_fast._core.runtime.threads import available_cpus, resolve_threads

class Items(torch.utils.data.Dataset):
    __len__ = lambda self: 1
    __getitem__ = lambda self, i: (resolve_threads(None), resolve_threads(-1))

runtimes = re.findall(r"/\\S*lib(?:gomp|omp|iomp5)\\S*", Path("/proc/self/maps").read_text())
if len(set(runtimes)) > 1:
    print("two runtimes")
else:
    cpus = available_cpus()
    with_worker = [each.tolist() for each in next(iter(torch.utils.data.DataLoader(Items(), num_workers=1)))]
    torch.set_num_threads(1)
    print([[1], [cpus]] == with_worker and (resolve_threads(None), resolve_threads(-1)) == (1, cpus))
"""


class TestCount:
    def test_resolution(self, monkeypatch):
        monkeypatch.setattr("plrank_fast._core.runtime.threads.available_cpus", lambda: 6)
        assert [_threads.resolve_threads(n) for n in (1, 6, 7, 10**9, -1, -2, -6, -100)] == [1, 6, 6, 6, 6, 5, 1, 1]
        assert 1 <= _threads.resolve_threads(None) <= 6

    @pytest.mark.skipif(not OPENMP, reason="built without OpenMP")
    def test_omp_num_threads_is_respected(self):
        program = "import plrank_fast as plr; print(plr.build_info()['n_threads'])"
        assert int(run_python(program, OMP_NUM_THREADS="1")) == 1
        program = "from plrank_fast._core.runtime.threads import *; print(resolve_threads(-1) == available_cpus())"
        assert run_python(program, OMP_NUM_THREADS="1") == "True\n"

    @pytest.mark.skipif(not OPENMP, reason="built without OpenMP")
    def test_threads_of_pytorch(self):
        """Its setting is ours where it is the runtime's, as its workers' is. Mutants: None counts processors; -1 asks
        OpenMP."""
        pytest.importorskip("torch", reason="PyTorch is not installed")
        if sys.platform != "linux":
            pytest.skip("which runtimes a process has is read in /proc")
        assert run_python(OF_PYTORCH).split("\n")[-2] in ("True", "two runtimes")

    @pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no processor affinity on this system")
    def test_affinity_is_respected(self):
        cpu = min(os.sched_getaffinity(0))
        limit = f"import os; os.sched_setaffinity(0, [{cpu}]); "
        assert int(run_python(limit + "import plrank_fast as plr; print(plr.build_info()['n_threads'])")) == 1


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="not a free-threaded Python")
def test_a_free_threaded_python_stays_so():
    """Mutant: `freethreading_compatible` False, with which the import switches the lock on, and warns."""
    assert run_python("import sys, plrank_fast; print(sys._is_gil_enabled())") == "False\n"


# The rule's functions are not exported by the kernel's headers.
RULE = """
#include "runtime/clock.h"
#include "runtime/parallel_loop.h"
#include "simd/denormals.h"
#include <math.h>
#define static
#define inline
#include "runtime/team_size.h"
#include "runtime/team.h"
void sleep_for(void *nanoseconds, intptr_t i, int seat)
{
    nanosleep(&(struct timespec){0, *(long *)nanoseconds}, NULL);
}
void times_of_passes(int by_processor, long nanoseconds, int64_t busy[2])
{
    shared_passes loop = {.times.by_processor = by_processor, .body = sleep_for, .argument = &nanoseconds, .stop = 3,
                          .chunk = 1};
    plr_take_passes(&loop, 0);
    busy[0] = loop.times.busy, busy[1] = loop.times.busiest;
}
"""


class ExpectedLoop(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_double) for name in ("ns", "work", "longest", "waking")),
        *((name, ctypes.POINTER(ctypes.c_double)) for name in ("factor", "waking_learnt")),
    ]


@pytest.fixture(scope="module")
def rule(tmp_path_factory):
    """The rule of ``kernels/runtime/team_size.h`` by itself."""
    kernels = Path(__file__).resolve().parents[2] / "plrank_fast" / "kernels"
    library = ctypes.CDLL(compiled(tmp_path_factory.mktemp("rule"), RULE, f"-I{kernels}", "-lm"))
    sizes, loop, double = ctypes.POINTER(runtime_variables.Sizes), ctypes.POINTER(ExpectedLoop), ctypes.c_double
    library.plr_expect.argtypes, library.plr_expect.restype = [sizes, ctypes.c_size_t, *[double] * 4], ExpectedLoop
    library.plr_team_size.argtypes = [sizes, loop, ctypes.c_int, double]
    library.plr_learn_alone.argtypes = [sizes, loop, double]
    library.plr_learn_team.argtypes = [sizes, loop, ctypes.c_int, *[double] * 5]
    library.times_of_passes.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.POINTER(ctypes.c_int64)]
    return library


class Machine:
    """A machine on which every thread begins when it should: microseconds after a loop, more once it has fallen asleep.

    A loop waits for all of its threads. ``late(n)`` is by how much more the last of n threads begins,
    ``stalled(n)`` for how long it has no processor later; ``off`` is the estimated over the true time, ``slower`` how
    many times longer the passes of a team take.
    """

    FALLS_ASLEEP, SIGNALS = 1e5, 4e3

    def __init__(self, rule, processors, off=1.0, spinning=2e3, asleep=1e5):
        self.rule, self.processors, self.off = rule, processors, off
        self.spinning, self.asleep = spinning, asleep
        self.learnt, self.now, self.ended = runtime_variables.Sizes(), 1e12, -1e300
        self.late = self.stalled = lambda n: 0.0
        self.slower = 1.0

    def waking(self, pause):
        return self.spinning if pause < self.FALLS_ASLEEP else self.asleep

    def time(self, work, n, waking, late=0.0):
        """Time of a loop, when its last pass ended, and when its last thread began."""
        begun, ended = [0.0, *[waking] * (n - 2), waking + late][:n], work
        work += self.SIGNALS * (n > 1 and waking > self.spinning)
        for i, at in enumerate(begun):
            if i > 0 and at >= ended:
                break
            ended = (work + sum(begun[: i + 1])) / (i + 1)
        return max(ended, begun[-1]), ended, begun[-1]

    def loop(self, work, longest=0.0):
        """Number of threads and time of a loop that takes ``work`` on one thread, or at least ``longest``."""
        started, pause = self.now, self.now - self.ended
        expected = self.rule.plr_expect(self.learnt, 1600, self.off * work, self.off * longest, 1000, pause)
        n = self.rule.plr_team_size(self.learnt, expected, self.processors, started)
        work *= self.slower if n > 1 else 1.0
        taken, ended, waking = self.time(work, n, self.waking(pause), self.late(n))
        taken, busiest = max(taken, longest), max(ended, longest)
        taken += self.stalled(n)
        self.now += taken
        if n == 1:
            self.rule.plr_learn_alone(self.learnt, expected, taken)
        else:
            self.rule.plr_learn_team(self.learnt, expected, n, started, self.now, waking, work, busiest)
            self.ended = self.now
        return n, taken

    def loops(self, count, work, pause=0.0, **options):
        """Numbers of threads and times of so many loops with pauses between them."""
        results = []
        for _ in range(count):
            self.now += pause
            results.append(self.loop(work, **options))
        return np.array(results).T


@pytest.mark.parametrize("processors", [2, 16])
class TestTeamSize:
    """On imitated machines, of which the rule knows nothing at first."""

    @pytest.mark.parametrize("off", [1.0, 20.0, 0.25])
    @pytest.mark.parametrize("pause", [0.0, 5e6])
    @pytest.mark.parametrize("work", [1e3, 5e3, 2e4, 6e4, 3e5, 1e7])
    def test_the_faster_of_one_thread_and_all(self, rule, processors, off, pause, work):
        """However wrong the estimates are: after the first loops, times are within a tenth of it in the mean, and nine
        of ten within a tenth of the median.

        Mutants: the factor not learnt; one waking for threads that spin and that sleep; waking that is never looked at
        again, or in every loop; the estimate in place of the work.
        """
        machine = Machine(rule, processors, off)
        machine.loops(20, work, pause)
        _, times = machine.loops(500, work, pause)
        team, *_ = machine.time(work, processors, machine.spinning if pause == 0.0 else machine.asleep)
        assert times.mean() <= 1.1 * min(work, team)
        assert np.quantile(times, 0.9) <= 1.1 * np.median(times)

    @pytest.mark.parametrize("work", [4e3, 1e4])
    def test_passes_of_teams_are_slower(self, rule, processors, work):
        """Threads that wait for each other's caches: short loops run on one.

        Mutants: passes of a team count as work; a team for the first loop.
        """
        machine = Machine(rule, processors)
        machine.slower = 1.5 * processors
        machine.loops(20, work)
        _, times = machine.loops(500, work)
        assert times.mean() <= 1.1 * work

    @pytest.mark.parametrize("work", [1e5, 3e5, 2e6])
    @pytest.mark.parametrize("disturbed", ["late", "stalled"])
    def test_a_busy_processor(self, rule, processors, work, disturbed):
        """The last of all threads waits for a time slice, before or after it has begun: the loss is a tenth of the time
        of fewer threads, and sixteen processors are not left for one.

        Mutants: no judgement of teams; a pause as long as the loss; one thread whenever a team was bad.
        """
        machine = Machine(rule, processors)
        machine.loops(20, work)
        setattr(machine, disturbed, lambda n: 4e6 * (n == processors))
        sizes, times = machine.loops(10_000, work)
        assert times.sum() <= 1.2 * times.size * machine.time(work, max(1, processors // 2), machine.spinning)[0]
        if processors > 2:
            assert np.median(sizes) == processors // 2

    def test_disturbed_once(self, rule, processors):
        """A disturbance of a moment costs no threads. Mutants: a pause after every loss, one for ever, or pauses that
        grow each time; the longest that a thread was busy not asked for."""
        machine = Machine(rule, processors)
        machine.loops(500, 1e6)
        machine.stalled = lambda n: 4e6 * (n == processors)
        machine.loop(1e6)
        machine.stalled = lambda n: 0.0
        sizes, _ = machine.loops(50, 1e6)
        assert (sizes == processors).all()

    def test_one_long_query_among_short_ones(self, rule, processors):
        """Others wait for the thread that has it: fewer would be no faster. Mutant: the longest pass not asked for."""
        machine = Machine(rule, processors)
        machine.loops(20, 1e6)
        sizes, _ = machine.loops(50, 1e6, longest=0.6e6)
        assert (sizes == processors).all()


@pytest.mark.parametrize("by_processor", [False, True])
def test_time_without_a_processor_is_not_that_of_passes(rule, by_processor):
    """A thread that is kept from its work has not done more of it. Mutant: the wall's clock in long loops too."""
    busy = (ctypes.c_int64 * 2)()
    rule.times_of_passes(by_processor, 20_000_000, busy)
    assert busy[0] == busy[1]
    assert (busy[0] < 3e7) if by_processor else (busy[0] >= 6e7)


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
    scores, relevance = np.zeros(3000), np.arange(3000.0) % 3
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
    answer = run_python("""
        import torch
        torch.randn(300, 300) @ torch.randn(300, 300)
        import numpy as np, plrank_fast as plr
        from plrank_fast._core.runtime import threads as _threads
        import runtime_variables
        _threads.available_cpus = lambda: 2
        runtime_variables.set_costs(teams=1)
        offsets = np.arange(0, 1001, 20)
        call = lambda n: plr.pl_rank_3(np.zeros(1000), np.arange(1000.0), [1.0], offsets=offsets, rng=1, n_threads=n)
        torch.randn(300, 300) @ torch.randn(300, 300)
        print((call(1) == call(2)).all(), runtime_variables.team_that_ran())
    """)
    assert answer == f"True {2 if OPENMP else 1}\n"


def test_memory_does_not_grow_with_the_number_of_samples():
    """D = 1e5, N = 1000, K = 10: less than 16 MB more at the peak. Mutant: all rankings, or all noise, kept."""
    resource = pytest.importorskip("resource")
    assert resource
    answer = run_python("""
        import resource, numpy as np, plrank_fast as plr
        scores = np.random.default_rng(0).normal(size=100_000)
        call = lambda n: plr.pl_rank_3(scores, scores, plr.dcg_weights(10), n_samples=n, rng=0, n_threads=1)
        call(1)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        call(1000)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """)
    assert int(answer) < 16 * 1024 * (1024 if sys.platform == "darwin" else 1)


@pytest.mark.parametrize(
    ("files", "processors"),
    [
        ({"cpu.max": "150000 100000"}, 2),
        ({"cpu.max": "max 100000"}, None),
        ({"cpu/cpu.cfs_quota_us": "50000", "cpu/cpu.cfs_period_us": "100000"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ({}, None),
    ],
)
def test_quota_of_a_container(tmp_path, files, processors):
    """Both versions of cgroups. Mutants: rounded down; -1 taken for a quota; only version 2."""
    (tmp_path / "cpu").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n")
    assert _threads._cgroup_quota(tmp_path) == processors


class TestSpareMemory:
    """Freed blocks are kept for the next calls. Mutants: one block alone; sizes not counted; no bound."""

    @pytest.fixture
    def kept(self, monkeypatch, costs):
        """`kept(n_threads)`: the sizes of the blocks that two calls on a long list leave, in ascending order."""
        monkeypatch.setattr("plrank_fast._core.runtime.threads.available_cpus", lambda: 64)
        costs(teams=1, round_ns=1e3)
        scores = np.random.default_rng(0).normal(size=200_000)

        def run(n_threads):
            runtime_variables.drop_spare()
            found = []
            for _ in range(3):
                plr.sample_rankings(scores, 200, 10, rng=0, sampler="guide_table", n_threads=n_threads)
                sizes, counted = runtime_variables.spare_sizes()
                assert sum(sizes) == counted
                found.append(sorted(sizes))
            assert found[0] == found[1] == found[2]
            return found[0]

        yield run
        runtime_variables.drop_spare()

    def test_all_of_a_long_query(self, kept):
        """Three and the copies of the arguments. Mutant: these freed."""
        assert len(kept(1)) == 4

    def test_threads_share_a_table(self, kept):
        """Further threads take next to no memory. Mutant: a table for each."""
        assert sum(kept(7)) < 1.1 * sum(kept(1))

    def test_what_no_call_uses_is_freed(self, kept):
        """Mutants: it stays for ever; it goes at the next calls."""
        most = sum(kept(1))
        for calls, fewest, largest in (100, most, 2 * most), (500, 1, most / 10):
            for _ in range(calls):
                plr.sample_rankings(np.arange(50.0), 5, 10, rng=0, n_threads=1)
            assert fewest <= runtime_variables.spare_sizes()[1] <= largest

    def test_bound(self, kept, costs):
        costs(teams=1, round_ns=1e3, spare_bytes=1 << 20)
        assert sum(kept(2)) <= 1 << 20
