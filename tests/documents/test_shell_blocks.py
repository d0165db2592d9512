"""Every shell block of the documents runs, in the order in which it stands, as somebody would type it.

The commands are the documents' to the letter. Four programs are stood in for, since a test can neither
install packages nor run itself: ``python`` is the one that runs the tests, on few queries, and measures briefly;
``torchrun`` starts the processes, as any launcher would (``test_ranks.py`` starts the real one, which costs another
import of PyTorch); ``pip`` does nothing; ``make`` looks whether the target exists and runs, of what it would do, the
training, on fewer queries. A block that begins with ``# not run in the tests:`` and a reason is only checked for its
syntax.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from plrank_fast.__main__ import make_parser

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md"]
NOT_RUN = re.compile(r"# not run in the tests: \w+")
SHELLS = ("sh", "bash", "shell", "console")

PYTHON = f"""#!/bin/sh
case "$*" in
    *"plrank_fast bench"*) set -- "$@" --seconds 0 ;;
    *"plrank_fast train --profile"*) set -- "$@" --queries 60 --features 10 ;;
esac
exec {shlex.quote(sys.executable)} "$@"
"""
TORCHRUN = f"""#!{sys.executable}
import os, socket, subprocess, sys
_, ranks, *arguments = sys.argv[1:]
with socket.socket() as free:
    free.bind(("localhost", 0))
    port = free.getsockname()[1]
of_all = os.environ | dict(WORLD_SIZE=ranks, MASTER_ADDR="localhost", MASTER_PORT=str(port), OMP_NUM_THREADS="1")
started = [subprocess.Popen([sys.executable, *arguments], env=of_all | dict(RANK=str(i))) for i in range(int(ranks))]
sys.exit(max(process.wait() for process in started))
"""
PIP = """#!/bin/sh
"""
MAKE = f"""#!{sys.executable}
import shlex, subprocess, sys
command = [{shutil.which("make")!r}, "-n", "-C", {str(ROOT)!r}, *sys.argv[1:]]
shown = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
for line in shown.replace(chr(92) + chr(10), " ").splitlines():
    program, *arguments = shlex.split(line, comments=True) or [""]
    if program.endswith("/python") and arguments[:3] == ["-m", "plrank_fast", "train"]:
        shorter = ["--queries", "60", "--features", "10", "--epochs", "2"]
        subprocess.run([sys.executable, *arguments, *shorter], check=True)
"""


def blocks(document):
    return re.findall(rf"^```(?:{'|'.join(SHELLS)})\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture
def newcomer(tmp_path):
    """Folder with the files that the documents take for granted, and an environment in which to work."""
    rng = np.random.default_rng(0)
    for name in ("S1.txt", "S2.txt", "S3.txt"):
        rows = [(label, qid, rng.random(), label + rng.normal()) for qid in range(8) for label in rng.integers(0, 3, 6)]
        lines = (f"{label} qid:{qid} 1:{a:.4f} 2:{b:.4f}\n" for label, qid, a, b in rows)
        (tmp_path / name).write_text("".join(lines))
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, program in (("python", PYTHON), ("torchrun", TORCHRUN), ("pip", PIP), ("make", MAKE)):
        (programs / name).write_text(program)
        (programs / name).chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return tmp_path, {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}


@pytest.mark.skipif(not (shutil.which("bash") and shutil.which("make")), reason="needs bash and make")
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_blocks_run_in_order(document, newcomer):
    """Mutants: another name of the model (model.npz); training into the folder that a command before it has filled; an
    option or target that does not exist."""
    folder, environment = newcomer
    for block in blocks(document):
        flags = "-n" if NOT_RUN.match(block) else "-eu"
        done = subprocess.run(["bash", flags, "-c", block], cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{block}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


def test_readme_and_training_have_blocks():
    """Mutant: a pattern that finds nothing."""
    first, training = ("".join(blocks(ROOT / name)) for name in ("README.md", "docs/training.md"))
    for command in ("make train", "make test"):
        assert command in first
    for command in ("plrank_fast train", "plrank_fast evaluate", "plrank_fast bench"):
        assert command in training
    assert not NOT_RUN.search(first + training)


@pytest.mark.parametrize("document", [*DOCUMENTS, ROOT / "CHANGELOG.md"], ids=lambda path: path.name)
def test_commands_in_the_text_parse(document):
    """Mutants: an option of another name; a command that is gone."""
    for command in re.findall(r"`(?:python -m plrank_fast|plrank-fast) ([^`]+)`", document.read_text()):
        make_parser().parse_args(shlex.split(command))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_extras_exist(document):
    """Mutant: an extra of another name."""
    extras = re.findall(r"^([a-z0-9]+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    for named in re.findall(r"pip install \"\.\[([a-z0-9,]+)\]", document.read_text()):
        assert set(named.split(",")) <= set(extras)
