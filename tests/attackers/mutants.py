"""Break the compiled sources on purpose, one place at a time, and see whether the tests notice.

    make mutants MUTANTS_FLAGS="--count 50 --module _core/gradients/exact"

Works in a copy of the tree (``build/mutants``): changes one line, compiles the module that it belongs to, runs the
tests of ``TESTS`` until one fails, those first that have noticed others, and puts everything back. Results are appended
to ``results.jsonl`` there, so that an interrupted run is resumed by the same command; ``--again`` forgets survivors. At
the end stand a table and the mutants that survived. Those that nothing could notice are listed with the reason in
``equivalent_mutants.json``; any other survivor makes the exit status 1.
"""

from __future__ import annotations

import argparse
import ast
import collections
import dataclasses
import json
import os
import random
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from forked_tests import run_tests
from module_compiler import CompilationError, ModuleCompiler
from mutations import KINDS, Mutation, of_file

ROOT = Path(__file__).resolve().parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.json")
MOST_KILLERS = 6
NO_MUTANT = ("not compiled", "same code")
INCLUDED = re.compile(r'(?:#include|cdef extern from) "([\w/]+\.h)"')

_EXACT = ["enumeration/test_exact.py", "enumeration/test_exact_noise.py", "enumeration/test_exact_promise.py"]
_HUNT = "attackers/test_hunt.py::TestHunt::test_seeded"
_BATCHES = ["invariants/test_batches.py"]
_SAMPLED = ["enumeration/test_pl_rank.py", "enumeration/test_policy_gradient.py", "invariants/test_batch_is_loop.py"]
_SAMPLERS = ["statistical/test_sampling.py", "statistical/test_samplers_exact.py"]
_DRIVER = ["invariants/test_batch_driver.py", "invariants/test_batches.py", "processes/test_threads.py"]
_LOSSES = [
    *("oracles/test_losses.py", "invariants/test_batch_is_loop.py", "invariants/test_magnitudes.py"),
    *("processes/test_interrupts.py", "invariants/test_lone_query.py", "faults/test_argument_order.py"),
]
_CHOICE = ["oracles/test_sampler_choice.py"]
_LONE = ["invariants/test_lone_query.py"]

# Modules, those that everything rests on first, and the tests that would notice, quick ones first.
TESTS = {
    "_core/gradients/exact": [*_EXACT, _HUNT, *_LONE],
    "_core/gradients/pl_rank": ["enumeration/test_pl_rank.py", "oracles/test_plrank_pass.py", *_BATCHES],
    "_core/gradients/pl_rank_groups": ["oracles/test_plrank_pass.py", *_SAMPLED, *_BATCHES],
    "_core/gradients/conditional": ["enumeration/test_conditional.py", *_CHOICE, "invariants/test_batch_is_loop.py"],
    "_core/gradients/policy_gradient": [
        "enumeration/test_policy_gradient.py",
        "enumeration/test_rewards.py",
        *_BATCHES,
    ],
    "_core/gradients/hessian": ["enumeration/test_conditional.py", "invariants/test_batch_is_loop.py"],
    "_core/gradients/stochastic_rank": ["enumeration/test_stochastic_rank.py", *_BATCHES, *_LONE],
    "_core/gradients/exposure": ["enumeration/test_fairness.py", *_BATCHES],
    "_core/gradients/sampled": [
        *_SAMPLED,
        *_CHOICE,
        "enumeration/test_conditional.py",
        "enumeration/test_rewards.py",
        *_BATCHES,
        *_LONE,
    ],
    "_core/sampling/samplers": [*_SAMPLERS, *_CHOICE, "oracles/test_threshold_sampler.py", *_BATCHES, *_LONE],
    "_core/sampling/introselect": ["statistical/test_sampling.py", "oracles/test_selection.py", *_BATCHES],
    "_core/runtime/plain_arrays": _LONE,
    "_core/runtime/lone_query": _LONE,
    "_core/random/key": _LONE,
    "_core/random/selection": ["oracles/test_selection.py", "statistical/test_sampling.py"],
    "_core/random/stream": ["hand/test_random_streams.py"],
    "_core/ranking/weights": [*_SAMPLERS, "enumeration/test_pl_rank.py", "invariants/test_magnitudes.py"],
    "_core/ranking/remaining": ["enumeration/test_pl_rank.py", "enumeration/test_conditional.py"],
    "_core/ranking/rankings": ["faults/test_faults.py", "enumeration/test_pl_rank.py"],
    "_core/ranking/metrics": ["hand/test_metrics.py", "oracles/test_losses.py", "enumeration/test_pl_rank.py", *_LONE],
    "_core/runtime/simd": ["oracles/test_vector_math.py"],
    "_core/runtime/threads": [*_DRIVER, "processes/test_thread_probe.py", "processes/test_processes.py"],
    "_core/runtime/batch": [*_DRIVER, "processes/test_interrupts.py"],
    "_core/runtime/magnitudes": ["invariants/test_magnitudes.py"],
    "_core/losses/likelihood": _LOSSES,
    "_core/losses/pairs": _LOSSES,
    "_core/losses/ranks": _LOSSES,
    "_core/losses/losses": _LOSSES,
    "cython_plrank": ["libraries/test_embedding.py"],
}


def modules_of_setup() -> dict[str, list[str]]:
    """``MODULES`` of ``setup.py``: kernel sources of each module."""
    modules: dict[str, list[str]] = runpy.run_path(str(ROOT / "setup.py"))["MODULES"]
    return modules


def sources(root: Path = ROOT) -> dict[str, list[str]]:
    """Files whose mutants each module is compiled for: its own, its kernels, and headers that no module before has."""
    taken: set[str] = set()
    result = {}
    for module, kernels in modules_of_setup().items():
        waiting = [f"plrank_fast/{module}.pyx", f"plrank_fast/{module}.pxd"]
        waiting += [f"plrank_fast/kernels/{kernel}" for kernel in kernels]
        mine = []
        while waiting:
            path = waiting.pop(0)
            if path in taken or not (root / path).exists():
                continue
            taken.add(path)
            mine.append(path)
            waiting += [f"plrank_fast/kernels/{name}" for name in INCLUDED.findall((root / path).read_text())]
        result[module] = [path for path in mine if not path.endswith(".pxd")]
    return result


@dataclasses.dataclass
class Result:
    """What became of one mutant: killed, timed out, survived, not compiled, or compiled to the same code."""

    identity: str
    module: str
    path: str
    line: int
    kind: str
    before: str
    after: str
    outcome: str
    by: str  # the test that noticed
    seconds: float


def explained(result: Result, equivalents: Iterable[dict[str, str]]) -> str | None:
    """Why nothing can notice this mutant, if somebody has written that down."""
    for one in equivalents:
        if (one["path"], one["before"], one["after"]) == (result.path, result.before, result.after):
            return one["reason"]
    return None


def run(command: Sequence[str], folder: Path, timeout: float) -> tuple[int | None, str]:
    """Exit status and output of a command; None if it had to be ended, with all that it had started."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=timeout)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        return None, ""
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


class Scratch:
    """A copy of the tree, compiled, in which one file at a time is changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.killers: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        self.passing: set[str] = set()  # tests that have been seen to pass without a mutation

    def refresh(self) -> None:
        """Copy what differs from the tree, with its times, and compile what is not."""
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
        built = [path.relative_to(ROOT).as_posix() for path in (ROOT / "plrank_fast").rglob("*.so")]
        built += [path.replace(".pyx", ".c") for path in listed.split("\0") if path.endswith(".pyx")]
        for path in [*listed.split("\0"), *built]:
            source, copy = ROOT / path, self.folder / path
            if not source.is_file():
                continue
            content = source.read_bytes()
            if not copy.is_file() or copy.read_bytes() != content:
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(content)
            shutil.copystat(source, copy)  # its times too, so that what is compiled there is not compiled again here
        status, output = run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], self.folder, 900.0)
        if status != 0:
            raise SystemExit(f"the tree does not compile:\n{output[-2000:]}")
        where = [sys.executable, "-c", "import plrank_fast; print(plrank_fast.__file__, plrank_fast.build_info())"]
        imported, info = run(where, self.folder, 60.0)[1].strip().split(" ", 1)
        if Path(imported).parent != self.folder / "plrank_fast":
            raise SystemExit(f"tests in {self.folder} would import {imported}")
        built_with = ast.literal_eval(info)
        self.compiler = ModuleCompiler(self.folder, built_with["simd_levels"], built_with["openmp"])

    def attack(self, module: str, mutation: Mutation) -> tuple[str, str]:
        """Change the line, compile, test, and put everything back."""
        self.compiler.prepare(module)
        changed, library = self.folder / mutation.path, self.compiler.library(module)
        source, kept = changed.read_text(), library.read_bytes()
        try:
            changed.write_text(mutation.apply(source))
            if not self.compiler.with_change(module, mutation.path):
                return "same code", ""
            outcome, by = self.test(module)
        except CompilationError:
            return "not compiled", ""
        finally:
            changed.write_text(source)
            replaced = library.with_suffix(".new")
            replaced.write_bytes(kept)
            os.replace(replaced, library)
        self._check(module, outcome, by)
        return outcome, by

    def test(self, module: str) -> tuple[str, str]:
        """Outcome of the tests of a module, those first that have killed most of its mutants."""
        killers = [test for test, _ in self.killers[module].most_common(MOST_KILLERS)]
        return run_tests(self.folder, [*killers, *(f"tests/{test}" for test in TESTS[module])])

    def _check(self, module: str, outcome: str, by: str) -> None:
        """A test that has noticed passes without a mutation, or what it says means nothing."""
        noticed = by.partition(" (")[0]
        if outcome == "survived" or "::" not in noticed:
            return
        if noticed not in self.passing:
            alone, _ = run_tests(self.folder, [noticed])
            if alone != "survived":
                raise SystemExit(f"without a mutation too: {noticed} {alone}")
            self.passing.add(noticed)
        if outcome == "killed":
            self.killers[module][noticed] += 1


def choose(candidates: Sequence[Mutation], rng: random.Random) -> Iterable[Mutation]:
    """All mutations in a random order in which each kind comes equally often as long as it lasts."""
    by_kind = {kind: [one for one in candidates if one.kind == kind] for kind in KINDS}
    for ones in by_kind.values():
        rng.shuffle(ones)
    while any(by_kind.values()):
        kinds = [kind for kind in KINDS if by_kind[kind]]
        rng.shuffle(kinds)
        for kind in kinds:
            yield by_kind[kind].pop()


def attack(
    modules: Sequence[str],
    count: int,
    seed: int,
    results: Path,
    test: Callable[[str, Mutation], tuple[str, str]],
) -> list[Result]:
    """Try ``count`` mutants of each module in turn, or take from ``results`` what was tried before.

    Those that do not compile, or to the same code, are not counted.
    """
    before = {}
    if results.exists():
        for line in results.read_text().splitlines():
            result = Result(**json.loads(line))
            before[result.identity] = result
    files = sources()
    queues = {
        module: iter(
            choose([one for path in files[module] for one in of_file(ROOT, path)], random.Random(f"{seed} {module}"))
        )
        for module in modules
    }
    done: list[Result] = []
    number = collections.Counter({module: 0 for module in modules})
    with results.open("a") as log:
        while any(number[module] < count for module in queues):
            for module in list(queues):
                mutation = next(queues[module], None) if number[module] < count else None
                if mutation is None:
                    del queues[module]
                    continue
                result = before.get(mutation.identity)
                if result is None:
                    start = time.monotonic()
                    outcome, by = test(module, mutation)
                    result = Result(
                        mutation.identity, module, mutation.path, mutation.number + 1, mutation.kind,
                        mutation.before.strip(), mutation.after.strip(), outcome, by,
                        round(time.monotonic() - start, 1),
                    )  # fmt: skip
                    log.write(json.dumps(dataclasses.asdict(result)) + "\n")
                    log.flush()
                    shown = (
                        f"{result.outcome:12} {result.path.removeprefix('plrank_fast/')}:{result.line} {result.kind}"
                    )
                    print(f"{shown} ({result.seconds} s) {result.by}", flush=True)
                done.append(result)
                number[module] += result.outcome not in NO_MUTANT
    return done


def report(results: Sequence[Result], equivalents: Sequence[dict[str, str]]) -> tuple[str, int]:
    """A table of outcomes by module, the survivors, and how many of them nobody has explained."""
    lines = [f"{'module':34} {'killed':>7} {'timed out':>10} {'explained':>10} {'SURVIVED':>9} {'no mutant':>10}"]
    unexplained = []
    by_module = collections.defaultdict(list)
    for result in results:
        by_module[result.module].append(result)
    total: collections.Counter[str] = collections.Counter()
    for module, of_module in by_module.items():
        counts: collections.Counter[str] = collections.Counter()
        for result in of_module:
            outcome = result.outcome
            if outcome == "survived" and explained(result, equivalents):
                outcome = "explained"
            elif outcome == "survived":
                unexplained.append(result)
            counts[outcome] += 1
        total += counts
        lines.append(_row(module, counts))
    lines.append(_row("all", total))
    for result in unexplained:
        lines += ["", f"{result.path}:{result.line}, {result.kind}", f"    - {result.before}", f"    + {result.after}"]
    return "\n".join(lines), len(unexplained)


def _row(name: str, counts: collections.Counter[str]) -> str:
    return (
        f"{name:34} {counts['killed']:7} {counts['timed out']:10} {counts['explained']:10} {counts['survived']:9} "
        f"{sum(counts[outcome] for outcome in NO_MUTANT):10}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=3, help="mutants of each module (3)")
    parser.add_argument("--seed", type=int, default=0, help="another seed is another choice (0)")
    parser.add_argument("--module", nargs="+", choices=list(TESTS), default=list(TESTS), help="all by default")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutants", help="of the copy and the results")
    parser.add_argument("--again", action="store_true", help="try survivors of earlier runs once more")
    options = parser.parse_args(arguments)
    folder = options.folder.resolve()
    scratch = Scratch(folder / "tree")
    scratch.refresh()
    results = folder / "results.jsonl"
    if options.again and results.exists():
        lines = [line for line in results.read_text().splitlines() if json.loads(line)["outcome"] != "survived"]
        results.write_text("".join(line + "\n" for line in lines))
    equivalents = json.loads(EQUIVALENT.read_text())
    try:
        done = attack(options.module, options.count, options.seed, results, scratch.attack)
    except KeyboardInterrupt:
        print("interrupted: the same command resumes")
        return 130
    text, unexplained = report(done, equivalents)
    print(text)
    return int(unexplained > 0)


if __name__ == "__main__":
    sys.exit(main())
