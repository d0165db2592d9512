"""Fuzz files that come from outside: LETOR files, models and checkpoints.

    make fuzz FUZZ_FLAGS="--minutes 60 --seed 0"
    python tests/attackers/fuzz.py --again '{"target": "letor", "seed": 0, "case": 17}'

Cases are made from (target, seed, number) and nothing else. They run in a process of their own: one that dies or hangs
is a finding like any other, and the next process goes on behind it. Every finding is printed with a line that
``--again`` takes, and the exit status is 1 if there was one. Ctrl-C ends the search and prints the tally.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import faulthandler
import json
import mmap
import os
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path

from fuzz_archives import ArchiveFuzz
from fuzz_case import BrokenPromiseError, Target, generator, line
from fuzz_letor import LetorFuzz, LongLetorFuzz
from processor_time import processor_seconds

TARGETS: dict[str, type[Target]] = {
    "letor": LetorFuzz,
    "long_letor": LongLetorFuzz,
    "archives": ArchiveFuzz,
}
SECONDS_OF_A_CASE = 120.0  # of the processor; longer, and it counts as hanging
WALL_SECONDS_OF_A_CASE = 1800.0  # one that waits for ever takes no processor, nor does one on a busy machine
SECONDS_OF_A_TURN = 20.0  # of one target, before the next has its turn
ADDRESS_SPACE = 8 * 2**30  # bytes beyond what the process has at its start
MOST_FINDINGS = 20


def attack(target: Target, name: str, seed: int, number: int) -> str | None:
    """What is wrong in one case, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            target.attack(generator(name, seed, number))
        except BrokenPromiseError as broken:
            return str(broken)
        except Exception:
            return traceback.format_exc()
    return None


class Fuzz:
    """A search over some targets, one after another in turns, and what it has found."""

    def __init__(self, seed: int, names: Sequence[str] = tuple(TARGETS)) -> None:
        self.seed = seed
        self.next = dict.fromkeys(names, 0)
        self.tally: dict[str, collections.Counter[str]] = {name: collections.Counter() for name in names}
        self.findings: list[tuple[str, str]] = []

    def run_here(self, cases: int) -> None:
        """Some cases of each target in this process."""
        for name in self.next:
            with tempfile.TemporaryDirectory() as folder:
                target = TARGETS[name](Path(folder))
                for number in range(self.next[name], self.next[name] + cases):
                    self._note(name, number, attack(target, name, self.seed, number))
                self.next[name] += cases
                self.tally[name] += target.tally

    def run(self, seconds: float) -> None:
        """Turns of all targets, each in a process of its own, until the time is over."""
        end = time.monotonic() + seconds
        with contextlib.suppress(KeyboardInterrupt):
            while time.monotonic() < end and len(self.findings) < MOST_FINDINGS:
                for name in self.next:
                    self._turn(name, min(SECONDS_OF_A_TURN, max(1.0, end - time.monotonic())))

    def table(self) -> str:
        """Cases of each target, and what they came to."""
        rows = [f"{'target':12} {'cases':>9}  what they came to"]
        for name, number in self.next.items():
            counts = ", ".join(f"{what}: {count}" for what, count in sorted(self.tally[name].items()))
            rows.append(f"{name:12} {number:9}  {counts}")
        rows.append(f"seed {self.seed}, {len(self.findings)} findings")
        return "\n".join(rows)

    def _note(self, name: str, number: int, wrong: str | None) -> None:
        if wrong is not None:
            self.findings.append((line(name, self.seed, number), wrong))
            print(f"BROKEN  {line(name, self.seed, number)}\n{wrong[:4000]}\n", flush=True)

    def _turn(self, name: str, seconds: float) -> None:
        """One process: it writes the number of its case into shared memory before it begins with it."""
        shared = mmap.mmap(-1, mmap.PAGESIZE)
        shared[:8] = struct.pack("<q", self.next[name])
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # libraries with threads warn of every fork; no child calls one of them
            child = os.fork()
        if child == 0:
            os.close(reading)
            status = 1
            try:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                self._child(name, seconds, shared, writing)
                status = 0
            finally:
                os._exit(status)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            report, status = self._wait(child, shared, pipe)
        (number,) = struct.unpack("<q", shared[:8])
        if report is None:
            how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
            self._note(name, number, f"the process ended in this case: {how}")
            self.next[name] = number + 1
            return
        self.tally[name] += collections.Counter(report["tally"])
        self.next[name] = report["next"]
        for broken, wrong in report["findings"]:
            self._note(name, broken, wrong)
        print(f"{name:12} {self.next[name]:9} cases, {len(self.findings)} findings so far", flush=True)

    def _child(self, name: str, seconds: float, shared: mmap.mmap, writing: int) -> None:
        """Cases until the time is over, then the report."""
        faulthandler.disable()  # of pytest; what a process dies of is told by the parent
        held = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
        resource.setrlimit(resource.RLIMIT_AS, (held + ADDRESS_SPACE,) * 2)
        end, number, findings = time.monotonic() + seconds, self.next[name], []
        with tempfile.TemporaryDirectory() as folder:
            target = TARGETS[name](Path(folder))
            while number == self.next[name] or (time.monotonic() < end and len(findings) < MOST_FINDINGS):
                shared[:24] = struct.pack("<qdd", number, time.monotonic(), time.process_time())
                wrong = attack(target, name, self.seed, number)
                if wrong is not None:
                    findings.append((number, wrong))
                number += 1
        with os.fdopen(writing, "w") as pipe:
            json.dump({"findings": findings, "tally": target.tally, "next": number}, pipe)

    def _wait(self, child: int, shared: mmap.mmap, pipe):
        """The report of a process, or None, and how it ended; one that hangs is killed."""
        os.set_blocking(pipe.fileno(), False)
        content = b""
        while True:
            content += pipe.read() or b""
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                content += pipe.read() or b""
                status = os.waitstatus_to_exitcode(status)
                return (json.loads(content) if status == 0 else None), status
            _, began, seconds = struct.unpack("<qdd", shared[:24])
            computed = processor_seconds(child) - seconds
            if began and (computed > SECONDS_OF_A_CASE or time.monotonic() - began > WALL_SECONDS_OF_A_CASE):
                os.kill(child, signal.SIGKILL)
            time.sleep(0.05)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=list(TARGETS))
    parser.add_argument("--again", metavar="LINE", help="a case as it was printed")
    given = parser.parse_args(arguments)
    if given.again is not None:
        case = json.loads(given.again)
        with tempfile.TemporaryDirectory() as folder:
            wrong = attack(TARGETS[case["target"]](Path(folder)), case["target"], case["seed"], case["case"])
        print(wrong or "held")
        return int(wrong is not None)
    fuzz = Fuzz(given.seed, given.targets)
    fuzz.run(60 * given.minutes)
    print(fuzz.table())
    return int(bool(fuzz.findings))


if __name__ == "__main__":
    sys.exit(main())
