"""Fuzz files that come from outside: LETOR files.

    make fuzz FUZZ_FLAGS="--minutes 60 --seed 0"
    python tests/attackers/fuzz.py --again '{"target": "letor", "seed": 0, "case": 17}'

Cases are made from (target, seed, number) and nothing else. They run in a process of their own: one that dies or hangs
is a finding like any other, and the next process goes on behind it. Every finding is printed with a line that
``--again`` takes, and the exit status is 1 if there was one. Ctrl-C ends the search and prints the tally.
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import random
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, TextIO

from fuzz_letor import LetorFuzz, LongLetorFuzz
from search import Search, wrong_with

TARGETS = {"letor": LetorFuzz, "long_letor": LongLetorFuzz}
SECONDS_OF_A_CASE = 120.0  # of the processor; longer, and it counts as hanging
WALL_SECONDS_OF_A_CASE = 1800.0  # one that waits for ever takes no processor, nor does one on a busy machine
SECONDS_OF_A_TURN = 20.0  # of one target, before the next has its turn
ADDRESS_SPACE = 8 * 2**30  # bytes beyond what the process has at its start


class Fuzz(Search):
    """Turns of some targets, each in a process of its own, until the time is over or each has had ``cases``."""

    options: ClassVar = {
        "--targets": {"nargs": "+", "choices": TARGETS, "default": list(TARGETS), "help": "all by default"}
    }

    def __init__(self, seed: int, targets: Sequence[str] = tuple(TARGETS), cases: float = float("inf")) -> None:
        super().__init__(seed)
        self.next = dict.fromkeys(targets, 0)
        self.cases = cases

    def steps(self) -> Iterator[object]:
        while unfinished := [name for name, number in self.next.items() if number < self.cases]:
            for name in unfinished:
                yield self._turn(name)

    def _turn(self, name: str) -> None:
        """Run cases in a child, which says the number of each before it begins with it."""
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # libraries with threads warn of every fork; no child calls one of them
            child = os.fork()
        if child == 0:
            os.close(reading)
            status = 1
            try:
                with os.fdopen(writing, "w", buffering=1) as pipe:
                    self._child(name, pipe)
                status = 0
            finally:
                os._exit(status)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            said = [json.loads(line) for line in pipe]
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        number = self.next[name]
        for one in said:
            if isinstance(one, int):
                number = one
            elif isinstance(one, str):
                self._broken(name, number, one)
            else:
                self.tally.update(one)
        self.next[name] = number + 1
        if status != 0:
            how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
            self._broken(name, number, f"the process ended in this case: {how}")

    def _broken(self, name: str, number: int, wrong: str) -> None:
        self.broken(wrong, target=name, seed=self.seed, case=number)

    def _child(self, name: str, pipe: TextIO) -> None:
        """Run cases until the turn is over; say what is wrong with them, and at last what they came to."""
        faulthandler.disable()  # of pytest; what a process dies of is told by the parent
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        held = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
        resource.setrlimit(resource.RLIMIT_AS, (held + ADDRESS_SPACE,) * 2)
        end, number = time.monotonic() + SECONDS_OF_A_TURN, self.next[name]
        with tempfile.TemporaryDirectory() as folder:
            target = TARGETS[name](Path(folder))
            while number < self.cases and time.monotonic() < end:
                print(number, file=pipe)
                signal.setitimer(signal.ITIMER_PROF, SECONDS_OF_A_CASE)  # either ends the process
                signal.setitimer(signal.ITIMER_REAL, WALL_SECONDS_OF_A_CASE)
                if wrong := attack(target, name, self.seed, number):
                    print(json.dumps(wrong), file=pipe)
                number += 1
        print(json.dumps({f"{name}, {what}": count for what, count in target.tally.items()}), file=pipe)

    @classmethod
    def again(cls, case: dict[str, Any]) -> bool:
        """Make a case in this process."""
        with tempfile.TemporaryDirectory() as folder:
            wrong = attack(TARGETS[case["target"]](Path(folder)), case["target"], case["seed"], case["case"])
        print(wrong or "held")
        return wrong is not None


def generator(target: str, seed: int, number: int) -> random.Random:
    """The generator of a case."""
    return random.Random(f"{target} {seed} {number}")


def attack(target: LetorFuzz, name: str, seed: int, number: int) -> str | None:
    """Return the fault of one case, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return wrong_with(target.attack, generator(name, seed, number))


if __name__ == "__main__":
    sys.exit(Fuzz.main())
