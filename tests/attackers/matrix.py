"""The tests of numbers under other compilers, SIMD levels, options, and extremes of what chooses a path.

    make matrix MATRIX_FLAGS="--rows lowest highest"

Every row is a copy of the tree (``build/matrix/ROW``), perhaps changed, compiled, in which the tests run, one folder
after another. Results are appended to ``results.jsonl``, so that the same command goes on where it was interrupted;
what has been tested since the sources changed is tested again. At the end stands a table of results, and
what failed. The exit status is 1 if anything did. ``--levels baseline`` compiles that SIMD level alone, in a third of
the time.

Rows with other costs leave out tests that are marked ``chosen_path``: they say which path is taken, and the row takes
another. The fixture ``on_team`` does not ask for the size of a team there. ``--python`` adds rows for other
interpreters, or for one that an emulator runs.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from path_constants import CONSTANTS, RULE, SAMPLERS

ROOT = Path(__file__).resolve().parents[2]
# What a number, a thread or the memory of a call depends on. The other folders test Python code on top of the same
# kernels, or libraries, programs and files, and run with ``make test``.
FOLDERS = ("hand", "enumeration", "oracles", "invariants", "statistical")
# Changes of these, and of tests of another folder, leave results as they are.
UNREAD = (".ci/", ".github/", "asv_benchmarks/", "docs/", "packaging/", "tests/attackers/matrix.py")
OUTCOMES = {"passed": r"(\d+) passed", "failed": r"(\d+) (?:failed|errors?)", "skipped": r"(\d+) (?:skipped|xfailed)"}


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


@dataclasses.dataclass
class Result:
    """What became of the tests of a folder in a row."""

    row: str
    tests: str
    digest: str  # of all that it depends on
    build: str  # compiler, level, Python and processor, as the table says them
    passed: int
    failed: int
    skipped: int
    failures: list[str]
    seconds: float


class Tree:
    """The copy in which a row is tested."""

    def __init__(self, row: Row, folder: Path) -> None:
        self.row = row
        self.folder = folder / (row.tree or row.name)
        self.contents: dict[str, str] = {}  # of each path, a hash

    def _run(self, command: Sequence[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.folder, text=True, capture_output=True, errors="replace",
            env={**os.environ, "PYTHONPATH": str(self.folder), **environment},
        )  # fmt: skip

    def refresh(self) -> None:
        """Copy what differs, with the times of what it is compiled from."""
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
        for path in listed.split("\0"):
            source, copy = ROOT / path, self.folder / path
            if not source.is_file():
                continue
            content = source.read_bytes()
            if path.startswith("plrank_fast/") or path == "setup.py":
                content = self.row.change(path, content.decode()).encode()
            self.contents[path] = hashlib.sha256(content).hexdigest()
            if not copy.is_file() or copy.read_bytes() != content:
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(content)
                if content == source.read_bytes():
                    shutil.copystat(source, copy)
            translated = source.with_suffix(".c")  # of Cython, which takes as long as the compiler
            checked = "PLRANK_FAST_CHECKS" in self.row.build  # which Cython translates in another way
            if path.endswith(".pyx") and content == source.read_bytes() and translated.exists() and not checked:
                target = copy.with_suffix(".c")
                if not target.exists() and translated.stat().st_mtime > source.stat().st_mtime:
                    shutil.copy2(translated, target)

    def digest(self, tests: str) -> str:
        """Of all that the result of a folder or file of tests depends on."""

        def matters(path: str) -> bool:
            if path.startswith("tests/") and Path(path).name.startswith("test_"):
                return path.startswith(tests)
            return not path.startswith(UNREAD) and not path.endswith(".md")

        settings = [self.row.build, self.row.run, self.row.interpreter, self.row.options]
        contents = {path: one for path, one in self.contents.items() if matters(path)}
        return hashlib.sha256(json.dumps([settings, contents], sort_keys=True).encode()).hexdigest()

    def compile(self) -> str:
        """Compile what has changed; what the table says of the build."""
        answer = self._run([self.row.interpreter[-1], "setup.py", "-q", "build_ext", "--inplace"], self.row.build)
        if answer.returncode != 0:
            raise SystemExit(f"{self.row.name} does not compile:\n{(answer.stdout + answer.stderr)[-2000:]}")
        program = (
            "import platform, plrank_fast as plr; info = plr.build_info(); print(plr.__file__); "
            "print(info['compiler'], info['simd'], platform.python_version(), platform.machine(), sep=' | ')"
        )
        answer = self._run([*self.row.interpreter, "-c", program], self.row.run)
        imported, _, build = answer.stdout.strip().partition("\n")
        if answer.returncode != 0 or Path(imported).parent != self.folder / "plrank_fast":
            raise SystemExit(f"{self.row.name} cannot be imported: {imported} {answer.stderr[-2000:]}")
        return build

    def test(self, tests: str) -> tuple[dict[str, int], list[str]]:
        """Numbers of tests by outcome, and those that failed."""
        paths = ["-m", "not chosen_path"] if self.row.changed else []
        environment = {**self.row.run, **({"PLRANK_FAST_OTHER_COSTS": "1"} if self.row.changed else {})}
        command = [*self.row.interpreter, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", *paths, tests]
        answer = self._run(command, environment)
        summary = answer.stdout.strip().rpartition("\n")[2]
        counts = {name: sum(map(int, re.findall(pattern, summary))) for name, pattern in OUTCOMES.items()}
        failures = re.findall(r"^(?:FAILED|ERROR) (\S+)", answer.stdout, re.MULTILINE)
        if answer.returncode != 0 and not failures:  # it crashed
            counts["failed"] += 1
            failures = [f"{tests}: exit status {answer.returncode}"]
        (self.folder.parent / f"{self.row.name}_{tests.replace('/', '_')}.log").write_text(
            answer.stdout + answer.stderr
        )
        return counts, failures


def table(results: Sequence[Result]) -> str:
    """A line of Markdown for each row."""
    headings = ["compiler", "level", "Python", "processor", "options", "what ran", *OUTCOMES]
    lines = [f"| {' | '.join(headings)} |", "|" + "---|" * len(headings)]
    for name in dict.fromkeys(result.row for result in results):
        of_row = [result for result in results if result.row == name]
        counts = [str(sum(getattr(result, outcome) for result in of_row)) for outcome in OUTCOMES]
        options = ROWS[name].options if name in ROWS else ""
        ran = [result.tests.removeprefix("tests/") for result in of_row]
        what = "all" if ran == list(FOLDERS) else ", ".join(ran)
        lines.append(f"| {' | '.join([of_row[0].build, options, what, *counts])} |")
    return "\n".join(lines)


def run_rows(rows: Sequence[Row], tests: Sequence[str], folder: Path) -> list[Result]:
    """Each row with each folder of tests, but for what ``results.jsonl`` has of the same sources."""
    log = folder / "results.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    lines = log.read_text().splitlines() if log.exists() else []
    before = {(one.row, one.tests, one.digest): one for one in (Result(**json.loads(line)) for line in lines)}
    done = []
    for row in rows:
        tree = Tree(row, folder)
        tree.refresh()
        build = None
        for path in tests:
            result = before.get((row.name, path, tree.digest(path)))
            if result is None:
                build = build or tree.compile()
                start = time.monotonic()
                counts, failures = tree.test(path)
                result = Result(
                    row.name, path, tree.digest(path), build, **counts, failures=failures,
                    seconds=round(time.monotonic() - start, 1),
                )  # fmt: skip
                with log.open("a") as file:
                    file.write(json.dumps(dataclasses.asdict(result)) + "\n")
                print(f"{row.name:16} {path:20} {counts} {result.seconds} s", *failures, sep="\n    ", flush=True)
            done.append(result)
    return done


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="matrix", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", nargs="*", choices=list(ROWS), default=list(ROWS), help="all by default")
    parser.add_argument("--python", nargs="*", default=[], help='others, "qemu-x86_64 -cpu Nehalem .venv/bin/python"')
    parser.add_argument("--levels", nargs="*", choices=["baseline", "avx2", "avx512"], help="compiled; all by default")
    parser.add_argument("--tests", nargs="+", default=[f"tests/{name}" for name in FOLDERS], help="folders or files")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "matrix", help="of the copies and the results")
    options = parser.parse_args(arguments)
    rows = [ROWS[name] for name in options.rows]
    for command in options.python:
        words = shlex.split(command)
        rows.append(Row(re.sub(r"\W+", "-", command).strip("-"), " ".join(words[:-1]), interpreter=tuple(words)))
    if options.levels:
        levels = {"PLRANK_FAST_LEVELS": " ".join(options.levels)}
        rows = [dataclasses.replace(row, build={**row.build, **levels}) for row in rows]
    results = run_rows(rows, options.tests, options.folder.resolve())
    print(table(results))
    return int(any(result.failed for result in results))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("interrupted: the same command resumes")
        sys.exit(130)
