"""A copy of the tree, in which sources may be changed and compiled without touching the tree itself."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def refresh(folder: Path, change: Callable[[str, str], str] = lambda path, source: source) -> None:
    """Copy what git lists and differs there; ``change`` gives the sources that are compiled by their path and text."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    for path in filter(None, listed.split("\0")):
        source, copy = ROOT / path, folder / path
        if not source.is_file():
            continue
        content = source.read_bytes()
        if path.startswith("plrank_fast/") or path == "setup.py":
            content = change(path, content.decode()).encode()
        if not (copy.is_file() and copy.read_bytes() == content):
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
            shutil.copymode(source, copy)
