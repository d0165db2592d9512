"""The tests of numbers under other compilers, SIMD levels, options, and extremes of what chooses a path.

    make matrix MATRIX_FLAGS="--rows lowest highest"

Every row is a copy of the tree (``build/matrix/ROW``), perhaps changed, compiled, in which the tests run; what pytest
says is in ``ROW.log`` beside it. At the end stands a table of results. The exit status is 1 if a test failed.
``--levels baseline`` compiles that SIMD level alone, in a third of the time.

Rows with other costs leave out tests that are marked ``chosen_path``: they say which path is taken, and the row takes
another. The fixture ``on_team`` does not ask for the size of a team there. ``--python`` adds rows for other
interpreters, or for one that an emulator runs.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import tree_copy
from path_constants import CONSTANTS, RULE, SAMPLERS
from tree_copy import ROOT

# What a number, a thread or the memory of a call depends on. The other folders test Python code on top of the same
# kernels, or libraries, programs and files, and run with ``make test``.
FOLDERS = ("hand", "enumeration", "oracles", "invariants", "statistical")
OUTCOMES = {"passed": r"(\d+) passed", "failed": r"(\d+) (?:failed|errors?)", "skipped": r"(\d+) (?:skipped|xfailed)"}
WHICH = (
    "import platform, plrank_fast as plr; info = plr.build_info(); print(plr.__file__); "
    "print(info['compiler'], info['simd'], platform.python_version(), platform.machine(), sep=' | ')"
)


@dataclasses.dataclass(frozen=True)
class Row:
    """How a copy of the tree is changed, compiled and run."""

    name: str
    options: str  # as the table says it
    build: dict[str, str] = dataclasses.field(default_factory=dict)  # environment
    run: dict[str, str] = dataclasses.field(default_factory=dict)
    change: Callable[[str, str], str] = lambda path, source: source
    interpreter: tuple[str, ...] = (sys.executable,)
    tree: str = ""  # of another row that is compiled in the same way

    @property
    def changed(self) -> bool:
        return self.name in ("lowest", "highest") or self.name.startswith("auto-")


def extreme(which: str) -> Callable[[str, str], str]:
    """All of ``CONSTANTS`` at their lowest or highest."""

    def change(path: str, source: str) -> str:
        for constant in CONSTANTS:
            if path == f"plrank_fast/{constant.path}":
                source = constant.replaced(source, getattr(constant, which))
        return source

    return change


def sampler(name: str) -> Callable[[str, str], str]:
    """ "auto" draws with this one."""

    def change(path: str, source: str) -> str:
        return RULE.replaced(source, SAMPLERS[name]) if path == f"plrank_fast/{RULE.path}" else source

    return change


def without_optimization(path: str, source: str) -> str:
    return source.replace('"-O3"', '"-O0"') if path == "setup.py" else source


ROWS = {
    row.name: row
    for row in [
        Row("plain", ""),
        Row("lowest", "constants that choose a path at their lowest", change=extreme("lowest")),
        Row("highest", "constants that choose a path at their highest", change=extreme("highest")),
        *(Row(f"auto-{name}", f'sampler "auto" is {name}', change=sampler(name)) for name in SAMPLERS),
        Row("checks", "PLRANK_FAST_CHECKS=1", build={"PLRANK_FAST_CHECKS": "1"}),
        Row("no-openmp", "PLRANK_FAST_OPENMP=0", build={"PLRANK_FAST_OPENMP": "0"}),
        Row("O0", "-O0", change=without_optimization),
        Row("avx2", "", run={"PLRANK_FAST_SIMD": "avx2"}, tree="plain"),
        Row("baseline", "", run={"PLRANK_FAST_SIMD": "baseline"}, tree="plain"),
        Row("clang", "", build={"CC": os.environ.get("CLANG", "clang")}),
    ]
}


class Tree:
    """The copy in which a row is tested."""

    def __init__(self, row: Row, folder: Path) -> None:
        self.row = row
        self.folder = folder / (row.tree or row.name)

    def run(self, command: Sequence[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.folder, text=True, capture_output=True, errors="replace",
            env={**os.environ, "PYTHONPATH": str(self.folder), **environment},
        )  # fmt: skip

    def compile(self) -> str:
        """Compile what has changed; what the table says of the build."""
        tree_copy.refresh(self.folder, self.row.change)
        answer = self.run([self.row.interpreter[-1], "setup.py", "-q", "build_ext", "--inplace"], self.row.build)
        if answer.returncode != 0:
            raise SystemExit(f"{self.row.name} does not compile:\n{(answer.stdout + answer.stderr)[-2000:]}")
        answer = self.run([*self.row.interpreter, "-c", WHICH], self.row.run)
        imported, _, build = answer.stdout.strip().partition("\n")
        if answer.returncode != 0 or Path(imported).parent != self.folder / "plrank_fast":
            raise SystemExit(f"{self.row.name} cannot be imported: {imported} {answer.stderr[-2000:]}")
        return build

    def test(self, tests: Sequence[str]) -> tuple[dict[str, int], list[str]]:
        """Numbers of tests by outcome, and those that failed."""
        marked = ["-m", "not chosen_path"] if self.row.changed else []
        environment = {**self.row.run, **({"PLRANK_FAST_OTHER_COSTS": "1"} if self.row.changed else {})}
        command = [
            *self.row.interpreter,
            "-m",
            "pytest",
            "-q",
            "--no-header",
            "-p",
            "no:cacheprovider",
            *marked,
            *tests,
        ]
        answer = self.run(command, environment)
        (self.folder.parent / f"{self.row.name}.log").write_text(answer.stdout + answer.stderr)
        summary = answer.stdout.strip().rpartition("\n")[2]
        counts = {name: sum(map(int, re.findall(pattern, summary))) for name, pattern in OUTCOMES.items()}
        failures = re.findall(r"^(?:FAILED|ERROR) (\S+)", answer.stdout, re.MULTILINE)
        if answer.returncode != 0 and not failures:  # it crashed
            counts["failed"] += 1
            failures = [f"exit status {answer.returncode}"]
        return counts, failures


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="matrix", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", nargs="*", choices=list(ROWS), default=list(ROWS), help="all by default")
    parser.add_argument("--python", nargs="*", default=[], help='others, "qemu-x86_64 -cpu Nehalem .venv/bin/python"')
    parser.add_argument("--levels", nargs="*", choices=["baseline", "avx2", "avx512"], help="compiled; all by default")
    parser.add_argument("--tests", nargs="+", default=[f"tests/{name}" for name in FOLDERS], help="folders or files")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "matrix", help="of the copies and the logs")
    options = parser.parse_args(arguments)
    rows = [ROWS[name] for name in options.rows]
    for command in options.python:
        words = shlex.split(command)
        rows.append(Row(re.sub(r"\W+", "-", command).strip("-"), " ".join(words[:-1]), interpreter=tuple(words)))
    headings = ["compiler", "level", "Python", "processor", "options", *OUTCOMES]
    table, status = [f"| {' | '.join(headings)} |", "|" + "---|" * len(headings)], 0
    for row in rows:
        if options.levels:
            row = dataclasses.replace(row, build={**row.build, "PLRANK_FAST_LEVELS": " ".join(options.levels)})
        tree = Tree(row, options.folder.resolve())
        build = tree.compile()
        counts, failures = tree.test(options.tests)
        print(row.name, counts, *failures, sep="\n    ", flush=True)
        table.append(f"| {' | '.join([build, row.options, *map(str, counts.values())])} |")
        status |= counts["failed"] > 0
    print("\n".join(table))
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
