"""Call everything from twenty threads at once for an hour, with forks, signals and memory that runs short.

    make soak SOAK_FLAGS="--minutes 60 --seed 0"

Every result is compared, bit for bit, with the same call on one thread of a quiet process. Meanwhile the main
thread is interrupted by a timer whose handler raises now and then, and forks children that must answer with the same
bits; where their address space is limited, MemoryError is an answer as well.

The resident memory is looked at every second once threads and workspaces are there; between the second and the last
quarter of that time its median may grow by no more than ``MOST_GROWTH``. Exits with 1 if anything of this fails; a
crash ends it by itself.
"""

from __future__ import annotations

import array
import faulthandler
import mmap
import os
import random
import resource
import signal
import statistics
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import ClassVar

import numpy as np
import threadpoolctl

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import runtime_variables
from plrank_fast._core.runtime import threads as _threads
from problems import ragged
from public_calls import BATCHES, OTHERS, arrays
from search import Search, wrong_with

CALLS = {**BATCHES, **OTHERS}
LINEAR_ALGEBRA = "fit_strengths"  # by NumPy
MOST_GROWTH = 12 * 2**20
LENGTHS = (
    [9], [40, 0, 7], [3, 0, 0, 61, 1], [0, 1, 0], [1, 2, 3, 4, 5, 6, 7, 8], [130, 2], [20] * 12, [70, 0, 0, 33, 5],
)  # fmt: skip
SECONDS_OF_A_CALL = 1800.0  # longer, on a busy machine too, and it counts as hanging
PROCESSOR_SECONDS_OF_A_CALL = 20.0  # a thousand times what it takes
SECONDS_OF_A_LOOK = 0.05  # between two looks at the memory
OTHER_BITS, UNLIMITED, RAN_OUT = 3, 4, 5  # exit statuses of children: the second is MemoryError without a limit
LEFT_OVER = (0, 2**16, 2**20, 2**23)  # bytes that may still be had where the address space is limited


class Interrupted(KeyboardInterrupt):
    """Raised by the handler of the timer inside whatever the main thread is doing."""


def memory_of_this_process() -> tuple[int, int]:
    """Bytes that are mapped, and bytes that are resident."""
    mapped, resident = Path("/proc/self/statm").read_text().split()[:2]
    return int(mapped) * mmap.PAGESIZE, int(resident) * mmap.PAGESIZE


class Soak(Search):
    """Threads that call, the main thread that troubles them, and what has been found."""

    most_findings = 10
    options: ClassVar = {
        "--number": {"type": float, "default": float("inf"), "help": "of calls, at most"},
        "--threads": {"type": int, "default": 20, "help": "that call (20)"},
        "--calls": {"nargs": "+", "choices": CALLS, "default": list(CALLS), "help": "all by default"},
        "--most-growth": {"type": float, "default": MOST_GROWTH, "help": "bytes, of the resident memory"},
    }

    def __init__(self, seed: int, number: float, threads: int, calls: Sequence[str], most_growth: float) -> None:
        super().__init__(seed)
        self.number, self.n_threads, self.most_growth = number, threads, most_growth
        self.memory = array.array("q")
        self._stop = threading.Event()
        self._counting = threading.Lock()
        self._raise_next = False
        faulthandler.enable()
        warnings.simplefilter("ignore")  # Python warns of every fork beside threads
        np.seterr(all="ignore")
        _threads.available_cpus = lambda: 4
        # a team for any work, and for long queries, as most are then
        runtime_variables.set_costs(teams=1, round_ns=5e3)
        # At a fork OpenBLAS ends its threads under the hands of those that compute: other bits, or a child that hangs.
        threadpoolctl.threadpool_limits(1, "blas")
        self._problems = [ragged(lengths) for lengths in LENGTHS]
        self._cases = [(name, number) for name in calls for number in range(len(LENGTHS))]
        self._expected = {case: self._call(case, 1) for case in self._cases}

    def _call(self, case: tuple[str, int], n_threads: int) -> list[bytes]:
        name, number = case
        scores, relevance, rank_weights, offsets = self._problems[number]
        result = CALLS[name](scores, relevance, rank_weights, 3, offsets=offsets, n_threads=n_threads)
        return [array.tobytes() for array in arrays(result)]

    def _count(self, what: str) -> None:
        with self._counting:
            self.tally[what] += 1

    def _one_call(self, rng: random.Random) -> None:
        case, n_threads = rng.choice(self._cases), rng.choice((1, 2, 3, 4))
        if self._call(case, n_threads) != self._expected[case]:
            self.broken(f"{case} on {n_threads} threads gives other bits")
        self._count("calls")

    def _work(self, number: int) -> None:
        rng = random.Random(f"soak {self.seed} {number}")
        while not self._stop.is_set():
            if wrong := wrong_with(self._one_call, rng):
                self.broken(wrong)
                return

    def _handler(self, signum: int, frame: FrameType | None) -> None:
        self.tally["signals"] += 1
        if self._raise_next:
            self._raise_next = False
            raise Interrupted

    def _interrupted_call(self, rng: random.Random) -> None:
        """A call of the main thread into which a handler raises: it is given up, or was over before."""
        try:
            self._raise_next = True
            self._one_call(rng)
        except Interrupted:
            self.tally["interrupted"] += 1
        finally:
            self._raise_next = False

    def _fork(self, rng: random.Random) -> None:
        """A child answers with the same bits whatever the other threads were doing; with little memory, or says so.

        It leaves linear algebra out: a lock of OpenBLAS that another thread holds at the fork is never released there.
        """
        left_over = rng.choice((None, None, *LEFT_OVER))
        cases = [case for case in self._cases if not case[0].startswith(LINEAR_ALGEBRA)]
        calls = [(rng.choice(cases), rng.choice((1, 2))) for _ in range(3)]
        child = os.fork()
        if child == 0:
            status, ran_out = 1, False
            try:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)  # either timer ends a child that hangs
                signal.setitimer(signal.ITIMER_REAL, SECONDS_OF_A_CALL)
                signal.setitimer(signal.ITIMER_PROF, PROCESSOR_SECONDS_OF_A_CALL)
                if left_over is not None:
                    resource.setrlimit(resource.RLIMIT_AS, (memory_of_this_process()[0] + left_over,) * 2)
                for case, n_threads in calls:
                    try:
                        if self._call(case, n_threads) != self._expected[case]:
                            os._exit(OTHER_BITS)
                    except MemoryError:
                        if left_over is None:
                            os._exit(UNLIMITED)
                        ran_out = True
                status = RAN_OUT if ran_out else 0
            finally:
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == RAN_OUT:
            self.tally["out of memory"] += 1
        elif status:
            self.broken(f"a child with {left_over} bytes left over ended with {status}: {calls}")
        self.tally["forks"] += 1

    def steps(self) -> Iterator[object]:
        """Trouble threads that call, until there have been enough calls."""
        rng = random.Random(f"soak {self.seed}")
        workers = [threading.Thread(target=self._work, args=(n,), daemon=True) for n in range(self.n_threads)]
        for worker in workers:
            worker.start()
        signal.signal(signal.SIGALRM, self._handler)
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        looked = 0.0
        try:
            while self.tally["calls"] < self.number:
                rng.choice((self._one_call, self._interrupted_call, self._interrupted_call, self._fork))(rng)
                if time.monotonic() > looked + SECONDS_OF_A_LOOK:
                    looked = time.monotonic()
                    self.memory.append(memory_of_this_process()[1])
                yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._stop.set()
            for number, worker in enumerate(workers):
                worker.join(SECONDS_OF_A_CALL)
                if worker.is_alive():
                    faulthandler.dump_traceback()
                    self.broken(f"thread {number} hangs")
            if self.growth() > self.most_growth:
                looks = self.memory[:: max(1, len(self.memory) // 50)]
                self.broken(f"memory grew by {self.growth()} bytes: {looks.tolist()}")

    def growth(self) -> int:
        """Bytes by which the last quarter's median is above the second quarter's; the first tenth warms up."""
        warm = self.memory[len(self.memory) // 10 :]
        quarter = len(warm) // 4
        if quarter == 0:
            return 0
        return int(statistics.median(warm[-quarter:]) - statistics.median(warm[quarter : 2 * quarter]))

    def summary(self) -> str:
        return (
            f"{super().summary()}, {memory_of_this_process()[1] / 2**20:.0f} MB, grown by {self.growth() / 2**20:.1f}"
        )


if __name__ == "__main__":
    code = Soak.main()
    sys.stdout.flush()
    os._exit(code)  # threads that hang would be waited for
