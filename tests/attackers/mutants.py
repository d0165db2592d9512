"""Break the compiled sources on purpose, one place at a time, and see whether the tests notice.

    make mutants MUTANTS_FLAGS="--count 50 --module _core/gradients/exact"

Works in a copy of the tree (``build/mutants``), compiled for one SIMD level: changes one line, compiles the module that
it belongs to, runs the tests of ``TESTS`` until one fails, those first that have noticed others, and puts everything
back. Results are appended to ``results.jsonl`` there, so that an interrupted run is resumed by the same command, and
what is removed from it is tried again. At the end comes a table. Those that nothing could notice are listed with the
reason in ``equivalent_mutants.json``; any other survivor makes the exit status 1.
"""

from __future__ import annotations

import collections
import json
import random
import runpy
import signal
import sysconfig
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from mutations import KINDS, Mutation, of_file
from search import Search
from tree import ROOT, Tree

EQUIVALENT = Path(__file__).with_name("equivalent_mutants.json")
OUTCOMES = ("killed", "timed out", "explained", "survived", "not compiled", "same code")
NO_MUTANT = OUTCOMES[-2:]
WALL_SECONDS = 3600.0  # of all tests of a mutant; one that waits for ever takes no processor

_OF_DRIVER = "batch_driver batches threads"
_OF_LOSSES = "losses every_function batches magnitudes interrupts plain_arguments argument_order"
# Modules, the most basic ones first, and the files of tests that would notice, quick ones first. Tests of
# modules that are not listed are the folder `enumeration` and the last two.
TESTS = {
    "_core/gradients/exact": "exact exact_noise exact_bounds hunt::TestHunt::test_seeded plain_arguments",
    "_core/gradients/pl_rank": "pl_rank plrank_pass every_function batches",
    "_core/gradients/pl_rank_groups": "plrank_pass pl_rank policy_gradient every_function batches",
    "_core/gradients/conditional": "conditional introselect every_function batches",
    "_core/gradients/stochastic_rank": "stochastic_rank every_function batches plain_arguments",
    "_core/gradients/sampled":
        "pl_rank policy_gradient introselect conditional rewards many_rankings every_function batches plain_arguments",
    "_core/sampling/samplers":
        "samplers_exact sampling threshold_sampler simd_levels introselect every_function batches plain_arguments",
    "_core/sampling/introselect": "sampling selection stochastic_rank every_function batches",
    "_core/sampling/noise": "stochastic_rank every_function batches",
    "_core/runtime/arguments": "plain_arguments every_function batches",
    "_core/random/key": "plain_arguments",
    "_core/random/selection": "selection sampling",
    "_core/random/stream": "introselect random_streams",
    "_core/ranking/weights": "samplers_exact sampling threshold_sampler simd_levels pl_rank magnitudes",
    "_core/ranking/rankings": "faults pl_rank",
    "_core/ranking/metrics": "metrics selection ranking_rewards distribution losses pl_rank plain_arguments",
    "_core/runtime/simd": "vector_math",
    "_core/runtime/threads": f"{_OF_DRIVER} teams processes",
    "_core/runtime/teams": f"{_OF_DRIVER} teams long_queries processes",
    "_core/runtime/batch": f"{_OF_DRIVER} interrupts",
    "_core/runtime/magnitudes": "magnitudes",
    "_core/losses/likelihood": _OF_LOSSES,
    "_core/losses/pairs": _OF_LOSSES,
    "_core/losses/ranks": _OF_LOSSES,
    "_core/losses/losses": _OF_LOSSES,
    "_core/losses/bucket_order": "bucket_order every_function batches plain_arguments",
    "_core/strengths/battles": "strengths",
    "_core/strengths/clusters": "strengths",
    "_core/strengths/orders": "strengths",
    "_core/data/letor_lines": "data_letor fuzz",
    "_core/data/normalization": "data_sets",
    "cython_plrank": "embedding",
    "_adapters/xla_calls": "jax expected_loss",
}  # fmt: skip


def files_of(module: str) -> list[str]:
    """Return the files that pytest gets."""
    if module not in TESTS:
        return ["tests/enumeration", *paths("every_function batches")]
    return paths(TESTS[module])


def paths(names: str) -> list[str]:
    named = (name.partition("::") for name in names.split())
    files = ((next((ROOT / "tests").glob(f"*/test_{file}.py")), part) for file, _, part in named)
    return ["::".join(filter(None, (file.relative_to(ROOT).as_posix(), part))) for file, part in files]


def sources() -> dict[str, list[str]]:
    """Files whose mutants each module is compiled for: its own, its kernels, and the headers that it reads.

    A header belongs to the one of its modules that reads the fewest files.
    """
    setup = runpy.run_path(str(ROOT / "setup.py"))
    read = {}
    for module, kernels in setup["MODULES"].items():
        files = [Path("plrank_fast", f"{module}.pyx"), *(setup["KERNELS"] / kernel for kernel in kernels)]
        read[module] = set().union(*map(setup["files_read"], files))
    taken: set[Path] = set()
    result = {}
    for module in sorted(read, key=lambda module: len(read[module])):
        mine = read[module] - taken
        taken |= mine
        result[module] = sorted(
            str(path) for path in mine if path.suffix in (".pyx", ".c") or setup["KERNELS"] in path.parents
        )
    return result


MODULES = [*TESTS, *(module for module in sources() if module not in TESTS)]


def explanations() -> dict[tuple[str, str, str], str]:
    """Why nothing can notice a mutant, by its change."""
    listed = json.loads(EQUIVALENT.read_text())
    return {(one["path"], one["before"], one["after"]): one["reason"] for one in listed}


def stands(change: tuple[str, str, str]) -> bool:
    """Return whether the line of a change is still there, and the change still made."""
    return (ROOT / change[0]).is_file() and change in {mutation.change for mutation in of_file(ROOT, change[0])}


def run_tests(tree: Tree, tests: Sequence[str], **environment: str) -> tuple[str, str]:
    """``survived`` if all pass; ``killed`` or ``timed out`` with the test that noticed, by failing or by a crash."""
    running = tree.folder / "running_test.txt"
    running.write_text("collection")
    options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "running_test", "--rootdir", str(tree.folder)]
    status, _ = tree.run(
        [tree.python, "-m", "pytest", *options, *tests], WALL_SECONDS, RUNNING_TEST=str(running), **environment
    )
    if status == 0:
        return "survived", ""
    return "timed out" if status in (None, -signal.SIGXCPU) else "killed", running.read_text()


class Scratch(Tree):
    """A copy of the tree, compiled, in which one file at a time is changed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.killers: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        self.passing: set[str] = set()  # tests that have been seen to pass without a mutation

    def compiles(self, module: str = "") -> bool:
        """Return whether a module, or all, can be compiled."""
        return self.build(PLRANK_FAST_LEVELS="baseline", PLRANK_FAST_MODULES=module)[0] == 0

    def attack(self, module: str, mutation: Mutation) -> tuple[str, str]:
        """Change the line, compile, test, and put everything back."""
        changed = self.folder / mutation.path
        library = self.folder / "plrank_fast" / f"{module}{sysconfig.get_config_var('EXT_SUFFIX')}"
        source, kept = changed.read_text(), library.read_bytes()
        try:
            changed.write_text(mutation.apply(source))
            if not self.compiles(module):
                return "not compiled", ""
            if library.read_bytes() == kept:
                return "same code", ""
            killers = [test for test, _ in self.killers[module].most_common(6)]
            outcome, by = run_tests(self, [*killers, *files_of(module)])
        finally:
            changed.write_text(source)
            if not self.compiles(module):
                raise SystemExit(f"{self.folder} does not compile any more")
        if "::" in by and by not in self.passing:  # a test that fails without a mutation says nothing
            alone, _ = run_tests(self, [by])
            if alone != "survived":
                raise SystemExit(f"without a mutation too: {by} {alone}")
            self.passing.add(by)
        if outcome == "killed" and "::" in by:
            self.killers[module][by] += 1
        return outcome, by


def choose(candidates: Sequence[Mutation], rng: random.Random) -> Iterable[Mutation]:
    """All mutations in a random order in which each kind comes equally often as long as it lasts."""
    by_kind = {kind: [one for one in candidates if one.kind == kind] for kind in KINDS}
    for ones in by_kind.values():
        rng.shuffle(ones)
    while any(by_kind.values()):
        for kind in rng.sample(KINDS, len(KINDS)):
            if by_kind[kind]:
                yield by_kind[kind].pop()


class Mutants(Search):
    """``count`` mutants of each module, tried or taken from what was tried before."""

    minutes = most_findings = float("inf")
    options: ClassVar = {
        "--count": {"type": int, "default": 3, "help": "mutants of each module (3)"},
        "--module": {"nargs": "+", "choices": MODULES, "default": MODULES, "help": "all by default"},
        "--folder": {"type": Path, "default": ROOT / "build" / "mutants", "help": "of the copy and the results"},
    }

    def __init__(self, seed: int = 0, *, count: int = 3, module: Sequence[str] = tuple(MODULES), folder: Path) -> None:
        super().__init__(seed)
        self.count, self.modules = count, module
        self.scratch = Scratch(folder / "tree")
        self.log = folder / "results.jsonl"
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.before = {tuple(one["change"]): one for one in map(json.loads, lines)}
        self.explained = explanations()
        self.rows = {name: collections.Counter() for name in (*module, "all")}

    def steps(self) -> Iterator[object]:
        """Those that do not compile, or to the same code, are not counted."""
        self.scratch.refresh()
        if not self.scratch.compiles():
            raise SystemExit(f"the tree does not compile: {self.scratch.folder}")
        files = sources()
        for module in self.modules:
            candidates = [one for path in files[module] for one in of_file(ROOT, path)]
            for mutation in choose(candidates, random.Random(f"{self.seed} {module}")):
                counts = self.rows[module]
                if counts.total() - sum(counts[outcome] for outcome in NO_MUTANT) == self.count:
                    break
                self._note(module, mutation, self.before.get(mutation.change) or self._tried(module, mutation))
                yield

    def _tried(self, module: str, mutation: Mutation) -> dict[str, object]:
        start = time.monotonic()
        outcome, by = self.scratch.attack(module, mutation)
        seconds = round(time.monotonic() - start, 1)
        result = {"change": mutation.change, "outcome": outcome, "by": by, "seconds": seconds}
        with self.log.open("a") as log:
            log.write(json.dumps(result) + "\n")
        print(f"{outcome:12} {mutation.path}:{mutation.number + 1} {mutation.kind} ({seconds} s) {by}", flush=True)
        return result

    def _note(self, module: str, mutation: Mutation, result: dict[str, object]) -> None:
        outcome = str(result["outcome"])
        if outcome == "survived" and mutation.change in self.explained:
            outcome = "explained"
        if outcome == "survived":
            path, before, after = mutation.change
            self.broken(f"{path}:{mutation.number + 1}, {mutation.kind}\n    - {before}\n    + {after}")
        for row in (module, "all"):
            self.rows[row][outcome] += 1

    def report(self) -> str:
        """A table of outcomes by module, the survivors, and explanations of what is no longer there."""
        lines = [f"{'module':34}" + "".join(f" {outcome:>12}" for outcome in OUTCOMES)]
        lines += [
            f"{name:34}" + "".join(f" {row[outcome]:12}" for outcome in OUTCOMES) for name, row in self.rows.items()
        ]
        lines += self.findings
        for change in self.explained:
            if not stands(change):
                self.broken(f"explained, but no longer there: {change}")
        return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(Mutants.main())
