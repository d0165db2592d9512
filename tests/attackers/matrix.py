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
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from path_constants import CONSTANTS, RULE, SAMPLERS
from tree import ROOT, Tree

# Tests of numbers, threads and the memory of a call. The other folders test Python code on top of the same
# kernels, or libraries, programs and files, and run with ``make test``.
FOLDERS = ("hand", "enumeration", "references", "invariants", "statistical")
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

    def in_folder(self, folder: Path) -> Tree:
        return Tree(folder / (self.tree or self.name), self.change, self.interpreter[-1])

    def compile(self, tree: Tree) -> str:
        """Compile what has changed; what the table says of the build."""
        tree.refresh()
        status, output = tree.build(**self.build)
        if status != 0:
            raise SystemExit(f"{self.name} does not compile:\n{output[-2000:]}")
        status, output = tree.run([*self.interpreter, "-c", WHICH], **self.run)
        imported, _, build = output.strip().partition("\n")
        if status != 0 or Path(imported).parent != tree.folder / "plrank_fast":
            raise SystemExit(f"{self.name} cannot be imported: {output[-2000:]}")
        return build

    def test(self, tree: Tree, tests: Sequence[str]) -> tuple[dict[str, int], list[str]]:
        """Numbers of tests by outcome, and those that failed."""
        marked = ["-m", "not chosen_path"] if self.changed else []
        environment = {**self.run, **({"PLRANK_FAST_OTHER_COSTS": "1"} if self.changed else {})}
        options = ["-q", "--no-header", "-p", "no:cacheprovider", *marked]
        status, output = tree.run([*self.interpreter, "-m", "pytest", *options, *tests], **environment)
        (tree.folder.parent / f"{self.name}.log").write_text(output)
        summary = output.strip().rpartition("\n")[2]
        counts = {name: sum(map(int, re.findall(pattern, summary))) for name, pattern in OUTCOMES.items()}
        failures = re.findall(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
        if status != 0 and not failures:  # it crashed
            counts["failed"] += 1
            failures = [f"exit status {status}"]
        return counts, failures


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
    return re.sub('"-O[13]"', '"-O0"', source) if path == "setup.py" else source


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
        tree = row.in_folder(options.folder)
        build = row.compile(tree)
        counts, failures = row.test(tree, options.tests)
        print(row.name, counts, *failures, sep="\n    ", flush=True)
        table.append(f"| {' | '.join([build, row.options, *map(str, counts.values())])} |")
        status |= counts["failed"] > 0
    print("\n".join(table))
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
