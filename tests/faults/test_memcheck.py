"""Every function of batches under valgrind: nothing is read before it is written, nor where it must not."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import plrank_fast as plr

PROGRAM = """
from problems import ragged
from public_calls import BATCHES
import runtime_variables
scores, relevance, rank_weights, offsets = ragged([3, 0, 41, 77])
for round_ns in (1e-3, 1e18):
    runtime_variables.set_costs(round_ns=round_ns, spare_bytes=0)  # each workspace is fresh memory
    for call in BATCHES.values():
        call(scores, relevance, rank_weights, 0, offsets=offsets, n_threads=1)
"""


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind")
@pytest.mark.usefixtures("without_address_sanitizer")
def test_memory_is_written_before_it_is_read():
    """At one level, as most of the time goes to the start of Python; not AVX-512, which valgrind does not know. All
    levels are for `make sanitize`. Mutant: thresholds of `threshold_sampler` set up to the last register, and
    read to the last step of the stream."""
    *_, widest = (level for level in plr.build_info()["simd_levels"] if level != "avx512")
    answer = subprocess.run(
        # neither the places of allocations nor what Python imports for itself is of interest
        ["valgrind", "-q", "--error-limit=no", "--keep-stacktraces=none", sys.executable, "-S", "-c", PROGRAM],
        env={
            **os.environ, "PYTHONMALLOC": "malloc", "PLRANK_FAST_SIMD": widest,
            "PYTHONPATH": os.pathsep.join([*map(str, Path(__file__).parents[1:3]), *sys.path]),
        },
        capture_output=True, text=True,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr[-2000:]
    reports = re.split(r"(?m)^==\d+== \n", answer.stderr)
    assert [report for report in reports if "plrank_fast/" in report] == []
