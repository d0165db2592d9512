"""Programs that tests run in a process of its own, which imports what the tests do, and libraries in C for them."""

import os
import shutil
import subprocess
import sys
import textwrap

import pytest

# a batch whose gradient by one thread is `expected`; `team(n)` calls by n threads, compares the bits, and says how many
# there were
BATCH = """
import ctypes, os, sys, threading, time
import numpy as np, plrank_fast as plr
from plrank_fast._core.runtime import threads as _threads
import runtime_variables

processors = _threads.available_cpus()
_threads.available_cpus = lambda: 64
runtime_variables.set_costs(teams=1)
offsets = np.arange(0, 1001, 20)
scores = np.random.default_rng(0).normal(size=1000)

def gradient(n_threads):
    return plr.pl_rank_3(scores, scores, plr.dcg_weights(5), offsets=offsets, rng=1, n_threads=n_threads)

expected = gradient(1)

def team(n_threads):
    runtime_variables.team_that_ran()
    assert (gradient(n_threads) == expected).all()
    return runtime_variables.team_that_ran()
"""


def run_python(code, *arguments, **environment):
    """Run a program; return its output. Python's warnings, most of forks beside threads, are not shown."""
    path = os.pathsep.join(sys.path)
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code), *arguments],
        env={**os.environ, "PYTHONPATH": path, **environment}, capture_output=True, text=True,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def run_on_batch(code, *arguments, **environment):
    """Run ``BATCH`` and a program."""
    return run_python(BATCH + textwrap.dedent(code), *arguments, **environment)


def compiled(folder, code, *flags):
    """Compile C; return the path of the library."""
    compiler = shutil.which("cc") or pytest.skip("no C compiler")
    source, library = folder / "library.c", folder / "library.so"
    source.write_text(code)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, *flags], check=True)
    return str(library)
