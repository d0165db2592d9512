"""``make kills``: a seeded part of it."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fcntl")


def test_seeded():
    """Three ends of runs, in a process of its own, for it forks.

    Mutants: the moments of Adam not taken up again, or rounded to three digits; the best weights taken for those of the
    last step; the epoch begun anew by a resume;
    random streams numbered by the steps of the process.
    """
    command = [sys.executable, "kills.py", "--kills", "3", "--seed", "2"]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "models compared: " in done.stdout
