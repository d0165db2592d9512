"""Run tests of a tree until one fails, in a fork of a process that has imported what all of them import.

An interpreter that imports NumPy, SciPy, Hypothesis and pytest takes longer than most of the tests. The project itself
is imported in the fork, from the tree. A test that computes for too long is ended with all that it has started.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import hypothesis  # noqa: F401 - imported before the forks, as are the next
import mpmath  # noqa: F401
import numpy  # noqa: F401
import pytest
import scipy.stats  # noqa: F401

from processor_time import processor_seconds

SECONDS_OF_A_TEST = 90.0  # of the processor; none of the tests that are run takes a third of it
WALL_SECONDS_OF_A_TEST = 1800.0  # one that waits for ever takes no processor
ADDRESS_SPACE = 12 * 2**30


class _Reporter:
    """Tells the parent which test begins, and which has failed."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._tell("begins", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._tell("failed", report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._tell("failed", report.nodeid)

    def _tell(self, *words: str) -> None:
        os.write(self.pipe, ("\t".join(words).replace("\n", " ") + "\n").encode())


def _child(tree: Path, tests: Sequence[str], pipe: int) -> None:
    status = 70
    try:
        os.setsid()
        os.chdir(tree)
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        sys.path.insert(0, str(tree))
        os.environ["PYTHONPATH"] = str(tree)
        # pytest warns, as an error here, that what has been imported can no longer be rewritten
        options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "--rootdir", str(tree)]
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        arguments = [*options, *tests]
        status = int(pytest.main(arguments, plugins=[_Reporter(pipe)]))
    finally:
        os._exit(status)


class _Watch:
    """What a fork tells of its tests, and how long the present one has been running."""

    def __init__(self, process: int, pipe: int) -> None:
        self.process, self.pipe = process, pipe
        self.test, self.failed = "collection", ""
        self.began, self.seconds = time.monotonic(), 0.0
        self._rest = b""
        os.set_blocking(pipe, False)

    def listen(self, wait: float) -> None:
        """Take in what is told within so many seconds."""
        if not select.select([self.pipe], [], [], wait)[0]:
            return
        *lines, self._rest = (self._rest + os.read(self.pipe, 1 << 20)).split(b"\n")
        for line in lines:
            word, test = line.decode().split("\t", 1)
            if word == "begins":
                self.test, self.began, self.seconds = test, time.monotonic(), processor_seconds(self.process)
            else:
                self.failed = self.failed or test

    def is_over(self, limit: float) -> bool:
        computed = processor_seconds(self.process) - self.seconds
        return computed > limit or time.monotonic() - self.began > WALL_SECONDS_OF_A_TEST


def run_tests(tree: Path, tests: Sequence[str], limit: float = SECONDS_OF_A_TEST) -> tuple[str, str]:
    """``survived`` if all pass; ``killed`` or ``timed out`` with the test that noticed, and how if it was a crash."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _child(tree, tests, writing)
    os.close(writing)
    watch = _Watch(child, reading)
    timed_out, ended = False, 0
    try:
        while not ended:
            watch.listen(0.2)
            ended, status = os.waitpid(child, os.WNOHANG)
            if not ended and not timed_out and watch.is_over(limit):
                timed_out = True
                os.killpg(child, signal.SIGKILL)
            if not ended and watch.failed:
                time.sleep(0.02)  # the pipe of a process that is ending is readable all the time
        watch.listen(0.0)
    finally:
        if not ended:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
        os.close(reading)
    code = os.waitstatus_to_exitcode(status)
    if timed_out:
        return "timed out", watch.test
    if code == 0:
        return "survived", ""
    how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
    return "killed", watch.failed or f"{watch.test} ({how})"
