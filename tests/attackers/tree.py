"""A copy of the tree, in which sources may be changed and compiled without touching the tree itself."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Tree:
    """A folder with the files that git lists; ``change`` gives the sources by their path and text."""

    def __init__(
        self,
        folder: Path,
        change: Callable[[str, str], str] = lambda path, source: source,
        python: str = sys.executable,
    ) -> None:
        self.folder = folder.resolve()
        self.change = change
        self.python = python

    def refresh(self) -> None:
        """Copy what differs."""
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
        for path in filter(None, listed.split("\0")):
            source, copy = ROOT / path, self.folder / path
            if not source.is_file():
                continue
            content = source.read_bytes()
            if path.startswith("plrank_fast/") or path == "setup.py":
                content = self.change(path, content.decode()).encode()
            if not (copy.is_file() and copy.read_bytes() == content):
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(content)
                shutil.copymode(source, copy)

    def run(self, command: Sequence[str], timeout: float | None = None, **environment: str) -> tuple[int | None, str]:
        """Exit status and output of a command; None if it had to be ended, with all that it had started."""
        search_path = f"{self.folder}:{Path(__file__).parent}"
        process = subprocess.Popen(
            command, cwd=self.folder, env={**os.environ, "PYTHONPATH": search_path, **environment}, text=True,
            errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            output, _ = process.communicate(timeout=timeout)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def build(self, **environment: str) -> tuple[int | None, str]:
        """Compile what has changed."""
        return self.run([self.python, "setup.py", "-q", "build_ext", "--inplace"], **environment)
