"""``make soak``: a few seconds of it find nothing, and find faults that are put in."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("fcntl")

FEW = ["pl_rank_3", "pl_rank_3 introselect", "pl_rank_exact", "stochastic_rank", "sample_rankings", "lambda_rank"]
FAULTS = {  # a program that puts one in, and what is told
    "none": ("", "0 findings"),
    "a buffer of all threads": ("""
        import numpy as np
        plain, buffer = soak.CALLS["pl_rank_3"], np.empty(10_000)
        def shared(*arguments, **options):
            result = plain(*arguments, **options)
            mine = buffer[: result.size]
            mine[:] = result
            soak.time.sleep(1e-3)
            return mine.copy()
        soak.CALLS["pl_rank_3"] = shared
    """, "threads gives other bits"),
    "a leak": ("""
        plain, kept = soak.CALLS["pl_rank_3"], []
        def leaking(*arguments, **options):
            kept.append(b"x" * 4_000_000)
            return plain(*arguments, **options)
        soak.CALLS["pl_rank_3"] = leaking
    """, "memory grew by"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_seeded(fault):
    program, told = FAULTS[fault]
    arguments = ["--number", "400", "--minutes", "inf", "--threads", "8", "--most-growth", "3e7", "--calls", *FEW]
    end = f"sys.stdout.flush(); os._exit(soak.Soak.main({arguments}))"
    code = "\n".join(["import os, sys, soak", textwrap.dedent(program), end])
    # a process of its own: it forks beside threads, and libraries that other tests have imported warn of that
    done = subprocess.run([sys.executable, "-u", "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True)
    assert done.returncode == (fault != "none"), done.stdout + done.stderr
    assert told in done.stdout
