"""Programs that tests run in a process of its own, which imports what the tests do."""

import os
import subprocess
import sys
import textwrap


def run_python(code, *arguments, **environment):
    """Run a program; return its output. Python's warnings, most of forks beside threads, are not shown."""
    path = os.pathsep.join(sys.path)
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code), *arguments],
        env={**os.environ, "PYTHONPATH": path, **environment}, capture_output=True, text=True,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout
