"""End every command that writes at each of its operations on the disk: full, killed, interrupted, read-only.

    make storage STORAGE_FLAGS="--most 20 --seed 0"

A command is run once and its operations on the disk are counted: files and folders that are created, writes, fsyncs and
renames. Then, for each k, it is run again and ended at its k-th operation:

- The disk is full from there on, and the first write that meets it is cut in half. The command must exit with status 2
  and one line that names a file; no temporary file may remain, and every file must be the old or the new one.
- The process is killed. A process that is killed between two operations leaves the same files, so these are all kills.
- Ctrl-C is pressed: exit status 130, and what has been reached is kept.

The same command, or ``--resume`` on another number of threads, must then come to the bits of an undisturbed run. Exits
with 1 if something of that does not hold.

Nothing is installed and nothing mounted: the functions of Python through which files are written are replaced in this
process, and a kill is an exception after which none of them does anything.
"""

from __future__ import annotations

import argparse
import builtins
import collections
import contextlib
import ctypes
import errno
import functools
import io
import json
import os
import random
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import matplotlib.figure
import numpy as np

from plrank_fast.__main__ import main as plrank_fast_main
from plrank_fast._shared.archive import read_archive
from plrank_fast.reproduction import experiment, figures, learning
from plrank_fast.reproduction.cells import Part
from plrank_fast.training.loop import CHECKPOINT
from plrank_fast.training.saved_model import load_model

MODEL, RESULTS, PICTURE = "model.plrank", "results.json", "learning_curve.png"
NETWORK = ["--method", "pl_rank_3", "--hidden", "3", "--samples", "2", "--cutoff", "3", "--batch-queries", "4"]
EPOCHS, STEEP = 4, ["--learning-rate", "3"]  # the best epoch is not the last: its weights outlast what comes after it
FAULTS = ("full disk", "killed", "interrupted")
IMAGE = b"\x89PNG"  # in the place of a picture, for to draw one takes longer than all the rest
INTERRUPTED, KILLED = 130, -9  # exit statuses
CAP_DAC_OVERRIDE = 1  # by which root may write where nobody may


class BrokenPromiseError(Exception):
    """A promise that does not hold, in words."""


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
            (os, "open", self._creating(os.open)),
            (builtins, "open", self._opening(builtins.open)),
            (io, "open", self._opening(io.open)),
        ):
            self.patches.enter_context(mock.patch.object(module, name, wrapped))
        return self

    def __exit__(self, *_: object) -> None:
        self.patches.close()

    def spend(self, path: object = None) -> None:
        """Count an operation.

        Raises
        ------
        OSError
            If the disk is full, with the path if there is one.
        Killed
            If the process has been killed, now and at every further operation.
        """
        self.operations += 1
        if self.operations <= self.ends_at:
            return
        if self.fault == "full disk":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), *([os.fspath(path)] if path is not None else []))
        if self.fault == "killed":
            raise Killed
        if self.operations == self.ends_at + 1:
            signal.raise_signal(signal.SIGINT)

    def holds(self, file: object) -> bool:
        """Whether a path, or what a handle was opened for, is on this disk; a handle that cannot be traced is."""
        if isinstance(file, int):
            try:
                file = os.readlink(f"/proc/self/fd/{file}")
            except OSError:
                return True
        return self.folder in (path := Path(os.fspath(file)).absolute()).parents or path == self.folder

    def _counting(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(file: Any, *arguments: Any, **options: Any) -> Any:
            if self.holds(file):
                self.spend(None if isinstance(file, int) else file)
            return real(file, *arguments, **options)

        return wrapper

    def _while_alive(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any, **options: Any) -> Any:
            if self.fault == "killed" and self.operations > self.ends_at:
                raise Killed
            return real(*arguments, **options)

        return wrapper

    def _creating(self, real: Callable[..., int]) -> Callable[..., int]:
        def wrapper(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
            if flags & os.O_CREAT and self.holds(path):
                self.spend(path)
            return real(path, flags, *arguments, **options)

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


@contextlib.contextmanager
def as_others() -> Iterator[None]:
    """Within the block, this thread may not write where permissions forbid it, whoever it runs as."""
    if os.geteuid() != 0:
        yield
        return
    library = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3 of the structure, this thread
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable, twice

    def call(function: Any) -> None:
        if function(header, sets):
            raise OSError(ctypes.get_errno(), "capabilities cannot be changed")

    call(library.capget)
    before = sets[0]
    sets[0] = before & ~(1 << CAP_DAC_OVERRIDE)
    call(library.capset)
    try:
        yield
    finally:
        sets[0] = before
        call(library.capset)


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
        raise BrokenPromiseError(what)


def check_refusal(status: int, told: str, *named: str) -> None:
    """One line that says what is wrong and names one of the files, after warnings of caches if any."""
    lines = [line.split("\r")[-1] for line in told.split("\n") if not line.startswith("warning: cache ")]  # \r: a bar
    lines = [line for line in lines if line]
    check(status == 2 and len(lines) == 1 and ": error: " in lines[0], f"status {status}, {told!r}")
    check(any(name in lines[0] for name in named), f"{told!r} does not name the file")
    check(".tmp" not in lines[0], f"{told!r} names a temporary file")


def contents(folder: Path) -> dict[str, bytes]:
    """What is in a folder, but for the file that carries the lock."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != "run.lock"}


def outcome_of(folder: Path) -> dict[str, Any]:
    """What a run has come to, by the names of its parts; seconds are left out.

    The model alone says too little: it holds the weights of the best epoch, which later errors leave as they are.
    """
    header, arrays = read_archive(folder / CHECKPOINT, "checkpoint")
    history = header["progress"]["history"]
    return {
        "model": (folder / MODEL).read_bytes(),
        "place in training": {name: header["progress"][name] for name in ("epoch", "batch", "best_epoch")},
        "weights and optimizer": {name: array.tobytes() for name, array in arrays.items()},
        "history": [{name: value for name, value in entry.items() if name != "seconds"} for entry in history],
    }


class Storage:
    """All faults, tried in a folder."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.rng = random.Random(f"storage {seed}")
        self.tally: collections.Counter[str] = collections.Counter()
        self.violations: list[str] = []
        rows = np.random.default_rng(0).integers(0, 9, size=(32, 4))
        self.text = folder / "letor.txt"
        self.text.write_text(
            "".join(f"{a % 3} qid:{d // 4} 1:{b} 2:{c} 3:{e}\n" for d, (a, b, c, e) in enumerate(rows))
        )
        self.names = 0
        self.whole = {seed_of_run: self.new_folder() for seed_of_run in (0, 5)}
        for seed_of_run, output in self.whole.items():
            check(run(*self.train(output, seed_of_run)) == (0, ""), "the whole run failed")

    def new_folder(self) -> Path:
        self.names += 1
        return self.folder / f"run{self.names}"

    def train(self, output: Path, seed: int = 0, *more: object) -> list[object]:
        """A run that saves after each batch and keeps what it parsed."""
        return [
            "train", "--train", self.text, "--vali", self.text, "--cache", output / "cache", "--output", output,
            "--seed", seed, "--epochs", EPOCHS, "--checkpoint-seconds", 0, "--threads", 1, "--quiet",
            *NETWORK, *STEEP, *more,
        ]  # fmt: skip

    def attempt(self, what: str, fault: Callable[[], None]) -> None:
        """Try one fault and note what comes of it."""
        self.tally[what.split(",")[0]] += 1
        try:
            fault()
        except Exception as broken:
            self.violations.append(f"{what}: {broken if isinstance(broken, BrokenPromiseError) else repr(broken)}")
            print(f"BROKEN  {self.violations[-1]}", flush=True)

    def at_each(self, what: str, attack: Callable[[str, float], int], fault: str, most: int | None) -> None:
        """An attack in which a command meets a fault at its k-th operation: for every k, or for ``most`` of them.

        The attack gives the number of operations; it is made once without a fault.
        """
        operations = attack(fault, np.inf)
        some = operations if most is None else min(most, operations)
        for number in sorted(self.rng.sample(range(operations), some)):
            self.attempt(
                f"{fault}, {what}, operation {number} of {operations}",
                lambda number=number: void(attack(fault, number)),
            )

    # --- faults of the disk

    def training(self, fault: str, ends_at: float, earlier: bool = False) -> int:
        """A run, in a folder of its own or over an earlier one; one that was killed is killed once more."""
        output = self.new_folder()
        if earlier:
            output.mkdir()
            for name, content in contents(self.whole[5]).items():
                (output / name).write_bytes(content)
        arguments = self.train(output, 0, *(["--overwrite"] if earlier else []))
        with Disk(self.folder, fault, ends_at) as disk:
            status, told = run(*arguments)
        if ends_at == np.inf:
            check((status, told) == (0, ""), told)
        else:
            self._check_end(fault, status, told, str(output))
            self._check_files(output, fault)
            if fault == "killed":
                with Disk(self.folder, fault, self.rng.randrange(disk.operations)):
                    run(*self._going_on(output, arguments))
            status, told = run(*self._going_on(output, arguments))
            check((status, told) == (0, ""), f"the run does not go on: {told!r}")
        seed = read_archive(output / CHECKPOINT, "checkpoint")[0]["config"]["seed"]
        check(earlier or seed == 0, "another run")
        self._check_outcome(output, self.whole[seed])
        return disk.operations

    def _going_on(self, output: Path, arguments: list[object]) -> list[object]:
        """What resumes a run that has come to a checkpoint, and begins one that has not once more."""
        if (output / CHECKPOINT).exists():
            return ["train", "--resume", output, "--cache", output / "cache", "--quiet", "--threads", 2]
        return [*arguments, *(["--overwrite"] if "--overwrite" not in arguments else [])]

    def _check_end(self, fault: str, status: int, told: str, *named: str) -> None:
        if fault == "full disk":
            check_refusal(status, told, *named)
        elif fault == "killed":
            check(status == KILLED, f"status {status}, {told!r}")
        else:
            check(status in (0, INTERRUPTED) and "Traceback" not in told, f"status {status}, {told!r}")

    def _check_files(self, output: Path, fault: str) -> None:
        """Nothing is half-written, whatever there is, and nothing temporary is left but by a kill."""
        left = [path for path in output.rglob("*") if path.suffix == ".tmp"]
        check(fault == "killed" or not left, f"left behind: {left}")
        for name, load in {
            CHECKPOINT: lambda path: read_archive(path, "checkpoint"),
            MODEL: load_model,
            RESULTS: lambda path: json.loads(path.read_text()),
            PICTURE: lambda path: check(path.read_bytes() == IMAGE, "half a picture"),
        }.items():
            if (output / name).exists():
                try:
                    load(output / name)
                except ValueError as error:
                    raise BrokenPromiseError(f"{name} does not load: {error}") from error
        if (output / MODEL).exists() and fault != "interrupted":  # after which it is the best so far
            model = (output / MODEL).read_bytes()
            whole = [(alone / MODEL).read_bytes() for alone in self.whole.values()]
            check(model in whole, "neither the old model nor the new one")

    def _check_outcome(self, output: Path, alone: Path) -> None:
        files = [contents(folder).keys() for folder in (output, alone)]
        check(files[0] == files[1], f"files {sorted(files[0])}")
        expected = outcome_of(alone)
        different = [f"another {name}" for name, part in outcome_of(output).items() if part != expected[name]]
        check(not different, " and ".join(different))

    def evaluation(self, fault: str, ends_at: float) -> int:
        """Metrics and scores, over earlier ones."""
        output = self.new_folder()
        output.mkdir()
        model, files = output / MODEL, {option: output / option[2:] for option in ("--json", "--scores")}
        model.write_bytes((self.whole[0] / MODEL).read_bytes())
        for path in files.values():
            path.write_bytes(b"old")
        arguments = ["evaluate", model, self.text, *(word for pair in files.items() for word in pair)]
        return self._either_old_or_new(fault, ends_at, arguments, files)

    def benchmark(self, fault: str, ends_at: float) -> int:
        """Figures and the picture of ``bench``, over earlier ones."""
        output = self.new_folder()
        output.mkdir()
        files = {option: output / option[2:] for option in ("--json", "--picture")}
        for path in files.values():
            path.write_bytes(b"old")
        sizes = ["--shapes", "mslr", "--methods", "pl_rank_3", "--cutoffs", 2, "--samples", 1, "--queries", 2]
        arguments = ["bench", *sizes, "--seconds", 0, *(word for pair in files.items() for word in pair)]
        return self._either_old_or_new(fault, ends_at, arguments, files)

    def _either_old_or_new(
        self, fault: str, ends_at: float, arguments: Sequence[object], files: dict[str, Path]
    ) -> int:
        with Disk(self.folder, fault, ends_at) as disk:
            status, told = run(*arguments)
        if ends_at == np.inf:
            check(status == 0, told)
            check(all(path.read_bytes() != b"old" for path in files.values()), "nothing was written")
            return disk.operations
        self._check_end(fault, status, told, *map(str, files.values()))
        if fault == "full disk":
            check(any(option in told for option in files), f"{told!r} does not name the option")
            left = {path.name for path in next(iter(files.values())).parent.iterdir()}
            check(left <= {MODEL, *(path.name for path in files.values())}, f"left behind: {left}")
        for path in files.values():
            whole = path.read_bytes() in (b"old", IMAGE) or _is_whole(path.read_text())
            check(whole, f"{path.name} is half-written")
        check(run(*arguments)[0] == 0, "the same command does not work with room")
        return disk.operations

    def reproduction(self, fault: str, ends_at: float) -> int:
        """Cells of ``reproduce`` and its report: what was kept is not measured again."""
        output = self.new_folder()
        arguments = ["reproduce", "--minutes", 0, "--shapes", "mslr", "--cutoffs", 2, "--parts", "disparity", "--quiet"]
        arguments += ["--output", output]
        measured: list[str] = []
        with mock.patch.object(experiment, "plan", _remembering(experiment.plan, measured)):
            with Disk(self.folder, fault, ends_at) as disk:
                status, told = run(*arguments)
            if ends_at == np.inf:
                check((status, told) == (0, ""), told)
                return disk.operations
            self._check_end(fault, status, told, str(output))
            left = [path for path in output.glob("*") if path.suffix == ".tmp"]
            check(fault == "killed" or not left, f"left behind: {left}")
            kept = (output / "results.jsonl").read_text().splitlines() if (output / "results.jsonl").exists() else [""]
            before, measured[:] = len(measured), []
            check(len(kept) - 1 in (before, before - 1), f"{before} cells measured, {len(kept) - 1} kept")
            status, told = run(*arguments)
            check((status, told) == (0, ""), f"the same command does not go on: {told!r}")
        now = (output / "results.jsonl").read_text().splitlines()
        check(now[: len(kept)] == kept or kept == [""], "cells that were kept have changed")
        check(len(measured) == len(now) - len(kept), "a cell that was kept was measured again")
        check((output / experiment.REPORT).exists(), "no report")
        return disk.operations

    # --- read-only folders

    def read_only(self) -> None:
        """A folder that may be read and not written to: refused, and everything stays; what only reads goes on."""
        output = self.new_folder()
        check(run(*self.train(output)) == (0, ""), "the run failed")
        beside = self.new_folder()  # of a new run
        beside.mkdir()
        before = contents(output)
        for path in (output, beside):
            path.chmod(0o500)
        try:
            with as_others():
                for arguments in (
                    self.train(beside),
                    self.train(output, 0, "--overwrite"),
                    self.train(beside / "below"),
                    ["train", "--resume", output, "--epochs", EPOCHS + 1, "--quiet"],
                    ["evaluate", output / MODEL, self.text, "--json", beside / "json"],
                    ["bench", "--shapes", "mslr", "--methods", "pl_rank_3", "--cutoffs", 2, "--samples", 1, "--queries",
                     2, "--seconds", 0, "--json", beside / "json"],
                    ["reproduce", "--minutes", 0, "--quiet", "--output", beside],
                    ["reproduce", "--minutes", 0, "--quiet", "--output", beside / "below"],
                ):  # fmt: skip
                    status, told = run(*arguments)
                    check_refusal(status, told, str(output), str(beside))
                    check("Permission denied" in told, told)
                status, told = run("evaluate", output / MODEL, self.text, "--cache", beside)
                check(status == 0 and told.startswith("warning: cache ") and "cannot be written" in told, told)
        finally:
            for path in (output, beside):
                path.chmod(0o700)
        check(contents(output) == before and not contents(beside), "something was written")

    def all_faults(self, most: int | None = None) -> None:
        """Everything; ``most`` operations of each command, or all of them."""
        for fault in FAULTS:
            self.at_each("train", self.training, fault, most)
            self.at_each("train --overwrite", functools.partial(self.training, earlier=True), fault, most)
        for fault in FAULTS[:2]:
            self.at_each("evaluate", self.evaluation, fault, most)
            self.at_each("bench", self.benchmark, fault, most)
            self.at_each("reproduce", self.reproduction, fault, most)
        self.attempt("read-only folders", self.read_only)


def void(_: object) -> None:
    """Give nothing back."""


def _is_whole(text: str) -> bool:
    """Whether it is JSON, or a number a line for each document."""
    try:
        json.loads(text)
    except ValueError:
        return text.endswith("\n") and len([float(line) for line in text.split()]) == 32
    return True


_MEASURED: dict[str, Any] = {}


def _remembering(plan: Callable[..., list[Part]], measured: list[str]) -> Callable[..., list[Part]]:
    """A plan of which every cell is measured once in this process; ``measured`` gets what a command asks for."""

    def remembered(settings: Any) -> list[Part]:
        def replaced(part: Part) -> Part:
            def measure(cell: Any, number: int) -> Any:
                key = json.dumps([part.name, cell, number], sort_keys=True)
                measured.append(key)
                if key not in _MEASURED:
                    _MEASURED[key] = part.measure(cell, number)
                return _MEASURED[key]

            return Part(**{**vars(part), "measure": measure})

        return [replaced(part) for part in plan(settings)]

    return remembered


@contextlib.contextmanager
def quick_commands() -> Iterator[None]:
    """Pictures that nobody draws, and the shortest runs of ``reproduce``."""

    def saved(figure: Any, file: Any, **options: Any) -> None:
        file.write(IMAGE)

    with (
        mock.patch.object(matplotlib.figure.Figure, "savefig", saved),
        mock.patch.object(figures, "rendered", return_value=IMAGE),
        mock.patch.object(experiment, "SHORTEST_RUN", 0.004),
        mock.patch.object(learning, "LEAST_QUERIES", 2),
    ):
        yield


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, help="operations of each command at which a fault begins (all)")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, quick_commands():
        storage = Storage(Path(folder), given.seed)
        storage.all_faults(given.most)
    print(", ".join(f"{what}: {count}" for what, count in sorted(storage.tally.items())))
    print(f"seed {given.seed}, {len(storage.violations)} violations")
    return int(bool(storage.violations))


if __name__ == "__main__":
    sys.exit(main())
