"""Break the compiled sources on purpose, one place at a time, and see whether the tests notice.

    make mutants MUTANTS_FLAGS="--count 50 --module _core/gradients/exact"

Works in a copy of the tree (``build/mutants``), compiled for one SIMD level: changes one line, compiles the module that
it belongs to, runs the tests of ``TESTS`` until one fails, those first that have noticed others, and puts everything
back. Results are appended to ``results.jsonl`` there, so that an interrupted run is resumed by the same command;
``--again`` forgets survivors. At the end stand a table and the mutants that survived. Those that nothing could notice
are listed with the reason in ``equivalent_mutants.json``; any other survivor makes the exit status 1.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import os
import random
import runpy
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import tree_copy
from mutations import KINDS, Mutation, of_file
from tree_copy import ROOT

EQUIVALENT = Path(__file__).with_name("equivalent_mutants.json")
NO_MUTANT = ("not compiled", "same code")
WALL_SECONDS = 3600.0  # of all tests of a mutant; one that waits for ever takes no processor

_EXACT = ["enumeration/test_exact.py", "enumeration/test_exact_noise.py", "enumeration/test_exact_promise.py"]
_HUNT = "attackers/test_hunt.py::TestHunt::test_seeded"
_BATCHES = ["invariants/test_every_function.py", "invariants/test_batches.py"]
_SAMPLED = ["enumeration/test_pl_rank.py", "enumeration/test_policy_gradient.py", *_BATCHES]
_SAMPLERS = ["statistical/test_sampling.py", "statistical/test_samplers_exact.py"]
_DRIVER = ["invariants/test_batch_driver.py", "invariants/test_batches.py", "processes/test_threads.py"]
_LOSSES = [
    *("oracles/test_losses.py", *_BATCHES, "invariants/test_magnitudes.py"),
    *("processes/test_interrupts.py", "invariants/test_plain_arguments.py", "faults/test_argument_order.py"),
]
_INTROSELECT = ["oracles/test_introselect.py"]
_ARGUMENTS = ["invariants/test_plain_arguments.py"]

# Modules, those that everything rests on first, and the tests that would notice, quick ones first.
TESTS = {
    "_core/gradients/exact": [*_EXACT, _HUNT, *_ARGUMENTS],
    "_core/gradients/pl_rank": ["enumeration/test_pl_rank.py", "oracles/test_plrank_pass.py", *_BATCHES],
    "_core/gradients/pl_rank_groups": ["oracles/test_plrank_pass.py", *_SAMPLED, *_BATCHES],
    "_core/gradients/conditional": ["enumeration/test_conditional.py", *_INTROSELECT, *_BATCHES],
    "_core/gradients/policy_gradient": [
        "enumeration/test_policy_gradient.py",
        "enumeration/test_rewards.py",
        *_BATCHES,
    ],
    "_core/gradients/hessian": ["enumeration/test_conditional.py", *_BATCHES],
    "_core/gradients/stochastic_rank": ["enumeration/test_stochastic_rank.py", *_BATCHES, *_ARGUMENTS],
    "_core/gradients/exposure": ["enumeration/test_fairness.py", *_BATCHES],
    "_core/gradients/sampled": [
        *_SAMPLED,
        *_INTROSELECT,
        "enumeration/test_conditional.py",
        "enumeration/test_rewards.py",
        *_BATCHES,
        *_ARGUMENTS,
    ],
    "_core/sampling/samplers": [*_SAMPLERS, *_INTROSELECT, "oracles/test_threshold_sampler.py", *_BATCHES, *_ARGUMENTS],
    "_core/sampling/introselect": ["statistical/test_sampling.py", "oracles/test_selection.py", *_BATCHES],
    "_core/runtime/plain_arrays": _ARGUMENTS,
    "_core/runtime/arguments": _ARGUMENTS,
    "_core/random/key": _ARGUMENTS,
    "_core/random/selection": ["oracles/test_selection.py", "statistical/test_sampling.py"],
    "_core/random/stream": ["hand/test_random_streams.py"],
    "_core/ranking/weights": [*_SAMPLERS, "enumeration/test_pl_rank.py", "invariants/test_magnitudes.py"],
    "_core/ranking/remaining": ["enumeration/test_pl_rank.py", "enumeration/test_conditional.py"],
    "_core/ranking/rankings": ["faults/test_faults.py", "enumeration/test_pl_rank.py"],
    "_core/ranking/metrics": [
        "hand/test_metrics.py",
        "oracles/test_losses.py",
        "enumeration/test_pl_rank.py",
        *_ARGUMENTS,
    ],
    "_core/runtime/simd": ["oracles/test_vector_math.py"],
    "_core/runtime/threads": [*_DRIVER, "processes/test_thread_probe.py", "processes/test_processes.py"],
    "_core/runtime/batch": [*_DRIVER, "processes/test_interrupts.py"],
    "_core/runtime/magnitudes": ["invariants/test_magnitudes.py"],
    "_core/losses/likelihood": _LOSSES,
    "_core/losses/pairs": _LOSSES,
    "_core/losses/ranks": _LOSSES,
    "_core/losses/losses": _LOSSES,
    "_core/losses/bucket_order": ["enumeration/test_bucket_order.py", *_BATCHES, *_ARGUMENTS],
    "cython_plrank": ["libraries/test_embedding.py"],
}


def sources() -> dict[str, list[str]]:
    """Files whose mutants each module is compiled for: its own, its kernels, and headers that no module before has."""
    setup = runpy.run_path(str(ROOT / "setup.py"))
    taken: set[Path] = set()
    result = {}
    for module, kernels in setup["MODULES"].items():
        files = [Path("plrank_fast", f"{module}.pyx"), *(setup["KERNELS"] / kernel for kernel in kernels)]
        mine = set().union(*map(setup["files_read"], files)) - taken
        taken |= mine
        result[module] = sorted(
            str(path) for path in mine if path.suffix in (".pyx", ".c") or setup["KERNELS"] in path.parents
        )
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


def stands(one: dict[str, str]) -> bool:
    """Whether the line of an explanation is still there, and its change still made."""
    if not (ROOT / one["path"]).is_file():
        return False
    return (one["before"], one["after"]) in {(m.before.strip(), m.after.strip()) for m in of_file(ROOT, one["path"])}


def run(command: Sequence[str], folder: Path, **environment: str) -> int | None:
    """Exit status of a command in a tree; None if it had to be ended, with all that it had started."""
    environment = {**os.environ, "PYTHONPATH": f"{folder}:{Path(__file__).parent}", **environment}
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        return process.wait(timeout=WALL_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run_tests(tree: Path, tests: Sequence[str], **environment: str) -> tuple[str, str]:
    """``survived`` if all pass; ``killed`` or ``timed out`` with the test that noticed, by failing or by a crash."""
    running = tree / "running_test.txt"
    running.write_text("collection")
    options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "running_test", "--rootdir", str(tree)]
    status = run([sys.executable, "-m", "pytest", *options, *tests], tree, RUNNING_TEST=str(running), **environment)
    if status == 0:
        return "survived", ""
    return "timed out" if status in (None, -signal.SIGXCPU) else "killed", running.read_text()


class Scratch:
    """A copy of the tree, compiled, in which one file at a time is changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.killers: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        self.passing: set[str] = set()  # tests that have been seen to pass without a mutation

    def refresh(self) -> None:
        """Copy what differs from the tree, and compile it."""
        tree_copy.refresh(self.folder)
        if not self.build():
            raise SystemExit(f"the tree does not compile: {self.folder}")

    def build(self, modules: str = "") -> bool:
        """Whether modules, or all, compile."""
        command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        return run(command, self.folder, PLRANK_FAST_LEVELS="baseline", PLRANK_FAST_MODULES=modules) == 0

    def attack(self, module: str, mutation: Mutation) -> tuple[str, str]:
        """Change the line, compile, test, and put everything back."""
        changed = self.folder / mutation.path
        library = self.folder / "plrank_fast" / f"{module}{sysconfig.get_config_var('EXT_SUFFIX')}"
        source, kept = changed.read_text(), library.read_bytes()
        try:
            changed.write_text(mutation.apply(source))
            if not self.build(module):
                return "not compiled", ""
            if library.read_bytes() == kept:
                return "same code", ""
            outcome, by = self.test(module)
        finally:
            changed.write_text(source)
            if not self.build(module):
                raise SystemExit(f"{self.folder} does not compile any more")
        self._check(module, outcome, by)
        return outcome, by

    def test(self, module: str) -> tuple[str, str]:
        """Outcome of the tests of a module, those first that have killed most of its mutants."""
        killers = [test for test, _ in self.killers[module].most_common(6)]
        return run_tests(self.folder, [*killers, *(f"tests/{test}" for test in TESTS[module])])

    def _check(self, module: str, outcome: str, by: str) -> None:
        """A test that has noticed passes without a mutation, or what it says means nothing."""
        if "::" not in by:
            return
        if by not in self.passing:
            alone, _ = run_tests(self.folder, [by])
            if alone != "survived":
                raise SystemExit(f"without a mutation too: {by} {alone}")
            self.passing.add(by)
        self.killers[module][by] += outcome == "killed"


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
    """Try ``count`` mutants of each module, or take from ``results`` what was tried before.

    Those that do not compile, or to the same code, are not counted.
    """
    lines = results.read_text().splitlines() if results.exists() else []
    before = {one.identity: one for one in (Result(**json.loads(line)) for line in lines)}
    files = sources()
    done: list[Result] = []
    for module in modules:
        number = 0
        candidates = [one for path in files[module] for one in of_file(ROOT, path)]
        for mutation in choose(candidates, random.Random(f"{seed} {module}")):
            if number == count:
                break
            result = before.get(mutation.identity)
            if result is None:
                start = time.monotonic()
                outcome, by = test(module, mutation)
                result = Result(
                    mutation.identity, module, mutation.path, mutation.number + 1, mutation.kind,
                    mutation.before.strip(), mutation.after.strip(), outcome, by, round(time.monotonic() - start, 1),
                )  # fmt: skip
                with results.open("a") as log:
                    log.write(json.dumps(dataclasses.asdict(result)) + "\n")
                print(f"{outcome:12} {result.path}:{result.line} {result.kind} ({result.seconds} s) {by}", flush=True)
            done.append(result)
            number += result.outcome not in NO_MUTANT
    return done


def report(results: Sequence[Result], equivalents: Sequence[dict[str, str]]) -> tuple[str, int]:
    """A table of outcomes by module, the survivors, and how many of them nobody has explained."""
    outcomes = ("killed", "timed out", "explained", "SURVIVED", "not compiled", "same code")
    rows: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    survivors = []
    for result in results:
        outcome = result.outcome
        if outcome == "survived":
            outcome = "explained" if explained(result, equivalents) else "SURVIVED"
        if outcome == "SURVIVED":
            survivors += [
                f"\n{result.path}:{result.line}, {result.kind}", f"    - {result.before}", f"    + {result.after}"
            ]  # fmt: skip
        for row in (result.module, "all"):
            rows[row][outcome] += 1
    everything = rows.pop("all", collections.Counter())
    lines = [f"{'module':34}" + "".join(f" {outcome:>12}" for outcome in outcomes)]
    for name, counts in [*rows.items(), ("all", everything)]:
        lines.append(f"{name:34}" + "".join(f" {counts[outcome]:12}" for outcome in outcomes))
    return "\n".join(lines + survivors), everything["SURVIVED"]


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
    stale = [one for one in equivalents if not stands(one)]
    print(text, *(f"explained, but no longer there: {one['path']}: {one['before']}" for one in stale), sep="\n")
    return int(unexplained > 0 or len(stale) > 0)


if __name__ == "__main__":
    sys.exit(main())
