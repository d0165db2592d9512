"""End every command that writes at each of its operations on the disk: full, read-only, killed, interrupted.

    make storage STORAGE_FLAGS="--most 20 --seed 0"

A command is run once and its operations on the disk are counted: files and folders that are created, writes, fsyncs and
renames. Then, for each k, it is run again and ended at its k-th operation:

- The disk is full from there on, and the first write that meets it is cut in half. The command must exit with status 2
  and one line that names a file; no temporary file may remain, and every file must be the old or the new one. The same
  holds if the disk is read-only, from the first operation on.
- The process is killed. A process that is killed between two operations leaves the same files, so these are all kills.
- Ctrl-C is pressed: exit status 130, and what has been reached is kept.

The same command, or ``--resume`` on another number of threads, must then come to the bits of an undisturbed run. Exits
with 1 if something of that does not hold.

Nothing is installed and nothing mounted: the functions of Python through which files are written are replaced in this
process, and a kill is an exception after which none of them does anything.
"""

from __future__ import annotations

import abc
import builtins
import contextlib
import errno
import io
import json
import os
import random
import re
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import matplotlib.figure
import numpy as np

from plrank_fast.__main__ import main as plrank_fast_main
from plrank_fast._shared.archive import read_archive
from plrank_fast.training import paper_experiment, paper_figures, paper_learning
from plrank_fast.training.model import load_model
from plrank_fast.training.trainer import CHECKPOINT
from search import Search, ViolationError, wrong_with

MODEL, RESULTS, PICTURE = "model.plrank", "results.json", "learning_curve.png"
NETWORK = ["--method", "pl_rank_3", "--hidden", "3", "--samples", "2", "--cutoff", "3", "--batch-queries", "4"]
EPOCHS, STEEP = 4, ["--learning-rate", "3"]  # the best epoch is not the last: its weights outlast what comes after it
BENCH = ["--shapes", "mslr", "--methods", "pl_rank_3", "--cutoffs", 2, "--samples", 1, "--queries", 2, "--seconds", 0]
REPRODUCE = ["--minutes", "0", "--shapes", "mslr", "--cutoffs", "2", "--parts", "disparity", "--quiet"]
FAULTS = ("full disk", "read-only", "killed", "interrupted")
REFUSED = {"full disk": errno.ENOSPC, "read-only": errno.EACCES}  # by the system, with this error
IMAGE = b"\x89PNG"  # in the place of a picture, for to draw one takes longer than all the rest
INTERRUPTED, KILLED = 130, -9  # exit statuses


class Killed(BaseException):
    """The process is gone."""


class Disk:
    """Within the block, operations below a folder are counted, and at the number ``ends_at`` the fault begins."""

    def __init__(self, folder: Path, fault: str, ends_at: float = np.inf) -> None:
        self.folder = folder.resolve()
        self.fault = fault
        self.ends_at = ends_at
        self.operations = 0

    def __enter__(self) -> Disk:
        self.patches = contextlib.ExitStack()
        for module, name, wrapped in (
            (os, "fsync", self._counting(os.fsync)),
            (os, "replace", self._counting(os.replace)),
            (os, "mkdir", self._counting(os.mkdir)),
            (os, "unlink", self._while_alive(os.unlink)),
            (os, "open", self._counting(os.open, lambda flags, *_: flags & os.O_CREAT)),
            (builtins, "open", self._opening(builtins.open)),
            (io, "open", self._opening(io.open)),
        ):
            self.patches.enter_context(mock.patch.object(module, name, wrapped))
        return self

    def __exit__(self, *_: object) -> None:
        self.patches.close()

    def spend(self, path: object = None) -> None:
        """Count an operation; from the fault on, raise its error for each, or interrupt the first of them."""
        self.operations += 1
        if self.operations <= self.ends_at:
            return
        if code := REFUSED.get(self.fault):
            raise OSError(code, os.strerror(code), *([os.fspath(path)] if path is not None else []))
        if self.fault == "killed":
            raise Killed
        if self.operations == self.ends_at + 1:
            signal.raise_signal(signal.SIGINT)

    def holds(self, file: object) -> bool:
        """Return whether a path, or the file of a handle, is on this disk; a handle that cannot be traced is."""
        if isinstance(file, int):
            try:
                file = os.readlink(f"/proc/self/fd/{file}")
            except OSError:
                return True
        return self.folder in (path := Path(os.fspath(file)).absolute()).parents or path == self.folder

    def _counting(
        self, real: Callable[..., Any], counts: Callable[..., object] = lambda *arguments: True
    ) -> Callable[..., Any]:
        def wrapper(file: Any, *arguments: Any, **options: Any) -> Any:
            if counts(*arguments) and self.holds(file):
                self.spend(None if isinstance(file, int) else file)
            return real(file, *arguments, **options)

        return wrapper

    def _while_alive(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any, **options: Any) -> Any:
            if self.fault == "killed" and self.operations > self.ends_at:
                raise Killed
            return real(*arguments, **options)

        return wrapper

    def _opening(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            if not set(mode) & set("wax+") or not self.holds(file):
                return real(file, mode, *arguments, **options)
            if not isinstance(file, int) and not os.path.exists(file):
                self.spend(file)
            if "b" not in mode:
                raise AssertionError(f"{file} is opened as text: files are replaced as bytes")
            return io.BufferedWriter(_CountedFile(file, mode.replace("b", ""), self))

        return wrapper


class _CountedFile(io.FileIO):
    """A file whose first write at the fault is cut in half."""

    def __init__(self, file: Any, mode: str, disk: Disk) -> None:
        super().__init__(file, mode)
        self.disk = disk

    def write(self, data: Any) -> int:
        try:
            self.disk.spend()
        except (OSError, Killed) as fault:
            half = len(data) // 2
            if self.disk.operations > self.disk.ends_at + 1 or half == 0:
                raise
            written = int(super().write(memoryview(data)[:half]))
            if isinstance(fault, Killed):
                raise
            return written
        return int(super().write(data))


def run(*arguments: object) -> tuple[int, str]:
    """Run a command in this process: its exit status, and what it told on stderr, warnings included."""
    told = io.StringIO()
    status = 0
    with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        with contextlib.redirect_stderr(told):
            try:
                status = plrank_fast_main([str(argument) for argument in arguments])
            except SystemExit as ended:
                status = ended.code if isinstance(ended.code, int) else 1
            except KeyboardInterrupt:
                status = INTERRUPTED
            except Killed:
                status = KILLED
    return status, "".join(f"warning: {warning.message}\n" for warning in warned) + told.getvalue()


def check(holds: object, what: str) -> None:
    if not holds:
        raise ViolationError(what)


def check_refusal(status: int, told: str, error: str, *named: str) -> None:
    """One line that tells the error and names one of the files, after warnings of caches if any."""
    lines = [line.split("\r")[-1] for line in told.split("\n") if not line.startswith("warning: cache ")]  # \r: a bar
    lines = [line for line in lines if line]
    check(status == 2 and len(lines) == 1 and ": error: " in lines[0], f"status {status}, {told!r}")
    check(error in told and any(name in lines[0] for name in named), f"{told!r} does not name the file or {error}")
    check(".tmp" not in lines[0], f"{told!r} names a temporary file")


def contents(folder: Path) -> dict[str, bytes]:
    """Return the contents of a folder, but for the file that carries the lock and what kills have left behind."""
    left_out = re.compile(r"run\.lock|plrank-fast-\w+\.tmp")
    paths = [path for path in folder.iterdir() if path.is_file() and not left_out.fullmatch(path.name)]
    return {path.name: path.read_bytes() for path in paths}


def outcome_of(folder: Path) -> dict[str, Any]:
    """Return the state of a run, by the names of its parts; seconds are left out.

    The model alone says too little: it holds the weights of the best epoch, which later errors leave as they are.
    """
    header, arrays = read_archive(folder / CHECKPOINT, "checkpoint")
    return {
        "model": (folder / MODEL).read_bytes(),
        "place in training": {name: header["progress"][name] for name in ("epoch", "batch", "best_epoch")},
        "weights and optimizer": {name: array.tobytes() for name, array in arrays.items()},
        "history": header["progress"]["history"],
    }


class Command(abc.ABC):
    """A command that writes, with the files that it may leave: what is in ``folder`` is its own."""

    faults: ClassVar = FAULTS[:3]

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.folder = storage.new_folder()
        self.arguments: list[object] = []

    def named(self) -> list[str]:
        """Paths of which a refusal names one."""
        return [str(self.folder)]

    def again(self) -> list[object]:
        """Return the command that is run after a fault."""
        return self.arguments

    @abc.abstractmethod
    def check_files(self, fault: str, told: str) -> None:
        """Nothing is half-written after a fault."""

    @abc.abstractmethod
    def check_outcome(self) -> None:
        """All is there in the end."""

    def check_success(self, status: int, told: str) -> None:
        check(status == 0 and (not told or "--quiet" not in self.arguments), f"status {status}, {told!r}")

    def meet(self, fault: str, ends_at: float) -> int:
        """Run with a fault at an operation, if it is reached, and once more without; the number of operations."""
        with Disk(self.storage.folder, fault, ends_at) as disk:
            status, told = run(*self.arguments)
        if disk.operations <= ends_at:
            self.check_success(status, told)
        else:
            if fault in REFUSED:
                check_refusal(status, told, os.strerror(REFUSED[fault]), *self.named())
            expected = {"killed": (KILLED,), "interrupted": (0, INTERRUPTED)}.get(fault, (2,))
            check(status in expected and "Traceback" not in told, f"status {status}, {told!r}")
            left = [path for path in self.folder.rglob("*") if path.suffix == ".tmp"]
            check(fault == "killed" or not left, f"left behind: {left}")
            self.check_files(fault, told)
            if fault == "killed":
                with Disk(self.storage.folder, fault, self.storage.rng.randrange(disk.operations)):
                    run(*self.again())
            self.check_success(*run(*self.again()))
        self.check_outcome()
        return disk.operations


class Train(Command):
    """A run in a folder of its own, which is resumed on another number of threads."""

    faults: ClassVar = FAULTS

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self.arguments = storage.train(self.folder)

    def again(self) -> list[object]:
        if (self.folder / CHECKPOINT).exists():
            return ["train", "--resume", self.folder, "--cache", self.folder / "cache", "--quiet", "--threads", 2]
        return [*self.arguments, *(["--overwrite"] if "--overwrite" not in self.arguments else [])]

    def check_files(self, fault: str, told: str) -> None:
        for name, load in {
            CHECKPOINT: lambda path: read_archive(path, "checkpoint"),
            MODEL: load_model,
            RESULTS: lambda path: json.loads(path.read_text()),
            PICTURE: lambda path: check(path.read_bytes() == IMAGE, "half a picture"),
        }.items():
            try:
                load(self.folder / name)
            except FileNotFoundError:
                pass
            except ValueError as error:
                raise ViolationError(f"{name} does not load: {error}") from error
        if (self.folder / MODEL).exists() and fault != "interrupted":  # after which it is the best so far
            whole = [(alone / MODEL).read_bytes() for alone in self.storage.whole.values()]
            check((self.folder / MODEL).read_bytes() in whole, "neither the old model nor the new one")

    def check_outcome(self) -> None:
        """The bits of an undisturbed run."""
        seed = read_archive(self.folder / CHECKPOINT, "checkpoint")[0]["config"]["seed"]
        check("--overwrite" in self.arguments or seed == 0, "another run")
        alone = self.storage.whole[seed]
        check(contents(self.folder).keys() == contents(alone).keys(), f"files {sorted(contents(self.folder))}")
        expected = outcome_of(alone)
        different = [f"another {name}" for name, part in outcome_of(self.folder).items() if part != expected[name]]
        check(not different, " and ".join(different))


class Overwrite(Train):
    """A run over an earlier one."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self.folder.mkdir()
        for name, content in contents(storage.whole[5]).items():
            (self.folder / name).write_bytes(content)
        self.arguments.append("--overwrite")


class Evaluate(Command):
    """Metrics and scores, over earlier ones."""

    options: ClassVar = ("--json", "--scores")

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self.folder.mkdir()
        self.files = {option: self.folder / option[2:] for option in self.options}
        for path in self.files.values():
            path.write_bytes(b"old")
        self.arguments = [*self.command(), *(word for pair in self.files.items() for word in pair)]

    def command(self) -> list[object]:
        return ["evaluate", self.storage.whole[0] / MODEL, self.storage.text]

    def named(self) -> list[str]:
        return [*map(str, self.files.values())]

    def check_files(self, fault: str, told: str) -> None:
        check(fault == "killed" or any(option in told for option in self.files), f"{told!r} does not name the option")
        for path in self.files.values():
            whole = path.read_bytes() in (b"old", IMAGE) or _is_whole(path.read_text())
            check(whole, f"{path.name} is half-written")

    def check_outcome(self) -> None:
        check(all(path.read_bytes() != b"old" for path in self.files.values()), "nothing was written")


class Bench(Evaluate):
    """Figures and the picture, over earlier ones."""

    options: ClassVar = ("--json", "--picture")

    def command(self) -> list[object]:
        return ["bench", *BENCH]


class Reproduce(Command):
    """Cells and the report: those that were kept stay."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self.arguments = ["reproduce", *REPRODUCE, "--output", self.folder]
        self.kept = [""]

    def lines(self) -> list[str]:
        results = self.folder / "results.jsonl"
        return results.read_text().splitlines() if results.exists() else [""]

    def check_files(self, fault: str, told: str) -> None:
        self.kept = self.lines()

    def check_outcome(self) -> None:
        kept = self.kept if self.kept != [""] else []
        check(self.lines()[: len(kept)] == kept, "cells that were kept have changed")
        cells = [{**json.loads(line), "result": None, "seconds": None} for line in self.lines()[1:]]
        check(all(cells.count(cell) == 1 for cell in cells), "a cell that was kept was measured again")
        check((self.folder / paper_experiment.REPORT).exists(), "no report")


COMMANDS = {
    "train": Train, "train --overwrite": Overwrite, "evaluate": Evaluate, "bench": Bench, "reproduce": Reproduce
}  # fmt: skip


class Storage(Search):
    """All faults, tried in a folder: at ``most`` operations of each command, or at all of them."""

    minutes = most_findings = float("inf")
    options: ClassVar = {
        "--most": {"type": int, "help": "operations of each command at which a fault begins (all)"},
        "--folder": {"type": Path, "help": "of all runs (a temporary one)"},
    }

    def __init__(self, seed: int, most: int | None, folder: Path) -> None:
        super().__init__(seed)
        self.folder = folder
        self.most = most
        self.rng = random.Random(f"storage {seed}")
        self.names = 0
        rows = np.random.default_rng(0).integers(0, 9, size=(32, 4))
        self.text = self.folder / "letor.txt"
        self.text.write_text(
            "".join(f"{a % 3} qid:{d // 4} 1:{b} 2:{c} 3:{e}\n" for d, (a, b, c, e) in enumerate(rows))
        )
        self.whole = {seed_of_run: self.new_folder() for seed_of_run in (0, 5)}
        for seed_of_run, output in self.whole.items():
            check(run(*self.train(output, seed_of_run)) == (0, ""), "the whole run failed")

    def new_folder(self) -> Path:
        self.names += 1
        return self.folder / f"run{self.names}"

    def train(self, output: Path, seed: int = 0) -> list[object]:
        """A run that saves after each batch and keeps what it parsed."""
        return [
            "train", "--train", self.text, "--vali", self.text, "--cache", output / "cache", "--output", output,
            "--seed", seed, "--epochs", EPOCHS, "--checkpoint-seconds", 0, "--threads", 1, "--quiet",
            *NETWORK, *STEEP,
        ]  # fmt: skip

    def steps(self) -> Iterator[object]:
        """Each fault at each operation; a disk is read-only from the first one on."""
        for name, command in COMMANDS.items():
            for fault in command.faults:
                operations = 1 if fault == "read-only" else command(self).meet(fault, np.inf)
                some = operations if self.most is None else min(self.most, operations)
                for number in sorted(self.rng.sample(range(operations), some)):
                    yield self.attempt(f"{fault}, {name}, operation {number} of {operations}", command, fault, number)

    def attempt(self, what: str, command: type[Command], fault: str, number: int) -> None:
        """Try one fault and note what comes of it."""

        def meet() -> None:
            place = number
            while (operations := command(self).meet(fault, place)) <= place:  # it watches the clock, and did less
                place = self.rng.randrange(operations)

        self.tally[fault] += 1
        if wrong := wrong_with(meet):
            self.broken(f"{what}: {wrong}")


def _is_whole(text: str) -> bool:
    """Return whether it is JSON, or a number a line for each document."""
    try:
        json.loads(text)
    except ValueError:
        return text.endswith("\n") and len([float(line) for line in text.split()]) == 32
    return True


@contextlib.contextmanager
def quick_commands() -> Iterator[None]:
    """Pictures that nobody draws, and the shortest runs of ``reproduce``, each of them once."""
    measure, measured = paper_learning.measure, {}

    def remembered(cell: Any, number: int) -> Any:
        key = json.dumps([cell, number], sort_keys=True)
        if key not in measured:
            measured[key] = measure(cell, number)
        return measured[key]

    with (
        mock.patch.object(
            matplotlib.figure.Figure, "savefig", lambda figure, file, **options: file.write(IMAGE) and None
        ),
        mock.patch.object(paper_figures, "rendered", return_value=IMAGE),
        mock.patch.object(paper_learning, "SHORTEST_RUN", 0.004),
        mock.patch.object(paper_learning, "LEAST_QUERIES", 2),
        mock.patch.object(paper_learning, "measure", remembered),
    ):
        yield


if __name__ == "__main__":
    with quick_commands(), tempfile.TemporaryDirectory() as folder:
        sys.exit(Storage.main(["--folder", folder, *sys.argv[1:]]))
