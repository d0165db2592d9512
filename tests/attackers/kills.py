"""End ``train`` at random instants, resume it, and compare the model with that of a run which nothing has ended.

    make kills KILLS_FLAGS="--kills 200 --seed 0"

A run is ended by SIGKILL, SIGTERM or Ctrl-C, or by a file that may not grow (a limit of its size stands for a full
disk), some of them while the clock that files are dated by jumps, and resumed on another number of threads until it
comes to its end. Runs are forks of one process that has imported everything, so instants are those of training, not of
importing. Exits with 1 if models, last weights, states of the optimizer or histories differ by a bit, if a run that
was not ended fails, or if a full disk is told by anything but one line.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

# imported before the forks, as PyTorch is by the loop: a run takes longer to import them than to train
import matplotlib.backends.backend_agg
import matplotlib.figure  # noqa: F401

import plrank_fast.training.learning_curve
import plrank_fast.training.loop  # noqa: F401
from plrank_fast.__main__ import main as plrank_fast_main
from training_outcome import MODEL, differences, outcome_of

# With steps this large the best epoch is the second: its weights have to outlast the ends that come later.
SETTINGS = [
    *("--profile", "yahoo", "--queries", "40", "--batch-queries", "4", "--features", "8", "--hidden", "6"),
    *("--method", "pl_rank_3", "--samples", "2", "--cutoff", "5", "--learning-rate", "0.3"),
]
EPOCHS = 12
CHECKPOINT = "checkpoint.plrank"
ENDS = ("SIGKILL", "SIGKILL", "SIGKILL", "SIGTERM", "SIGINT", "full disk")
CHECKPOINTS = 40  # after so many at most a run is ended; the whole one writes three times as many
SECONDS_OF_A_RUN = 1800.0  # longer, and it counts as hanging: many times what it takes on a busy machine


class Kills:
    """Runs that are ended and resumed in a folder, and what came of them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.rng = random.Random(f"kills {seed}")
        self.tally: collections.Counter[str] = collections.Counter()
        self.violations: list[str] = []
        self._finish(self._begin(["--output", str(folder / "whole")]), "whole")
        self.expected = outcome_of(folder / "whole")

    def _end(self, child: int, end: str, output: Path) -> None:
        """Send a signal after some checkpoints have been written, and at any instant between two of them.

        Checkpoints are counted, for seconds say little about how far a run has come on a busy machine.
        """
        seen, number = set(), self.rng.randint(1, CHECKPOINTS)
        known = _written(output / CHECKPOINT)
        while len(seen) < number and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            now = _written(output / CHECKPOINT)
            if now not in (None, known):
                seen.add(now)
            time.sleep(0.0005)
        time.sleep(self.rng.uniform(0.0, 0.02))
        os.kill(child, signal.Signals[end])

    def run(self, kills: int) -> None:
        """Runs one after another until so many have been ended."""
        number = 0
        while sum(self.tally[end] for end in set(ENDS)) < kills and len(self.violations) < 5:
            self._one_run(f"run{number}", kills)
            number += 1

    def _one_run(self, name: str, kills: int) -> None:
        """A run that is ended up to eight times and must come to the model of the whole one."""
        output = self.folder / name
        history = []
        for _ in range(8):
            if sum(self.tally[end] for end in set(ENDS)) >= kills:
                break
            end = self.rng.choice(ENDS)
            history.append(end)
            limit = int(2 ** self.rng.uniform(9, 15)) if end == "full disk" else None
            child = self._begin(self._arguments(output), limit, jumping=self.rng.random() < 0.5)
            if limit is None:
                self._end(child, end, output)
            status = self._wait(child)
            if status == 0:
                self.tally["came to its end before"] += 1
                break
            self.tally[end] += 1
            allowed = {"full disk": {2}, "SIGINT": {130, -signal.SIGINT}}.get(end) or {-signal.Signals[end]}
            told = self._told()
            if status not in allowed or (end == "full disk" and ("Traceback" in told or "error: " not in told)):
                self._violation(f"{name}, {history}: exit status {status} after {end}, {told!r}")
        self._finish(self._begin(self._arguments(output)), f"{name}, {history}")
        different = differences(outcome_of(output), self.expected)
        if different:
            self._violation(f"{name}, {history}: {different} than that of the whole run")
        left = {path.name for path in output.iterdir() if path.suffix == ".tmp"} - {f"{CHECKPOINT}.tmp", f"{MODEL}.tmp"}
        if left - {"results.json.tmp", "learning_curve.png.tmp"}:
            self._violation(f"{name}, {history}: {left} left behind")
        self.tally["models compared"] += 1
        print(f"{name}: {', '.join(history)}", flush=True)

    def _arguments(self, output: Path) -> list[str]:
        return ["--resume" if (output / CHECKPOINT).exists() else "--output", str(output)]

    def _begin(self, where: Sequence[str], limit: int | None = None, *, jumping: bool = False) -> int:
        """Begin or resume a run in a process of its own."""
        settings = [] if where[0] == "--resume" else [*SETTINGS, "--overwrite"]
        threads = ["--threads", str(self.rng.choice((1, 2, 3)))]
        rest = ["--epochs", str(EPOCHS), "--checkpoint-seconds", "0", "--quiet", *threads]
        arguments = ["train", *settings, *where, *rest]
        child = os.fork()
        if child:
            return child
        status = 1
        try:
            shown = os.open(self.folder / "shown.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(shown, 1)
            os.dup2(shown, 2)
            sys.stdout, sys.stderr = os.fdopen(1, "w", buffering=1), os.fdopen(2, "w", buffering=1)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if jumping:
                time.time = _jumping(time.time, random.Random(str(self.tally)))
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            status = plrank_fast_main(arguments)
        except SystemExit as left:
            status = left.code if isinstance(left.code, int) else 1
        except KeyboardInterrupt:
            status = 130
        finally:
            os._exit(status)

    def _finish(self, child: int, what: str) -> None:
        """Wait for a run that nothing ends."""
        status = self._wait(child)
        if status:
            self._violation(f"{what}: exit status {status} of a run that was not ended, {self._told()!r}")

    def _wait(self, child: int) -> int:
        deadline = time.monotonic() + SECONDS_OF_A_RUN
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > deadline:
                os.kill(child, signal.SIGKILL)
                self._violation("a run hung")
                deadline += SECONDS_OF_A_RUN
            time.sleep(0.01)

    def _told(self) -> str:
        return (self.folder / "shown.txt").read_text()[-2000:]

    def _violation(self, what: str) -> None:
        self.violations.append(what)
        print(f"BROKEN  {what}", flush=True)


def _written(path: Path) -> int | None:
    """When a file was written, which tells one from the next."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def _jumping(clock: Callable[[], float], rng: random.Random) -> Callable[[], float]:
    """A clock that is set back and forth by up to a year at each look."""
    return lambda: clock() + rng.uniform(-3e7, 3e7)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        kills = Kills(Path(folder), given.seed)
        kills.run(given.kills)
    print(", ".join(f"{what}: {count}" for what, count in sorted(kills.tally.items())))
    print(f"seed {given.seed}, {len(kills.violations)} violations")
    return int(bool(kills.violations))


if __name__ == "__main__":
    sys.exit(main())
